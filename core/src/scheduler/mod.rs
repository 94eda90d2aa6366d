//! Which conversation runs next: one turn at a time in each; the rest wait as rows.
//!
//! Memory holds a slot for each conversation that has a turn running, and nothing of those that wait. There are as many
//! slots as turns may run at once. When all are taken, the scheduler goes through the conversations that have rows
//! waiting, as slots become free: each gets a slot once in a round, whoever has waited longest first.

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

/// How many conversations with waiting rows are read at once.
const PAGE: u32 = 1024;

/// Gives slots to what waits, and runs it.
pub(crate) struct Scheduler {
    pub(crate) slots: Arc<Slots>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) worker: Arc<Worker>,
    pub(crate) clock: SharedClock,
    pub(crate) lifecycle: Lifecycle,
}

impl Scheduler {
    /// Runs `turn`, whose run was decided on already, and then what waits in its conversation.
    pub(crate) fn run_now(self: &Arc<Self>, slot: Slot, turn: TurnRecord, run: Run) {
        self.spawn(move |scheduler| async move {
            scheduler.worker.run(turn, run, slot.stop()).await;
            if slot.take_more() {
                scheduler.work_off(slot).await;
            } else {
                slot.release(false);
            }
        });
    }

    /// Runs what waits in the conversation of a slot.
    pub(crate) fn run_waiting(self: &Arc<Self>, slot: Slot) {
        self.spawn(move |scheduler| scheduler.work_off(slot));
    }

    /// Runs something that holds a slot. When it panics, the rows that it leaves are found again.
    fn spawn<F: Future<Output = ()> + Send + 'static>(
        self: &Arc<Self>,
        run: impl FnOnce(Arc<Self>) -> F + Send + 'static,
    ) {
        let scheduler = Arc::clone(self);
        self.lifecycle.work.spawn(async move {
            if AssertUnwindSafe(async move { run(scheduler).await }).catch_unwind().await.is_err() {
                error!("working on a turn panicked: what waits behind it goes on, its deadline ends it");
            }
        });
    }

    /// Runs the turns that wait in the conversation of `slot`, oldest first, until none is left or others have waited
    /// longer.
    async fn work_off(self: Arc<Self>, mut slot: Slot) {
        let mut waited_for = None;
        while !self.lifecycle.stopping.is_cancelled() {
            let next = match self.store.next_waiting(slot.conversation()).await {
                Ok(next) => next,
                Err(error) => {
                    warn!(conversation = %slot.conversation(), %error, "cannot read what waits, trying again");
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
            if let Some(pause) = self.may_grow(&turn).filter(|_| waited_for != Some(turn.id)) {
                // Once: a time that somebody else gave is no reason to wait for ever.
                waited_for = Some(turn.id);
                slot.give_permit_up();
                self.lifecycle.pause_unless_stopping(pause).await;
                continue;
            }
            if !slot.acquire().await {
                break;
            }
            let id = turn.id;
            if !self.begin(turn, &mut slot).await {
                warn!(turn = %id, "a turn waits and does not begin");
                self.lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await;
            }
            if self.slots.is_behind() {
                // Others have waited longer than what is next here.
                return slot.release(true);
            }
        }
        slot.release(true);
    }

    /// How long more of a turn may still follow, if it may.
    fn may_grow(&self, turn: &TurnRecord) -> Option<Duration> {
        let within = turn.event.more_within?;
        let (until, now) = (turn.event.received_at + within, self.clock.now());
        (until > now).then(|| until.since(now).min(within))
    }

    /// Begins a turn that has waited, and runs it when the guard lets it. `false` when nothing came of it.
    async fn begin(&self, mut turn: TurnRecord, slot: &mut Slot) -> bool {
        if turn.event.is_withdrawn() {
            // Its words were deleted as the process ended.
            return self.call_off(&mut turn).await;
        }
        slot.begin(turn.id, turn.runs + 1);
        let waited = turn.version;
        let Some(decided) = self.ledger.decide_until_stored(&mut turn, Event::Begin, Trigger::Event).await else {
            return false;
        };
        let began = turn.version != waited;
        if let Some(run) = decided.run {
            self.worker.run(turn, run, slot.stop()).await;
        }
        began
    }

    /// Calls off a turn whose words were deleted while it waited.
    pub(crate) async fn call_off_deleted(&self, turn: TurnId) {
        match self.store.turn(turn).await {
            Ok(Some(mut turn)) if turn.event.is_withdrawn() && turn.obligation.is_waiting() => {
                self.call_off(&mut turn).await;
            }
            Ok(_) => {}
            // It is called off when it is its turn to begin.
            Err(error) => warn!(%turn, %error, "a turn whose words were deleted cannot be read"),
        }
    }

    async fn call_off(&self, turn: &mut TurnRecord) -> bool {
        let deleted = Event::Cancelled { by: CancelledBy::Deletion };
        self.ledger.decide_until_stored(turn, deleted, Trigger::Event).await.is_some()
    }

    /// Gives free slots to what waits, until the gateway stops.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            while let Some(mark) = self.slots.mark() {
                if let Err(error) = self.go_round().await {
                    warn!(%error, "cannot read what waits, trying again");
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

    /// Goes once through the conversations that have rows waiting, and waits for a slot for each that holds none.
    async fn go_round(self: &Arc<Self>) -> Result<(), StoreError> {
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
                    // Somebody has it by now, and may not know of what waits.
                    None => self.slots.enqueue(conversation),
                }
            }
        }
    }
}
