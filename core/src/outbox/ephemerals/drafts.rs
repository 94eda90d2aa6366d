//! Drafts: the text of a run, shown while the run is in flight.
//!
//! Where drafts are messages, the first one is a delivery like any other: it has a row before its first byte, and
//! the guard knows its state. Later drafts edit its message, and are dropped if they cannot be sent at once.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::{Cleared, Draft, DraftTarget, Event, Shim};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::{
    activities::Activities,
    show::{Ephemerals, MIN_PAUSE},
};
use crate::{
    base::crash::crash_point,
    handles::{drafts::DraftText, steps::Steps},
    ledger::trigger::Trigger,
    model::{Action, Activity, Capabilities, Class, Support, TurnRecord, WorkStep},
    shown::{markdown::embedded::EmbeddedFiles, visibility},
};

/// How often the text is kept for other nodes at most.
const TELL: Duration = Duration::from_millis(500);

/// The longest pause between two first drafts that were not sent.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Shows the drafts of one run. Made when the run starts, ended before its signal is claimed.
pub(crate) struct Drafting {
    ephemerals: Arc<Ephemerals>,
    /// The minimum time between two drafts; `None` where the platform has none.
    interval: Option<Duration>,
    /// What the agent does; `None` where it is not shown.
    activities: Option<Activities>,
    /// Whether that is shown beside the text, with what it thinks.
    has_steps: bool,
    /// Cancelled when the run ends or drafts pause: no draft is sent after that.
    stop: CancellationToken,
    are_messages: bool,
    /// The files in the text, which come with the answer only.
    embedded: EmbeddedFiles,
    shim: Shim,
    text: Arc<DraftText>,
    task: Option<JoinHandle<()>>,
    is_paused: bool,
}

enum DraftResult {
    Shown,
    /// The first draft was claimed as a delivery.
    Claimed,
    /// It is what the first draft shows.
    Stands,
    /// There is no place for it now; the next change of the turn may bring one.
    Waits,
    /// With the time after which it can be tried again, if that is known.
    NotShown(Option<Duration>),
}

impl Drafting {
    /// `shows_activity`: whether drafts show what the agent does, where they can be edited.
    pub(crate) fn new(
        ephemerals: &Arc<Ephemerals>,
        capabilities: &Capabilities,
        stop: &CancellationToken,
        shows_activity: bool,
    ) -> Self {
        Self {
            ephemerals: Arc::clone(ephemerals),
            interval: (capabilities.drafts != Support::No).then_some(capabilities.draft_interval),
            activities: (shows_activity && capabilities.edit == Support::Full).then(Activities::default),
            has_steps: shows_activity && capabilities.draft_steps,
            stop: stop.child_token(),
            are_messages: capabilities.drafts_are_messages,
            embedded: EmbeddedFiles::default(),
            shim: Shim::default(),
            text: Arc::default(),
            task: None,
            is_paused: false,
        }
    }

    pub(crate) fn add(&mut self, turn: &TurnRecord, delta: &str) {
        if self.interval.is_none() {
            return;
        }
        let delta = self.embedded.push(delta);
        self.embedded.take_files();
        let retractions = self.shim.retractions();
        let visible = self.shim.push(&delta);
        self.text.add(&visible, self.shim.retractions() > retractions);
        if !visible.is_empty() {
            self.show(turn);
        }
    }

    /// Whether it shows what the agent does.
    pub(crate) const fn shows_activity(&self) -> bool {
        self.activities.is_some()
    }

    /// Whether it shows what the agent thinks.
    pub(crate) const fn shows_thoughts(&self) -> bool {
        self.has_steps
    }

    /// Shows what the agent does, or no longer that it does it.
    pub(crate) fn activity(&mut self, turn: &TurnRecord, activity: &Activity) {
        self.change_steps(turn, |steps| steps.act(activity));
        self.change_activities(turn, |activities| activities.update(activity));
    }

    /// Shows more of what the agent thinks.
    pub(crate) fn thought(&mut self, turn: &TurnRecord, more: &str) {
        self.change_steps(turn, |steps| steps.think(more));
    }

    /// The agent does nothing any more of what it did.
    pub(crate) fn end_activities(&mut self, turn: &TurnRecord) {
        self.change_steps(turn, Steps::fail);
        self.change_activities(turn, Activities::clear);
    }

    fn change_steps(&mut self, turn: &TurnRecord, change: impl FnOnce(&mut Steps)) {
        if self.has_steps {
            self.text.change_steps(change);
            self.show(turn);
        }
    }

    fn change_activities(&mut self, turn: &TurnRecord, change: impl FnOnce(&mut Activities)) {
        let Some(activities) = &mut self.activities else { return };
        let before = activities.line();
        change(activities);
        let line = activities.line();
        if line != before {
            self.text.set_activity(line);
            self.show(turn);
        }
    }

    fn show(&mut self, turn: &TurnRecord) {
        let Some(interval) = self.interval else { return };
        self.text.notify();
        if self.task.is_none() && !self.is_paused {
            let drafts = DraftTask {
                ephemerals: Arc::clone(&self.ephemerals),
                turn: turn.clone(),
                text: Arc::clone(&self.text),
                interval,
                are_messages: self.are_messages,
                has_steps: self.has_steps,
                stop: self.stop.clone(),
                told: Some(Told::default()),
            };
            self.task = Some(tokio::spawn(drafts.run()));
        }
    }

    /// Replaces all text of the run so far with `text`.
    pub(crate) fn rewrite(&mut self, turn: &TurnRecord, text: &str) {
        (self.embedded, self.shim) = (EmbeddedFiles::default(), Shim::default());
        self.text.add("", true);
        self.add(turn, text);
    }

    /// Stops showing drafts. Waits a moment for one that is in flight.
    pub(crate) async fn pause(&mut self) {
        self.is_paused = true;
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            // A panic of the task is ignored: the panic hook has logged it.
            let _ = task.await;
        }
    }

    /// Shows drafts again, from the next text on.
    pub(crate) fn resume(&mut self, stop: &CancellationToken) {
        self.is_paused = false;
        self.stop = stop.child_token();
    }

    /// Stops for good; see [`pause`](Self::pause).
    pub(crate) async fn end(mut self) {
        self.pause().await;
    }
}

pub(super) struct DraftTask {
    pub(super) ephemerals: Arc<Ephemerals>,
    pub(super) turn: TurnRecord,
    pub(super) text: Arc<DraftText>,
    pub(super) interval: Duration,
    pub(super) are_messages: bool,
    /// Whether drafts have the steps of the run beside the text.
    pub(super) has_steps: bool,
    pub(super) stop: CancellationToken,
    /// What other nodes were told of the text; `None` if it is that of a run of another node.
    pub(super) told: Option<Told>,
}

/// The text that is kept for other nodes.
#[derive(Default)]
pub(super) struct Told {
    text: String,
    /// When, in the clock's uptime.
    at: Option<Duration>,
}

impl DraftTask {
    pub(super) async fn run(mut self) {
        let drafts = Arc::clone(&self.ephemerals.drafts);
        let is_own = self.told.is_some();
        if self.are_messages && is_own {
            drafts.begin(self.turn.id, Arc::clone(&self.text), None);
        }
        self.show_all().await;
        if is_own {
            drafts.end(self.turn.id, &self.text);
        }
        if self.told.is_some_and(|told| told.at.is_some()) {
            self.ephemerals.remove_told(self.turn.id, self.turn.runs);
        }
    }

    /// Keeps the text for the nodes that show it, if there are any. Returns how long that has to wait, if it has to.
    async fn tell(&mut self, text: &str) -> Option<Duration> {
        let told = self.told.as_mut()?;
        if !self.ephemerals.may_be_shown_elsewhere(&self.turn) || told.text == text {
            return None;
        }
        let now = self.ephemerals.clock.uptime();
        let left = told.at.map(|at| (at + TELL).saturating_sub(now)).filter(|left| !left.is_zero());
        if left.is_none() {
            (told.text, told.at) = (text.to_owned(), Some(now));
            self.ephemerals.tell(&self.turn, Some(text)).await;
        }
        left
    }

    /// Shows the text whenever it has changed, until the run ends.
    async fn show_all(&mut self) {
        let mut not_sent = MIN_PAUSE;
        let mut is_claimed = false;
        let (mut shown, mut first) = ((String::new(), Vec::new()), None);
        loop {
            tokio::select! {
                () = self.text.changed() => {}
                () = self.stop.cancelled() => return,
            }
            let text = self.text.get(self.are_messages);
            let draft = if self.has_steps { self.text.with_steps() } else { (text.clone(), Vec::new()) };
            if !self.is_visible(&text) && draft.1.is_empty() {
                // Text that shows nothing.
                continue;
            }
            let untold = self.tell(&text).await;
            if untold.is_some() {
                self.text.notify();
            }
            if draft == shown {
                // Woken by a change of the turn without new text, or to tell other nodes.
                let Some(pause) = untold else { continue };
                tokio::select! {
                    () = self.ephemerals.clock.sleep(pause) => {}
                    () = self.stop.cancelled() => return,
                }
                continue;
            }
            let began = self.ephemerals.clock.uptime();
            let drafted = if self.ephemerals.is_shown_elsewhere(&self.turn) {
                DraftResult::Shown
            } else if self.are_messages {
                self.show_message(&draft.0, first.as_deref()).await
            } else {
                self.show_text(&draft.0, &draft.1).await
            };
            // From the beginning of one call to that of the next: a slow platform makes no draft later.
            let rest = self.interval.saturating_sub(self.ephemerals.clock.uptime().saturating_sub(began));
            let pause = match drafted {
                DraftResult::Shown => {
                    shown = draft;
                    rest
                }
                DraftResult::Stands => {
                    shown = draft;
                    continue;
                }
                DraftResult::Waits => MIN_PAUSE,
                DraftResult::Claimed if std::mem::replace(&mut is_claimed, true) => {
                    // An earlier first draft was claimed and not sent.
                    first = Some(draft.0);
                    not_sent = (not_sent * 2).min(MAX_PAUSE);
                    not_sent.max(self.interval)
                }
                DraftResult::Claimed => {
                    first = Some(draft.0);
                    rest
                }
                DraftResult::NotShown(until) => {
                    // Retries with the latest text, even if no more comes.
                    self.text.notify();
                    until.unwrap_or(self.interval).max(MIN_PAUSE)
                }
            };
            tokio::select! {
                () = self.ephemerals.clock.sleep(pause) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Whether the platform would show anything of a draft with this text.
    fn is_visible(&self, text: &str) -> bool {
        let channel = self.ephemerals.channels.get(&self.turn.event.conversation.channel).map(AsRef::as_ref);
        let draft = self.turn.obligation.clear_draft(text);
        draft.is_some_and(|draft| visibility::shows_anything(&draft.get().text, channel))
    }

    /// `first`: the text of the first draft, which need not be edited into itself.
    async fn show_message(&mut self, text: &str, first: Option<&str>) -> DraftResult {
        if !matches!(self.turn.obligation.draft_target(), DraftTarget::Message(_)) {
            // The first draft or a deferral may have been delivered meanwhile.
            match self.ephemerals.ledger.turn(self.turn.id).await {
                Ok(stored) => self.turn = stored,
                Err(_) => return DraftResult::NotShown(None),
            }
        }
        let message = match self.turn.obligation.draft_target() {
            DraftTarget::Message(_) if first == Some(text) => return DraftResult::Stands,
            DraftTarget::Message(message) => message.to_owned(),
            DraftTarget::Nowhere => return DraftResult::Waits,
            DraftTarget::New if self.ephemerals.is_blocked(&self.turn).await => return DraftResult::NotShown(None),
            DraftTarget::New => return self.claim_message(text).await,
        };
        let Some(draft) = self.turn.obligation.clear_draft(text) else { return DraftResult::Waits };
        self.show_draft(Some(&draft), Vec::new(), Some(message)).await
    }

    async fn claim_message(&mut self, text: &str) -> DraftResult {
        let event = Event::Draft { text: text.to_owned() };
        let drafted = match self.ephemerals.ledger.decide(&mut self.turn, event, Trigger::Event).await {
            Ok(_) if self.turn.obligation.is_draft_pending() => DraftResult::Claimed,
            Ok(_) => DraftResult::Waits,
            Err(error) => {
                debug!(turn = %self.turn.id, %error, "cannot store a draft");
                DraftResult::NotShown(None)
            }
        };
        crash_point!("draft_claimed");
        drafted
    }

    async fn show_text(&self, text: &str, steps: &[WorkStep]) -> DraftResult {
        let draft = self.turn.obligation.clear_draft(text);
        // What the agent does is no word of its answer, and stands before there is one.
        if draft.is_none() && (steps.is_empty() || !self.turn.obligation.may_draft()) {
            return DraftResult::Waits;
        }
        self.show_draft(draft.as_ref(), steps.to_vec(), None).await
    }

    async fn show_draft(
        &self,
        draft: Option<&Cleared<Draft>>,
        steps: Vec<WorkStep>,
        message: Option<String>,
    ) -> DraftResult {
        let reply_to = self.turn.event.message_id.clone();
        let text = draft.map(|draft| draft.get().text.clone()).unwrap_or_default();
        let action = Action::Draft { text, steps, message, reply_to };
        match self.ephemerals.show(&self.turn, action, Class::Draft, Some(&self.stop)).await {
            Some(Ok(_)) => DraftResult::Shown,
            Some(Err(error)) => DraftResult::NotShown(error.retry_after()),
            None => DraftResult::NotShown(self.ephemerals.refill(&self.turn, Class::Draft).await),
        }
    }
}
