//! What may be said about JSON that cannot be read.

use serde_json::error::Category;

/// Why JSON cannot be read, without quoting it: it may contain messages and keys, and errors are logged.
pub fn json_error(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        Category::Io => return "it cannot be read".to_owned(),
        Category::Syntax => "it is not JSON",
        Category::Data => "a value is missing or of another type",
        Category::Eof => "it is cut off",
    };
    match error.line() {
        // The error is about a value that was parsed before.
        0 => what.to_owned(),
        line => format!("{what}, at line {line}, column {}", error.column()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_quotes_nothing() {
        let error = |json: &str| json_error(&serde_json::from_str::<Vec<u8>>(json).expect_err("it is wrong"));

        assert_eq!(error("[1,\n \"a secret\"]"), "a value is missing or of another type, at line 2, column 11");
        assert_eq!(error("[secret"), "it is not JSON, at line 1, column 2");
        assert_eq!(error("[1"), "it is cut off, at line 1, column 2");
        let value = serde_json::from_value::<Vec<u8>>(serde_json::json!("a secret")).expect_err("it is wrong");
        assert_eq!(json_error(&value), "a value is missing or of another type");
    }
}
