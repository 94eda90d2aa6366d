//! Whether the store can write, as its last writes tell.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rejoinder_core::{
    StoreError, Timestamp,
    store::{LogEvent, NewLogEntry, Subject},
};

/// Why writes fail, from the first one that fails until one is known to succeed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble(Arc<Mutex<Option<Reason>>>);

#[derive(Debug)]
struct Reason {
    since: Timestamp,
    error: StoreError,
    is_file_gone: bool,
}

impl Trouble {
    fn reason(&self) -> MutexGuard<'_, Option<Reason>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn error(&self) -> Option<StoreError> {
        self.reason().as_ref().map(|reason| reason.error.clone())
    }

    /// Since when writes fail.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.reason().as_ref().map(|reason| reason.since)
    }

    /// What the log of events says of it, once writes succeed at `now`.
    pub(crate) fn logged(&self, now: Timestamp) -> Vec<NewLogEntry> {
        let Some(Reason { since, error, .. }) = &*self.reason() else { return Vec::new() };
        let down = LogEvent::StoreDown { problem: error.to_string() };
        [(*since, down), (now, LogEvent::StoreUp)]
            .map(|(at, event)| NewLogEntry { at, subject: Subject::default(), event })
            .into()
    }

    /// Reports a write that failed at `now`. Only the first one is logged, and that the file is gone.
    pub(crate) fn begin(&self, error: &StoreError, is_file_gone: bool, now: Timestamp) {
        let mut reason = self.reason();
        let since = reason.as_ref().map_or(now, |known| known.since);
        let known = reason.replace(Reason { since, error: error.clone(), is_file_gone });
        match known {
            Some(known) if known.is_file_gone || !is_file_gone => {}
            _ if is_file_gone => tracing::error!(%error, alert = "store", "not ready: new messages are refused"),
            _ => tracing::warn!(%error, "not ready: new messages are refused while this lasts"),
        }
    }

    /// Reports that there is room for further writes.
    pub(crate) fn end(&self) {
        if self.reason().take().is_some() {
            tracing::info!("the store can write again");
        }
    }
}
