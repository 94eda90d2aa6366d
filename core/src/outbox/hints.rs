//! Typing notices and drafts: shown while a run goes on, dropped rather than delayed, never a signal.
//!
//! Where drafts are messages, the first one is a delivery like any other: it has a row before its first byte, and
//! the guard knows what became of it. What follows changes its message, and is dropped when it cannot go at once.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use dashmap::DashMap;
use rejoinder_guard::{Cleared, Draft, DraftPlace, Event};
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::{
    Action, Capabilities, Class, Delivery, DeliveryError, DeliveryId, Receipt, Shim, Support, TurnId,
    crash::crash_point, engine::Core, ledger::Along, outbox::calls::Call, seen, store::TurnRecord,
};

/// How long one hint may take. A final signal waits for one that is on its way, so that none comes after it.
pub(crate) const HINT_TIMEOUT: Duration = Duration::from_secs(10);

/// An answer that comes sooner needs no notice that somebody is typing, and does not wait for one.
const TYPING_AFTER: Duration = Duration::from_millis(200);

/// The least pause before a hint that could not be shown is tried again.
const LEAST_PAUSE: Duration = Duration::from_millis(100);

/// The longest one between two first drafts that did not go out.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The pauses after tries to remove a draft that nothing takes the place of.
const REMOVALS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(2)];

/// The runs that show drafts.
#[derive(Default)]
pub(crate) struct Drafts(DashMap<TurnId, Arc<Shared>>);

impl Drafts {
    /// Says that what is owed for a turn has changed: its drafts may have a message now.
    pub(crate) fn tell(&self, turn: TurnId) {
        if let Some(drafting) = self.0.get(&turn) {
            drafting.more.notify_one();
        }
    }
}

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
pub(crate) struct Shared {
    /// All that the run has written so far.
    text: Mutex<String>,
    /// There is more text, or another place for it.
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
}

/// What became of a draft.
enum Drafted {
    Shown,
    /// The first one is on its way as a delivery.
    Claimed,
    /// There is no place for it now: the next change of the turn may bring one.
    Waits,
    NotShown,
}

impl Drafting {
    pub(crate) fn new(capabilities: &Capabilities, stop: &CancellationToken) -> Self {
        Self {
            interval: (capabilities.drafts != Support::No).then_some(capabilities.draft_interval),
            stop: stop.child_token(),
            are_messages: capabilities.drafts_are_messages,
            shim: Shim::default(),
            shared: Arc::default(),
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
                if are_messages {
                    core.drafts.0.insert(turn.id, Arc::clone(&shared));
                }
                core.show_drafts(&turn, &shared, interval, are_messages, &stop).await;
                core.drafts.0.remove(&turn.id);
            }));
        }
    }

    /// Takes in all the text of the run so far, in the place of what came before.
    pub(crate) fn rewrite(&mut self, core: &Arc<Core>, turn: &TurnRecord, text: &str) {
        self.shim = Shim::default();
        self.shared.add("", true);
        self.add(core, turn, text);
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
    pub(crate) fn start(
        core: &Arc<Core>,
        turn: &TurnRecord,
        capabilities: &Capabilities,
        stop: &CancellationToken,
    ) -> Self {
        let ended = stop.child_token();
        let (interval, ends_by_itself) = (capabilities.typing_interval, capabilities.typing_ends_by_itself);
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
                if !ends_by_itself {
                    core.hint(&turn, Action::Typing { on: false }, Class::Typing, None).await;
                }
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
        self: &Arc<Self>,
        turn: &TurnRecord,
        shared: &Shared,
        interval: Duration,
        are_messages: bool,
        stop: &CancellationToken,
    ) {
        let mut turn = turn.clone();
        let mut not_sent = LEAST_PAUSE;
        let mut is_claimed = false;
        let mut shown = String::new();
        loop {
            tokio::select! {
                () = shared.more.notified() => {}
                () = stop.cancelled() => return,
            }
            let text = shared.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if text == shown || !self.shows(&turn, &text) {
                // Another change of the turn is no news to the person, and an empty message none either.
                continue;
            }
            let drafted = if are_messages {
                self.show_message(&mut turn, &text, stop).await
            } else {
                self.show_text(&turn, &text, stop).await
            };
            let pause = match drafted {
                Drafted::Shown => {
                    shown = text;
                    interval
                }
                Drafted::Waits => LEAST_PAUSE,
                Drafted::Claimed if std::mem::replace(&mut is_claimed, true) => {
                    // The one before was not taken.
                    not_sent = (not_sent * 2).min(MAX_PAUSE);
                    not_sent.max(interval)
                }
                Drafted::Claimed => interval,
                Drafted::NotShown => {
                    // The latest text is tried again, also when no more comes.
                    shared.more.notify_one();
                    interval.max(LEAST_PAUSE)
                }
            };
            tokio::select! {
                () = self.clock.sleep(pause) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Shows a draft where it is a message.
    async fn show_message(self: &Arc<Self>, turn: &mut TurnRecord, text: &str, stop: &CancellationToken) -> Drafted {
        if !matches!(turn.obligation.draft_place(), DraftPlace::Message(_)) {
            // The first draft may have arrived meanwhile, or a deferral.
            match self.store.turn(turn.id).await {
                Ok(Some(stored)) => *turn = stored,
                Ok(None) | Err(_) => return Drafted::NotShown,
            }
        }
        let message = match turn.obligation.draft_place() {
            DraftPlace::Message(message) => message.to_owned(),
            DraftPlace::Nowhere => return Drafted::Waits,
            DraftPlace::New if self.is_limited(turn) => return Drafted::NotShown,
            DraftPlace::New => {
                let drafted = match self.decide(turn, Event::Draft { text: text.to_owned() }, Along::default()).await {
                    Ok(_) if turn.obligation.is_draft_wanted() => Drafted::Claimed,
                    Ok(_) => Drafted::Waits,
                    Err(error) => {
                        debug!(turn = %turn.id, %error, "a draft cannot be stored");
                        Drafted::NotShown
                    }
                };
                crash_point!("draft_claimed");
                return drafted;
            }
        };
        let Some(draft) = turn.obligation.clear_draft(text) else { return Drafted::Waits };
        self.show_draft(turn, &draft, Some(message), stop).await
    }

    /// Shows a draft where it is no message.
    async fn show_text(self: &Arc<Self>, turn: &TurnRecord, text: &str, stop: &CancellationToken) -> Drafted {
        match turn.obligation.clear_draft(text) {
            Some(draft) => self.show_draft(turn, &draft, None, stop).await,
            None => Drafted::Waits,
        }
    }

    /// Whether a person would see anything of a draft with this text.
    fn shows(&self, turn: &TurnRecord, text: &str) -> bool {
        let channel = self.channel(&turn.event.conversation.channel);
        turn.obligation
            .clear_draft(text)
            .is_some_and(|draft| seen::shows_anything(&draft.get().text, channel.as_deref()))
    }

    async fn show_draft(
        self: &Arc<Self>,
        turn: &TurnRecord,
        draft: &Cleared<Draft>,
        message: Option<String>,
        stop: &CancellationToken,
    ) -> Drafted {
        let reply_to = turn.event.message_id.clone();
        let action = Action::Draft { text: draft.get().text.clone(), message, reply_to };
        match self.hint(turn, action, Class::Draft, Some(stop)).await {
            Some(Ok(_)) => Drafted::Shown,
            Some(Err(_)) | None => Drafted::NotShown,
        }
    }

    /// Whether the platform limits the conversation of a turn now.
    fn is_limited(&self, turn: &TurnRecord) -> bool {
        self.blocked_until(&self.address(&turn.event.conversation)).is_some()
    }

    /// Removes the draft of a turn that ended without an answer to put in its place.
    pub(crate) async fn remove_draft(self: &Arc<Self>, turn: &TurnRecord, message: String) {
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
        self: &Arc<Self>,
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
            || self.blocked_until(conversation).is_some()
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
        if result.is_ok() {
            self.note_health(&conversation.channel, &result);
        }
        if let Err(error) = &result {
            debug!(turn = %turn.id, channel = %conversation.channel, %error, "a hint was not shown");
        }
        Some(result)
    }
}
