//! Calls of a platform's API: the errors of a call without an answer, and the bytes of an answer. No error text contains
//! the secret that is passed in.

use std::{error::Error, iter};

use reqwest::Response;
use secrecy::{ExposeSecret, SecretString};

/// Why there is no answer to a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The request was not written: it was certainly not performed.
    #[error("{0}")]
    NotWritten(String),
    /// The request was written, but no readable answer came: it may have been performed.
    #[error("{0}")]
    NoAnswer(String),
}

/// Classifies the error of a request: it was not written when connecting or building it failed.
#[must_use]
pub fn failure(error: reqwest::Error, secret: &SecretString) -> CallError {
    let was_written = !(error.is_connect() || error.is_builder());
    let detail = describe(error, secret);
    if was_written { CallError::NoAnswer(detail) } else { CallError::NotWritten(detail) }
}

/// Reads the bytes of an answer; `None` when there are more than `limit`.
///
/// # Errors
/// `NoAnswer` when the rest of the answer cannot be read.
pub async fn collect(
    mut response: Response,
    limit: usize,
    secret: &SecretString,
) -> Result<Option<Vec<u8>>, CallError> {
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let lost = |error| CallError::NoAnswer(describe(error, secret));
    while let Some(chunk) = response.chunk().await.map_err(lost)? {
        if bytes.len() + chunk.len() > limit {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Some(bytes))
}

/// Replaces the secret with `…` in a text from the platform.
#[must_use]
pub fn redacted(text: &str, secret: &SecretString) -> String {
    match secret.expose_secret() {
        "" => text.to_owned(),
        secret => text.replace(secret, "…"),
    }
}

/// An error with its causes, without the secret and the URL: URLs contain secrets.
#[must_use]
pub fn describe(error: reqwest::Error, secret: &SecretString) -> String {
    let error = error.without_url();
    let detail = if error.is_timeout() { "no answer in time".to_owned() } else { error.to_string() };
    redacted(&with_causes(detail, &error), secret)
}

/// A text about an error, with the error's causes.
pub(crate) fn with_causes(text: String, error: &dyn Error) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    causes.fold(text, |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// Calls a server that sends `answer`, at a URL that contains the secret.
    async fn call(answer: &'static str) -> Result<Response, reqwest::Error> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/secret", listener.local_addr().expect("an address"));
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("a caller");
            let _ = socket.read(&mut [0; 1024]).await;
            let _ = socket.write_all(answer.as_bytes()).await;
        });
        reqwest::Client::builder().build().expect("a client").get(url).send().await
    }

    #[tokio::test]
    async fn a_request_that_was_written_may_have_been_performed() {
        let secret = SecretString::from("secret");

        let lost = failure(call("").await.expect_err("no answer"), &secret);
        let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
        let url = format!("http://{closed}/secret");
        let refused = reqwest::Client::builder().build().expect("a client").get(url).send().await;
        let refused = failure(refused.expect_err("nothing listens"), &secret);

        assert!(matches!(lost, CallError::NoAnswer(_)), "{lost:?}");
        assert!(matches!(refused, CallError::NotWritten(_)), "{refused:?}");
        assert!(!format!("{lost} {refused}").contains("secret"));
    }

    #[tokio::test]
    async fn an_answer_is_read_up_to_its_limit() {
        let secret = SecretString::from("secret");
        for answer in ["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\n\r\nhello"] {
            for (limit, expected) in [(5, Some(b"hello".to_vec())), (4, None)] {
                let response = call(answer).await.expect("an answer");

                assert_eq!(collect(response, limit, &secret).await, Ok(expected));
            }
        }
        let broken = call("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello").await.expect("an answer");
        assert!(matches!(collect(broken, 9, &secret).await, Err(CallError::NoAnswer(_))));
    }

    #[test]
    fn the_secret_is_taken_out_of_what_the_platform_says() {
        assert_eq!(redacted("no bot has 7:abc", &"7:abc".into()), "no bot has …");
        assert_eq!(redacted("no bot", &"".into()), "no bot");
    }
}
