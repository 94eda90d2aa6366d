//! The sweep: handles deadlines and retries that are due, and recovers work of earlier processes at the start, and of other nodes all
//! the time.
//!
//! Deadlines and retries are rows with a time. The sweep sleeps until the earliest of them, and is
//! woken when an earlier one is stored; it polls only while other nodes live, which store some as well.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use rejoinder_guard::{Event, Timestamp};
use tracing::{error, info, warn};

use crate::{
    base::{channels::Channels, lifecycle::Lifecycle, pauses, timer::Timer},
    commands::Commands,
    events::TurnEvents,
    handles::{
        lanes::{Lanes, MAX_LANES},
        slots::Slots,
    },
    ledger::{Ledger, trigger::Trigger},
    model::{ChannelId, ConversationId, NodeId, TurnId, TurnRecord},
    nodes::{
        hints::Hints,
        leases::{self, Leases},
    },
    outbox::{attempts::Attempts, ephemerals::marker::MARK_AFTER},
    ports::{DeadlineStore, Fence, LeftRun, OutboxStore, Remark, RunEnd, SharedClock, StoreError},
};

/// The number of rows read at once.
const PAGE: u32 = 256;

/// How long before the last turn ended others may have ended whose messages an earlier process was still removing: longer
/// than [`pauses::REMOVE`].
const LEFTOVERS: Duration = Duration::from_mins(5);

/// How soon it looks again while other nodes live: what one leaves may be due at any time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How far a node that is alone looks ahead.
const DAY: Duration = Duration::from_hours(24);

/// The number of turns decided on concurrently: enough to share commits.
const AT_ONCE: usize = 64;

pub(crate) struct Sweep {
    pub(crate) store: Arc<dyn DeadlineStore>,
    pub(crate) outbox: Arc<dyn OutboxStore>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) commands: Arc<Commands>,
    pub(crate) attempts: Arc<Attempts>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) hints: Arc<Hints>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) timer: Arc<Timer>,
    pub(crate) clock: SharedClock,
    pub(crate) node: NodeId,
    pub(crate) lifecycle: Lifecycle,
    /// The turns that were skipped, to report each once.
    pub(crate) skipped: Mutex<HashSet<TurnId>>,
    /// The channels that were [taken over](Self::take_over), under which leases. Empty if these are there for good.
    pub(crate) taken: Mutex<HashMap<ChannelId, Fence>>,
}

impl Sweep {
    /// Recovers what other nodes left in flight, at the start: runs without an end, and attempts without a result.
    pub(crate) async fn recover(&self) -> Result<(), StoreError> {
        let taken = self.take_over().await?;
        let runs = self.recover_runs(&[]).await?;
        let holds: HashMap<_, _> =
            self.channels.ids().filter_map(|channel| Some((channel, self.leases.hold(channel)?))).collect();
        let mut attempts = self.outbox.attempts_left(Some(self.node)).await?;
        attempts.retain(|delivery| holds.contains_key(&delivery.conversation.channel));
        let interrupted = attempts.len();
        for delivery in attempts {
            let (turn, hold) = (delivery.turn, holds.get(&delivery.conversation.channel));
            let why = "the gateway stopped before the platform answered";
            self.or_skip(turn, self.attempts.end_as_unknown(delivery, why, hold).await).await?;
        }
        if runs + interrupted > 0 {
            info!(runs, attempts = interrupted, "recovered runs and attempts of an earlier process");
        }
        self.ledger.unmerge_left().await?;
        self.recover_leftovers(&self.held()).await?;
        self.taken().extend(taken);
        Ok(())
    }

    /// The channels whose leases have begun here since they were last noted as taken over. Before anything is sent there, the limits are
    /// read that their platforms have told other nodes.
    async fn take_over(&self) -> Result<Vec<(ChannelId, Fence)>, StoreError> {
        if self.leases.are_for_good() {
            return Ok(Vec::new());
        }
        let held = self.channels.ids().filter_map(|channel| Some((channel.clone(), self.leases.holds(channel)?)));
        let mut new: Vec<_> = held.collect();
        {
            let taken = self.taken();
            new.retain(|(channel, fence)| taken.get(channel) != Some(fence));
        }
        if !new.is_empty() {
            for scope in self.outbox.blocked(self.clock.now()).await? {
                self.attempts.caller.gate.block(&scope);
            }
        }
        Ok(new)
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<ChannelId, Fence>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The channels that this node holds now.
    pub(crate) fn held(&self) -> Vec<ChannelId> {
        self.channels.ids().filter(|channel| self.leases.holds(channel).is_some()).cloned().collect()
    }

    /// Recovers what nodes leave in flight while this one runs, until the gateway stops. If there can be no other node, the start has done
    /// it, and it returns at once.
    pub(crate) async fn recover_again(self: Arc<Self>) {
        // Who waits for such a run has waited since before its node was over.
        let every = || if self.hints.any() { LOOK_AGAIN } else { leases::EVERY };
        while !self.leases.are_for_good() && self.lifecycle.pause_unless_stopping(every()).await {
            if let Err(error) = self.recover_left().await {
                warn!(%error, "cannot recover what other nodes left, trying again");
            }
        }
    }

    async fn recover_left(&self) -> Result<(), StoreError> {
        let runs = self.recover_runs(&self.slots.in_flight()).await?;
        if runs > 0 {
            // Turns may wait behind them that only the lost node knew.
            self.slots.fall_behind();
        }
        let mut attempts = self.outbox.attempts_left(None).await?;
        attempts.retain(|delivery| {
            let channel = &delivery.conversation.channel;
            self.leases.may_begin(channel) && !self.lanes.is_open(delivery.conversation_id)
        });
        for delivery in &attempts {
            // The lane ends the attempt. So it is ended once, and no attempt that is in flight here.
            self.lanes.open(&delivery.conversation.channel, delivery.conversation_id);
        }
        if runs + attempts.len() > 0 {
            info!(runs, attempts = attempts.len(), "recovered runs and attempts that a node had left");
        }
        Ok(())
    }

    /// Recovers the runs that are left, but for those of turns that are `in_flight` here. Returns how many were.
    async fn recover_runs(&self, in_flight: &[TurnId]) -> Result<usize, StoreError> {
        let (mut after, mut runs) = (None, 0);
        loop {
            let page = self.store.runs_left(self.node, in_flight, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(runs) };
            after = Some(last.turn);
            let recovered = stream::iter(page).map(|left| async move { (left.turn, self.recover_run(left).await) });
            for (turn, result) in recovered.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await {
                runs += usize::from(self.or_skip(turn, result).await? == Some(true));
            }
        }
    }

    /// Removes what turns that other nodes have ended lately may have left on the channels of this one, because nobody told it of them.
    pub(crate) async fn recover_missed(&self) -> Result<(), StoreError> {
        self.recover_leftovers(&self.held()).await
    }

    /// Removes the drafts, deferrals and marks on these channels that another process had no time to remove. Which of them it has removed
    /// is not stored: those are gone already.
    async fn recover_leftovers(&self, channels: &[ChannelId]) -> Result<(), StoreError> {
        if channels.is_empty() {
            return Ok(());
        }
        for id in self.store.ended_last(channels, LEFTOVERS, MARK_AFTER, PAGE).await? {
            let Some(turn) = self.store.readable_turn(id).await? else { continue };
            let executor = &self.ledger.executor;
            let first = self.store.runs(id).await?.first().map(|run| run.started_at);
            if first.is_none_or(|began| began.since(turn.event.received_at) >= MARK_AFTER) {
                executor.leftovers.take_mark_away(turn.clone());
            }
            executor.remove_leftovers(turn);
        }
        Ok(())
    }

    /// Recovers a run; `false` if it is not left any more: it began after what is left was read, or another node was faster.
    async fn recover_run(&self, left: LeftRun) -> Result<bool, StoreError> {
        loop {
            let Some(turn) = self.store.turn(left.turn).await? else { return Ok(false) };
            let is_here = self.slots.ran(turn.conversation, turn.id).is_some();
            let is_ours = self.ledger.has_channel(&turn.event.conversation.channel);
            if is_here || !is_ours || turn.runs != left.runs || !turn.obligation.is_running() {
                return Ok(false);
            }
            if turn.handler.is_gateway() {
                return self.commands.try_to_perform(turn.id).await.map(|()| true);
            }
            let (at, id) = (self.clock.now(), turn.id);
            let detail = "the gateway ended while the agent ran".to_owned();
            let (end, kind) = ("crashed".to_owned(), "recovered".to_owned());
            let remark = Some(Remark { turn: id, at, kind, detail: detail.clone() });
            let end = RunEnd::new(id, left.runs, at, end, Some(detail));
            let trigger = Trigger::RunEnded { end, remark, at_once: None, whole: None, leaves: false, title: None };
            let mut inputs = [TurnEvents { turn, events: vec![Event::Recovered] }];
            if self.ledger.try_to_decide(&mut inputs, &trigger).await?.is_some() {
                return Ok(true);
            }
        }
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
            tokio::select! {
                () = self.clock.sleep_until_next(self.timer.next()) => {}
                () = self.timer.brought_forward() => {}
                () = self.lifecycle.ended.cancelled() => return,
            }
        }
    }

    async fn sweep_once(&self) -> Result<(), StoreError> {
        let new = self.take_over().await?;
        let mut is_stuck = false;
        loop {
            let due = self.due().await?;
            if due.is_empty() {
                break;
            }
            let changed = self.tick_all(due).await?;
            if !changed.contains(&true) {
                if !changed.is_empty() {
                    warn!(turns = changed.len(), "due turns did not change");
                }
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
        if let Some(at) = self.next_wake(now).await? {
            self.timer.wait_until(if is_stuck && at <= now { now + pauses::READ_AGAIN } else { at });
        }
        // After its lanes are opened: people wait for what these send.
        let channels: Vec<_> = new.iter().map(|(channel, _)| channel.clone()).collect();
        self.recover_leftovers(&channels).await?;
        self.taken().extend(new);
        Ok(())
    }

    /// The turns that are due. Where there can be other nodes, those that this one runs, and those on its channels that no other one runs:
    /// only the node of a run knows how long it has taken.
    async fn due(&self) -> Result<Vec<TurnId>, StoreError> {
        let now = self.clock.now();
        if self.leases.are_for_good() {
            return self.store.due(now, PAGE).await;
        }
        let due = self.store.due_at(self.node, &self.held(), now, PAGE).await?;
        Ok(due.into_iter().map(|(turn, _)| turn).collect())
    }

    /// When the next of them is due.
    async fn next_wake(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        if self.leases.are_for_good() {
            return self.store.next_wake().await;
        }
        // Others may change what is due.
        let until = now + if self.hints.any() { LOOK_AGAIN } else { DAY };
        let next = self.store.due_at(self.node, &self.held(), until, 1).await?;
        Ok(Some(next.first().map_or(until, |(_, at)| *at)))
    }

    /// Opens the lanes of a channel's due deliveries. Returns when the sweep must do so again. An open lane needs no
    /// sweep: it ends only when nothing is due, and sets the timer then.
    async fn open_lanes(&self, channel: &ChannelId, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        // A lane that is opened while the lease is given back ends at once.
        while self.leases.may_begin(channel) && !self.lanes.is_full(channel) && !self.lifecycle.ended.is_cancelled() {
            // At least one of so many has no lane yet.
            let upcoming = self.outbox.upcoming(channel, MAX_LANES).await?;
            let are_all = upcoming.len() < MAX_LANES as usize;
            for (conversation, at) in upcoming {
                if at > now {
                    return Ok(Some(at));
                }
                self.lanes.open(channel, conversation);
            }
            if are_all {
                break;
            }
        }
        Ok(None)
    }

    /// Reports to the guard that time has passed for turns; returns for each that was not skipped whether it changed. Turns
    /// of one conversation are handled one after the other, so that their signals keep their order.
    async fn tick_all(&self, due: Vec<TurnId>) -> Result<Vec<bool>, StoreError> {
        let read = stream::iter(due).map(|id| async move { (id, self.store.turn(id).await) });
        let mut conversations: HashMap<ConversationId, Vec<TurnRecord>> = HashMap::new();
        let mut changed = Vec::new();
        for (id, turn) in read.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await {
            match self.or_skip(id, turn).await? {
                Some(Some(turn)) => conversations.entry(turn.conversation).or_default().push(turn),
                Some(None) => changed.push(false),
                None => {}
            }
        }
        let ticked = stream::iter(conversations.into_values()).map(|mut turns| async move {
            turns.sort_unstable_by_key(|turn| turn.seq);
            let mut changed = Vec::with_capacity(turns.len());
            for turn in turns {
                let id = turn.id;
                let ticked = self.tick(turn).await;
                changed.extend(self.or_skip(id, ticked).await?);
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
        let ran = self.slots.ran(turn.conversation, turn.id);
        self.ledger.decide(&mut turn, Event::Tick { ran }, Trigger::Event).await?;
        Ok(turn.version != before)
    }

    /// The value of `result`; `None` for a turn that cannot be read or decided on, so that it stops no other. One that
    /// cannot be read is set aside, or left to nodes of another version; of any other the operator hears once. A store that is away
    /// stays an error.
    async fn or_skip<T>(&self, turn: TurnId, result: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_outage() => Err(error),
            Err(StoreError::NotOwner) => Ok(None),
            Err(StoreError::CorruptTurn { turn, reason }) => match self.ledger.set_aside(turn, &reason).await {
                Ok(()) | Err(StoreError::NotOwner) => Ok(None),
                Err(error) => Err(error),
            },
            Err(error) => {
                if self.skipped.lock().unwrap_or_else(PoisonError::into_inner).insert(turn) {
                    error!(%turn, %error, "a turn cannot be decided on, and is skipped");
                }
                Ok(None)
            }
        }
    }
}
