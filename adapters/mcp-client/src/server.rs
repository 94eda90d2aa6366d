//! A server of an agent: its connection, its tools as they are now, and calls.

use std::{collections::HashSet, pin::pin, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rejoinder_agents::ForeignAnswer;
use rejoinder_core::{AgentName, Backoff};
use rmcp::{
    RoleClient,
    model::{CallToolRequestParams, CallToolResponse, JsonObject},
    service::{Peer, ServiceError},
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, timeout},
};
use tracing::{debug, info, warn};

use crate::{
    connection::{Connector, list, seconds},
    result::{failed, told},
    tools::{Offered, offered},
};

/// After how long a connection that ends counts as one that worked.
const STEADY: Duration = Duration::from_mins(1);

/// How long a server that answers takes for a list of its tools at the most.
const ANSWERS: Duration = Duration::from_secs(10);

/// How many tools are known to have asked for approval. Of a server with more, all do.
const MOST_ASKED: usize = 1_000;

/// How many tools that are not offered are logged at once.
const MOST_TOLD: usize = 5;

/// How long changes of the tools are collected.
const CHANGES: Duration = Duration::from_secs(1);

/// What is known of a server.
#[derive(Clone)]
pub(crate) enum State {
    /// It is connected to for the first time.
    Starting,
    /// It cannot be used now, for this reason.
    Down(Arc<str>),
    Up(Arc<Up>),
}

/// A server that can be used.
pub(crate) struct Up {
    peer: Peer<RoleClient>,
    /// Notified when a call finds that the connection is broken.
    broken: Arc<Notify>,
    pub(crate) tools: Vec<Arc<Offered>>,
}

/// A server of an agent.
pub(crate) struct Server {
    agent: AgentName,
    name: String,
    connector: Connector,
    state: watch::Sender<State>,
    /// The tools that asked for approval at some time: none stops to by itself.
    asked: Mutex<HashSet<String>>,
    /// Which tools had no room beside those of other servers, when they were asked for last.
    no_room: Mutex<Option<String>>,
}

impl Server {
    pub(crate) fn new(agent: AgentName, name: String, connector: Connector) -> Self {
        let state = watch::Sender::new(State::Starting);
        Self { agent, name, connector, state, asked: Mutex::default(), no_room: Mutex::default() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Notes which tools have no room, and logs it if that is new.
    pub(crate) fn note_no_room(&self, why: Option<String>) {
        let mut noted = self.no_room.lock();
        if *noted != why {
            if let Some(why) = &why {
                let (agent, server) = (&*self.agent, &*self.name);
                warn!(agent, server, why, "tools of an MCP server are not offered");
            }
            *noted = why;
        }
    }

    /// Connects, and again whenever the connection has ended.
    pub(crate) async fn keep_running(self: Arc<Self>) {
        let (mut backoff, mut is_told) = (Backoff::default(), false);
        let (agent, server) = (&*self.agent, &*self.name);
        loop {
            let began = Instant::now();
            let why = match self.serve(&mut is_told).await {
                Ok(why) | Err(why) => why,
            };
            self.state.send_replace(State::Down(why.as_str().into()));
            if began.elapsed() >= STEADY {
                backoff.reset();
            }
            let pause = backoff.pause();
            let pause_ms = pause.as_millis();
            if std::mem::replace(&mut is_told, true) {
                debug!(agent, server, why, pause_ms, "an MCP server is still down");
            } else {
                warn!(agent, server, why, pause_ms, "an MCP server is down: its tools are not offered");
            }
            sleep(pause).await;
        }
    }

    /// One connection, until its end. Returns why it ended.
    async fn serve(&self, is_told: &mut bool) -> Result<String, String> {
        let (changed, broken) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let connection = self.connector.connect(Arc::clone(&changed)).await?;
        let (agent, server) = (&*self.agent, &*self.name);
        let peer = connection.peer();
        let mut ended = pin!(connection.ended());
        let (section, mut is_first, mut told) = (&self.connector.section, true, Vec::new());
        loop {
            let tools = tokio::select! {
                why = &mut ended => return Ok(why),
                tools = list(&peer, section.timeout) => tools.map_err(|why| self.connector.masked(&why))?,
            };
            let (mut tools, left_out) = offered(server, section, tools);
            if left_out != told {
                for why in left_out.iter().take(MOST_TOLD) {
                    warn!(agent, server, why, "a tool of an MCP server is not offered");
                }
                told = left_out;
            }
            self.ask_as_before(&mut tools);
            let count = tools.len();
            if std::mem::replace(&mut is_first, false) {
                info!(agent, server, tools = count, "the tools of an MCP server are offered");
            } else {
                debug!(agent, server, tools = count, "the tools of an MCP server were listed again");
            }
            *is_told = false;
            let tools = tools.into_iter().map(Arc::new).collect();
            self.state.send_replace(State::Up(Arc::new(Up { peer: peer.clone(), broken: Arc::clone(&broken), tools })));
            tokio::select! {
                why = &mut ended => return Ok(why),
                () = broken.notified() => return Ok("a request did not reach it".to_owned()),
                () = changed.notified() => {}
            }
            tokio::select! {
                why = &mut ended => return Ok(why),
                () = sleep(CHANGES) => {}
            }
        }
    }

    /// A tool that asked for approval goes on to, whatever the server says of it later: the operator has read that it asks.
    fn ask_as_before(&self, tools: &mut [Offered]) {
        if self.connector.section.ask.is_some() {
            return;
        }
        let mut asked = self.asked.lock();
        for tool in tools {
            if tool.approved_as.is_some() && asked.len() < MOST_ASKED {
                asked.insert(tool.own_name.clone());
            } else if tool.approved_as.is_none() && (asked.contains(&tool.own_name) || asked.len() >= MOST_ASKED) {
                let (agent, server, tool_name) = (&*self.agent, &*self.name, &*tool.own_name);
                warn!(
                    agent,
                    server,
                    tool_name,
                    "a tool of an MCP server says now that it only reads: it still asks for approval"
                );
                tool.approved_as = Some(tool.kind(server));
            }
        }
    }

    /// Waits until it is known whether the server can be used.
    pub(crate) async fn settled(&self) {
        // Fails never: the server has the other end itself.
        let _ = self.state.subscribe().wait_for(|state| !matches!(state, State::Starting)).await;
    }

    /// The tools that can be called now.
    pub(crate) fn tools(&self) -> Vec<Arc<Offered>> {
        match &*self.state.borrow() {
            State::Up(up) => up.tools.clone(),
            State::Starting | State::Down(_) => Vec::new(),
        }
    }

    /// How many tools it offers now, or why it offers none.
    pub(crate) fn offers(&self) -> Result<usize, String> {
        match &*self.state.borrow() {
            State::Up(up) => Ok(up.tools.len()),
            State::Starting => Err("it has not answered yet".to_owned()),
            State::Down(why) => Err(why.to_string()),
        }
    }

    /// Calls a tool, if it is still the one that was offered. If the future is dropped, the server is told that the call is cancelled.
    pub(crate) async fn call(&self, offered: &Offered, arguments: JsonObject) -> ForeignAnswer {
        let state = self.state.borrow().clone();
        let State::Up(up) = state else {
            return failed("the server of this tool is down at the moment");
        };
        if !up.tools.iter().any(|tool| tool.is(offered)) {
            return failed("this tool has changed meanwhile, and was not called");
        }
        let tool = &*offered.own_name;
        let began = Instant::now();
        let limit = self.connector.section.timeout;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let answer = match timeout(limit, up.peer.call_tool_once(params)).await {
            Ok(Ok(CallToolResponse::Complete(result))) => told(result),
            Ok(Ok(_)) => failed("the tool asks for more than it was given, which is not supported"),
            Ok(Err(ServiceError::McpError(error))) => failed(&self.connector.masked(&error.message)),
            Ok(Err(error)) => {
                // It may be this call alone: that of others goes on.
                Self::check(&up);
                let why = self.connector.masked(&error.to_string());
                debug!(agent = &*self.agent, server = self.name, why, "a call of an MCP server failed");
                failed("the server of this tool went away; it is not known whether the call was carried out")
            }
            Err(_) => {
                Self::check(&up);
                failed(&format!("no result within {}: the call was cancelled", seconds(limit)))
            }
        };
        let took_ms = began.elapsed().as_millis();
        debug!(
            agent = &*self.agent,
            server = self.name,
            tool,
            took_ms,
            failed = answer.is_error,
            "an MCP tool was called"
        );
        answer
    }

    /// Ends the connection if the server does not answer any more.
    fn check(up: &Arc<Up>) {
        let up = Arc::clone(up);
        tokio::spawn(async move {
            if list(&up.peer, ANSWERS).await.is_err() {
                up.broken.notify_one();
            }
        });
    }
}
