//! The runs in flight, by their tokens.

use std::{
    borrow::Cow,
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock},
};

use parking_lot::Mutex;
use rejoinder_agents::{SessionTokens, TOKEN_PREFIX, Tool, ToolAnswer};
use rejoinder_core::ToolTokens;
use rejoinder_kit::{Place, token_digest};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// How many calls of one run are carried out, or wait, at once.
const MOST_CALLS: usize = 8;

/// The SHA-256 of a token.
type TokenDigest = [u8; 32];

/// The runs in flight whose agents may call tools. A token is kept as its SHA-256, so that the time of a lookup tells nothing about it.
#[derive(Default)]
pub struct Runs(Mutex<Open>);

#[derive(Default)]
struct Open {
    runs: HashMap<TokenDigest, RunHandle>,
    /// The tokens of sessions, each with that of the session's latest run.
    sessions: HashMap<TokenDigest, Option<TokenDigest>>,
}

/// A call that has arrived.
pub(crate) struct ToolCall {
    /// Which of the run's tokens it was made with.
    pub(crate) token: u32,
    pub(crate) name: String,
    /// A JSON object.
    pub(crate) arguments: String,
    pub(crate) answer: oneshot::Sender<ToolAnswer>,
}

/// A run whose agent may call tools.
#[derive(Clone)]
pub(crate) struct RunHandle(Arc<Inner>);

struct Inner {
    /// The number of its token among those of the run.
    token: u32,
    tools: Arc<[Cow<'static, Tool>]>,
    calls: mpsc::Sender<ToolCall>,
    /// A permit for each call.
    room: Semaphore,
    /// The permit for a call with a large body.
    large: Arc<Semaphore>,
}

/// What a token opens.
pub(crate) enum Opened {
    Run(RunHandle),
    /// It is that of a session which has no run in this moment.
    NoRun,
}

/// A run in flight, and its tokens. They are worth nothing once it is [closed](Self::close).
pub(crate) struct OpenRun {
    runs: Arc<Runs>,
    tools: Arc<[Cow<'static, Tool>]>,
    calls: mpsc::Sender<ToolCall>,
    current: Mutex<Current>,
}

/// The token that holds.
struct Current {
    number: u32,
    token: Arc<str>,
    digest: TokenDigest,
    is_closed: bool,
}

impl Runs {
    /// Opens a run with these tools. Returns where its calls arrive, too.
    pub(crate) fn open(self: &Arc<Self>, tools: Vec<Cow<'static, Tool>>) -> (Arc<OpenRun>, mpsc::Receiver<ToolCall>) {
        let (calls, arriving) = mpsc::channel(MOST_CALLS);
        let (tools, none) = (tools.into(), Current { number: 0, token: "".into(), digest: [0; 32], is_closed: false });
        let open = OpenRun { runs: Arc::clone(self), tools, calls, current: Mutex::new(none) };
        open.begin_again();
        (Arc::new(open), arriving)
    }

    /// What a token opens. `None`: nobody has it.
    pub(crate) fn of(&self, token: &[u8]) -> Option<Opened> {
        let (open, digest) = (self.0.lock(), token_digest(token));
        if let Some(run) = open.runs.get(&digest) {
            return Some(Opened::Run(run.clone()));
        }
        let latest = open.sessions.get(&digest)?;
        let run = latest.and_then(|latest| open.runs.get(&latest));
        Some(run.map_or(Opened::NoRun, |run| Opened::Run(run.clone())))
    }
}

impl SessionTokens for Runs {
    fn issue(&self) -> Arc<str> {
        let (token, digest) = new_token();
        self.0.lock().sessions.insert(digest, None);
        token
    }

    fn lend(&self, session: &str, run: &str) {
        if let Some(latest) = self.0.lock().sessions.get_mut(&token_digest(session.as_bytes())) {
            *latest = Some(token_digest(run.as_bytes()));
        }
    }

    fn revoke(&self, session: &str) {
        self.0.lock().sessions.remove(&token_digest(session.as_bytes()));
    }
}

fn new_token() -> (Arc<str>, TokenDigest) {
    let token: Arc<str> = format!("{TOKEN_PREFIX}{}", hex::encode(rand::random::<[u8; 32]>())).into();
    let digest = token_digest(token.as_bytes());
    (token, digest)
}

impl fmt::Debug for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runs").field("in_flight", &self.0.lock().runs.len()).finish()
    }
}

impl OpenRun {
    /// The number of the token that holds.
    pub(crate) fn number(&self) -> u32 {
        self.current.lock().number
    }

    /// Ends the run: its token is worth nothing any more, and there is no other one.
    pub(crate) fn close(&self) {
        let mut current = self.current.lock();
        current.is_closed = true;
        self.runs.0.lock().runs.remove(&current.digest);
    }
}

impl ToolTokens for OpenRun {
    fn token(&self) -> Arc<str> {
        Arc::clone(&self.current.lock().token)
    }

    fn begin_again(&self) {
        let mut current = self.current.lock();
        if current.is_closed {
            return;
        }
        let (number, (token, digest)) = (current.number + 1, new_token());
        let (tools, calls) = (Arc::clone(&self.tools), self.calls.clone());
        let (room, large) = (Semaphore::new(MOST_CALLS), Arc::new(Semaphore::new(1)));
        let handle = RunHandle(Arc::new(Inner { token: number, tools, calls, room, large }));
        let mut open = self.runs.0.lock();
        open.runs.remove(&current.digest);
        open.runs.insert(digest, handle);
        *current = Current { number, token, digest, is_closed: false };
    }
}

impl Drop for OpenRun {
    fn drop(&mut self) {
        self.close();
    }
}

impl RunHandle {
    pub(crate) fn tools(&self) -> &[Cow<'static, Tool>] {
        &self.0.tools
    }

    /// Waits until no other call of this token with a large body is under way.
    pub(crate) async fn permit_for_large(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.large).acquire_owned().await.ok()
    }

    /// Has a call carried out. `arguments` is a JSON object. The request leaves its place meanwhile: it may wait for days.
    pub(crate) async fn call(&self, name: String, arguments: String, place: Option<&Place>) -> ToolAnswer {
        let Ok(_permit) = self.0.room.try_acquire() else { return TOO_MANY.clone() };
        let _left = place.map(Place::leave);
        let (answer, answered) = oneshot::channel();
        let call = ToolCall { token: self.0.token, name, arguments, answer };
        if self.0.calls.send(call).await.is_err() {
            return ENDED.clone();
        }
        answered.await.unwrap_or_else(|_| ENDED.clone())
    }
}

static TOO_MANY: LazyLock<ToolAnswer> = LazyLock::new(|| ToolAnswer {
    text: format!("error: {MOST_CALLS} calls are not answered yet: wait for them"),
    is_error: true,
});

static ENDED: LazyLock<ToolAnswer> =
    LazyLock::new(|| ToolAnswer { text: "error: the turn has ended".to_owned(), is_error: true });
