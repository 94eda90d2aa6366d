//! Does what the hints of other nodes call for, and looks each second at what they are about while other nodes live.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use tracing::debug;

use super::sweep::Sweep;
use crate::{
    base::{lifecycle::Lifecycle, timer::Timer},
    conversations::{activity::Activity, addresses::Addresses},
    handles::{
        hearings::Hearings,
        lanes::Lanes,
        slots::{Slots, run::RunInFlight},
    },
    ledger::Ledger,
    model::{ChannelId, LiveSettings, TurnId, TurnRecord, Version},
    nodes::{
        hints::{Follower, Hints},
        leases::Leases,
    },
    outbox::{caller::Caller, ephemerals::elsewhere::RunsElsewhere},
    people::People,
    ports::{Hint, HintStore, Hub, Noun, OutboxStore, SharedClock, StoreError, ViewStore},
    questions::{approvals::Approvals, open_questions::OpenQuestions},
    schedules::Calendar,
};

/// After how many looks the drafts of nodes that are over are removed: once a minute.
const REMOVE_EVERY: u32 = 60;

/// Follows what other nodes do.
pub(crate) struct HintFollower {
    pub(crate) hints: Arc<Hints>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) store: Arc<dyn HintStore>,
    pub(crate) views: Arc<dyn ViewStore>,
    pub(crate) outbox: Arc<dyn OutboxStore>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) sweep: Arc<Sweep>,
    pub(crate) elsewhere: RunsElsewhere,
    pub(crate) hub: Arc<Hub>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) hearings: Arc<Hearings>,
    pub(crate) timer: Arc<Timer>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) people: Arc<People>,
    pub(crate) calendar: Arc<Calendar>,
    pub(crate) questions: Arc<OpenQuestions>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
    /// The versions of the turns that run here or are watched here, as they were looked at last.
    pub(crate) seen: Mutex<HashMap<TurnId, Version>>,
    /// Whether hints may have been lost, and what they were about has not been done yet.
    pub(crate) has_missed: AtomicBool,
    /// How often it has looked at everything.
    pub(crate) looks: AtomicU32,
}

#[async_trait]
impl Follower for HintFollower {
    fn joined(&self) {
        self.addresses.forget_all();
        self.slots.note_joined();
    }

    fn missed(&self) {
        self.hub.resync();
        self.has_missed.store(true, Ordering::Relaxed);
    }

    async fn follow(&self, hints: HashSet<Hint>) {
        let (mut turns, mut runs, mut drafts, mut urgent, mut others) = (vec![], vec![], vec![], vec![], vec![]);
        for hint in hints {
            match hint {
                Hint::Turn(channel, turn) if self.hub.has_listeners(turn, &channel) => turns.push(turn),
                Hint::Turn(..) => {}
                Hint::Run(turn) => runs.push(turn),
                Hint::Draft(turn) => drafts.push(turn),
                Hint::Asked(..) | Hint::Tried(_) | Hint::Paused(_) => urgent.push(hint),
                _ => others.push(hint),
            }
        }
        // What stops a run, or keeps something from being sent, comes first.
        note(self.look_at_runs(&runs).await);
        for hint in urgent.into_iter().chain(others) {
            note(self.follow_one(hint).await);
        }
        if !turns.is_empty() {
            note(self.publish(&turns).await);
            note(self.elsewhere.look().await);
        }
        if !drafts.is_empty() {
            note(self.elsewhere.show(&drafts).await);
        }
    }

    async fn look(&self) {
        // Rows that other nodes have stored may be due. Turns that wait are looked for with the permits.
        self.timer.wake_now();
        self.questions.look_again();
        self.approvals.look_again();
        note(self.look_at_turns().await);
        note(self.look_at_marks().await);
        note(self.make_up_for_missed().await);
        note(self.remove_old_drafts().await);
        note(self.elsewhere.look().await);
        note(self.elsewhere.catch_up().await);
        note(self.read_pauses().await);
        note(self.people.refresh(self.people.seen()).await);
        note(self.calendar.refresh().await);
    }
}

/// What fails now is looked at again in a second.
fn note(result: Result<(), StoreError>) {
    if let Err(error) = result {
        debug!(%error, "cannot look at what another node may have changed");
    }
}

impl HintFollower {
    /// Follows hints until the gateway has ended.
    pub(crate) async fn run(self: Arc<Self>, lifecycle: Lifecycle) {
        self.hints.run(&*self, &lifecycle).await;
    }

    async fn follow_one(&self, hint: Hint) -> Result<(), StoreError> {
        match hint {
            Hint::Lane(channel, conversation) if self.holds(&channel) => self.lanes.open(&channel, conversation),
            Hint::Asked(channel, conversation, delivery) if self.holds(&channel) => {
                self.caller.health.allow(&channel);
                self.lanes.ask(&channel, conversation, delivery);
            }
            Hint::Tried(channel) if self.holds(&channel) => self.caller.health.try_now(&channel),
            Hint::Waiting(agent, conversation) => self.slots.hear_of(conversation, &agent),
            Hint::Noun(Noun::People) => self.people.refresh(self.people.seen()).await?,
            Hint::Noun(Noun::Schedules) => self.calendar.refresh().await?,
            Hint::Questions => {
                self.questions.look_again();
                self.approvals.look_again();
            }
            Hint::Paused(_) => self.read_pauses().await?,
            Hint::Leftovers(channel, turn) if self.holds(&channel) => {
                if let Some(turn) = self.views.readable_turn(turn).await? {
                    self.ledger.executor.remove_left_elsewhere(turn);
                }
            }
            Hint::Words(channel, turn) if self.holds(&channel) => {
                self.hearings.begin(turn);
            }
            Hint::Said(turn) if self.leases.is_housekeeper() => {
                if let Some(turn) = self.views.readable_turn(turn).await? {
                    let (settings, known) = (self.settings.get(), self.people.known());
                    self.activity.note(&turn, &settings.triggers, &known, self.clock.now());
                }
            }
            Hint::DeadLetter(turn) if self.leases.is_housekeeper() => {
                self.ledger.executor.undeliverable.send_elsewhere(turn);
            }
            // Sessions are read from the store, tokens by the gateway, and the log up to where the store says.
            Hint::Noun(Noun::SessionsIn(_) | Noun::SessionsOf(_) | Noun::Tokens) | Hint::Log | Hint::All
            // Several are looked at together.
            | Hint::Turn(..) | Hint::Run(_) | Hint::Draft(_)
            // Another node does it.
            | Hint::Lane(..) | Hint::Asked(..) | Hint::Tried(_) | Hint::Leftovers(..) | Hint::Words(..) | Hint::Said(_)
            | Hint::DeadLetter(_) => {}
        }
        Ok(())
    }

    fn holds(&self, channel: &ChannelId) -> bool {
        self.leases.holds(channel).is_some()
    }

    /// Publishes turns to the clients that wait for them here.
    async fn publish(&self, turns: &[TurnId]) -> Result<(), StoreError> {
        for (version, view) in self.views.views_of(turns).await? {
            self.hub.publish(version, Arc::new(view));
        }
        Ok(())
    }

    /// Looks at those of the turns that run here, whatever their versions are.
    async fn look_at_runs(&self, turns: &[TurnId]) -> Result<(), StoreError> {
        if turns.is_empty() {
            return Ok(());
        }
        let runs = self.slots.runs();
        for id in turns {
            let of_it: Vec<_> = runs.iter().filter(|run| run.turn == *id).copied().collect();
            if !of_it.is_empty()
                && let Some(turn) = self.turn_of(*id).await?
            {
                self.compare(&turn, &of_it);
            }
        }
        Ok(())
    }

    /// Looks at the turns that run here or are watched here, as far as they were changed since the last look.
    async fn look_at_turns(&self) -> Result<(), StoreError> {
        // Before the rows are read: what is suspended or stored by then is so in them, unless another node has decided on it since.
        let runs = self.slots.runs();
        let looked_at = {
            let mut seen = self.seen();
            let ids = runs.iter().map(|run| run.turn).chain(self.hub.watched());
            let looked_at: HashMap<TurnId, Version> =
                ids.map(|turn| (turn, seen.get(&turn).copied().unwrap_or_default())).collect();
            seen.clone_from(&looked_at);
            looked_at.into_iter().collect::<Vec<_>>()
        };
        if looked_at.is_empty() {
            return Ok(());
        }
        let (mut shown, mut versions) = (Vec::new(), Vec::new());
        for id in self.store.changed_turns(&looked_at).await? {
            let Some(turn) = self.turn_of(id).await? else { continue };
            let of_it: Vec<_> = runs.iter().filter(|run| run.turn == id).copied().collect();
            self.compare(&turn, &of_it);
            if self.hub.has_listeners(id, &turn.event.conversation.channel) {
                shown.push(id);
            }
            versions.push((id, turn.version));
        }
        if !shown.is_empty() {
            self.publish(&shown).await?;
        }
        self.seen().extend(versions);
        Ok(())
    }

    /// A turn, if it can be read. If it was removed, its runs stop: nobody waits for them.
    async fn turn_of(&self, id: TurnId) -> Result<Option<TurnRecord>, StoreError> {
        match self.views.turn(id).await {
            Ok(None) => {
                self.slots.stop_runs_of(id);
                Ok(None)
            }
            Err(StoreError::CorruptTurn { .. }) => Ok(None),
            read => read,
        }
    }

    /// Removes the marks of messages that do not wait any more, because another node has begun or ended their turns.
    async fn look_at_marks(&self) -> Result<(), StoreError> {
        let executor = &self.ledger.executor;
        let marked = executor.marks.turns();
        if marked.is_empty() {
            return Ok(());
        }
        for id in self.store.changed_turns(&marked).await? {
            match self.views.turn(id).await {
                Ok(Some(turn)) => executor.remove_left_elsewhere(turn),
                Ok(None) => executor.marks.forget(id),
                Err(StoreError::CorruptTurn { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes the drafts of nodes that are over, if this node is the housekeeper.
    async fn remove_old_drafts(&self) -> Result<(), StoreError> {
        let is_time = self.looks.fetch_add(1, Ordering::Relaxed).is_multiple_of(REMOVE_EVERY);
        if is_time && self.leases.is_housekeeper() { self.store.remove_old_drafts().await } else { Ok(()) }
    }

    /// After hints were lost: removes what turns have left that other nodes have ended, and tries what waits on the channels of this node,
    /// because an operator may have wanted that.
    async fn make_up_for_missed(&self) -> Result<(), StoreError> {
        if !self.hints.neighbours.any() || !self.has_missed.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let removed = self.sweep.recover_missed().await;
        if removed.is_err() {
            self.has_missed.store(true, Ordering::Relaxed);
            return removed;
        }
        for channel in self.sweep.held() {
            if self.caller.gate.paused(&channel).is_none() {
                self.caller.health.allow(&channel);
                self.caller.health.hurry_soon(&channel);
            }
        }
        Ok(())
    }

    /// Stops or continues runs of a turn if another node has decided so. The turn was read after these runs were in flight.
    fn compare(&self, turn: &TurnRecord, runs: &[RunInFlight]) {
        let (obligation, conversation, id) = (&turn.obligation, turn.conversation, turn.id);
        for run in runs {
            let RunInFlight { number, suspension, .. } = run;
            if turn.runs > *number || (turn.runs == *number && !obligation.is_running()) {
                self.slots.stop_run(conversation, id, *number);
            } else if obligation.is_late() {
                self.slots.let_go_on(conversation, id, *number);
            } else if suspension.is_some() && !obligation.is_suspended() {
                self.slots.continue_suspended(conversation, run);
            }
        }
        self.ledger.executor.drafts.notify(id, obligation.may_draft());
    }

    async fn read_pauses(&self) -> Result<(), StoreError> {
        let gate = &self.caller.gate;
        let _pausing = gate.pausing.lock().await;
        for channel in gate.replace_pauses(self.outbox.paused().await?) {
            if self.holds(&channel) {
                self.caller.health.hurry_soon(&channel);
            }
        }
        Ok(())
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<TurnId, Version>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
