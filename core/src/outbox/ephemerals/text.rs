//! The text of runs that are being shown as drafts.

use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use tokio::sync::Notify;

use crate::model::ids::TurnId;

/// All that a run has written so far.
#[derive(Default)]
pub(crate) struct DraftText {
    text: Mutex<String>,
    /// There is more text, or another place for it.
    more: Notify,
}

impl DraftText {
    /// Adds to the text, or begins it `anew`.
    pub(super) fn add(&self, visible: &str, anew: bool) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if anew {
            text.clear();
        }
        text.push_str(visible);
    }

    pub(super) fn get(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has the text looked at.
    pub(super) fn notify(&self) {
        self.more.notify_one();
    }

    pub(super) async fn changed(&self) {
        self.more.notified().await;
    }
}

/// The runs whose drafts are messages, by turn.
#[derive(Default)]
pub(crate) struct Drafts(DashMap<TurnId, Arc<DraftText>>);

impl Drafts {
    /// What is owed for a turn has changed: its drafts may have a message now.
    pub(crate) fn tell(&self, turn: TurnId) {
        if let Some(text) = self.0.get(&turn) {
            text.notify();
        }
    }

    pub(super) fn begin(&self, turn: TurnId, text: Arc<DraftText>) {
        self.0.insert(turn, text);
    }

    pub(super) fn end(&self, turn: TurnId) {
        self.0.remove(&turn);
    }
}
