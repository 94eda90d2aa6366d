//! What the store alone answers: the gateway serves it, and a command reads it from the database while no gateway runs.

use std::sync::Arc;

use axum::{Extension, Router, extract::FromRef};
use rejoinder_core::{SharedClock, Store};

use crate::{callers::Caller, http::App};

/// The state of these routes.
#[derive(Clone)]
pub(super) struct Records {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: SharedClock,
}

impl FromRef<Arc<App>> for Records {
    fn from_ref(app: &Arc<App>) -> Self {
        Self { store: Arc::clone(&app.store), clock: Arc::clone(&app.clock) }
    }
}

/// The routes over a store, below `/admin/api`, for a caller that may read everything.
pub(crate) fn router(store: Arc<dyn Store>, clock: SharedClock) -> Router {
    let routes = Router::from(super::records::<Records>()).layer(Extension(Caller::configured()));
    Router::new().nest("/admin/api", routes).with_state(Records { store, clock })
}
