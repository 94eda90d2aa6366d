//! Which turns are answered together: the parts of an album, and what the queue mode of the conversation puts together.
//! The guard merges them, not this room.
//!
//! The turns wait as rows of their own until one of them begins. It is the guard that merges them, in the transaction in
//! which that one begins, or takes them in while it runs.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::{Event, Expectation, MergedTurn, Timestamp};

use crate::{
    base::channels::Channels,
    conversations::addresses::Addresses,
    events::TurnEvents,
    model::{Backlog, EventKind, InboundEvent, LiveSettings, Overflow, QueueMode, Receipts, TurnRecord},
    ports::{QueueStore, SharedClock, StoreError},
};

/// For how many windows `collect` waits at most.
const WINDOWS: u32 = 5;

/// How many turns are answered together at most, whatever waits.
const MOST: u32 = 500;

/// Finds turns that are answered together.
pub(crate) struct Merges {
    store: Arc<dyn QueueStore>,
    channels: Arc<Channels>,
    settings: LiveSettings,
    clock: SharedClock,
    addresses: Arc<Addresses>,
}

/// The turns that are answered together with another one.
#[derive(Default)]
pub(crate) struct MergeGroup {
    pub(crate) turns: Vec<TurnRecord>,
    /// How long more may come.
    pub(crate) pause: Option<Duration>,
    /// How often the turn waits for more at most, whatever times an adapter gives.
    pub(crate) pauses: u32,
}

impl Merges {
    pub(crate) const fn new(
        store: Arc<dyn QueueStore>,
        channels: Arc<Channels>,
        settings: LiveSettings,
        clock: SharedClock,
        addresses: Arc<Addresses>,
    ) -> Self {
        Self { store, channels, settings, clock, addresses }
    }

    /// What happens to a message of this turn's conversation.
    pub(crate) async fn mode(&self, turn: &TurnRecord) -> Result<QueueMode, StoreError> {
        let chosen = self.addresses.queue_mode(turn).await?;
        Ok(self.mode_of(chosen, &turn.event, turn.rule.as_deref()))
    }

    /// What happens to a message in a conversation, for which a rule holds: what somebody chose, else what the rule says,
    /// else what is configured for the channel.
    pub(crate) fn mode_of(&self, chosen: Option<QueueMode>, event: &InboundEvent, rule: Option<&str>) -> QueueMode {
        let settings = self.settings.read();
        let is_together = matches!(settings.queues.backlog, Backlog::Summarize | Backlog::Ask);
        if is_together && settings.queues.is_backlog(event, self.clock.now()) {
            return QueueMode::Collect;
        }
        chosen.unwrap_or_else(|| settings.queue_mode(event, rule))
    }

    /// The turns that begin together with `first`, which is next in its conversation.
    pub(crate) async fn at_begin(&self, first: &TurnRecord) -> Result<MergeGroup, StoreError> {
        if !self.merges_in(first) {
            return Ok(MergeGroup::default());
        }
        let settings = self.settings.get();
        let queues = &settings.queues;
        let mode = self.mode(first).await?;
        let (gathers, may_overflow) = (gathers(mode), queues.overflow == Overflow::Summarize);
        if !(gathers || may_overflow || first.event.part_of.is_some()) {
            return Ok(MergeGroup::default());
        }
        let most = if may_overflow { MOST.max(queues.cap) } else { queues.cap };
        let most = most.saturating_sub(u32::try_from(first.obligation.merged_turns().len()).unwrap_or(most));
        let waiting = self.store.waiting_turns(first.conversation, most.saturating_add(1)).await?;
        let is_over = may_overflow && waiting.len() > queues.cap as usize;
        let turns: Vec<_> = if gathers || is_over {
            behind(first, waiting, |_| true).take(most as usize).collect()
        } else {
            behind(first, waiting, |turn| is_same_album(first, turn)).collect()
        };
        let pause = self.may_grow_until(first, &turns, mode).and_then(|(until, most)| {
            let now = self.clock.now();
            // No longer than that: the clock may have been set back.
            (until > now).then(|| until.since(now).min(most))
        });
        let pauses = if first.event.more_within.is_some() { 1 } else { 2 * WINDOWS };
        Ok(MergeGroup { turns, pause, pauses })
    }

    /// The turns that a run of `first`, which is in flight, can take in.
    pub(crate) async fn during_run(&self, first: &TurnRecord) -> Result<Vec<TurnRecord>, StoreError> {
        if !self.merges_in(first) || self.mode(first).await? != QueueMode::Steer {
            return Ok(Vec::new());
        }
        let cap = self.settings.get().queues.cap;
        let room = cap.saturating_sub(u32::try_from(first.obligation.merged_turns().len()).unwrap_or(cap));
        let waiting = self.store.waiting_turns(first.conversation, room).await?;
        Ok(behind(first, waiting, |_| true).collect())
    }

    /// Whether a turn that waits stops the run of `running`, to be answered together with it.
    pub(crate) fn stops(&self, running: &TurnRecord, turn: &TurnRecord) -> bool {
        let cap = self.settings.get().queues.cap as usize;
        running.obligation.is_running()
            && running.seq < turn.seq
            && self.merges_in(running)
            && may_join(running, turn)
            && running.obligation.merged_turns().len() < cap
            && running.obligation.merged_turns().iter().all(|merged| merged.place < turn.seq)
    }

    /// Whether others may be answered together with a turn. Not where its answer is also posted elsewhere, under its
    /// own id; nor once its agent has asked for an approval or has deferred it, because a later message is no part of
    /// that promise; nor with a voice note that nobody understands.
    fn merges_in(&self, first: &TurnRecord) -> bool {
        let address = &first.event.conversation;
        let receipts = self.channels.get(&address.channel).map(|channel| channel.capabilities(address).receipts);
        let is_free = !first.obligation.has_asked_approval()
            && first.obligation.agents_deferrals() == 0
            && !first.event.lacks_words();
        is_free && first.event.kind == EventKind::Message && receipts != Some(Receipts::RowThenCopy)
    }

    /// Until when more may come, and for how long at most.
    fn may_grow_until(
        &self,
        first: &TurnRecord,
        turns: &[TurnRecord],
        mode: QueueMode,
    ) -> Option<(Timestamp, Duration)> {
        if let Some(within) = first.event.more_within {
            return Some((first.event.received_at + within, within));
        }
        if mode != QueueMode::Collect || first.runs > 0 {
            return None;
        }
        let window = self.settings.get().queues.window;
        let last = turns.iter().map(|turn| turn.event.received_at).max().unwrap_or(first.event.received_at);
        Some(((last + window).min(first.event.received_at + window * WINDOWS), window))
    }
}

/// Whether a turn of an event waits for more, or for its words, before it begins, though nothing else runs.
pub(crate) fn waits_for_more(event: &InboundEvent, mode: QueueMode) -> bool {
    mode == QueueMode::Collect && event.kind == EventKind::Message
        || event.more_within.is_some()
        || event.awaits_words()
}

/// Whether a turn that was accepted in this mode begins by itself if it waits alone: then its conversation need not be read.
/// A mode that is chosen later holds for later turns.
pub(crate) fn begins_by_itself(event: &InboundEvent, mode: QueueMode) -> bool {
    !gathers(mode) && event.more_within.is_none() && !event.awaits_words()
}

/// Whether a turn is answered together with all turns that wait behind it.
const fn gathers(mode: QueueMode) -> bool {
    matches!(mode, QueueMode::Collect | QueueMode::Interrupt)
}

/// What happens to `first` and to the turns that are merged into it.
pub(crate) fn events(first: TurnRecord, turns: Vec<TurnRecord>, then: Option<Event>) -> Vec<TurnEvents> {
    let into = first.id.to_string();
    let is_owed = turns.iter().any(|turn| turn.obligation.expectation() == Expectation::Answer);
    let owed = if is_owed { Expectation::Answer } else { Expectation::Nothing };
    let merged = turns.iter().map(|turn| MergedTurn { turn: turn.id.to_string(), place: turn.seq }).collect();
    let of_first = std::iter::once(Event::Absorbed { turns: merged, owed }).chain(then).collect();
    let of_others =
        turns.into_iter().map(|turn| TurnEvents { turn, events: vec![Event::Merged { into: into.clone() }] });
    std::iter::once(TurnEvents { turn: first, events: of_first }).chain(of_others).collect()
}

/// The `waiting` turns that can be answered together with `first`: all before the first one that cannot.
fn behind(
    first: &TurnRecord,
    waiting: Vec<TurnRecord>,
    is_wanted: impl Fn(&TurnRecord) -> bool,
) -> impl Iterator<Item = TurnRecord> {
    let mut turns: Vec<_> = waiting.into_iter().filter(|turn| turn.seq > first.seq).collect();
    turns.sort_unstable_by_key(|turn| turn.seq);
    let end = turns.iter().position(|turn| !may_join(first, turn) || !is_wanted(turn)).unwrap_or(turns.len());
    turns.truncate(end);
    turns.into_iter()
}

/// Whether a turn that waits can be answered together with an earlier one.
fn may_join(first: &TurnRecord, turn: &TurnRecord) -> bool {
    turn.obligation.may_be_merged()
        && turn.event.kind == EventKind::Message
        && !turn.event.is_withdrawn()
        && !turn.event.lacks_words()
        && turn.session == first.session
        && turn.handler == first.handler
        && turn.model == first.model
        && instructions(turn) == instructions(first)
        && turn.event.seal_to == first.event.seal_to
}

/// The brief of the sender's program: turns that are answered together must have the same.
fn instructions(turn: &TurnRecord) -> Option<&str> {
    turn.event.brief.as_ref()?.instructions.as_deref()
}

fn is_same_album(first: &TurnRecord, turn: &TurnRecord) -> bool {
    turn.event.part_of.is_some()
        && turn.event.part_of == first.event.part_of
        && turn.event.sender.id == first.event.sender.id
}
