//! Tests of the agent runtimes through `AgentRuntime`.

mod command;
mod anthropic;
mod claude;
mod cascade;
mod conformance;
mod detect;
mod double;
mod front_desk;
mod http;
mod openai;
mod pull;
