//! What the agent asks for while it works on a prompt, and the answers.

use serde_json::{Value, json};
use tracing::debug;

use crate::{
    connection::Connection,
    elicitation::Response,
    event::Event,
    protocol::{ElicitationRequest, INVALID_PARAMS, PermissionRequest},
};

/// The most bytes of a form: more could not be shown, and would cost much to read.
const MOST_FORM: usize = 256 << 10;

/// A request of the agent that is not answered yet, by its id.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Asked {
    Permission(Value),
    Elicitation(Value),
}

impl Asked {
    /// `None`: the event asks for nothing.
    pub(crate) fn by(event: &Event) -> Option<Self> {
        match event {
            Event::Permission(id, _) => Some(Self::Permission(id.clone())),
            Event::Elicitation(id, _) => Some(Self::Elicitation(id.clone())),
            _ => None,
        }
    }

    pub(crate) const fn id(&self) -> &Value {
        match self {
            Self::Permission(id) | Self::Elicitation(id) => id,
        }
    }
}

impl Connection {
    /// Answers a request for permission. `None`: the request is cancelled.
    pub(crate) fn permit(&self, request: &Value, option: Option<&str>) {
        let outcome = match option {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        self.answer(request, &json!({ "outcome": outcome }));
    }

    /// Answers a request for what the person is to say.
    pub(crate) fn respond(&self, request: &Value, response: &Response) {
        self.answer(request, &response.result());
    }

    /// Answers a request that is not decided any more.
    pub(crate) fn cancel(&self, asked: &Asked) {
        match asked {
            Asked::Permission(id) => self.permit(id, None),
            Asked::Elicitation(id) => self.respond(id, &Response::Cancel),
        }
    }

    fn answer(&self, request: &Value, result: &Value) {
        self.write(&json!({ "jsonrpc": "2.0", "id": request, "result": result }));
    }

    pub(crate) fn refuse(&self, id: &Value, code: i64, message: &str) {
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }));
    }

    pub(crate) fn permission_asked(&self, id: Value, params: &str, size: usize) {
        match serde_json::from_str::<PermissionRequest>(params) {
            Ok(request) => {
                let session = request.session_id.clone();
                self.ask(Some(&session), Event::Permission(id, request), size);
            }
            Err(error) => self.refuse(&id, INVALID_PARAMS, &error.to_string()),
        }
    }

    pub(crate) fn elicitation_asked(&self, id: Value, params: &str, size: usize) {
        if params.len() > MOST_FORM {
            return self.refuse(&id, INVALID_PARAMS, "the form is too long");
        }
        let request = match serde_json::from_str::<ElicitationRequest>(params) {
            Ok(ElicitationRequest::Other) => return self.refuse(&id, INVALID_PARAMS, "the client offers no such mode"),
            Ok(request) => request,
            Err(error) => return self.refuse(&id, INVALID_PARAMS, &error.to_string()),
        };
        let session = request.session().map(str::to_owned);
        self.ask(session.as_deref(), Event::Elicitation(id, request), size);
    }

    /// Hands a request to the run of its session. Where there is none, it is cancelled.
    fn ask(&self, session: Option<&str>, event: Event, size: usize) {
        let unsent = match session.and_then(|session| self.feed(session)) {
            None => Some(event),
            Some(events) => events.push(event, size).err().map(|event| *event),
        };
        if let Some(asked) = unsent.as_ref().and_then(Asked::by) {
            debug!("an ACP agent asks for something outside of a prompt, or too much at once");
            self.cancel(&asked);
        }
    }
}
