//! The chats that are served, and which of them a request is for.

use std::{collections::BTreeMap, sync::Arc};

use axum::http::{StatusCode, request::Parts, uri::Authority};
use rejoinder_kit::Problem;

use crate::{
    WebchatAdapter,
    access::{self, Access, AccessError},
};

/// The name of the chat at `/chat`.
const MAIN: &str = "main";

pub(crate) struct Chats {
    by_name: BTreeMap<String, Arc<WebchatAdapter>>,
}

impl Chats {
    pub(crate) fn new(chats: Vec<Arc<WebchatAdapter>>) -> Self {
        Self { by_name: chats.into_iter().map(|chat| (chat.channel.name().to_owned(), chat)).collect() }
    }

    /// The chat `name`, or else the main one, if its access rules admit the request. Returns the requested host too.
    pub(crate) fn find(&self, name: Option<&str>, parts: &Parts) -> Result<(Arc<WebchatAdapter>, Authority), Problem> {
        let chat = match name {
            Some(name) => self.by_name.get(name),
            None => self.by_name.get(MAIN).or_else(|| self.by_name.values().next().filter(|_| self.by_name.len() == 1)),
        };
        let chat = chat.ok_or_else(no_such_chat)?;
        let host = access::admit(&chat.access, parts)?;
        Ok((Arc::clone(chat), host))
    }

    /// Whether people elsewhere may open one of them.
    pub(crate) fn have_open(&self) -> bool {
        self.by_name.values().any(|chat| !matches!(chat.access, Access::Loopback))
    }
}

impl From<AccessError> for Problem {
    fn from(error: AccessError) -> Self {
        let (status, title) = match error {
            AccessError::NoHost => (StatusCode::BAD_REQUEST, "Bad request: no host"),
            _ => (StatusCode::FORBIDDEN, "Forbidden"),
        };
        Self::new(status, "not-let-in", title, error.to_string())
    }
}

fn no_such_chat() -> Problem {
    let detail = "no chat page is configured at this path: see [channels.webchat] in the configuration";
    Problem::new(StatusCode::NOT_FOUND, "no-such-chat", "Not found: there is no such chat", detail)
}
