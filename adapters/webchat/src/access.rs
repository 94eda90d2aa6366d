//! Access control: the `Host` and `Origin` headers of requests, and the token.
//!
//! A page elsewhere must not reach a chat on this machine. It cannot choose the `Origin` that its browser sends, and
//! after DNS rebinding of its own name to 127.0.0.1 the browser still sends that name as `Host`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::{HeaderMap, header, request::Parts, uri::Authority};
use rejoinder_kit::{Peer, Tokens, is_forwarded};
use url::Url;

use crate::section::PersonHeader;

#[derive(Clone, Debug)]
pub enum Access {
    /// Anybody on this machine.
    Loopback,
    /// Anybody with the token, from anywhere.
    Token(Tokens),
    /// People who are known, once they have signed in, from anywhere.
    People(SignIn),
}

/// How people sign in to a chat.
#[derive(Clone, Debug)]
pub struct SignIn {
    /// Proves that a challenge is ours; the same at all nodes.
    pub key: Tokens,
    /// How a proxy says who is signed in there.
    pub header: Option<PersonHeader>,
    /// Where people open the page; `None`: passkeys work at `localhost` only.
    pub public_url: Option<Url>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AccessError {
    #[error("the Host header is missing or malformed")]
    NoHost,
    #[error(
        "this chat is open on this machine only: use http://localhost or http://127.0.0.1, or set `access = \"token\"` in its section to let others in"
    )]
    ForeignHost,
    #[error(
        "this chat is open on this machine only, but the request came from another machine: set `access = \"token\"` in its section to let others in"
    )]
    ForeignPeer,
    #[error(
        "this chat is open on this machine only, but the request came through a proxy: set `access = \"token\"` in its section to let others in"
    )]
    Proxied,
    #[error("the socket was opened by a page of another origin")]
    ForeignOrigin,
}

/// The requested host (and port), if `access` admits the request.
pub(crate) fn admit(access: &Access, parts: &Parts) -> Result<Authority, AccessError> {
    let host = host(parts)?;
    if matches!(access, Access::Loopback) {
        if !names_loopback(host.host()) {
            return Err(AccessError::ForeignHost);
        }
        if is_forwarded(&parts.headers) {
            return Err(AccessError::Proxied);
        }
        if parts.extensions.get::<Peer>().is_some_and(|peer| !peer.0.to_canonical().is_loopback()) {
            return Err(AccessError::ForeignPeer);
        }
    }
    Ok(host)
}

fn host(parts: &Parts) -> Result<Authority, AccessError> {
    let mut named = parts.headers.get_all(header::HOST).iter();
    let host = match (named.next(), named.next()) {
        (Some(host), None) => host.to_str().ok().and_then(|host| host.parse().ok()),
        (None, _) => parts.uri.authority().cloned(),
        (Some(_), Some(_)) => None,
    };
    host.filter(|host: &Authority| !host.host().is_empty() && !host.as_str().contains('@')).ok_or(AccessError::NoHost)
}

fn names_loopback(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    if host == "localhost" || host.ends_with(".localhost") {
        return true;
    }
    let ip = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(host) => host.parse::<Ipv6Addr>().map(IpAddr::V6),
        None => host.parse::<Ipv4Addr>().map(IpAddr::V4),
    };
    ip.is_ok_and(|ip| ip.is_loopback())
}

/// Rejects a socket unless its `Origin` is `host` itself or one of `origins`. If one of these is of `https`, visitors come over
/// TLS, and a page of `host` over plain HTTP may be anybody's who is on the way, unless `host` is this machine.
///
/// Every browser sends `Origin` with a socket (RFC 6455, section 4.1, point 8), so a request without it is not from a
/// page.
pub(crate) fn check_origin(headers: &HeaderMap, host: &Authority, origins: &[String]) -> Result<(), AccessError> {
    let mut sent = headers.get_all(header::ORIGIN).iter();
    let origin = match (sent.next(), sent.next()) {
        (None, _) => return Ok(()),
        (Some(origin), None) => origin.to_str().ok(),
        (Some(_), Some(_)) => None,
    };
    let origin = origin.ok_or(AccessError::ForeignOrigin)?;
    let known = || origins.iter().any(|known| known.trim_end_matches('/').eq_ignore_ascii_case(origin));
    let has_tls = origins.iter().any(|known| known.starts_with("https://"));
    let is_safe = !has_tls || origin.starts_with("https://") || names_loopback(host.host());
    if (is_safe && is_origin_of(origin, host)) || known() { Ok(()) } else { Err(AccessError::ForeignOrigin) }
}

fn is_origin_of(origin: &str, host: &Authority) -> bool {
    let Ok(origin) = Url::parse(origin) else { return false };
    let default_port = match origin.scheme() {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    origin.host_str().is_some_and(|name| name.eq_ignore_ascii_case(host.host()))
        && origin.port().unwrap_or(default_port) == host.port_u16().unwrap_or(default_port)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use rstest::rstest;

    use super::*;

    fn parts(headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri("/chat");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request that can be built").into_parts().0
    }

    #[rstest]
    #[case("localhost")]
    #[case("localhost:7420")]
    #[case("LocalHost:7420")]
    #[case("chat.localhost:7420")]
    #[case("127.0.0.1:7420")]
    #[case("127.8.8.8")]
    #[case("[::1]:7420")]
    fn a_loopback_host_is_let_in(#[case] host: &str) {
        assert!(admit(&Access::Loopback, &parts(&[("host", host)])).is_ok());
    }

    #[rstest]
    #[case("evil.example")]
    #[case("evil.example:7420")]
    #[case("localhost.evil.example")]
    #[case("127.0.0.1.evil.example")]
    #[case("notlocalhost")]
    #[case("192.168.1.7:7420")]
    #[case("0.0.0.0:7420")]
    #[case("2130706433")]
    #[case("[::ffff:192.168.1.7]:7420")]
    #[case("[fe80::1]")]
    fn another_host_is_refused_on_loopback(#[case] host: &str) {
        assert_eq!(admit(&Access::Loopback, &parts(&[("host", host)])), Err(AccessError::ForeignHost));
    }

    #[rstest]
    #[case(&[])]
    #[case(&[("host", "localhost"), ("host", "evil.example")])]
    #[case(&[("host", "localhost@evil.example")])]
    #[case(&[("host", "evil.example/localhost")])]
    #[case(&[("host", "")])]
    fn a_host_that_cannot_be_read_is_refused(#[case] headers: &[(&str, &str)]) {
        assert_eq!(admit(&Access::Loopback, &parts(headers)), Err(AccessError::NoHost));
    }

    #[rstest]
    #[case("x-forwarded-for")]
    #[case("x-forwarded-host")]
    #[case("x-forwarded-proto")]
    #[case("x-real-ip")]
    #[case("forwarded")]
    #[case("via")]
    #[case("cf-connecting-ip")]
    #[case("true-client-ip")]
    fn a_proxy_is_not_this_machine(#[case] header: &str) {
        let parts = parts(&[("host", "localhost:7420"), (header, "203.0.113.9")]);

        assert_eq!(admit(&Access::Loopback, &parts), Err(AccessError::Proxied));
    }

    #[rstest]
    #[case("127.0.0.1", true)]
    #[case("::1", true)]
    #[case("::ffff:127.0.0.1", true)]
    #[case("192.168.1.7", false)]
    fn a_peer_on_another_machine_is_refused_whatever_host_it_names(#[case] peer: IpAddr, #[case] is_let_in: bool) {
        let mut parts = parts(&[("host", "localhost:7420")]);
        parts.extensions.insert(Peer(peer));

        assert_eq!(admit(&Access::Loopback, &parts).is_ok(), is_let_in);
    }

    #[test]
    fn a_chat_with_a_token_is_open_under_any_name() {
        let access = Access::Token("secret".into());

        assert!(admit(&access, &parts(&[("host", "chat.example.org"), ("x-forwarded-for", "203.0.113.9")])).is_ok());
    }

    #[rstest]
    #[case("localhost:7420", "http://localhost:7420", true)]
    #[case("localhost:7420", "http://LOCALHOST:7420", true)]
    #[case("[::1]:7420", "http://[::1]:7420", true)]
    #[case("chat.example.org", "https://chat.example.org", true)]
    #[case("chat.example.org:443", "https://chat.example.org", true)]
    #[case("chat.example.org", "http://chat.example.org", false)]
    #[case("chat.example.org:80", "https://chat.example.org", false)]
    #[case("localhost:7420", "http://localhost:3000", false)]
    #[case("localhost:7420", "http://127.0.0.1:7420", false)]
    #[case("localhost:7420", "http://evil.example", false)]
    #[case("localhost:7420", "http://localhost:7420.evil.example", false)]
    #[case("localhost:7420", "null", false)]
    #[case("localhost:7420", "file://localhost:7420", false)]
    #[case("localhost:7420", "", false)]
    #[case("internal:7420", "https://public.example.org", true)]
    fn only_our_own_pages_open_a_socket(#[case] host: &str, #[case] origin: &str, #[case] is_let_in: bool) {
        let parts = parts(&[("origin", origin)]);
        let host = host.parse().expect("an authority");

        let checked = check_origin(&parts.headers, &host, &["https://public.example.org/".to_owned()]);

        assert_eq!(checked.is_ok(), is_let_in);
    }

    #[test]
    fn without_tls_our_pages_have_none() {
        let parts = parts(&[("origin", "http://chat.lan:7420")]);
        let host = "chat.lan:7420".parse().expect("an authority");

        assert!(check_origin(&parts.headers, &host, &[]).is_ok());
    }

    #[test]
    fn what_is_no_browser_sends_no_origin() {
        let host = "localhost:7420".parse().expect("an authority");

        assert!(check_origin(&parts(&[]).headers, &host, &[]).is_ok());
    }
}
