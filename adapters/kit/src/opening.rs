//! A value that a channel has only while it runs.

use std::sync::{Arc, PoisonError, RwLock};

/// A value that requests from outside need; it is set only while the channel runs.
#[derive(Debug)]
pub struct Opening<T>(RwLock<Option<Arc<T>>>);

impl<T> Default for Opening<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T> Opening<T> {
    /// An opening that never closes.
    #[must_use]
    pub fn always(value: T) -> Self {
        Self(RwLock::new(Some(Arc::new(value))))
    }

    /// Sets the value until the returned guard is dropped.
    #[must_use = "the channel is closed when this is dropped"]
    pub fn open(&self, value: T) -> Opened<'_, T> {
        self.set(Some(Arc::new(value)));
        Opened(self)
    }

    /// The value; `None` while the channel does not run.
    #[must_use]
    pub fn get(&self) -> Option<Arc<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, value: Option<Arc<T>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

/// Keeps an [`Opening`] open. Dropping it clears the value, however the run ends.
#[derive(Debug)]
pub struct Opened<'a, T>(&'a Opening<T>);

impl<T> Drop for Opened<'_, T> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_open_while_it_runs() {
        let opening = Opening::default();
        assert_eq!(opening.get(), None);

        let opened = opening.open(1);
        assert_eq!(opening.get().as_deref(), Some(&1));
        drop(opened);

        assert_eq!(opening.get(), None);
    }
}
