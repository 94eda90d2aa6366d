//! The client for everything that goes out over HTTP.

use std::time::Duration;

/// How long connecting to an agent or a callback may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long somebody who is only looked at may take to answer.
pub(crate) const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// The client for everything that goes out over HTTP. It has no timeout for whole requests, since an answer may
/// take minutes: whoever sends sets one. It follows no redirects: what is sent goes where the operator said.
pub(crate) fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .user_agent(concat!("rejoinder/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(Duration::from_secs(30))
        .redirect(reqwest::redirect::Policy::none())
        .build()
}
