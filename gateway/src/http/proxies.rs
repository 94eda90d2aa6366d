//! Who sends a request that came through a proxy.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, header};
use rejoinder_config::Network;
use rejoinder_kit::Peer;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The proxies that the operator trusts. What others say about where a request comes from changes nothing.
pub(crate) struct Proxies(Vec<Network>);

impl Proxies {
    pub(crate) const fn new(networks: Vec<Network>) -> Self {
        Self(networks)
    }

    /// Whether a connection from `address` is one of a trusted proxy.
    pub(super) fn trust(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// The caller of a request with `headers` on a connection from `address`: the last address in `X-Forwarded-For` that is
    /// not a trusted proxy's. Without that header, `Forwarded` counts. An entry that is no address ends the search at the
    /// proxy that wrote it.
    pub(super) fn caller(&self, address: IpAddr, headers: &HeaderMap) -> Peer {
        // Before the headers of a stranger are read: they can be long.
        if !self.trust(address) {
            return Peer(address);
        }
        let mut caller = address;
        for hop in hops(headers).into_iter().rev() {
            if !self.trust(caller) {
                break;
            }
            let Some(before) = hop else { break };
            caller = before;
        }
        Peer(caller)
    }
}

/// The addresses that a request came through, beginning with its caller. `None` for an entry that is no address.
fn hops(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    // The caller writes the first ones, and a proxy adds its own behind them: what is no text spoils its own entry only.
    let entries = |name: &HeaderName| {
        let lines = headers.get_all(name).into_iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        lines.map(|entry| std::str::from_utf8(entry.trim_ascii()).ok()).collect::<Vec<_>>()
    };
    if headers.contains_key(&X_FORWARDED_FOR) {
        return entries(&X_FORWARDED_FOR).into_iter().map(|entry| address(entry?)).collect();
    }
    // A comma inside quotes splits what belongs together.
    let is_whole = |entry: &&str| entry.matches('"').count().is_multiple_of(2);
    let entries = entries(&header::FORWARDED).into_iter().map(|entry| entry.filter(is_whole));
    entries.map(|entry| address(forwarded_for(entry?)?)).collect()
}

/// The `for` of an entry of `Forwarded` (RFC 7239), without quotes.
fn forwarded_for(entry: &str) -> Option<&str> {
    let mut pairs = entry.split(';').filter_map(|pair| pair.split_once('='));
    let node = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    node.map(|(_, node)| node.trim().trim_matches('"'))
}

/// An address with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse().ok().map(|address: std::net::SocketAddr| address.ip()))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::no_header("127.0.0.1", &[], "127.0.0.1")]
    #[case::one_proxy("127.0.0.1", &[("x-forwarded-for", "203.0.113.9")], "203.0.113.9")]
    #[case::two_proxies("127.0.0.1", &[("x-forwarded-for", "203.0.113.9, 10.1.2.3")], "203.0.113.9")]
    #[case::what_the_caller_wrote_itself("127.0.0.1", &[("x-forwarded-for", "198.51.100.1, 203.0.113.9")], "203.0.113.9")]
    #[case::in_two_lines("127.0.0.1", &[("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "203.0.113.9")], "203.0.113.9")]
    #[case::proxies_only("127.0.0.1", &[("x-forwarded-for", "10.9.9.9, 10.1.2.3")], "10.9.9.9")]
    #[case::with_a_port("127.0.0.1", &[("x-forwarded-for", "203.0.113.9:4711")], "203.0.113.9")]
    #[case::no_address("127.0.0.1", &[("x-forwarded-for", "198.51.100.1, unknown, 10.1.2.3")], "10.1.2.3")]
    #[case::no_text_of_the_caller("127.0.0.1", &[("x-forwarded-for", "\u{e9}, 203.0.113.9")], "203.0.113.9")]
    #[case::no_text_of_the_caller_in_forwarded("127.0.0.1", &[("forwarded", "for=\u{e9}, for=203.0.113.9")], "203.0.113.9")]
    #[case::of_a_stranger("192.0.2.7", &[("x-forwarded-for", "203.0.113.9")], "192.0.2.7")]
    #[case::as_ipv6("::ffff:127.0.0.1", &[("x-forwarded-for", "2001:db8::7")], "2001:db8::7")]
    #[case::forwarded("127.0.0.1", &[("forwarded", "for=198.51.100.1, for=\"[2001:db8::7]:4711\";proto=https")], "2001:db8::7")]
    #[case::forwarded_in_quotes("127.0.0.1", &[("forwarded", "for=203.0.113.9;host=\"a, for=198.51.100.1\"")], "127.0.0.1")]
    #[case::forwarded_for_first("127.0.0.1", &[("forwarded", "for=198.51.100.1"), ("x-forwarded-for", "203.0.113.9")], "203.0.113.9")]
    fn the_caller_is_the_last_address_that_is_no_trusted_proxys(
        #[case] connection: IpAddr,
        #[case] headers: &[(&'static str, &str)],
        #[case] caller: IpAddr,
    ) {
        let proxies = crate::wiring::tests::config("[server]\ntrusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]\n");
        let proxies = Proxies::new(proxies.server.trusted_proxies);
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            sent.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }

        assert_eq!(proxies.caller(connection, &sent), Peer(caller));
    }
}
