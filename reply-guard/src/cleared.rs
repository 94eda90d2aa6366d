//! The proof that the guard allowed something to be sent.

/// Something that the guard cleared for sending.
///
/// Only the guard creates one. There is no public constructor and no `Clone`, so each value comes from one decision.
#[derive(Debug, PartialEq, Eq)]
pub struct Cleared<T>(T);

impl<T> Cleared<T> {
    pub(crate) const fn new(inner: T) -> Self {
        Self(inner)
    }

    /// The cleared value. It cannot be changed or taken out.
    pub const fn get(&self) -> &T {
        &self.0
    }
}
