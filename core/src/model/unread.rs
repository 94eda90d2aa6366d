/// Why a document has no text, for the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// Larger than the reader or the operator allows, or the platform does not give it.
    #[error("too large, or it could not be fetched")]
    NotFetched,
    /// Only who knows its password can open it.
    #[error("protected by a password")]
    Protected,
    /// It can be opened, and says nothing in letters.
    #[error("it has no text; a scan has only pictures of its pages")]
    Empty,
    /// It is not what its type says.
    #[error("damaged, or of another type")]
    Broken,
    /// Reading it takes more time or memory than a file may have.
    #[error("reading it takes too much time or memory")]
    TooMuch,
    /// The gateway is busy or cannot start what reads it.
    #[error("it could not be read now")]
    Failed,
}
