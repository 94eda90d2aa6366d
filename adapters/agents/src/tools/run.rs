//! Carries out what a model calls for in a run, and combines what it wrote and chose into the outcome.

use rejoinder_core::{ActivityState, AgentTurn, Outcome, Reply, RunEvents, SendResult, Shim, Timestamp, ToolUse};

use tokio::time::Instant;

use super::{
    call::{Call, DEFER, ToolCall, rfc3339},
    chosen::Chosen,
    foreign::{Called, ForeignCalls},
    schedule, search,
};

/// How many characters of a tool's name are kept.
pub(crate) const MAX_TOOL_NAME: usize = 64;

/// The result of a tool call, for the model.
#[derive(Debug)]
pub(crate) struct ToolResult {
    pub(crate) text: String,
    /// Whether the model must get the result before the run can end.
    pub(crate) needs_answer: bool,
}

/// What the model has written and chosen so far in a run.
#[derive(Debug, Default)]
pub(crate) struct RunState {
    /// The raw texts that a person could see, one per round that had any.
    shown: Vec<String>,
    /// The last text that no person could see.
    unseen: String,
    tools: Vec<String>,
    chosen: Chosen,
    pub(crate) foreign: ForeignCalls,
    /// Whether `send` became the turn's answer.
    pub(crate) sent: bool,
}

impl RunState {
    /// Drops all but that something was sent.
    pub(super) fn begin_again(&mut self) {
        *self = Self { sent: self.sent, ..Self::default() };
    }

    /// That of a run with further tools.
    pub(crate) fn with(foreign: ForeignCalls) -> Self {
        Self { foreign, ..Self::default() }
    }

    pub(crate) const fn has_shown(&self) -> bool {
        !self.shown.is_empty()
    }

    /// The outcome of the choices alone, if any: for a run whose next request fails.
    pub(crate) fn choice(self) -> Option<Outcome> {
        self.choice_beside(None)
    }

    /// The outcome of the choices beside this visible text, if any.
    pub(super) fn choice_beside(self, text: Option<&str>) -> Option<Outcome> {
        self.chosen.outcome(text)
    }

    /// Carries out the model's calls. Their times are relative to `now`.
    pub(crate) async fn perform(
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
        let wants_to_defer = turn.rights.may_defer.left > 0 && calls.iter().any(|call| call.name == DEFER);
        let defers = self.chosen.defer.is_some() || wants_to_defer;
        for (made, call) in calls.iter().zip(parsed) {
            let ToolCall { name, arguments, .. } = made;
            let foreign = self.foreign.find(name);
            let name: String = name.chars().take(MAX_TOOL_NAME).collect();
            if !self.tools.contains(&name) {
                self.tools.push(name.clone());
            }
            let takes_time = foreign.is_some() || matches!(call, Ok(Call::Search(_) | Call::Schedule(_)));
            let activity = takes_time.then(|| format!("calls {name}"));
            if let Some(title) = &activity {
                events.activity(title, ActivityState::Working).await;
            }
            let (began, mut has_failed) = (Instant::now(), false);
            let (call, took) = match &foreign {
                Some(tool) => match self.foreign.call(&**tool, made, events).await {
                    Called::Answered { answer, took } => {
                        has_failed = answer.is_error;
                        (Err(answer.text), took)
                    }
                    Called::Asks(request) => (Ok(Call::Approval(request)), None),
                },
                None => (call, None),
            };
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
                Ok(Call::Search(query)) => {
                    let found = events.search(query).await;
                    has_failed = found.is_err();
                    (search::told(found), true)
                }
                Ok(Call::Schedule(call)) => {
                    let done = events.schedule(call).await;
                    has_failed = done.is_err();
                    (schedule::told(done), true)
                }
                Ok(call) => {
                    let noted = match &call {
                        Call::Defer { due, .. } => format!("noted: you are asked again at {}", rfc3339(*due)),
                        _ => "noted".to_owned(),
                    };
                    self.chosen.add(call);
                    (noted, false)
                }
            };
            if let Some(title) = activity {
                let state = if has_failed { ActivityState::Failed } else { ActivityState::Done };
                events.activity(title, state).await;
            }
            let took = took.or_else(|| foreign.is_none().then(|| began.elapsed()));
            let duration_ms = took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
            let (arguments, result) = (arguments.clone(), text.clone());
            events.tool(ToolUse { name, arguments, result, duration_ms }).await;
            results.push(ToolResult { text, needs_answer });
        }
        results
    }

    /// Adds what the model wrote in a round. `was_shown`: whether a person could see it.
    pub(crate) fn add_text(&mut self, text: &str, was_shown: bool) {
        if was_shown {
            self.shown.push(text.to_owned());
        } else if !text.trim().is_empty() {
            text.clone_into(&mut self.unseen);
        }
    }

    pub(crate) fn outcome(self) -> Outcome {
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
