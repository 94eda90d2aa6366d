//! Reads the responses of servers: bodies and event streams of bounded size, and errors for the operator.

use std::time::Duration;

use reqwest::Response;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;

use crate::report::MAX_ANSWER;

/// The largest event of a stream, and the largest unstreamed answer, in bytes: room for an answer that is too long and
/// is cut, and for JSON's escapes.
pub const MAX_EVENT: usize = 4 * MAX_ANSWER;

/// How much of an error's body is read, in bytes, and for how long.
const MAX_ERROR_BODY: usize = 16 * 1024;
const ERROR_TIMEOUT: Duration = Duration::from_secs(5);

const MAX_DETAIL: usize = 300;

/// The least length of a secret that errors do not contain.
const MIN_HIDDEN: usize = 8;

/// Whether a header's value is to be hidden: `1` or `true` is no secret.
pub const fn is_hidden(value: &str) -> bool {
    value.len() >= MIN_HIDDEN
}

/// The beginning of an error's body, as far as it arrives soon.
pub async fn error_body(response: &mut Response) -> Vec<u8> {
    let body = timeout(ERROR_TIMEOUT, read_body(response, MAX_ERROR_BODY)).await;
    body.ok().and_then(Result::ok).unwrap_or_default()
}

/// What the body of an error says: the message in its JSON, else all of it.
#[must_use]
pub fn error_text(body: &[u8]) -> String {
    let message = serde_json::from_slice(body).ok().and_then(|body| error_message(&body));
    message.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned())
}

/// The error message in a server's response: `{"error": {"message"}}`, `{"error": "…"}`, `{"message"}`, `{"detail"}`.
pub(crate) fn error_message(body: &serde_json::Value) -> Option<String> {
    if let Some(text) = body.as_str() {
        return Some(text.to_owned());
    }
    let message =
        ["error", "message", "detail"].into_iter().find_map(|key| body.get(key).filter(|it| !it.is_null()))?;
    error_message(message).or_else(|| Some(message.to_string()))
}

/// An error message of a server or a library, for people: one line, short, without the API key and other secrets.
pub fn error_detail<'s>(message: &str, secrets: impl IntoIterator<Item = &'s SecretString>) -> String {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let secrets =
        secrets.into_iter().map(|secret| one_line(secret.expose_secret())).filter(|secret| !secret.is_empty());
    let message = secrets.fold(one_line(message), |message, secret| {
        let message = message.replace(&secret, "[key]");
        // A server may name the key without its scheme, as that in `Bearer sk-…`.
        match secret.rsplit_once(' ') {
            Some((_, key)) if is_hidden(key) => message.replace(key, "[key]"),
            _ => message,
        }
    });
    match message.char_indices().nth(MAX_DETAIL) {
        _ if message.is_empty() => "(no message)".to_owned(),
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}

/// Reads a body until it has `most` bytes or more, or ends.
///
/// # Errors
/// When the connection breaks.
pub async fn read_body(response: &mut Response, most: usize) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() >= most {
            break;
        }
    }
    Ok(body)
}

/// An error with its causes, without the URL, which may contain a password.
pub fn chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let causes = std::iter::successors(std::error::Error::source(&error), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// What the operator reads of an event or an answer that is too large.
pub(crate) fn too_large() -> String {
    format!("more than {MAX_EVENT} bytes in one event or answer")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"{"error":{"message":"no such voice","type":"x"}}"#, "no such voice")]
    #[case(r#"{"error":"no such voice"}"#, "no such voice")]
    #[case(r#"{"detail":"Model not found"}"#, "Model not found")]
    #[case("Internal Server Error", "Internal Server Error")]
    #[case("[]", "[]")]
    fn what_a_server_says_is_found(#[case] body: &str, #[case] told: &str) {
        assert_eq!(error_text(body.as_bytes()), told);
    }

    #[rstest]
    #[case("no access for sk-123456789 here", "no access for [key] here")]
    #[case("no access for Bearer\tsk-123456789", "no access for [key]")]
    #[case("Basic authentication is off", "Basic authentication is off")]
    fn a_secret_is_hidden_with_and_without_its_scheme(#[case] message: &str, #[case] shown: &str) {
        let secrets = [SecretString::from("Bearer  sk-123456789"), SecretString::from("Basic off")];
        assert_eq!(error_detail(message, &secrets), shown);
    }
}
