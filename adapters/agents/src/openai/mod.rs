//! Any server with OpenAI's Chat Completions API: Ollama, vLLM, llama.cpp, LiteLLM, OpenAI and others.
//!
//! | File | Contains |
//! | --- | --- |
//! | `request` | the messages of a turn, and the request's body (no I/O) |
//! | `stream` | parses and assembles the answer (no I/O) |
//! | `dialect` | which parts of the API a server refused |
//! | `trial` | one short question, for `rejoinder init` |
//! | `server` | a server, and how it is reached |
//! | `exchange` | one request and its answer: HTTP, timeouts, which errors are retried |
//!
//! A run is one request, plus another one whenever the model must learn the result of a tool call (an invalid call, or a
//! `send` that was not sent), [`MAX_ROUNDS`] in total. A choice (`react`, `ask`, `defer`, `stay_silent`), or a `send` that became
//! the turn's answer, ends the run without another request.

mod dialect;
mod exchange;
mod request;
mod section;
mod server;
mod stream;
mod trial;

use std::{sync::atomic::Ordering, time::Duration};

use async_trait::async_trait;
use rejoinder_core::{AgentError, AgentRuntime, AgentTurn, Outcome, RunEvents};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::{
    exchange::ExchangeError,
    request::{ChatMessage, Prompt, Request},
    stream::Answer,
};
pub(crate) use self::{
    exchange::{chain, read_body},
    server::bearer,
};
pub use self::{
    section::OpenAiSection,
    server::{OpenAi, SettingsError, redacted_url},
    trial::say_hello,
};
use crate::{prompt::files, report::Report, tools::RunState};

/// How many requests one run may make, not counting retries.
const MAX_ROUNDS: usize = 5;

impl OpenAi {
    async fn answer(&self, turn: &AgentTurn, events: &RunEvents) -> Result<Outcome, AgentError> {
        let mut prompt = Prompt::of(turn, &self.settings);
        let (began, mut state, mut retried) = (Instant::now(), RunState::default(), false);
        let mut report = Report::to(events);
        // Whether the model has said all that it wanted, and is only asked again for what came meanwhile.
        let mut is_whole = false;
        for round in 1..=MAX_ROUNDS {
            let answer = match self.ask(turn, &mut prompt, &mut report, state.has_shown(), &mut retried).await {
                Ok(answer) => answer,
                // An earlier choice of the model stays valid.
                Err(_) if is_whole => return Ok(state.outcome()),
                Err(error) => return state.choice().ok_or(error),
            };
            let (was_shown, is_cut) = (answer.visible.shown > 0, answer.cut);
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

    /// One round: a request, retried once in a run if that may help and nothing was shown. `has_shown`: whether an earlier
    /// round showed text.
    async fn ask(
        &self,
        turn: &AgentTurn,
        prompt: &mut Prompt<'_>,
        report: &mut Report<'_>,
        has_shown: bool,
        retried: &mut bool,
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
            report.next(has_shown);
            let result = self.exchange(request.body, turn, &mut answer, report).await;
            self.thinks_first.fetch_or(answer.visible.thought_first, Ordering::Relaxed);
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
                Some(pause) if !*retried && answer.visible.shown == 0 => {
                    *retried = true;
                    let (agent, trouble) = (&*self.name, error.as_str());
                    tracing::info!(agent, turn_id = %turn.turn, trouble, "request failed, retrying once");
                    tokio::time::sleep(pause).await;
                }
                _ => return Err(error.into_error(answer.visible.shown)),
            }
        }
    }
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
