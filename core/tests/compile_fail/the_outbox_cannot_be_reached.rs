//! Whoever has the running core cannot send anything by themselves.

use rejoinder_core::{Engine, Store, outbox};

fn main() {
    let _ = |engine: &Engine| -> std::sync::Arc<dyn Store> { engine.store.clone() };
}
