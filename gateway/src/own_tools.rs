//! The gateway's own tools, for agents that call them over the Model Context Protocol.

mod caller;
#[cfg(not(feature = "mcp"))]
mod left_out;
#[cfg(feature = "mcp")]
mod served;

pub(crate) use self::caller::Caller;
#[cfg(not(feature = "mcp"))]
pub(crate) use self::left_out::OwnTools;
#[cfg(feature = "mcp")]
pub(crate) use self::served::OwnTools;
