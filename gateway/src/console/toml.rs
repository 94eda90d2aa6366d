//! Writing values of the configuration.

use anyhow::Context;

use super::failure::Failure;

/// A quoted TOML string. A JSON string is a TOML string too, except for the characters rejected here.
pub(crate) fn toml_text(text: &str) -> Result<String, Failure> {
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(Failure::Usage(format!("{text:?} cannot be used: it is empty or has control characters")));
    }
    Ok(serde_json::to_string(text).context("cannot write this text")?)
}

/// A TOML list of quoted strings.
pub(crate) fn toml_list(texts: &[impl AsRef<str>]) -> Result<String, Failure> {
    let quoted = texts.iter().map(|text| toml_text(text.as_ref())).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("[{}]", quoted.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_stand_in_the_file_is_refused() {
        assert!(toml_text("a\nb").is_err());
        assert!(toml_text("").is_err());
        assert!(toml_text("\u{7f}").is_err());
    }
}
