//! Typing notices and drafts: shown while a run goes on, dropped rather than delayed, never a signal.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rejoinder_guard::{Cleared, Draft};
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::{
    Action, Capabilities, Class, Delivery, DeliveryId, Shim, Support, engine::Core, outbox::calls::Call,
    store::TurnRecord,
};

/// How long one hint may take. A final signal waits for one that is on its way, so that none comes after it.
const HINT_TIMEOUT: Duration = Duration::from_secs(10);

/// The least pause before a hint that could not be shown is tried again.
const LEAST_PAUSE: Duration = Duration::from_millis(100);

/// Shows what a run has written so far. Made when a run starts, ended before its signal is claimed.
pub(crate) struct Drafting {
    /// The least time between two drafts; `None` where there are none.
    interval: Option<Duration>,
    /// The end of the run: no draft begins after it.
    stop: CancellationToken,
    shim: Shim,
    shared: Arc<Shared>,
    task: Option<JoinHandle<()>>,
    paused: bool,
}

#[derive(Default)]
struct Shared {
    text: Mutex<String>,
    more: Notify,
}

impl Drafting {
    pub(crate) fn new(capabilities: &Capabilities, stop: &CancellationToken) -> Self {
        Self {
            interval: (capabilities.drafts != Support::No).then_some(capabilities.draft_interval),
            stop: stop.child_token(),
            shim: Shim::default(),
            shared: Arc::default(),
            task: None,
            paused: false,
        }
    }

    /// Takes in more text of the run on `turn`.
    pub(crate) fn add(&mut self, core: &Arc<Core>, turn: &TurnRecord, delta: &str) {
        let Some(interval) = self.interval else { return };
        let visible = self.shim.push(delta);
        if visible.is_empty() {
            return;
        }
        self.shared.text.lock().unwrap_or_else(PoisonError::into_inner).push_str(&visible);
        self.shared.more.notify_one();
        if self.task.is_none() && !self.paused {
            let (core, turn, shared, stop) =
                (Arc::clone(core), turn.clone(), Arc::clone(&self.shared), self.stop.clone());
            self.task = Some(tokio::spawn(async move { core.show_drafts(&turn, &shared, interval, &stop).await }));
        }
    }

    /// Shows no more drafts. One that is on its way arrives before this returns.
    pub(crate) async fn pause(&mut self) {
        self.paused = true;
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            // A draft that panicked is not worth more than the log line it has written.
            let _ = task.await;
        }
    }

    /// Shows drafts again after a pause, from the next text on.
    pub(crate) fn resume(&mut self, stop: &CancellationToken) {
        self.paused = false;
        self.stop = stop.child_token();
    }

    /// Ends it, as [`pause`](Self::pause) does.
    pub(crate) async fn end(mut self) {
        self.pause().await;
    }
}

/// A typing notice, shown and renewed until it is ended.
pub(crate) struct Typing {
    core: Arc<Core>,
    ended: CancellationToken,
    task: JoinHandle<()>,
}

impl Typing {
    pub(crate) fn start(core: &Arc<Core>, turn: &TurnRecord, interval: Duration, stop: &CancellationToken) -> Self {
        let ended = stop.child_token();
        let task = {
            let (core, turn, ended) = (Arc::clone(core), turn.clone(), ended.clone());
            async move {
                let until = ended.clone();
                while !ended.is_cancelled() {
                    core.hint(&turn, Action::Typing { on: true }, Class::Typing, Some(&until)).await;
                    tokio::select! {
                        () = core.clock.sleep(interval.max(LEAST_PAUSE)) => {}
                        () = ended.cancelled() => {}
                    }
                }
                core.hint(&turn, Action::Typing { on: false }, Class::Typing, None).await;
            }
        };
        Self { core: Arc::clone(core), ended, task: tokio::spawn(task) }
    }

    /// Ends it. The platform knows when this returns, or is too slow to wait for.
    pub(crate) async fn end(self) {
        self.ended.cancel();
        tokio::select! {
            _ = self.task => {}
            () = self.core.clock.sleep(HINT_TIMEOUT) => {}
            () = self.core.ended.cancelled() => {}
        }
    }
}

impl Core {
    async fn show_drafts(&self, turn: &TurnRecord, shared: &Shared, interval: Duration, stop: &CancellationToken) {
        loop {
            tokio::select! {
                () = shared.more.notified() => {}
                () = stop.cancelled() => return,
            }
            let text = shared.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut pause = interval;
            if let Some(draft) = turn.obligation.clear_draft(text)
                && !self.show_draft(turn, &draft, stop).await
            {
                // The latest text is tried again, also when no more comes.
                shared.more.notify_one();
                pause = pause.max(LEAST_PAUSE);
            }
            tokio::select! {
                () = self.clock.sleep(pause) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    async fn show_draft(&self, turn: &TurnRecord, draft: &Cleared<Draft>, stop: &CancellationToken) -> bool {
        self.hint(turn, Action::Draft { text: draft.get().text.clone() }, Class::Draft, Some(stop)).await
    }

    /// Shows a hint, unless something else is on its way to the conversation, its platform limits us, or
    /// `stop` was cancelled; one without a `stop` waits for its place. Whether it was shown.
    async fn hint(&self, turn: &TurnRecord, action: Action, class: Class, stop: Option<&CancellationToken>) -> bool {
        let conversation = &turn.event.conversation;
        let Some(channel) = self.channel(&conversation.channel) else { return false };
        let call = match stop {
            Some(_) => self.lanes.calls.try_begin(conversation),
            None => Some(self.lanes.calls.begin(conversation).await),
        };
        let Some(_call): Option<Call<'_>> = call else { return false };
        if stop.is_some_and(CancellationToken::is_cancelled)
            || self.gate.blocked_until(conversation).is_some()
            || self.gate.take(conversation, &channel.capabilities(conversation), class).is_err()
        {
            return false;
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
        match self.call(channel.deliver(&delivery), HINT_TIMEOUT).await {
            Some(Ok(_)) => true,
            Some(Err(error)) => {
                debug!(turn = %turn.id, channel = %conversation.channel, %error, "a hint was not shown");
                false
            }
            None => false,
        }
    }
}
