//! What a program that speaks for a person says beside their message.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What a person's program sends beside their message: the agent that is to answer, and the earlier lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brief {
    /// The agent that is to answer: before what is chosen for the session, and before the rules of routing. The channel has
    /// checked that it may be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// The model of that agent, if not its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The program's instructions to the agent. They are not the operator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// What was said before, oldest first, in place of the transcript; `None`: the transcript counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_before: Option<Vec<EarlierLine>>,
}

/// An earlier line, as the program tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierLine {
    /// Whether the agent said it, and not the person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_agents: bool,
    pub text: String,
}
