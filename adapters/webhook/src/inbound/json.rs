//! JSON bodies.

use axum::http::StatusCode;
use rejoinder_kit::Problem;
use serde_json::error::Category;

use super::message::{HookMessage, invalid, unusable};

/// Reads an object. Unknown fields are ignored.
/// Fails with 400 and line and column when it is not JSON, 422 with the field when a value is of the wrong type.
pub(super) fn read(content: &str) -> Result<HookMessage, Problem> {
    // serde would read the fields of an object from a list, by position.
    if content.trim_start().starts_with('[') {
        serde_json::from_str::<serde::de::IgnoredAny>(content).map_err(|error| not_json(&error))?;
        return Err(unusable("the body must be an object"));
    }
    serde_json::from_str(content).map_err(|error| match error.classify() {
        Category::Data => wrong_type(content, &error),
        Category::Syntax | Category::Eof | Category::Io => not_json(&error),
    })
}

/// Reads any JSON. The error has line and column when it is none.
pub(super) fn read_any(content: &str) -> Result<serde_json::Value, Problem> {
    serde_json::from_str(content).map_err(|error| not_json(&error))
}

fn not_json(error: &serde_json::Error) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "not-json", "Bad request: the body is not JSON", error.to_string())
        .at(error.line(), error.column())
}

/// Reads the body again, more slowly, to name the wrong field.
fn wrong_type(content: &str, error: &serde_json::Error) -> Problem {
    let mut reader = serde_json::Deserializer::from_str(content);
    let path =
        serde_path_to_error::deserialize::<_, HookMessage>(&mut reader).err().map(|error| error.path().to_string());
    let problem = match path.filter(|path| path != ".") {
        Some(path) => invalid(format!("cannot be read: {error}"), path),
        None => unusable(format!("the body cannot be read: {error}")),
    };
    problem.at(error.line(), error.column())
}
