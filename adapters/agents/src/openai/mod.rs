//! Any server with OpenAI's Chat Completions API: Ollama, vLLM, llama.cpp, LiteLLM, OpenAI and others.
//!
//! | File | Contains |
//! | --- | --- |
//! | `request` | the messages of a turn, and the request's body (no I/O) |
//! | `stream` | parses and assembles the answer (no I/O) |
//! | `dialect` | which parts of the API a server refused |
//! | `trial` | one short question, for `rejoinder init` |
//! | `exchange` | one request and its answer: HTTP, timeouts, which errors are retried |
//!
//! A run is one request, plus another one whenever the model must learn the result of a tool call (an invalid call, or a
//! `send` that was not sent), [`MAX_ROUNDS`] in total. A choice (`react`, `ask`, `defer`, `stay_silent`), or a `send` that became
//! the turn's answer, ends the run without another request.

mod dialect;
mod exchange;
mod request;
mod section;
mod stream;
mod trial;

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_core::{
    AgentError, AgentName, AgentRuntime, AgentTurn, Outcome, Reply, RunEvents, SendResult, Shim, Timestamp, ToolUse,
};
use reqwest::header::{HeaderValue, InvalidHeaderValue};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;

pub(crate) use self::exchange::chain;
use self::{
    dialect::LearnedDialect,
    exchange::{ExchangeError, Report},
    request::{ChatMessage, Prompt, Request},
    stream::{Answer, ToolCall},
};
pub use self::{section::OpenAiSection, trial::say_hello};
use crate::{
    prompt::files,
    tools::{self, Call, Chosen, DEFER, schedule},
};

/// How many requests one run may make, not counting retries.
const MAX_ROUNDS: usize = 5;

/// How many characters of a tool's name are kept.
const MAX_TOOL_NAME: usize = 64;

/// How long to wait before the only retry, if the server does not say.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// A base URL for printing, without the parts that may be secret.
#[must_use]
pub fn redacted_url(base_url: &Url) -> Url {
    let mut url = base_url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail if there is no user to remove.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

/// Why settings are invalid.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The base URL is not an HTTP URL.
    #[error("`base_url` must begin with http:// or https://")]
    BaseUrl,
    /// The key is not valid in a header.
    #[error("`api_key` contains a character that is not allowed in a header (a line break, perhaps)")]
    ApiKey(#[source] InvalidHeaderValue),
}

/// An agent behind a Chat Completions server.
pub struct OpenAi {
    /// For metrics and logs.
    name: AgentName,
    settings: OpenAiSection,
    retry_pause: Duration,
    http: reqwest::Client,
    url: Url,
    authorization: Option<HeaderValue>,
    learned: LearnedDialect,
    thinks_first: AtomicBool,
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi")
            .field("name", &self.name)
            .field("at", &self.redacted_url().as_str())
            .finish_non_exhaustive()
    }
}

impl OpenAi {
    /// Sends nothing yet. `http` must have no timeout for whole requests: an answer may take minutes.
    ///
    /// # Errors
    /// When the settings are invalid.
    pub fn new(name: AgentName, settings: OpenAiSection, http: reqwest::Client) -> Result<Self, SettingsError> {
        if !matches!(settings.base_url.scheme(), "http" | "https") {
            return Err(SettingsError::BaseUrl);
        }
        let mut url = settings.base_url.clone();
        url.path_segments_mut().map_err(|()| SettingsError::BaseUrl)?.pop_if_empty().extend(["chat", "completions"]);
        let authorization =
            settings.api_key.as_ref().map(|key| bearer(key.get())).transpose().map_err(SettingsError::ApiKey)?;
        let thinks_first = AtomicBool::new(settings.thinks_first);
        let (learned, retry_pause) = (LearnedDialect::default(), RETRY_PAUSE);
        Ok(Self { name, settings, retry_pause, http, url, authorization, learned, thinks_first })
    }

    /// Changes the pause before the only retry.
    #[must_use]
    pub fn with_retry_pause(mut self, pause: Duration) -> Self {
        self.retry_pause = pause;
        self
    }

    fn redacted_url(&self) -> Url {
        redacted_url(&self.settings.base_url)
    }

    async fn answer(&self, turn: &AgentTurn, events: &RunEvents) -> Result<Outcome, AgentError> {
        let mut prompt = Prompt::of(turn, &self.settings);
        let (began, mut state) = (Instant::now(), RunState::default());
        let mut report = Report::to(events);
        // Whether the model has said all that it wanted, and is only asked again for what came meanwhile.
        let mut is_whole = false;
        for round in 1..=MAX_ROUNDS {
            let answer = match self.ask(turn, &mut prompt, &mut state, &mut report).await {
                Ok(answer) => answer,
                // An earlier choice of the model stays valid.
                Err(_) if is_whole => return Ok(state.outcome()),
                Err(error) => return state.chosen.outcome(None).ok_or(error),
            };
            let (was_shown, is_cut) = (answer.shown() > 0, answer.is_cut());
            let (mut text, calls) = answer.into_parts();
            if is_cut {
                tracing::warn!(agent = &*self.name, turn_id = %turn.turn, "the answer is too long, its end is cut off");
                let notice = format!("\n\n{}", turn.cut_off);
                text.push_str(&notice);
                report.text(notice).await;
            }
            let now = turn.now + Duration::from_secs(began.elapsed().as_secs());
            let results = state.perform(&calls, turn, now, events).await;
            let ends = state.sent || results.iter().all(|result| !result.needs_answer);
            // What came while the model worked is answered by another round: this one does not end the run.
            let may_listen = round < MAX_ROUNDS && (calls.is_empty() || !ends);
            let came = if may_listen { events.listen().await } else { Vec::new() };
            is_whole = ends && !came.is_empty();
            let ends = ends && came.is_empty();
            if !ends {
                if !(text.is_empty() && calls.is_empty()) {
                    prompt.push(ChatMessage::called(text.clone(), &calls));
                }
                for (call, result) in calls.into_iter().zip(results) {
                    prompt.push(ChatMessage::result(call.id, result.text));
                }
                prompt.came_in(&came, turn.chat);
            }
            state.add_text(text, was_shown);
            if ends {
                break;
            }
        }
        Ok(state.outcome())
    }

    /// One round: a request, retried once if that may help and nothing was shown.
    async fn ask(
        &self,
        turn: &AgentTurn,
        prompt: &mut Prompt<'_>,
        state: &mut RunState,
        report: &mut Report<'_>,
    ) -> Result<Answer, AgentError> {
        let known = self.learned.get();
        let mut dialect = known;
        loop {
            if !dialect.images {
                prompt.remove_pictures();
            }
            let request = Request::new(&self.settings, turn, prompt, dialect);
            report.shown(request.input(prompt)).await;
            let mut answer = Answer::new(self.thinks_first.load(Ordering::Relaxed));
            report.next(!state.shown.is_empty());
            let result = self.exchange(request.body, turn, &mut answer, report).await;
            self.thinks_first.fetch_or(answer.thought_first(), Ordering::Relaxed);
            self.count(result.as_ref().map_or_else(ExchangeError::as_str, |()| "ok"));
            let Err(error) = result else {
                if dialect != known && self.learned.learn(dialect) {
                    let agent = &*self.name;
                    let left_out = dialect.left_out();
                    tracing::warn!(agent, left_out, "the server refuses a part of the API, which is left out for now");
                }
                return Ok(answer);
            };
            if let ExchangeError::Refused { message, .. } = &error
                && let Some(left) = dialect.without_refused(message)
            {
                dialect = left;
                continue;
            }
            match error.pause(self.retry_pause) {
                Some(pause) if !state.retried && answer.shown() == 0 => {
                    state.retried = true;
                    let (agent, trouble) = (&*self.name, error.as_str());
                    tracing::info!(agent, turn_id = %turn.turn, trouble, "request failed, retrying once");
                    tokio::time::sleep(pause).await;
                }
                _ => return Err(error.into_error(answer.shown())),
            }
        }
    }

    fn count(&self, result: &'static str) {
        metrics::counter!("rejoinder_agent_requests_total", "agent" => self.name.clone(), "result" => result)
            .increment(1);
    }

    fn without_key(&self, text: &str) -> String {
        match &self.settings.api_key {
            Some(key) if !key.expose().is_empty() => text.replace(key.expose(), "[key]"),
            _ => text.to_owned(),
        }
    }
}

pub(crate) fn bearer(key: &SecretString) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose_secret()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[async_trait]
impl AgentRuntime for OpenAi {
    fn describe(&self) -> String {
        format!("openai {} at {}", self.settings.model, self.redacted_url())
    }

    fn history(&self) -> usize {
        self.settings.history_messages as usize
    }

    fn reads(&self, media_type: &str) -> Option<usize> {
        let takes_pictures = || self.settings.images && self.learned.get().images;
        files::largest(media_type).filter(|_| !files::is_picture(media_type) || takes_pictures())
    }

    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        tokio::select! {
            biased;
            outcome = self.answer(&turn, &events) => outcome,
            () = cancel.cancelled() => Err(AgentError::Failed("the run was cancelled".to_owned())),
        }
    }
}

/// The result of a tool call, for the model.
#[derive(Debug)]
struct ToolResult {
    text: String,
    /// Whether the model must get the result before the run can end.
    needs_answer: bool,
}

/// What the model has written and chosen so far in a run.
#[derive(Debug, Default)]
struct RunState {
    /// The raw texts that a person could see, one per round that had any.
    shown: Vec<String>,
    /// The last text that no person could see.
    unseen: String,
    tools: Vec<String>,
    chosen: Chosen,
    /// Whether `send` became the turn's answer.
    sent: bool,
    retried: bool,
}

impl RunState {
    /// Does what the model calls for. What it says of the time is meant from `now`, when it says it.
    async fn perform(
        &mut self,
        calls: &[ToolCall],
        turn: &AgentTurn,
        now: Timestamp,
        events: &RunEvents,
    ) -> Vec<ToolResult> {
        let mut results = Vec::with_capacity(calls.len());
        let parsed: Vec<_> =
            calls.iter().map(|ToolCall { name, arguments, .. }| Call::parse(name, arguments, turn, now)).collect();
        // What is sent is the answer: nothing is left to put off. So of both, in any order, only the deferral holds, also if it
        // has to be corrected first.
        let wants_to_defer = turn.may_defer.left > 0 && calls.iter().any(|call| call.name == DEFER);
        let defers = self.chosen.is_deferred() || wants_to_defer;
        for (ToolCall { name, arguments, .. }, call) in calls.iter().zip(parsed) {
            let name: String = name.chars().take(MAX_TOOL_NAME).collect();
            if !self.tools.contains(&name) {
                self.tools.push(name.clone());
            }
            let (text, needs_answer) = match call {
                Err(message) => (message, true),
                Ok(Call::Send(_)) if defers && !self.sent => (
                    "not sent: you cannot both send and defer; say in the note of `defer` what the person is to know now"
                        .to_owned(),
                    true,
                ),
                Ok(Call::Send(text)) => match events.send(Reply::text(text)).await {
                    SendResult::Claimed => {
                        self.sent = true;
                        ("sent".to_owned(), false)
                    }
                    SendResult::Suppressed => (
                        "not sent: the person has an answer already, or there was nothing to see in it".to_owned(),
                        true,
                    ),
                },
                Ok(Call::Defer { .. }) if self.sent => {
                    ("error: what you sent is your answer, which you cannot put off any more".to_owned(), true)
                }
                Ok(Call::Schedule(call)) => (schedule::told(events.schedule(call).await), true),
                Ok(call) => {
                    let noted = match &call {
                        Call::Defer { due, .. } => format!("noted: you are asked again at {}", tools::rfc3339(*due)),
                        _ => "noted".to_owned(),
                    };
                    self.chosen.add(call);
                    (noted, false)
                }
            };
            events.tool(ToolUse { name, arguments: arguments.clone(), result: text.clone() }).await;
            results.push(ToolResult { text, needs_answer });
        }
        results
    }

    fn add_text(&mut self, text: String, was_shown: bool) {
        if was_shown {
            self.shown.push(text);
        } else if !text.trim().is_empty() {
            self.unseen = text;
        }
    }

    fn outcome(self) -> Outcome {
        let text = match self.shown.as_slice() {
            [] => None,
            [only] => Some(only.clone()),
            // Each part has its own markers and reasoning at its ends, so clean them one by one.
            parts => Some(parts.iter().map(|part| Shim::whole(part)).collect::<Vec<_>>().join("\n\n")),
        };
        if let Some(outcome) = self.chosen.outcome(text.as_deref()) {
            return outcome;
        }
        match text {
            Some(text) => Outcome::Reply(Reply::text(text)),
            None if self.sent => Outcome::Silent("answered with the tool `send`".to_owned()),
            None if self.unseen.is_empty() && !self.tools.is_empty() => {
                Outcome::Silent(format!("tools only: {}", self.tools.join(", ")))
            }
            None => Outcome::Reply(Reply::text(self.unseen)),
        }
    }
}
