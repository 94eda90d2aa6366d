//! What the sections of several kinds have in common.
//!
//! Their keys stand in each section: serde cannot name the key of a mistake in a flattened table.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rejoinder_config::{
    Checks, Secret,
    duration::{self, DAY, MINUTE},
    headers, number,
};
use rejoinder_core::{Currency, Price, ScheduleLimits};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected},
};
use url::Url;

use crate::{file_kind::Takes, mcp_server::McpServerSection, piece::PieceName};

/// The instructions that a model gets unless the operator has written others.
pub(crate) const SYSTEM_PROMPT: &str = "You are a helpful assistant. Answer briefly, in the language of the person.";

/// What a run needs to know of the section of a kind with a model.
#[derive(Clone, Copy)]
pub(crate) struct ModelSettings<'a> {
    pub(crate) base_url: &'a Url,
    pub(crate) api_key: Option<&'a Secret>,
    /// Sent with every request as well.
    pub(crate) headers: &'a BTreeMap<String, Secret>,
    pub(crate) model: &'a str,
    pub(crate) system_prompt: &'a str,
    /// What of its own the gateway does not add to it.
    pub(crate) leave_out: &'a [PieceName],
    pub(crate) tools: bool,
    /// The servers whose tools it is offered as well.
    pub(crate) mcp: &'a BTreeMap<String, McpServerSection>,
    /// Which files it gets besides texts.
    pub(crate) takes: Takes,
    /// Whether the model begins with a thought in its text, which ends in `</think>`.
    pub(crate) thinks_first: bool,
    pub(crate) history_messages: u32,
    pub(crate) history_chars: u32,
    pub(crate) first_token_timeout: Duration,
    pub(crate) idle_timeout: Duration,
}

/// The models of which one may be chosen, the agent's own first.
pub(crate) fn models(model: &String, more: &[String]) -> Vec<Arc<str>> {
    std::iter::once(model).chain(more).map(|model| model.as_str().into()).collect()
}

/// Checks the key `models`.
pub(crate) fn check_models(model: &String, more: &[String], checks: &mut Checks<'_>) {
    for (index, other) in more.iter().enumerate() {
        let key = checks.key(&["models"]).index(index);
        if other.is_empty() || other.contains(char::is_whitespace) {
            checks.wrong(key, "must be the name of a model, without spaces: people write it after /model");
        } else if other == model || more[..index].contains(other) {
            checks.wrong(key, "is named twice; `model` need not be repeated here");
        }
    }
}

/// The headers of every request to a server with a model, without those of its protocol.
const OWN_HEADERS: [&str; 5] = ["accept", "x-rejoinder-turn-id", "x-rejoinder-attempt", "traceparent", "tracestate"];

/// Checks the key `headers`. `own` are the headers of the protocol, each with the key that sets it, if there is one.
pub(crate) fn check_headers(
    more: &BTreeMap<String, Secret>,
    own: &[(&'static str, Option<&'static str>)],
    checks: &mut Checks<'_>,
) {
    let own: Vec<_> = OWN_HEADERS.map(|name| (name, None)).into_iter().chain(own.iter().copied()).collect();
    headers::check(more, &checks.key(&["headers"]), &own, checks);
}

/// What a model may schedule in a chat.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct SchedulesSection {
    /// How many at once; 0: nothing.
    #[serde(deserialize_with = "number::between::<_, 0, 1000>")]
    pub most: u32,
    /// The shortest distance between two times.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, MINUTE, { 366 * DAY }>")]
    pub shortest: Duration,
}

impl Default for SchedulesSection {
    fn default() -> Self {
        Self { most: 10, shortest: Duration::from_hours(1) }
    }
}

impl From<SchedulesSection> for ScheduleLimits {
    fn from(SchedulesSection { most, shortest }: SchedulesSection) -> Self {
        Self { most, shortest }
    }
}

/// What a million tokens cost.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PriceSection {
    /// Those that the model reads.
    #[serde(deserialize_with = "amount")]
    pub input: f64,
    /// Those that it writes.
    #[serde(deserialize_with = "amount")]
    pub output: f64,
    /// The currency, as in ISO 4217.
    #[serde(default = "usd")]
    pub currency: Currency,
}

impl From<PriceSection> for Price {
    fn from(PriceSection { input, output, currency }: PriceSection) -> Self {
        Self { input, output, currency }
    }
}

/// The most that a million tokens may cost: far more than any do in any currency.
const MOST_COST: f64 = 1e9;

fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let amount = f64::deserialize(deserializer)?;
    if (0.0..=MOST_COST).contains(&amount) {
        return Ok(amount);
    }
    Err(D::Error::invalid_value(Unexpected::Float(amount), &"a number that is not negative, for a million tokens"))
}

const fn usd() -> Currency {
    Currency::USD
}

/// Reads a temperature from 0 to `MOST`.
pub(crate) fn read_temperature<'de, D, const MOST: u16>(deserializer: D) -> Result<Option<f32>, D::Error>
where
    D: Deserializer<'de>,
{
    let temperature = f32::deserialize(deserializer)?;
    if (0.0..=f32::from(MOST)).contains(&temperature) {
        return Ok(Some(temperature));
    }
    let expected = format!("a number from 0 to {MOST}");
    Err(D::Error::invalid_value(Unexpected::Float(temperature.into()), &expected.as_str()))
}

/// Writes the number as it was read (`0.7`), not as its nearest `f64` (`0.699999988079071`).
#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference to the field")]
pub(crate) fn write_temperature<S: Serializer>(temperature: &Option<f32>, serializer: S) -> Result<S::Ok, S::Error> {
    match temperature.and_then(|temperature| temperature.to_string().parse::<f64>().ok()) {
        Some(temperature) => serializer.serialize_some(&temperature),
        None => serializer.serialize_none(),
    }
}
