//! A platform and an agent that a test controls.
//!
//! [`Platform`] is the platform's server: it records what people see, and outlives the gateway. [`ScriptedChannel`] is
//! the adapter that connects a gateway to it. [`ScriptedAgent`] is an agent that follows a [`Script`]. [`ScriptedTranscriber`] hears
//! what a test says, and [`ScriptedSynthesizer`] speaks.

mod agent;
mod channel;
mod platform;
mod synthesizer;
mod transcriber;

pub use self::{
    agent::{Gate, Script, ScriptEnd, ScriptStep, ScriptedAgent, ScriptedRun},
    channel::{ScriptedChannel, capabilities},
    platform::{Fault, Platform, Post, SeenDelivery},
    synthesizer::ScriptedSynthesizer,
    transcriber::ScriptedTranscriber,
};
