//! `[voice]`: the servers that write down what people say, and that speak.

use std::time::Duration;

use rejoinder_core::Language;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    Secret,
    check::{Checks, Section},
    duration::{self, HOUR, MINUTE, SECOND},
    text,
};

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Voice {
    /// The longest recording that is written down.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, SECOND, HOUR>")]
    pub longest: Duration,
    /// How much of recordings is written down on one day. `None`: any amount.
    #[serde(
        serialize_with = "duration::write_or_off",
        deserialize_with = "duration::between_or_off::<_, MINUTE, { 1000 * HOUR }>"
    )]
    pub per_day: Option<Duration>,
    /// How much is spoken on one day. `None`: any amount.
    #[serde(
        serialize_with = "duration::write_or_off",
        deserialize_with = "duration::between_or_off::<_, MINUTE, { 1000 * HOUR }>"
    )]
    pub spoken_per_day: Option<Duration>,
    /// `None`: nothing is written down.
    #[serde(default)]
    pub transcriptions: Option<Transcriptions>,
    /// `None`: nothing is spoken.
    #[serde(default)]
    pub speech: Option<Speech>,
}

impl Voice {
    /// Its servers, each with the name of its section, its URL and its key.
    pub fn servers(&self) -> impl Iterator<Item = (&'static str, &Url, Option<&Secret>)> {
        let transcriptions = self.transcriptions.iter();
        let transcriptions = transcriptions.map(|it| ("transcriptions", &it.base_url, it.api_key.as_ref()));
        let speech = self.speech.iter().map(|it| ("speech", &it.base_url, it.api_key.as_ref()));
        transcriptions.chain(speech)
    }
}

/// A server that writes down recordings.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Transcriptions {
    /// The URL of the API, including `/v1` if the server has it.
    #[serde(deserialize_with = "text::http_url")]
    pub base_url: Url,
    #[serde(deserialize_with = "text::filled")]
    pub model: String,
    /// Sent as `Authorization: Bearer …`.
    #[serde(default)]
    pub api_key: Option<Secret>,
    /// The language that people speak. `None`: the server finds out.
    #[serde(default, deserialize_with = "text::language_option")]
    pub language: Option<Language>,
    /// How long one recording may take.
    #[serde(
        default = "timeout",
        serialize_with = "duration::write",
        deserialize_with = "duration::between::<_, SECOND, { 10 * MINUTE }>"
    )]
    pub timeout: Duration,
}

/// A server that speaks texts.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Speech {
    /// The URL of the API, including `/v1` if the server has it.
    #[serde(deserialize_with = "text::http_url")]
    pub base_url: Url,
    #[serde(deserialize_with = "text::filled")]
    pub model: String,
    /// The server's name of it.
    #[serde(deserialize_with = "text::filled")]
    pub voice: String,
    /// Sent as `Authorization: Bearer …`.
    #[serde(default)]
    pub api_key: Option<Secret>,
    /// How long one text may take.
    #[serde(
        default = "timeout",
        serialize_with = "duration::write",
        deserialize_with = "duration::between::<_, SECOND, { 10 * MINUTE }>"
    )]
    pub timeout: Duration,
}

const fn timeout() -> Duration {
    Duration::from_mins(1)
}

impl Section for Voice {
    fn check(&self, checks: &mut Checks<'_>) {
        for (name, base_url, api_key) in self.servers() {
            if base_url.query().is_some() || base_url.fragment().is_some() {
                checks.wrong(checks.key(&[name, "base_url"]), "must not contain `?` or `#`");
            }
            if api_key.is_some_and(|key| key.expose().bytes().any(|byte| byte.is_ascii_control())) {
                let what = "contains a character that is not allowed in a header (a line break, perhaps)";
                checks.wrong(checks.key(&[name, "api_key"]), what);
            }
        }
    }
}
