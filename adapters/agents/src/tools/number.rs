//! Numbers, as models write them. No I/O.

use serde::Deserialize;

/// A number. Some models write it as a text.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Number {
    Number(f64),
    Text(String),
}

impl Number {
    pub(super) fn value(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.trim().parse().ok(),
        }
    }
}
