//! `[telemetry]`: where the traces of turns are sent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    Secret,
    check::{Checks, Section},
};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// The base URL of a collector that takes OTLP over HTTP. Without it nothing is sent.
    pub otlp_endpoint: Option<Url>,
    /// Sent to the collector as well. Its values are secrets.
    pub headers: BTreeMap<String, Secret>,
}

impl Section for Telemetry {
    fn check(&self, checks: &mut Checks<'_>) {
        if let Some(url) = &self.otlp_endpoint {
            if !matches!(url.scheme(), "http" | "https") {
                checks.wrong(checks.key(&["otlp_endpoint"]), "must begin with http:// or https://");
            } else if !url.username().is_empty() || url.password().is_some() {
                checks.wrong(
                    checks.key(&["otlp_endpoint"]),
                    "must not contain a password: put it into telemetry.headers",
                );
            }
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        for (name, value) in &self.headers {
            if name.is_empty() || !name.bytes().all(is_name) {
                checks.wrong(checks.key(&["headers", name]), "is not the name of a header");
            } else if value.expose().bytes().any(|byte| byte.is_ascii_control()) {
                checks.wrong(checks.key(&["headers", name]), "contains a character that is not allowed in a header");
            }
        }
    }
}
