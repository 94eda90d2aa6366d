//! Limits the notices to strangers: each is a turn with all its rows, so a flood of strangers must not get one each.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rejoinder_guard::Timestamp;
use tracing::warn;

use crate::model::ChannelId;

/// The most notices of a channel in an hour. A stranger without one gets it when they write again later.
const PER_HOUR: u32 = 60;

const HOUR_MS: i64 = 60 * 60 * 1000;

/// Counts the notices of every channel.
#[derive(Default)]
pub(crate) struct NoticePermits(Mutex<HashMap<ChannelId, Hour>>);

/// The notices of a channel in one hour.
#[derive(Clone, Copy)]
struct Hour {
    number: i64,
    notices: u32,
    is_reported: bool,
}

impl NoticePermits {
    /// Takes a permit for one notice; `None` if the channel has none left in this hour.
    pub(super) fn try_take(self: &Arc<Self>, channel: &ChannelId, now: Timestamp) -> Option<NoticePermit> {
        let number = now.as_millis() / HOUR_MS;
        let mut hours = self.hours();
        let hour = hours.entry(channel.clone()).or_insert(Hour { number, notices: 0, is_reported: false });
        if hour.number != number {
            *hour = Hour { number, notices: 0, is_reported: false };
        }
        if hour.notices == PER_HOUR {
            if !std::mem::replace(&mut hour.is_reported, true) {
                warn!(%channel, PER_HOUR, "many strangers write, no more of them are told their id in this hour");
            }
            return None;
        }
        hour.notices += 1;
        Some(NoticePermit { notices: Arc::clone(self), channel: channel.clone(), number, is_spent: false })
    }

    fn give_back(&self, channel: &ChannelId, number: i64) {
        if let Some(hour) = self.hours().get_mut(channel).filter(|hour| hour.number == number) {
            hour.notices = hour.notices.saturating_sub(1);
        }
    }

    fn hours(&self) -> MutexGuard<'_, HashMap<ChannelId, Hour>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to give one notice. It is given back when it is dropped unspent: the stranger had their notice of the day
/// before.
pub(super) struct NoticePermit {
    notices: Arc<NoticePermits>,
    channel: ChannelId,
    number: i64,
    is_spent: bool,
}

impl NoticePermit {
    /// The notice was stored.
    pub(super) fn spend(mut self) {
        self.is_spent = true;
    }
}

impl Drop for NoticePermit {
    fn drop(&mut self) {
        if !self.is_spent {
            self.notices.give_back(&self.channel, self.number);
        }
    }
}
