//! Tools that are not the gateway's own: what a model may call of them in a run, and which calls need an approval.

#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use rejoinder_core::{AgentTurn, ApprovalRequest, Attachment, RunEvents};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::{
    call::ToolCall,
    offer::{Tool, is_own},
};
use crate::{
    approval::Approval,
    asking::{Decisions, allows},
};

/// How many calls a run may make.
const MOST_CALLS: usize = 64;

/// A tool that is not the gateway's own.
#[async_trait]
pub trait ForeignTool: Send + Sync {
    /// What the model is told of it.
    fn definition(&self) -> &Tool;

    /// The kind of the action if each call needs an approval; `None` if it needs none.
    fn approved_as(&self) -> Option<&str>;

    /// Calls it. If the future is dropped, the call is cancelled.
    async fn call(&self, arguments: Map<String, Value>) -> ForeignAnswer;
}

/// The result of a call of such a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignAnswer {
    /// For the model.
    pub text: String,
    /// Whether nothing was done.
    pub is_error: bool,
    /// For the person: they go with the answer.
    pub files: Vec<Attachment>,
}

/// Where such tools come from.
#[async_trait]
pub trait ToolSource: Send + Sync {
    /// Begins to find out which tools there are, if that has not begun.
    fn start(&self);

    /// The servers that they come from, and how many tools each of them has now, or why it has none.
    fn servers(&self) -> Vec<(String, Result<usize, String>)>;

    /// Those that there are now. Waits for a moment while the first of them are being found.
    async fn tools(&self) -> Vec<Arc<dyn ForeignTool>>;
}

/// The tools of a run that are not the gateway's own, and their calls.
#[derive(Default)]
pub(crate) struct ForeignCalls {
    tools: Vec<Arc<dyn ForeignTool>>,
    decisions: Decisions,
    may_ask: bool,
    /// Whether the run may wait for a decision: one with files would keep them from others.
    may_wait: bool,
    made: usize,
    /// How many more answers the model gives in this run.
    pub(crate) rounds_left: usize,
}

/// What became of a call.
pub(crate) enum Called {
    Answered {
        answer: ForeignAnswer,
        /// How long it took; `None` if it was not called.
        took: Option<Duration>,
    },
    /// It needs an approval, for which the run cannot wait.
    Asks(ApprovalRequest),
}

impl ForeignCalls {
    /// Those of a run of `turn`. A tool whose calls need an approval is left out where nobody can approve.
    pub(crate) fn of(turn: &AgentTurn, mut tools: Vec<Arc<dyn ForeignTool>>) -> Self {
        let may_approve = turn.rights.may_ask_approval || !turn.past.approvals.is_empty();
        tools.retain(|tool| (may_approve || tool.approved_as().is_none()) && !is_own(&tool.definition().name));
        let decisions = Decisions::of(&turn.past.approvals);
        let files = turn.message.attachments.iter().chain(turn.message.quoted.iter().flat_map(|quoted| &quoted.files));
        let more = turn.more.iter().any(|more| !more.attachments.is_empty());
        let may_wait = !more && files.into_iter().all(|file| file.bytes.is_none());
        Self { tools, decisions, may_ask: turn.rights.may_ask_approval, may_wait, made: 0, rounds_left: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    pub(crate) fn definitions(&self) -> Vec<Tool> {
        self.tools.iter().map(|tool| tool.definition().clone()).collect()
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<dyn ForeignTool>> {
        self.tools.iter().find(|tool| tool.definition().name == name).cloned()
    }

    /// Carries out a call, once it is approved if it must be.
    pub(crate) async fn call(&mut self, tool: &dyn ForeignTool, call: &ToolCall, events: &RunEvents) -> Called {
        let arguments = match arguments(&call.arguments) {
            Ok(arguments) => arguments,
            Err(why) => return refused(why),
        };
        if self.rounds_left == 0 {
            return refused("error: not called: nothing more can be called in answer to this message".to_owned());
        }
        self.made += 1;
        if self.made > MOST_CALLS {
            return refused(format!("error: not called: at most {MOST_CALLS} calls answer one message"));
        }
        if let Some(kind) = tool.approved_as() {
            let request = request(&tool.definition().name, kind, &arguments);
            match self.approve(request, events).await {
                Ok(None) => {}
                Ok(Some(request)) => return Called::Asks(request),
                Err(why) => return refused(why),
            }
        }
        let began = Instant::now();
        let mut answer = tool.call(arguments).await;
        let elapsed = began.elapsed();
        if self.rounds_left == 1 {
            answer.text.push_str("\n\n[Nothing more can be called: answer the person now.]");
        }
        Called::Answered { answer, took: Some(elapsed) }
    }

    /// Whether the call may be made: the error says why not. `Some`: somebody must be asked when the run has ended.
    async fn approve(
        &mut self,
        request: ApprovalRequest,
        events: &RunEvents,
    ) -> Result<Option<ApprovalRequest>, String> {
        let decided = match self.decisions.take(&request) {
            Some(decided) => decided,
            None if !self.may_ask => {
                return Err("error: not called: it needs an approval, and nobody can be asked".to_owned());
            }
            None if !self.may_wait => return Ok(Some(request)),
            None => {
                let asked = events.ask_approval(request).await;
                let decided = asked.map_err(|why| format!("error: not called: it needs an approval: {why}"))?;
                if !allows(&decided) {
                    self.decisions.add(decided.clone());
                }
                decided
            }
        };
        if allows(&decided) {
            return Ok(None);
        }
        Err(format!("error: not called: its approval was not given: {}", Approval::from(&decided).json()))
    }
}

impl fmt::Debug for ForeignCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignCalls")
            .field("tools", &self.tools.len())
            .field("made", &self.made)
            .finish_non_exhaustive()
    }
}

fn refused(why: String) -> Called {
    Called::Answered { answer: ForeignAnswer { text: why, is_error: true, files: Vec::new() }, took: None }
}

fn arguments(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(text).map_err(|error| format!("error: the arguments are no JSON object: {error}"))
}

/// What somebody must approve. The action names the call and a digest of its arguments: with others it is another action.
fn request(tool: &str, kind: &str, arguments: &Map<String, Value>) -> ApprovalRequest {
    let written = serde_json::to_string_pretty(arguments).expect("JSON serialises to JSON");
    let digest = hex::encode(&Sha256::digest(&written)[..16]);
    let action = format!("Call {tool} ({digest})");
    ApprovalRequest { details: Some(written), kind: Some(kind.to_owned()), ..ApprovalRequest::action(action) }
}
