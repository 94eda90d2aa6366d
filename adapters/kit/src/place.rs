//! The place of a request among those that its caller may have at once.

use std::{fmt, sync::Arc};

/// Counts a request of a caller. The server puts a [`Place`] with it into the extensions of each request.
pub trait CountedRequest: Send + Sync {
    /// It waits for something that takes minutes, and does not count among those of its caller. Nothing happens if too many wait.
    fn leave(&self);

    /// It counts again. Nothing happens if it does already, or has ended.
    fn retake(&self);
}

/// The place of a request.
#[derive(Clone)]
pub struct Place(Arc<dyn CountedRequest>);

impl Place {
    /// That of this request.
    pub fn of(request: Arc<impl CountedRequest + 'static>) -> Self {
        Self(request)
    }

    /// Gives it to other requests of the caller, if not too many wait, until what is returned is dropped.
    #[must_use]
    pub fn leave(&self) -> LeftPlace {
        self.0.leave();
        LeftPlace(self.clone())
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}

/// A place that others may have; its request takes it back on drop.
#[derive(Debug)]
pub struct LeftPlace(Place);

impl Drop for LeftPlace {
    fn drop(&mut self) {
        self.0.0.retake();
    }
}
