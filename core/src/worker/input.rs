//! The input of a run.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use rejoinder_guard::{ObligationState, SignalKind, Timestamp};
use tracing::warn;

use super::{files::Files, grace::GRACE, memory::Memory, reads::Reads, result::RunResult, runtimes::Runtimes, sealing};
use crate::{
    base::{channels::Channels, words::excerpt},
    events::Run,
    model::{
        AgentApproval, AgentMessage, AgentPast, AgentPerson, AgentPlace, AgentQuote, AgentRights, AgentTurn, Approval,
        ApprovalChange, ApprovalFilter, ApprovalState, Author, Capabilities, DeferralLimits, Deferred, Directed,
        EarlierLine, EventKind, FileBudget, Handler, Heard, HistoryLine, Identity, InboundEvent, KnownPeople,
        LastAnswer, LineState, LiveSettings, PersonAnswer, ScheduleLimits, SessionId, Settings, Span, Speaker, Surface,
        TurnId, TurnRecord, TurnTrace,
    },
    operator::own_commands,
    people::People,
    ports::{
        AgentError, AgentRuntime, AgentSessionStore, ChannelAdapter, FileStore, OutboxStore, QuestionStore, RunRecord,
        SessionStore, SharedClock, StoreError, TextReader, Transition,
    },
    questions::approvals::{MOST_WAITING, PAGE},
};

/// The `end` of a run that deferred its answer, in its record.
pub(super) const DEFERRAL: &str = SignalKind::Deferral.as_str();

/// How long an answer may be on its way before the agent is told that the person has not seen it.
const ON_ITS_WAY: Duration = Duration::from_mins(2);

/// Why the person has not seen such an answer.
const NOT_YET: &str = "not_yet";

/// The template for the end of an answer that is too long.
const CUT_OFF: &str = "cut_off";

/// How often the session of an agent is opened for a run: again when a turn of it was removed meanwhile.
const MOST_OPENINGS: usize = 5;

/// How many characters the agent gets of a message that is shortened.
const SHORTENED: usize = 100;

/// Prepares runs.
pub(crate) struct Inputs {
    pub(crate) agents: Arc<Runtimes>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) questions: Arc<dyn QuestionStore>,
    pub(crate) agent_sessions: Arc<dyn AgentSessionStore>,
    pub(crate) outbox: Arc<dyn OutboxStore>,
    pub(crate) people: Arc<People>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
    pub(crate) file_budget: FileBudget,
    pub(crate) stored_files: Arc<dyn FileStore>,
    pub(crate) reader: Option<Arc<dyn TextReader>>,
}

pub(super) struct PreparedRun {
    pub(super) runtime: Arc<dyn AgentRuntime>,
    pub(super) input: AgentTurn,
    /// Of an agent with a memory of its own.
    pub(super) memory: Option<Memory>,
    /// Whether the run before was withdrawn: then this one is not.
    pub(super) was_withdrawn: bool,
}

/// What an agent knows of what was said before.
struct Remembered {
    /// Of an agent with a memory of its own.
    memory: Option<Memory>,
    own_session: Option<String>,
    history: Vec<Arc<HistoryLine>>,
    last_answer: Option<LastAnswer>,
}

/// What the agent of a run may schedule in the conversation of this event, if a person asks it to, and where the gateway can
/// speak first.
pub(super) fn schedule_limits(
    run: &Run,
    event: &InboundEvent,
    settings: &Settings,
    channels: &Channels,
) -> Option<ScheduleLimits> {
    let limits = settings.agent_schedules.get(run.handler.agent()?)?;
    let address = &event.conversation;
    let can_write_first = channels.get(&address.channel)?.capabilities(address).can_write_first;
    Some(*limits).filter(|limits| limits.most > 0 && event.sender.kind.is_human() && can_write_first)
}

/// Which of an event's files is the recording whose words are its text.
fn heard_in(event: &InboundEvent) -> Option<usize> {
    let voice = event.voice.filter(|voice| voice.heard == Heard::Words)?;
    (voice.file < event.attachments.len()).then_some(voice.file)
}

/// What the run before this one of the same agent leaves to it.
#[derive(Default)]
pub(super) struct Before {
    /// Who did it, if it ended with a process of the gateway.
    pub(super) holder: Option<String>,
    /// Whether it was [withdrawn](AgentRuntime::withdraw).
    pub(super) was_withdrawn: bool,
}

impl Inputs {
    /// What a run is given, or how it ends if it cannot begin. Ends early if the run is stopped meanwhile.
    pub(super) async fn prepare(
        &self,
        turn: &TurnRecord,
        run: &Run,
        reads: Reads<'_>,
    ) -> Result<PreparedRun, RunResult> {
        let event = &turn.event;
        if event.kind == EventKind::Unreadable {
            return Err(RunResult::Unreadable);
        }
        let gone =
            |what: &str, name: &str| AgentError::Unreachable(format!("{what} `{name}` is not configured any more"));
        let runtime = run.handler.agent().and_then(|agent| self.agents.get(agent));
        let runtime = runtime.ok_or_else(|| gone("agent", &run.handler.to_string()))?;
        if event.seal_to.is_some() && !runtime.seals() {
            return Err(RunResult::Unread(sealing::cannot(&run.handler)));
        }
        if let Some(why) = unheard(event, runtime.as_ref()) {
            return Err(RunResult::Unheard(why));
        }
        let channel = self.channels.get(&event.conversation.channel);
        let channel = channel.ok_or_else(|| gone("channel", event.conversation.channel.as_str()))?.as_ref();
        let deferred = reads.get("the deferral", || self.deferred(turn, run)).await?;
        let handoff = reads.get("the runs before", || self.handoff(turn, run)).await?;
        let before = reads.get("the run before", || self.before(turn.id, run, runtime.as_ref())).await?;
        let Before { holder, was_withdrawn } = before;
        let settings = self.settings.get();
        let policy = settings.policy_for(event, turn.rule.as_deref());
        let others = reads.get("the turns that it answers for", || self.merged(turn)).await?;
        // What an agent remembers by itself is not to change either.
        let session = if event.is_on_copy() { turn.id.as_uuid().into() } else { turn.session };
        let deadline = run.started_at + policy.hard_deadline;
        // Before anything is read of the session: this may take long, and turns may be removed meanwhile.
        let messages = async {
            let first = self.message(event, channel, runtime.as_ref(), reads).await;
            (first, self.messages(&others, run, reads).await)
        };
        let (first, more) = tokio::select! {
            biased;
            () = reads.stop.cancelled() => return Err(RunResult::Stopped),
            messages = messages => messages,
        };
        let (message, more) = as_albums(event, first, &others, more);
        let Remembered { memory, own_session, history, last_answer } =
            self.remembered(turn, run, runtime.as_ref(), (session, deadline), reads).await?;
        // Last, because they are used from now on.
        let decided = reads.get("the approvals", || self.approvals(turn, run)).await?;
        let (answers, approvals): (Vec<_>, Vec<_>) = decided.into_iter().partition(|it| it.request.choices.is_some());
        let answers = answers.into_iter().map(PersonAnswer::of).collect();
        let input = AgentTurn {
            turn: turn.id,
            attempt: run.attempt,
            person: AgentPerson {
                language: event.language,
                instructions: event.brief.as_ref().and_then(|brief| brief.instructions.clone()),
                seal_to: event.seal_to.clone(),
            },
            message,
            more,
            place: AgentPlace {
                conversation: event.conversation.clone(),
                chat: event.chat,
                surface: if event.speaks {
                    Surface::Voice
                } else {
                    ask(channel, || channel.surface(), || Surface::of(channel.channel()))
                },
                session,
                own_session,
                // Another agent, to which the turn was handed over, has other models.
                model: turn.model.clone().filter(|_| run.handler == turn.handler),
                capabilities: ask(channel, || channel.capabilities(&event.conversation), Capabilities::minimal),
                cut_off: settings.templates.template(&event.conversation.channel, event.language, CUT_OFF).to_owned(),
            },
            rights: AgentRights {
                may_defer: DeferralLimits { left: turn.obligation.deferrals_left(&policy), longest: policy.max_defer },
                may_ask_approval: policy.max_approvals > 0
                    && (!settings.approvals.rules.is_empty() || self.people.has_approver(&settings.approvals)),
                may_ask_person: policy.max_approvals > 0 && may_be_asked(event),
                may_schedule: schedule_limits(run, event, &settings, &self.channels).is_some(),
                budget: None,
                spent: Vec::new(),
                tools: None,
            },
            past: AgentPast { history, last_answer, holder, deferred, handoff, approvals, answers },
            now: run.started_at,
            deadline,
            trace: (settings.is_traced || event.trace.is_some())
                .then(|| TurnTrace::new(turn.id, event.trace.clone()).headers(Span::Run(run.number))),
        };
        Ok(PreparedRun { runtime, input, memory, was_withdrawn })
    }

    /// Opens the agent's session and reads the transcript, again if a turn of it was removed meanwhile: neither holds that turn.
    async fn remembered(
        &self,
        turn: &TurnRecord,
        run: &Run,
        runtime: &dyn AgentRuntime,
        (session, deadline): (SessionId, Timestamp),
        reads: Reads<'_>,
    ) -> Result<Remembered, RunResult> {
        let agent = run.handler.agent();
        let read = async |own_session| {
            let history = reads.get("the transcript", || self.history(turn, runtime)).await?;
            let last_answer = match agent {
                Some(agent) => reads.get("the last answer", || self.last_answer(turn, runtime, agent)).await?,
                None => None,
            };
            Ok::<_, RunResult>(Remembered { memory: None, own_session, history, last_answer })
        };
        let Some(agent) = agent.filter(|_| runtime.keeps_sessions()) else {
            return read(None).await;
        };
        for _ in 0..MOST_OPENINGS {
            let open = || {
                let (store, of) = (Arc::clone(&self.agent_sessions), (agent.clone(), runtime));
                Memory::open(store, of, &self.clock, session, deadline + GRACE, turn.event.is_on_copy())
            };
            let (memory, own_session) = reads.get("the agent's session", open).await?;
            let read = read(own_session).await?;
            if reads.get("the agent's session", || memory.is_current()).await? {
                return Ok(Remembered { memory: Some(memory), ..read });
            }
        }
        Err(RunResult::Unread("turns of the agent's session are removed while it is read".to_owned()))
    }

    /// The turns that `turn` answers for as well, in the order in which they came. Those that were cancelled by themselves, and
    /// those that cannot be read, are left out.
    async fn merged(&self, turn: &TurnRecord) -> Result<Vec<TurnRecord>, StoreError> {
        let mut merged = Vec::new();
        for other in turn.obligation.merged_turns() {
            let Ok(id) = other.turn.parse() else { continue };
            merged.extend(self.store.readable_turn(id).await?.filter(|other| is_merged(other, turn)));
        }
        Ok(merged)
    }

    /// The messages of turns that a run answers for as well. Of more than may wait, the oldest are shortened.
    pub(super) async fn messages(&self, turns: &[TurnRecord], run: &Run, reads: Reads<'_>) -> Vec<AgentMessage> {
        let runtime = run.handler.agent().and_then(|agent| self.agents.get(agent));
        let cap = self.settings.read().queues.cap as usize;
        let shortened = turns.len().saturating_sub(cap);
        let mut messages = Vec::with_capacity(turns.len());
        for (index, turn) in turns.iter().enumerate() {
            let event = &turn.event;
            let (Some(runtime), Some(channel)) = (&runtime, self.channels.get(&event.conversation.channel)) else {
                continue;
            };
            if index < shortened {
                let text = excerpt(&event.text, SHORTENED);
                let (sender, forwarded) = (event.sender.clone(), event.forwarded.clone());
                let (attachments, voice, quoted, reaction) = (Vec::new(), None, None, None);
                messages.push(AgentMessage { sender, text, forwarded, attachments, voice, quoted, reaction });
            } else {
                messages.push(self.message(event, channel.as_ref(), runtime.as_ref(), reads).await);
            }
        }
        messages
    }

    /// What the agent gets of an event, with its files.
    async fn message(
        &self,
        event: &InboundEvent,
        channel: &dyn ChannelAdapter,
        runtime: &dyn AgentRuntime,
        reads: Reads<'_>,
    ) -> AgentMessage {
        let settings = self.settings.get();
        let (budget, limit) = (&self.file_budget, settings.max_attachment);
        let (store, reader) = (&*self.stored_files, self.reader.as_deref());
        let files = Files { budget, channel, store, reader, limit, reads };
        let quoted_files = event.quoted.iter().flat_map(|quoted| &quoted.attachments);
        let attachments: Vec<_> = event.attachments.iter().chain(quoted_files).collect();
        let mut attachments = files.fetch(&attachments, runtime).await;
        let quoted_files = attachments.split_off(event.attachments.len());
        if let Some(recording) = heard_in(event).filter(|file| attachments[*file].bytes.is_none()) {
            attachments.remove(recording);
        }
        let is_directed =
            event.kind == EventKind::Message && event.directed != Directed::Ambient && event.forwarded.is_none();
        let own_prompt = own_commands::prompt(&event.text, &settings).filter(|_| is_directed);
        AgentMessage {
            sender: event.sender.clone(),
            text: own_prompt.unwrap_or_else(|| event.text.clone()),
            forwarded: event.forwarded.clone(),
            attachments,
            voice: event.voice,
            quoted: event.quoted.as_ref().map(|quoted| AgentQuote {
                author: quoted.author.clone(),
                text: quoted.text.clone(),
                files: quoted_files,
            }),
            reaction: match &event.kind {
                EventKind::Reaction { emoji, .. } => Some(emoji.clone()),
                _ => None,
            },
        }
    }

    /// What was said before the turn, as many lines as the runtime wants: the transcript, or what the sender's program tells.
    async fn history(
        &self,
        turn: &TurnRecord,
        runtime: &dyn AgentRuntime,
    ) -> Result<Vec<Arc<HistoryLine>>, StoreError> {
        let mut history = self.lines(turn, runtime).await?;
        let now = self.clock.now();
        for line in &mut history {
            if let Some(state) = state_by_now(line, now) {
                Arc::make_mut(line).state = state;
            }
        }
        Ok(history)
    }

    async fn lines(&self, turn: &TurnRecord, runtime: &dyn AgentRuntime) -> Result<Vec<Arc<HistoryLine>>, StoreError> {
        if let Some(told) = turn.event.brief.as_ref().and_then(|brief| brief.said_before.as_ref()) {
            let latest = &told[told.len().saturating_sub(runtime.history())..];
            return Ok(latest.iter().map(|line| Arc::new(as_history(line, turn.event.received_at))).collect());
        }
        match u32::try_from(runtime.history()).unwrap_or(u32::MAX) {
            0 => Ok(Vec::new()),
            wanted if turn.event.about_another().is_some() => match self.store.session_about(turn.id).await? {
                Some(session) => self.store.transcript(session, wanted).await,
                None => Ok(Vec::new()),
            },
            wanted if turn.has_history => self.store.transcript(turn.session, wanted).await,
            _ => Ok(Vec::new()),
        }
    }

    /// What became of the approvals that earlier runs of the turn asked for. What they took back may be asked again.
    async fn approvals(&self, turn: &TurnRecord, run: &Run) -> Result<Vec<AgentApproval>, StoreError> {
        let mut asked = if run.number == 1 { Vec::new() } else { self.give_approvals(turn.id, run).await? };
        asked.retain(|approval| approval.state != ApprovalState::Dropped);
        Ok(asked)
    }

    /// Gives a run the approvals that its agent has in a turn. It is stored before the run is told, so that no other run acts on
    /// them. Returns what became of all that the agent asked for, oldest first.
    pub(super) async fn give_approvals(&self, turn: TurnId, run: &Run) -> Result<Vec<AgentApproval>, StoreError> {
        let Some(agent) = run.handler.agent() else { return Ok(Vec::new()) };
        let mut asked = self.questions.approvals(ApprovalFilter::Of(turn), PAGE).await?;
        asked.retain(|approval| *approval.agent == **agent);
        if asked.iter().any(|approval| approval.state == ApprovalState::Approved && approval.given_to.is_none()) {
            let approvals = vec![ApprovalChange::Given { turn, agent: agent.clone(), run: run.number }];
            self.questions.commit(Transition { approvals, ..Transition::default() }).await?;
            // Another run may have been given them.
            asked = self.questions.approvals(ApprovalFilter::Of(turn), PAGE).await?;
            asked.retain(|approval| *approval.agent == **agent);
        }
        let told = |Approval { request, state, decided_by: by, note, chosen, given_to, .. }| AgentApproval {
            request,
            state,
            by,
            note,
            chosen,
            is_used: given_to.is_some_and(|given_to| given_to != run.number),
        };
        Ok(asked.into_iter().map(told).collect())
    }

    /// How many approvals wait that agents have asked for while they answered the sender of an event.
    pub(super) async fn approvals_for(&self, event: &InboundEvent, known: &KnownPeople) -> Result<u32, StoreError> {
        let mut waiting = 0;
        for Identity { channel, id } in known.all_of(&event.identity()) {
            waiting += self.questions.approvals_for(&channel, &id, MOST_WAITING).await?;
        }
        Ok(waiting)
    }

    /// The latest deferral of the turn by the agent of `run`, if there is one.
    async fn deferred(&self, turn: &TurnRecord, run: &Run) -> Result<Option<Deferred>, StoreError> {
        if run.number == 1 || turn.obligation.agents_deferrals() == 0 {
            return Ok(None);
        }
        // The agent that replaces one that is gone also takes over its deferrals.
        let is_gone = |handler: &Handler| handler.agent().is_none_or(|agent| self.agents.get(agent).is_none());
        let is_ours = |other: &RunRecord| other.handler == run.handler || is_gone(&other.handler);
        let runs = self.store.runs(turn.id).await?;
        let deferral = runs.into_iter().rev().find(|other| other.end.as_deref() == Some(DEFERRAL) && is_ours(other));
        // What an earlier version stored has no time.
        let due = turn.obligation.named_time().unwrap_or(run.started_at);
        Ok(deferral.and_then(|run| Some(Deferred { note: run.detail, at: run.ended_at?, due })))
    }
}

/// Why a question to a person is not asked.
pub(super) const NOBODY_TO_ASK: &str = "there is no person here who can be asked";

/// Whether the person who wrote can be asked something while a run waits: not the caller of a hook, who waits for this answer, nor
/// where everything is sealed.
pub(super) fn may_be_asked(event: &InboundEvent) -> bool {
    let wrote = matches!(event.kind, EventKind::Message | EventKind::Choice { .. });
    let waits_here = event.directed != Directed::Asked && !event.is_on_copy();
    wrote && waits_here && event.sender.kind.is_human() && event.seal_to.is_none()
}

/// The state that the agent is told instead of a line's own. A person who writes this long after an answer that is still on its way
/// has not read it. Before, the rest of one of which a part was seen may be on its way.
pub(super) fn state_by_now(line: &HistoryLine, now: Timestamp) -> Option<LineState> {
    let is_late = now.since(line.at) >= ON_ITS_WAY;
    match line.state {
        LineState::OnItsWay if is_late => Some(LineState::NotDelivered(NOT_YET.to_owned())),
        LineState::Partly if !is_late => Some(LineState::OnItsWay),
        _ => None,
    }
}

/// A line as the sender's program tells it. When it was said is not known: before `now`.
fn as_history(line: &EarlierLine, now: Timestamp) -> HistoryLine {
    let (speaker, author) =
        if line.is_agents { (Speaker::Agent, Some(Author::ourselves())) } else { (Speaker::Person, None) };
    HistoryLine {
        spoken: false,
        speaker,
        author,
        forwarded: None,
        text: line.text.clone(),
        at: now,
        state: LineState::Seen,
    }
}

/// Why a turn cannot be understood: what was said could not be written down, and the agent does not listen to recordings.
fn unheard(event: &InboundEvent, runtime: &dyn AgentRuntime) -> Option<String> {
    let voice = event.voice.filter(|voice| voice.heard == Heard::Failed)?;
    let is_listened_to = event.attachments.get(voice.file).is_some_and(|file| runtime.hears(&file.media_type));
    let why = || voice.why.map_or_else(|| "what was said could not be written down".to_owned(), |why| why.to_string());
    (!is_listened_to).then(why)
}

/// Whether a turn is answered together with `first`: it was merged into it, and was not cancelled by itself.
fn is_merged(turn: &TurnRecord, first: &TurnRecord) -> bool {
    let is_settled = matches!(turn.obligation.state(), ObligationState::Settled(_));
    !is_settled && turn.obligation.merged_into().is_some_and(|into| into == first.id.to_string())
}

/// Puts the parts of an album together: to the agent it is one message.
fn as_albums(
    event: &InboundEvent,
    first: AgentMessage,
    others: &[TurnRecord],
    more: Vec<AgentMessage>,
) -> (AgentMessage, Vec<AgentMessage>) {
    let mut messages = vec![(&event.part_of, first)];
    for (other, message) in others.iter().zip(more) {
        match messages.last_mut() {
            Some((part_of, last)) if part_of.is_some() && **part_of == other.event.part_of => {
                if !last.text.is_empty() && !message.text.is_empty() {
                    last.text.push('\n');
                }
                last.text.push_str(&message.text);
                last.attachments.extend(message.attachments);
            }
            _ => messages.push((&other.event.part_of, message)),
        }
    }
    let mut messages = messages.into_iter().map(|(_, message)| message);
    (messages.next().expect("there is the first"), messages.collect())
}

/// What an adapter says about a channel, or `otherwise` if it panics: that costs the detail and not the run.
fn ask<T>(channel: &dyn ChannelAdapter, question: impl FnOnce() -> T, otherwise: impl FnOnce() -> T) -> T {
    std::panic::catch_unwind(AssertUnwindSafe(question)).unwrap_or_else(|_| {
        warn!(channel = %channel.channel(), "an adapter panicked while it described its channel");
        otherwise()
    })
}
