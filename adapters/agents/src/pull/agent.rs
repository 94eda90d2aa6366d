//! The runtime: a run waits for workers, and hears what they say.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::FutureExt;
use rejoinder_core::{
    AgentError, AgentName, AgentRuntime, AgentTurn, ChannelId, HandedOut, Outcome, Refusals, RunEvents, SessionNotice,
    TurnId,
};
use rejoinder_kit::{Guesses, Peer, Tokens};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    command::{Answered, Command, Done, Refused, Stored},
    desk::{Change, Desk, Entry},
    kept,
    lease::{Lease, logged},
    leases::Worker,
    notices::Notices,
    purpose::Purpose,
    room::ROOM,
    section::{PullSection, WorkerSection},
};
use crate::wire::{CheckedObject, MAX_FILE, Said, WireTurn};

/// How many requests of an agent's workers may read the store at once: it has few connections, and turns need them.
const ASKING: usize = 1;

/// What a [`Pull`] is built from.
pub struct PullSettings {
    pub name: AgentName,
    pub section: PullSection,
    /// The section's token, already generated if the section says so.
    pub token: Option<Tokens>,
    /// Those of the section's workers, by name.
    pub workers: Vec<(String, Tokens)>,
    /// Slows down who guesses a token.
    pub guesses: Arc<Guesses>,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// Cancelled when the gateway stops: workers that wait then get no turn.
    pub stop_waiting: CancellationToken,
    /// Where outcomes are noted that are not used.
    pub refusals: Arc<Refusals>,
    /// Says whether another node may have a turn whose lease a worker sends here; `None` if there can be no other nodes.
    pub handed_out: Option<Arc<dyn HandedOut>>,
}

/// An agent whose workers fetch its turns.
pub struct Pull {
    pub(super) name: AgentName,
    pub(super) section: PullSection,
    pub(super) token: Option<Tokens>,
    pub(super) workers: Vec<(Arc<str>, Tokens)>,
    pub(super) guesses: Arc<Guesses>,
    pub(super) body_timeout: Duration,
    pub(super) stop_waiting: CancellationToken,
    pub(super) refusals: Arc<Refusals>,
    pub(super) handed_out: Option<Arc<dyn HandedOut>>,
    /// Bounds the reads of `handed_out`.
    pub(super) asking: Semaphore,
    pub(super) desk: Arc<Desk>,
    pub(super) notices: Notices,
    /// For large bodies, in KiB.
    pub(super) room: Semaphore,
}

/// A worker that has sent a request.
#[derive(Clone)]
pub(super) struct Caller<'a> {
    pub(super) worker: Worker,
    pub(super) section: Option<&'a WorkerSection>,
}

impl Caller<'_> {
    pub(super) fn takes(&self, channel: &ChannelId) -> bool {
        self.section.is_none_or(|section| section.takes(channel))
    }
}

/// How a worker ended a run: what was said has the outcome, or there is none.
type End = Result<(), AgentError>;

impl Pull {
    pub fn new(settings: PullSettings) -> Self {
        let PullSettings { name, section, token, workers, guesses, body_timeout, stop_waiting, refusals, handed_out } =
            settings;
        Self {
            desk: Arc::new(Desk::new(&section, handed_out.is_some())),
            name,
            section,
            token,
            workers: workers.into_iter().map(|(worker, tokens)| (worker.into(), tokens)).collect(),
            guesses,
            body_timeout,
            stop_waiting,
            refusals,
            handed_out,
            asking: Semaphore::new(ASKING),
            notices: Notices::default(),
            room: Semaphore::new(ROOM),
        }
    }

    /// The worker whose token was sent.
    pub(super) fn caller(&self, sent: &[u8], peer: Peer) -> Option<Caller<'_>> {
        let is_shared = self.token.as_ref().is_some_and(|tokens| tokens.open_for(sent));
        // Each is compared, so that the time does not tell which one is right.
        let named = self.workers.iter().fold(
            None,
            |found, (worker, tokens)| {
                if tokens.open_for(sent) { Some(worker) } else { found }
            },
        );
        match named {
            Some(name) => Some(Caller {
                worker: Worker { name: Arc::clone(name), has_own_token: true },
                section: self.section.workers.get(&**name),
            }),
            None => is_shared.then(|| {
                let name = peer.0.to_canonical().to_string().into();
                Caller { worker: Worker { name, has_own_token: false }, section: None }
            }),
        }
    }

    /// Whether a worker of before the start may have a turn by the present configuration.
    fn still_takes(&self, worker: &Worker, turn: &AgentTurn) -> bool {
        if !worker.has_own_token {
            return self.token.is_some();
        }
        self.section.workers.get(&*worker.name).is_some_and(|section| section.takes(&turn.place.conversation.channel))
    }

    /// Hears what the workers say about a run until one has answered, or the last lease has ended.
    async fn attend(
        &self,
        entry: &Entry,
        events: &RunEvents,
        arriving: &mut mpsc::Receiver<Command>,
    ) -> Result<Outcome, AgentError> {
        let turn = &entry.work.turn;
        let mut said = Said::of(&self.name, turn, events);
        let mut is_given = entry.is_adopted;
        if entry.is_adopted {
            tracing::info!(agent = &*self.name, turn_id = %turn.turn, "a worker has a turn still, from before the start");
            self.keep(entry, events, true).await;
            events.shown(WireTurn::input(turn)).await;
        }
        loop {
            let change = tokio::select! {
                // First, so that what arrived in time counts.
                biased;
                Some(command) = arriving.recv() => {
                    match self.hear(&command, entry, events, &mut said).await {
                        Ok((done, None)) => {
                            // Fails if the worker does not wait for it any more, as below.
                            let _ = command.done.send(Ok(done));
                            continue;
                        }
                        Err(refused) => {
                            let _ = command.done.send(Err(refused));
                            continue;
                        }
                        Ok((done, Some(end))) => {
                            let outcome = end.and_then(|()| said.into_outcome());
                            let stored = self.end(&command, entry, events, outcome.is_ok()).await;
                            let _ = command.done.send(Ok(Done { stored, ..done }));
                            return outcome;
                        }
                    }
                }
                change = entry.change() => change,
            };
            match change {
                // What it has said ends with this process, and so does its lease.
                Change::Heard if said.has_part() => {
                    entry.lease().into_iter().for_each(|held| entry.work.note_kept(held.lease));
                }
                Change::Heard => match self.keep(entry, events, false).await {
                    Some((lease, true)) => entry.work.note_kept(lease),
                    Some((_, false)) => entry.work.note_silent(),
                    None => {}
                },
                Change::Leased if entry.has_kept() => {}
                Change::Leased => {
                    // Without it the worker gets the turn all the same.
                    if let Some((lease, _)) = self.keep(entry, events, false).await {
                        entry.work.note_kept(lease);
                    }
                    if !std::mem::replace(&mut is_given, true) {
                        events.shown(WireTurn::input(turn)).await;
                    }
                }
                Change::Ended { worker, is_last } => {
                    let (agent, turn_id) = (&*self.name, turn.turn);
                    tracing::warn!(agent, %turn_id, worker = &*worker, "a worker let its lease end without an answer");
                    // No start is to let it begin anew. If this cannot be stored, that costs a lease.
                    let _ = kept::forget(turn, events).await;
                    if said.is_sent() {
                        return Ok(Outcome::Silent("answered with `send`".to_owned()));
                    }
                    if is_last {
                        let leases = self.section.max_leases;
                        return Err(AgentError::Stalled(format!("{leases} leases of workers ended without an answer")));
                    }
                    said.begin_again().await;
                }
            }
        }
    }

    /// Stores the lease that a worker has. `is_silent`: it has not been heard since the start. Returns the lease, and whether it is stored.
    async fn keep(&self, entry: &Entry, events: &RunEvents, is_silent: bool) -> Option<(Lease, bool)> {
        let held = entry.lease()?;
        let lease = Arc::clone(&held.lease);
        Some((lease, kept::keep(&self.name, &entry.work.turn, held, is_silent, events).await))
    }

    /// Takes the run out, because a worker has answered. Returns what its worker waits for: an outcome is its answer once it is stored.
    /// A failure leads to another run anyway, which no worker has after a restart.
    async fn end(&self, command: &Command, entry: &Entry, events: &RunEvents, has_outcome: bool) -> Option<Stored> {
        let stored = if has_outcome {
            Some(events.ends().await.shared())
        } else {
            // If this cannot be stored, that costs a lease.
            let _ = kept::forget(&entry.work.turn, events).await;
            None
        };
        let worker = entry.answered(Answered { digest: command.digest, stored: stored.clone() });
        let (agent, turn_id, lease) = (&*self.name, entry.work.turn.turn, logged(&command.lease));
        tracing::info!(agent, %turn_id, worker = worker.as_deref(), lease, "a worker has answered");
        stored
    }

    /// Says all that a worker says, or nothing of it: a worker that is refused sends all of it again. Returns how the run ends, too, if
    /// it ends.
    async fn hear(
        &self,
        command: &Command,
        entry: &Entry,
        events: &RunEvents,
        said: &mut Said<'_>,
    ) -> Result<(Done, Option<End>), Refused> {
        let Command { lease, worker, objects, purpose, .. } = command;
        // It may have waited. Whether its lease has ended is decided here, and nowhere else until this is heard.
        let mut until = entry.renew(lease, worker).map_err(Refused::NotHeld)?;
        let objects = objects.check(*purpose, said).map_err(Refused::Wrong)?;
        if *purpose == Purpose::Events && !said.has_part() && objects.iter().any(CheckedObject::says_a_part) {
            kept::forget(&entry.work.turn, events).await.map_err(|_| Refused::NotStored)?;
        }
        let mut end = None;
        for object in objects {
            end = match said.say(object).await {
                Ok(()) => said.has_ended().then_some(Ok(())),
                Err(error) => Some(Err(error)),
            };
            if end.is_some() {
                break;
            }
        }
        if end.is_none() {
            // What it said may have waited for its reader.
            until = entry.renew(lease, worker).map_err(Refused::NotHeld)?;
        }
        Ok((Done { is_sent: said.is_sent(), until, stored: None }, end))
    }
}

#[async_trait]
impl AgentRuntime for Pull {
    fn describe(&self) -> String {
        self.desk.to_string()
    }

    fn history(&self) -> usize {
        self.section.history_messages as usize
    }

    fn reads(&self, _media_type: &str) -> Option<usize> {
        Some(MAX_FILE)
    }

    fn hands_out(&self) -> bool {
        true
    }

    fn has_worker(&self) -> bool {
        self.desk.has_worker()
    }

    fn needs_worker(&self) -> bool {
        self.desk.needs_worker()
    }

    fn withdraw(&self, turn: TurnId, attempt: u32) -> bool {
        self.desk.withdraw(turn, attempt)
    }

    fn seals(&self) -> bool {
        true
    }

    fn keeps_sessions(&self) -> bool {
        self.section.sessions
    }

    async fn session_changed(&self, notice: SessionNotice) -> Result<(), AgentError> {
        // What is left of a time in which it kept sessions is not for it.
        if self.section.sessions {
            self.notices.tell(&notice).await;
        }
        Ok(())
    }

    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        let (commands, mut arriving) = mpsc::channel(1);
        let kept = kept::of(&self.name, &turn).filter(|kept| self.still_takes(&kept.worker, &turn));
        let entry = self.desk.enter(turn, commands, kept);
        let end = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(AgentError::Failed("the run was cancelled".to_owned())),
            end = self.attend(&entry, &events, &mut arriving) => end,
        };
        entry.end();
        end
    }
}
