//! Keeps the agent's process running while somebody needs it.

use std::{
    fmt::{self, Write as _},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use rejoinder_core::{AgentError, AgentName, Backoff};
use serde_json::json;
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::{
    connection::Connection,
    event::CallError,
    launch::{Launch, Launched},
    protocol::{Initialized, PromptCapabilities, VERSION},
};

/// After how long a process that ends counts as one that worked.
const STEADY: Duration = Duration::from_mins(1);

/// Where the operator reads what a process wrote that did not start: the error is logged.
const SEE_DOCTOR: &str = " (`rejoinder doctor` shows what it wrote)";

/// How long the last lines of a process that has ended are waited for.
const LAST_LINES: Duration = Duration::from_millis(200);

/// How a process ended.
pub(crate) struct End {
    why: String,
    /// The end of what it wrote to its standard error, which may repeat what people wrote: only for the log at the level debug, and for
    /// errors that are not logged as they are.
    written: String,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)?;
        if self.written.is_empty() { Ok(()) } else { write!(f, "; it wrote: {}", self.written) }
    }
}

impl From<String> for End {
    fn from(why: String) -> Self {
        Self { why, written: String::new() }
    }
}

/// A connection on which the agent has said what it can.
#[derive(Clone)]
pub(crate) struct Ready {
    pub(crate) connection: Arc<Connection>,
    pub(crate) agent: Arc<Initialized>,
}

#[derive(Clone, Default)]
struct Status {
    ready: Option<Ready>,
    /// How often it could not be started.
    failures: u64,
    /// Why, the last time.
    failure: String,
    /// What the latest process takes in a prompt.
    capabilities: Option<PromptCapabilities>,
}

/// Starts the process when it is needed, and again when it has ended.
pub(crate) struct Keeper {
    name: AgentName,
    launcher: Box<dyn Launch>,
    start_timeout: Duration,
    /// Whether the agent is to call the gateway's tools.
    is_given_tools: bool,
    needed: Notify,
    status: watch::Sender<Status>,
}

impl Keeper {
    pub(crate) fn new(
        name: AgentName,
        launcher: Box<dyn Launch>,
        start_timeout: Duration,
        is_given_tools: bool,
    ) -> Self {
        let (needed, status) = (Notify::new(), watch::Sender::default());
        Self { name, launcher, start_timeout, is_given_tools, needed, status }
    }

    /// The connection, as soon as there is one.
    pub(crate) async fn ready(&self) -> Result<Ready, AgentError> {
        let mut status = self.status.subscribe();
        let failures = status.borrow().failures;
        loop {
            {
                let status = status.borrow_and_update();
                if let Some(ready) = status.ready.as_ref().filter(|ready| ready.connection.is_open()) {
                    return Ok(ready.clone());
                }
                if status.failures > failures {
                    return Err(AgentError::Unreachable(status.failure.clone()));
                }
            }
            self.needed.notify_one();
            if status.changed().await.is_err() {
                return Err(AgentError::Unreachable("the gateway stops".to_owned()));
            }
        }
    }

    /// What the latest process takes in a prompt; `None` before the first one.
    pub(crate) fn capabilities(&self) -> Option<PromptCapabilities> {
        self.status.borrow().capabilities
    }

    /// Runs the process until `stop`.
    pub(crate) async fn run(&self, stop: CancellationToken) {
        let (mut backoff, mut number) = (Backoff::default(), 0);
        while stop.run_until_cancelled(self.needed.notified()).await.is_some() {
            number += 1;
            let began = Instant::now();
            let end = self.run_once(number, &stop).await;
            if stop.is_cancelled() {
                return;
            }
            if began.elapsed() >= STEADY {
                backoff.reset();
            }
            let pause = backoff.pause();
            warn!(
                agent = &*self.name,
                end = end.why,
                pause_ms = pause.as_millis(),
                "the process of an ACP agent has ended"
            );
            if !end.written.is_empty() {
                debug!(agent = &*self.name, stderr = end.written, "what an ACP agent wrote for the operator");
            }
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                return;
            }
        }
    }

    /// Starts the process, and returns why it ended.
    async fn run_once(&self, number: u64, stop: &CancellationToken) -> End {
        let launched = match self.launcher.launch() {
            Ok(launched) => launched,
            Err(reason) => return self.failed(reason.into()),
        };
        let (connection, written) = Connection::new(number, Arc::clone(&launched.tail));
        let tail = Arc::clone(&launched.tail);
        let ends = stop.child_token();
        let mut drive = pin!(drive(&connection, launched, written, &ends));
        let start = timeout(self.start_timeout, initialize(&connection));
        let started = tokio::select! {
            biased;
            end = &mut drive => return self.failed(end),
            started = start => started,
        };
        let started = started.unwrap_or_else(|_| {
            Err(format!("it did not answer `initialize` within {:?} (`start_timeout`)", self.start_timeout))
        });
        let agent = match started {
            Ok(agent) => Arc::new(agent),
            Err(why) => {
                let end = self.failed(End { why, written: tail.text() });
                // The next one starts when this one has ended.
                ends.cancel();
                drive.await;
                return end;
            }
        };
        if let Some(found) = &agent.agent_info {
            let (name, version) = (connection.told(found.name.clone()), connection.told(found.version.clone()));
            info!(agent = &*self.name, name, version, "an ACP agent has started");
        }
        if self.is_given_tools && !agent.agent_capabilities.mcp_capabilities.http {
            let agent = &*self.name;
            warn!(agent, "an ACP agent has no MCP servers over HTTP: it cannot call the gateway's tools (`mcp`)");
        }
        let capabilities = Some(agent.agent_capabilities.prompt_capabilities);
        let ready = Some(Ready { connection: Arc::clone(&connection), agent });
        self.status.send_modify(|status| (status.ready, status.capabilities) = (ready, capabilities));
        let end = drive.await;
        self.status.send_modify(|status| status.ready = None);
        end
    }

    fn failed(&self, end: End) -> End {
        self.status.send_modify(|status| {
            status.failures += 1;
            status.failure = if end.written.is_empty() { end.why.clone() } else { format!("{}{SEE_DOCTOR}", end.why) };
        });
        end
    }
}

/// The first request of a connection. The error is for the operator.
pub(crate) async fn initialize(connection: &Connection) -> Result<Initialized, String> {
    let params = json!({
        "protocolVersion": VERSION,
        "clientCapabilities": {
            "fs": { "readTextFile": false, "writeTextFile": false },
            "terminal": false,
            "elicitation": { "form": {}, "url": {} },
        },
        "clientInfo": { "name": "rejoinder", "title": "Rejoinder", "version": env!("CARGO_PKG_VERSION") },
    });
    match connection.call::<Initialized>("initialize", params).await {
        Ok(agent) if agent.protocol_version == VERSION => Ok(agent),
        Ok(agent) => {
            let version = agent.protocol_version;
            Err(format!("it speaks version {version} of ACP, and the gateway version {VERSION}"))
        }
        Err(CallError::Closed(reason)) => Err(reason.to_string()),
        Err(CallError::Refused(error)) => Err(format!("it refused `initialize`: {} ({})", error.message, error.code)),
        Err(CallError::Invalid(error)) => Err(format!("its answer to `initialize` cannot be read: {error}")),
    }
}

/// Reads and writes until the process ends, or `stop`. Then the connection is closed and the process has ended. Returns why.
pub(crate) async fn drive(
    connection: &Connection,
    launched: Launched,
    mut written: mpsc::UnboundedReceiver<Vec<u8>>,
    stop: &CancellationToken,
) -> End {
    let Launched { input, output, errors, process, tail } = launched;
    let mut why = {
        let (mut reads, mut writes) =
            (pin!(connection.read_from(output)), pin!(connection.write_to(input, &mut written)));
        let mut keeps = pin!(tail.follow(errors));
        let mut has_errors = true;
        let end = loop {
            tokio::select! {
                end = &mut reads => break end,
                end = &mut writes => break end,
                () = &mut keeps, if has_errors => has_errors = false,
                () = connection.given_up.cancelled() => break "it does not answer any more".to_owned(),
                () = stop.cancelled() => break "the gateway stops".to_owned(),
            }
        };
        if has_errors {
            // A child of the process may still have it open.
            let _ = timeout(LAST_LINES, keeps).await;
        }
        end
    };
    if let Some(process) = process {
        let _ = write!(why, " ({})", process.end().await);
    }
    let end = End { why, written: tail.text() };
    connection.close(&end.to_string());
    end
}
