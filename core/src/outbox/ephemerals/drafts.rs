//! Drafts: what a run has written so far, shown while it goes on.
//!
//! Where drafts are messages, the first one is a delivery like any other: it has a row before its first byte, and
//! the guard knows what became of it. What follows changes its message, and is dropped when it cannot go at once.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::{Cleared, Draft, DraftPlace, Event, Shim};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::{
    show::{Ephemerals, LEAST_PAUSE},
    text::DraftText,
};
use crate::{
    crash::crash_point,
    ledger::trigger::Trigger,
    model::{
        capabilities::{Capabilities, Support},
        delivery::{Action, Class},
        turn::TurnRecord,
    },
    seen,
};

/// The longest pause between two first drafts that did not go out.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Shows what a run has written so far. Made when a run starts, ended before its signal is claimed.
pub(crate) struct Drafting {
    ephemerals: Arc<Ephemerals>,
    /// The least time between two drafts; `None` where there are none.
    interval: Option<Duration>,
    /// The end of the run: no draft begins after it.
    stop: CancellationToken,
    /// Whether the drafts of this platform are messages.
    are_messages: bool,
    shim: Shim,
    text: Arc<DraftText>,
    task: Option<JoinHandle<()>>,
    is_paused: bool,
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
    pub(crate) fn new(ephemerals: &Arc<Ephemerals>, capabilities: &Capabilities, stop: &CancellationToken) -> Self {
        Self {
            ephemerals: Arc::clone(ephemerals),
            interval: (capabilities.drafts != Support::No).then_some(capabilities.draft_interval),
            stop: stop.child_token(),
            are_messages: capabilities.drafts_are_messages,
            shim: Shim::default(),
            text: Arc::default(),
            task: None,
            is_paused: false,
        }
    }

    /// Takes in more text of the run on `turn`.
    pub(crate) fn add(&mut self, turn: &TurnRecord, delta: &str) {
        let Some(interval) = self.interval else { return };
        let taken_back = self.shim.taken_back();
        let visible = self.shim.push(delta);
        self.text.add(&visible, self.shim.taken_back() > taken_back);
        if visible.is_empty() {
            return;
        }
        self.text.notify();
        if self.task.is_none() && !self.is_paused {
            let showing = Showing {
                ephemerals: Arc::clone(&self.ephemerals),
                turn: turn.clone(),
                text: Arc::clone(&self.text),
                interval,
                are_messages: self.are_messages,
                stop: self.stop.clone(),
            };
            self.task = Some(tokio::spawn(showing.run()));
        }
    }

    /// Takes in all the text of the run so far, in the place of what came before.
    pub(crate) fn rewrite(&mut self, turn: &TurnRecord, text: &str) {
        self.shim = Shim::default();
        self.text.add("", true);
        self.add(turn, text);
    }

    /// Shows no more drafts. One that is on its way arrives before this returns.
    pub(crate) async fn pause(&mut self) {
        self.is_paused = true;
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            // A draft that panicked is not worth more than the log line it has written.
            let _ = task.await;
        }
    }

    /// Shows drafts again after a pause, from the next text on.
    pub(crate) fn resume(&mut self, stop: &CancellationToken) {
        self.is_paused = false;
        self.stop = stop.child_token();
    }

    /// Ends it, as [`pause`](Self::pause) does.
    pub(crate) async fn end(mut self) {
        self.pause().await;
    }
}

/// The task that shows the drafts of one run.
struct Showing {
    ephemerals: Arc<Ephemerals>,
    turn: TurnRecord,
    text: Arc<DraftText>,
    interval: Duration,
    are_messages: bool,
    stop: CancellationToken,
}

impl Showing {
    async fn run(mut self) {
        let drafts = Arc::clone(&self.ephemerals.drafts);
        if self.are_messages {
            drafts.begin(self.turn.id, Arc::clone(&self.text));
        }
        self.show_all().await;
        drafts.end(self.turn.id);
    }

    /// Shows the text whenever there is more of it, until the run ends.
    async fn show_all(&mut self) {
        let mut not_sent = LEAST_PAUSE;
        let mut is_claimed = false;
        let mut shown = String::new();
        loop {
            tokio::select! {
                () = self.text.changed() => {}
                () = self.stop.cancelled() => return,
            }
            let text = self.text.get();
            if text == shown || !self.is_visible(&text) {
                // Another change of the turn is no news to the person, and an empty message none either.
                continue;
            }
            let drafted = if self.are_messages { self.show_message(&text).await } else { self.show_text(&text).await };
            let pause = match drafted {
                Drafted::Shown => {
                    shown = text;
                    self.interval
                }
                Drafted::Waits => LEAST_PAUSE,
                Drafted::Claimed if std::mem::replace(&mut is_claimed, true) => {
                    // The one before was not taken.
                    not_sent = (not_sent * 2).min(MAX_PAUSE);
                    not_sent.max(self.interval)
                }
                Drafted::Claimed => self.interval,
                Drafted::NotShown => {
                    // The latest text is tried again, also when no more comes.
                    self.text.notify();
                    self.interval.max(LEAST_PAUSE)
                }
            };
            tokio::select! {
                () = self.ephemerals.clock.sleep(pause) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Whether a person would see anything of a draft with this text.
    fn is_visible(&self, text: &str) -> bool {
        let channel = self.ephemerals.channels.get(&self.turn.event.conversation.channel).map(AsRef::as_ref);
        let draft = self.turn.obligation.clear_draft(text);
        draft.is_some_and(|draft| seen::shows_anything(&draft.get().text, channel))
    }

    /// Shows a draft where it is a message.
    async fn show_message(&mut self, text: &str) -> Drafted {
        if !matches!(self.turn.obligation.draft_place(), DraftPlace::Message(_)) {
            // The first draft may have arrived meanwhile, or a deferral.
            match self.ephemerals.ledger.turn(self.turn.id).await {
                Ok(stored) => self.turn = stored,
                Err(_) => return Drafted::NotShown,
            }
        }
        let message = match self.turn.obligation.draft_place() {
            DraftPlace::Message(message) => message.to_owned(),
            DraftPlace::Nowhere => return Drafted::Waits,
            DraftPlace::New if self.ephemerals.is_blocked(&self.turn).await => return Drafted::NotShown,
            DraftPlace::New => return self.claim_message(text).await,
        };
        let Some(draft) = self.turn.obligation.clear_draft(text) else { return Drafted::Waits };
        self.show_draft(&draft, Some(message)).await
    }

    /// Has the first draft delivered.
    async fn claim_message(&mut self, text: &str) -> Drafted {
        let event = Event::Draft { text: text.to_owned() };
        let drafted = match self.ephemerals.ledger.decide(&mut self.turn, event, Trigger::Event).await {
            Ok(_) if self.turn.obligation.is_draft_wanted() => Drafted::Claimed,
            Ok(_) => Drafted::Waits,
            Err(error) => {
                debug!(turn = %self.turn.id, %error, "a draft cannot be stored");
                Drafted::NotShown
            }
        };
        crash_point!("draft_claimed");
        drafted
    }

    /// Shows a draft where it is no message.
    async fn show_text(&self, text: &str) -> Drafted {
        match self.turn.obligation.clear_draft(text) {
            Some(draft) => self.show_draft(&draft, None).await,
            None => Drafted::Waits,
        }
    }

    async fn show_draft(&self, draft: &Cleared<Draft>, message: Option<String>) -> Drafted {
        let reply_to = self.turn.event.message_id.clone();
        let action = Action::Draft { text: draft.get().text.clone(), message, reply_to };
        match self.ephemerals.show(&self.turn, action, Class::Draft, Some(&self.stop)).await {
            Some(Ok(_)) => Drafted::Shown,
            Some(Err(_)) | None => Drafted::NotShown,
        }
    }
}
