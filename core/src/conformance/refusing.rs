//! A store layer that rejects one event.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;

use crate::{
    conformance::layered::{Layer, Layered},
    model::event::{EventKind, InboundEvent},
    ports::store::{Store, StoreError, accept::NewEvent},
};

/// Which writes of the event are rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refuses {
    /// The event with its text. Without the text it is accepted.
    Words,
    /// The event with its text or its raw payload. With its key alone it is accepted.
    Payload,
    /// The event in any form.
    Everything,
    /// The event with its text: the store panics.
    Panics,
    /// Every event, and the probe: the store cannot write.
    EveryEvent,
}

/// Rejects one event: the first with a text that reaches it.
pub struct Refusing {
    refuses: Refuses,
    poison: Mutex<Option<(String, i64)>>,
    refused: AtomicU64,
}

impl Refusing {
    /// [`before`](Self::before) if `refuses` is set; otherwise `store` itself.
    #[must_use]
    pub fn perhaps(store: Arc<dyn Store>, refuses: Option<Refuses>) -> Arc<dyn Store> {
        match refuses {
            Some(refuses) => Arc::new(Self::before(store, refuses)),
            None => store,
        }
    }

    /// Wraps `store` so that the first event with a text is rejected as `refuses` says.
    #[must_use]
    pub fn before(store: Arc<dyn Store>, refuses: Refuses) -> Layered<Self> {
        Layered { layer: Self { refuses, poison: Mutex::default(), refused: AtomicU64::new(0) }, store }
    }

    /// The number of rejected calls so far.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    /// Whether to reject an event. Remembers the first one with a text.
    fn refuses(&self, event: &InboundEvent) -> bool {
        let key = (event.external_id.clone(), event.revision);
        let mut poison = self.poison.lock().unwrap_or_else(PoisonError::into_inner);
        let is_said = event.kind != EventKind::Other && !event.text.is_empty();
        if poison.is_none() && is_said {
            *poison = Some(key.clone());
        }
        (*poison == Some(key) || self.refuses == Refuses::EveryEvent)
            && match self.refuses {
                Refuses::Words | Refuses::Panics => is_said,
                Refuses::Payload => is_said || !event.raw.is_empty(),
                Refuses::Everything | Refuses::EveryEvent => true,
            }
    }
}

#[async_trait]
impl Layer for Refusing {
    type Pass = ();

    async fn reads(&self) {}

    async fn writes(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn probes(&self) -> Result<(), StoreError> {
        match self.refuses {
            Refuses::EveryEvent => Err(StoreError::Unavailable("the disk is full".to_owned())),
            _ => Ok(()),
        }
    }

    async fn accepts(&self, events: &[NewEvent]) -> Result<(), StoreError> {
        if !events.iter().any(|new| self.refuses(&new.event)) {
            return Ok(());
        }
        self.refused.fetch_add(1, Ordering::SeqCst);
        assert_ne!(self.refuses, Refuses::Panics, "the test asks for a panic");
        Err(StoreError::Failed("it violates a constraint of the database".to_owned()))
    }
}
