//! Carries out what a model calls for in a run, and combines what it wrote and chose into the outcome.

use std::mem::take;

use rejoinder_core::{
    ActivityState, AgentTurn, Attachment, EmbeddedFiles, Outcome, Reply, RunEvents, SendResult, Shim, Timestamp,
    ToolUse,
};
use tokio::time::Instant;

use super::{
    call::{Call, DEFER, ToolCall, rfc3339},
    chosen::Chosen,
    file::without_bytes,
    foreign::{Called, ForeignAnswer, ForeignCalls},
    schedule, search,
};
use crate::attachments::{MAX_DATA, MAX_FILES};

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

    /// The outcome of the choices alone, if any: for a run whose next request fails. Files keep the text that was shown with them.
    pub(crate) fn choice(self) -> Option<Outcome> {
        let text = if self.chosen.files.is_empty() { None } else { self.text() };
        self.choice_beside(text.as_deref())
    }

    /// The outcome of the choices beside this visible text, if any.
    pub(super) fn choice_beside(self, text: Option<&str>) -> Option<Outcome> {
        self.chosen.outcome(text)
    }

    /// The files of the answer so far.
    pub(super) const fn files(&mut self) -> &mut Vec<Attachment> {
        &mut self.chosen.files
    }

    /// Keeps a file for the answer, if there may be one more. `defers`: whether the answer is put off. Returns the result of the call.
    fn take_file(&mut self, file: Attachment, defers: bool) -> Result<String, String> {
        let files = &mut self.chosen.files;
        let size = files.iter().fold(file.url.len(), |size, file| size.saturating_add(file.url.len()));
        if self.sent {
            return Err(
                "error: what you sent is your answer already, and this file comes too late: end your turn".to_owned()
            );
        }
        if defers {
            return Err("not sent: a file goes with your answer, which you put off: send it then".to_owned());
        }
        if files.len() == MAX_FILES {
            return Err(format!("not sent: an answer has at most {MAX_FILES} files"));
        }
        if size > MAX_DATA {
            let most = MAX_DATA >> 20;
            return Err(format!("not sent: the files of an answer have at most {most} MiB of Base64 together"));
        }
        let told = format!("noted: {} goes with your answer", file.name);
        files.push(file);
        Ok(told)
    }

    /// Keeps the files that the model embeds in its text, as far as there may be more. Returns the names of the others, and why.
    pub(crate) fn embed(&mut self, mut embedded: EmbeddedFiles) -> Vec<(String, String)> {
        let mut left_out = embedded.take_left_out();
        for file in embedded.take_files() {
            let name = file.name.clone();
            left_out.extend(self.take_file(file, false).err().map(|why| (name, why)));
        }
        left_out
    }

    /// Keeps the files that a tool returned. Returns what the model is told.
    fn take_files_of(&mut self, answer: ForeignAnswer, defers: bool) -> String {
        let ForeignAnswer { mut text, files, .. } = answer;
        for file in files {
            text.push('\n');
            text.push_str(&self.take_file(file, defers).unwrap_or_else(|why| why));
        }
        text
    }

    /// Sends the answer, with the files so far. Returns the result of the call, and whether the model must get it.
    async fn send(&mut self, text: String, events: &RunEvents) -> (String, bool) {
        let attachments = take(&mut self.chosen.files);
        match events.send(Reply { attachments, ..Reply::text(text) }).await {
            SendResult::Claimed => {
                self.sent = true;
                ("sent".to_owned(), false)
            }
            SendResult::Suppressed => {
                ("not sent: the person has an answer already, or there was nothing to see in it".to_owned(), true)
            }
        }
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
        // What is sent is the answer: nothing is left to put off. So of both, in any order, only the deferral holds, also if it
        // has to be corrected first.
        let wants_to_defer = turn.rights.may_defer.left > 0 && calls.iter().any(|call| call.name == DEFER);
        let defers = self.chosen.defer.is_some() || wants_to_defer;
        // Files first: what is sent takes them along, in any order.
        let parsed: Vec<_> = calls
            .iter()
            .map(|ToolCall { name, arguments, .. }| match Call::parse(name, arguments, turn, now) {
                Ok(Call::File(file)) => Err(self.take_file(file, defers).unwrap_or_else(|why| why)),
                other => other,
            })
            .collect();
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
                        (Err(self.take_files_of(answer, defers)), took)
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
                Ok(Call::Send(text)) => self.send(text, events).await,
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
                        Call::Defer { due, .. } => {
                            let files = if self.chosen.files.is_empty() { "" } else { "; send your files again then" };
                            format!("noted: you are asked again at {}{files}", rfc3339(*due))
                        }
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
            let arguments = without_bytes(&name, arguments).unwrap_or_else(|| arguments.clone());
            let result = text.clone();
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

    /// All that was shown.
    fn text(&self) -> Option<String> {
        match self.shown.as_slice() {
            [] => None,
            [only] => Some(only.clone()),
            // Each part has its own markers and reasoning at its ends, so clean them one by one.
            parts => Some(parts.iter().map(|part| Shim::whole(part)).collect::<Vec<_>>().join("\n\n")),
        }
    }

    pub(crate) fn outcome(self) -> Outcome {
        let text = self.text();
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
