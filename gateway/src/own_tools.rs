//! The gateway's own tools, for agents that call them over the Model Context Protocol.

#[cfg(not(feature = "mcp"))]
mod left_out;
#[cfg(feature = "mcp")]
mod served;

use url::Url;

#[cfg(not(feature = "mcp"))]
pub(crate) use self::left_out::OwnTools;
#[cfg(feature = "mcp")]
pub(crate) use self::served::OwnTools;

/// Where an agent is that calls tools.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "nobody is told where the tools are"))]
pub(crate) enum Caller<'a> {
    /// On this machine.
    Here,
    /// At this URL.
    At(&'a Url),
    /// Nobody knows.
    Anywhere,
}
