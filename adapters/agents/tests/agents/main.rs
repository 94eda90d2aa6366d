//! Tests of the agent runtimes through `AgentRuntime`.

mod anthropic;
mod cascade;
mod claude;
mod command;
mod conformance;
mod detect;
mod double;
mod front_desk;
mod gpt;
mod http;
mod openai;
mod pull;
mod responses;
