//! What is stored, as the operator's interfaces read it.

use std::sync::Arc;

use rejoinder_core::{
    SharedClock, Store,
    store::{
        FileStore, HousekeepingStore, LineStore, LogStore, OperatorStore, OutboxStore, PeopleStore, SearchStore,
        TokenStore, TurnStore,
    },
};

#[derive(Clone)]
pub(crate) struct Records {
    pub(crate) lists: Arc<dyn OperatorStore>,
    pub(super) files: Arc<dyn FileStore>,
    pub(super) housekeeping: Arc<dyn HousekeepingStore>,
    pub(super) lines: Arc<dyn LineStore>,
    pub(super) log: Arc<dyn LogStore>,
    pub(super) outbox: Arc<dyn OutboxStore>,
    pub(super) people: Arc<dyn PeopleStore>,
    pub(super) search: Arc<dyn SearchStore>,
    pub(super) tokens: Arc<dyn TokenStore>,
    pub(super) turns: Arc<dyn TurnStore>,
    pub(super) clock: SharedClock,
}

impl Records {
    pub(crate) fn new(store: &Arc<dyn Store>, clock: SharedClock) -> Self {
        Self {
            lists: store.clone(),
            files: store.clone(),
            housekeeping: store.clone(),
            lines: store.clone(),
            log: store.clone(),
            outbox: store.clone(),
            people: store.clone(),
            search: store.clone(),
            tokens: store.clone(),
            turns: store.clone(),
            clock,
        }
    }
}
