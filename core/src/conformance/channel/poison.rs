//! The check that an event which the store rejects does not block others.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    accept_switch::{AcceptSwitch, gateway, until},
    double::PlatformDouble,
};
use crate::{
    conformance::{
        layered::{Layered, NullStore},
        rejecting::{RejectingLayer, Rejection},
    },
    model::event::EventKind,
};

/// An event that the store rejects is acknowledged, and the next event is accepted. Its payload is stored under its key,
/// without its text.
///
/// # Panics
/// When the check fails.
pub async fn a_poison_event_costs_itself_only(double: &dyn PlatformDouble) {
    let switch = Arc::new(AcceptSwitch::default());
    switch.is_open.store(true, Ordering::SeqCst);
    let switched = Layered { layer: Arc::clone(&switch), store: Arc::new(NullStore) };
    let store = Arc::new(RejectingLayer::wrap(Arc::new(switched), Rejection::Text));
    let engine = gateway(double, Arc::clone(&store) as _).await;

    let poison = double.fresh_payload();
    double.inject(poison.clone()).await;
    until("the event reaches the store", async || store.layer.rejected() > 0).await;
    until("the event is acknowledged", async || double.is_acknowledged(&poison).await).await;
    let next = double.fresh_payload();
    double.inject(next.clone()).await;
    until("the next event is acknowledged", async || double.is_acknowledged(&next).await).await;

    let accepted = switch.accepted();
    assert!(
        accepted.iter().any(|event| event.kind == EventKind::Other && event.text.is_empty() && !event.raw.is_empty()),
        "the payload is kept: {accepted:#?}"
    );
    assert!(accepted.iter().any(|event| !event.text.is_empty()), "the next event is accepted: {accepted:#?}");
    engine.stop(Duration::ZERO).await;
}
