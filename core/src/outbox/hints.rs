//! Typing notices and drafts: shown while a run goes on, dropped rather than delayed, never a signal.

use std::sync::{Arc, Mutex, PoisonError};

use rejoinder_guard::{Cleared, Draft};
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::{Action, Class, Delivery, DeliveryId, Shim, Support, engine::Core, store::TurnRecord};

/// Shows what a run has written so far. Made when a run starts, ended before its signal is claimed.
pub(crate) struct Drafting {
    shared: Arc<Shared>,
    shim: Shim,
    task: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    text: Mutex<String>,
    more: Notify,
    ended: CancellationToken,
}

impl Drafting {
    pub(crate) fn new() -> Self {
        Self { shared: Arc::default(), shim: Shim::default(), task: None }
    }

    /// Takes in more text of the run on `turn`.
    pub(crate) fn add(&mut self, core: &Arc<Core>, turn: &TurnRecord, delta: &str) {
        let Some(channel) = core.channel(&turn.event.conversation.channel) else { return };
        let capabilities = channel.capabilities(&turn.event.conversation);
        if capabilities.drafts == Support::No {
            return;
        }
        let visible = self.shim.push(delta);
        if visible.is_empty() {
            return;
        }
        self.shared.text.lock().unwrap_or_else(PoisonError::into_inner).push_str(&visible);
        self.shared.more.notify_one();
        if self.task.is_none() {
            let (core, turn, shared) = (Arc::clone(core), turn.clone(), Arc::clone(&self.shared));
            self.task = Some(tokio::spawn(async move {
                loop {
                    tokio::select! {
                        () = shared.more.notified() => {}
                        () = shared.ended.cancelled() => return,
                    }
                    let text = shared.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    if let Some(draft) = turn.obligation.clear_draft(text) {
                        core.show_draft(&turn, &draft).await;
                    }
                    tokio::select! {
                        () = core.clock.sleep(capabilities.draft_interval) => {}
                        () = shared.ended.cancelled() => return,
                    }
                }
            }));
        }
    }

    /// Ends it. A draft that is on its way arrives before this returns, so none comes after the signal.
    pub(crate) async fn end(self) {
        self.shared.ended.cancel();
        if let Some(task) = self.task {
            // A draft that panicked is not worth more than the log line it has written.
            let _ = task.await;
        }
    }
}

impl Core {
    async fn show_draft(&self, turn: &TurnRecord, draft: &Cleared<Draft>) {
        self.hint(turn, Action::Draft { text: draft.get().text.clone() }, Class::Draft).await;
    }

    /// Starts, renews or ends the typing notice of a turn's conversation.
    pub(crate) async fn show_typing(&self, turn: &TurnRecord, on: bool) {
        self.hint(turn, Action::Typing { on }, Class::Typing).await;
    }

    async fn hint(&self, turn: &TurnRecord, action: Action, class: Class) {
        let conversation = &turn.event.conversation;
        let Some(channel) = self.channel(&conversation.channel) else { return };
        let capabilities = channel.capabilities(conversation);
        if self.gate.blocked_until(conversation).is_some()
            || self.gate.take(conversation, &capabilities, class).is_err()
        {
            return;
        }
        let delivery = Delivery {
            id: DeliveryId::new(self.clock.now()),
            conversation: conversation.clone(),
            turn: Some(turn.id),
            part: 1,
            parts: 1,
            via: None,
            signal: None,
            action,
            attempt: 1,
            labelled: false,
        };
        if let Err(error) = channel.deliver(&delivery).await {
            debug!(turn = %turn.id, channel = %conversation.channel, %error, "a hint was not shown");
        }
    }
}
