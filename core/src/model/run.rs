//! What a run leaves behind for the operator: what the model was shown, the tools that it called, and the cost.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// What a runtime sends to a model. It contains no key and no header of the request, and no bytes of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelInput {
    /// A JSON object with what most requests of an agent have in common: the model, its options, the instructions and the
    /// tools that it may call. Equal settings are stored once.
    pub settings: String,
    /// A JSON array of the other messages, oldest first.
    pub messages: String,
    /// How many of the oldest messages are missing, because the record would have become too large.
    pub left_out: u32,
}

/// A tool call in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The name of the tool.
    pub name: String,
    /// Its arguments, usually JSON; cut if they are long.
    pub arguments: String,
    /// What the model was told; cut if it is long.
    pub result: String,
    /// How long it took, without the wait for an approval, in milliseconds. `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// Something that an agent does in a run, such as a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// A few words for people: `reads 3 files`.
    pub title: String,
    pub state: ActivityState,
}

named! {
    /// Whether an activity goes on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ActivityState {
        /// It goes on.
        Working = "working",
        /// It has ended well.
        Done = "done",
        /// It has failed.
        Failed = "failed",
    }
}

/// A step of a run, as people may see it beside the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkStep {
    /// The title of an activity, or a thought: plain text.
    pub text: String,
    /// How far the activity is; `None` for a thought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ActivityState>,
}

/// What the model of a run was shown, and what it did. The last input counts: it contains the earlier ones of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunContent {
    /// `None` if the runtime reported nothing, as one without a model does, or if the record is past its time.
    pub input: Option<ModelInput>,
    /// The tool calls, in order.
    pub tools: Vec<ToolUse>,
    /// How many more calls there were.
    pub tools_left_out: u32,
}

impl RunContent {
    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.input.is_none() && self.tools.is_empty()
    }
}

/// The three capital letters of a currency, as in ISO 4217: `USD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// The US dollar.
    pub const USD: Self = Self(*b"USD");

    /// The letters.
    ///
    /// # Panics
    /// Never: they are ASCII.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("only letters are accepted")
    }
}

/// The text is not a currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be three capital letters, such as \"USD\"")]
pub struct NotACurrency;

impl FromStr for Currency {
    type Err = NotACurrency;

    fn from_str(text: &str) -> Result<Self, NotACurrency> {
        let letters = <[u8; 3]>::try_from(text.as_bytes()).map_err(|_| NotACurrency)?;
        if letters.iter().all(u8::is_ascii_uppercase) { Ok(Self(letters)) } else { Err(NotACurrency) }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

stored_as_text!(Currency);

/// What an agent's tokens cost, per million.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// A million tokens of the prompt.
    pub input: f64,
    /// A million tokens of the completion.
    pub output: f64,
    /// The currency of both.
    pub currency: Currency,
}

impl Price {
    /// What these tokens cost.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a price is not negative, and the cost of a run is far from the limits"
    )]
    pub fn cost(&self, usage: Usage) -> Cost {
        // A price per million tokens is one in millionths per token.
        let micros = self.input.mul_add(usage.input_tokens as f64, self.output * usage.output_tokens as f64);
        Cost { micros: micros.round() as u64, currency: self.currency }
    }
}

/// What a run cost: what its agent says, or what its tokens cost at the price when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// In millionths of the currency.
    pub micros: u64,
    pub currency: Currency,
}

/// What an agent says is no cost. The error quotes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotACost {
    #[error("the amount must be from 0 to 1000000")]
    Amount,
    #[error("the currency {0}")]
    Currency(#[from] NotACurrency),
}

impl Cost {
    /// The largest cost that an agent may report, in millionths: that of the largest limit of a day.
    pub const MOST_REPORTED: u64 = 1_000_000_000_000;

    /// A cost that an agent reports, in units of the currency.
    ///
    /// # Errors
    /// If the amount is negative, too large or no number, or the currency is not one.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the amount is within the bounds")]
    pub fn reported(amount: f64, currency: &str) -> Result<Self, NotACost> {
        let currency = currency.parse::<Currency>()?;
        let micros = (amount * 1e6).round();
        if !(0.0..=1e12).contains(&micros) {
            return Err(NotACost::Amount);
        }
        Ok(Self { micros: micros as u64, currency })
    }

    /// In units of the currency. Exact to a millionth below nine thousand millions.
    #[expect(clippy::cast_precision_loss, reason = "no run costs 2^52 millionths")]
    pub fn amount(self) -> f64 {
        self.micros as f64 / 1e6
    }

    /// The sum. `None`: the currencies differ.
    #[must_use]
    pub fn and(self, other: Self) -> Option<Self> {
        let micros = self.micros.saturating_add(other.micros);
        (self.currency == other.currency).then_some(Self { micros, ..self })
    }

    /// The sum of what is known, in the latest currency: an earlier cost in another one is left out.
    #[must_use]
    pub fn sum(before: Option<Self>, added: Option<Self>) -> Option<Self> {
        match (before, added) {
            (Some(before), Some(added)) => before.and(added).or(Some(added)),
            (before, added) => added.or(before),
        }
    }
}

/// The tokens that a run consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the completion.
    pub output_tokens: u64,
}

impl Usage {
    /// The sum.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
        }
    }

    /// What it is more than an earlier one.
    pub(crate) const fn since(self, earlier: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(earlier.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(earlier.output_tokens),
        }
    }
}

/// What a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Tokens of both kinds.
    pub tokens: u64,
    /// How many of them are estimated, because the agent did not report them.
    pub estimated: u64,
    /// In millionths of a currency.
    pub micros: u64,
}

impl Used {
    /// What these tokens are, and what they cost.
    pub(crate) fn of(usage: Usage, is_estimated: bool, cost: Option<Cost>) -> Self {
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        let estimated = if is_estimated { tokens } else { 0 };
        Self { tokens, estimated, micros: cost.map_or(0, |cost| cost.micros) }
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            estimated: self.estimated.saturating_add(other.estimated),
            micros: self.micros.saturating_add(other.micros),
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, micros) = (self.micros / 1_000_000, self.micros % 1_000_000);
        let decimals = format!("{micros:06}");
        // At least two of them, as people write money.
        let kept = decimals.trim_end_matches('0').len().max(2);
        write!(f, "{whole}.{} {}", &decimals[..kept], self.currency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_that_of_the_tokens_of_both_kinds() {
        let price = Price { input: 0.15, output: 0.6, currency: Currency::USD };
        let cost = |input_tokens, output_tokens| price.cost(Usage { input_tokens, output_tokens }).to_string();

        assert_eq!(cost(2_000_000, 1_000_000), "0.90 USD");
        assert_eq!(cost(1200, 300), "0.00036 USD");
        assert_eq!(cost(0, 0), "0.00 USD");
        assert_eq!(cost(10_000_000, 20_000_000), "13.50 USD");
    }

    #[test]
    fn a_cost_that_is_reported_is_an_amount_within_bounds() {
        let read = |amount| Cost::reported(amount, "EUR").map(|cost| cost.micros);

        assert_eq!([0.0, 0.001_234_7, 1e6].map(read), [Ok(0), Ok(1235), Ok(Cost::MOST_REPORTED)]);
        for amount in [-0.01, 1_000_001.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(read(amount), Err(NotACost::Amount), "{amount}");
        }
        assert_eq!(Cost::reported(1.0, "euros"), Err(NotACost::Currency(NotACurrency)));
    }

    #[test]
    fn a_cost_has_the_amount_that_was_reported() {
        let amounts = [0.0, 0.001_235, 12.5].map(|amount| Cost::reported(amount, "EUR").map(Cost::amount));

        assert_eq!(amounts, [Ok(0.0), Ok(0.001_235), Ok(12.5)]);
    }

    #[test]
    fn money_of_two_currencies_has_no_sum() {
        let cost = |amount, currency| Cost::reported(amount, currency).expect("a cost");

        assert_eq!(cost(1.0, "USD").and(cost(2.5, "USD")), Some(cost(3.5, "USD")));
        assert_eq!(cost(1.0, "USD").and(cost(2.5, "EUR")), None);
    }

    #[test]
    fn costs_are_added_up_in_the_latest_currency() {
        let dollars = |amount| Cost::reported(amount, "USD").ok();
        let euros = Cost::reported(2.5, "EUR").ok();

        assert_eq!(Cost::sum(dollars(1.0), dollars(2.5)), dollars(3.5));
        assert_eq!(Cost::sum(dollars(1.0), euros), euros);
        assert_eq!([Cost::sum(euros, None), Cost::sum(None, euros)], [euros; 2]);
        assert_eq!(Cost::sum(None, None), None);
    }

    #[test]
    fn a_currency_is_three_capital_letters() {
        assert_eq!("EUR".parse::<Currency>().map(|it| it.as_str().to_owned()), Ok("EUR".to_owned()));
        for other in ["", "eur", "EURO", "€", "US$"] {
            assert_eq!(other.parse::<Currency>(), Err(NotACurrency), "{other}");
        }
    }
}
