//! The mark of what may be sent.

/// Something the guard has let through.
///
/// Only a decision of the guard makes one; there is no public constructor and no `Clone`, so what
/// holds a `Cleared` got it from the guard, once.
#[derive(Debug, PartialEq, Eq)]
pub struct Cleared<T>(T);

impl<T> Cleared<T> {
    pub(crate) const fn new(inner: T) -> Self {
        Self(inner)
    }

    /// What was cleared.
    pub const fn get(&self) -> &T {
        &self.0
    }
}
