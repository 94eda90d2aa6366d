//! The runs in flight, by their tokens.

use std::{
    borrow::Cow,
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock},
};

use parking_lot::Mutex;
use rejoinder_agents::{Tool, ToolAnswer};
use rejoinder_kit::token_digest;
use tokio::sync::{Semaphore, mpsc, oneshot};

/// How many calls of one run are carried out, or wait, at once.
const MOST_CALLS: usize = 8;

/// The runs in flight whose agents may call tools. A token is kept as its SHA-256, so that the time of a lookup tells nothing about it.
#[derive(Default)]
pub struct Runs(Mutex<HashMap<[u8; 32], RunHandle>>);

/// A call that has arrived.
pub(crate) struct ToolCall {
    pub(crate) name: String,
    /// A JSON object.
    pub(crate) arguments: String,
    pub(crate) answer: oneshot::Sender<ToolAnswer>,
}

/// A run whose agent may call tools.
#[derive(Clone)]
pub(crate) struct RunHandle(Arc<Inner>);

struct Inner {
    tools: Vec<Cow<'static, Tool>>,
    calls: mpsc::Sender<ToolCall>,
    /// A permit for each call.
    room: Semaphore,
}

/// A run in flight. Its token is worth nothing once this is dropped.
pub(crate) struct OpenRun {
    runs: Arc<Runs>,
    digest: [u8; 32],
}

impl Runs {
    /// Opens a run with these tools. Returns its token, and where its calls arrive.
    pub(crate) fn open(
        self: &Arc<Self>,
        tools: Vec<Cow<'static, Tool>>,
    ) -> (OpenRun, Arc<str>, mpsc::Receiver<ToolCall>) {
        let token: Arc<str> = hex::encode(rand::random::<[u8; 32]>()).into();
        let digest = token_digest(token.as_bytes());
        let (calls, arriving) = mpsc::channel(MOST_CALLS);
        let handle = RunHandle(Arc::new(Inner { tools, calls, room: Semaphore::new(MOST_CALLS) }));
        self.0.lock().insert(digest, handle);
        (OpenRun { runs: Arc::clone(self), digest }, token, arriving)
    }

    /// The run of a token, if it is in flight.
    pub(crate) fn of(&self, token: &[u8]) -> Option<RunHandle> {
        self.0.lock().get(&token_digest(token)).cloned()
    }
}

impl fmt::Debug for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runs").field("in_flight", &self.0.lock().len()).finish()
    }
}

impl Drop for OpenRun {
    fn drop(&mut self) {
        self.runs.0.lock().remove(&self.digest);
    }
}

impl RunHandle {
    pub(crate) fn tools(&self) -> &[Cow<'static, Tool>] {
        &self.0.tools
    }

    /// Has a call carried out. `arguments` is a JSON object.
    pub(crate) async fn call(&self, name: String, arguments: String) -> ToolAnswer {
        let Ok(_permit) = self.0.room.try_acquire() else { return TOO_MANY.clone() };
        let (answer, answered) = oneshot::channel();
        if self.0.calls.send(ToolCall { name, arguments, answer }).await.is_err() {
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
