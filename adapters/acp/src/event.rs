//! What happens in a session while the agent works on a prompt.

use std::sync::Arc;

use serde_json::Value;

use crate::protocol::{ElicitationRequest, PermissionRequest, PromptEnd, RpcError, Update};

/// Why a request has no result.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The connection has ended, for this reason.
    Closed(Arc<str>),
    /// The agent says why.
    Refused(RpcError),
    /// Its result cannot be read.
    Invalid(String),
}

/// What happens in a session while the agent works on a prompt.
#[derive(Debug)]
pub(crate) enum Event {
    Update(Update),
    /// It asks for permission; the first value is the id of its request.
    Permission(Value, PermissionRequest),
    /// It asks for what the person is to say; the first value is the id of its request.
    Elicitation(Value, ElicitationRequest),
    /// The agent takes back the request with this id, which may be one of another session.
    TakenBack(Value),
    /// A message, which may have been a part of the answer, was not read, for this reason.
    Lost(String),
    /// The run takes too little of what the agent sends: the rest is left out.
    Overflowed,
    Ended(Result<PromptEnd, CallError>),
}
