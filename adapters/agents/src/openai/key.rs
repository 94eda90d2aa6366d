//! The key of a server, as a header.

use reqwest::header::{HeaderValue, InvalidHeaderValue};
use secrecy::{ExposeSecret, SecretString};

pub(super) fn bearer(key: &SecretString) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose_secret()))?;
    value.set_sensitive(true);
    Ok(value)
}
