//! `[telemetry]`: where the traces of turns are sent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    Secret,
    check::{Checks, Section},
    text,
};

/// Headers of every request to a collector.
const OWN: [&str; 7] =
    ["connection", "content-encoding", "content-length", "content-type", "host", "transfer-encoding", "user-agent"];

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// The base URL of a collector that takes OTLP over HTTP. Without it nothing is sent.
    #[serde(deserialize_with = "text::http_url_option")]
    pub otlp_endpoint: Option<Url>,
    /// Sent to the collector as well. Its values are secrets.
    pub headers: BTreeMap<String, Secret>,
}

impl Section for Telemetry {
    fn check(&self, checks: &mut Checks<'_>) {
        if let Some(url) = &self.otlp_endpoint {
            if !url.username().is_empty() || url.password().is_some() {
                checks.wrong(
                    checks.key(&["otlp_endpoint"]),
                    "must not contain a password: put it into telemetry.headers",
                );
            } else if url.query().is_some() || url.fragment().is_some() {
                checks.wrong(checks.key(&["otlp_endpoint"]), "must not contain `?` or `#`");
            }
        } else if !self.headers.is_empty() {
            checks.wrong(checks.key(&["headers"]), "are for `otlp_endpoint`, and there is none");
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        for (name, value) in &self.headers {
            let lower = name.to_ascii_lowercase();
            if name.is_empty() || !name.bytes().all(is_name) {
                checks.wrong(checks.key(&["headers", name]), "is not the name of a header");
            } else if OWN.contains(&&*lower) {
                checks.wrong(checks.key(&["headers", name]), "is set by the gateway itself");
            } else if self.headers.keys().any(|other| other != name && other.eq_ignore_ascii_case(name)) {
                checks.wrong(checks.key(&["headers", name]), "is there twice");
            } else if value.expose().bytes().any(|byte| byte.is_ascii_control()) {
                checks.wrong(checks.key(&["headers", name]), "contains a character that is not allowed in a header");
            }
        }
    }
}
