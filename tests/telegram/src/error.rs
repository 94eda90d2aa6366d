//! Errors that calls are rejected with.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// An error of the Bot API (<https://core.telegram.org/bots/api#making-requests>).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApiError {
    /// Also the HTTP status.
    #[serde(rename = "error_code")]
    pub code: u16,
    /// With its prefix: `Bad Request: chat not found`.
    pub description: String,
    /// `retry_after` or `migrate_to_chat_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
}

/// The result of a call.
pub(crate) type Answer = Result<Value, ApiError>;

impl ApiError {
    /// An error without parameters.
    #[must_use]
    pub fn new(code: u16, description: impl Into<String>) -> Self {
        Self { code, description: description.into(), parameters: None }
    }

    /// 400 with the prefix `Bad Request: `.
    #[must_use]
    pub fn bad_request(what: impl AsRef<str>) -> Self {
        Self::new(400, format!("Bad Request: {}", what.as_ref()))
    }

    /// 403 with the prefix `Forbidden: `.
    #[must_use]
    pub fn forbidden(what: impl AsRef<str>) -> Self {
        Self::new(403, format!("Forbidden: {}", what.as_ref()))
    }

    /// 409 with the prefix `Conflict: `.
    #[must_use]
    pub fn conflict(what: impl AsRef<str>) -> Self {
        Self::new(409, format!("Conflict: {}", what.as_ref()))
    }

    /// 429 with `retry_after` in seconds.
    #[must_use]
    pub fn too_many(retry_after: u64) -> Self {
        Self::new(429, format!("Too Many Requests: retry after {retry_after}"))
            .with(json!({ "retry_after": retry_after }))
    }

    /// 400 for a group that has become a supergroup.
    #[must_use]
    pub fn migrated(to: i64) -> Self {
        Self::bad_request("group chat was upgraded to a supergroup chat").with(json!({ "migrate_to_chat_id": to }))
    }

    /// Adds parameters.
    #[must_use]
    pub fn with(mut self, parameters: Value) -> Self {
        self.parameters = Some(parameters);
        self
    }

    /// The body of the response.
    pub(crate) fn to_body(&self) -> Value {
        let mut body = Map::new();
        body.insert("ok".to_owned(), Value::Bool(false));
        body.insert("error_code".to_owned(), self.code.into());
        body.insert("description".to_owned(), self.description.clone().into());
        if let Some(parameters) = &self.parameters {
            body.insert("parameters".to_owned(), parameters.clone());
        }
        Value::Object(body)
    }
}
