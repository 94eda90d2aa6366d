//! A platform and an agent that do what a test tells them.
//!
//! [`Platform`] is where people are: it keeps what they see, and outlives the gateway.
//! [`ScriptedChannel`] is a gateway's way to it, [`ScriptedAgent`] an agent that acts by [`Script`].

mod agent;
mod channel;
mod platform;

pub use self::{
    agent::{End, Gate, Run, Script, ScriptedAgent, Step},
    channel::{ScriptedChannel, capabilities},
    platform::{Fault, Platform, Post, Seen},
};
