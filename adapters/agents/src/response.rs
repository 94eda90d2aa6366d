//! Reads the responses of servers: bodies and event streams of bounded size, and errors for the operator.

use std::time::Duration;

pub use eventsource_stream::Event as ServerEvent;
use eventsource_stream::{EventStreamError, Eventsource};
use futures_util::{Stream, StreamExt};
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

/// Why a stream has no next event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventsError {
    /// The connection broke.
    Cut(String),
    /// It is no stream of events, or one of them is too large.
    Broken(String),
}

/// Whether a header's value is to be hidden: `1` or `true` is no secret.
pub const fn is_hidden(value: &str) -> bool {
    value.len() >= MIN_HIDDEN
}

/// The server-sent events of a response, each of at most [`MAX_EVENT`] bytes.
pub fn events(response: Response) -> impl Stream<Item = Result<ServerEvent, EventsError>> + Send {
    let mut framing = Framing::default();
    let bytes = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(|error| EventsError::Cut(chain(error)))?;
        let skip = framing.skip_mark(&chunk).map_err(|TooLarge| EventsError::Broken(too_large()))?;
        Ok(chunk.slice(skip..))
    });
    bytes.eventsource().map(|event| {
        event.map_err(|error| match error {
            EventStreamError::Transport(error) => error,
            EventStreamError::Utf8(_) => EventsError::Broken("not UTF-8".to_owned()),
            EventStreamError::Parser(_) => EventsError::Broken("not an event stream".to_owned()),
        })
    })
}

/// The beginning of an error's body, as far as it arrives soon.
pub async fn error_body(response: &mut Response) -> Vec<u8> {
    let body = timeout(ERROR_TIMEOUT, read_body(response, MAX_ERROR_BODY)).await;
    body.ok().and_then(Result::ok).unwrap_or_default()
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

/// An event exceeds [`MAX_EVENT`].
#[derive(Debug, PartialEq, Eq)]
struct TooLarge;

/// Watches the bytes of a stream, to limit the size of events and to strip a byte order mark, which the parser cannot
/// handle.
#[derive(Debug, Default)]
struct Framing {
    mark: usize,
    event: usize,
    at_line_start: bool,
}

impl Framing {
    const MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

    /// Reads a chunk, and returns how many bytes of it to skip.
    fn skip_mark(&mut self, chunk: &[u8]) -> Result<usize, TooLarge> {
        let mut skip = 0;
        for &byte in chunk {
            if self.mark < Self::MARK.len() {
                if byte == Self::MARK[self.mark] {
                    self.mark += 1;
                    skip += 1;
                    continue;
                }
                self.mark = Self::MARK.len();
            }
            match byte {
                b'\n' if self.at_line_start => self.event = 0,
                b'\n' => self.at_line_start = true,
                b'\r' => {}
                _ => self.at_line_start = false,
            }
            self.event += 1;
            if self.event > MAX_EVENT {
                return Err(TooLarge);
            }
        }
        Ok(skip)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_byte_order_mark_is_taken_off_wherever_it_is_cut() {
        assert_eq!(Framing::default().skip_mark(b"\xEF\xBB\xBFdata"), Ok(3));
        assert_eq!(Framing::default().skip_mark(b"data"), Ok(0));
        let mut cut = Framing::default();
        assert_eq!(
            (cut.skip_mark(b"\xEF"), cut.skip_mark(b"\xBB\xBFd"), cut.skip_mark(b"\xEF")),
            (Ok(1), Ok(2), Ok(0))
        );
    }

    #[test]
    fn an_event_without_an_end_is_too_large_and_many_small_ones_are_not() {
        let mut endless = Framing::default();
        let line = [vec![b'x'; 1023], vec![b'\n']].concat();
        assert!((0..=MAX_EVENT / 1024).any(|_| endless.skip_mark(&line).is_err()));
        let ended = [vec![b'x'; MAX_EVENT + 1], b"\n\n".to_vec()].concat();
        assert_eq!(Framing::default().skip_mark(&ended), Err(TooLarge), "its end is in the same chunk");
        let mut small = Framing::default();
        let event = [vec![b'x'; 1020], b"\r\n\r\n".to_vec()].concat();
        assert!((0..4096).all(|_| small.skip_mark(&event).is_ok()));
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
