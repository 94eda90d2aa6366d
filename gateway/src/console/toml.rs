//! Values of the configuration, as they are written.

use anyhow::Context;

use super::failure::Failure;

/// A text in quotes. What JSON writes is a string of TOML's too, but for the characters refused here.
pub(crate) fn toml_text(text: &str) -> Result<String, Failure> {
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(Failure::Usage(format!(
            "{text:?} cannot be used: it is empty, or has characters that cannot be seen"
        )));
    }
    Ok(serde_json::to_string(text).context("cannot write this text")?)
}
