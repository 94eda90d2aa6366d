//! Actions and state of the Gateway.

use serde::Deserialize;
use serde_json::{Value, json};

/// An action of the Gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayAction {
    /// Closes all connections with this code. The codes 4004, 4007 and 4009 to 4014 end the sessions too.
    Close(u16),
    /// Cuts all connections with a TCP reset. The sessions can be resumed.
    Abort,
    /// Asks all clients to reconnect and resume.
    Reconnect,
    /// Reports an invalid session.
    InvalidSession {
        /// Whether the session can still be resumed.
        resumable: bool,
    },
    /// Forgets all sessions: they get no more events, and a RESUME fails.
    Forget,
    /// Sets whether heartbeats of the existing connections are acknowledged.
    Acknowledges(bool),
    /// Sets whether the existing connections get events. A RESUME replays what they missed.
    Dispatches(bool),
    /// Sets whether new connections are refused.
    Refuses(bool),
}

impl GatewayAction {
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
    /// The current sessions with a connection.
    pub connected: usize,
    /// The current sessions, including those that can be resumed.
    pub sessions: usize,
    /// All connections so far.
    pub connections: usize,
    /// All sessions so far.
    pub identifies: usize,
    /// Successful RESUMEs.
    pub resumes: usize,
    /// Failed RESUMEs.
    pub resumes_refused: usize,
    /// Heartbeats, acknowledged or not.
    pub heartbeats: usize,
    /// The codes that clients have closed with; 1006 is a connection that ended without one.
    pub closed_with: Vec<u16>,
    /// The codes that the server closed with because of an error of a client.
    pub refused_with: Vec<u16>,
    /// The intents of the last session.
    pub intents: u64,
}
