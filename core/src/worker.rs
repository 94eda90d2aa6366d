//! Runs an agent on a turn, and brings what it gives before the guard.
//!
//! The deadlines are not here: they are rows, and the sweep keeps them for turns that run and turns
//! that wait alike. When one passes, or the person cancels, the run is stopped from outside.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt;
use rejoinder_guard::{Event, Settlement, State};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    Action, AgentError, AgentFile, AgentRuntime, AgentTurn, Attachment, ChannelAdapter, Deferred, EventKind,
    FetchError, Outcome, RunEvent, RunEvents, SendResult, SignalKind, StoreError, Support, Usage,
    conversation::Seat,
    crash::crash_point,
    engine::Core,
    ledger::{Along, Run},
    outbox::hints::{Drafting, Typing},
    seen,
    store::{DeliveryRecord, DeliveryState, RunEnd, RunRecord, TurnRecord},
};

/// How a run ends that puts the answer off.
const DEFERRAL: &str = SignalKind::Deferral.as_str();

/// How long the bytes of one file may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);

/// What ended a run.
enum Ended {
    /// The runtime returned.
    Returned(Result<Outcome, AgentError>),
    /// The runtime panicked.
    Panicked(String),
    /// There was nothing to give to the runtime.
    Unreadable,
    /// A deadline or the person stopped it; what follows from that is stored already.
    Stopped,
    /// The gateway stops; the turn is a row, and is taken up at the next start.
    Left,
}

impl Core {
    /// Works on a turn whose run was decided on, and on what the ladder makes of it, until no run follows.
    pub(crate) async fn work_on(self: &Arc<Self>, mut turn: TurnRecord, mut run: Run, seat: &mut Seat) {
        loop {
            crash_point!("run_started");
            let (ended, usage, typing) = self.run_agent(&mut turn, &run, seat.stop()).await;
            crash_point!("run_ended");
            let run_again = self.bring_in(&mut turn, &run, ended, usage).await;
            // Only now: the answer does not wait for it.
            if let Some(typing) = typing {
                typing.end().await;
            }
            if !run_again {
                return;
            }
            seat.pass_to(turn.id, turn.runs + 1);
            match self.decide_in_the_end(&mut turn, Event::Begin, Along::default()).await {
                Some(decided) => match decided.run {
                    Some(next) => run = next,
                    None => return,
                },
                None => return,
            }
        }
    }

    /// Removes what a turn that has come to its end leaves in the chat: its draft and its deferral, when it was called
    /// off or nothing was said; its draft, when nothing takes its place, as an emoji does not.
    pub(crate) async fn tidy_up(self: &Arc<Self>, turn: &TurnRecord) {
        let obligation = &turn.obligation;
        if matches!(obligation.state(), State::Settled(Settlement::Cancelled { .. } | Settlement::Silence { .. })) {
            for message in obligation.unfinished_messages() {
                self.remove_draft(turn, message.to_owned()).await;
            }
            return;
        }
        let Some(draft) = obligation.draft_message() else { return };
        let Ok(Some(dossier)) = self.store.dossier(turn.id).await else { return };
        if !dossier.deliveries.iter().any(|delivery| takes_the_place_of(draft, delivery)) {
            self.remove_draft(turn, draft.to_owned()).await;
        }
    }

    /// Brings the end of a run before the guard; whether another run follows at once.
    async fn bring_in(self: &Arc<Self>, turn: &mut TurnRecord, run: &Run, ended: Ended, usage: Option<Usage>) -> bool {
        let (end, detail, event) = match ended {
            Ended::Returned(Ok(outcome)) => {
                let channel = self.channel(&turn.event.conversation.channel);
                let outcome = seen::seen(outcome, channel.as_deref());
                let (end, detail) = describe(&outcome);
                (end, detail, Some(Event::Outcome(outcome)))
            }
            Ended::Returned(Err(error)) => {
                warn!(turn = %turn.id, agent = %run.agent, attempt = run.attempt, %error, "a run failed");
                ("failed", Some(error.to_string()), Some(Event::Failed(error.to_string())))
            }
            Ended::Panicked(message) => {
                warn!(turn = %turn.id, agent = %run.agent, message, "a run panicked");
                let why = format!("the agent's runtime panicked: {message}");
                ("failed", Some(why.clone()), Some(Event::Failed(why)))
            }
            Ended::Unreadable => {
                let why = "what was said cannot be read";
                ("unreadable", Some(why.to_owned()), Some(Event::Unreadable(why.to_owned())))
            }
            Ended::Stopped => ("stopped", None, None),
            Ended::Left => ("stopped", Some("the gateway was stopped while it ran".to_owned()), Some(Event::TakenBack)),
        };
        let at = self.clock.now();
        metrics::histogram!("rejoinder_run_seconds", "agent" => run.agent.to_string(), "end" => end)
            .record(at.since(run.started_at).as_secs_f64());
        let run_ended = RunEnd { turn: turn.id, number: run.number, at, end: end.to_owned(), detail, usage };
        let along = Along { run_ended: Some(run_ended), ..Along::default() };
        if let Some(event) = event {
            let is_over = event == Event::TakenBack;
            let decided = self.decide_in_the_end(turn, event, along).await;
            return decided.is_some_and(|decided| decided.run_again && !is_over);
        }
        // What stopped it has decided on the turn, and lined it up if it runs again.
        if let Err(error) = self.decide_all(&mut [], along).await {
            warn!(turn = %turn.id, %error, "how a run ended was not recorded");
        }
        false
    }

    async fn run_agent(
        self: &Arc<Self>,
        turn: &mut TurnRecord,
        run: &Run,
        stop: &CancellationToken,
    ) -> (Ended, Option<Usage>, Option<Typing>) {
        if turn.event.kind == EventKind::Unreadable {
            return (Ended::Unreadable, None, None);
        }
        let Some(runtime) = self.agents.get(&run.agent).cloned() else {
            let why = format!("agent `{}` is not configured any more", run.agent);
            return (Ended::Returned(Err(AgentError::Unreachable(why))), None, None);
        };
        let Some(channel) = self.channel(&turn.event.conversation.channel) else {
            let why = format!("channel `{}` is not configured any more", turn.event.conversation.channel);
            return (Ended::Returned(Err(AgentError::Unreachable(why))), None, None);
        };
        let capabilities = channel.capabilities(&turn.event.conversation);
        let wanted = u32::try_from(runtime.history()).unwrap_or(u32::MAX);
        let history = if wanted > 0 && turn.has_history {
            match self.store.transcript(turn.session, wanted).await {
                Ok(lines) => lines,
                Err(error) => {
                    let why = format!("the transcript cannot be read: {error}");
                    return (Ended::Returned(Err(AgentError::Failed(why))), None, None);
                }
            }
        } else {
            Vec::new()
        };
        let deferred = match self.deferred(turn, run).await {
            Ok(deferred) => deferred,
            Err(error) => {
                let why = format!("what was promised cannot be read: {error}");
                return (Ended::Returned(Err(AgentError::Failed(why))), None, None);
            }
        };
        let policy = self.settings.policies.of(&turn.event.conversation.channel, turn.event.chat);
        let attachments = self.files(&turn.event.attachments, runtime.as_ref(), channel.as_ref()).await;
        let mut drafting = Drafting::new(&capabilities, stop);
        let typing = (capabilities.typing != Support::No).then(|| Typing::start(self, turn, &capabilities, stop));
        let put = AgentTurn {
            turn: turn.id,
            conversation: turn.event.conversation.clone(),
            chat: turn.event.chat,
            session: turn.session,
            attempt: run.attempt,
            deferred,
            sender: turn.event.sender.clone(),
            text: turn.event.text.clone(),
            reaction: match &turn.event.kind {
                EventKind::Reaction { emoji, .. } => Some(emoji.clone()),
                _ => None,
            },
            attachments,
            quoted: turn.event.quoted.clone(),
            history,
            capabilities,
            now: run.started_at,
            deadline: run.started_at + policy.hard_deadline,
        };
        let (events, mut said) = RunEvents::channel();
        let cancel = stop.child_token();
        let _ending = cancel.clone().drop_guard();
        let mut running = tokio::spawn(async move { runtime.run(put, events, cancel).await });
        let mut usage = None;
        let mut open = true;
        let ended = loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break Ended::Stopped,
                () = self.ended.cancelled() => break Ended::Left,
                event = said.recv(), if open => match event {
                    Some(event) => self.take_in(turn, event, &mut drafting, &mut usage, stop).await,
                    None => open = false,
                },
                result = &mut running => break match result {
                    Ok(result) => Ended::Returned(result),
                    Err(error) => Ended::Panicked(panic_message(error)),
                },
            }
        };
        running.abort();
        self.take_in_the_rest(turn, &mut said, &mut drafting, &mut usage, stop).await;
        drafting.end().await;
        (ended, usage, typing)
    }

    /// What the agent of `run` said when it put its answer to the turn off, if it did.
    async fn deferred(&self, turn: &TurnRecord, run: &Run) -> Result<Option<Deferred>, StoreError> {
        if run.number == 1 || turn.obligation.deferrals() == 0 {
            return Ok(None);
        }
        let Some(dossier) = self.store.dossier(turn.id).await? else { return Ok(None) };
        // A promise of an agent that is gone is kept by the one that took its place.
        let is_ours = |other: &RunRecord| other.agent == run.agent || !self.agents.contains_key(&other.agent);
        let deferral =
            dossier.runs.into_iter().rev().find(|other| other.end.as_deref() == Some(DEFERRAL) && is_ours(other));
        Ok(deferral.and_then(|run| Some(Deferred { note: run.detail, at: run.ended_at? })))
    }

    /// The files of a turn, with the bytes of those that the runtime reads and the platform keeps.
    async fn files(
        &self,
        attachments: &[Attachment],
        runtime: &dyn AgentRuntime,
        channel: &dyn ChannelAdapter,
    ) -> Vec<AgentFile> {
        let mut files = Vec::with_capacity(attachments.len());
        for attachment in attachments {
            let mut bytes = None;
            if runtime.reads(&attachment.media_type) {
                let fetching = channel.fetch(attachment, self.settings.max_attachment);
                let fetched = tokio::select! {
                    fetched = fetching => fetched,
                    () = self.clock.sleep(FETCH_TIMEOUT) => Err(FetchError::Failed("it took too long".to_owned())),
                };
                match fetched {
                    Ok(fetched) => bytes = Some(fetched),
                    Err(FetchError::NotOurs(_)) => {}
                    // The words are put before the agent all the same.
                    Err(error) => warn!(name = attachment.name, %error, "a file is only named to the agent"),
                }
            }
            files.push(AgentFile { attachment: attachment.clone(), bytes });
        }
        files
    }

    /// What the runtime said just before it returned.
    async fn take_in_the_rest(
        self: &Arc<Self>,
        turn: &mut TurnRecord,
        said: &mut mpsc::Receiver<RunEvent>,
        drafting: &mut Drafting,
        usage: &mut Option<Usage>,
        stop: &CancellationToken,
    ) {
        said.close();
        while let Some(Some(event)) = said.recv().now_or_never() {
            self.take_in(turn, event, drafting, usage, stop).await;
        }
    }

    async fn take_in(
        self: &Arc<Self>,
        turn: &mut TurnRecord,
        event: RunEvent,
        drafting: &mut Drafting,
        usage: &mut Option<Usage>,
        stop: &CancellationToken,
    ) {
        match event {
            RunEvent::Text(delta) => drafting.add(self, turn, &delta),
            RunEvent::Rewrite(text) => drafting.rewrite(self, turn, &text),
            RunEvent::Tool(name) => info!(turn = %turn.id, tool = name, "the agent uses a tool"),
            RunEvent::Usage(consumed) => *usage = Some(consumed),
            RunEvent::Send(reply, answer) => {
                // No draft may come after what is perhaps the answer.
                drafting.pause().await;
                let channel = self.channel(&turn.event.conversation.channel);
                let reply = seen::seen_reply(reply, channel.as_deref());
                let claimed = self
                    .decide_in_the_end(turn, Event::Sent(reply), Along::default())
                    .await
                    .is_some_and(|decided| decided.claimed);
                if turn.obligation.may_draft() {
                    drafting.resume(stop);
                }
                // A runtime that does not wait for the answer does not want it.
                let _ = answer.send(if claimed { SendResult::Claimed } else { SendResult::Suppressed });
            }
        }
    }
}

/// Whether a delivery changes or removes the message of a draft, or has done so.
fn takes_the_place_of(draft: &str, delivery: &DeliveryRecord) -> bool {
    let is_alive = matches!(delivery.state, DeliveryState::Pending | DeliveryState::Sending | DeliveryState::Delivered);
    let (Action::Edit { message, .. } | Action::Delete { message }) = &delivery.action else { return false };
    is_alive && message == draft
}

/// The outcome in the words of records: its kind, and what the operator may want to know.
fn describe(outcome: &Outcome) -> (&'static str, Option<String>) {
    match outcome {
        Outcome::Reply(reply) if reply.text.trim().is_empty() && reply.attachments.is_empty() => {
            ("silent", Some("empty".to_owned()))
        }
        Outcome::Reply(_) => (SignalKind::Reply.as_str(), None),
        Outcome::React(_) => (SignalKind::Reaction.as_str(), None),
        Outcome::Defer { note, .. } => (DEFERRAL, note.clone()),
        Outcome::Silent(reason) => ("silent", Some(reason.clone())),
    }
}

fn panic_message(error: tokio::task::JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned()),
        Err(error) => error.to_string(),
    }
}
