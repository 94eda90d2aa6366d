//! Opens the agent's session of one of ours: the known one, the same again after a restart of the process, or a new one.

use std::{pin::pin, sync::Arc, time::Duration};

use rejoinder_agents::SessionTokens;
use rejoinder_core::{AgentError, SessionId, ToolAccess};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};
use tracing::{debug, info, warn};

use crate::{
    AcpSection,
    connection::Connection,
    drive::Ready,
    event::CallError,
    own_tools::SessionToken,
    protocol::{AUTH_REQUIRED, MAX_ID, NewSession, RpcError},
    session_cost::SessionCost,
    sessions::{AgentSession, Known, Owner, Slot},
};

/// How long the agent may take to end its work on the prompt before. A session in which it goes on is left.
const LEFT_AFTER: Duration = Duration::from_secs(10);

/// The method that opens a session and tells its conversation again.
const LOAD: &str = "session/load";

/// After how long without an update a conversation was told again.
const TOLD_AGAIN: Duration = Duration::from_millis(300);

/// How often the known session may change while it is waited for.
const MAX_CHANGES: usize = 3;

/// A session for a prompt.
pub(crate) struct Opened {
    pub(crate) slot: Arc<Slot>,
    pub(crate) owner: Arc<Owner>,
    pub(crate) session: AgentSession,
    /// Whether nothing was said in it yet.
    pub(crate) is_new: bool,
    pub(crate) permit: OwnedSemaphorePermit,
}

/// What opens sessions.
pub(crate) struct Opener<'a> {
    pub(crate) agent: &'a str,
    pub(crate) settings: &'a AcpSection,
    pub(crate) ready: &'a Ready,
    /// Where the run has its tools, and what gives sessions tokens for them.
    pub(crate) tools: Option<(&'a ToolAccess, &'a Arc<dyn SessionTokens>)>,
}

impl Opener<'_> {
    /// `slot` is that of the session, and `owner` its owner when the run began: if the session was removed since, a new one is begun,
    /// which is not kept. `stored` is the agent's own id of the session, as an earlier process of the gateway may have stored it.
    pub(crate) async fn open(
        &self,
        slot: Arc<Slot>,
        mut owner: Arc<Owner>,
        session: SessionId,
        stored: Option<&str>,
    ) -> Result<Opened, AgentError> {
        for _ in 0..MAX_CHANGES {
            let Some(permit) = self.acquire(&slot, &owner).await else {
                warn!(agent = self.agent, "an ACP agent does not end its work on a prompt, its session is left");
                owner = slot.leave(&owner);
                continue;
            };
            let earlier: Option<Arc<str>> = match slot.known(&owner) {
                Some(Known::Session(known)) if self.is_open(&known) => {
                    return Ok(Opened { slot, owner, session: known, is_new: false, permit });
                }
                Some(Known::Session(known)) => Some(known.id),
                Some(Known::Stored) => stored.filter(|id| !id.is_empty()).map(Into::into),
                Some(Known::Gone) | None => None,
            };
            let again = match earlier {
                Some(id) => {
                    let again = self.reopen(session, Arc::clone(&id)).await;
                    // Also if it hangs, or the process ends: so that it does not with every turn.
                    if !matches!(again, Ok(Some(_))) {
                        slot.forget(&id);
                    }
                    again?
                }
                None => None,
            };
            let (session, is_new) = match again {
                Some(again) if slot.keep(&owner, again.clone()) => (again, false),
                // There is none, or something was removed from it meanwhile.
                Some(_) | None => (self.begin(session).await?, true),
            };
            return Ok(Opened { slot, owner, session, is_new, permit });
        }
        Err(AgentError::Stalled("it does not end its work on earlier prompts of the session".to_owned()))
    }

    /// Waits until no other run opens the session, and the agent works on no prompt in it. `None`: it works for too long.
    async fn acquire(&self, slot: &Slot, owner: &Arc<Owner>) -> Option<OwnedSemaphorePermit> {
        let mut permit = pin!(owner.acquire());
        loop {
            if let Ok(permit) = timeout(LEFT_AFTER, &mut permit).await {
                return Some(permit);
            }
            match slot.known(owner) {
                None => return None,
                Some(Known::Session(known)) if self.is_open(&known) => return None,
                // Another run opens it, which ends by itself.
                Some(_) => {}
            }
        }
    }

    fn is_open(&self, session: &AgentSession) -> bool {
        session.connection == self.ready.connection.number
    }

    /// Opens a session that was open in a process that has ended. `None`: the agent cannot, or has given the id to another session since.
    async fn reopen(&self, session: SessionId, id: Arc<str>) -> Result<Option<AgentSession>, AgentError> {
        let connection = &self.ready.connection;
        if connection.give(&id, session, SessionCost::Unknown).is_some_and(|owner| owner != session) {
            warn!(agent = self.agent, "an ACP agent has given the id of a session twice, the session is left");
            return Ok(None);
        }
        let capabilities = &self.ready.agent.agent_capabilities;
        let methods = [
            (
                capabilities.session_capabilities.resume.as_ref().is_some_and(|resume| !resume.is_null()),
                "session/resume",
            ),
            (capabilities.load_session, LOAD),
        ];
        let (tools, servers) = self.own_tools();
        for (_, method) in methods.into_iter().filter(|(can, _)| *can) {
            let params = json!({ "sessionId": id, "cwd": self.settings.folder(), "mcpServers": servers });
            match self.call::<IgnoredAny>(method, params).await? {
                Ok(_) => {
                    if method == LOAD {
                        self.until_told_again(&id).await?;
                    }
                    self.set_mode(&id, &[]).await?;
                    return Ok(Some(AgentSession { id, connection: connection.number, tools }));
                }
                // Some agents say that they can, and cannot.
                Err(error) => {
                    debug!(agent = self.agent, method, error = error.message, "a session is not opened again");
                }
            }
        }
        connection.take_back(&id);
        Ok(None)
    }

    /// An agent tells the conversation again before its response to [`LOAD`], and some go on with it after that. Those updates belong to
    /// no prompt and are dropped, so that there must be none when one is sent.
    async fn until_told_again(&self, id: &Arc<str>) -> Result<(), AgentError> {
        let within = self.settings.start_timeout;
        let quiet = timeout(within, self.ready.connection.until_quiet(id, TOLD_AGAIN));
        quiet
            .await
            .map_err(|_| AgentError::Stalled(format!("it tells a session again for {within:?} (`start_timeout`)")))
    }

    async fn begin(&self, session: SessionId) -> Result<AgentSession, AgentError> {
        let (tools, servers) = self.own_tools();
        let params = json!({ "cwd": self.settings.folder(), "mcpServers": servers });
        let begun = self.call("session/new", params).await?;
        let NewSession { session_id, modes } = begun.map_err(|error| refusal("session/new", &error))?;
        let id: Arc<str> = session_id.into();
        if id.len() > MAX_ID {
            return Err(AgentError::Broken(format!("the id of its new session has more than {MAX_ID} bytes")));
        }
        if self.ready.connection.give(&id, session, SessionCost::New).is_some() {
            return Err(AgentError::Broken("its new session has the id of another one".to_owned()));
        }
        let modes = modes.unwrap_or_default().available_modes;
        self.set_mode(&id, &modes.into_iter().map(|mode| mode.id).collect::<Vec<_>>()).await?;
        info!(agent = self.agent, "an ACP agent has begun a session");
        Ok(AgentSession { id, connection: self.ready.connection.number, tools })
    }

    /// The token of a session that is opened, and the MCP servers that it is told. Agents call the server already while they open it.
    fn own_tools(&self) -> (Option<Arc<SessionToken>>, Vec<Value>) {
        let Some((run, tokens)) = self.tools.filter(|_| self.ready.agent.agent_capabilities.mcp_capabilities.http)
        else {
            return (None, Vec::new());
        };
        let token = SessionToken::issue(tokens);
        token.lend(run);
        let server = token.server(&run.url);
        (Some(Arc::new(token)), vec![server])
    }

    async fn set_mode(&self, session: &str, modes: &[String]) -> Result<(), AgentError> {
        let Some(mode) = &self.settings.mode else { return Ok(()) };
        let params = json!({ "sessionId": session, "modeId": mode });
        self.call::<IgnoredAny>("session/set_mode", params).await?.map(|_| ()).map_err(|error| {
            let modes = self.ready.connection.told(modes.join(", "));
            let has = if modes.is_empty() { String::new() } else { format!("; it has {modes}") };
            AgentError::Failed(format!("the mode {mode} cannot be set (`mode`): {}{has}", error.message))
        })
    }

    /// A request for which the agent may take `start_timeout`. The inner error is the agent's.
    async fn call<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<Result<T, RpcError>, AgentError> {
        let connection: &Connection = &self.ready.connection;
        let within = self.settings.start_timeout;
        match timeout(within, connection.call(method, params)).await {
            Ok(Ok(result)) => Ok(Ok(result)),
            Ok(Err(CallError::Refused(error))) => Ok(Err(error)),
            Ok(Err(CallError::Closed(reason))) => Err(AgentError::Broken(format!("its process has ended: {reason}"))),
            Ok(Err(CallError::Invalid(error))) => {
                Err(AgentError::Broken(format!("its answer to {method} cannot be read: {error}")))
            }
            Err(_) => {
                connection.give_up();
                Err(AgentError::Stalled(format!("no answer to {method} for {within:?} (`start_timeout`)")))
            }
        }
    }
}

/// What the agent says about a request that it does not do.
pub(crate) fn refusal(method: &str, error: &RpcError) -> AgentError {
    let RpcError { code, message, data } = error;
    if *code == AUTH_REQUIRED {
        return AgentError::Unreachable(format!(
            "it wants a login ({message}): log in with the agent's own program as the user of the gateway, or set its key in `env`"
        ));
    }
    let details = data.as_ref().and_then(Value::as_str).map(|data| format!(": {data}")).unwrap_or_default();
    AgentError::Refused { status: format!("{method} ({code})"), message: format!("{message}{details}") }
}
