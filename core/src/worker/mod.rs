//! Runs one agent on one turn: prepares its input, handles its events, and passes its end to the guard. It has no timer
//! and decides no order.
//!
//! Deadlines are not handled here: they are rows, and the sweep keeps them for turns that run and turns
//! that wait alike. When one passes, or the person cancels, the run is stopped through its slot.

pub(crate) mod agents;
pub(crate) mod budgets;
mod estimate;
pub(crate) mod files;
mod grace;
mod handoff;
pub(crate) mod holder;
pub(crate) mod input;
mod last_answer;
pub(crate) mod memory;
mod question;
mod reads;
mod record;
mod result;
pub(crate) mod runtimes;
mod schedules;
mod sealing;
pub(crate) mod search;
mod suspension;

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::FutureExt;
use rejoinder_guard::{ApprovalRequest, Event, Outcome, Reply, SignalKind, Timestamp};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

pub(crate) use self::grace::GRACE;
use self::{
    agents::{Agents, Running},
    budgets::{Bill, Budgets, Rest, left_out},
    estimate::Estimate,
    input::{Inputs, NOBODY_TO_ASK, PreparedRun, may_be_asked},
    memory::{Memory, remember},
    question::{Left, Wait},
    reads::Reads,
    record::{Recorder, Share},
    result::RunResult,
    search::Searches,
};
use crate::{
    base::{channels::Channels, crash::crash_point, lifecycle::Lifecycle},
    events::Run,
    handles::slots::run::RunTokens,
    ledger::{
        Ledger,
        trigger::{DecidedAtOnce, Trigger},
    },
    merges::{self, Merges},
    model::{
        Activity, AgentMessage, AgentName, Capabilities, ChatKind, Cost, EventKind, LiveSettings, RunContent,
        SessionChange, Support, Texts, TurnId, TurnRecord, Usage, drop_references,
    },
    outbox::ephemerals::{drafts::Drafting, show::Ephemerals, typing::Typing},
    people::quiet_hours::quiet_until,
    ports::{AgentError, RunEnd, RunEvent, RunEvents, SendResult, SharedClock, StoreError},
    questions::{
        approvals::MOST_WAITING,
        request::{as_stored, whole},
    },
    schedules::Calendar,
    shown::{markdown::embedded::EmbeddedFiles, visibility},
};

/// How many characters are kept of the note of a deferral.
const MOST_NOTE: usize = 4000;

/// After how long it is asked again before a run begins whether it is still to. By then other nodes may count this one as lost.
const DOUBTED_AFTER: Duration = Duration::from_secs(5);

/// Runs agents on turns and passes their outcomes to the guard.
pub(crate) struct Worker {
    pub(crate) agents: Arc<Agents>,
    pub(crate) inputs: Inputs,
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) ephemerals: Arc<Ephemerals>,
    pub(crate) merges: Arc<Merges>,
    pub(crate) calendar: Arc<Calendar>,
    pub(crate) searches: Searches,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
    pub(crate) lifecycle: Lifecycle,
}

struct FinishedRun {
    result: RunResult,
    usage: Option<Usage>,
    /// What each member consumed.
    shares: Vec<Share>,
    /// The members that were not asked, because they have used their budgets.
    spent: Vec<AgentName>,
    content: Option<Arc<RunContent>>,
    /// What the session is about, if the agent says so.
    title: Option<SessionChange>,
    typing: Option<Typing>,
    /// What it asked approval for, if it left that behind.
    left: Option<ApprovalRequest>,
    /// When the run had to end; `None` if it did not begin.
    deadline: Option<Timestamp>,
    /// How long it waited for approvals.
    waited: Duration,
    /// Tells the runtime whether its outcome counts, once that is stored.
    awaits_end: Option<oneshot::Sender<bool>>,
}

impl From<RunResult> for FinishedRun {
    fn from(result: RunResult) -> Self {
        let (shares, spent, waited) = (Vec::new(), Vec::new(), Duration::ZERO);
        let (usage, content, title, typing, awaits_end) = (None, None, None, None, None);
        let (left, deadline) = (None, None);
        Self { result, usage, shares, spent, content, title, typing, left, deadline, waited, awaits_end }
    }
}

impl Worker {
    /// Runs the agent of `run` on `turn`, until it ends or is stopped. If the guard wants another run, the turn waits for it
    /// like any other. `agent_ended` is called before the end is stored, unless it counts for a budget.
    pub(crate) async fn run(
        &self,
        mut turn: TurnRecord,
        run: Run,
        tokens: &RunTokens,
        agent_ended: impl FnOnce() + Send,
    ) {
        crash_point!("run_started");
        let mut finished = self.run_agent(&mut turn, &run, tokens).await;
        crash_point!("run_ended");
        let typing = finished.typing.take();
        if self.budgets.counts(&run, &finished.shares) {
            // What it used is stored before another run begins in its place: no more of them go over a budget than run at once.
            self.finish(&mut turn, &run, finished).await;
            agent_ended();
        } else {
            agent_ended();
            self.finish(&mut turn, &run, finished).await;
        }
        // Last, so that the answer does not wait for it.
        end_typing(typing).await;
    }

    /// Passes the end of a run to the guard, and tells the runtime when it is stored.
    async fn finish(&self, turn: &mut TurnRecord, run: &Run, mut finished: FinishedRun) {
        let (awaits_end, counts) = (finished.awaits_end.take(), matches!(finished.result, RunResult::Returned(Ok(_))));
        let is_left = matches!(finished.result, RunResult::GatewayStopped);
        let is_stored = self.store_end(turn, run, finished).await;
        if let Some(awaits_end) = awaits_end
            && !is_left
            && (is_stored || !self.lifecycle.ended.is_cancelled())
        {
            // The runtime may not wait for it any more.
            let _ = awaits_end.send(counts && is_stored);
        }
    }

    /// Returns whether it is stored.
    async fn store_end(&self, turn: &mut TurnRecord, run: &Run, finished: FinishedRun) -> bool {
        let FinishedRun { result, usage, shares, spent, content, title, left, deadline, waited, .. } = finished;
        let is_late = deadline.is_some_and(|deadline| self.clock.now() >= deadline);
        self.note_agent(run, &result, is_late);
        let (mut at_once, mut whole) = (None, None);
        let leaves = match &result {
            // No worker has had it: nobody has acted on what was approved.
            RunResult::Withdrawn => true,
            RunResult::GatewayStopped => false,
            _ => left.is_some(),
        };
        let (end, detail, event) = match result {
            RunResult::Returned(Ok(mut outcome)) => {
                if let Outcome::Reply(reply) = &mut outcome {
                    take_embedded(turn.id, reply);
                }
                let channel = self.channels.get(&turn.event.conversation.channel);
                let outcome = visibility::visible_outcome(outcome, channel.map(AsRef::as_ref));
                let (outcome, all) = bounded(outcome);
                whole = all;
                let (end, detail) = describe(&outcome);
                if left.is_none() {
                    at_once = self.decided_at_once(&outcome, turn, run).await;
                }
                let event = match outcome {
                    Outcome::Approval(request) if left.is_some() => match left.filter(|left| *left == request) {
                        Some(_) => Event::LeftSuspended,
                        None => Event::Failed("it asked for an approval while it waited for another one".to_owned()),
                    },
                    Outcome::Approval(request) if request.choices.is_some() && !may_be_asked(&turn.event) => {
                        Event::Failed(NOBODY_TO_ASK.to_owned())
                    }
                    Outcome::Approval(request) if at_once.is_some() => Event::DecidedByRule(request),
                    outcome => Event::Outcome(outcome),
                };
                (end, detail, Some(event))
            }
            RunResult::Returned(Err(error)) => {
                let summary = error.summary();
                warn!(turn = %turn.id, agent = %run.handler, attempt = run.attempt, error = summary, "a run failed");
                let why = error.to_string();
                let event = match error {
                    AgentError::Unreachable(_) => Event::Unreachable(why.clone()),
                    _ => Event::Failed(why.clone()),
                };
                ("failed", Some(why), Some(event))
            }
            RunResult::Panicked(message) => {
                warn!(turn = %turn.id, agent = %run.handler, message, "a run panicked");
                let why = format!("the agent's runtime panicked: {message}");
                ("failed", Some(why.clone()), Some(Event::Failed(why)))
            }
            RunResult::Unreadable => {
                let why = "the message cannot be read";
                ("unreadable", Some(why.to_owned()), Some(Event::Unreadable(why.to_owned())))
            }
            RunResult::Unheard(why) => ("unheard", Some(why.clone()), Some(Event::Unheard(why))),
            RunResult::Unread(why) => {
                warn!(turn = %turn.id, agent = %run.handler, error = why, "a run cannot begin");
                ("failed", Some(why.clone()), Some(Event::Failed(why)))
            }
            RunResult::Spent(why) => ("budget", Some(format!("it did not begin: {why}")), Some(Event::OverBudget(why))),
            RunResult::SpentMeanwhile(why) => {
                ("budget", Some(format!("it did not go on: {why}")), Some(Event::OverBudget(why)))
            }
            RunResult::Stopped => (handoff::STOPPED, None, None),
            RunResult::Withdrawn => {
                info!(turn = %turn.id, agent = %run.handler, "a run is left to another node, which has a worker");
                ("interrupted", Some(holder::WITHDRAWN.to_owned()), Some(Event::Interrupted))
            }
            RunResult::GatewayStopped => {
                (handoff::STOPPED, Some(holder::GATEWAY_STOPPED.to_owned()), Some(Event::Interrupted))
            }
        };
        let at = self.clock.now();
        metrics::histogram!("rejoinder_run_seconds", "agent" => run.handler.to_string(), "end" => end)
            .record(at.since(run.started_at).saturating_sub(waited).as_secs_f64());
        let Bill { cost, is_foreign, used, agents } = self.budgets.bill(run, &shares);
        count(run, end, usage, cost.filter(|_| !is_foreign));
        let member = shares.into_iter().next_back().and_then(|share| share.member);
        let (number, end) = (run.number, end.to_owned());
        let run_end = RunEnd { turn: turn.id, number, at, end, detail, usage, cost, used, agents, member, content };
        let remark = (!spent.is_empty()).then(|| left_out(turn.id, &spent, at));
        let trigger = Trigger::RunEnded { end: run_end, remark, at_once, whole, leaves, title };
        if let Some(event) = event {
            return self.ledger.decide_until_stored(turn, event, trigger).await.is_some();
        }
        // The guard decided on the turn when the run was stopped.
        self.ledger.record_until_stored(turn.id, trigger).await;
        true
    }

    /// Notes whether the agent of a run answers.
    fn note_agent(&self, run: &Run, result: &RunResult, is_late: bool) {
        let Some(agent) = run.handler.agent() else { return };
        let late = || Err("the agent gave no answer in time".to_owned());
        match result {
            RunResult::Returned(Ok(_)) | RunResult::Stopped if is_late => self.agents.note(agent, late()),
            RunResult::Returned(Ok(_)) => self.agents.note(agent, Ok(())),
            RunResult::Returned(Err(error)) => self.agents.note(agent, Err(error.summary())),
            RunResult::Panicked(_) => self.agents.note(agent, Err("the agent's runtime panicked".to_owned())),
            RunResult::Unreadable
            | RunResult::Unheard(_)
            | RunResult::Unread(_)
            | RunResult::Spent(_)
            | RunResult::SpentMeanwhile(_)
            | RunResult::Stopped
            | RunResult::Withdrawn
            | RunResult::GatewayStopped => {}
        }
    }

    /// What decides at once what a run asks approval for.
    async fn decided_at_once(&self, outcome: &Outcome, turn: &TurnRecord, run: &Run) -> Option<DecidedAtOnce> {
        let (Outcome::Approval(request @ ApprovalRequest { choices: None, .. }), Some(agent)) =
            (outcome, run.handler.agent())
        else {
            return None;
        };
        let known = self.inputs.people.known();
        // The messages of others that it answers as well may be what the agent asks for.
        let is_for_one = turn.event.chat != ChatKind::Group || turn.obligation.merged_turns().is_empty();
        if is_for_one
            && let Some((number, approves)) = self.settings.get().approvals.decide(request, agent, &turn.event, &known)
        {
            return Some(DecidedAtOnce::Rule { number, approves });
        }
        let (never, count) = (CancellationToken::new(), || self.inputs.approvals_for(&turn.event, &known));
        let waiting = match self.reads(turn, &never).get("what waits for approval", count).await {
            Ok(waiting) => waiting,
            Err(RunResult::Unread(why)) => {
                warn!(turn = %turn.id, why, "the approval is asked for, however many wait");
                return None;
            }
            Err(_) => return None,
        };
        (waiting >= MOST_WAITING).then_some(DecidedAtOnce::TooMany(MOST_WAITING))
    }

    /// Counts the run of an agent until what is returned is dropped.
    fn working(&self, run: &Run) -> Option<Running<'_>> {
        run.handler.agent().map(|agent| self.agents.begin(agent))
    }

    fn typing(&self, turn: &TurnRecord, capabilities: &Capabilities, show: &CancellationToken) -> Option<Typing> {
        (capabilities.typing != Support::No && !show.is_cancelled())
            .then(|| Typing::start(&self.ephemerals, turn, capabilities, show, true))
    }

    /// Whether nobody is to notice a turn unless its agent says something, or before somebody's quiet hours end.
    fn is_quiet(&self, turn: &TurnRecord) -> bool {
        let is_told_to_be = matches!(turn.event.kind, EventKind::Prompt { quiet: true, .. });
        let (people, settings) = (&self.inputs.people, self.settings.read());
        is_told_to_be || quiet_until(&turn.event, people, &settings, self.clock.now()).is_some()
    }

    /// What the run of `turn` reads, until `stop`.
    fn reads<'a>(&'a self, turn: &TurnRecord, stop: &'a CancellationToken) -> Reads<'a> {
        let (lifecycle, clock, deadline) = (&self.lifecycle, &self.clock, turn.obligation.hard_deadline());
        Reads { lifecycle, clock, turn: turn.id, stop, deadline }
    }

    /// What a run is given, or why it does not begin.
    async fn prepare(&self, turn: &TurnRecord, run: &Run, stop: &CancellationToken) -> Result<PreparedRun, RunResult> {
        let (reads, began) = (self.reads(turn, stop), self.clock.boottime());
        let rest = || self.budgets.rest(run, &self.inputs.agents);
        let (left, spent) = match reads.get("what the agent has used of the day", rest).await? {
            Rest::Some { left, spent } => (left, spent),
            Rest::Nothing(why) => return Err(RunResult::Spent(why)),
        };
        let mut prepared = self.inputs.prepare(turn, run, reads).await?;
        let has_waited = self.clock.boottime().saturating_sub(began) >= DOUBTED_AFTER;
        if has_waited && !reads.get("the turn", || self.is_current(turn, run)).await? {
            return Err(RunResult::Stopped);
        }
        let rights = &mut prepared.input.rights;
        (rights.budget, rights.spent) = (left, spent);
        Ok(prepared)
    }

    /// Whether a run is still the one of its turn. Another node may have recovered it, or ended the turn.
    async fn is_current(&self, turn: &TurnRecord, run: &Run) -> Result<bool, StoreError> {
        let turn = self.ledger.turn(turn.id).await?;
        Ok(turn.runs == run.number && turn.obligation.is_running())
    }

    fn drafting(&self, run: &Run, capabilities: &Capabilities, show: &CancellationToken) -> Drafting {
        let settings = self.settings.read();
        let shows_activity = run.handler.agent().is_some_and(|agent| settings.shown_activities.contains(agent));
        Drafting::new(&self.ephemerals, capabilities, show, shows_activity)
    }

    async fn run_agent(&self, turn: &mut TurnRecord, run: &Run, tokens: &RunTokens) -> FinishedRun {
        let RunTokens { stop, go_on, withdraw, show } = tokens;
        let PreparedRun { runtime, input, memory, was_withdrawn } = match self.prepare(turn, run, stop).await {
            Ok(_) if stop.is_cancelled() => return RunResult::Stopped.into(),
            Ok(prepared) => prepared,
            Err(result) => return result.into(),
        };
        let (spent, session) = (input.rights.spent.clone(), input.place.session);
        let (mut working, mut deadline) = (self.working(run), Some(input.deadline));
        let capabilities =
            if self.is_quiet(turn) { silent(&input.place.capabilities) } else { input.place.capabilities.clone() };
        let mut drafting = self.drafting(run, &capabilities, show);
        let mut typing = self.typing(turn, &capabilities, show);
        let estimate = Estimate::new(&input);
        let (events, mut reported) = RunEvents::channel();
        let mut wait = Wait::new(events.told());
        let cancel = stop.child_token();
        let _cancel_on_drop = cancel.clone().drop_guard();
        let mut running = {
            let (runtime, cancel, is_sealed) = (runtime.clone(), cancel.clone(), input.person.seal_to.is_some());
            tokio::spawn(async move { sealing::checked(runtime.run(input, events, cancel).await, is_sealed) })
        };
        let settings = self.settings.get();
        let mut recorder = Recorder::new(&settings.masker, estimate);
        let (mut open, mut is_shown, mut is_out) = (true, true, false);
        // Once and not for each event: all runs share the list of who waits for the end.
        let mut stopped = pin!(stop.cancelled());
        let mut gateway_ended = pin!(self.lifecycle.ended.cancelled());
        let result = loop {
            tokio::select! {
                biased;
                () = &mut stopped => break RunResult::Stopped,
                () = &mut gateway_ended => break ended(&mut running),
                () = show.cancelled(), if is_shown => {
                    is_shown = false;
                    drafting.pause().await;
                }
                why = self.until_left(&mut wait.question), if wait.is_on() => match why {
                    Left::GivenUp(request) => break RunResult::Returned(Ok(Outcome::Approval(request))),
                    Left::TakenBack => self.take_back(turn, run, wait.question.as_ref()).await,
                },
                // It would wait for longer than the gateway waits for runs, and who does it is not heard any more.
                () = self.lifecycle.stopping.cancelled(), if wait.is_on() || is_out => break ended(&mut running),
                () = go_on.notified(), if wait.is_on() => {
                    if let Err(spent) = self.go_on(turn, run, &mut wait, stop).await {
                        break RunResult::SpentMeanwhile(spent);
                    }
                    deadline = turn.obligation.hard_deadline().or(deadline);
                    working = self.working(run);
                    typing = self.typing(turn, &capabilities, show);
                    resume(&mut drafting, turn, show);
                }
                event = reported.recv(), if open => match event {
                    Some(RunEvent::Ask(.., answer)) if wait.is_on() => {
                        let _ = answer.send(Err("it waits for another approval already".to_owned()));
                    }
                    Some(RunEvent::Ask(request, taken_back, answer)) => {
                        // No draft may follow what the person is told.
                        drafting.pause().await;
                        (wait.question, wait.decided) = (self.ask(turn, run, request, taken_back, answer).await, None);
                        if wait.is_on() {
                            working = None;
                            end_typing(typing.take()).await;
                        } else {
                            resume(&mut drafting, turn, show);
                        }
                    }
                    Some(event) => {
                        is_out = is_handed_out(&event).unwrap_or(is_out);
                        self.handle_event(turn, event, &mut drafting, &mut recorder, show, run, memory.as_ref()).await;
                    }
                    None => open = false,
                },
                // Not twice in a row: the deadline begins anew each time, and workers that ask seldom, now here and now there, would never
                // get the turn. Nor once a member has failed: it would be asked anew. Its event comes before the next member is asked.
                () = withdraw.notified(), if !was_withdrawn && !recorder.has_asked_several() =>
                    if runtime.withdraw(turn.id, run.attempt) {
                        break RunResult::Withdrawn;
                    },
                result = &mut running => break returned(result),
            }
        };
        if matches!(result, RunResult::Stopped) {
            tokio::join!(
                drafting.pause(),
                self.await_grace_period(&mut running, &mut reported, &mut recorder, memory.as_ref())
            );
        }
        running.abort();
        drop(working);
        reported.close();
        // Events that the runtime reported just before it returned.
        while let Some(Some(event)) = reported.recv().now_or_never() {
            is_out = is_handed_out(&event).unwrap_or(is_out);
            self.handle_event(turn, event, &mut drafting, &mut recorder, show, run, memory.as_ref()).await;
        }
        drafting.end().await;
        let deadline = deadline.filter(|_| !wait.is_on());
        let (waited, left) = (wait.waited + self.waits(wait.question.as_ref()), wait.left());
        let title = recorder.title.take().filter(|_| turn.event.seal_to.is_none());
        let (title, awaits_end) =
            (title.map(|title| SessionChange::Title { session, title }), recorder.awaits_end.take());
        // Somebody may go on with it, and reports all of it again.
        let is_left = is_out && matches!(result, RunResult::GatewayStopped);
        let ((usage, shares), content) = (recorder.used(&result, is_left), recorder.content());
        FinishedRun { result, usage, shares, spent, content, title, typing, left, deadline, waited, awaits_end }
    }

    /// Waits up to [`GRACE`] for a cancelled run to return. Of its events only what is recorded counts.
    async fn await_grace_period(
        &self,
        running: &mut JoinHandle<Result<Outcome, AgentError>>,
        reported: &mut mpsc::Receiver<RunEvent>,
        recorder: &mut Recorder<'_>,
        memory: Option<&Memory>,
    ) {
        let late = async {
            loop {
                match reported.recv().await {
                    Some(RunEvent::Usage(consumed)) => recorder.usage = Some(consumed),
                    Some(RunEvent::Cost(cost, unpriced)) => recorder.costs(cost, unpriced),
                    Some(RunEvent::Member(report)) => self.agents.note_member(recorder.asks(report)),
                    Some(RunEvent::Tool(call)) => recorder.tool(call),
                    Some(RunEvent::Shown(input)) => recorder.shown(input),
                    Some(RunEvent::Title(title)) => recorder.titles(&title),
                    Some(RunEvent::Remember(own_session, answer)) => {
                        let _ = answer.send(remember(memory, own_session).await);
                    }
                    Some(RunEvent::Ends(answer)) => recorder.awaits_end = Some(answer),
                    Some(
                        RunEvent::Text(_)
                        | RunEvent::Rewrite(_)
                        | RunEvent::Activity(_)
                        | RunEvent::Thought(_)
                        | RunEvent::Send(..)
                        | RunEvent::Listen(_)
                        | RunEvent::Ask(..)
                        | RunEvent::Schedule(..)
                        | RunEvent::Search(..)
                        | RunEvent::HandOut(..),
                    ) => {}
                    None => std::future::pending().await,
                }
            }
        };
        tokio::select! {
            // Its result is ignored.
            _ = running => {}
            () = late => {}
            _ = self.lifecycle.pause(GRACE) => {}
        }
    }

    /// Merges the turns that wait for this into the one that runs, and returns their messages. None if that cannot be stored
    /// now: they wait on.
    async fn take_in(&self, turn: &mut TurnRecord, run: &Run, show: &CancellationToken) -> Vec<AgentMessage> {
        let taken = async {
            loop {
                let others = self.merges.during_run(turn).await?;
                if others.is_empty() || !turn.obligation.may_absorb() {
                    return Ok(Vec::new());
                }
                let mut inputs = merges::events(turn.clone(), others, None);
                if self.ledger.try_to_decide(&mut inputs, &Trigger::Event).await?.is_some() {
                    *turn = inputs.remove(0).turn;
                    return Ok::<_, StoreError>(inputs.into_iter().map(|input| input.turn).collect());
                }
                // Its deferral or its draft was stored meanwhile.
                *turn = self.ledger.turn(turn.id).await?;
            }
        };
        match taken.await {
            Ok(taken) => self.inputs.messages(&taken, run, self.reads(turn, show)).await,
            Err(error) => {
                warn!(turn = %turn.id, %error, "cannot take in messages that came during a run");
                Vec::new()
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a run, which have different owners")]
    async fn handle_event(
        &self,
        turn: &mut TurnRecord,
        event: RunEvent,
        drafting: &mut Drafting,
        recorder: &mut Recorder<'_>,
        show: &CancellationToken,
        run: &Run,
        memory: Option<&Memory>,
    ) {
        match event {
            // It would show or send in the clear what is to be sealed.
            RunEvent::Text(_) | RunEvent::Rewrite(_) if turn.event.seal_to.is_some() => {}
            RunEvent::Send(_, answer) if turn.event.seal_to.is_some() => {
                let _ = answer.send(SendResult::Suppressed);
            }
            RunEvent::Text(delta) => {
                recorder.estimate.streams(&delta);
                drafting.add(turn, &delta);
            }
            RunEvent::Rewrite(text) => drafting.rewrite(turn, &text),
            RunEvent::Member(report) => {
                drafting.end_activities(turn);
                self.agents.note_member(recorder.asks(report));
            }
            RunEvent::Activity(Activity { title, state })
                if drafting.shows_activity() && turn.event.seal_to.is_none() =>
            {
                let title = recorder.masked(title);
                drafting.activity(turn, &Activity { title, state });
            }
            RunEvent::Thought(more) if drafting.shows_thoughts() && turn.event.seal_to.is_none() => {
                let more = recorder.masked(more);
                drafting.thought(turn, &more);
            }
            RunEvent::Tool(call) => {
                info!(turn = %turn.id, tool = call.name, "the agent used a tool");
                recorder.tool(call);
            }
            RunEvent::Shown(input) => recorder.shown(input),
            RunEvent::Usage(consumed) => recorder.usage = Some(consumed),
            RunEvent::Cost(cost, unpriced) => recorder.costs(cost, unpriced),
            RunEvent::Title(title) => recorder.titles(&title),
            RunEvent::Send(mut reply, answer) => {
                // No draft may follow a message that may be the answer.
                drafting.pause().await;
                let channel = self.channels.get(&turn.event.conversation.channel);
                take_embedded(turn.id, &mut reply);
                let mut reply = visibility::visible_reply(reply, channel.map(AsRef::as_ref));
                drop_references(&mut reply.attachments);
                recorder.estimate.sends(&reply.text);
                let decided = self.ledger.decide_until_stored(turn, Event::Sent(reply), Trigger::Event).await;
                resume(drafting, turn, show);
                let is_claimed = decided.is_some_and(|decided| decided.claimed);
                // Fails if the runtime no longer waits for the result.
                let _ = answer.send(if is_claimed { SendResult::Claimed } else { SendResult::Suppressed });
            }
            RunEvent::Schedule(call, answer) => {
                let done = self.schedule(turn, run, call).await;
                let _ = answer.send(done);
            }
            RunEvent::Search(query, answer) => self.searches.begin(turn, query, answer),
            RunEvent::Remember(own_session, answer) => {
                let _ = answer.send(remember(memory, own_session).await);
            }
            RunEvent::HandOut(holder, answer) => {
                let _ = answer.send(self.inputs.hand_out(turn.id, run, holder).await);
            }
            // The activity is not shown, or the run has ended: what it asks for is its outcome.
            RunEvent::Activity(_) | RunEvent::Thought(_) | RunEvent::Ask(..) => {}
            RunEvent::Listen(answer) => {
                let messages = self.take_in(turn, run, show).await;
                recorder.estimate.hears(&messages);
                let _ = answer.send(messages);
            }
            RunEvent::Ends(answer) => recorder.awaits_end = Some(answer),
        }
    }
}

/// Shows drafts again, unless the turn may have its answer or nothing of its run is shown any more.
fn resume(drafting: &mut Drafting, turn: &TurnRecord, show: &CancellationToken) {
    if turn.obligation.may_draft() && !show.is_cancelled() {
        drafting.resume(show);
    }
}

/// Takes the files out of a text that embeds them.
fn take_embedded(turn: TurnId, reply: &mut Reply) {
    for (_, why) in EmbeddedFiles::take_from(reply) {
        warn!(%turn, why, "a file that an answer embeds is left out");
    }
}

/// What shows nothing of a run while it is in flight.
fn silent(capabilities: &Capabilities) -> Capabilities {
    Capabilities { drafts: Support::No, typing: Support::No, ..capabilities.clone() }
}

fn count(run: &Run, end: &'static str, usage: Option<Usage>, cost: Option<Cost>) {
    let agent = || run.handler.to_string();
    metrics::counter!("rejoinder_runs_total", "agent" => agent(), "result" => end).increment(1);
    if let Some(Usage { input_tokens, output_tokens }) = usage {
        for (direction, tokens) in [("input", input_tokens), ("output", output_tokens)] {
            metrics::counter!("rejoinder_agent_tokens_total", "agent" => agent(), "direction" => direction)
                .increment(tokens);
        }
    }
    if let Some(cost) = cost {
        // A counter of the recorder has no fractions.
        metrics::gauge!("rejoinder_agent_cost_total", "agent" => agent()).increment(cost.amount());
    }
}

/// An outcome whose request for an approval is short enough to be decided in a chat, whose note is one, and whose files are the
/// agent's. With it: the whole of the request, if there is more of it.
fn bounded(outcome: Outcome) -> (Outcome, Option<ApprovalRequest>) {
    let short = |text: &str, most| text.trim().chars().take(most).collect::<String>();
    let outcome = match outcome {
        Outcome::Approval(request) => return (Outcome::Approval(as_stored(&request)), whole(&request)),
        Outcome::Defer { note, due } => Outcome::Defer { note: note.map(|note| short(&note, MOST_NOTE)), due },
        Outcome::Reply(mut reply) => {
            drop_references(&mut reply.attachments);
            Outcome::Reply(reply)
        }
        outcome => outcome,
    };
    (outcome, None)
}

/// The `end` and the `detail` of an outcome, as a run's record holds them.
fn describe(outcome: &Outcome) -> (&'static str, Option<String>) {
    match outcome {
        Outcome::Reply(reply) if reply.text.trim().is_empty() && reply.attachments.is_empty() => {
            ("silent", Some(handoff::EMPTY.to_owned()))
        }
        Outcome::Reply(_) => (SignalKind::Reply.as_str(), None),
        Outcome::React(_) => (SignalKind::Reaction.as_str(), None),
        Outcome::Defer { note, .. } => (input::DEFERRAL, note.clone()),
        Outcome::Approval(request) if request.choices.is_some() => ("question", Some(request.action.clone())),
        Outcome::Approval(request) => ("approval", Some(request.action.clone())),
        Outcome::Silent(reason) => ("silent", Some(reason.clone())),
    }
}

async fn end_typing(typing: Option<Typing>) {
    if let Some(typing) = typing {
        typing.end().await;
    }
}

/// Whether somebody outside of the process does the run from now on, if an event says so.
fn is_handed_out(event: &RunEvent) -> Option<bool> {
    match event {
        RunEvent::HandOut(holder, _) => Some(!holder.is_empty()),
        _ => None,
    }
}

/// The end of a run when the process ends. What it has returned is not thrown away.
fn ended(running: &mut JoinHandle<Result<Outcome, AgentError>>) -> RunResult {
    running.now_or_never().map_or(RunResult::GatewayStopped, returned)
}

fn returned(result: Result<Result<Outcome, AgentError>, tokio::task::JoinError>) -> RunResult {
    match result {
        Ok(result) => RunResult::Returned(result.without_nul()),
        Err(error) => RunResult::Panicked(panic_message(error).without_nul()),
    }
}

fn panic_message(error: tokio::task::JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
        }
        Err(error) => error.to_string(),
    }
}
