//! Decides which turn runs next: a conversation runs one turn at a time, and its other turns wait as rows. No agent is
//! called here: the worker runs the turn.
//!
//! Memory holds a slot for each conversation that has a turn running, and of the turns that wait no more than the few
//! hundred that were accepted last. Permits bound how many turns run at once, in all and of each agent. While permits are
//! left, a turn runs as soon as it is accepted. It is also stored as running if a permit will be free for it within a second, after
//! all that wait and going by how long the agent's runs take: such turns get theirs in the order in which they came, and one that has
//! none after two seconds waits as a row. The rows of an agent are promised permits as well, as soon as all of them can be: otherwise a
//! crowd for which there was no room once would be rows for good. As long as there are too many, the permits that become free are
//! given out by these rules, the first of which counts most:
//!
//! 1. A turn waits for its own agent's permits only: an agent that hangs keeps no turn of another agent waiting, but for later turns of
//!    a conversation with one that waits for it.
//! 2. A turn that is owed an answer goes before talk that is not. Talk lets [`AMBIENT_LAG`] later turns pass, and then
//!    takes part like any other: it is run in the end.
//! 3. The channel with the fewest running turns is next; of several, the one that was given a permit the longest ago.
//! 4. Within a channel, the conversation is next whose first waiting turn came first. A person's next conversation, and
//!    the next turn of the same one, takes its position [`PERSON_STEP`] turns later: of `n` turns that a person has waiting,
//!    no more than the first, and one for every [`PERSON_STEP`] turns that were accepted since, run before the first
//!    turn of somebody else.
//!
//! A run that goes on past its deadline keeps its permit only while no turn waits for one: the oldest of them ends for a turn
//! that waits. So nobody waits behind a run whose person has had their word.
//!
//! A run that goes on after an approval gets a permit before all turns that wait.
//!
//! A new conversation overtakes nobody's first turn, and every turn is overtaken by a bounded number of others.
//!
//! Several nodes run turns of one store. Any of them that has a permit takes the next turn, and a row decides which turn of a conversation
//! runs: a turn that cannot begin because of that is left to the node that has the row, and [looked for](sharing) again. Of conversations
//! within [`PERSON_STEP`] positions a node prefers those whose turn it accepted itself and has in memory. What another node tells of is
//! looked for once a permit is free here that was promised to no turn, and each second. New turns wait for it once it was read.
//!
//! A voice note that is being written down keeps its place: it begins once the words have come, and no later turn of its conversation
//! before. It takes no permit meanwhile.
//!
//! Within a conversation turns run in the order in which they came, those that are owed an answer first: also if a later one is for
//! another agent, which is free. [`Merges`] says which of them begin together.
//!
//! [`AMBIENT_LAG`]: waiting_order::AMBIENT_LAG
//! [`PERSON_STEP`]: waiting_order::PERSON_STEP

pub(crate) mod sharing;
pub(crate) mod waiting_order;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use rejoinder_guard::{CancelledBy, Event, Expectation};
use tokio::sync::mpsc;
use tracing::{debug, error, warn};

use crate::{
    base::{lifecycle::Lifecycle, pauses, recent_turns::RecentTurns},
    events::{Run, TurnEvents},
    handles::{
        hearings::Hearings,
        slots::{
            Left, Slot, Slots,
            permit::Permit,
            waiting::{self, WaitingConversation},
        },
    },
    ledger::{
        Ledger,
        trigger::{Decided, Trigger},
    },
    merges::{self, MergeGroup, Merges},
    model::{AgentName, ConversationId, EventKind, NodeId, QueueMode, TurnId, TurnRecord},
    nodes::neighbours::Neighbours,
    outbox::ephemerals::marker::Marker,
    ports::{Hint, QueueStore, RunEnd, StoreError, WaitingTurn},
    worker::Worker,
};

/// How long a round waits for the turns of the one before to begin.
const PATIENCE: Duration = Duration::from_millis(100);

/// Gives slots to conversations with waiting turns, and runs these turns.
pub(crate) struct Scheduler {
    pub(crate) slots: Arc<Slots>,
    pub(crate) store: Arc<dyn QueueStore>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) worker: Arc<Worker>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) merges: Arc<Merges>,
    pub(crate) marker: Arc<Marker>,
    pub(crate) hearings: Arc<Hearings>,
    /// The latest accepted turns that wait, and [begin by themselves](merges::begins_by_itself) if they are alone.
    pub(crate) recent: RecentTurns,
    /// This process.
    pub(crate) node: NodeId,
    pub(crate) neighbours: Arc<Neighbours>,
}

/// What became of a turn that was to begin.
enum Beginning {
    Begun,
    /// It did not change.
    Unchanged,
    /// It was changed since it was read.
    Changed,
    /// Another node runs a turn of its conversation.
    Elsewhere,
}

impl Beginning {
    const fn of(is_changed: bool) -> Self {
        if is_changed { Self::Begun } else { Self::Unchanged }
    }
}

impl Scheduler {
    /// Runs `turn`, whose run was decided on already, and then the turns that wait in its conversation.
    pub(crate) fn run_now(self: &Arc<Self>, slot: Slot, turn: TurnRecord, run: Run) {
        self.spawn(move |scheduler| async move {
            let mut slot = slot;
            // It is stored since the turn was accepted: others may stop it while it waits for its permit.
            slot.run_begins();
            if slot.gets_permit().await {
                scheduler.run_turn(&mut slot, turn, run).await;
            } else {
                scheduler.put_back(turn, &run, "it had no permit to begin").await;
            }
            if slot.take_more() {
                scheduler.run_waiting_turns(slot, None).await;
            } else {
                scheduler.give_back(slot, Left::Nothing).await;
            }
        });
    }

    /// Has a turn wait for another run than `run`, which was stored as running and did not begin.
    pub(crate) async fn put_back(&self, mut turn: TurnRecord, run: &Run, why: &str) {
        let end = RunEnd::new(turn.id, run.number, run.started_at, "interrupted".to_owned(), Some(why.to_owned()));
        let trigger = Trigger::RunEnded { end, remark: None, at_once: None, whole: None, leaves: false, title: None };
        self.ledger.decide_until_stored(&mut turn, Event::Interrupted, trigger).await;
        if turn.obligation.is_waiting() {
            self.marker.wait(&turn);
        }
    }

    pub(crate) fn run_waiting(self: &Arc<Self>, slot: Slot) {
        self.spawn(move |scheduler| scheduler.run_waiting_turns(slot, None));
    }

    /// Notes that a turn that was just accepted in this mode waits for its run.
    pub(crate) fn enqueue(&self, turn: TurnRecord, mode: QueueMode) {
        let (conversation, agent) = (turn.conversation, self.ledger.context.next_agent(&turn));
        self.ledger.executor.hints.tell(|| Hint::Waiting(agent.clone(), conversation));
        self.marker.wait(&turn);
        if merges::begins_by_itself(&turn.event, mode) {
            // Turns that run before it may begin the transcript.
            self.recent.keep(TurnRecord { has_history: true, ..turn });
        }
        self.slots.enqueue(conversation, &agent);
    }

    /// Spawns a task that holds a slot. If it panics, dropping the slot makes the scheduler look for waiting rows.
    fn spawn<F: Future<Output = ()> + Send + 'static>(
        self: &Arc<Self>,
        run: impl FnOnce(Arc<Self>) -> F + Send + 'static,
    ) {
        // On the heap at once: it is large, and would be copied several times.
        let running = Box::pin(run(Arc::clone(self)));
        self.lifecycle.work.spawn(async move {
            if AssertUnwindSafe(running).catch_unwind().await.is_err() {
                error!("running a turn panicked, its deadline ends it and the next turns run");
            }
        });
    }

    /// Runs the turns that wait in the conversation of `slot` when it has the permit that it was promised.
    async fn run_promised(
        self: Arc<Self>,
        mut slot: Slot,
        WaitingConversation { waiting, agent }: WaitingConversation,
    ) {
        if slot.gets_permit().await {
            self.run_waiting_turns(slot, Some(waiting)).await;
        } else {
            slot.leave_to(agent);
        }
    }

    /// Runs the turns that wait in the conversation of `slot`, and gives it back. `first`: the first of them, if it was read already.
    async fn run_waiting_turns(self: Arc<Self>, mut slot: Slot, first: Option<WaitingTurn>) {
        let left = self.run_until_others_are_next(&mut slot, first).await;
        self.give_back(slot, left).await;
    }

    /// Gives a slot back that no run of this node needs any more, in the store, too. If that fails, this node takes it over, which also
    /// looks for the turns that wait there.
    async fn give_back(&self, slot: Slot, left: Left) {
        let conversation = slot.conversation();
        if let Some(turn) = slot.stored()
            && let Err(error) = self.store.free_slot(conversation, turn, self.node).await
        {
            warn!(%conversation, %turn, %error, "cannot free the slot of a turn that has ended");
        }
        slot.leave(left);
    }

    /// Runs the turns that wait in the conversation of `slot`, in their order, until none is left or others are next.
    async fn run_until_others_are_next(&self, slot: &mut Slot, first: Option<WaitingTurn>) -> Left {
        let (mut waited_for, mut pauses) = (None, 0);
        // A turn that came since it was read may be next.
        let first = first.filter(|_| !slot.take_more());
        let mut known =
            first.as_ref().and_then(|first| self.recent.take(first.turn).filter(|turn| turn.version == first.version));
        // The turn behind which nothing waited. A later turn of this node is noted; one of another node comes with a hint, or is found
        // within a second.
        let mut alone = first.filter(|first| first.is_alone).map(|first| first.turn);
        let mut may_wait = true;
        while !self.lifecycle.stopping.is_cancelled() {
            if known.is_none() && !may_wait && !slot.take_more() {
                return Left::Nothing;
            }
            let is_known = known.is_some();
            let read = match known.take() {
                Some(turn) => Ok(Some(turn)),
                None => self.store.next_waiting(slot.conversation()).await,
            };
            may_wait = true;
            let next = match read {
                Ok(next) => next,
                Err(StoreError::CorruptTurn { turn, reason }) => {
                    slot.has_begun();
                    match self.ledger.set_aside(turn, &reason).await {
                        Ok(()) => {}
                        Err(error) if error.is_move() => return self.leave_unreadable(slot).await,
                        Err(error) => {
                            warn!(%turn, %error, "cannot set a turn aside, retrying");
                            self.lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await;
                        }
                    }
                    continue;
                }
                Err(error) => {
                    warn!(conversation = %slot.conversation(), %error, "cannot read waiting turns, retrying");
                    slot.has_begun();
                    self.lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await;
                    continue;
                }
            };
            let Some(turn) = next else {
                if slot.take_more() {
                    continue;
                }
                return Left::Nothing;
            };
            if turn.event.awaits_words() {
                slot.has_begun();
                slot.release_permit();
                self.await_words(&turn).await;
                continue;
            }
            let is_alone = alone.take() == Some(turn.id);
            let gathered = if is_known && is_alone { Ok(MergeGroup::default()) } else { self.gather(&turn).await };
            let gathered = match gathered {
                Ok(gathered) => gathered,
                Err(error) => {
                    warn!(turn = %turn.id, %error, "cannot read the turns behind a turn, retrying");
                    slot.has_begun();
                    slot.release_permit();
                    self.lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await;
                    continue;
                }
            };
            if waited_for != Some(turn.id) {
                (waited_for, pauses) = (Some(turn.id), 0);
            }
            if let Some(pause) = gathered.pause.filter(|_| pauses < gathered.pauses) {
                pauses += 1;
                slot.has_begun();
                slot.release_permit();
                self.lifecycle.pause_unless_stopping(pause).await;
                continue;
            }
            let agent = self.ledger.context.next_agent(&turn);
            if self.ledger.context.is_elsewhere(&agent) {
                return self.leave_elsewhere(slot, agent).await;
            }
            let permit = Permit { agent, channel: turn.event.conversation.channel.clone() };
            if !slot.acquire(&permit) {
                return Left::For(permit.agent);
            }
            let id = turn.id;
            match self.begin(turn, gathered.turns, slot).await {
                Beginning::Begun => may_wait = !is_alone,
                // It is read again.
                Beginning::Changed => {}
                Beginning::Unchanged => {
                    warn!(turn = %id, "a waiting turn did not begin, retrying");
                    self.lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await;
                }
                Beginning::Elsewhere => return self.leave_elsewhere(slot, permit.agent).await,
            }
        }
        Left::Unknown
    }

    /// Waits until the words of a voice note may have come. The node that runs its channel has it written down: not each of them can fetch
    /// the recording. It may run no turns of this agent, and not look for them: it is told, until the words have come.
    async fn await_words(&self, turn: &TurnRecord) {
        let (hints, channel) = (&self.ledger.executor.hints, &turn.event.conversation.channel);
        let heard = async {
            if hints.is_shown_here(channel) {
                self.hearings.begin(turn.id).cancelled().await;
            } else {
                hints.tell_holder(channel, || Hint::Words(channel.clone(), turn.id));
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = heard => {}
            // It may have been cancelled, or its words may have come at another node.
            _ = self.lifecycle.pause_unless_stopping(pauses::READ_AGAIN) => {}
        }
    }

    /// A voice note that waits has its words: it may stop the run before it, as other messages do when they come.
    pub(crate) async fn note_words(&self, id: TurnId) {
        let is_next = |turn: &TurnRecord| turn.obligation.is_waiting() && may_stop_runs(turn);
        let stops = async {
            let Some(turn) = self.store.readable_turn(id).await?.filter(is_next) else { return Ok(None) };
            let mode = self.merges.mode(&turn).await?;
            Ok::<_, StoreError>((mode == QueueMode::Interrupt).then_some(turn))
        };
        match stops.await {
            Ok(Some(turn)) => self.interrupt(&turn).await,
            Ok(None) => {}
            // It is answered after the run.
            Err(error) => warn!(turn = %id, %error, "cannot read a voice note that may stop a run"),
        }
    }

    /// The turns that begin together with `turn`, which begins alone if they cannot be read. The error is that the store is away.
    async fn gather(&self, turn: &TurnRecord) -> Result<MergeGroup, StoreError> {
        let gathered = self.merges.at_begin(turn).await;
        gathered.or_else(|error| {
            if error.is_outage() {
                return Err(error);
            }
            warn!(turn = %turn.id, %error, "cannot read the turns behind a turn, it begins alone");
            Ok(MergeGroup::default())
        })
    }

    /// Another node runs a turn of the conversation, or is to: its rows are looked for later.
    async fn leave_elsewhere(&self, slot: &mut Slot, agent: AgentName) -> Left {
        debug!(conversation = %slot.conversation(), "another node runs the turns of the conversation");
        self.slots.note_elsewhere();
        if self.neighbours.any() {
            return Left::Nothing;
        }
        // It is a run that this node has left, or its neighbour has just come or gone.
        slot.release_permit();
        self.lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await;
        Left::For(agent)
    }

    /// The first turn of the conversation cannot be read, and is left to nodes of another version. Meanwhile it keeps no permit: one of
    /// them may need it for the turn.
    async fn leave_unreadable(&self, slot: &mut Slot) -> Left {
        debug!(conversation = %slot.conversation(), "a turn that cannot be read is left to another version");
        slot.release_permit();
        self.lifecycle.pause_unless_stopping(pauses::LEFT).await;
        Left::Unknown
    }

    /// Runs a turn until it ends, or goes on past its deadline without the slot.
    async fn run_turn(&self, slot: &mut Slot, turn: TurnRecord, run: Run) {
        slot.run_begins();
        let (worker, slots, tokens) = (Arc::clone(&self.worker), Arc::clone(&self.slots), slot.tokens().clone());
        let (conversation, id, number) = (slot.conversation(), turn.id, run.number);
        // The next turn need not wait until the answer of this one is stored.
        let release_permit = move || slots.release_permit(conversation, id, number);
        let mut running = Box::pin(async move { worker.run(turn, run, &tokens, release_permit).await });
        tokio::select! {
            () = &mut running => {}
            () = slot.late().cancelled() => {
                let late = slot.leave_run();
                self.lifecycle.work.spawn(async move {
                    running.await;
                    drop(late);
                });
            }
        }
        slot.run_ended();
    }

    /// Begins a waiting turn together with `others`, and runs it if the guard allows.
    async fn begin(&self, mut turn: TurnRecord, others: Vec<TurnRecord>, slot: &mut Slot) -> Beginning {
        if turn.event.is_withdrawn() {
            // Its message was deleted, but the turn was not cancelled yet.
            slot.has_begun();
            return Beginning::of(self.cancel_deleted(&mut turn).await);
        }
        let waited = turn.version;
        slot.begin(turn.id, waited, turn.runs + 1);
        let decided = if others.is_empty() {
            self.ledger.decide_until_stored(&mut turn, Event::Begin, Trigger::Event).await
        } else {
            self.begin_together(&mut turn, others).await
        };
        slot.has_begun();
        let Some(decided) = decided else { return Beginning::Unchanged };
        if decided.is_elsewhere {
            return Beginning::Elsewhere;
        }
        if decided.is_changed {
            return Beginning::Changed;
        }
        let began = turn.version != waited;
        if let Some(run) = decided.run {
            self.run_turn(slot, turn, run).await;
        }
        Beginning::of(began)
    }

    /// Begins `turn`, and merges `others` into it in the same transaction. `None` if one of them was changed meanwhile, or
    /// it cannot be stored: they are read again.
    async fn begin_together(&self, turn: &mut TurnRecord, others: Vec<TurnRecord>) -> Option<Decided> {
        let count = others.len();
        let mut inputs = merges::events(turn.clone(), others, Some(Event::Begin));
        let decided = match self.ledger.try_to_decide(&mut inputs, &Trigger::Event).await {
            Ok(Some(decided)) => decided,
            Ok(None) => {
                let is_elsewhere =
                    self.neighbours.any() && self.runs_elsewhere(turn).await && self.is_unchanged(turn).await;
                return is_elsewhere.then(|| Decided { is_elsewhere, ..Decided::default() });
            }
            Err(error) => {
                warn!(turn = %turn.id, %error, "cannot store the beginning of a turn with others");
                return None;
            }
        };
        debug!(turn = %turn.id, count, "a turn answers for others as well");
        *turn = inputs.swap_remove(0).turn;
        decided.into_iter().next()
    }

    /// Whether another turn has the slot in which a turn was to begin here.
    async fn runs_elsewhere(&self, turn: &TurnRecord) -> bool {
        matches!(self.store.slot_of(turn.conversation).await, Ok(Some(running)) if running != turn.id)
    }

    /// Whether a turn is stored as it was read.
    async fn is_unchanged(&self, turn: &TurnRecord) -> bool {
        matches!(self.store.turn(turn.id).await, Ok(Some(read)) if read.version == turn.version)
    }

    /// The turn whose run holds the slot of a conversation, also if it is another node's.
    async fn running_in(&self, conversation: ConversationId) -> Option<TurnId> {
        let running = self.slots.holder(conversation);
        if running.is_some() || !self.neighbours.any() {
            return running;
        }
        self.store.slot_of(conversation).await.unwrap_or_else(|error| {
            // The message waits, and is answered after the run.
            warn!(%conversation, %error, "cannot read which turn of a conversation runs");
            None
        })
    }

    /// Stops the run of a conversation, if `turn`, which waits, is to be answered together with what runs.
    pub(crate) async fn interrupt(&self, turn: &TurnRecord) {
        loop {
            let Some(running) = self.running_in(turn.conversation).await else { return };
            let read = match self.store.turn(running).await {
                Ok(read) => read,
                // The message waits, and is answered after the run.
                Err(error) => return warn!(turn = %running, %error, "cannot read a turn whose run is to be stopped"),
            };
            let Some(first) = read.filter(|first| self.merges.stops(first, turn)) else { return };
            let mut inputs = [TurnEvents { turn: first, events: vec![Event::Superseded] }];
            match self.ledger.try_to_decide(&mut inputs, &Trigger::Event).await {
                Ok(Some(_)) => return,
                // It was changed meanwhile.
                Ok(None) => {}
                Err(error) => return warn!(turn = %running, %error, "cannot stop a run for a new message"),
            }
        }
    }

    /// Cancels a turn whose message was deleted while it waited: for its run, or because the agent has deferred it.
    pub(crate) async fn cancel_deleted_turn(&self, turn: TurnId) {
        match self.store.turn(turn).await {
            Ok(Some(mut turn)) if turn.event.is_withdrawn() && waits(&turn) => {
                self.cancel_deleted(&mut turn).await;
            }
            Ok(_) => {}
            // `begin` cancels it later.
            Err(error) => warn!(%turn, %error, "cannot read a turn whose message was deleted"),
        }
    }

    async fn cancel_deleted(&self, turn: &mut TurnRecord) -> bool {
        let deleted = Event::Cancelled { by: CancelledBy::Deletion };
        self.ledger.decide_until_stored(turn, deleted, Trigger::Event).await.is_some()
    }

    /// Gives free permits to conversations with waiting turns, until the gateway stops.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.slots.someone_is_next() => {}
                () = self.lifecycle.stopping.cancelled() => return,
            }
            if let Err(error) = self.schedule_waiting().await {
                warn!(%error, "cannot read waiting turns, retrying");
                self.lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await;
            }
        }
    }

    /// Reads the conversations with waiting turns, and gives slots to those that are next.
    async fn schedule_waiting(self: &Arc<Self>) -> Result<(), StoreError> {
        let round = self.slots.begin_round();
        let here = |waiting: WaitingTurn| {
            let agent = self.ledger.agent_of(&waiting)?;
            Some(WaitingConversation { waiting, agent })
        };
        let mut limit = round.few;
        let (mut candidates, unread) = loop {
            let waiting = self.store.waiting_for(self.node, limit).await?;
            let candidates: Vec<WaitingConversation> = waiting.into_iter().filter_map(here).collect();
            let unread = waiting::unread(&candidates, limit);
            let is_hidden = self.slots.hides_any(&round, limit, &candidates)
                || candidates.iter().any(|candidate| !candidate.waiting.owed);
            if limit == round.limit || unread.is_empty() || !is_hidden {
                break (candidates, unread);
            }
            // Conversations that hold slots already, and talk, must not hide those behind them.
            limit = round.limit;
        };
        if self.neighbours.any() {
            for WaitingConversation { waiting, .. } in &mut candidates {
                let is_kept = self.recent.has(waiting.turn);
                waiting.position = waiting_order::scattered(waiting.position, self.node, waiting.conversation, is_kept);
            }
        }
        let (starting, mut all_have_begun) = mpsc::channel(1);
        loop {
            while let Some((mut slot, first)) = self.slots.take_next(&mut candidates) {
                slot.begins_in(starting.clone());
                self.spawn(move |scheduler| scheduler.run_waiting_turns(slot, Some(first)));
            }
            let Some(late) = self.slots.late_run_before(&mut candidates) else { break };
            self.end_late_run(late).await?;
        }
        for (slot, row) in self.slots.take_promised(&mut candidates, &unread) {
            self.spawn(move |scheduler| scheduler.run_promised(slot, row));
        }
        self.slots.end_round(&round, &candidates, &unread);
        drop(starting);
        // That saves reads. One whose beginning cannot be stored keeps nobody waiting.
        let _ = tokio::time::timeout(PATIENCE, all_have_begun.recv()).await;
        Ok(())
    }

    /// Stops a run that goes on past its deadline, as if its late window had ended, for a turn that waits for its permit.
    async fn end_late_run(&self, id: TurnId) -> Result<(), StoreError> {
        if let Some(mut turn) = self.store.readable_turn(id).await? {
            debug!(turn = %id, "a late run is stopped: another turn waits for its permit");
            self.ledger.decide_until_stored(&mut turn, Event::LateWindowEnded, Trigger::Event).await;
        }
        self.slots.end_late_run(id);
        Ok(())
    }
}

/// Whether a turn that waits stops the run before it where the queue mode is [`Interrupt`](crate::QueueMode::Interrupt).
pub(crate) fn may_stop_runs(turn: &TurnRecord) -> bool {
    turn.obligation.expectation() == Expectation::Answer
        && turn.event.kind == EventKind::Message
        && turn.event.part_of.is_none()
}

/// Whether no run of a turn is in flight and one is still to come, or it waits for an approval, or to go on after one.
fn waits(turn: &TurnRecord) -> bool {
    turn.obligation.is_waiting()
        || turn.obligation.is_put_off()
        || turn.obligation.is_suspended()
        || turn.obligation.is_resuming()
}
