//! The sweep: handles deadlines and retries that are due, and recovers work of earlier processes at the start.
//!
//! Deadlines and retries are rows with a time. The sweep sleeps until the earliest of them, and is
//! woken when an earlier one is stored; it does not poll.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use rejoinder_guard::{Event, Timestamp};
use tracing::{info, warn};

use crate::{
    channels::Channels,
    commands::Commands,
    ledger::{Ledger, trigger::Trigger},
    lifecycle::Lifecycle,
    model::{
        conversation::ChannelId,
        ids::{ConversationId, OwnerId, TurnId},
        turn::TurnRecord,
    },
    outbox::{attempts::Attempts, lanes::Lanes},
    pauses,
    ports::{
        clock::SharedClock,
        store::{Store, StoreError, record::AuditEntry, transition::RunEnd},
    },
    timer::Timer,
};

/// The number of rows read at once.
const PAGE: u32 = 256;

/// The number of open lanes of one channel at which the sweep opens no more: the other deliveries that are due wait as
/// rows.
const MAX_LANES: u32 = 4 * PAGE;

/// The number of turns decided on concurrently: enough to share commits.
const AT_ONCE: usize = 64;

/// How soon the sweep checks again for due rows that it left alone.
const RECHECK_PAUSE: Duration = Duration::from_millis(50);

/// Keeps deadlines and retries.
pub(crate) struct Sweep {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) commands: Arc<Commands>,
    pub(crate) attempts: Arc<Attempts>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) timer: Arc<Timer>,
    pub(crate) clock: SharedClock,
    pub(crate) owner: OwnerId,
    pub(crate) lifecycle: Lifecycle,
}

impl Sweep {
    /// Recovers what earlier processes left in flight: runs without an end, and attempts without a result.
    pub(crate) async fn recover(&self) -> Result<(), StoreError> {
        let mut after = None;
        let mut runs = 0_usize;
        loop {
            let page = self.store.runs_left(self.owner, after, PAGE).await?;
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
        let attempts = self.store.attempts_left(self.owner).await?;
        let interrupted = attempts.len();
        for delivery in attempts {
            let turn = delivery.turn;
            match self.attempts.end_as_unknown(delivery, "the gateway stopped before the platform answered").await {
                // One turn that cannot be read must not prevent the start.
                Err(StoreError::Corrupt(error)) => warn!(%turn, error, "cannot recover an attempt that was in flight"),
                result => result?,
            }
        }
        if runs + interrupted > 0 {
            info!(runs, attempts = interrupted, "recovered runs and attempts of an earlier process");
        }
        Ok(())
    }

    async fn recover_run(&self, id: TurnId) -> Result<(), StoreError> {
        let mut turn = match self.store.turn(id).await {
            Ok(Some(turn)) => turn,
            Ok(None) => return Ok(()),
            Err(StoreError::Corrupt(error)) => {
                // One turn that cannot be read must not prevent the start.
                warn!(turn = %id, error, "cannot recover a turn that was running");
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if turn.handler.is_gateway() {
            return self.commands.try_to_perform(id).await;
        }
        let (at, number) = (self.clock.now(), turn.runs);
        let detail = "the gateway ended while the agent ran".to_owned();
        let (end, kind) = ("crashed".to_owned(), "recovered".to_owned());
        let remark = Some(AuditEntry { turn: id, at, kind, detail: detail.clone() });
        let end = RunEnd { turn: id, number, at, end, detail: Some(detail), usage: None };
        self.ledger.decide(&mut turn, Event::Recovered, Trigger::RunEnded { end, remark }).await.map(drop)
    }

    /// Handles every deadline and every retry, until the gateway has ended.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            if let Err(error) = self.sweep_once().await {
                warn!(%error, "cannot handle due rows, retrying");
                if self.lifecycle.pause(pauses::READ_AGAIN).await {
                    continue;
                }
                return;
            }
            let due = async {
                match self.timer.next() {
                    Some(at) => self.clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                () = self.timer.brought_forward() => {}
                () = self.lifecycle.ended.cancelled() => return,
            }
        }
    }

    async fn sweep_once(&self) -> Result<(), StoreError> {
        let mut is_stuck = false;
        loop {
            let due = self.store.due(self.clock.now(), PAGE).await?;
            if due.is_empty() {
                break;
            }
            let changed = self.tick_all(due).await?;
            if !changed.contains(&true) {
                warn!(turns = changed.len(), "due turns did not change");
                is_stuck = true;
                break;
            }
        }
        // Rows stored from here on bring the time forward, or are found by the queries.
        self.timer.clear();
        let now = self.clock.now();
        for channel in self.channels.ids() {
            if let Some(at) = self.open_lanes(channel, now).await? {
                self.timer.wait_until(at);
            }
        }
        if let Some(at) = self.store.next_wake().await? {
            let soon = now + if is_stuck { pauses::READ_AGAIN } else { RECHECK_PAUSE };
            self.timer.wait_until(if at <= now { soon } else { at });
        }
        Ok(())
    }

    /// Opens the lanes of a channel's due deliveries. Returns when the sweep must do so again. An open lane needs no
    /// sweep: it ends only when nothing is due, and sets the timer then.
    async fn open_lanes(&self, channel: &ChannelId, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let open = self.lanes.count(channel);
        if open >= MAX_LANES {
            return Ok(Some(now + RECHECK_PAUSE));
        }
        // Even if all open lanes are among them, there is a page of others.
        let upcoming = self.store.upcoming(channel, open + PAGE).await?;
        let is_cut_off = upcoming.len() >= (open + PAGE) as usize;
        for (conversation, at) in upcoming {
            if at > now {
                return Ok(Some(at));
            }
            self.lanes.open(channel, conversation);
        }
        Ok(is_cut_off.then_some(now + RECHECK_PAUSE))
    }

    /// Reports to the guard that time has passed for turns; returns for each whether it changed. Turns of one
    /// conversation are handled one after the other, so that their signals keep their order.
    async fn tick_all(&self, due: Vec<TurnId>) -> Result<Vec<bool>, StoreError> {
        let read = stream::iter(due).map(|id| async move { (id, self.store.turn(id).await) });
        let mut conversations: HashMap<ConversationId, Vec<TurnRecord>> = HashMap::new();
        let mut changed = Vec::new();
        for (id, turn) in read.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await {
            match turn {
                Ok(Some(turn)) => conversations.entry(turn.conversation).or_default().push(turn),
                Ok(None) => changed.push(false),
                Err(error) => changed.push(not_ticked(id, error)?),
            }
        }
        let ticked = stream::iter(conversations.into_values()).map(|mut turns| async move {
            turns.sort_unstable_by_key(|turn| turn.id);
            let mut changed = Vec::with_capacity(turns.len());
            for turn in turns {
                let id = turn.id;
                changed.push(match self.tick(turn).await {
                    Ok(changed) => changed,
                    Err(error) => not_ticked(id, error)?,
                });
            }
            Ok::<_, StoreError>(changed)
        });
        for ticked in ticked.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await {
            changed.extend(ticked?);
        }
        Ok(changed)
    }

    /// Reports to the guard that time has passed for a turn; returns whether it changed.
    async fn tick(&self, mut turn: TurnRecord) -> Result<bool, StoreError> {
        let before = turn.version;
        self.ledger.decide(&mut turn, Event::Tick, Trigger::Event).await?;
        Ok(turn.version != before)
    }
}

/// Skips a turn that cannot be decided on, so that it does not delay others; an unavailable store stays an error.
fn not_ticked(id: TurnId, error: StoreError) -> Result<bool, StoreError> {
    if matches!(error, StoreError::Unavailable(_)) {
        return Err(error);
    }
    warn!(turn = %id, %error, "cannot decide on a due turn");
    Ok(false)
}
