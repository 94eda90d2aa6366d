//! Maps addresses to conversations, and knows what an event needs to know of them.
//!
//! Everything in the core is keyed by the conversation's id. An event comes with a platform's address; when something is
//! sent, the address is read from the conversation's row.
//!
//! What an event needs is read in one query, and kept until this process changes it: the next event reads it again. So a message
//! in a conversation that is active waits for no look at the store.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use quick_cache::sync::{Cache, EntryAction};

use crate::{
    base::timer::Timer,
    handles::slots::Slots,
    model::{ConversationId, ConversationRef, SessionChange, TurnRecord},
    ports::{ChannelStore, KnownConversation, SharedClock, StoreError, Transition},
};

/// The number of conversations cached: more than are usually active at once, because each miss costs a read.
const REMEMBERED: usize = 4096;

/// Finds the conversations of events.
pub(crate) struct Addresses {
    store: Arc<dyn ChannelStore>,
    slots: Arc<Slots>,
    timer: Arc<Timer>,
    clock: SharedClock,
    known: Cache<ConversationRef, KnownConversation>,
    /// How often something was forgotten: what is read meanwhile is not kept.
    forgotten: AtomicU64,
}

/// The conversations of which something changes that is cached.
#[derive(Default)]
pub(crate) struct ChangedConversations {
    ids: Vec<ConversationId>,
    /// Something is chosen for a session, in which several may continue.
    are_all: bool,
}

impl ChangedConversations {
    /// Those that a transition changes beside their turns.
    pub(crate) fn by(transition: &Transition) -> Self {
        let queued = transition.queue.iter().map(|(conversation, _)| *conversation);
        let asked = transition.questions.iter().map(|question| question.conversation);
        let continued = transition.sessions.iter().filter_map(|change| match change {
            SessionChange::New { conversation, .. } | SessionChange::Use { conversation, .. } => Some(*conversation),
            _ => None,
        });
        let ids = queued.chain(asked).chain(continued).collect();
        let are_all = transition.sessions.iter().any(|change| matches!(change, SessionChange::Choose { .. }));
        Self { ids, are_all }
    }

    /// Those of turns that are postponed from now on, or no longer: each is given before and after.
    pub(crate) fn postponed<'a>(&mut self, turns: impl Iterator<Item = (&'a TurnRecord, &'a TurnRecord)>) {
        let changes =
            turns.filter(|(before, after)| before.obligation.is_postponed() != after.obligation.is_postponed());
        self.ids.extend(changes.map(|(_, after)| after.conversation));
    }
}

impl Addresses {
    pub(crate) fn new(store: Arc<dyn ChannelStore>, slots: Arc<Slots>, timer: Arc<Timer>, clock: SharedClock) -> Self {
        Self { store, slots, timer, clock, known: Cache::new(REMEMBERED), forgotten: AtomicU64::new(0) }
    }

    /// The conversation at an address; for a new address, one with the id that it will get. Concurrent calls for one
    /// address get the same id.
    pub(crate) async fn resolve(&self, address: &ConversationRef) -> Result<KnownConversation, StoreError> {
        let forgotten = self.forgotten.load(Ordering::Acquire);
        let mut was_read = false;
        let find = async {
            let known = self.store.arrival(address).await?;
            was_read = known.is_some();
            Ok::<_, StoreError>(known.unwrap_or_else(|| KnownConversation::new(ConversationId::new(self.clock.now()))))
        };
        let known = self.known.get_or_insert_async(address, find).await?;
        if was_read && self.forgotten.load(Ordering::Acquire) != forgotten {
            self.known.remove(address);
        }
        Ok(known)
    }

    /// Removes an address from the cache, so that the store is read again.
    pub(crate) fn forget(&self, address: &ConversationRef) {
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        self.known.remove(address);
    }

    /// The same for conversations of which something was stored.
    pub(crate) fn forget_changed(&self, changed: &ChangedConversations) {
        if changed.are_all || !changed.ids.is_empty() {
            self.forget_those(|_, known| changed.are_all || changed.ids.contains(&known.id));
        }
    }

    /// Removes a chat that got a new id from the cache. Its waiting rows may belong to another conversation now, so the
    /// scheduler and the sweep look for them.
    pub(crate) fn moved(&self, from: &ConversationRef, chat: &str) {
        self.forget_those(|address, _| {
            address.channel == from.channel && (address.chat == from.chat || *address.chat == *chat)
        });
        self.slots.fall_behind();
        self.timer.wake_at(self.clock.now());
    }

    /// Notes that a turn is about to be stored as postponed at an address: what comes after it is, too.
    pub(crate) fn postpones(&self, address: &ConversationRef) {
        let postpone = |_: &ConversationRef, known: &mut KnownConversation| {
            known.has_postponed = true;
            EntryAction::Retain(())
        };
        drop(self.known.entry(address, Some(Duration::ZERO), postpone));
    }

    fn forget_those(&self, are_meant: impl Fn(&ConversationRef, &KnownConversation) -> bool) {
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        self.known.retain(|address, known| !are_meant(address, known));
    }
}
