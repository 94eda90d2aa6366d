//! The holder of the engine can reach neither the outbox nor the store.

use rejoinder_core::{Engine, Store, outbox};

fn main() {
    let _ = |engine: &Engine| -> std::sync::Arc<dyn Store> { engine.store.clone() };
}
