//! Which conversation is at which address.
//!
//! Everything in the core is keyed by the conversation's id; a platform's address is what comes in with an event, and is
//! read from the conversation's row when something is sent.

use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::{
    model::{conversation::ConversationRef, ids::ConversationId},
    ports::{
        clock::SharedClock,
        store::{Store, StoreError},
    },
    scheduler::slots::Slots,
    timer::Timer,
};

/// How many addresses are remembered: more than usually talk at once, or each event of another one costs a read.
const REMEMBERED: usize = 4096;

/// Finds the conversations of events.
pub(crate) struct Addresses {
    store: Arc<dyn Store>,
    slots: Arc<Slots>,
    timer: Arc<Timer>,
    clock: SharedClock,
    known: Cache<ConversationRef, ConversationId>,
}

impl Addresses {
    pub(crate) fn new(store: Arc<dyn Store>, slots: Arc<Slots>, timer: Arc<Timer>, clock: SharedClock) -> Self {
        Self { store, slots, timer, clock, known: Cache::new(REMEMBERED) }
    }

    /// The conversation at an address; where nothing was said yet, the id that it is to get. Those who ask at the same
    /// time get the same one.
    pub(crate) async fn resolve(&self, address: &ConversationRef) -> Result<ConversationId, StoreError> {
        let find = async {
            let known = self.store.conversation(address).await?;
            Ok(known.unwrap_or_else(|| ConversationId::new(self.clock.now())))
        };
        self.known.get_or_insert_async(address, find).await
    }

    /// The store says which conversation is at an address.
    pub(crate) fn learn(&self, address: &ConversationRef, conversation: ConversationId) {
        self.known.insert(address.clone(), conversation);
    }

    /// Has the store asked again.
    pub(crate) fn forget(&self, address: &ConversationRef) {
        self.known.remove(address);
    }

    /// A chat has another id now. Rows that wait may belong to another conversation since, and are looked for.
    pub(crate) fn moved(&self, from: &ConversationRef, chat: &str) {
        let is_concerned = |address: &ConversationRef| {
            address.channel == from.channel && (address.chat == from.chat || *address.chat == *chat)
        };
        self.known.retain(|address, _| !is_concerned(address));
        self.slots.fall_behind();
        self.timer.wake_at(self.clock.now());
    }
}
