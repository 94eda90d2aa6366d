//! Slots, the right to run turns: one per conversation, within the bounds of the gateway and of each agent.
//!
//! They are those of this node. Where other nodes run turns of the same conversations, a row of the store decides which one has the slot:
//! a turn that does not begin because of that gives its slot here back. Of an agent's permits each node has a share.

mod late;
pub(crate) mod permit;
mod permits;
mod promises;
mod rows;
pub(crate) mod run;
mod state;
mod suspension;
pub(crate) mod waiting;

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use self::{
    late::LateRuns,
    permit::Permit,
    permits::{Demand, Permits},
    promises::PATIENCE,
    run::{HeldRun, RunInFlight, RunKey, RunTokens},
    state::{Held, State},
    waiting::{WaitingConversation, by_agent, unread},
};
use crate::{
    model::{AgentName, ConversationId, TurnId, Version},
    ports::{SharedClock, WaitingTurn},
};

/// The version of a turn that is about to be stored.
const NEW: Version = 1;

/// How long rows are gathered before they are promised permits. Otherwise each would cost a round, which also reads the rows that
/// were promised permits before.
const GATHERING: Duration = Duration::from_millis(10);

/// The conversations that hold a slot, and the permits that bound how many of them run a turn.
pub(crate) struct Slots {
    state: Mutex<State>,
    wake: Notify,
    /// Told when this node or another one lacks permits.
    short: Notify,
    /// Whether the slot of a conversation was found to be another node's since that was asked last.
    elsewhere: AtomicBool,
    stopping: CancellationToken,
    clock: SharedClock,
}

/// A conversation's slot. It is given back with [`release`](Self::release) or [`leave_to`](Self::leave_to); if it is
/// dropped without, as in a panic, the scheduler looks for waiting rows of every agent.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    conversation: ConversationId,
    /// Those of the run that holds the slot. Every run has its own, so that a late stop of an earlier run does not affect
    /// it.
    tokens: RunTokens,
    late: CancellationToken,
    /// Whether no turn began since the permit was given.
    is_fresh: bool,
    /// Told when the permit is there that its first turn was promised; `None` if it was not, or waits no more.
    promised: Option<Arc<Notify>>,
    left: Left,
    /// While the first turn has not begun: the round of the scheduler that gave the slot.
    round: Option<Starting>,
}

/// Shows a round of the scheduler that not all conversations that were given slots in it have begun their turns.
pub(crate) type Starting = mpsc::Sender<Infallible>;

/// The rows of its conversation that wait when a slot is given back, as far as its holder knows.
pub(crate) enum Left {
    Unknown,
    Nothing,
    For(AgentName),
}

/// A round of the scheduler: what it must look for, and how much.
pub(crate) struct Round {
    /// The agents with waiting rows, each with its mark.
    agents: Vec<(AgentName, u64)>,
    /// How many conversations without a slot are enough of each channel and agent: more than can be given or promised a permit.
    pub(crate) enough: usize,
    /// How many conversations of each channel and agent to read first. Some may hold slots.
    pub(crate) few: u32,
    /// How many to read if some of those hold slots already: more than can hold a slot.
    pub(crate) limit: u32,
}

impl Slots {
    /// `total`: the number of turns that run at once. `agents`: how many of them may be turns of each agent.
    pub(crate) fn new(
        total: usize,
        agents: impl IntoIterator<Item = (AgentName, usize)>,
        stopping: CancellationToken,
        clock: SharedClock,
    ) -> Self {
        let permits = Permits::new(total, agents);
        let state = State { held: HashMap::new(), late: LateRuns::default(), permits };
        let (wake, short, elsewhere) = (Notify::new(), Notify::new(), AtomicBool::new(false));
        Self { state: Mutex::new(state), wake, short, elsewhere, stopping, clock }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.permits.granted_until().is_some_and(|until| until <= self.clock.boottime()) {
            state.permits.expire();
        }
        state
    }

    /// Takes the slot of `conversation` for the first run of `turn`, if it is free, no turn of it waits, also for another agent, and a
    /// permit is left that no other conversation waits for, or can be [promised](promises).
    pub(crate) fn try_take(
        self: &Arc<Self>,
        conversation: ConversationId,
        turn: TurnId,
        permit: &Permit,
    ) -> Option<Slot> {
        let mut state = self.state();
        if state.permits.has_row(conversation) {
            return None;
        }
        if state.permits.may_take(&permit.agent) {
            return self.take(&mut state, conversation, (turn, NEW), Some(permit));
        }
        let is_free = state.permits.has_one_for(&permit.agent);
        let takes_late = || state.late.before(&permit.agent, &state.permits).is_some();
        if is_free || takes_late() || !state.permits.may_promise(&permit.agent) {
            return None;
        }
        self.promise(&mut state, conversation, (turn, NEW), permit.clone())
    }

    /// Whether only the store knows if a turn of a conversation waits: another node has told of one, or one may wait for another agent than
    /// this one, after a start at which more waited than were read.
    pub(crate) fn hide_row(&self, conversation: ConversationId, agent: &AgentName) -> bool {
        self.state().permits.hides_row(conversation, agent)
    }

    /// Takes a slot for which a permit is promised.
    fn promise(
        self: &Arc<Self>,
        state: &mut State,
        conversation: ConversationId,
        turn: (TurnId, Version),
        permit: Permit,
    ) -> Option<Slot> {
        let mut slot = self.take(state, conversation, turn, None)?;
        slot.promised = Some(Arc::default());
        if let Some(held) = state.held.get_mut(&conversation) {
            held.promised.clone_from(&slot.promised);
        }
        state.permits.promise(conversation, permit);
        Some(slot)
    }

    /// As [`try_take`](Self::try_take), but without a permit: [`Slot::acquire`] gets it later.
    pub(crate) fn try_reserve(
        self: &Arc<Self>,
        conversation: ConversationId,
        turn: TurnId,
        agent: &AgentName,
    ) -> Option<Slot> {
        let mut state = self.state();
        if state.permits.has_row(conversation) || !state.permits.may_take(agent) {
            return None;
        }
        self.take(&mut state, conversation, (turn, NEW), None)
    }

    fn take(
        self: &Arc<Self>,
        state: &mut State,
        conversation: ConversationId,
        (turn, waited): (TurnId, Version),
        permit: Option<&Permit>,
    ) -> Option<Slot> {
        if self.stopping.is_cancelled() || state.held.contains_key(&conversation) {
            return None;
        }
        if let Some(permit) = permit {
            state.permits.give(permit);
        }
        let run = self.run(turn, 1);
        let (tokens, late) = (run.tokens.clone(), run.late.clone());
        let (permit, permitted_at) = (permit.cloned(), self.clock.uptime());
        let (more, promised, stored) = (HashSet::new(), None, None);
        state.held.insert(conversation, Held { run, waited, more, permit, permitted_at, promised, stored });
        Some(Slot {
            slots: Arc::clone(self),
            conversation,
            tokens,
            late,
            is_fresh: true,
            promised: None,
            left: Left::Unknown,
            round: None,
        })
    }

    fn run(&self, turn: TurnId, number: u32) -> HeldRun {
        HeldRun::new((turn, number), self.clock.uptime())
    }

    /// Notes that a row of `conversation` waits for a run of `agent`: the holder of its slot runs it, or the scheduler
    /// finds it.
    pub(crate) fn enqueue(&self, conversation: ConversationId, agent: &AgentName) {
        self.note(conversation, agent, Permits::fall_behind);
    }

    /// The same at the word of another node, which may have run the row since: until it was read here, new turns of other conversations
    /// do not wait for it. Otherwise they would be rows as well, of which this node would tell the others.
    pub(crate) fn hear_of(&self, conversation: ConversationId, agent: &AgentName) {
        self.note(conversation, agent, Permits::hear_of);
    }

    fn note(
        &self,
        conversation: ConversationId,
        agent: &AgentName,
        note: fn(&mut Permits, ConversationId, &AgentName),
    ) {
        let mut state = self.state();
        if let Some(held) = state.held.get_mut(&conversation) {
            held.more.insert(agent.clone());
            return;
        }
        note(&mut state.permits, conversation, agent);
        self.pass_on(&mut state);
    }

    /// Notes that rows of any agent may wait which no holder of a slot knows of.
    pub(crate) fn fall_behind(&self) {
        let mut state = self.state();
        state.permits.all_fall_behind();
        self.pass_on(&mut state);
    }

    /// The agents, each with its mark: before rows are read that are to be [noted](Self::note_rows).
    pub(crate) fn marks(&self) -> Vec<(AgentName, u64)> {
        self.state().permits.marks()
    }

    /// Notes the rows that wait: these `candidates`, of which at most `limit` were read for each channel and agent, after the `marks`.
    pub(crate) fn note_rows(&self, marks: &[(AgentName, u64)], mut candidates: Vec<WaitingConversation>, limit: u32) {
        let unread = unread(&candidates, limit);
        let mut state = self.state();
        state.leave_to_holders(&mut candidates);
        state.settle(marks, &candidates, &unread);
        self.pass_on(&mut state);
    }

    /// Gives permits that are free to runs that may go on and to turns that were promised one, and wakes the scheduler if turns
    /// wait that may run.
    fn pass_on(&self, state: &mut State) {
        let now = self.clock.uptime();
        state.late.let_resume(now, &mut state.permits);
        state.keep_promises(now);
        if state.needs_round() {
            self.wake.notify_one();
        }
        if state.permits.are_short() {
            self.short.notify_one();
        }
    }

    /// Sets how many turns of an agent may run on this node. Those in flight go on, also if they are more.
    pub(crate) fn set_limit(&self, agent: &AgentName, all: usize) {
        let mut state = self.state();
        state.permits.set_limit(agent, all);
        self.pass_on(&mut state);
    }

    /// Tells the runs of an agent that another node has a worker and this one has none. Not late runs: their turns have answers.
    pub(crate) fn withdraw_runs(&self, agent: &AgentName) {
        let state = self.state();
        let is_its = |held: &&Held| held.permit.as_ref().is_some_and(|permit| permit.agent == *agent);
        state.held.values().filter(is_its).for_each(|held| held.run.tokens.withdraw.notify_one());
    }

    /// Sets until when this node has what was granted, on the clock's boottime. After that no turn begins of an agent whose limit was set.
    pub(crate) fn granted_until(&self, until: Duration) {
        self.state().permits.set_granted_until(until);
    }

    /// Keeps no more of an agent's permits than its runs need that are in flight.
    pub(crate) fn keep_used(&self, agent: &AgentName) {
        let mut state = self.state();
        let resuming = state.late.resuming(agent);
        state.permits.keep_used(agent, resuming);
    }

    /// What this node has and needs of an agent's permits.
    pub(crate) fn demand(&self, agent: &AgentName) -> Demand {
        let state = self.state();
        state.permits.demand(agent, state.late.resuming(agent))
    }

    /// Whether runs of an agent wait for a permit here to go on.
    pub(crate) fn are_resuming(&self, agent: &AgentName) -> bool {
        self.state().late.resuming(agent) > 0
    }

    /// Whether other nodes have no share of the permits.
    pub(crate) fn has_all_permits(&self) -> bool {
        self.state().permits.are_whole()
    }

    /// Another node lives, and none did so far: it has no permits while this node has all.
    pub(crate) fn note_joined(&self) {
        self.short.notify_one();
    }

    /// Returns when turns wait because other nodes have a share of their agent's permits, or when another node came.
    pub(crate) async fn lack_permits(&self) {
        self.short.notified().await;
    }

    /// Notes that another node has the slot of a conversation: its rows must be looked for later.
    pub(crate) fn note_elsewhere(&self) {
        self.elsewhere.store(true, Ordering::Relaxed);
    }

    /// Whether that was noted since this was called last.
    pub(crate) fn take_elsewhere(&self) -> bool {
        self.elsewhere.swap(false, Ordering::Relaxed)
    }

    /// Returns when a turn waits that may run, now or in the place of a late run, or [soon](GATHERING) after turns may be promised
    /// permits.
    pub(crate) async fn someone_is_next(&self) {
        let mut gathering = None;
        loop {
            if self.state().is_someone_next() {
                return;
            }
            if !self.state().needs_round() {
                gathering = None;
                self.wake.notified().await;
                continue;
            }
            let gathered = gathering.get_or_insert_with(|| self.clock.sleep(GATHERING));
            tokio::select! {
                () = self.wake.notified() => {}
                () = gathered => return,
            }
        }
    }

    pub(crate) fn begin_round(&self) -> Round {
        let mut state = self.state();
        let (to_read, free) = (state.permits.begin_reading(), state.permits.free());
        let enough = to_read.max(free + 1);
        let limit = |candidates: usize| u32::try_from(candidates).unwrap_or(u32::MAX);
        Round {
            agents: state.permits.behind().map(|(agent, mark)| (agent.clone(), mark)).collect(),
            enough,
            few: limit(to_read.max(free * 2 + 1)),
            limit: limit(state.held.len() + enough),
        }
    }

    /// Whether conversations that hold slots may hide others behind them: of some channel and agent, `limit` were read, and
    /// not enough of them hold none.
    pub(crate) fn hides_any(&self, round: &Round, limit: u32, candidates: &[WaitingConversation]) -> bool {
        let state = self.state();
        let mut counts: HashMap<_, (u32, usize)> = HashMap::new();
        for WaitingConversation { waiting, .. } in candidates {
            let (read, free) = counts.entry((&waiting.channel, &waiting.agent)).or_default();
            *read += 1;
            *free += usize::from(!state.held.contains_key(&waiting.conversation));
        }
        counts.values().any(|(read, free)| *read >= limit && *free < round.enough)
    }

    /// Takes the slot of the conversation that is next, and removes it from `candidates`, as well as those before it that hold
    /// a slot already. Returns the slot, and the conversation with its first turn. `None` if no conversation of `candidates` may
    /// run a turn.
    pub(crate) fn take_next(
        self: &Arc<Self>,
        candidates: &mut Vec<WaitingConversation>,
    ) -> Option<(Slot, WaitingTurn)> {
        let mut state = self.state();
        loop {
            let next = state.next(candidates)?;
            let row = candidates.swap_remove(next);
            if !state.leave_to_holder(&row) {
                return Some((self.take_row(&mut state, &row, false)?, row.waiting));
            }
        }
    }

    /// Takes the slot of a conversation for its first row, with a permit or the promise of one. Its holder is told of rows that came since
    /// the round began to read.
    fn take_row(
        self: &Arc<Self>,
        state: &mut State,
        WaitingConversation { waiting, agent }: &WaitingConversation,
        is_promised: bool,
    ) -> Option<Slot> {
        let has_come = state.permits.forget_row(waiting.conversation, agent);
        let permit = Permit { agent: agent.clone(), channel: waiting.channel.clone() };
        let first = (waiting.turn, waiting.version);
        let slot = if is_promised {
            self.promise(state, waiting.conversation, first, permit)?
        } else {
            self.take(state, waiting.conversation, first, Some(&permit))?
        };
        if has_come {
            state.note_more(waiting.conversation, agent.clone());
        }
        Some(slot)
    }

    /// The late run in whose place a run may go on, or one of `candidates` or a turn with a promise can run. Removes the candidates whose
    /// conversation holds a slot: they wait for that.
    pub(crate) fn late_run_before(&self, candidates: &mut Vec<WaitingConversation>) -> Option<TurnId> {
        let mut state = self.state();
        if state.late.is_empty() {
            return None;
        }
        state.leave_to_holders(candidates);
        let State { late, permits, .. } = &*state;
        let waiting = candidates.iter().map(|candidate| &candidate.agent);
        let before = late.before_resuming(permits);
        before.or_else(|| waiting.chain(permits.promising()).find_map(|agent| late.before(agent, permits)))
    }

    /// Takes the slots of the conversations of an agent, and promises them permits, if all that wait for it can be: none of them is
    /// `unread`. Removes them from `candidates`.
    pub(crate) fn take_promised(
        self: &Arc<Self>,
        candidates: &mut Vec<WaitingConversation>,
        unread: &HashSet<AgentName>,
    ) -> Vec<(Slot, WaitingConversation)> {
        let mut state = self.state();
        state.leave_to_holders(candidates);
        let mut agents = by_agent(candidates);
        agents.retain(|agent, rows| !unread.contains(agent) && state.permits.is_soon(agent, rows.len()));
        let mut rows: Vec<_> = candidates.extract_if(.., |candidate| agents.contains_key(&candidate.agent)).collect();
        rows.sort_unstable_by_key(|row| (row.waiting.position, row.waiting.rank));
        let promised = rows.into_iter().filter_map(|row| Some((self.take_row(&mut state, &row, true)?, row))).collect();
        // A permit may have become free since the round gave out the last one.
        self.pass_on(&mut state);
        promised
    }

    /// Stops the late run of `turn`, and takes its permit back at once: who waits does not wait for its end.
    pub(crate) fn end_late_run(&self, turn: TurnId) {
        let mut state = self.state();
        let State { late, permits, .. } = &mut *state;
        late.end(turn, permits);
        self.pass_on(&mut state);
    }

    /// Ends a round that has left these `candidates`: all that waited when it began, but for agents in `unread`.
    pub(crate) fn end_round(&self, round: &Round, candidates: &[WaitingConversation], unread: &HashSet<AgentName>) {
        self.state().settle(&round.agents, candidates, unread);
    }

    /// Stops run `run` of `turn`, if it holds the slot of `conversation` or goes on without one.
    pub(crate) fn stop_run(&self, conversation: ConversationId, turn: TurnId, run: u32) {
        if let Some(found) = self.state().find(conversation, (turn, run)) {
            found.tokens.stop.cancel();
        }
    }

    /// Stops the runs of a turn that is not stored any more.
    pub(crate) fn stop_runs_of(&self, turn: TurnId) {
        let state = self.state();
        let held = state.held.values().map(|held| &held.run).filter(|run| run.turn == turn && run.is_stored);
        for run in held.chain(state.late.of(turn)) {
            run.tokens.stop.cancel();
        }
    }

    /// Lets run `run` of `turn` go on without the slot of `conversation`.
    pub(crate) fn let_go_on(&self, conversation: ConversationId, turn: TurnId, run: u32) {
        if let Some(found) = self.state().find(conversation, (turn, run)) {
            found.tokens.show.cancel();
            found.late.cancel();
        }
    }

    /// Lets run `run` of `turn`, which waits for an approval, leave the slot of `conversation` with no permit.
    pub(crate) fn suspend_run(&self, conversation: ConversationId, turn: TurnId, run: u32) {
        let now = self.clock.uptime();
        let mut state = self.state();
        if let Some(found) = state.find_mut(conversation, (turn, run)) {
            found.suspension.begin(now);
            found.late.cancel();
        }
        let State { late, permits, .. } = &mut *state;
        late.give_back_if_suspended((turn, run), permits);
        self.pass_on(&mut state);
    }

    /// Lets a run that was suspended go on without a slot, once there is a permit for it.
    pub(crate) fn continue_run(&self, conversation: ConversationId, turn: TurnId, run: u32) {
        self.go_on(&mut self.state(), conversation, (turn, run));
    }

    /// As [`continue_run`](Self::continue_run), if a run still waits as it did when it was read as in flight.
    pub(crate) fn continue_suspended(&self, conversation: ConversationId, run: &RunInFlight) {
        let (mut state, key) = (self.state(), (run.turn, run.number));
        if state.find(conversation, key).is_some_and(|found| found.suspension.current() == run.suspension) {
            self.go_on(&mut state, conversation, key);
        }
    }

    fn go_on(&self, state: &mut State, conversation: ConversationId, run: RunKey) {
        let now = self.clock.uptime();
        if state.late.resumes_later(run) {
            self.pass_on(state);
        } else if let Some(found) = state.find_mut(conversation, run) {
            found.suspension.end(now);
            found.tokens.go_on.notify_one();
        }
    }

    /// A turn has its slot in the store no more.
    pub(crate) fn note_freed(&self, conversation: ConversationId, turn: TurnId) {
        if let Some(held) = self.state().held.get_mut(&conversation).filter(|held| held.stored == Some(turn)) {
            held.stored = None;
        }
    }

    /// Gives up the permit of the slot of `conversation`, if run `run` of `turn` holds it. A late run keeps its permit, and the slot
    /// is the next turn's.
    pub(crate) fn release_permit(&self, conversation: ConversationId, turn: TurnId, run: u32) {
        let now = self.clock.uptime();
        let mut state = self.state();
        let State { held, permits, .. } = &mut *state;
        if let Some(held) = held.get(&conversation).filter(|held| held.run.key() == (turn, run)) {
            if let Some(permit) = &held.permit {
                permits.observe(&permit.agent, now.saturating_sub(held.permitted_at));
            }
            state.take_back_from(conversation);
        }
        self.pass_on(&mut state);
    }

    pub(crate) fn holder(&self, conversation: ConversationId) -> Option<TurnId> {
        self.state().held.get(&conversation).map(|held| held.run.turn)
    }

    /// The turns with runs in flight. A run is among them before it is stored, and until its end is stored or given up.
    pub(crate) fn in_flight(&self) -> Vec<TurnId> {
        let state = self.state();
        state.held.values().map(|held| held.run.turn).chain(state.late.turns()).collect()
    }

    /// The runs in flight that are stored.
    pub(crate) fn runs(&self) -> Vec<RunInFlight> {
        let state = self.state();
        let held = state.held.values().map(|held| &held.run).filter(|run| run.is_stored);
        held.chain(state.late.all()).map(HeldRun::in_flight).collect()
    }

    /// How long the run of `turn` has taken, if one is in flight, without the time for which it waited for approvals.
    pub(crate) fn ran(&self, conversation: ConversationId, turn: TurnId) -> Option<Duration> {
        let uptime = self.clock.uptime();
        self.state().latest(conversation, turn).map(|run| run.ran(uptime))
    }
}

impl Slot {
    /// Those of the run that holds the slot.
    pub(crate) const fn tokens(&self) -> &RunTokens {
        &self.tokens
    }

    /// The run that holds the slot is stored, and begins.
    pub(crate) fn run_begins(&self) {
        if let Some(held) = self.slots.state().held.get_mut(&self.conversation) {
            held.run.is_stored = true;
            held.stored = Some(held.run.turn);
        }
    }

    /// The run that the permit was given for has ended.
    pub(crate) const fn run_ended(&mut self) {
        self.is_fresh = false;
    }

    /// Cancelled when the run that holds the slot goes on, or waits, without it.
    pub(crate) const fn late(&self) -> &CancellationToken {
        &self.late
    }

    /// Takes the run out of the slot, which is free for the next turn: with its permit, unless it waits for an approval.
    pub(crate) fn leave_run(&mut self) -> Option<LateRun> {
        let mut state = self.slots.state();
        let held = state.held.get_mut(&self.conversation)?;
        let (run, permit) = (held.run.clone(), held.permit.take());
        let key = run.key();
        let State { late, permits, .. } = &mut *state;
        late.add(run, permit, permits);
        self.slots.pass_on(&mut state);
        Some(LateRun { slots: Arc::clone(&self.slots), run: key })
    }

    pub(crate) const fn conversation(&self) -> ConversationId {
        self.conversation
    }

    /// Whether a turn can run in it, now or soon; one that is only reserved has no permit yet.
    pub(crate) fn may_begin(&self) -> bool {
        self.promised.is_some() || self.has_permit()
    }

    fn has_permit(&self) -> bool {
        self.slots.state().held.get(&self.conversation).is_some_and(|held| held.permit.is_some())
    }

    /// Waits for the permit if it was promised. `false` if the turn cannot run now: none came in time, or it is stopped.
    pub(crate) async fn gets_permit(&mut self) -> bool {
        let Some(promised) = self.promised.take() else { return true };
        let is_late = tokio::select! {
            () = promised.notified() => false,
            () = self.slots.clock.sleep(PATIENCE) => true,
            () = self.tokens.stop.cancelled() => false,
            () = self.slots.stopping.cancelled() => false,
        };
        let mut state = self.slots.state();
        let Some(held) = state.held.get_mut(&self.conversation) else { return false };
        let has_permit = held.permit.is_some();
        match held.promised.take() {
            Some(_) if is_late => state.permits.break_promise(self.conversation),
            Some(_) => state.permits.forget_promise(self.conversation),
            None => {}
        }
        has_permit
    }

    /// Makes the scheduler wait with its next round until the first turn has [begun](Self::has_begun): until that is stored,
    /// the turn would be read again.
    pub(crate) fn begins_in(&mut self, round: Starting) {
        self.round = Some(round);
    }

    /// The first turn has begun, or does not begin now.
    pub(crate) fn has_begun(&mut self) {
        self.round = None;
    }

    /// Makes `run` of `turn` the run that holds the slot, with a new token. `waited`: the version of the turn before.
    pub(crate) fn begin(&mut self, turn: TurnId, waited: Version, run: u32) {
        let run = self.slots.run(turn, run);
        (self.tokens, self.late, self.is_fresh) = (run.tokens.clone(), run.late.clone(), false);
        if let Some(held) = self.slots.state().held.get_mut(&self.conversation) {
            (held.run, held.waited) = (run, waited);
        }
    }

    /// Whether more rows of the conversation came; clears the flag.
    pub(crate) fn take_more(&self) -> bool {
        let mut state = self.slots.state();
        state.held.get_mut(&self.conversation).is_some_and(|held| !std::mem::take(&mut held.more).is_empty())
    }

    /// Gives up the permit, so that others can run meanwhile; [`acquire`](Self::acquire) gets a new one.
    pub(crate) fn release_permit(&mut self) {
        let mut state = self.slots.state();
        state.take_back_from(self.conversation);
        self.slots.pass_on(&mut state);
    }

    /// Makes sure that the slot has `permit` for its next turn. `false` if it must be given back: none is left, or
    /// others are next.
    pub(crate) fn acquire(&mut self, permit: &Permit) -> bool {
        let mut state = self.slots.state();
        let current = state.held.get_mut(&self.conversation).and_then(|held| held.permit.take());
        let keeps = current.as_ref() == Some(permit) && (self.is_fresh || !state.permits.is_contended(&permit.agent));
        if !keeps && let Some(current) = current {
            state.permits.take_back(&current);
        }
        let takes = !keeps && state.permits.may_take(&permit.agent);
        if takes {
            state.permits.give(permit);
        }
        if (keeps || takes)
            && let Some(held) = state.held.get_mut(&self.conversation)
        {
            let since = if keeps && self.is_fresh { held.permitted_at } else { self.slots.clock.uptime() };
            held.permit(permit.clone(), since);
        }
        self.slots.pass_on(&mut state);
        keeps || takes
    }

    /// The turn that may still have the slot in the store: its end was decided before that of its run.
    pub(crate) fn stored(&self) -> Option<TurnId> {
        self.slots.state().held.get(&self.conversation).and_then(|held| held.stored)
    }

    /// Gives the slot back. The scheduler looks for rows that came meanwhile.
    pub(crate) fn release(self) {
        self.leave(Left::Nothing);
    }

    /// Gives the slot back; a row of the conversation waits for a run of `agent`.
    pub(crate) fn leave_to(self, agent: AgentName) {
        self.leave(Left::For(agent));
    }

    pub(crate) fn leave(mut self, left: Left) {
        self.left = left;
    }
}

/// A run that goes on without a slot, until this is dropped. It keeps its permit unless it is suspended, or its person has had their
/// word and a turn waits.
pub(crate) struct LateRun {
    slots: Arc<Slots>,
    run: RunKey,
}

impl Drop for LateRun {
    fn drop(&mut self) {
        let mut state = self.slots.state();
        let State { late, permits, .. } = &mut *state;
        late.remove(self.run, permits);
        self.slots.pass_on(&mut state);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.slots.state();
        let Some(Held { more, permit, promised, .. }) = state.held.remove(&self.conversation) else { return };
        if promised.is_some() {
            state.permits.forget_promise(self.conversation);
        }
        if let Some(permit) = permit {
            state.permits.take_back(&permit);
        }
        match &self.left {
            Left::Unknown => state.permits.all_fall_behind(),
            Left::Nothing => {}
            Left::For(agent) => state.permits.fall_behind(self.conversation, agent),
        }
        for agent in &more {
            state.permits.fall_behind(self.conversation, agent);
        }
        self.slots.pass_on(&mut state);
    }
}

#[cfg(test)]
mod tests;
