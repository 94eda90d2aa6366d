//! One caller: how long they wait, and what they read of their turn.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{TurnId, TurnStatus, TurnView, Usage};
use rejoinder_kit::asking::GRACE;

use crate::{ApiContext, CompletionsAdapter, answer::Answer};

/// Who sent one request.
pub(crate) struct Caller {
    pub(crate) adapter: Arc<CompletionsAdapter>,
    pub(crate) context: Arc<ApiContext>,
    /// The one that is named in the answer: as it was asked for.
    pub(crate) model: String,
    pub(crate) wants_usage: bool,
    /// The fields of the request that change nothing.
    pub(crate) ignored: Vec<String>,
}

impl Caller {
    /// How long the response may take.
    pub(crate) fn patience(&self) -> Duration {
        self.adapter.wait + GRACE
    }

    /// Names the agent that answered, unless the model that was asked for is one of its own: of a turn that was asked before, with
    /// another model perhaps.
    pub(crate) fn name_agent_of(&mut self, view: Option<&TurnView>) {
        let Some(agent) = view.and_then(|view| view.shown.as_ref()?.agent.as_deref()) else { return };
        let is_own = self.model.strip_prefix(agent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if !is_own {
            agent.clone_into(&mut self.model);
        }
    }

    /// What the caller reads of a turn.
    pub(crate) fn read<'a>(&'a self, turn: TurnId, view: Option<&'a TurnView>) -> Answer<'a> {
        let (texts, url) = (&self.adapter.texts, || self.adapter.result_url(turn));
        let mut answer = match view {
            Some(view) => Answer::of(view, texts, url),
            None => Answer::accepted(turn, texts, url()),
        };
        answer.about.ignored = &self.ignored;
        answer
    }

    /// The tokens that a turn used. If they cannot be read, the answer goes without them.
    pub(crate) async fn usage(&self, turn: TurnId) -> Option<Usage> {
        self.context.intake.usage(turn).await.unwrap_or_default()
    }

    pub(crate) fn note_read(&self, turn: TurnId, status: Option<TurnStatus>) {
        if status.is_some_and(TurnStatus::is_final) {
            self.context.intake.fetched(turn);
        }
    }
}
