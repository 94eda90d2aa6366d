//! A store layer that rejects one event.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;

use super::layered::{Layer, Layered};
use crate::{
    model::event::InboundEvent,
    ports::store::{Store, accept::NewEvent, error::StoreError},
};

/// Which writes of the event are rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The event with its text. Without the text it is accepted.
    Text,
    /// The event with its text or its raw payload. With its key alone it is accepted.
    Payload,
    /// The event in any form.
    Everything,
    /// The event with its text: the store panics.
    Panic,
    /// Every event, and the probe: the store cannot write.
    EveryEvent,
}

/// Rejects one event: the first with a text that reaches it.
pub struct RejectingLayer {
    rejection: Rejection,
    poison: Mutex<Option<(String, i64)>>,
    rejected: AtomicU64,
}

impl RejectingLayer {
    /// [`wrap`](Self::wrap) if `rejection` is set; otherwise `store` itself.
    #[must_use]
    pub fn wrap_if_set(store: Arc<dyn Store>, rejection: Option<Rejection>) -> Arc<dyn Store> {
        match rejection {
            Some(rejection) => Arc::new(Self::wrap(store, rejection)),
            None => store,
        }
    }

    /// Wraps `store` so that the first event with a text is rejected as `rejection` says.
    #[must_use]
    pub fn wrap(store: Arc<dyn Store>, rejection: Rejection) -> Layered<Self> {
        Layered { layer: Self { rejection, poison: Mutex::default(), rejected: AtomicU64::new(0) }, store }
    }

    /// The number of rejected calls so far.
    pub fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::SeqCst)
    }

    /// Whether to reject an event. Remembers the first one with a text.
    fn rejects(&self, event: &InboundEvent) -> bool {
        let key = (event.external_id.clone(), event.revision);
        let mut poison = self.poison.lock().unwrap_or_else(PoisonError::into_inner);
        let has_text = !event.text.is_empty();
        if poison.is_none() && has_text {
            *poison = Some(key.clone());
        }
        (*poison == Some(key) || self.rejection == Rejection::EveryEvent)
            && match self.rejection {
                Rejection::Text | Rejection::Panic => has_text,
                Rejection::Payload => has_text || !event.raw.is_empty(),
                Rejection::Everything | Rejection::EveryEvent => true,
            }
    }
}

#[async_trait]
impl Layer for RejectingLayer {
    type Pass = ();

    async fn before_read(&self, _method: &'static str) {}

    async fn before_write(&self, method: &'static str) -> Result<(), StoreError> {
        match self.rejection {
            Rejection::EveryEvent if method == "probe" => Err(StoreError::Unavailable("the disk is full".to_owned())),
            _ => Ok(()),
        }
    }

    async fn before_accept(&self, events: &[NewEvent]) -> Result<(), StoreError> {
        // A look-up stores nothing.
        if !events.iter().any(|new| !new.only_if_known && self.rejects(&new.event)) {
            return Ok(());
        }
        self.rejected.fetch_add(1, Ordering::SeqCst);
        assert_ne!(self.rejection, Rejection::Panic, "the test asks for a panic");
        Err(StoreError::Failed("it violates a constraint of the database".to_owned()))
    }
}
