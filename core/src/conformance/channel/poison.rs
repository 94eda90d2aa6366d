//! The check that an event which the store rejects does not block others.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    PlatformDouble,
    door::{Door, gateway, until},
};
use crate::{
    conformance::{
        layered::{Layered, Nothing},
        refusing::{Refuses, Refusing},
    },
    model::event::EventKind,
};

/// An event that the store rejects is acknowledged, and the next event is accepted. Its payload is stored under its key,
/// without its text.
///
/// # Panics
/// When the check fails.
pub async fn a_poison_event_costs_itself_only(double: &dyn PlatformDouble) {
    let door = Arc::new(Door::default());
    door.is_open.store(true, Ordering::SeqCst);
    let behind = Layered { layer: Arc::clone(&door), store: Arc::new(Nothing) };
    let store = Arc::new(Refusing::before(Arc::new(behind), Refuses::Words));
    let engine = gateway(double, Arc::clone(&store) as _).await;

    let poison = double.fresh_payload();
    double.brings(poison.clone()).await;
    until("the event reaches the store", async || store.layer.refused() > 0).await;
    until("the event is acknowledged", async || double.is_acknowledged(&poison).await).await;
    let next = double.fresh_payload();
    double.brings(next.clone()).await;
    until("the next event is acknowledged", async || double.is_acknowledged(&next).await).await;

    let taken = door.taken();
    assert!(
        taken.iter().any(|event| event.kind == EventKind::Other && event.text.is_empty() && !event.raw.is_empty()),
        "the payload is kept: {taken:#?}"
    );
    assert!(taken.iter().any(|event| !event.text.is_empty()), "the next event is accepted: {taken:#?}");
    engine.stop(Duration::ZERO).await;
}
