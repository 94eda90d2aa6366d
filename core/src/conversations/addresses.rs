//! Maps addresses to conversations.
//!
//! Everything in the core is keyed by the conversation's id. An event comes with a platform's address; when something is
//! sent, the address is read from the conversation's row.

use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::{
    base::timer::Timer,
    handles::slots::Slots,
    model::{conversation::ConversationRef, ids::ConversationId},
    ports::{
        clock::SharedClock,
        store::{channels::ChannelStore, error::StoreError},
    },
};

/// The number of addresses cached: more than are usually active at once, because each miss costs a read.
const REMEMBERED: usize = 4096;

/// Finds the conversations of events.
pub(crate) struct Addresses {
    store: Arc<dyn ChannelStore>,
    slots: Arc<Slots>,
    timer: Arc<Timer>,
    clock: SharedClock,
    known: Cache<ConversationRef, ConversationId>,
}

impl Addresses {
    pub(crate) fn new(store: Arc<dyn ChannelStore>, slots: Arc<Slots>, timer: Arc<Timer>, clock: SharedClock) -> Self {
        Self { store, slots, timer, clock, known: Cache::new(REMEMBERED) }
    }

    /// The conversation at an address; for a new address, the id that its conversation will get. Concurrent calls for one
    /// address get the same id.
    pub(crate) async fn resolve(&self, address: &ConversationRef) -> Result<ConversationId, StoreError> {
        let find = async {
            let known = self.store.conversation(address).await?;
            Ok(known.unwrap_or_else(|| ConversationId::new(self.clock.now())))
        };
        self.known.get_or_insert_async(address, find).await
    }

    /// Caches the conversation that the store has for an address.
    pub(crate) fn learn(&self, address: &ConversationRef, conversation: ConversationId) {
        self.known.insert(address.clone(), conversation);
    }

    /// Removes an address from the cache, so that the store is read again.
    pub(crate) fn forget(&self, address: &ConversationRef) {
        self.known.remove(address);
    }

    /// Removes a chat that got a new id from the cache. Its waiting rows may belong to another conversation now, so the
    /// scheduler and the sweep look for them.
    pub(crate) fn moved(&self, from: &ConversationRef, chat: &str) {
        let is_concerned = |address: &ConversationRef| {
            address.channel == from.channel && (address.chat == from.chat || *address.chat == *chat)
        };
        self.known.retain(|address, _| !is_concerned(address));
        self.slots.fall_behind();
        self.timer.wake_at(self.clock.now());
    }
}
