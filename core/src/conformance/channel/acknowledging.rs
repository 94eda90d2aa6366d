//! Nothing is acknowledged before it is accepted.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    PlatformDouble,
    door::{Door, gateway, until},
};
use crate::conformance::layered::{Layered, Nothing};

/// Until the store takes an event, its platform is not told that it was taken.
///
/// # Panics
/// When it does not hold.
pub async fn nothing_is_acknowledged_before_it_is_accepted(double: &dyn PlatformDouble) {
    let door = Arc::new(Door::default());
    let store = Layered { layer: Arc::clone(&door), store: Arc::new(Nothing) };
    let engine = gateway(double, Arc::new(store)).await;
    let payload = double.fresh_payload();

    double.brings(payload.clone()).await;
    until("the event is brought to the store", async || door.knocks.load(Ordering::SeqCst) > 0).await;
    assert!(!double.is_acknowledged(&payload).await, "it was acknowledged, and not accepted");
    door.is_open.store(true, Ordering::SeqCst);
    until("the event is acknowledged", async || double.is_acknowledged(&payload).await).await;
    assert!(!door.taken().is_empty(), "it was acknowledged, and not accepted");
    engine.stop(Duration::ZERO).await;
}
