//! Access control: the operator's tokens, and the requested `Host`.
//!
//! The check of `Host` stops DNS rebinding: a foreign page whose name was rebound to 127.0.0.1 still sends its own name
//! as `Host`. Such a page has no token either; this is a second line of defence.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::{
    extract::Request,
    http::{Extensions, HeaderMap, header, uri::Authority},
};
use rejoinder_kit::{Guesses, Peer, Tokens, bearer, is_forwarded};
use url::{Host, Url};

use super::{error::ApiError, renewal::Renewal};
use crate::callers::{Caller, StoredTokens};

/// Who may use the operator's routes at one address.
pub(crate) struct Access {
    /// `None`: `/admin` is switched off.
    admin: Option<Tokens>,
    /// Opens the metrics, as the admin token does.
    metrics: Option<Tokens>,
    guesses: Arc<Guesses>,
    /// The host names to accept beside loopback's. `None` accepts any name: the gateway listens beyond loopback.
    hosts: Option<Vec<String>>,
    /// Whether a proxy stands in front, which may say nothing about its callers: then nobody is known to be on this machine.
    has_proxy: bool,
}

impl Access {
    /// For a gateway that listens on `address` and is reached from outside at `public_url`. `is_public`: the proxy in front of
    /// `public_url` leads there.
    pub(crate) fn new(
        admin: Option<Tokens>,
        metrics: Option<Tokens>,
        guesses: Arc<Guesses>,
        public_url: Option<&Url>,
        address: SocketAddr,
        is_public: bool,
    ) -> Self {
        let public_host = public_url.and_then(Url::host_str).map(str::to_ascii_lowercase);
        let hosts = address.ip().is_loopback().then(|| public_host.into_iter().collect());
        Self { admin, metrics, guesses, hosts, has_proxy: is_public && public_url.is_some() }
    }

    /// The same, reached at the node's own URL as well. That does not lead to the operator's own address.
    pub(crate) fn with_host_of(mut self, node_url: Option<&Url>) -> Self {
        if let Some(hosts) = self.hosts.as_mut().filter(|_| self.has_proxy) {
            hosts.extend(node_url.and_then(Url::host_str).map(str::to_ascii_lowercase));
        }
        self
    }

    pub(crate) const fn has_admin(&self) -> bool {
        self.admin.is_some()
    }

    /// Whether a request certainly comes from this machine.
    pub(super) fn is_local(&self, headers: &HeaderMap) -> bool {
        self.hosts.is_some() && !self.has_proxy && !is_forwarded(headers)
    }

    /// Checks that a request may read what only concerns the operator: it comes from this machine, or it has a token.
    pub(super) async fn check_reader(&self, headers: &HeaderMap, extensions: &Extensions) -> Result<(), ApiError> {
        if self.is_local(headers) {
            return Ok(());
        }
        let open = |sent: &[u8]| {
            let mut tokens = self.admin.iter().chain(&self.metrics);
            tokens.any(|tokens| tokens.open_for(sent)).then_some(())
        };
        self.check(headers, extensions, "metrics", open, None).await
    }

    /// Who sent a request for the admin API: the token of the configuration, or a stored one.
    pub(super) async fn identify(
        &self,
        headers: &HeaderMap,
        extensions: &Extensions,
        stored: &StoredTokens,
        renewal: &Renewal,
    ) -> Result<Caller, ApiError> {
        let caller = |sent: &[u8]| {
            let is_configured = self.admin.as_ref().is_some_and(|tokens| tokens.open_for(sent));
            let caller = stored.caller(sent);
            if is_configured { Some(Caller::configured()) } else { caller }
        };
        self.check(headers, extensions, "admin", caller, Some(renewal)).await
    }

    /// What `open` finds for the token of a request, unless too many wrong ones came from its address. With a `renewal`, another node
    /// may have made the token, and no token is wrong while it cannot be read which ones there are.
    async fn check<T>(
        &self,
        headers: &HeaderMap,
        extensions: &Extensions,
        surface: &'static str,
        open: impl Fn(&[u8]) -> Option<T>,
        renewal: Option<&Renewal>,
    ) -> Result<T, ApiError> {
        let peer = Peer::of(extensions);
        let Some(sent) = bearer(headers) else {
            self.guesses.missing(peer, surface);
            return Err(ApiError::Unauthorized);
        };
        self.guesses.turn_of(peer, surface, sent).await?;
        let opened = match renewal {
            Some(renewal) => renewal.find(|| open(sent)).await.map_err(|_| self.undecided(peer, surface))?,
            None => open(sent),
        };
        match opened {
            Some(_) => self.guesses.right(peer, surface, sent),
            None => self.guesses.wrong(peer, surface),
        }
        opened.ok_or(ApiError::Unauthorized)
    }

    /// What a secret is answered with of which it cannot be known whether it is right.
    fn undecided(&self, peer: Peer, surface: &str) -> ApiError {
        self.guesses.undecided(peer, surface);
        ApiError::Store
    }

    /// Opens a link with `open`, unless too many wrong codes came from `peer`. Another node may have made it, and no code is wrong while it
    /// cannot be read which ones there are.
    pub(super) async fn open_link(
        &self,
        peer: Peer,
        open: impl Fn() -> Option<Caller>,
        renewal: &Renewal,
    ) -> Result<Caller, ApiError> {
        self.guesses.turn(peer, "admin").await?;
        let opened = renewal.find(open).await.map_err(|_| self.undecided(peer, "admin"))?;
        opened.ok_or_else(|| {
            self.guesses.wrong(peer, "admin");
            ApiError::Unauthorized
        })
    }

    /// Whether the request's `Host` names this gateway. A request without any passes: browsers always send one.
    pub(super) fn allows_host(&self, request: &Request) -> bool {
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
    if let Ok(ip) = host.parse::<Ipv4Addr>() {
        return ip.is_loopback();
    }
    match Host::parse(host) {
        // The parser reads `2130706433` as 127.0.0.1. Browsers do too, and send `127.0.0.1`, so the number is not accepted.
        Ok(Host::Ipv4(_)) | Err(_) => false,
        Ok(Host::Ipv6(ip)) => ip.is_loopback(),
        Ok(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use rstest::rstest;

    use super::*;

    fn access(address: &str, public_url: Option<&str>) -> Access {
        let public_url = public_url.map(|url| url.parse().unwrap());
        Access::new(Some("secret".into()), None, Arc::default(), public_url.as_ref(), address.parse().unwrap(), true)
    }

    fn request(headers: &[(&str, &str)]) -> Request {
        let request = headers
            .iter()
            .fold(Request::get("/admin/api/turns"), |request, (name, value)| request.header(*name, *value));
        request.body(Body::empty()).unwrap()
    }

    #[rstest]
    #[case("127.0.0.1:7420", None, &[], true)]
    #[case("127.0.0.1:7420", Some("https://gateway.example.org/"), &[], false)]
    #[case("127.0.0.1:7420", None, &[("x-forwarded-for", "203.0.113.9")], false)]
    #[case("0.0.0.0:7420", None, &[], false)]
    fn only_on_loopback_and_without_a_proxy_a_caller_is_on_this_machine(
        #[case] address: &str,
        #[case] public_url: Option<&str>,
        #[case] headers: &[(&str, &str)],
        #[case] is_local: bool,
    ) {
        assert_eq!(access(address, public_url).is_local(request(headers).headers()), is_local);
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
    fn on_loopback_a_caller_may_name_the_node() {
        let node_url = "http://One.internal:7421/".parse().unwrap();
        let access = access("127.0.0.1:7420", Some("https://gateway.example.org/")).with_host_of(Some(&node_url));

        for host in ["one.internal:7421", "gateway.example.org"] {
            assert!(access.allows_host(&request(&[("host", host)])), "{host}");
        }
    }

    #[test]
    fn the_operators_own_address_is_not_reached_at_the_nodes_url() {
        let [public_url, node_url] =
            ["https://gateway.example.org/", "http://one.internal:7421/"].map(|url| url.parse::<Url>().unwrap());
        let address = "127.0.0.1:7421".parse().unwrap();
        let access = Access::new(Some("secret".into()), None, Arc::default(), Some(&public_url), address, false)
            .with_host_of(Some(&node_url));

        assert!(!access.allows_host(&request(&[("host", "one.internal:7421")])));
    }

    #[test]
    fn beyond_loopback_any_name_will_do() {
        assert!(access("0.0.0.0:7420", None).allows_host(&request(&[("host", "gateway.lan:7420")])));
    }
}
