//! From a cleared signal to stored deliveries, and from a stored delivery to the platform.
//!
//! Nothing is sent that is not a row first, and no row is made but from what the guard cleared.

pub(crate) mod attempts;
pub(crate) mod caller;
pub(crate) mod calls;
pub(crate) mod dispatcher;
pub(crate) mod ephemerals;
pub(crate) mod gate;
pub(crate) mod health;
pub(crate) mod lanes;
pub(crate) mod render;
pub(crate) mod retry;
