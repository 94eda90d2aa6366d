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
    Action, Capabilities, Class, Delivery, DeliveryError, DeliveryId, Receipt, Shim, Support,
    engine::Core,
    outbox::calls::Call,
    seen,
    store::{DraftMessage, Transition, TurnRecord},
};

/// How long one hint may take. A final signal waits for one that is on its way, so that none comes after it.
const HINT_TIMEOUT: Duration = Duration::from_secs(10);

/// An answer that comes sooner needs no notice that somebody is typing, and does not wait for one.
const TYPING_AFTER: Duration = Duration::from_millis(200);

/// The least pause before a hint that could not be shown is tried again.
const LEAST_PAUSE: Duration = Duration::from_millis(100);

/// The pauses after tries to remove a draft that nothing takes the place of.
const REMOVALS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(2)];

/// Shows what a run has written so far. Made when a run starts, ended before its signal is claimed.
pub(crate) struct Drafting {
    /// The least time between two drafts; `None` where there are none.
    interval: Option<Duration>,
    /// The end of the run: no draft begins after it.
    stop: CancellationToken,
    /// Whether the drafts of this platform are messages.
    are_messages: bool,
    shim: Shim,
    shared: Arc<Shared>,
    task: Option<JoinHandle<()>>,
    paused: bool,
}

#[derive(Default)]
struct Shared {
    text: Mutex<String>,
    /// The message that the drafts are.
    message: Mutex<Option<String>>,
    more: Notify,
}

impl Shared {
    /// Adds to the text, or begins it `anew`.
    fn add(&self, visible: &str, anew: bool) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if anew {
            text.clear();
        }
        text.push_str(visible);
    }

    fn message(&self) -> Option<String> {
        self.message.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What became of a draft.
enum Drafted {
    Shown,
    NotShown,
    /// There may be a message that nobody knows the id of: another one would stand beside it.
    Unknown,
}

impl Drafting {
    /// `message` is what shows the drafts of an earlier run.
    pub(crate) fn new(capabilities: &Capabilities, message: Option<String>, stop: &CancellationToken) -> Self {
        Self {
            interval: (capabilities.drafts != Support::No).then_some(capabilities.draft_interval),
            stop: stop.child_token(),
            are_messages: capabilities.drafts_are_messages,
            shim: Shim::default(),
            shared: Arc::new(Shared { message: Mutex::new(message), ..Shared::default() }),
            task: None,
            paused: false,
        }
    }

    /// Takes in more text of the run on `turn`.
    pub(crate) fn add(&mut self, core: &Arc<Core>, turn: &TurnRecord, delta: &str) {
        let Some(interval) = self.interval else { return };
        let taken_back = self.shim.taken_back();
        let visible = self.shim.push(delta);
        self.shared.add(&visible, self.shim.taken_back() > taken_back);
        if visible.is_empty() {
            return;
        }
        self.shared.more.notify_one();
        if self.task.is_none() && !self.paused {
            let (core, turn, shared, stop) =
                (Arc::clone(core), turn.clone(), Arc::clone(&self.shared), self.stop.clone());
            let are_messages = self.are_messages;
            self.task = Some(tokio::spawn(async move {
                core.show_drafts(&turn, &shared, interval, are_messages, &stop).await;
            }));
        }
    }

    /// Takes in all the text of the run so far, in the place of what came before.
    pub(crate) fn rewrite(&mut self, core: &Arc<Core>, turn: &TurnRecord, text: &str) {
        self.shim = Shim::default();
        self.shared.add("", true);
        self.add(core, turn, text);
    }

    /// The message that shows the latest draft, where drafts are messages.
    pub(crate) fn message(&self) -> Option<String> {
        self.shared.message()
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

    /// Ends it, as [`pause`](Self::pause) does; returns the message that shows the latest draft.
    pub(crate) async fn end(mut self) -> Option<String> {
        self.pause().await;
        self.message()
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
                tokio::select! {
                    () = core.clock.sleep(TYPING_AFTER) => {}
                    () = ended.cancelled() => return,
                }
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
    async fn show_drafts(
        &self,
        turn: &TurnRecord,
        shared: &Shared,
        interval: Duration,
        are_messages: bool,
        stop: &CancellationToken,
    ) {
        loop {
            tokio::select! {
                () = shared.more.notified() => {}
                () = stop.cancelled() => return,
            }
            let text = shared.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut pause = interval;
            if let Some(draft) = turn.obligation.clear_draft(text).filter(|draft| self.shows(turn, draft)) {
                match self.show_draft(turn, &draft, shared, are_messages, stop).await {
                    Drafted::Shown => {}
                    Drafted::NotShown => {
                        // The latest text is tried again, also when no more comes.
                        shared.more.notify_one();
                        pause = pause.max(LEAST_PAUSE);
                    }
                    Drafted::Unknown => return,
                }
            }
            tokio::select! {
                () = self.clock.sleep(pause) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Whether a person would see anything of a draft.
    fn shows(&self, turn: &TurnRecord, draft: &Cleared<Draft>) -> bool {
        let channel = self.channel(&turn.event.conversation.channel);
        seen::shows_anything(&draft.get().text, channel.as_deref())
    }

    async fn show_draft(
        &self,
        turn: &TurnRecord,
        draft: &Cleared<Draft>,
        shared: &Shared,
        are_messages: bool,
        stop: &CancellationToken,
    ) -> Drafted {
        let message = shared.message();
        let is_first = message.is_none();
        let action = Action::Draft { text: draft.get().text.clone(), message };
        match self.hint(turn, action, Class::Draft, Some(stop)).await {
            Some(Ok(receipt)) if are_messages && is_first => {
                let Some(message) = receipt.message_ids.into_iter().next() else { return Drafted::Shown };
                *shared.message.lock().unwrap_or_else(PoisonError::into_inner) = Some(message.clone());
                let drafts = vec![DraftMessage { turn: turn.id, message }];
                if let Err(error) = self.store.commit(Transition { drafts, ..Transition::default() }).await {
                    debug!(turn = %turn.id, %error, "the message of a draft was not recorded");
                }
                Drafted::Shown
            }
            Some(Ok(_)) => Drafted::Shown,
            Some(Err(DeliveryError::Unknown(_))) if are_messages && is_first => Drafted::Unknown,
            Some(Err(_)) | None => Drafted::NotShown,
        }
    }

    /// Removes the draft of a turn that ended without an answer to put in its place.
    pub(crate) async fn remove_draft(&self, turn: &TurnRecord, message: String) {
        for pause in REMOVALS {
            let removed = self.hint(turn, Action::Delete { message: message.clone() }, Class::Interim, None).await;
            let is_worth_another = matches!(
                removed,
                None | Some(Err(DeliveryError::Limited { .. }
                    | DeliveryError::NotSent { .. }
                    | DeliveryError::Unknown(_)))
            );
            if !is_worth_another || !self.pause(pause).await {
                return;
            }
        }
    }

    /// Shows a hint, unless something else is on its way to the conversation, its platform limits us, or
    /// `stop` was cancelled; one without a `stop` waits for its place. `None` when it was not tried.
    async fn hint(
        &self,
        turn: &TurnRecord,
        action: Action,
        class: Class,
        stop: Option<&CancellationToken>,
    ) -> Option<Result<Receipt, DeliveryError>> {
        let conversation = &self.address(&turn.event.conversation);
        let channel = self.channel(&conversation.channel)?;
        let call = match stop {
            Some(_) => self.lanes.calls.try_begin(conversation),
            None => Some(self.lanes.calls.begin(conversation).await),
        };
        let _call: Call<'_> = call?;
        if stop.is_some_and(CancellationToken::is_cancelled)
            || self.gate.blocked_until(conversation).is_some()
            || self.gate.take(conversation, &channel.capabilities(conversation), class).is_err()
        {
            return None;
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
            label: None,
        };
        let result = self.call(channel.deliver(&delivery), HINT_TIMEOUT).await?;
        if let Err(error) = &result {
            debug!(turn = %turn.id, channel = %conversation.channel, %error, "a hint was not shown");
        }
        Some(result)
    }
}
