//! A connection to the agent: requests and their answers, and what belongs to a session.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rejoinder_agents::tail::Tail;
use rejoinder_core::{Cost, SessionId};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{Notify, OwnedSemaphorePermit, mpsc, oneshot},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{
    clipped::Clipped,
    event::{CallError, Event},
    feed::{Feed, FeedReader},
    late_titles::LateTitles,
    lines::{Line, next_line},
    protocol::{
        Call, CancelledRequest, Frame, INVALID_PARAMS, NO_METHOD, NOT_FOUND, RpcError, SessionInfo, SessionUpdate,
        Update, UsageUpdate,
    },
    session_cost::SessionCost,
};

/// The largest message, in bytes.
const MAX_FRAME: usize = 8 << 20;

/// How many lines in a row may be no message.
const MOST_BROKEN: usize = 100;

/// How many messages may wait for an agent that reads none.
const MOST_QUEUED: usize = 1_000;

/// How many of the agent's sessions are told apart. Then all are forgotten.
const MOST_OWNED: usize = 100_000;

/// Why a message is lost that is no JSON, or not that of the protocol.
const UNREADABLE: &str = "a message of the agent cannot be read";

/// How many characters of an agent's own error the operator gets.
const MAX_ERROR: usize = 1_000;

/// A request that has no answer yet.
enum Pending {
    Answer(oneshot::Sender<Result<Box<RawValue>, CallError>>),
    Prompt {
        session: Arc<str>,
        events: Feed,
        /// Whether its run waits for a decision.
        is_suspended: Arc<AtomicBool>,
        /// Dropped with the answer.
        _permit: OwnedSemaphorePermit,
    },
}

/// A session of the agent that is one of ours.
struct Owned {
    by: SessionId,
    /// Whether there was a prompt in it. What it says of itself before is told again.
    is_used: bool,
    cost: SessionCost,
    /// What was added to the cost that no run has reported yet.
    unclaimed: Option<Cost>,
}

#[derive(Default)]
struct State {
    last_id: u64,
    pending: HashMap<u64, Pending>,
    /// Who gets the events of the agent's sessions.
    sessions: HashMap<Arc<str>, Feed>,
    /// Which of our sessions has each of the agent's.
    owners: HashMap<Arc<str>, Owned>,
    /// The sessions whose updates without a prompt somebody waits for.
    told_again: HashMap<Arc<str>, Arc<Notify>>,
    /// The titles of sessions that came outside of a prompt, until the next one.
    titles: LateTitles,
    closed: Option<Arc<str>>,
}

impl State {
    /// Who gets an update of a session. `None`: no prompt, and who waits for such updates is notified.
    fn of_update(&self, session: &str) -> Option<Feed> {
        let events = self.sessions.get(session).cloned();
        if events.is_none()
            && let Some(told) = self.told_again.get(session)
        {
            told.notify_one();
        }
        events
    }

    /// Reads an update without a prompt. The error: what it says is no cost.
    fn read_late(&mut self, session: &str, update: &str) -> Result<(), String> {
        let Some((known, owned)) = self.owners.get_key_value(session) else { return Ok(()) };
        match serde_json::from_str(update) {
            Ok(Update::Info(SessionInfo { title: Some(title) })) if owned.is_used => self.titles.keep(known, &title),
            Ok(Update::Usage(usage)) => return self.note_cost(session, &usage),
            _ => {}
        }
        Ok(())
    }

    /// Keeps what a session has cost, if the update says it. The error: it is no cost.
    fn note_cost(&mut self, session: &str, usage: &UsageUpdate) -> Result<(), String> {
        if let Some(cost) = usage.cost()?
            && let Some(owned) = self.owners.get_mut(session)
        {
            // Before the first prompt it tells again what is past.
            let added = owned.cost.until(cost).filter(|_| owned.is_used);
            owned.unclaimed = Cost::sum(owned.unclaimed, added);
            owned.cost = if owned.is_used { owned.cost.after(cost) } else { SessionCost::Past(cost) };
        }
        Ok(())
    }
}

/// A connection to an agent. What drives it stands in `drive.rs`.
pub(crate) struct Connection {
    /// Tells the connections of an agent apart.
    pub(crate) number: u64,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    queued: AtomicUsize,
    /// How many updates could not be read.
    unreadable: AtomicU64,
    /// Whether the operator was told that a cost cannot be used.
    has_bad_cost: AtomicBool,
    state: Mutex<State>,
    /// Knows the agent's secrets.
    tail: Arc<Tail>,
    /// Cancelled if the process does not answer any more.
    pub(crate) given_up: CancellationToken,
}

impl Connection {
    /// The second half holds what is to be written. `tail` masks the agent's secrets.
    pub(crate) fn new(number: u64, tail: Arc<Tail>) -> (Arc<Self>, mpsc::UnboundedReceiver<Vec<u8>>) {
        let (outgoing, written) = mpsc::unbounded_channel();
        let (queued, state, given_up) = (AtomicUsize::new(0), Mutex::default(), CancellationToken::new());
        let (unreadable, has_bad_cost) = (AtomicU64::new(0), AtomicBool::new(false));
        (Arc::new(Self { number, outgoing, queued, unreadable, has_bad_cost, state, tail, given_up }), written)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().closed.is_none()
    }

    /// Why it has ended.
    pub(crate) fn end(&self) -> Arc<str> {
        self.state.lock().closed.clone().unwrap_or_else(|| "the connection has ended".into())
    }

    /// Ends all requests and prompts.
    pub(crate) fn close(&self, reason: &str) {
        let mut state = self.state.lock();
        state.closed.get_or_insert_with(|| reason.into());
        let ended = (std::mem::take(&mut state.pending), std::mem::take(&mut state.sessions));
        drop(state);
        drop(ended);
        let updates = self.unreadable.swap(0, Ordering::Relaxed);
        if updates > 1 {
            warn!(updates, "updates of an ACP agent could not be read");
        }
    }

    /// Returns when no update of the agent's session came for `pause`, which no prompt has. One caller waits for a session.
    pub(crate) async fn until_quiet(&self, session: &Arc<str>, pause: Duration) {
        let told: Arc<Notify> = Arc::default();
        self.state.lock().told_again.insert(Arc::clone(session), Arc::clone(&told));
        let _waits = WaitsForQuiet { connection: self, session };
        while timeout(pause, told.notified()).await.is_ok() {}
    }

    /// Has the process restarted, unless it works on a prompt whose run goes on. A run that waits for a decision begins again then.
    pub(crate) fn give_up(&self) {
        let works = |pending: &Pending| match pending {
            Pending::Prompt { events, is_suspended, .. } => {
                !events.is_closed() && !is_suspended.load(Ordering::Relaxed)
            }
            Pending::Answer(_) => false,
        };
        let is_working = self.state.lock().pending.values().any(works);
        if !is_working {
            self.given_up.cancel();
        }
    }

    /// Gives the agent's session `id`, which has cost so much, to `session`, unless it was given before: then returns to which.
    pub(crate) fn give(&self, id: &Arc<str>, session: SessionId, cost: SessionCost) -> Option<SessionId> {
        let owners = &mut self.state.lock().owners;
        if owners.len() >= MOST_OWNED {
            owners.clear();
        }
        let owner = owners.get(id).map(|owned| owned.by);
        if owner.is_none() {
            owners.insert(Arc::clone(id), Owned { by: session, is_used: false, cost, unclaimed: None });
        }
        owner
    }

    /// Takes back the agent's session `id`: it was not opened.
    pub(crate) fn take_back(&self, id: &str) {
        self.state.lock().owners.remove(id);
    }

    /// Whether it is known what the agent's session has cost until now.
    pub(crate) fn knows_cost(&self, session: &str) -> bool {
        self.state.lock().owners.get(session).is_some_and(|owned| owned.cost != SessionCost::Unknown)
    }

    /// Takes what was added to the cost of the agent's session since the last time: it counts for one run.
    pub(crate) fn claim_cost(&self, session: &str) -> Option<Cost> {
        self.state.lock().owners.get_mut(session)?.unclaimed.take()
    }

    /// Sends a request, and waits for its result.
    pub(crate) async fn call<T: DeserializeOwned>(&self, method: &str, params: impl Serialize) -> Result<T, CallError> {
        let (answer, answered) = oneshot::channel();
        let id = self.register(Pending::Answer(answer))?;
        let _forgotten = Forget { connection: self, id };
        self.write(&Call { jsonrpc: "2.0", id: Some(id), method, params });
        let result = answered.await.map_err(|_| CallError::Closed(self.end()))??;
        serde_json::from_str(result.get()).map_err(|error| self.unreadable(&error))
    }

    /// What the agent says, for errors and logs: without its secrets, and of a long text the beginning.
    pub(crate) fn told(&self, words: String) -> String {
        let words = self.tail.masked(words);
        match words.char_indices().nth(MAX_ERROR) {
            Some((end, _)) => format!("{}…", &words[..end]),
            None => words,
        }
    }

    /// The error may repeat what the agent wrote.
    fn unreadable(&self, error: &serde_json::Error) -> CallError {
        CallError::Invalid(self.told(error.to_string()))
    }

    fn refused(&self, error: RpcError) -> CallError {
        let RpcError { code, message, data } = error;
        let data = data.map(|data| self.told(data.to_string()).into());
        CallError::Refused(RpcError { code, message: self.told(message), data })
    }

    /// Sends a prompt. `permit` is held until the agent has ended its work on it. Returns what the agent says, and whether its run waits.
    pub(crate) fn send_prompt(
        &self,
        session: Arc<str>,
        params: impl Serialize,
        permit: OwnedSemaphorePermit,
    ) -> Result<(FeedReader, Arc<AtomicBool>), CallError> {
        let ((events, received), is_suspended) = (Feed::new(), Arc::<AtomicBool>::default());
        let pending = Pending::Prompt { session, events, is_suspended: Arc::clone(&is_suspended), _permit: permit };
        let id = self.register(pending)?;
        self.write(&Call { jsonrpc: "2.0", id: Some(id), method: "session/prompt", params });
        Ok((received, is_suspended))
    }

    fn register(&self, pending: Pending) -> Result<u64, CallError> {
        let mut state = self.state.lock();
        if let Some(reason) = &state.closed {
            return Err(CallError::Closed(Arc::clone(reason)));
        }
        state.last_id += 1;
        let id = state.last_id;
        if let Pending::Prompt { session, events, .. } = &pending {
            if state.sessions.contains_key(session) {
                // As if the agent did not know the session: it is not used any more.
                let message = "it works on another prompt in the session".to_owned();
                return Err(CallError::Refused(RpcError { code: NOT_FOUND, message, data: None }));
            }
            state.sessions.insert(Arc::clone(session), events.clone());
            if let Some(owned) = state.owners.get_mut(session) {
                owned.is_used = true;
            }
            if let Some(title) = state.titles.take(session) {
                let size = title.len();
                // A new feed has room.
                let _ = events.push(Event::Update(Update::Info(SessionInfo { title: Some(title) })), size);
            }
        }
        state.pending.insert(id, pending);
        Ok(id)
    }

    /// Takes out a request, and with a prompt the feed of its session.
    fn unregister(&self, id: u64) -> Option<Pending> {
        let mut state = self.state.lock();
        let pending = state.pending.remove(&id)?;
        if let Pending::Prompt { session, events, .. } = &pending
            && state.sessions.get(session).is_some_and(|other| other.is_same(events))
        {
            state.sessions.remove(session);
        }
        Some(pending)
    }

    pub(crate) fn write(&self, message: &impl Serialize) {
        let mut line = serde_json::to_vec(message).expect("a message serialises to JSON");
        line.push(b'\n');
        self.queued.fetch_add(1, Ordering::Relaxed);
        // It fails if the connection has ended.
        let _ = self.outgoing.send(line);
    }

    /// Writes what is to be written. Returns why it ended.
    pub(crate) async fn write_to(
        &self,
        mut input: impl AsyncWrite + Unpin,
        written: &mut mpsc::UnboundedReceiver<Vec<u8>>,
    ) -> String {
        while let Some(line) = written.recv().await {
            let result = async {
                input.write_all(&line).await?;
                input.flush().await
            };
            if let Err(error) = result.await {
                return format!("its input cannot be written: {error}");
            }
            self.queued.fetch_sub(1, Ordering::Relaxed);
        }
        "nothing is left to write".to_owned()
    }

    /// Reads and handles the agent's messages. Returns why it ended.
    pub(crate) async fn read_from(&self, output: impl AsyncRead + Unpin) -> String {
        let mut output = BufReader::with_capacity(64 << 10, output);
        let mut broken = 0;
        loop {
            let (frame, size) = match next_line(&mut output, MAX_FRAME).await {
                Err(error) => return format!("its output cannot be read: {error}"),
                Ok(Line::End) => return "its output has ended".to_owned(),
                Ok(Line::Whole(line)) if line.trim_ascii().is_empty() => continue,
                Ok(Line::Whole(line)) => {
                    let begins_one = line.trim_ascii_start().starts_with(b"{");
                    // Without the words of the error, which may be those of a conversation.
                    let wrong = |error: serde_json::Error| format!("{:?} at byte {}", error.classify(), error.column());
                    let frame = serde_json::from_slice::<Frame>(&line).map_err(|error| (wrong(error), begins_one));
                    (frame, line.len())
                }
                Ok(Line::TooLong(outline)) => {
                    let is_known = Clipped::read(&outline).is_some_and(|message| self.clipped(&message));
                    if is_known {
                        warn!(most = MAX_FRAME, "a message of an ACP agent is too long and is dropped");
                        broken = 0;
                        continue;
                    }
                    (Err((format!("it is longer than {MAX_FRAME} bytes"), true)), 0)
                }
            };
            match frame {
                Ok(frame) => {
                    broken = 0;
                    self.handle(frame, size);
                }
                Err((error, begins_one)) => {
                    broken += 1;
                    if broken == 1 {
                        warn!(error, "a line of an ACP agent is no message and is dropped");
                    }
                    if begins_one {
                        self.lose(UNREADABLE);
                    }
                    if broken == MOST_BROKEN {
                        return format!("it does not speak ACP: {MOST_BROKEN} lines in a row are no message ({error})");
                    }
                }
            }
            if self.queued.load(Ordering::Relaxed) > MOST_QUEUED {
                return "it does not read its input".to_owned();
            }
        }
    }

    /// Fails what a message that is too long belongs to. Returns whether that can be told.
    fn clipped(&self, message: &Clipped) -> bool {
        match (message.method.as_deref(), message.session(), &message.id) {
            (None, _, Some(id)) => {
                self.answered(id, Err(CallError::Invalid(format!("it is longer than {MAX_FRAME} bytes"))));
            }
            (Some(_), Some(session), id) => {
                if let Some(events) = self.state.lock().sessions.get(session) {
                    events.lose(&format!("a message of the agent is longer than {MAX_FRAME} bytes"));
                }
                if let Some(id) = id {
                    self.refuse(id, INVALID_PARAMS, "the request is too long");
                }
            }
            (Some("session/update" | "session/request_permission") | None, ..) => return false,
            (Some("elicitation/create"), None, Some(id)) => {
                self.refuse(id, INVALID_PARAMS, "the request is too long");
            }
            (Some(_), None, Some(id)) => self.refuse(id, NO_METHOD, "there is no such method"),
            // Other notifications are ignored.
            (Some(_), None, None) => {}
        }
        true
    }

    /// Handles a message of `size` bytes.
    fn handle(&self, frame: Frame, size: usize) {
        let Frame { id, method, params, result, error } = frame;
        let params = params.as_deref().map_or("null", RawValue::get);
        match (method.as_deref(), id) {
            (Some("session/request_permission"), Some(id)) => self.permission_asked(id, params, size),
            (Some("elicitation/create"), Some(id)) => self.elicitation_asked(id, params, size),
            (Some(method), Some(id)) => {
                debug!(method, "an ACP agent calls a method that is not offered");
                self.refuse(&id, NO_METHOD, "there is no such method");
            }
            (Some("session/update"), None) => self.updated(params, size),
            (Some("$/cancel_request"), None) => self.taken_back(params, size),
            (Some(method), None) => debug!(method, "a notification of an ACP agent is ignored"),
            (None, Some(id)) => {
                let result = match error {
                    Some(error) => Err(self.refused(error)),
                    None => Ok(result.unwrap_or_else(|| RawValue::NULL.to_owned())),
                };
                self.answered(&id, result);
            }
            (None, None) => debug!("a message of an ACP agent is no JSON-RPC"),
        }
    }

    /// Who gets what belongs to a session. `None`: no prompt.
    pub(crate) fn feed(&self, session: &str) -> Option<Feed> {
        self.state.lock().sessions.get(session).cloned()
    }

    fn updated(&self, params: &str, size: usize) {
        let (session, update) = match serde_json::from_str(params) {
            Ok(SessionUpdate { session_id, update }) => (session_id, update),
            Err(error) => {
                self.count_unreadable(&error);
                // It may be of any session.
                return self.lose(UNREADABLE);
            }
        };
        let update = update.as_deref().map_or("null", RawValue::get);
        let mut state = self.state.lock();
        let Some(events) = state.of_update(&session) else {
            // A conversation that is told again, a title, a cost, commands.
            let noted = state.read_late(&session, update);
            drop(state);
            self.warn_of_cost(noted);
            return debug!("an update of an ACP agent belongs to no prompt");
        };
        drop(state);
        match serde_json::from_str(update) {
            Ok(update) => {
                if let Update::Usage(usage) = &update {
                    let noted = self.state.lock().note_cost(&session, usage);
                    self.warn_of_cost(noted);
                }
                // It fails if the run is over.
                drop(events.push(Event::Update(update), size));
            }
            Err(error) => {
                self.count_unreadable(&error);
                if Update::may_be_answer(update) {
                    events.lose(UNREADABLE);
                }
            }
        }
    }

    /// Tells all prompts which request the agent takes back: one of them, or none, has it.
    fn taken_back(&self, params: &str, size: usize) {
        let Ok(CancelledRequest { request_id }) = serde_json::from_str(params) else {
            return debug!("an ACP agent does not say which request it takes back");
        };
        for events in self.state.lock().sessions.values() {
            // It fails if the run is over, and then it has answered all its requests.
            drop(events.push(Event::TakenBack(request_id.clone()), size));
        }
    }

    /// Tells the operator once, and again at the end of the connection. The words of the error may be those of a conversation.
    fn count_unreadable(&self, error: &serde_json::Error) {
        if self.unreadable.fetch_add(1, Ordering::Relaxed) == 0 {
            let (why, byte) = (format!("{:?}", error.classify()), error.column());
            warn!(why, byte, "an update of an ACP agent cannot be read and is dropped");
        }
    }

    /// Tells the operator once that what the agent says is no cost.
    fn warn_of_cost(&self, noted: Result<(), String>) {
        if let Err(why) = noted
            && !self.has_bad_cost.swap(true, Ordering::Relaxed)
        {
            warn!(why, "a cost that an ACP agent reports is not used");
        }
    }

    fn answered(&self, id: &Value, result: Result<Box<RawValue>, CallError>) {
        let pending = id.as_u64().and_then(|id| self.unregister(id));
        match pending {
            // Both fail if nobody waits any more.
            Some(Pending::Answer(answer)) => drop(answer.send(result)),
            Some(Pending::Prompt { events, _permit, .. }) => {
                let end =
                    result.and_then(|end| serde_json::from_str(end.get()).map_err(|error| self.unreadable(&error)));
                events.end(end);
            }
            None => debug!("an ACP agent answers a request that nobody waits for"),
        }
    }

    /// Tells all prompts that a message was lost, and why.
    fn lose(&self, why: &str) {
        self.state.lock().sessions.values().for_each(|events| events.lose(why));
    }
}

/// Forgets a request that nobody waits for.
struct Forget<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.connection.state.lock().pending.remove(&self.id);
    }
}

/// Somebody waits for a session that is told again, until this is dropped.
struct WaitsForQuiet<'a> {
    connection: &'a Connection,
    session: &'a str,
}

impl Drop for WaitsForQuiet<'_> {
    fn drop(&mut self) {
        self.connection.state.lock().told_again.remove(self.session);
    }
}
