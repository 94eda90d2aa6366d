//! Slots, the right to run turns: one per conversation, with a bound on how many run at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use dashmap::{DashMap, Entry};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::{
    model::ids::{ConversationId, TurnId},
    ports::clock::SharedClock,
};

/// The conversations that hold a slot. Memory holds nothing of the turns that wait.
pub(crate) struct Slots {
    held: DashMap<ConversationId, Held>,
    /// Runs that go on past their deadline, without a slot: the turns behind them do not wait for them.
    late: DashMap<TurnId, HeldRun>,
    free: Arc<Semaphore>,
    /// 0: every conversation with waiting rows holds a slot. Otherwise the scheduler must go through the rows, and no
    /// new turn may take a slot before those that wait. It counts up, so that the scheduler notices rows that came
    /// during its round.
    behind: AtomicU64,
    wake: Notify,
    stopping: CancellationToken,
    clock: SharedClock,
}

/// A run that can be stopped.
#[derive(Clone)]
struct HeldRun {
    turn: TurnId,
    /// The run's number within the turn.
    number: u32,
    /// When it began, in the clock's uptime.
    began: Duration,
    stop: CancellationToken,
    /// Cancelled when the run goes on past its deadline.
    late: CancellationToken,
}

/// The state of a slot that is held.
struct Held {
    run: HeldRun,
    /// Whether more rows of this conversation wait.
    more: bool,
}

/// A conversation's slot. [`release`](Self::release) gives it back; if it is dropped without, as in a panic, the
/// scheduler looks for waiting rows.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    conversation: ConversationId,
    /// Stops the run that holds the slot. Every run has its own token, so that a late stop of an earlier run does not
    /// affect it.
    stop: CancellationToken,
    late: CancellationToken,
    /// `None` while the slot is only reserved: a slot without a permit does not count against the bound.
    permit: Option<OwnedSemaphorePermit>,
    /// Whether rows may wait when the slot is given back. True until [`release`](Self::release) says otherwise.
    leaves_rows: bool,
}

impl Slots {
    /// `count`: the number of turns that run at once.
    pub(crate) fn new(count: usize, stopping: CancellationToken, clock: SharedClock) -> Self {
        Self {
            held: DashMap::new(),
            late: DashMap::new(),
            free: Arc::new(Semaphore::new(count)),
            // Not 0: the scheduler first looks for rows of an earlier process.
            behind: AtomicU64::new(1),
            wake: Notify::new(),
            stopping,
            clock,
        }
    }

    /// Takes the slot of `conversation` for the first run of `turn`, if it is free, a permit is left, and no other
    /// conversation waits for one.
    pub(crate) fn try_take(self: &Arc<Self>, conversation: ConversationId, turn: TurnId) -> Option<Slot> {
        if self.is_behind() {
            return None;
        }
        self.take(conversation, turn, || Arc::clone(&self.free).try_acquire_owned().ok().map(Some))
    }

    /// As [`try_take`](Self::try_take), but without a permit: [`Slot::acquire`] gets it later.
    pub(crate) fn try_reserve(self: &Arc<Self>, conversation: ConversationId, turn: TurnId) -> Option<Slot> {
        if self.is_behind() {
            return None;
        }
        self.take(conversation, turn, || Some(None))
    }

    /// Takes the slot of `conversation` with a permit from [`acquire`](Self::acquire). `None` if it is held.
    pub(crate) fn take_with(
        self: &Arc<Self>,
        conversation: ConversationId,
        turn: TurnId,
        permit: OwnedSemaphorePermit,
    ) -> Option<Slot> {
        self.take(conversation, turn, || Some(Some(permit)))
    }

    fn take(
        self: &Arc<Self>,
        conversation: ConversationId,
        turn: TurnId,
        permit: impl FnOnce() -> Option<Option<OwnedSemaphorePermit>>,
    ) -> Option<Slot> {
        if self.stopping.is_cancelled() {
            return None;
        }
        let Entry::Vacant(vacant) = self.held.entry(conversation) else { return None };
        let permit = permit()?;
        let run = self.run(turn, 1);
        let (stop, late) = (run.stop.clone(), run.late.clone());
        vacant.insert(Held { run, more: false });
        Some(Slot { slots: Arc::clone(self), conversation, stop, late, permit, leaves_rows: true })
    }

    fn run(&self, turn: TurnId, number: u32) -> HeldRun {
        let began = self.clock.uptime();
        HeldRun { turn, number, began, stop: CancellationToken::new(), late: CancellationToken::new() }
    }

    /// Waits for a permit. `None` if the gateway is stopping.
    pub(crate) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        tokio::select! {
            permit = Arc::clone(&self.free).acquire_owned() => permit.ok(),
            () = self.stopping.cancelled() => None,
        }
    }

    /// Notes that rows of `conversation` wait for a run: the holder of its slot runs them, or the scheduler finds them.
    pub(crate) fn enqueue(&self, conversation: ConversationId) {
        if !self.note_more(conversation) {
            self.fall_behind();
        }
    }

    /// Notifies the holder of the slot of `conversation` that more rows wait; `false` if the slot is free.
    pub(crate) fn note_more(&self, conversation: ConversationId) -> bool {
        self.held.get_mut(&conversation).is_some_and(|mut held| {
            held.more = true;
            true
        })
    }

    /// Notes that rows wait which no holder of a slot knows of.
    pub(crate) fn fall_behind(&self) {
        self.behind.fetch_add(1, Ordering::SeqCst);
        self.wake.notify_one();
    }

    pub(crate) fn is_behind(&self) -> bool {
        self.behind.load(Ordering::SeqCst) != 0
    }

    /// Returns after [`fall_behind`](Self::fall_behind) was called.
    pub(crate) async fn fallen_behind(&self) {
        self.wake.notified().await;
    }

    /// The mark to pass to [`caught_up`](Self::caught_up) after a round; `None`: there is nothing to do.
    pub(crate) fn mark(&self) -> Option<u64> {
        Some(self.behind.load(Ordering::SeqCst)).filter(|behind| *behind != 0)
    }

    /// Ends a round that began at `mark`; `false` if more rows came meanwhile.
    pub(crate) fn caught_up(&self, mark: u64) -> bool {
        self.behind.compare_exchange(mark, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Stops run `run` of `turn`, if it holds the slot of `conversation` or goes on without one.
    pub(crate) fn stop_run(&self, conversation: ConversationId, turn: TurnId, run: u32) {
        if let Some(found) = self.find(conversation, turn).filter(|found| found.number == run) {
            found.stop.cancel();
        }
    }

    /// Lets run `run` of `turn` go on without the slot of `conversation`.
    pub(crate) fn let_go_on(&self, conversation: ConversationId, turn: TurnId, run: u32) {
        if let Some(found) = self.find(conversation, turn).filter(|found| found.number == run) {
            found.late.cancel();
        }
    }

    /// How long the run of `turn` has taken, if one is in flight.
    pub(crate) fn ran(&self, conversation: ConversationId, turn: TurnId) -> Option<Duration> {
        self.find(conversation, turn).map(|run| self.clock.uptime().saturating_sub(run.began))
    }

    fn find(&self, conversation: ConversationId, turn: TurnId) -> Option<HeldRun> {
        let held = self.held.get(&conversation).map(|held| held.run.clone()).filter(|run| run.turn == turn);
        held.or_else(|| self.late.get(&turn).map(|run| run.clone()))
    }
}

impl Slot {
    /// Cancelled to stop the run that holds the slot.
    pub(crate) const fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Cancelled when the run that holds the slot goes on without it.
    pub(crate) const fn late(&self) -> &CancellationToken {
        &self.late
    }

    /// The late run of `turn`, with the permit that it needs; the slot is free for the next turn.
    pub(crate) fn leave_run(&mut self, turn: TurnId) -> LateRun {
        if let Some(held) = self.slots.held.get(&self.conversation).filter(|held| held.run.turn == turn) {
            self.slots.late.insert(turn, held.run.clone());
        }
        LateRun { slots: Arc::clone(&self.slots), turn, _permit: self.permit.take() }
    }

    pub(crate) const fn conversation(&self) -> ConversationId {
        self.conversation
    }

    /// Makes `run` of `turn` the run that holds the slot, with a new token.
    pub(crate) fn begin(&mut self, turn: TurnId, run: u32) {
        let run = self.slots.run(turn, run);
        (self.stop, self.late) = (run.stop.clone(), run.late.clone());
        if let Some(mut held) = self.slots.held.get_mut(&self.conversation) {
            held.run = run;
        }
    }

    /// Whether more rows of the conversation wait; clears the flag.
    pub(crate) fn take_more(&self) -> bool {
        self.slots.held.get_mut(&self.conversation).is_some_and(|mut held| std::mem::take(&mut held.more))
    }

    /// Gives up the permit, so that others can run meanwhile; [`acquire`](Self::acquire) gets a new one.
    pub(crate) fn release_permit(&mut self) {
        self.permit = None;
    }

    /// Waits for a permit if it has none; `false` if the gateway is stopping.
    pub(crate) async fn acquire(&mut self) -> bool {
        if self.permit.is_none() {
            self.permit = self.slots.acquire().await;
        }
        self.permit.is_some()
    }

    /// Gives the slot back. The scheduler looks for rows that are `left` or that came meanwhile.
    pub(crate) fn release(mut self, left: bool) {
        self.leaves_rows = left;
    }
}

/// A run that goes on without a slot. It keeps its permit until it is dropped.
pub(crate) struct LateRun {
    slots: Arc<Slots>,
    turn: TurnId,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Drop for LateRun {
    fn drop(&mut self) {
        self.slots.late.remove(&self.turn);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Self { slots, conversation, leaves_rows, .. } = self;
        slots.held.remove_if(conversation, |_, held| {
            // Before the slot is free, so that no new turn takes it before those that wait.
            if held.more || *leaves_rows {
                slots.fall_behind();
            }
            true
        });
    }
}
