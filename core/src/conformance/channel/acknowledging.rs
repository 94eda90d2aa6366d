//! The check that no event is acknowledged before it is accepted.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    accept_switch::{AcceptSwitch, gateway, until},
    double::PlatformDouble,
};
use crate::conformance::layered::{Layered, NullStore};

/// The adapter acknowledges an event to its platform only after the store has accepted it.
///
/// # Panics
/// When the check fails.
pub async fn nothing_is_acknowledged_before_it_is_accepted(double: &dyn PlatformDouble) {
    let switch = Arc::new(AcceptSwitch::default());
    let store = Layered { layer: Arc::clone(&switch), store: Arc::new(NullStore) };
    let engine = gateway(double, Arc::new(store)).await;
    let payload = double.fresh_payload();

    double.inject(payload.clone()).await;
    until("the event reaches the store", async || switch.accept_calls.load(Ordering::SeqCst) > 0).await;
    assert!(!double.is_acknowledged(&payload).await, "it was acknowledged but not accepted");
    switch.is_open.store(true, Ordering::SeqCst);
    until("the event is acknowledged", async || double.is_acknowledged(&payload).await).await;
    assert!(!switch.accepted().is_empty(), "it was acknowledged but not accepted");
    engine.stop(Duration::ZERO).await;
}
