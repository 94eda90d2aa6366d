//! What a worker's request is for.

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Ends the turn.
    Answer,
    /// Does not end the turn.
    Events,
}

impl Purpose {
    /// As logs name it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Answer => "an answer",
            Self::Events => "events",
        }
    }
}
