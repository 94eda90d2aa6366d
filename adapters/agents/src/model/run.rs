//! A run: its rounds, and the retry of a request.

use std::{borrow::Cow, sync::atomic::Ordering, time::Duration};

use async_trait::async_trait;
use rejoinder_core::{AgentError, AgentRuntime, AgentTurn, Outcome, RunEvents};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    answer::Answer,
    exchange::ExchangeError,
    listed::{ModelsError, list_of},
    protocol::Protocol,
    request::Request,
    server::Model,
};
use crate::{
    attachments::leave_out,
    file_kind::FileKind,
    prompt::messages::Prompt,
    report::Report,
    tools::{ForeignCalls, RunState, Tool, offered},
};

/// How many requests one run may make, not counting retries.
pub(super) const MAX_ROUNDS: usize = 5;

/// The same for a run with tools that are not the gateway's own.
pub(super) const MAX_TOOL_ROUNDS: usize = 25;

impl<P: Protocol> Model<P> {
    async fn answer(&self, turn: &AgentTurn, events: &RunEvents) -> Result<Outcome, AgentError> {
        let mut prompt = Prompt::new(turn, &self.protocol.settings(), &self.instructions);
        let more = match &self.more_tools {
            Some(source) => source.tools().await,
            None => Vec::new(),
        };
        let foreign = ForeignCalls::of(turn, more);
        let rounds = if foreign.is_empty() { MAX_ROUNDS } else { MAX_TOOL_ROUNDS };
        let own = if self.protocol.settings().tools { offered(turn) } else { Vec::new() };
        let tools: Vec<_> = own.into_iter().chain(foreign.definitions().into_iter().map(Cow::Owned)).collect();
        let (began, mut state, mut retried) = (Instant::now(), RunState::with(foreign), false);
        let mut report = Report::to(events);
        // Whether the model has said all that it wanted, and is only asked again for what came meanwhile.
        let mut is_whole = false;
        for round in 1..=rounds {
            state.foreign.rounds_left = rounds - round;
            let mut answer =
                match self.ask(turn, &tools, &mut prompt, &mut report, state.has_shown(), &mut retried).await {
                    Ok(answer) => answer,
                    // An earlier choice of the model stays valid.
                    Err(_) if is_whole => return Ok(state.outcome()),
                    Err(error) => return state.choice().ok_or(error),
                };
            let (was_shown, is_cut, is_paused) =
                (answer.text().visible.shown > 0, answer.text().cut, answer.is_paused());
            let left_out = state.embed(std::mem::take(&mut answer.text_mut().embedded));
            leave_out(&self.name, turn, events, left_out).await;
            let mut written = answer.into_written();
            if is_cut {
                tracing::warn!(agent = &*self.name, turn_id = %turn.turn, "the answer is too long, its end is cut off");
                let notice = format!("\n\n{}", turn.place.cut_off);
                written.text.push_str(&notice);
                report.text(notice).await;
            }
            let now = turn.now + Duration::from_secs(began.elapsed().as_secs());
            let results = state.perform(&written.calls, turn, now, events).await;
            let ends = state.sent || (!is_paused && results.iter().all(|result| !result.needs_answer));
            // What came while the model worked is answered by another round: this one does not end the run.
            let may_listen = round < rounds && !is_paused && (written.calls.is_empty() || !ends);
            let came = if may_listen { events.listen().await } else { Vec::new() };
            is_whole = ends && !came.is_empty();
            let ends = ends && came.is_empty();
            state.add_text(&written.text, was_shown);
            if ends {
                break;
            }
            if is_paused && round == rounds {
                let error = AgentError::Broken("the model paused its answer too often".to_owned());
                return state.choice().ok_or(error);
            }
            if is_paused || !(written.text.is_empty() && written.calls.is_empty()) {
                prompt.push_round(written, results.into_iter().map(|result| result.text).collect());
            }
            prompt.came_in(&came, turn.place.chat);
        }
        Ok(state.outcome())
    }

    /// One round: a request, retried once in a run if that may help and nothing was shown. `has_shown`: whether an earlier
    /// round showed text.
    async fn ask(
        &self,
        turn: &AgentTurn,
        tools: &[Cow<'_, Tool>],
        prompt: &mut Prompt<'_>,
        report: &mut Report<'_>,
        has_shown: bool,
        retried: &mut bool,
    ) -> Result<P::Answer, AgentError> {
        let known = self.learned.get();
        let mut dialect = known;
        loop {
            if !dialect.images {
                prompt.remove(FileKind::Picture);
            }
            if !dialect.audio {
                prompt.remove(FileKind::Sound);
            }
            let request = Request::new(&self.protocol, turn, tools, prompt, dialect);
            report.shown(request.input::<P>(prompt)).await;
            let mut answer = P::Answer::new(self.thinks_first.load(Ordering::Relaxed));
            report.next(has_shown);
            let result = self.exchange(request.body, turn, &mut answer, report).await;
            self.thinks_first.fetch_or(answer.text().visible.thought_first, Ordering::Relaxed);
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
                Some(pause) if !*retried && answer.text().visible.shown == 0 => {
                    *retried = true;
                    let (agent, trouble) = (&*self.name, error.as_str());
                    tracing::info!(agent, turn_id = %turn.turn, trouble, "request failed, retrying once");
                    tokio::time::sleep(pause).await;
                }
                _ => return Err(error.into_error(answer.text().visible.shown)),
            }
        }
    }
}

#[async_trait]
impl<P: Protocol> AgentRuntime for Model<P> {
    fn describe(&self) -> String {
        format!("{} {} at {}", P::KIND, self.protocol.settings().model, self.redacted_url())
    }

    fn history(&self) -> usize {
        self.protocol.settings().history_messages as usize
    }

    fn reads(&self, media_type: &str) -> Option<usize> {
        self.learned.get().taken(self.protocol.settings().takes).largest(media_type)
    }

    fn hears(&self, media_type: &str) -> bool {
        self.learned.get().taken(self.protocol.settings().takes).has_sound(media_type)
    }

    fn has_probe(&self) -> bool {
        true
    }

    /// Asks the server for its models. A server that does not list them, or not with this key, is reached all the same.
    async fn probe(&self) -> Option<Result<(), AgentError>> {
        if let Some(tools) = &self.more_tools {
            tools.start();
        }
        Some(match list_of(&self.http, &self.protocol).await {
            Err(ModelsError::Unreachable(why)) => Err(AgentError::Unreachable(why)),
            Err(error @ ModelsError::Failing(_)) => Err(AgentError::Unreachable(error.to_string())),
            Err(ModelsError::KeyRefused(_) | ModelsError::NoList(_)) | Ok(_) => Ok(()),
        })
    }

    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        tokio::select! {
            biased;
            outcome = self.answer(&turn, &events) => outcome,
            () = cancel.cancelled() => Err(AgentError::Failed("the run was cancelled".to_owned())),
        }
    }
}
