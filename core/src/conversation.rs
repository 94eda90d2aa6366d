//! One turn at a time per conversation; the rest wait as rows.
//!
//! Memory holds a seat for each conversation that has a turn running, and nothing of those that wait.
//! There are as many seats as turns may run at once. When all are taken, the scheduler goes through
//! the conversations that have rows waiting, as seats become free: each gets a seat once in a round,
//! whoever has waited longest first.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use dashmap::{DashMap, Entry};
use rejoinder_guard::Event;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::{
    engine::Core,
    ledger::{Along, Run},
    model::{
        conversation::ConversationRef,
        ids::{ConversationId, TurnId},
        turn::TurnRecord,
    },
    ports::store::{StoreError, record::WaitingTurn},
};

/// How many conversations with waiting rows the scheduler reads at once.
const PAGE: u32 = 1024;

/// How long to wait when what waits cannot be read, or does not begin.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Who sits where.
pub(crate) struct Conversations {
    seats: DashMap<ConversationRef, Taken>,
    free: Arc<Semaphore>,
    /// There are waiting rows that nobody in memory knows of: nobody may overtake them.
    backlog: AtomicBool,
    /// Rows came to wait since the scheduler last went through them.
    more: AtomicBool,
    wake: Notify,
}

struct Taken {
    turn: TurnId,
    /// Which run of the turn.
    run: u32,
    stop: CancellationToken,
    /// Rows of this conversation wait.
    more: bool,
}

/// The right to run a conversation's turns. Given back when dropped.
pub(crate) struct Seat {
    core: Arc<Core>,
    conversation: ConversationRef,
    /// Ends the run that sits here. Every run has its own: a late word to the one before must not end it.
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl Seat {
    pub(crate) const fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Run `run` of `turn` takes the seat over.
    pub(crate) fn pass_to(&mut self, turn: TurnId, run: u32) {
        self.stop = CancellationToken::new();
        if let Some(mut taken) = self.core.conversations.seats.get_mut(&self.conversation) {
            (taken.turn, taken.run) = (turn, run);
            taken.stop = self.stop.clone();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let conversations = &self.core.conversations;
        // What waits in a chat that got another id may be another conversation's since.
        let has_moved = self.core.address(&self.conversation) != self.conversation;
        conversations.seats.remove_if(&self.conversation, |_, taken| {
            // Somebody came to wait while the seat was being given back, or was not looked for. Said before
            // the seat is free, so that nobody new sits down before them.
            if taken.more || has_moved || std::thread::panicking() {
                conversations.leave_to_scheduler();
            }
            true
        });
    }
}

impl Conversations {
    pub(crate) fn new(seats: usize) -> Self {
        Self {
            seats: DashMap::new(),
            free: Arc::new(Semaphore::new(seats)),
            // What waits from before is found first.
            backlog: AtomicBool::new(true),
            more: AtomicBool::new(true),
            wake: Notify::new(),
        }
    }

    /// Ends the run `run` of `turn`, if it is the one that runs.
    pub(crate) fn stop(&self, conversation: &ConversationRef, turn: TurnId, run: u32) {
        let is_meant = |taken: &Taken| (taken.turn, taken.run) == (turn, run);
        if let Some(taken) = self.seats.get(conversation)
            && is_meant(&taken)
        {
            return taken.stop.cancel();
        }
        // It sits where its chat was before it got another id, or not at all.
        if let Some(taken) = self.seats.iter().find(|taken| is_meant(taken)) {
            taken.stop.cancel();
        }
    }

    fn leave_to_scheduler(&self) {
        // In this order: the scheduler clears `backlog` before it looks at `more` for the last time.
        self.more.store(true, Ordering::SeqCst);
        self.backlog.store(true, Ordering::SeqCst);
        self.wake.notify_one();
    }
}

impl Core {
    /// Takes the seat of `conversation` for `turn`, when it is free and nobody waits before it.
    pub(crate) fn take_seat(self: &Arc<Self>, conversation: &ConversationRef, turn: TurnId) -> Option<Seat> {
        if self.conversations.backlog.load(Ordering::SeqCst) {
            return None;
        }
        self.sit(conversation, turn, || Arc::clone(&self.conversations.free).try_acquire_owned().ok())
    }

    /// Sits down in `conversation`, with a permit that is asked for only when its seat is free.
    fn sit(
        self: &Arc<Self>,
        conversation: &ConversationRef,
        turn: TurnId,
        permit: impl FnOnce() -> Option<OwnedSemaphorePermit>,
    ) -> Option<Seat> {
        if self.stopping.is_cancelled() {
            return None;
        }
        if self.former(conversation).iter().any(|former| self.conversations.seats.contains_key(former)) {
            return None;
        }
        let Entry::Vacant(vacant) = self.conversations.seats.entry(conversation.clone()) else { return None };
        let permit = permit()?;
        let stop = CancellationToken::new();
        vacant.insert(Taken { turn, run: 1, stop: stop.clone(), more: false });
        Some(Seat { core: Arc::clone(self), conversation: conversation.clone(), stop, _permit: permit })
    }

    /// Says that a stored turn of `conversation` waits for a run.
    pub(crate) fn line_up(self: &Arc<Self>, conversation: &ConversationRef, id: ConversationId, turn: TurnId) {
        if self.is_seated(conversation) {
            return;
        }
        match self.take_seat(conversation, turn) {
            Some(seat) => self.call_up(seat, id),
            None => self.conversations.leave_to_scheduler(),
        }
    }

    /// Whether somebody sits in a conversation; they are told that more waits there.
    fn is_seated(&self, conversation: &ConversationRef) -> bool {
        let seats = &self.conversations.seats;
        let seat = seats.get_mut(conversation);
        let seat = seat.or_else(|| self.former(conversation).iter().find_map(|former| seats.get_mut(former)));
        seat.is_some_and(|mut taken| {
            taken.more = true;
            true
        })
    }

    /// Runs what waits in a conversation, from a seat that was just taken.
    fn call_up(self: &Arc<Self>, seat: Seat, id: ConversationId) {
        let core = Arc::clone(self);
        self.work.spawn(async move { core.run_line(seat, id).await });
    }

    /// As [`call_up`](Self::call_up), once more of the turn that waits has had time to follow.
    pub(crate) fn call_up_after(self: &Arc<Self>, pause: Duration, seat: Seat, id: ConversationId) {
        let core = Arc::clone(self);
        self.work.spawn(async move {
            tokio::select! {
                () = core.clock.sleep(pause) => {}
                () = core.stopping.cancelled() => {}
            }
            core.run_line(seat, id).await;
        });
    }

    /// Runs `turn`, whose run was decided on already, and then what waits in its conversation.
    pub(crate) fn run_now(self: &Arc<Self>, mut seat: Seat, turn: TurnRecord, run: Run) {
        let core = Arc::clone(self);
        self.work.spawn(async move {
            let id = turn.conversation;
            core.work_on(turn, run, &mut seat).await;
            if core.has_more(&seat) {
                core.run_line(seat, id).await;
            }
        });
    }

    /// Whether rows of the seat's conversation wait; they do not count as such afterwards.
    fn has_more(&self, seat: &Seat) -> bool {
        self.conversations.seats.get_mut(&seat.conversation).is_some_and(|mut taken| std::mem::take(&mut taken.more))
    }

    async fn run_line(self: &Arc<Self>, mut seat: Seat, id: ConversationId) {
        let mut awaited = None;
        while !self.stopping.is_cancelled() {
            let next = match self.store.next_waiting(id).await {
                Ok(next) => next,
                Err(error) => {
                    warn!(conversation = %seat.conversation, %error, "cannot read what waits, trying again");
                    if !self.pause(LOOK_AGAIN).await {
                        return;
                    }
                    continue;
                }
            };
            match next {
                Some(turn) if awaited != Some(turn.id) && self.may_grow(&turn).is_some() => {
                    // Once: a time that somebody else gave is no reason to wait for ever.
                    awaited = Some(turn.id);
                    let pause = self.may_grow(&turn).unwrap_or_default();
                    tokio::select! {
                        () = self.clock.sleep(pause) => {}
                        () = self.stopping.cancelled() => return,
                    }
                    continue;
                }
                Some(turn) => {
                    let waiting = turn.id;
                    if !self.begin(turn, &mut seat).await {
                        warn!(turn = %waiting, "a turn waits and does not begin");
                        if !self.pause(LOOK_AGAIN).await {
                            return;
                        }
                    }
                }
                None if self.has_more(&seat) => continue,
                None => return,
            }
            // Others have waited longer than what is next here.
            if self.conversations.backlog.load(Ordering::SeqCst) {
                self.conversations.leave_to_scheduler();
                return;
            }
        }
    }

    /// How long more of a turn may still follow, if it may.
    fn may_grow(&self, turn: &TurnRecord) -> Option<Duration> {
        let within = turn.event.more_within?;
        let (until, now) = (turn.event.received_at + within, self.clock.now());
        (until > now).then(|| until.since(now).min(within))
    }

    /// Begins a turn that has waited, and works on it when the guard lets it run. `false` when nothing
    /// came of it.
    async fn begin(self: &Arc<Self>, mut turn: TurnRecord, seat: &mut Seat) -> bool {
        if &*turn.agent == crate::commands::AGENT {
            self.perform(turn).await;
            return true;
        }
        if turn.event.is_withdrawn() {
            // Its words were taken back as the process ended.
            return self.call_off(&mut turn).await;
        }
        seat.pass_to(turn.id, turn.runs + 1);
        let waited = turn.version;
        let Some(decided) = self.decide_in_the_end(&mut turn, Event::Begin, Along::default()).await else {
            return false;
        };
        let began = turn.version != waited;
        if let Some(run) = decided.run {
            self.work_on(turn, run, seat).await;
        }
        began
    }

    /// Calls a turn off whose words were taken back while it waited.
    pub(crate) async fn call_off_withdrawn(self: &Arc<Self>, turn: TurnId) {
        match self.store.turn(turn).await {
            Ok(Some(mut turn)) if turn.event.is_withdrawn() && turn.obligation.is_waiting() => {
                self.call_off(&mut turn).await;
            }
            Ok(_) => {}
            // It is called off when it is its turn to begin.
            Err(error) => warn!(%turn, %error, "a turn whose words were taken back cannot be read"),
        }
    }

    async fn call_off(self: &Arc<Self>, turn: &mut TurnRecord) -> bool {
        let withdrawn = Event::Cancelled { by: crate::model::event::WITHDRAWN.to_owned() };
        self.decide_in_the_end(turn, withdrawn, Along::default()).await.is_some()
    }

    /// Gives free seats to what waits, oldest first, until the gateway stops.
    pub(crate) async fn schedule(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.conversations.wake.notified() => {}
                () = self.stopping.cancelled() => return,
            }
            while self.conversations.more.swap(false, Ordering::SeqCst) {
                if let Err(error) = self.seat_everyone().await {
                    warn!(%error, "cannot read what waits, trying again");
                    self.conversations.more.store(true, Ordering::SeqCst);
                    self.pause(LOOK_AGAIN).await;
                }
                if self.stopping.is_cancelled() {
                    return;
                }
            }
            self.conversations.backlog.store(false, Ordering::SeqCst);
            if self.conversations.more.load(Ordering::SeqCst) {
                self.conversations.leave_to_scheduler();
            }
        }
    }

    /// Goes once through the conversations that have rows waiting; waits for a seat before each that has none.
    async fn seat_everyone(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let mut page = self.store.waiting(after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.conversation_id);
            page.sort_unstable_by_key(|waiting| waiting.turn);
            for WaitingTurn { turn, conversation, conversation_id } in page {
                if self.is_seated(&conversation) {
                    continue;
                }
                let permit = tokio::select! {
                    permit = Arc::clone(&self.conversations.free).acquire_owned() => permit,
                    () = self.stopping.cancelled() => return Ok(()),
                };
                let Ok(permit) = permit else { return Ok(()) };
                if let Some(seat) = self.sit(&conversation, turn, || Some(permit)) {
                    self.call_up(seat, conversation_id);
                }
            }
        }
    }

    /// Starts the scheduler's first round.
    pub(crate) fn open_seats(&self) {
        self.conversations.wake.notify_one();
    }
}
