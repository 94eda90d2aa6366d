//! An event that the store refuses costs nobody else anything.

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

/// An event that the store will not take is acknowledged all the same: what comes after it is taken in. Its payload is
/// kept, under its key.
///
/// # Panics
/// When it does not hold.
pub async fn a_poison_event_costs_itself_only(double: &dyn PlatformDouble) {
    let door = Arc::new(Door::default());
    door.is_open.store(true, Ordering::SeqCst);
    let behind = Layered { layer: Arc::clone(&door), store: Arc::new(Nothing) };
    let store = Arc::new(Refusing::before(Arc::new(behind), Refuses::Words));
    let engine = gateway(double, Arc::clone(&store) as _).await;

    let poison = double.fresh_payload();
    double.brings(poison.clone()).await;
    until("the event is brought to the store", async || store.layer.refused() > 0).await;
    until("the event is acknowledged", async || double.is_acknowledged(&poison).await).await;
    let next = double.fresh_payload();
    double.brings(next.clone()).await;
    until("the next event is acknowledged", async || double.is_acknowledged(&next).await).await;

    let taken = door.taken();
    assert!(
        taken.iter().any(|event| event.kind == EventKind::Other && event.text.is_empty() && !event.raw.is_empty()),
        "the payload is kept: {taken:#?}"
    );
    assert!(taken.iter().any(|event| !event.text.is_empty()), "what comes after it is taken in: {taken:#?}");
    engine.stop(Duration::ZERO).await;
}
