//! The right to run turns: one conversation, one slot, and a bound on how many there are at once.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use dashmap::{DashMap, Entry};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::model::ids::{ConversationId, TurnId};

/// Which conversations hold a slot. Memory holds nothing of the turns that wait.
pub(crate) struct Slots {
    held: DashMap<ConversationId, Held>,
    free: Arc<Semaphore>,
    /// 0: every conversation with waiting rows holds a slot. Else the scheduler has to go through the rows, and nobody
    /// new may take a slot before those who wait. Counts up, so that the scheduler sees what came while it looked.
    behind: AtomicU64,
    wake: Notify,
    stopping: CancellationToken,
}

/// What is known of a conversation that holds a slot.
struct Held {
    turn: TurnId,
    /// Which run of the turn.
    run: u32,
    stop: CancellationToken,
    /// Whether more rows of this conversation wait.
    more: bool,
}

/// A conversation's slot. It is given back with [`release`](Self::release); when it is dropped, as a panic does, the
/// scheduler looks for rows that wait.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    conversation: ConversationId,
    /// Ends the run that holds the slot. Every run has its own, so that a late word to an earlier one does not end it.
    stop: CancellationToken,
    /// `None` while the slot waits for its time: only a slot with a permit counts against the bound.
    permit: Option<OwnedSemaphorePermit>,
    /// Whether rows wait when the slot is given back. Nobody knows until somebody says that there are none.
    leaves_rows: bool,
}

impl Slots {
    /// `count`: how many turns run at once.
    pub(crate) fn new(count: usize, stopping: CancellationToken) -> Self {
        Self {
            held: DashMap::new(),
            free: Arc::new(Semaphore::new(count)),
            // The rows of an earlier process are found first.
            behind: AtomicU64::new(1),
            wake: Notify::new(),
            stopping,
        }
    }

    /// Takes the slot of `conversation` for the first run of `turn`, when it is free, there is one more, and nobody
    /// waits for one.
    pub(crate) fn try_take(self: &Arc<Self>, conversation: ConversationId, turn: TurnId) -> Option<Slot> {
        if self.is_behind() {
            return None;
        }
        self.take(conversation, turn, || Arc::clone(&self.free).try_acquire_owned().ok().map(Some))
    }

    /// As [`try_take`](Self::try_take), without a permit yet: the slot waits for its time; see [`Slot::acquire`].
    pub(crate) fn try_reserve(self: &Arc<Self>, conversation: ConversationId, turn: TurnId) -> Option<Slot> {
        if self.is_behind() {
            return None;
        }
        self.take(conversation, turn, || Some(None))
    }

    /// Takes the slot of `conversation` with a permit that somebody waited for.
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
        let stop = CancellationToken::new();
        vacant.insert(Held { turn, run: 1, stop: stop.clone(), more: false });
        Some(Slot { slots: Arc::clone(self), conversation, stop, permit, leaves_rows: true })
    }

    /// Waits for a permit. `None` when the gateway is stopping.
    pub(crate) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        tokio::select! {
            permit = Arc::clone(&self.free).acquire_owned() => permit.ok(),
            () = self.stopping.cancelled() => None,
        }
    }

    /// Rows of `conversation` wait for a run: whoever holds its slot goes on with them, or the scheduler finds them.
    pub(crate) fn enqueue(&self, conversation: ConversationId) {
        if !self.note_more(conversation) {
            self.fall_behind();
        }
    }

    /// Tells whoever holds the slot of `conversation` that more rows wait; `false` when nobody does.
    pub(crate) fn note_more(&self, conversation: ConversationId) -> bool {
        self.held.get_mut(&conversation).is_some_and(|mut held| {
            held.more = true;
            true
        })
    }

    /// Rows wait that no holder of a slot knows of.
    pub(crate) fn fall_behind(&self) {
        self.behind.fetch_add(1, Ordering::SeqCst);
        self.wake.notify_one();
    }

    pub(crate) fn is_behind(&self) -> bool {
        self.behind.load(Ordering::SeqCst) != 0
    }

    /// Returns when there may be rows to go through.
    pub(crate) async fn fallen_behind(&self) {
        self.wake.notified().await;
    }

    /// What to give to [`caught_up`](Self::caught_up) after going through the rows; `None`: there is nothing to do.
    pub(crate) fn mark(&self) -> Option<u64> {
        Some(self.behind.load(Ordering::SeqCst)).filter(|behind| *behind != 0)
    }

    /// All rows were gone through since `mark`; `false` when more came meanwhile.
    pub(crate) fn caught_up(&self, mark: u64) -> bool {
        self.behind.compare_exchange(mark, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Ends run `run` of `turn`, if it holds a slot.
    pub(crate) fn stop_run(&self, conversation: ConversationId, turn: TurnId, run: u32) {
        if let Some(held) = self.held.get(&conversation)
            && (held.turn, held.run) == (turn, run)
        {
            held.stop.cancel();
        }
    }
}

impl Slot {
    /// Cancelled when the run that holds the slot is to end.
    pub(crate) const fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    pub(crate) const fn conversation(&self) -> ConversationId {
        self.conversation
    }

    /// Run `run` of `turn` is next.
    pub(crate) fn begin(&mut self, turn: TurnId, run: u32) {
        self.stop = CancellationToken::new();
        if let Some(mut held) = self.slots.held.get_mut(&self.conversation) {
            (held.turn, held.run) = (turn, run);
            held.stop = self.stop.clone();
        }
    }

    /// Whether more rows of the conversation wait; they do not count as such afterwards.
    pub(crate) fn take_more(&self) -> bool {
        self.slots.held.get_mut(&self.conversation).is_some_and(|mut held| std::mem::take(&mut held.more))
    }

    /// Lets others run while this one waits for its time; [`acquire`](Self::acquire) ends that.
    pub(crate) fn give_permit_up(&mut self) {
        self.permit = None;
    }

    /// Waits for a permit where it has none; `false` when the gateway is stopping.
    pub(crate) async fn acquire(&mut self) -> bool {
        if self.permit.is_none() {
            self.permit = self.slots.acquire().await;
        }
        self.permit.is_some()
    }

    /// Gives the slot back. Rows that are `left` behind, or that came meanwhile, are the scheduler's to find.
    pub(crate) fn release(mut self, left: bool) {
        self.leaves_rows = left;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Self { slots, conversation, leaves_rows, .. } = self;
        slots.held.remove_if(conversation, |_, held| {
            // Said before the slot is free, so that nobody new takes it before those who wait.
            if held.more || *leaves_rows {
                slots.fall_behind();
            }
            true
        });
    }
}
