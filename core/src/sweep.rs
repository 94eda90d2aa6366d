//! Finds what is owed and overdue, at start and all the time.
//!
//! Deadlines and retries are rows with a time. The sweep sleeps until the earliest of them, and is
//! woken when an earlier one is stored; it polls nothing.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream};
use rejoinder_guard::{Event, Timestamp};
use tokio::sync::Notify;
use tracing::{info, warn};

use crate::{
    commands,
    engine::Core,
    ledger::Along,
    model::{
        ids::{ConversationId, TurnId},
        turn::TurnRecord,
    },
    ports::store::{StoreError, record::AuditEntry, transition::RunEnd},
};

/// How many rows are read at once.
const PAGE: u32 = 256;

/// How many turns are decided on at once: enough to share commits.
const AT_ONCE: usize = 64;

/// How long the sweep waits when the store cannot be read, or when it got nowhere.
const PAUSE: Duration = Duration::from_secs(1);

/// How long the sweep waits for what is due and being worked on.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// When the sweep wakes up next.
pub(crate) struct Alarm {
    at: AtomicI64,
    earlier: Notify,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self { at: AtomicI64::new(i64::MAX), earlier: Notify::new() }
    }

    /// Says that something wants attention at `at`.
    pub(crate) fn note(&self, at: Timestamp) {
        if self.at.fetch_min(at.as_millis(), Ordering::SeqCst) > at.as_millis() {
            self.earlier.notify_one();
        }
    }
}

impl Core {
    /// Takes up what an earlier process left half-done: runs that died with it, attempts without a result.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut after = None;
        let mut runs = 0_usize;
        loop {
            let page = self.store.running(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(*last);
            runs += page.len();
            for result in stream::iter(page)
                .map(|turn| self.recover_run(turn))
                .buffer_unordered(AT_ONCE)
                .collect::<Vec<_>>()
                .await
            {
                result?;
            }
        }
        let attempts = self.store.interrupted().await?;
        let interrupted = attempts.len();
        for delivery in attempts {
            self.attempt_lost(&delivery, "the gateway ended before the platform answered").await?;
        }
        if runs + interrupted > 0 {
            info!(runs, attempts = interrupted, "took up what was in flight when the gateway ended");
        }
        Ok(())
    }

    async fn recover_run(self: &Arc<Self>, id: TurnId) -> Result<(), StoreError> {
        let mut turn = match self.store.turn(id).await {
            Ok(Some(turn)) => turn,
            Ok(None) => return Ok(()),
            Err(StoreError::Corrupt(error)) => {
                // One turn that cannot be read keeps no gateway from starting.
                warn!(turn = %id, error, "a turn was running and cannot be taken up");
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        // A command is about what runs and waits: it goes before all of that.
        if &*turn.agent == commands::AGENT {
            return self.try_to_perform(&turn).await;
        }
        let at = self.clock.now();
        let detail = "the gateway ended while the agent ran".to_owned();
        let run_ended = RunEnd {
            turn: id,
            number: turn.runs,
            at,
            end: "crashed".to_owned(),
            detail: Some(detail.clone()),
            usage: None,
        };
        let audit = AuditEntry { turn: id, at, kind: "recovered".to_owned(), detail };
        let along = Along { run_ended: Some(run_ended), audit: Some(audit), ..Along::default() };
        self.decide(&mut turn, Event::Recovered, along).await.map(|_| ())
    }

    /// Keeps every deadline and every retry until the gateway has ended.
    pub(crate) async fn sweep(self: Arc<Self>) {
        loop {
            if let Err(error) = self.sweep_once().await {
                warn!(%error, "cannot read what is due, trying again");
                if self.pause(PAUSE).await {
                    continue;
                }
                return;
            }
            let at = self.alarm.at.load(Ordering::SeqCst);
            tokio::select! {
                () = self.clock.sleep_until(Timestamp::from_millis(at)), if at != i64::MAX => {}
                () = self.alarm.earlier.notified() => {}
                () = self.ended.cancelled() => return,
            }
        }
    }

    async fn sweep_once(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut stuck = false;
        loop {
            let now = self.clock.now();
            let due = self.store.due(now, PAGE).await?;
            if due.is_empty() {
                break;
            }
            let moved = self.tick_all(due).await?;
            if !moved.contains(&true) {
                warn!(turns = moved.len(), "turns are due and do not move");
                stuck = true;
                break;
            }
        }
        let now = self.clock.now();
        for conversation in self.store.deliverable(now, PAGE).await? {
            let address = self.address(&conversation);
            if address != conversation {
                // It was claimed for the old id just as the chat got its new one.
                self.move_chat(&conversation, &address.chat, now).await?;
            }
            self.open_lane(&address);
        }
        // Whatever is stored from here on is noted, or found by the query.
        self.alarm.at.store(i64::MAX, Ordering::SeqCst);
        if let Some(at) = self.store.next_wake().await? {
            // What is due already is being worked on by now: look again soon.
            let at = if at <= now { now + if stuck { PAUSE } else { LOOK_AGAIN } } else { at };
            self.alarm.at.fetch_min(at.as_millis(), Ordering::SeqCst);
        }
        Ok(())
    }

    /// Tells the guard that time has passed for turns; whether that changed anything, for each. Those of one
    /// conversation come one after the other, so that what is shown there keeps their order.
    async fn tick_all(self: &Arc<Self>, due: Vec<TurnId>) -> Result<Vec<bool>, StoreError> {
        let read = stream::iter(due).map(|id| async move { (id, self.store.turn(id).await) });
        let mut conversations: HashMap<ConversationId, Vec<TurnRecord>> = HashMap::new();
        let mut moved = Vec::new();
        for (id, turn) in read.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await {
            match turn {
                Ok(Some(turn)) => conversations.entry(turn.conversation).or_default().push(turn),
                Ok(None) => moved.push(false),
                Err(error) => moved.push(Self::not_ticked(id, error)?),
            }
        }
        let ticked = stream::iter(conversations.into_values()).map(|mut turns| async move {
            turns.sort_unstable_by_key(|turn| turn.id);
            let mut moved = Vec::with_capacity(turns.len());
            for turn in turns {
                let id = turn.id;
                moved.push(match self.tick(turn).await {
                    Ok(moved) => moved,
                    Err(error) => Self::not_ticked(id, error)?,
                });
            }
            Ok::<_, StoreError>(moved)
        });
        for ticked in ticked.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await {
            moved.extend(ticked?);
        }
        Ok(moved)
    }

    /// One turn that cannot be decided on holds up no other, unless none can.
    fn not_ticked(id: TurnId, error: StoreError) -> Result<bool, StoreError> {
        if matches!(error, StoreError::Unavailable(_)) {
            return Err(error);
        }
        warn!(turn = %id, %error, "a turn is due and cannot be decided on");
        Ok(false)
    }

    /// Tells the guard that time has passed for a turn; whether that changed anything.
    async fn tick(self: &Arc<Self>, mut turn: TurnRecord) -> Result<bool, StoreError> {
        let before = turn.version;
        let decided = self.decide(&mut turn, Event::Tick, Along::default()).await?;
        if decided.run_again {
            self.line_up(&turn.event.conversation, turn.conversation, turn.id);
        }
        Ok(turn.version != before)
    }
}
