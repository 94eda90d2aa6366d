//! What the agent says, does and asks for in a run.

use std::{collections::VecDeque, pin::Pin, sync::Arc};

use rejoinder_agents::{
    prompt::blocks,
    report::{AnswerUpdate, Report},
};
use rejoinder_core::{
    Activity, AgentApproval, AgentError, AgentTurn, ApprovalRequest, PersonAnswer, Reply, RunEvents, ToolUse, Usage,
    as_stored,
};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{
    AcpSection,
    answer::Answer,
    answer_files::Files,
    elicitation::{Answers, Elicitation, Response, Step},
    event::{CallError, Event},
    feed::MOST_WAITING,
    open::refusal,
    permission::{Decision, Permissions},
    prompt::Prompt,
    protocol::{
        Chunk, Content, ElicitationRequest, NOT_FOUND, PermissionOption, PermissionRequest, PromptEnd, RpcError,
        SessionInfo, Update,
    },
    run_cost::RunCost,
    sessions::{Owner, Slot},
    tools::{Changed, ToolCalls},
};

/// What stands for the name of a tool where the agent said something that is no part of its answer.
const NOTICE: &str = "notice";

/// A request of the agent, with its id.
enum Wanted {
    Permission(Value, PermissionRequest),
    Elicitation(Value, ElicitationRequest),
}

impl Wanted {
    const fn id(&self) -> &Value {
        match self {
            Self::Permission(id, _) | Self::Elicitation(id, _) => id,
        }
    }
}

/// What somebody is to approve or to say, while the agent waits for it.
struct Question<'a> {
    /// The id of the agent's request.
    id: Value,
    request: ApprovalRequest,
    /// Cancelled when the agent takes the request back. It has its answer then, and the question ends.
    taken_back: CancellationToken,
    told: Pin<Box<dyn Future<Output = Told> + Send + 'a>>,
}

impl Question<'_> {
    /// Whether the agent waits for it still. If not, it works on while its run is let go on.
    fn waits(&self) -> bool {
        !self.taken_back.is_cancelled()
    }
}

/// What became of a question.
enum Told {
    Decision(Vec<PermissionOption>, Result<AgentApproval, String>),
    Answer(Elicitation, Result<PersonAnswer, String>),
}

/// How far the agent's work on a prompt was followed. Where it is not the end, the prompt is cancelled.
pub(crate) enum Followed {
    Ended,
    /// The answer has as much text as it may have.
    Full,
    /// Somebody must approve or answer this.
    NeedsApproval(ApprovalRequest),
}

/// What a run has heard of the agent so far.
pub(crate) struct Run<'a> {
    agent: &'a str,
    settings: &'a AcpSection,
    slot: Arc<Slot>,
    turn: &'a AgentTurn,
    events: &'a RunEvents,
    cost: RunCost,
    pub(crate) report: Report<'a>,
    pub(crate) answer: Answer,
    files: Files,
    tools: ToolCalls,
    permissions: Permissions,
    answers: Answers,
}

impl<'a> Run<'a> {
    /// A run of `agent` in the session of `slot`.
    pub(crate) fn new(
        agent: &'a str,
        settings: &'a AcpSection,
        slot: Arc<Slot>,
        cost: RunCost,
        turn: &'a AgentTurn,
        events: &'a RunEvents,
    ) -> Self {
        let permissions = Permissions::new(&turn.past.approvals, turn.rights.may_ask_approval);
        let (report, answer, tools) = (Report::to(events), Answer::default(), ToolCalls::default());
        let answers = Answers::of(&turn.past.answers);
        let files = Files::default();
        Self { agent, settings, slot, turn, events, cost, report, answer, files, tools, permissions, answers }
    }

    /// Follows the agent's work on a prompt. While it waits for a decision, the session is left to others who want it: then, and if the
    /// prompt fails, returns what it asked for, because the decision has the turn run again.
    pub(crate) async fn follow(
        &mut self,
        mut prompt: Prompt,
        session: &str,
        owner: &Owner,
    ) -> Result<Followed, AgentError> {
        self.permissions.begin_prompt();
        let mut question = None;
        let ended = self.work(&mut prompt, session, owner, &mut question).await;
        if let Some(result) = self.answer.take_notices() {
            // For the operator, in the record of the run.
            let (name, arguments) = (NOTICE.to_owned(), String::new());
            self.events.tool(ToolUse { name, arguments, result, duration_ms: None }).await;
        }
        match (ended, question) {
            (Err(error), Some(question)) if question.waits() => {
                let (agent, why) = (self.agent, error.summary());
                debug!(agent, turn_id = %self.turn.turn, why, "a prompt waits no longer for a decision");
                Ok(Followed::NeedsApproval(question.request))
            }
            (ended, _) => ended,
        }
    }

    /// The error is the end of the prompt, of which a question may be left.
    async fn work(
        &mut self,
        prompt: &mut Prompt,
        session: &str,
        owner: &Owner,
        question: &mut Option<Question<'a>>,
    ) -> Result<Followed, AgentError> {
        let patience = self.settings.idle_timeout;
        let mut requests = VecDeque::new();
        loop {
            while question.is_none()
                && let Some(wanted) = requests.pop_front()
            {
                *question = match wanted {
                    Wanted::Permission(id, request) => self.decide(prompt, id, request),
                    Wanted::Elicitation(id, request) => self.elicit(prompt, id, request),
                };
            }
            let waits = question.as_ref().is_some_and(Question::waits);
            prompt.suspend(waits);
            let event = match question {
                None => timeout(patience, prompt.next())
                    .await
                    .map_err(|_| AgentError::Stalled(format!("nothing came for {patience:?} (`idle_timeout`)")))?,
                Some(asked) => tokio::select! {
                    biased;
                    told = &mut asked.told => {
                        let (id, request) = (asked.id.clone(), &asked.request);
                        *question = match told {
                            Told::Decision(_, decision) if !waits => {
                                self.permissions.note(decision.ok());
                                None
                            }
                            Told::Answer(..) if !waits => None,
                            Told::Decision(options, decision) => {
                                let option = self.option(decision, request, &options);
                                prompt.permit(&id, option.as_deref());
                                None
                            }
                            Told::Answer(mut elicitation, answer) => {
                                elicitation.take(self.said(answer, request).as_deref());
                                self.go_on(prompt, id, elicitation)
                            }
                        };
                        continue;
                    }
                    // Before the session is given away: the agent may have taken its request back.
                    event = prompt.next() => event,
                    () = owner.is_wanted(), if waits => {
                        return Err(AgentError::Failed("its session is used otherwise".to_owned()));
                    }
                },
            };
            match event {
                Event::Update(Update::AgentMessageChunk(chunk)) => {
                    let was_cut = self.answer.is_cut;
                    self.chunk(chunk).await;
                    if self.answer.is_cut && !was_cut {
                        return Ok(Followed::Full);
                    }
                }
                Event::Update(Update::AgentThoughtChunk(chunk)) => {
                    if let Content::Text { text } = chunk.content {
                        self.events.thought(text).await;
                    }
                }
                Event::Update(Update::ToolCall(call) | Update::ChangedToolCall(call)) => {
                    self.answer.interrupt();
                    let Changed { activities, ended } = self.tools.update(call);
                    for Activity { title, state } in activities {
                        self.events.activity(title, state).await;
                    }
                    if let Some(ended) = ended {
                        self.events.tool(ended).await;
                    }
                }
                Event::Update(Update::Info(SessionInfo { title: Some(title) })) => self.title(title).await,
                Event::Update(Update::Usage(_)) => self.cost().await,
                Event::Update(Update::Info(_) | Update::Other) => {}
                Event::Permission(id, request) => requests.push_back(Wanted::Permission(id, request)),
                Event::Elicitation(id, request) => requests.push_back(Wanted::Elicitation(id, request)),
                Event::TakenBack(id) => {
                    prompt.end_request(&id);
                    requests.retain(|wanted| *wanted.id() != id);
                    if let Some(question) = question.as_ref().filter(|question| question.id == id) {
                        question.taken_back.cancel();
                    }
                }
                Event::Lost(why) => return Err(AgentError::Broken(format!("{why}: its answer is not whole"))),
                Event::Overflowed => {
                    return Err(AgentError::Broken(format!(
                        "the agent sends faster than its answer is taken: more than {MOST_WAITING} bytes wait"
                    )));
                }
                Event::Ended(Ok(end)) => return self.ended(prompt, end).await.map(|()| Followed::Ended),
                Event::Ended(Err(error)) => return Err(self.failed(session, error)),
            }
        }
    }

    /// Answers a request of the agent for permission, or has the approvers asked.
    fn decide(&mut self, prompt: &mut Prompt, id: Value, request: PermissionRequest) -> Option<Question<'a>> {
        let PermissionRequest { tool_call, options, .. } = request;
        self.note_said();
        match self.permissions.decide(&self.tools.known(&tool_call), &options) {
            Decision::Choose(option) => {
                prompt.permit(&id, option.as_deref());
                None
            }
            Decision::Ask(request) => {
                self.answer.interrupt();
                let taken_back = CancellationToken::new();
                let decision = self.events.ask_approval_unless(request.clone(), taken_back.clone());
                let told = Box::pin(async { Told::Decision(options, decision.await) });
                Some(Question { id, request, taken_back, told })
            }
        }
    }

    /// Has the person asked for what the agent wants to hear of them, or answers at once.
    fn elicit(&mut self, prompt: &mut Prompt, id: Value, request: ElicitationRequest) -> Option<Question<'a>> {
        let (agent, turn_id) = (self.agent, self.turn.turn);
        match Elicitation::of(request) {
            Err(why) => {
                warn!(agent, %turn_id, why, "a form or a link of an ACP agent is declined");
                prompt.respond(&id, &Response::Decline);
                None
            }
            Ok(elicitation) => {
                self.answer.interrupt();
                self.go_on(prompt, id, elicitation)
            }
        }
    }

    /// Has the person asked the next question of a form, or answers the agent.
    fn go_on(&mut self, prompt: &mut Prompt, id: Value, mut elicitation: Elicitation) -> Option<Question<'a>> {
        loop {
            let (text, choices) = match elicitation.step() {
                Step::Ask(text, choices) => (text, choices),
                Step::Answer(response) => {
                    prompt.respond(&id, &response);
                    return None;
                }
            };
            let request = ApprovalRequest::question(text.clone(), choices.clone());
            match self.answers.take(&request) {
                Some(known) => elicitation.take(known.answer.as_deref()),
                None if self.turn.rights.may_ask_person => {
                    let taken_back = CancellationToken::new();
                    let answer = self.events.ask_person_unless(text, choices, taken_back.clone());
                    let told = Box::pin(async { Told::Answer(elicitation, answer.await) });
                    return Some(Question { id, request, taken_back, told });
                }
                None => elicitation.take(None),
            }
        }
    }

    /// The person's words. `None`: they have not answered.
    fn said(&self, answer: Result<PersonAnswer, String>, request: &ApprovalRequest) -> Option<String> {
        let (agent, turn_id) = (self.agent, self.turn.turn);
        match answer {
            Ok(PersonAnswer { question, answer }) if question == as_stored(request) => answer,
            Ok(_) => {
                warn!(agent, %turn_id, "an answer is not about what an ACP agent asks, and is not used");
                None
            }
            Err(why) => {
                debug!(agent, %turn_id, why, "the person is not asked what an ACP agent wants to know");
                None
            }
        }
    }

    /// The agent's option for a decision. That nobody was asked is a no, and so is a decision about something else.
    fn option(
        &mut self,
        decision: Result<AgentApproval, String>,
        request: &ApprovalRequest,
        options: &[PermissionOption],
    ) -> Option<String> {
        let (agent, turn_id) = (self.agent, self.turn.turn);
        self.note_said();
        match decision {
            Ok(approval) if approval.request == as_stored(request) => self.permissions.decided(approval, options),
            Ok(_) => {
                warn!(agent, %turn_id, "a decision is not about what an ACP agent asked for, and allows nothing");
                self.permissions.refuse(request, options)
            }
            Err(why) => {
                debug!(agent, %turn_id, why, "nobody is asked for what an ACP agent wants to do");
                self.permissions.refuse(request, options)
            }
        }
    }

    async fn chunk(&mut self, chunk: Chunk) {
        let Chunk { content, message_id } = chunk;
        let (has_shown, had_ids) = (self.answer.has_shown(), self.answer.has_ids());
        let text = match content {
            Content::Text { text } => text,
            Content::Other => return,
            _ if message_id.is_none() && had_ids => {
                return self.files.leave_out("one has no id, as words that are no answer");
            }
            content => {
                if self.files.add(content, message_id.is_some()) {
                    self.permissions.take_refused();
                }
                return;
            }
        };
        let Some(step) = self.answer.push(message_id.as_deref(), &text) else { return };
        if self.answer.has_ids() != had_ids {
            self.files.keep_with_ids();
        }
        if step.withdraws {
            self.report.withdraw().await;
        }
        if let Some(rest) = step.ends {
            self.report.text(rest).await;
            self.report.next(has_shown);
        }
        self.report.update(step.update).await;
    }

    /// Reports what the session is about, unless the agent took the instructions for a person's first message.
    async fn title(&self, title: String) {
        if !blocks::repeats_beginning(&title, self.turn, &self.settings.system_prompt) {
            self.events.title(title).await;
        }
    }

    /// Reports what the run has cost until now, if that is known.
    async fn cost(&mut self) {
        if let Some(cost) = self.cost.until_now() {
            self.events.cost(cost).await;
        }
    }

    async fn ended(&mut self, prompt: &Prompt, end: PromptEnd) -> Result<(), AgentError> {
        if let Some(usage) = end.usage {
            let (input_tokens, output_tokens) = usage.sums();
            let usage = Usage { input_tokens, output_tokens };
            self.report.update(AnswerUpdate { usage: Some(usage), ..AnswerUpdate::default() }).await;
        }
        self.note_said();
        match end.stop_reason.as_str() {
            "end_turn" => Ok(()),
            // At a no, as Codex does. What it has said since is its answer.
            "cancelled" if self.permissions.has_refused() => Ok(()),
            "max_tokens" if self.answer.has_shown() => {
                self.answer.is_cut = true;
                Ok(())
            }
            "max_tokens" => Err(AgentError::Broken("the answer was cut off before any text (max_tokens)".to_owned())),
            "refusal" => {
                let message = "the agent's model refuses to answer".to_owned();
                Err(AgentError::Refused { status: "refusal".to_owned(), message })
            }
            _ => Err(AgentError::Failed(format!("it stopped before the end: {}", prompt.told(end.stop_reason)))),
        }
    }

    /// The action at whose refusal the agent has stopped without a word.
    pub(crate) fn take_refused(&mut self) -> Option<String> {
        self.note_said();
        self.permissions.take_refused()
    }

    /// Notes whether the agent has said anything since this was called before: then it has not stopped at a no of before.
    fn note_said(&mut self) {
        if self.answer.says_since_mark() {
            self.permissions.take_refused();
        }
        self.answer.mark();
    }

    /// How many bytes of text and how many files the answer has so far; `None` if a person gets nothing of it.
    pub(crate) fn answered(&self) -> Option<(usize, usize)> {
        let files = self.files.count();
        (self.answer.is_visible() || files > 0).then(|| (self.answer.size(), files))
    }

    /// The error that ends the run.
    pub(crate) fn failed(&self, session: &str, error: CallError) -> AgentError {
        let after = if self.answer.has_shown() { " in the middle of its answer" } else { "" };
        match error {
            CallError::Closed(reason) => AgentError::Broken(format!("its process has ended{after}: {reason}")),
            CallError::Invalid(error) => AgentError::Broken(format!("the end of its answer cannot be read: {error}")),
            CallError::Refused(error) => {
                if is_lost_session(&error) {
                    self.slot.forget(session);
                }
                refusal("session/prompt", &error)
            }
        }
    }

    /// The whole answer.
    pub(crate) async fn reply(mut self) -> Reply {
        let (attachments, unsent) = self.files.take();
        if !unsent.is_empty() {
            let (agent, why) = (self.agent, unsent.join("; "));
            warn!(agent, turn_id = %self.turn.turn, why, "files of an answer are left out");
        }
        Reply { attachments, ..Reply::text(self.text().await) }
    }

    async fn text(mut self) -> String {
        self.report.text(self.answer.end()).await;
        let is_cut = self.answer.is_cut;
        let mut text = self.answer.into_text();
        if is_cut {
            let notice = format!("\n\n{}", self.turn.place.cut_off);
            text.push_str(&notice);
            self.report.text(notice).await;
        }
        text
    }
}

/// Whether the agent does not know the session any more.
pub(crate) fn is_lost_session(error: &RpcError) -> bool {
    error.code == NOT_FOUND || error.message.to_ascii_lowercase().contains("session not found")
}
