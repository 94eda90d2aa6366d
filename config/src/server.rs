//! `[server]`: where the gateway listens, and its limits for requests.

use std::{net::SocketAddr, time::Duration};

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    Network, Size,
    check::{Checks, Section},
    duration::{self, MINUTE, SECOND},
    number, text,
};

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// The address of everything served over HTTP.
    #[serde(deserialize_with = "text::socket_address")]
    pub listen: SocketAddr,
    /// The gateway's URL as others reach it, for printed links and result URLs.
    #[serde(default, deserialize_with = "text::http_url_option")]
    pub public_url: Option<Url>,
    /// The URL at which agents on other machines reach this node alone.
    #[serde(default, deserialize_with = "text::http_url_option")]
    pub node_url: Option<Url>,
    /// The largest request body.
    pub body_limit: Size,
    /// How long a request may take to arrive and be processed. Waiting for an agent does not count.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, SECOND, { 10 * MINUTE }>")]
    pub request_timeout: Duration,
    /// How long running turns may continue at shutdown. Unfinished turns are resumed at the next start.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 0, { 10 * MINUTE }>")]
    pub drain: Duration,
    /// The proxies that are believed when they say where a request comes from.
    #[serde(default)]
    pub trusted_proxies: Vec<Network>,
    /// How many connections one address may have open at once. `None`: half of all.
    #[serde(default, deserialize_with = "number::between_option::<_, 2, 8192>")]
    pub connections_per_peer: Option<u32>,
}

impl Section for Server {
    fn check(&self, checks: &mut Checks<'_>) {
        if self.trusted_proxies.iter().any(Network::is_everything) {
            let what = "must not contain every address, because everybody could then choose the address that they seem to \
                        come from: name those of the proxies";
            checks.wrong(checks.key(&["trusted_proxies"]), what);
        }
        if self.node_url.is_some() && self.public_url.is_none() {
            let what = "needs `server.public_url`, where callers reach any of the nodes";
            checks.wrong(checks.key(&["node_url"]), what);
        }
    }
}
