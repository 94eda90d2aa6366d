//! What a run used whose runtime does not say it: without that, a budget would never end.

use rejoinder_guard::Outcome;

use super::result::RunResult;
use crate::{
    model::{AgentMessage, AgentQuote, AgentTurn, Usage},
    ports::AgentError,
};

/// How many bytes of text count as a token.
const BYTES: u64 = 4;

/// Estimates the tokens of a run by the size of the texts that its runtime was given and has said. Files, instructions of the
/// operator and what happens inside the agent are not known here.
#[derive(Clone, Copy, Default)]
pub(super) struct Estimate {
    given: usize,
    /// Of the text that was streamed.
    streamed: usize,
    sent: usize,
}

impl Estimate {
    pub(super) fn new(turn: &AgentTurn) -> Self {
        let instructions = turn.person.instructions.as_ref().map_or(0, String::len);
        let messages: usize = turn.messages().map(of_message).sum();
        let lines: usize = turn.past.history.iter().map(|line| line.text.len()).sum();
        Self { given: instructions + messages + lines, ..Self::default() }
    }

    pub(super) fn hears(&mut self, messages: &[AgentMessage]) {
        self.given += messages.iter().map(of_message).sum::<usize>();
    }

    pub(super) fn streams(&mut self, text: &str) {
        self.streamed += text.len();
    }

    pub(super) fn sends(&mut self, text: &str) {
        self.sent += text.len();
    }

    /// What it says from now on is estimated anew; what was given stays.
    pub(super) const fn renewed(self) -> Self {
        Self { streamed: 0, sent: 0, ..self }
    }

    /// The tokens of a run that has not ended with an outcome.
    pub(super) fn so_far(self) -> Usage {
        self.with(0)
    }

    /// The tokens of a run that ended so. None of one that did not reach the agent.
    pub(super) fn at(self, result: &RunResult) -> Usage {
        match result {
            RunResult::Returned(Err(AgentError::Unreachable(_))) | RunResult::Withdrawn => Usage::default(),
            RunResult::Returned(Ok(outcome)) => self.with(of_outcome(outcome)),
            _ => self.so_far(),
        }
    }

    /// The tokens if this many bytes are the outcome.
    fn with(self, outcome: usize) -> Usage {
        Usage { input_tokens: tokens(self.given), output_tokens: tokens(outcome.max(self.streamed) + self.sent) }
    }
}

fn of_message(message: &AgentMessage) -> usize {
    message.text.len() + of_quote(message.quoted.as_ref())
}

fn of_quote(quote: Option<&AgentQuote>) -> usize {
    quote.map_or(0, |quote| quote.text.len())
}

fn of_outcome(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Reply(reply) => reply.sealed.as_ref().unwrap_or(&reply.text).len(),
        Outcome::React(_) => 0,
        Outcome::Defer { note, .. } => note.as_ref().map_or(0, String::len),
        Outcome::Approval(request) => request.action.len() + request.details.as_ref().map_or(0, String::len),
        Outcome::Silent(reason) => reason.len(),
    }
}

fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(BYTES)
}
