//! The MCP servers of an agent, whose tools its model is offered.

mod found;
#[cfg(not(feature = "mcp-client"))]
mod left_out;
#[cfg(feature = "mcp-client")]
mod used;

pub(crate) use self::found::{FoundServer, FoundTool, Tried};
#[cfg(not(feature = "mcp-client"))]
pub(crate) use self::left_out::{probe, source};
#[cfg(feature = "mcp-client")]
pub(crate) use self::used::{probe, source};
