//! The permit of a run.

use crate::model::{AgentName, ChannelId};

/// The right to run one turn of an agent.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Permit {
    pub(crate) agent: AgentName,
    pub(crate) channel: ChannelId,
}
