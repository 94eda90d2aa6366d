//! Callers who ask over HTTP and wait for the answer: what their headers say, and what they asked before.

use std::{borrow::Cow, sync::Arc, time::Duration};

use axum::http::{HeaderMap, HeaderName, header};
use rejoinder_core::{
    CallerTrace, EarlierMessage, InboundEvent, Language, SharedClock, StoredFile, TurnStatus, TurnView, Watch,
    stored_url,
};
use tokio_util::sync::CancellationToken;

/// How much longer than its wait a request is held, so that the response can carry the deferral that the guard clears
/// at the end of the wait.
pub const GRACE: Duration = Duration::from_secs(2);

/// The longest `Idempotency-Key`, in bytes.
const MAX_KEY: usize = 255;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Says `true` in the response to a request whose key was used before.
pub const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The first language that the caller accepts.
#[must_use]
pub fn asked_language(headers: &HeaderMap) -> Option<Language> {
    let accepted = headers.get(header::ACCEPT_LANGUAGE)?.to_str().ok()?;
    Language::of(accepted.split([',', ';']).next()?)
}

/// The trace that the caller is in, if it says so.
#[must_use]
pub fn caller_trace(headers: &HeaderMap) -> Option<CallerTrace> {
    let texts = |name| headers.get_all(name).iter().map(|value| value.to_str().ok()).collect::<Option<Vec<_>>>();
    match texts("traceparent")?[..] {
        [parent] => CallerTrace::read(parent, texts("tracestate").map(|states| states.join(",")).as_deref()),
        _ => None,
    }
}

/// An `Idempotency-Key` that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Idempotency-Key must have 1 to {MAX_KEY} visible ASCII characters")]
pub struct BadKey;

/// The key of a request that may be repeated; `None` if it has none.
///
/// # Errors
/// When it cannot be used.
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, BadKey> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = value.to_str().ok().map(str::trim).filter(|key| (1..=MAX_KEY).contains(&key.len()));
    key.map(Some).ok_or(BadKey)
}

/// The content of a request, to compare with what its idempotency key was used for before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// `None` for what was spoken: its file says it, and it may be written down differently.
    text: Option<String>,
    sender: String,
    seal_to: Option<Arc<str>>,
    chat: Arc<str>,
    /// As they are stored. Not their names and types, of which the core stores only what can be shown.
    urls: Vec<String>,
}

impl Fingerprint {
    /// That of the request which this event was made of.
    #[must_use]
    pub fn of(event: &InboundEvent) -> Self {
        Self {
            text: event.voice.is_none().then(|| event.text.clone()),
            sender: event.sender.id.clone(),
            seal_to: event.seal_to.clone(),
            chat: Arc::clone(&event.conversation.chat),
            urls: event.attachments.iter().map(|file| stored_url(&file.url).into_owned()).collect(),
        }
    }

    /// Whether it says what the earlier one said. Its files and its conversation are in the [view](Self::is_of) of the turn.
    #[must_use]
    pub fn says(&self, earlier: &EarlierMessage) -> bool {
        self.text.as_ref().is_none_or(|text| *text == earlier.text)
            && self.sender == earlier.sender
            && self.seal_to.as_deref() == earlier.seal_to.as_deref()
    }

    /// Whether the turn has the same files, in the same conversation.
    #[must_use]
    pub fn is_of(&self, turn: &TurnView) -> bool {
        turn.conversation.chat == self.chat && self.has_urls(turn.attachments.iter().map(|file| &*file.url))
    }

    /// Rows from before the schema 32 still have their files in their URLs.
    fn has_urls<'a>(&self, stored: impl Iterator<Item = &'a str>) -> bool {
        let is_reference = |url: &str| StoredFile::in_url(url).is_some();
        let as_stored = |url| if is_reference(url) { Cow::Borrowed(url) } else { stored_url(url) };
        stored.map(as_stored).eq(self.urls.iter().map(String::as_str))
    }
}

/// Waits for a status of a turn that `is_enough`, for `patience`, or until the gateway is to `stop_waiting`. Returns the latest view,
/// if any came.
pub async fn wait_for(
    mut watch: Watch,
    is_enough: impl Fn(TurnStatus) -> bool,
    patience: Duration,
    clock: &SharedClock,
    stop_waiting: &CancellationToken,
) -> Option<Arc<TurnView>> {
    let mut alarm = clock.sleep(patience);
    let mut latest: Option<Arc<TurnView>> = None;
    loop {
        tokio::select! {
            biased;
            view = watch.changed() => {
                let is_enough = is_enough(view.status);
                latest = Some(view);
                if is_enough {
                    return latest;
                }
            }
            () = &mut alarm => return latest,
            () = stop_waiting.cancelled() => return latest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_same_whether_the_row_has_its_bytes_or_refers_to_them() {
        let (hello, other) = ("data:text/plain;base64,aGVsbG8=", "https://example.org/a");
        let asked = |url: &str| Fingerprint {
            text: None,
            sender: String::new(),
            seal_to: None,
            chat: "sender:ada".into(),
            urls: vec![stored_url(url).into_owned()],
        };
        let reference = stored_url(hello);

        assert!(asked(hello).has_urls([&*reference].into_iter()));
        assert!(asked(hello).has_urls([hello].into_iter()), "a row from before the schema 32");
        assert!(asked(other).has_urls([other].into_iter()));
        assert!(!asked(other).has_urls([hello].into_iter()));
        assert!(!asked("data:text/plain;base64,aGVsbG9v").has_urls([hello].into_iter()));
        assert!(!asked(hello).has_urls([].into_iter()));
    }
}
