//! Whether a log speaks to people: no line has a value as the compiler would print it.

use serde_json::Value;

/// The lines of a log in JSON that have such a value.
#[must_use]
pub(crate) fn rust_in(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.starts_with('{') && has_rust(line)).collect()
}

fn has_rust(line: &str) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str(line) else { return false };
    let of_us = fields["target"].as_str().is_some_and(|target| target.starts_with("rejoinder"));
    of_us && fields.values().filter_map(Value::as_str).any(is_rust)
}

/// `Name { field: … }`, `Some(…)`, `Ok(…)`, `Name("…")`, or a text in escaped quotation marks.
fn is_rust(text: &str) -> bool {
    let is_name = |word: &str| {
        let name = word.rsplit(|char: char| !char.is_alphanumeric() && char != '_').next().unwrap_or_default();
        name.chars().next().is_some_and(char::is_uppercase) && name.chars().any(char::is_lowercase)
    };
    let before = |mark: &str| text.match_indices(mark).any(|(at, _)| is_name(&text[..at]));
    ["Some(", "Ok(", "Err("].iter().any(|start| text.contains(start)) || before(" { ") || before("(\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_compiler_prints_is_no_text() {
        for rust in ["ChannelDown { problem: \"no\" }", "Some(3)", "it failed: Refused(\"no\")", "a Thing { a: 1 }"] {
            assert!(is_rust(rust), "{rust}");
        }
        for text in ["the channel is down", "sending fails (502)", "it said {\"a\": 1}", "Ada (\"the first\") wrote"] {
            assert!(!is_rust(text), "{text}");
        }
    }
}
