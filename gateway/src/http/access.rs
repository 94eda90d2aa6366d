//! Access control: the admin token, and the requested `Host`.
//!
//! The check of `Host` stops DNS rebinding: a foreign page whose name was rebound to 127.0.0.1 still sends its own name
//! as `Host`. Such a page has no token either; this is a second line of defence.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use url::{Host, Url};

use super::{App, error::ApiError};

pub(crate) struct Access {
    /// The token's SHA-256. All hashes have the same length, so comparing them does not reveal the length of the token.
    token: [u8; 32],
    /// The host names to accept beside loopback's. `None` accepts any name: the gateway listens beyond loopback.
    hosts: Option<Vec<String>>,
}

impl Access {
    /// For a gateway that listens on `address` and is reached from outside at `public_url`.
    pub(crate) fn new(token: &SecretString, public_url: Option<&Url>, address: SocketAddr) -> Self {
        let public_host = public_url.and_then(Url::host_str).map(str::to_ascii_lowercase);
        Self {
            token: Sha256::digest(token.expose_secret().trim()).into(),
            hosts: address.ip().is_loopback().then(|| public_host.into_iter().collect()),
        }
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let mut sent = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(sent), None) = (sent.next(), sent.next()) else { return false };
        let Some((scheme, token)) = sent.to_str().ok().and_then(|sent| sent.split_once(' ')) else { return false };
        let token: [u8; 32] = Sha256::digest(token.trim()).into();
        scheme.eq_ignore_ascii_case("bearer") & bool::from(token.ct_eq(&self.token))
    }

    /// Whether the request's `Host` names this gateway. A request without any passes: browsers always send one.
    fn allows_host(&self, request: &Request) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        let mut named = request.headers().get_all(header::HOST).iter();
        let host: Option<Authority> = match (named.next(), named.next()) {
            (None, _) => match request.uri().authority() {
                Some(authority) => Some(authority.clone()),
                None => return true,
            },
            (Some(host), None) => host.to_str().ok().and_then(|host| host.parse().ok()),
            (Some(_), Some(_)) => None,
        };
        host.is_some_and(|host| {
            let host = host.host().to_ascii_lowercase();
            names_loopback(&host) || hosts.contains(&host)
        })
    }
}

fn names_loopback(host: &str) -> bool {
    match Host::parse(host) {
        // The parser reads `2130706433` as 127.0.0.1. Browsers do too, and send `127.0.0.1`, so the number is not accepted.
        Ok(Host::Ipv4(ip)) => IpAddr::V4(ip).is_loopback() && host == ip.to_string(),
        Ok(Host::Ipv6(ip)) => ip.is_loopback(),
        Ok(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Err(_) => false,
    }
}

/// Rejects requests without the admin token.
pub(super) async fn admin(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if app.access.has_token(request.headers()) {
        next.run(request).await
    } else {
        ApiError::Unauthorized.into_response()
    }
}

/// Rejects requests for another host.
pub(super) async fn host(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if app.access.allows_host(&request) { next.run(request).await } else { ApiError::ForeignHost.into_response() }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use rstest::rstest;

    use super::*;

    fn access(address: &str, public_url: Option<&str>) -> Access {
        let public_url = public_url.map(|url| url.parse().unwrap());
        Access::new(&"secret".into(), public_url.as_ref(), address.parse().unwrap())
    }

    fn request(headers: &[(&str, &str)]) -> Request {
        let request = headers
            .iter()
            .fold(Request::get("/admin/api/turns"), |request, (name, value)| request.header(*name, *value));
        request.body(Body::empty()).unwrap()
    }

    #[rstest]
    #[case(&[("authorization", "Bearer secret")], true)]
    #[case(&[("authorization", "bearer  secret ")], true)]
    #[case(&[("authorization", "Bearer Secret")], false)]
    #[case(&[("authorization", "Bearer secret2")], false)]
    #[case(&[("authorization", "Bearer ")], false)]
    #[case(&[("authorization", "secret")], false)]
    #[case(&[("authorization", "Basic secret")], false)]
    #[case(&[("authorization", "Bearer secret"), ("authorization", "Bearer secret")], false)]
    #[case(&[], false)]
    fn only_the_token_opens(#[case] headers: &[(&str, &str)], #[case] opens: bool) {
        assert_eq!(access("127.0.0.1:7420", None).has_token(request(headers).headers()), opens);
    }

    #[rstest]
    #[case("localhost:7420", true)]
    #[case("LOCALHOST", true)]
    #[case("127.0.0.1:7420", true)]
    #[case("[::1]:7420", true)]
    #[case("gateway.example.org", true)]
    #[case("evil.example", false)]
    #[case("127.0.0.1.evil.example", false)]
    #[case("localhost@evil.example", false)]
    #[case("192.168.1.7:7420", false)]
    #[case("2130706433", false)]
    #[case("", false)]
    fn on_loopback_a_caller_names_our_host(#[case] host: &str, #[case] is_allowed: bool) {
        let access = access("127.0.0.1:7420", Some("https://gateway.example.org/"));

        assert_eq!(access.allows_host(&request(&[("host", host)])), is_allowed);
    }

    #[test]
    fn beyond_loopback_any_name_will_do() {
        assert!(access("0.0.0.0:7420", None).allows_host(&request(&[("host", "gateway.lan:7420")])));
    }
}
