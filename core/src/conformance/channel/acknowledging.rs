//! The check that no event is acknowledged before it is accepted.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    PlatformDouble,
    door::{Door, gateway, until},
};
use crate::conformance::layered::{Layered, Nothing};

/// The adapter acknowledges an event to its platform only after the store has accepted it.
///
/// # Panics
/// When the check fails.
pub async fn nothing_is_acknowledged_before_it_is_accepted(double: &dyn PlatformDouble) {
    let door = Arc::new(Door::default());
    let store = Layered { layer: Arc::clone(&door), store: Arc::new(Nothing) };
    let engine = gateway(double, Arc::new(store)).await;
    let payload = double.fresh_payload();

    double.brings(payload.clone()).await;
    until("the event reaches the store", async || door.knocks.load(Ordering::SeqCst) > 0).await;
    assert!(!double.is_acknowledged(&payload).await, "it was acknowledged but not accepted");
    door.is_open.store(true, Ordering::SeqCst);
    until("the event is acknowledged", async || double.is_acknowledged(&payload).await).await;
    assert!(!door.taken().is_empty(), "it was acknowledged but not accepted");
    engine.stop(Duration::ZERO).await;
}
