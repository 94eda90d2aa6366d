//! `[server]`: where the gateway listens.

use std::{net::SocketAddr, time::Duration};

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    Size,
    check::Section,
    duration::{self, MINUTE, SECOND},
    number, text,
};

/// Where the gateway listens, and what it takes from a caller.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Where HTTP is served.
    #[serde(deserialize_with = "text::socket_address")]
    pub listen: SocketAddr,
    /// The gateway's address as others see it, for the links that it prints and returns. Without one
    /// they name `listen`.
    #[serde(default, deserialize_with = "text::http_url_option")]
    pub public_url: Option<Url>,
    /// The largest body that a request may have.
    pub body_limit: Size,
    /// How long a request may take to arrive and be worked on; waiting for an agent is not counted.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, SECOND, { 10 * MINUTE }>")]
    pub request_timeout: Duration,
    /// How long running turns get at shutdown; what is not done by then is picked up at the next start.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 0, { 10 * MINUTE }>")]
    pub drain: Duration,
    /// How many connections one address may have open at once; without it half of all.
    #[serde(default, deserialize_with = "number::between_option::<_, 2, 8192>")]
    pub connections_per_peer: Option<u32>,
}

impl Section for Server {}
