//! What goes wrong with the Gateway.

use serde::Deserialize;
use serde_json::{Value, json};

/// Something that the Gateway does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gateway {
    /// Closes all connections with this code. One that means it (4004, 4007, 4009 to 4014) ends the
    /// sessions too.
    Close(u16),
    /// Cuts all connections with a TCP reset. The sessions can be resumed.
    Abort,
    /// Asks all clients to reconnect and resume.
    Reconnect,
    /// Says that the session is invalid; whether it can be resumed all the same.
    InvalidSession {
        /// Whether it can.
        resumable: bool,
    },
    /// Forgets all sessions: nothing more reaches them, and a RESUME is refused.
    Forget,
    /// Whether heartbeats of the connections that are there are acknowledged.
    Acknowledges(bool),
    /// Whether events reach the connections that are there. What did not is replayed on a RESUME.
    Dispatches(bool),
    /// Whether new connections are refused.
    Refuses(bool),
}

impl Gateway {
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Close(code) => json!({ "do": "close", "code": code }),
            Self::Abort => json!({ "do": "abort" }),
            Self::Reconnect => json!({ "do": "reconnect" }),
            Self::InvalidSession { resumable } => json!({ "do": "invalid", "resumable": resumable }),
            Self::Forget => json!({ "do": "forget" }),
            Self::Acknowledges(on) => json!({ "do": "acknowledge", "on": on }),
            Self::Dispatches(on) => json!({ "do": "dispatch", "on": on }),
            Self::Refuses(on) => json!({ "do": "refuse", "on": on }),
        }
    }
}

/// What clients have done at the Gateway so far.
#[derive(Clone, Debug, Deserialize)]
pub struct Sessions {
    /// Sessions with a connection, now.
    pub connected: usize,
    /// Sessions, now: those that could be resumed too.
    pub sessions: usize,
    /// Connections there have been.
    pub connections: usize,
    /// Sessions there have been.
    pub identifies: usize,
    /// RESUMEs that succeeded.
    pub resumes: usize,
    /// RESUMEs that were refused.
    pub resumes_refused: usize,
    /// Heartbeats, acknowledged or not.
    pub heartbeats: usize,
    /// The codes that clients have closed with; 1006 is a connection that just ended.
    pub closed_with: Vec<u16>,
    /// The codes that the server closed with because of what a client did.
    pub refused_with: Vec<u16>,
    /// The intents of the last session.
    pub intents: u64,
}
