//! The methods of the protocol. No session: the run is that of the request's token.

use std::{pin::pin, sync::Arc, time::Duration};

use axum::http::request::Parts;
use rejoinder_agents::{Tool, ToolAnswer};
use rejoinder_kit::Place;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        self, CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        JsonObject, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities,
        ServerConfig,
    },
    service::RequestContext,
};
use tokio::time::{Instant, sleep_until};

use crate::runs::RunHandle;

/// How often a client that asks for it hears that a call still waits, so that it does not give up.
const PROGRESS: Duration = Duration::from_secs(15);

const INSTRUCTIONS: &str = "The tools of the chat that you answer in. They hold for this turn only. At most one of react, ask, defer, \
                            stay_silent, request_approval and send decides how your turn ends; without one, what you write is your \
                            answer. After request_approval, and after ask with wait, your turn goes on once the call has returned.";

/// Why a session calls in vain.
const NO_RUN: &str = "no turn of this session is answered now: call while you answer one";

/// The server of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolServer;

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let own = Implementation::new("rejoinder", env!("CARGO_PKG_VERSION")).with_title("Rejoinder");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(own)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = run_of(&context)?.tools().iter().map(|tool| described(tool)).collect();
        let mut listed = ListToolsResult::with_all_items(tools);
        // They are those of one run.
        listed.cache_scope = Some(CacheScope::Private);
        Ok(listed)
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let run = run_of(&context)?;
        let names: Vec<_> = run.tools().iter().map(|tool| &*tool.name).collect();
        if !names.contains(&&*call.name) {
            let known = names.join(", ");
            return Err(ErrorData::invalid_params(
                format!("there is no such tool in this turn; there are {known}"),
                None,
            ));
        }
        let arguments = serde_json::to_string(&call.arguments.unwrap_or_default()).expect("JSON serialises to JSON");
        let place = extension_of::<Place>(&context);
        let mut answered = pin!(run.call(call.name.into_owned(), arguments, place.as_ref()));
        let (progress, mut next, mut told) = (context.meta.get_progress_token(), Instant::now() + PROGRESS, 0.0);
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut answered => break answer,
                // Nobody reads it. The call makes room for another one.
                () = context.ct.cancelled() => return Err(ErrorData::internal_error("the client has gone", None)),
                () = sleep_until(next), if progress.is_some() => {
                    (next, told) = (next + PROGRESS, told + 1.0);
                    let waits = progress.clone().map(|token| ProgressNotificationParam::new(token, told));
                    if let Some(waits) = waits {
                        // The client may have gone.
                        let _ = context.peer.notify_progress(waits.with_message("it waits")).await;
                    }
                }
            }
        };
        Ok(result(answer).into())
    }
}

/// The run that the routes have found for the request.
fn run_of(context: &RequestContext<RoleServer>) -> Result<RunHandle, ErrorData> {
    extension_of(context).ok_or_else(|| ErrorData::invalid_request(NO_RUN, None))
}

fn extension_of<T: Clone + Send + Sync + 'static>(context: &RequestContext<RoleServer>) -> Option<T> {
    context.extensions.get::<Parts>()?.extensions.get().cloned()
}

fn described(tool: &Tool) -> model::Tool {
    let schema: JsonObject = serde_json::from_str(tool.parameters.get()).expect("a schema is an object");
    model::Tool::new(tool.name.clone(), tool.description.clone(), Arc::new(schema))
}

fn result(ToolAnswer { text, is_error }: ToolAnswer) -> CallToolResult {
    let content = vec![ContentBlock::text(text)];
    if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) }
}
