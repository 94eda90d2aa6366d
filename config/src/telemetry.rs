//! `[telemetry]`: where the traces of turns are sent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    Secret,
    check::{Checks, Section},
    headers, text,
};

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
        headers::check(&self.headers, &checks.key(&["headers"]), &[], checks);
    }
}
