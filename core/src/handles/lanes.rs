//! Lanes: the conversations with deliveries to send.

use std::sync::Arc;

use dashmap::{DashMap, Entry, VacantEntry};
use tokio::sync::mpsc;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{
    base::{lifecycle::Lifecycle, timer::Timer},
    model::{ChannelId, ConversationId, DeliveryId, DeliveryRecord, TurnRecord},
    ports::{Fence, LeaseName},
};

/// The number of open lanes of one channel at which the sweep opens no more: the other deliveries that are due wait as
/// rows.
pub(crate) const MAX_LANES: u32 = 1024;

/// The number at which it opens more again.
const FEW_LANES: u32 = MAX_LANES - MAX_LANES / 4;

/// The conversations with a lane, a task that sends their deliveries. Storing a delivery opens the lane; the
/// dispatcher runs it.
pub(crate) struct Lanes {
    open: DashMap<ConversationId, OpenLane>,
    counts: DashMap<ChannelId, LaneCount>,
    /// Conversations whose deliveries are to be sent before their next attempts are due.
    hurried: DashMap<ConversationId, Hurry>,
    opened: mpsc::UnboundedSender<Opened>,
    timer: Arc<Timer>,
    lifecycle: Lifecycle,
}

/// What is sent before its next attempt is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hurry {
    /// All that waits.
    All,
    /// This delivery, and the others if it is delivered.
    One(DeliveryId),
    /// The same for an operator, who has it sent although it may have arrived.
    Asked(DeliveryId),
    /// Nothing: whether the platform answers is to be found out.
    Look,
}

#[derive(Default)]
struct LaneCount {
    open: u32,
    /// Whether the sweep waits until fewer are open.
    is_full: bool,
}

struct OpenLane {
    channel: ChannelId,
    /// Whether it was opened again since its task last tried to close it.
    more: bool,
}

pub(crate) struct Opened {
    pub(crate) channel: ChannelId,
    pub(crate) conversation: ConversationId,
    /// What is sent before the lane looks for what is to be sent.
    pub(crate) first: Option<Box<FirstAttempt>>,
    /// Counts the lane as work that a stop waits for.
    pub(crate) work: TaskTrackerToken,
}

/// The first attempt of a delivery, stored with its claim.
pub(crate) struct FirstAttempt {
    pub(crate) delivery: DeliveryRecord,
    /// The turn as it was stored.
    pub(crate) turn: TurnRecord,
    pub(crate) reservation: Box<dyn Reservation>,
}

/// Reserves what the first attempt of a delivery needs, before it is stored. The outbox does.
pub(crate) trait Reservations: Send + Sync {
    /// `None` if the attempt would have to wait for anything.
    fn reserve(&self, delivery: &DeliveryRecord) -> Option<ReservedLane>;
}

/// What an attempt needs beside its lane, until it is dropped. What is not [used](Self::used) by then is given back.
pub(crate) trait Reservation: Send {
    fn used(&mut self);

    /// The lease of the channel, under which the attempt is stored and made.
    fn fence(&self) -> Option<(LeaseName, Fence)>;
}

/// A lane that waits for its first attempt to be stored. Dropped before, it looks for what is to be sent.
pub(crate) struct ReservedLane {
    lanes: Arc<Lanes>,
    channel: ChannelId,
    conversation: ConversationId,
    reservation: Option<Box<dyn Reservation>>,
    first: Option<Box<FirstAttempt>>,
    _work: TaskTrackerToken,
}

impl ReservedLane {
    /// See [`Reservation::fence`].
    pub(crate) fn fence(&self) -> Option<(LeaseName, Fence)> {
        self.reservation.as_ref().and_then(|reservation| reservation.fence())
    }

    /// Has the attempt made, which is stored now.
    pub(crate) fn begin(mut self, delivery: DeliveryRecord, turn: TurnRecord) {
        if let Some(mut reservation) = self.reservation.take() {
            reservation.used();
            self.first = Some(Box::new(FirstAttempt { delivery, turn, reservation }));
        }
    }
}

impl Drop for ReservedLane {
    fn drop(&mut self) {
        // Before the lane looks.
        self.reservation = None;
        if self.lanes.lifecycle.ended.is_cancelled() {
            // Nobody makes an attempt any more: the next start finds its row.
            self.first = None;
            return;
        }
        self.lanes.start(&self.channel, self.conversation, self.first.take());
    }
}

impl Lanes {
    pub(crate) fn new(timer: Arc<Timer>, lifecycle: Lifecycle) -> (Self, mpsc::UnboundedReceiver<Opened>) {
        let (opened, lanes) = mpsc::unbounded_channel();
        let (open, counts, hurried) = (DashMap::new(), DashMap::new(), DashMap::new());
        (Self { open, counts, hurried, opened, timer, lifecycle }, lanes)
    }

    /// Opens the lane of `conversation`, which is on `channel`, so that its due deliveries are sent.
    pub(crate) fn open(&self, channel: &ChannelId, conversation: ConversationId) {
        if self.lifecycle.ended.is_cancelled() {
            return;
        }
        match self.open.entry(conversation) {
            Entry::Occupied(mut open) => open.get_mut().more = true,
            Entry::Vacant(vacant) => {
                self.insert(vacant, channel);
                self.start(channel, conversation, None);
            }
        }
    }

    /// Opens the lane of `conversation` for a first attempt that is about to be stored. `None` if it is open, or the gateway
    /// stops: the attempt might not be made any more.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        channel: &ChannelId,
        conversation: ConversationId,
        reservation: Box<dyn Reservation>,
    ) -> Option<ReservedLane> {
        if self.lifecycle.stopping.is_cancelled() {
            return None;
        }
        let Entry::Vacant(vacant) = self.open.entry(conversation) else { return None };
        self.insert(vacant, channel);
        let (lanes, channel) = (Arc::clone(self), channel.clone());
        let (reservation, work) = (Some(reservation), self.lifecycle.work.token());
        Some(ReservedLane { lanes, channel, conversation, reservation, first: None, _work: work })
    }

    fn insert(&self, vacant: VacantEntry<'_, ConversationId, OpenLane>, channel: &ChannelId) {
        vacant.insert(OpenLane { channel: channel.clone(), more: false });
        self.counts.entry(channel.clone()).or_default().open += 1;
    }

    fn start(&self, channel: &ChannelId, conversation: ConversationId, first: Option<Box<FirstAttempt>>) {
        let (channel, work) = (channel.clone(), self.lifecycle.work.token());
        // Sending fails only after the gateway has ended: the row stays then.
        let _ = self.opened.send(Opened { channel, conversation, first, work });
    }

    /// As [`open`](Self::open), and deliveries that wait for their next attempt are due at once.
    pub(crate) fn hurry(&self, channel: &ChannelId, conversation: ConversationId) {
        self.hurried.insert(conversation, Hurry::All);
        self.open(channel, conversation);
    }

    /// Finds out whether the platform answers: with `delivery`, else with a call that shows nothing that stays.
    pub(crate) fn probe(&self, channel: &ChannelId, conversation: ConversationId, delivery: Option<DeliveryId>) {
        self.hurried.entry(conversation).or_insert(delivery.map_or(Hurry::Look, Hurry::One));
        self.open(channel, conversation);
    }

    pub(crate) fn is_open(&self, conversation: ConversationId) -> bool {
        self.open.contains_key(&conversation)
    }

    /// Whether `channel` has so many open lanes that the sweep opens no more. It is woken when fewer are open.
    pub(crate) fn is_full(&self, channel: &ChannelId) -> bool {
        self.counts.get_mut(channel).is_some_and(|mut count| {
            count.is_full = count.open >= MAX_LANES;
            count.is_full
        })
    }

    /// As [`hurry`](Self::hurry) for one delivery that an operator wants tried, although it may have arrived.
    pub(crate) fn ask(&self, channel: &ChannelId, conversation: ConversationId, delivery: DeliveryId) {
        self.hurried.insert(conversation, Hurry::Asked(delivery));
        self.open(channel, conversation);
    }

    /// What is hurried in the conversation; clears it.
    pub(crate) fn take_hurry(&self, conversation: ConversationId) -> Option<Hurry> {
        self.hurried.remove(&conversation).map(|(_, hurry)| hurry)
    }

    /// Closes a lane; `false` if it was opened again meanwhile.
    pub(crate) fn close(&self, conversation: ConversationId) -> bool {
        let closed = self.open.remove_if_mut(&conversation, |_, lane| !std::mem::take(&mut lane.more));
        if let Some((_, lane)) = &closed
            && let Some(mut count) = self.counts.get_mut(&lane.channel)
        {
            count.open -= 1;
            if count.is_full && count.open <= FEW_LANES {
                count.is_full = false;
                self.timer.wake_now();
            }
        }
        closed.is_some()
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_guard::Timestamp;

    use super::*;
    use crate::conformance::clock::TestClock;

    struct Nothing;

    impl Reservation for Nothing {
        fn used(&mut self) {}

        fn fence(&self) -> Option<(LeaseName, Fence)> {
            None
        }
    }

    #[tokio::test]
    async fn a_reserved_lane_is_open_and_begins_when_it_is_given_up() {
        let lifecycle = Lifecycle::new(TestClock::new());
        let (lanes, mut opened) = Lanes::new(Arc::new(Timer::new()), lifecycle.clone());
        let (lanes, channel) = (Arc::new(lanes), ChannelId::new("test", "main"));
        let chat = ConversationId::new(Timestamp::from_millis(0));
        let reserve = || lanes.reserve(&channel, chat, Box::new(Nothing));

        let reserved = reserve().expect("it is not open");
        assert!(reserve().is_none());
        lanes.open(&channel, chat);
        assert!(opened.try_recv().is_err(), "it waits for what is stored");
        drop(reserved);
        let begun = opened.try_recv().expect("it begins");
        assert!(begun.first.is_none() && opened.try_recv().is_err());
        assert!(!lanes.close(chat), "it was opened meanwhile");
        assert!(lanes.close(chat));

        let left = reserve().expect("it is closed");
        lifecycle.stopping.cancel();
        assert!(reserve().is_none());
        lifecycle.ended.cancel();
        drop(left);
        assert!(opened.try_recv().is_err(), "nobody would make its attempt");
    }
}
