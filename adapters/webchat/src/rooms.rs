//! Which conversations are open in which sockets, and the frames that wait to be written to each.
//!
//! Their number is bounded: of each turn only the latest change and the latest draft wait. A socket with too many
//! changed turns reads the store again.

use std::{ops::Deref, sync::Arc};

use axum::extract::ws::Utf8Bytes;
use dashmap::DashMap;
use parking_lot::Mutex;
use rejoinder_core::{Timestamp, TurnId, TurnStatus, TurnView};
use tokio::sync::Notify;

/// How many sockets one conversation may have.
const MAX_SOCKETS_PER_CHAT: usize = 16;

/// How many changed turns may wait for one socket, and how many drafts.
const MAX_WAITING: usize = 64;

/// The conversations that are open in at least one socket.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    rooms: DashMap<Arc<str>, Vec<Arc<Mailbox>>>,
}

impl Rooms {
    /// Adds a socket to the conversation `chat`; `None` if it has too many.
    pub(crate) fn join(self: &Arc<Self>, chat: &Arc<str>) -> Option<SocketHandle> {
        let mut room = self.rooms.entry(Arc::clone(chat)).or_default();
        if room.len() >= MAX_SOCKETS_PER_CHAT {
            return None;
        }
        let mailbox = Arc::new(Mailbox::default());
        room.push(Arc::clone(&mailbox));
        Some(SocketHandle { rooms: Arc::clone(self), chat: Arc::clone(chat), mailbox })
    }

    /// Whether a socket has the conversation `chat` open.
    pub(crate) fn is_open(&self, chat: &str) -> bool {
        self.rooms.contains_key(chat)
    }

    /// Whether more than one socket has the conversation `chat` open.
    pub(crate) fn is_shared(&self, chat: &str) -> bool {
        self.rooms.get(chat).is_some_and(|room| room.len() > 1)
    }

    /// Creates `text` once and puts it into the mailbox of each socket of `chat`. Does nothing if there is none.
    pub(crate) fn broadcast(&self, chat: &str, text: impl FnOnce() -> Utf8Bytes, put: impl Fn(&Mailbox, Utf8Bytes)) {
        // The map is not locked while the text is created: a new page must not wait for that.
        if !self.is_open(chat) {
            return;
        }
        let text = text();
        if let Some(room) = self.rooms.get(chat) {
            for mailbox in room.iter() {
                put(mailbox, text.clone());
            }
        }
    }

    /// Makes every socket read the store again.
    pub(crate) fn resync(&self) {
        for room in &self.rooms {
            for mailbox in room.value() {
                mailbox.put_resync();
            }
        }
    }
}

/// A socket's membership of its conversation, which ends on drop.
#[derive(Debug)]
pub(crate) struct SocketHandle {
    rooms: Arc<Rooms>,
    chat: Arc<str>,
    mailbox: Arc<Mailbox>,
}

impl Deref for SocketHandle {
    type Target = Mailbox;

    fn deref(&self) -> &Mailbox {
        &self.mailbox
    }
}

impl Drop for SocketHandle {
    fn drop(&mut self) {
        self.rooms.rooms.remove_if_mut(&self.chat, |_, room| {
            room.retain(|mailbox| !Arc::ptr_eq(mailbox, &self.mailbox));
            room.is_empty()
        });
    }
}

/// The frames that wait to be written to one socket.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    pending: Mutex<Pending>,
    arrived: Notify,
}

/// Orders the changes of a turn: a smaller one is outdated. The page uses the same order (`isNewer` in
/// `assets/conversation.js`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Progress {
    step: u8,
    shown_at: Option<Timestamp>,
    is_picked: bool,
}

impl Progress {
    pub(crate) fn of(view: &TurnView) -> Self {
        let step = match view.status {
            TurnStatus::Accepted => 0,
            TurnStatus::Deferred => 1,
            status => {
                debug_assert!(status.is_final(), "{status:?}");
                2
            }
        };
        Self { step, shown_at: view.shown.as_ref().map(|shown| shown.at), is_picked: view.picked.is_some() }
    }

    pub(crate) const fn is_final(self) -> bool {
        self.step == 2
    }
}

#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Changes were dropped: read the store.
    pub(crate) resync: bool,
    /// The latest change of each turn, in the order of their first changes.
    pub(crate) turns: Vec<(TurnId, Progress, Utf8Bytes)>,
    pub(crate) drafts: Vec<(TurnId, Utf8Bytes)>,
    pub(crate) typing: Option<Utf8Bytes>,
}

impl Mailbox {
    pub(crate) fn put_turn(&self, turn: TurnId, progress: Progress, text: Utf8Bytes) {
        let mut pending = self.pending.lock();
        if progress.is_final() {
            pending.drafts.retain(|(drafted, _)| *drafted != turn);
        }
        if let Some(waiting) = pending.turns.iter_mut().find(|waiting| waiting.0 == turn) {
            if progress >= waiting.1 {
                *waiting = (turn, progress, text);
            }
        } else if pending.turns.len() < MAX_WAITING {
            pending.turns.push((turn, progress, text));
        } else {
            *pending = Pending { resync: true, ..Pending::default() };
        }
        self.arrived.notify_one();
    }

    pub(crate) fn put_draft(&self, turn: TurnId, text: Utf8Bytes) {
        let mut pending = self.pending.lock();
        if let Some(waiting) = pending.drafts.iter_mut().find(|waiting| waiting.0 == turn) {
            waiting.1 = text;
        } else if pending.drafts.len() < MAX_WAITING {
            pending.drafts.push((turn, text));
        }
        self.arrived.notify_one();
    }

    pub(crate) fn put_typing(&self, text: Utf8Bytes) {
        self.pending.lock().typing = Some(text);
        self.arrived.notify_one();
    }

    pub(crate) fn put_resync(&self) {
        self.pending.lock().resync = true;
        self.arrived.notify_one();
    }

    /// Returns once the mailbox may have content.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    pub(crate) fn take(&self) -> Pending {
        std::mem::take(&mut *self.pending.lock())
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::Timestamp;

    use super::*;

    fn turn() -> TurnId {
        TurnId::new(Timestamp::from_millis(1))
    }

    const ACCEPTED: Progress = Progress { step: 0, shown_at: None, is_picked: false };
    const ANSWERED: Progress = Progress { step: 2, shown_at: Some(Timestamp::from_millis(1)), is_picked: false };

    fn chat() -> Arc<str> {
        "abcdefghijklmnopqrstuv".into()
    }

    #[test]
    fn of_a_turn_only_the_latest_change_waits() {
        let mailbox = Mailbox::default();
        let (first, second) = (turn(), turn());

        mailbox.put_turn(first, ACCEPTED, "accepted".into());
        mailbox.put_turn(second, ACCEPTED, "accepted".into());
        mailbox.put_draft(first, "a".into());
        mailbox.put_draft(first, "ab".into());
        mailbox.put_turn(first, ANSWERED, "answered".into());

        let pending = mailbox.take();
        let turns: Vec<&str> = pending.turns.iter().map(|waiting| waiting.2.as_str()).collect();
        assert_eq!(turns, ["answered", "accepted"]);
        assert!(pending.drafts.is_empty());
    }

    #[test]
    fn old_news_does_not_displace_an_answer() {
        let mailbox = Mailbox::default();
        let turn = turn();

        mailbox.put_turn(turn, ANSWERED, "answered".into());
        mailbox.put_turn(turn, ACCEPTED, "accepted".into());

        assert_eq!(mailbox.take().turns, [(turn, ANSWERED, "answered".into())]);
    }

    #[test]
    fn a_question_that_was_answered_stays_answered() {
        let mailbox = Mailbox::default();
        let (turn, picked) = (turn(), Progress { is_picked: true, ..ANSWERED });

        mailbox.put_turn(turn, ANSWERED, "asked".into());
        mailbox.put_turn(turn, picked, "picked".into());
        mailbox.put_turn(turn, ANSWERED, "asked".into());

        assert_eq!(mailbox.take().turns, [(turn, picked, "picked".into())]);
    }

    #[test]
    fn a_socket_that_falls_too_far_behind_reads_the_store_again() {
        let mailbox = Mailbox::default();

        for _ in 0..=MAX_WAITING {
            mailbox.put_turn(turn(), ANSWERED, "answered".into());
        }

        let pending = mailbox.take();
        assert!(pending.resync && pending.turns.is_empty());
    }

    #[test]
    fn everyone_in_a_conversation_is_told_and_nobody_else() {
        let rooms = Arc::new(Rooms::default());
        let here = [rooms.join(&chat()).expect("a handle"), rooms.join(&chat()).expect("a handle")];
        let elsewhere = rooms.join(&"elsewhere-elsewhere".into()).expect("a handle");

        assert!(rooms.is_open(&chat()) && !rooms.is_open("nowhere"));
        rooms.broadcast(&chat(), || "typing".into(), Mailbox::put_typing);

        assert!(here.iter().all(|handle| handle.take().typing.is_some()));
        assert!(elsewhere.take().typing.is_none());
    }

    #[test]
    fn seats_are_limited_and_come_free_again() {
        let rooms = Arc::new(Rooms::default());
        let mut handles: Vec<SocketHandle> =
            (0..MAX_SOCKETS_PER_CHAT).map(|_| rooms.join(&chat()).expect("a handle")).collect();
        assert!(rooms.join(&chat()).is_none());

        handles.pop();
        assert!(rooms.join(&chat()).is_some());

        handles.clear();
        assert!(rooms.rooms.is_empty());
    }
}
