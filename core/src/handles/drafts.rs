//! The text of runs whose drafts are shown.

use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use tokio::sync::Notify;

use crate::model::TurnId;

/// All text of a run so far.
#[derive(Default)]
pub(crate) struct DraftText {
    text: Mutex<String>,
    /// Notified when the text or its place in the chat changes.
    more: Notify,
}

impl DraftText {
    /// Appends to the text; clears it before if `replaces`.
    pub(crate) fn add(&self, visible: &str, replaces: bool) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if replaces {
            text.clear();
        }
        text.push_str(visible);
    }

    pub(crate) fn get(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Wakes the task that shows the text.
    pub(crate) fn notify(&self) {
        self.more.notify_one();
    }

    pub(crate) async fn changed(&self) {
        self.more.notified().await;
    }
}

/// The runs whose drafts are messages, by turn.
#[derive(Default)]
pub(crate) struct Drafts(DashMap<TurnId, Arc<DraftText>>);

impl Drafts {
    /// Notifies the run of `turn` that its obligation changed: its drafts may have a message now.
    pub(crate) fn notify(&self, turn: TurnId) {
        if let Some(text) = self.0.get(&turn) {
            text.notify();
        }
    }

    pub(crate) fn begin(&self, turn: TurnId, text: Arc<DraftText>) {
        self.0.insert(turn, text);
    }

    pub(crate) fn end(&self, turn: TurnId) {
        self.0.remove(&turn);
    }
}
