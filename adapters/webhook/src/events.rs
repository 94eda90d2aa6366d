//! Hooks for events: what happened elsewhere is put before an agent, or sent to people as it is.

use axum::{
    Json,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use rejoinder_core::{News, NotReached, Reached, Target, Task, TurnId, Words};
use rejoinder_kit::Problem;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{
    SettingsError,
    inbound::{self, unprocessable},
    section::{Owes, WebhookSection},
    template::{EventRequest, EventTemplate},
};

/// What the agent is told to do with an event, unless the hook says so.
const PROMPT: &str = "Tell the person in a sentence or two what happened.";
const QUIET_PROMPT: &str =
    "Tell the person in a sentence or two what happened, if it is of use to them. Otherwise stay silent.";

/// The beginning of the names of headers that templates may read. `Authorization` and cookies are not among them.
const SHOWN_HEADERS: &str = "x-";

/// The headers that prove who calls.
const PROOF: &str = "signature";

#[derive(Debug)]
pub(crate) struct Events {
    to: Target,
    task: Option<Task>,
    template: EventTemplate,
}

/// The answer to an event.
#[derive(Serialize)]
struct Taken {
    status: &'static str,
    turn_ids: Vec<TurnId>,
    /// Who of a role was not told, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_reached: Vec<NotTold>,
}

#[derive(Serialize)]
struct NotTold {
    who: String,
    why: String,
}

impl Events {
    /// `None` if the hook is for messages.
    pub(crate) fn of(section: &WebhookSection) -> Result<Option<Self>, SettingsError> {
        let Some(to) = section.deliver_to.clone() else { return Ok(None) };
        let quiet = section.owes == Owes::Nothing;
        let task = (!section.deliver_only).then(|| Task {
            text: section.prompt.clone().unwrap_or_else(|| if quiet { QUIET_PROMPT } else { PROMPT }.to_owned()),
            agent: section.common.agent.as_deref().map(Into::into),
            quiet,
            words: Words {
                to: section.words_to.clone().unwrap_or_default(),
                session: section.session.unwrap_or_default(),
            },
        });
        let template = EventTemplate::new(section.template.as_deref(), task.is_none());
        Ok(Some(Self { to, task, template: template.map_err(|_| SettingsError::NotATemplate)? }))
    }

    /// The event of a request; `None` if there is nothing to tell. `key` identifies the request.
    /// Fails when the body cannot be read, or the template does not fit it.
    pub(crate) fn read(
        &self,
        content_type: Option<&str>,
        headers: &HeaderMap,
        body: &[u8],
        key: &str,
    ) -> Result<Option<News>, Problem> {
        let raw = inbound::utf8(body)?;
        let request = EventRequest { body: inbound::read_any(content_type, raw)?, headers: shown(headers).collect() };
        let text = self.template.text(&request).map_err(|error| unfit(&error))?;
        if text.is_empty() {
            return Ok(None);
        }
        // An event that differs is another one, also under a key that was used before: none is lost.
        let key = format!("{key}:{}", hex::encode(&Sha256::digest(body)[..16]));
        Ok(Some(News { to: self.to.clone(), text, task: self.task.clone(), key, raw: raw.to_owned() }))
    }
}

fn shown(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let is_shown = |name: &str| name.starts_with(SHOWN_HEADERS) && !name.contains(PROOF);
    let named = headers.iter().map(|(name, value)| (name.as_str(), value));
    named.filter(move |(name, _)| is_shown(name)).filter_map(|(name, value)| Some((name, value.to_str().ok()?)))
}

pub(crate) fn taken(reached: Reached) -> Response {
    for missed in &reached.missed {
        tracing::warn!(count = missed.who.count(), why = missed.why, "the event of a hook did not reach everybody");
    }
    let turn_ids = reached.begun.iter().map(|begun| begun.turn).collect();
    let not_told = |NotReached { who, why }| NotTold { who: who.to_string(), why };
    let not_reached = reached.missed.into_iter().map(not_told).collect();
    (StatusCode::ACCEPTED, Json(Taken { status: "accepted", turn_ids, not_reached })).into_response()
}

fn unfit(error: &minijinja::Error) -> Problem {
    let title = "Unprocessable entity: the template does not fit the body";
    unprocessable("template", title, format!("`template`: {error}"))
}

/// The response to an event that is for nobody who can be reached.
pub(crate) fn unreachable(why: &str) -> Problem {
    tracing::warn!(why, "the event of a hook reaches nobody");
    let title = "Conflict: the event reaches nobody";
    Problem::new(StatusCode::CONFLICT, "unreachable", title, format!("`deliver_to`: {why}"))
}
