//! Tests of the agent runtimes through `AgentRuntime`.

mod detect;
mod double;
mod front_desk;
mod openai;
