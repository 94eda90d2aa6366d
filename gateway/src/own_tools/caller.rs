//! Where an agent is that calls tools.

use url::Url;

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
