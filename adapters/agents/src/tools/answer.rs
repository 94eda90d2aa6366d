//! The result of a call of a tool. No I/O.

/// The result of a call, for the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAnswer {
    pub text: String,
    /// Whether nothing was done.
    pub is_error: bool,
}

impl From<String> for ToolAnswer {
    fn from(text: String) -> Self {
        let is_error = text.starts_with("error: ") || text.starts_with("not sent: ");
        Self { text, is_error }
    }
}
