//! Whether the store can write, as its last writes tell.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rejoinder_core::StoreError;

/// Why writes fail, from the first one that fails until one is known to succeed.
#[derive(Clone, Debug, Default)]
pub(super) struct Trouble(Arc<Mutex<Option<Reason>>>);

#[derive(Debug)]
struct Reason {
    error: StoreError,
    is_file_gone: bool,
}

impl Trouble {
    fn reason(&self) -> MutexGuard<'_, Option<Reason>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn error(&self) -> Option<StoreError> {
        self.reason().as_ref().map(|reason| reason.error.clone())
    }

    /// Reports a failed write. Only the first one is logged, and that the file is gone.
    pub(super) fn begin(&self, error: &StoreError, is_file_gone: bool) {
        let mut reason = self.reason();
        let known = reason.replace(Reason { error: error.clone(), is_file_gone });
        match known {
            Some(known) if known.is_file_gone || !is_file_gone => {}
            _ if is_file_gone => tracing::error!(%error, alert = "store", "not ready: new messages are refused"),
            _ => tracing::warn!(%error, "not ready: new messages are refused while this lasts"),
        }
    }

    /// Reports that there is room for further writes.
    pub(super) fn end(&self) {
        if self.reason().take().is_some() {
            tracing::info!("the store can write again");
        }
    }
}
