//! Who sends a request.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::{Extensions, HeaderMap, HeaderName};

/// The bits of an IPv6 address that tell subscribers apart.
const SUBSCRIBER: u32 = 56;

/// The address of a request's caller: the other end of its connection, or what a trusted proxy says it is. The server puts
/// it into the extensions of each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// The other end of a request's connection: a proxy, if the request came through one. The server puts it into the extensions of each
/// request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Via(pub IpAddr);

impl Peer {
    /// The peer of a request. Requests of a server that names no peers all have the same one.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or(Self(Ipv4Addr::UNSPECIFIED.into()))
    }

    /// What counts as one peer: with IPv6 the /56 network, because a subscriber of a home line has one (RIPE-690 §4.2).
    #[must_use]
    pub fn network(self) -> IpAddr {
        match self.0.to_canonical() {
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << (128 - SUBSCRIBER))).into(),
            ip @ IpAddr::V4(_) => ip,
        }
    }
}

/// Headers that proxies add to requests.
const PROXY_HEADERS: [&str; 5] = ["via", "x-real-ip", "x-original-host", "x-envoy-external-address", "cdn-loop"];

/// How the names of others begin.
const PROXY_PREFIXES: [&str; 3] = ["x-forward", "cf-", "tailscale-"];

/// What the names of the rest contain.
const PROXY_PARTS: [&str; 5] = ["forwarded", "client-ip", "clientip", "user-ip", "connection-ip"];

/// Whether a request has a header that proxies add. A proxy that adds none cannot be told from a direct caller.
#[must_use]
pub fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.keys().map(HeaderName::as_str).any(|name| {
        PROXY_HEADERS.contains(&name)
            || PROXY_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || PROXY_PARTS.iter().any(|part| name.contains(part))
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("192.0.2.1", "192.0.2.1")]
    #[case("2001:db8:1:100::1", "2001:db8:1:100::")]
    #[case("::ffff:192.0.2.1", "192.0.2.1")]
    #[case("2001:db8:1:2:3:4:5:6", "2001:db8:1::")]
    fn a_peer_is_a_network_with_ipv6(#[case] address: IpAddr, #[case] counted_as: IpAddr) {
        assert_eq!(Peer(address).network(), counted_as);
    }

    #[rstest]
    #[case("x-forwarded-for", true)]
    #[case("x-forwarded-proto", true)]
    #[case("via", true)]
    #[case("true-client-ip", true)]
    #[case("forwarded", true)]
    #[case("x-forward-for", true)]
    #[case("x-azure-clientip", true)]
    #[case("x-vercel-forwarded-for", true)]
    #[case("cf-connecting-ipv6", true)]
    #[case("tailscale-user-login", true)]
    #[case("user-agent", false)]
    #[case("accept", false)]
    fn a_proxy_is_known_by_its_headers(#[case] name: &'static str, #[case] is_proxys: bool) {
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_static("x"))]);

        assert_eq!(is_forwarded(&headers), is_proxys);
    }
}
