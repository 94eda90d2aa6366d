//! The text of runs whose drafts are shown.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dashmap::DashMap;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::steps::Steps;
use crate::model::{TurnId, WorkStep};

/// All text of a run so far, and what it does.
#[derive(Default)]
pub(crate) struct DraftText {
    shown: Mutex<Shown>,
    /// Notified when the text or its place in the chat changes.
    more: Notify,
}

#[derive(Default)]
struct Shown {
    text: String,
    /// Markdown of one line, below the text.
    activity: Option<String>,
    steps: Steps,
}

impl DraftText {
    /// Appends to the text; clears it before if `replaces`.
    pub(crate) fn add(&self, visible: &str, replaces: bool) {
        let mut shown = self.lock();
        if replaces {
            shown.text.clear();
        }
        shown.text.push_str(visible);
    }

    /// Shows another activity than before, or none.
    pub(crate) fn set_activity(&self, line: Option<String>) {
        self.lock().activity = line;
    }

    /// Changes the steps of the run.
    pub(crate) fn change_steps(&self, change: impl FnOnce(&mut Steps)) {
        change(&mut self.lock().steps);
    }

    /// The text and the steps, where these are shown beside it.
    pub(crate) fn with_steps(&self) -> (String, Vec<WorkStep>) {
        let shown = self.lock();
        (shown.text.clone(), shown.steps.all())
    }

    /// What a draft shows of it. `is_message`: what the agent does is no message by itself, which would stand in place of a deferral.
    pub(crate) fn get(&self, is_message: bool) -> String {
        let shown = self.lock();
        let Some(line) = &shown.activity else { return shown.text.clone() };
        if shown.text.trim().is_empty() {
            return if is_message { String::new() } else { line.clone() };
        }
        // A block of code may not have ended yet.
        let fence = if shown.text.matches("```").count() % 2 == 1 { "\n```" } else { "" };
        format!("{}{fence}\n\n{line}", shown.text.trim_end())
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the task that shows the text.
    pub(crate) fn notify(&self) {
        self.more.notify_one();
    }

    pub(crate) async fn changed(&self) {
        self.more.notified().await;
    }
}

/// The runs whose drafts are messages, and those of other nodes whose drafts are shown here, by turn.
#[derive(Default)]
pub(crate) struct Drafts(DashMap<TurnId, DraftedRun>);

struct DraftedRun {
    text: Arc<DraftText>,
    /// Ends the drafts of a run of another node.
    ends: Option<CancellationToken>,
}

impl Drafts {
    /// Notifies the run of `turn` that its obligation changed: its drafts may have a message now, or must not be shown any more.
    pub(crate) fn notify(&self, turn: TurnId, may_draft: bool) {
        if let Some(run) = self.0.get(&turn) {
            if let Some(ends) = run.ends.as_ref().filter(|_| !may_draft) {
                ends.cancel();
            }
            run.text.notify();
        }
    }

    /// `ends`: what ends the drafts of a run of another node.
    pub(crate) fn begin(&self, turn: TurnId, text: Arc<DraftText>, ends: Option<CancellationToken>) {
        self.0.insert(turn, DraftedRun { text, ends });
    }

    /// Unless another run of the turn has begun its own meanwhile.
    pub(crate) fn end(&self, turn: TurnId, text: &Arc<DraftText>) {
        self.0.remove_if(&turn, |_, run| Arc::ptr_eq(&run.text, text));
    }
}
