//! A value that a channel has only while it runs.

use std::sync::Arc;

use parking_lot::RwLock;

/// A value that requests from outside need; it is set only while the channel runs.
#[derive(Debug)]
pub struct WhileRunning<T>(RwLock<Option<Arc<T>>>);

impl<T> Default for WhileRunning<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T> WhileRunning<T> {
    /// A value that is always set.
    #[must_use]
    pub fn always(value: T) -> Self {
        Self(RwLock::new(Some(Arc::new(value))))
    }

    /// Sets the value until the returned guard is dropped.
    #[must_use = "the channel is closed when this is dropped"]
    pub fn open(&self, value: T) -> RunningGuard<'_, T> {
        *self.0.write() = Some(Arc::new(value));
        RunningGuard(self)
    }

    /// The value; `None` while the channel does not run.
    #[must_use]
    pub fn get(&self) -> Option<Arc<T>> {
        self.0.read().clone()
    }
}

/// Keeps a [`WhileRunning`] open. Dropping it clears the value, however the run ends.
#[derive(Debug)]
pub struct RunningGuard<'a, T>(&'a WhileRunning<T>);

impl<T> Drop for RunningGuard<'_, T> {
    fn drop(&mut self) {
        *self.0.0.write() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_open_while_it_runs() {
        let value = WhileRunning::default();
        assert_eq!(value.get(), None);

        let guard = value.open(1);
        assert_eq!(value.get().as_deref(), Some(&1));
        drop(guard);

        assert_eq!(value.get(), None);
    }
}
