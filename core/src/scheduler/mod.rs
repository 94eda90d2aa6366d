//! Decides which conversation runs next. Each runs one turn at a time; the other turns wait as rows.
//!
//! Memory holds a slot for each conversation that has a turn running, and nothing of the turns that wait. Permits
//! bound how many turns run at once. When all are taken, the scheduler goes through the conversations with waiting
//! rows in rounds: as permits become free, each conversation gets a slot once per round, the longest waiting of a
//! page first.

pub(crate) mod slots;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use rejoinder_guard::{CancelledBy, Event};
use tracing::{error, warn};

use crate::{
    ledger::{
        Ledger,
        trigger::{Run, Trigger},
    },
    lifecycle::Lifecycle,
    model::{ids::TurnId, turn::TurnRecord},
    pauses,
    ports::{
        clock::SharedClock,
        store::{Store, StoreError, record::WaitingTurn},
    },
    scheduler::slots::{Slot, Slots},
    worker::Worker,
};

/// The number of conversations with waiting rows read at once.
const PAGE: u32 = 1024;

/// Gives slots to conversations with waiting turns, and runs these turns.
pub(crate) struct Scheduler {
    pub(crate) slots: Arc<Slots>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) worker: Arc<Worker>,
    pub(crate) clock: SharedClock,
    pub(crate) lifecycle: Lifecycle,
}

impl Scheduler {
    /// Runs `turn`, whose run was decided on already, and then the turns that wait in its conversation.
    pub(crate) fn run_now(self: &Arc<Self>, slot: Slot, turn: TurnRecord, run: Run) {
        self.spawn(move |scheduler| async move {
            let mut slot = slot;
            scheduler.run_turn(&mut slot, turn, run).await;
            if slot.take_more() {
                scheduler.run_waiting_turns(slot).await;
            } else {
                slot.release(false);
            }
        });
    }

    /// Runs the turns that wait in the conversation of a slot.
    pub(crate) fn run_waiting(self: &Arc<Self>, slot: Slot) {
        self.spawn(move |scheduler| scheduler.run_waiting_turns(slot));
    }

    /// Spawns a task that holds a slot. If it panics, dropping the slot makes the scheduler look for waiting rows.
    fn spawn<F: Future<Output = ()> + Send + 'static>(
        self: &Arc<Self>,
        run: impl FnOnce(Arc<Self>) -> F + Send + 'static,
    ) {
        let scheduler = Arc::clone(self);
        self.lifecycle.work.spawn(async move {
            if AssertUnwindSafe(async move { run(scheduler).await }).catch_unwind().await.is_err() {
                error!("running a turn panicked, its deadline ends it and the next turns run");
            }
        });
    }

    /// Runs the turns that wait in the conversation of `slot`, oldest first, until none is left or other conversations
    /// wait for a slot.
    async fn run_waiting_turns(self: Arc<Self>, mut slot: Slot) {
        let mut waited_for = None;
        while !self.lifecycle.stopping.is_cancelled() {
            let next = match self.store.next_waiting(slot.conversation()).await {
                Ok(next) => next,
                Err(error) => {
                    warn!(conversation = %slot.conversation(), %error, "cannot read waiting turns, retrying");
                    self.lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await;
                    continue;
                }
            };
            let Some(turn) = next else {
                if slot.take_more() {
                    continue;
                }
                return slot.release(false);
            };
            if let Some(pause) = self.time_to_grow(&turn).filter(|_| waited_for != Some(turn.id)) {
                // Only once per turn: a time given by an adapter must not block the conversation forever.
                waited_for = Some(turn.id);
                slot.release_permit();
                self.lifecycle.pause_unless_stopping(pause).await;
                continue;
            }
            if !slot.acquire().await {
                break;
            }
            let id = turn.id;
            if !self.begin(turn, &mut slot).await {
                warn!(turn = %id, "a waiting turn did not begin, retrying");
                self.lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await;
            }
            if self.slots.is_behind() {
                // Turns of other conversations have waited longer than the next one here.
                return slot.release(true);
            }
        }
        slot.release(true);
    }

    /// Runs a turn until it ends, or goes on past its deadline without the slot.
    async fn run_turn(&self, slot: &mut Slot, turn: TurnRecord, run: Run) {
        let (id, worker, stop) = (turn.id, Arc::clone(&self.worker), slot.stop().clone());
        let mut running = Box::pin(async move { worker.run(turn, run, &stop).await });
        tokio::select! {
            () = &mut running => {}
            () = slot.late().cancelled() => {
                let late = slot.leave_run(id);
                self.lifecycle.work.spawn(async move {
                    running.await;
                    drop(late);
                });
            }
        }
    }

    /// How long events may still be added to a turn; `None` if no longer.
    fn time_to_grow(&self, turn: &TurnRecord) -> Option<Duration> {
        let within = turn.event.more_within?;
        let (until, now) = (turn.event.received_at + within, self.clock.now());
        (until > now).then(|| until.since(now).min(within))
    }

    /// Begins a waiting turn, and runs it if the guard allows. `false` if the turn did not change.
    async fn begin(&self, mut turn: TurnRecord, slot: &mut Slot) -> bool {
        if turn.event.is_withdrawn() {
            // Its message was deleted, but the turn was not cancelled yet.
            return self.cancel_deleted(&mut turn).await;
        }
        slot.begin(turn.id, turn.runs + 1);
        let waited = turn.version;
        let Some(decided) = self.ledger.decide_until_stored(&mut turn, Event::Begin, Trigger::Event).await else {
            return false;
        };
        let began = turn.version != waited;
        if let Some(run) = decided.run {
            self.run_turn(slot, turn, run).await;
        }
        began
    }

    /// Cancels a turn whose message was deleted while it waited.
    pub(crate) async fn cancel_deleted_turn(&self, turn: TurnId) {
        match self.store.turn(turn).await {
            Ok(Some(mut turn)) if turn.event.is_withdrawn() && turn.obligation.is_waiting() => {
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

    /// Gives free slots to conversations with waiting turns, until the gateway stops.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            while let Some(mark) = self.slots.mark() {
                if let Err(error) = self.schedule_waiting().await {
                    warn!(%error, "cannot read waiting turns, retrying");
                    self.lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await;
                } else if self.slots.caught_up(mark) {
                    break;
                }
                if self.lifecycle.stopping.is_cancelled() {
                    return;
                }
            }
            tokio::select! {
                () = self.slots.fallen_behind() => {}
                () = self.lifecycle.stopping.cancelled() => return,
            }
        }
    }

    /// Goes once through the conversations with waiting rows, and takes a slot for each that holds none, waiting for
    /// permits.
    async fn schedule_waiting(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let mut page = self.store.waiting(after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.conversation);
            page.sort_unstable_by_key(|waiting| waiting.turn);
            for WaitingTurn { turn, conversation } in page {
                if self.slots.note_more(conversation) {
                    continue;
                }
                let Some(permit) = self.slots.acquire().await else { return Ok(()) };
                match self.slots.take_with(conversation, turn, permit) {
                    Some(slot) => self.run_waiting(slot),
                    // Another task took the slot meanwhile and may not know of the waiting rows.
                    None => self.slots.enqueue(conversation),
                }
            }
        }
    }
}
