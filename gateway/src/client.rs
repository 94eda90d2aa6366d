//! The HTTP client for all outgoing requests.

use std::time::Duration;

use rejoinder_kit::PublicAddresses;
use reqwest::header::HeaderMap;
use url::{Host, Url};

/// Whether requests to `url` are not encrypted and leave this machine.
pub(crate) fn is_readable_on_the_way(url: &Url) -> bool {
    let is_this_machine = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "http" && !is_this_machine
}

/// The variables that name a proxy. They may also be in capital letters.
const PROXIES: [&str; 3] = ["http_proxy", "https_proxy", "all_proxy"];

/// Whether requests may go through a proxy. Then the gateway may be unable to connect to their servers itself. Systems other than Linux
/// may have proxies that no variable names.
pub(crate) fn may_have_proxy() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !cfg!(target_os = "linux") || PROXIES.iter().any(|name| is_set(name) || is_set(&name.to_ascii_uppercase()))
}

/// How long connecting to an agent or a callback may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a server may take to answer a check of `doctor` or `init`.
pub(crate) const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// The HTTP client for all outgoing requests. It has no timeout for whole requests, because an agent's answer may take
/// minutes: callers set their own. It follows no redirects, so requests go only to the configured address.
pub(crate) fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    http_client_with(HeaderMap::new())
}

/// The same with headers for every request.
pub(crate) fn http_client_with(headers: HeaderMap) -> Result<reqwest::Client, reqwest::Error> {
    builder().default_headers(headers).build()
}

/// The HTTP client for URLs that strangers choose: it reaches public addresses only, and uses no proxy.
pub(crate) fn public_client() -> Result<reqwest::Client, reqwest::Error> {
    builder().https_only(true).no_proxy().dns_resolver(PublicAddresses).build()
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(concat!("rejoinder/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(Duration::from_secs(30))
        .redirect(reqwest::redirect::Policy::none())
}
