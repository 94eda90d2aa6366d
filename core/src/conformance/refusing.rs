//! A store that refuses one event.

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

/// What of the event the store does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refuses {
    /// What was said.
    Words,
    /// Its payload as well.
    Payload,
    /// That it came.
    Everything,
    /// It panics over what was said.
    Panics,
    /// Everything of every event: it cannot write.
    EveryEvent,
}

/// Refuses one event: the first thing that is said through it.
pub struct Refusing {
    refuses: Refuses,
    poison: Mutex<Option<(String, i64)>>,
    refused: AtomicU64,
}

impl Refusing {
    /// `store`, or one before which this much of the first thing that is said is refused.
    #[must_use]
    pub fn perhaps(store: Arc<dyn Store>, refuses: Option<Refuses>) -> Arc<dyn Store> {
        match refuses {
            Some(refuses) => Arc::new(Self::before(store, refuses)),
            None => store,
        }
    }

    /// `store`, before which this much of the first thing that is said is refused.
    #[must_use]
    pub fn before(store: Arc<dyn Store>, refuses: Refuses) -> Layered<Self> {
        Layered { layer: Self { refuses, poison: Mutex::default(), refused: AtomicU64::new(0) }, store }
    }

    /// How often it has refused the event.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    /// Whether it does not take an event.
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
        assert_ne!(self.refuses, Refuses::Panics, "as it was told to");
        Err(StoreError::Failed("it breaks a rule of the database".to_owned()))
    }
}
