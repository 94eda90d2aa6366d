//! Agent runtimes: what puts a turn before an agent and brings its outcome back.
//!
//! | Kind | Type | Is |
//! | --- | --- | --- |
//! | `front-desk` | [`FrontDesk`] | the default, built in: no key, no network, honest about being no agent |
//! | `openai` | [`OpenAi`] | any server that speaks OpenAI's Chat Completions, streamed |
//!
//! A runtime ends every run with an [`Outcome`](rejoinder_core::Outcome) or an honest
//! [`AgentError`](rejoinder_core::AgentError). It never decides what a person sees (that is the
//! guard's), never sends anything around [`RunEvents`](rejoinder_core::RunEvents), keeps no state of a
//! conversation, reads no clock for what it stores or says (the turn carries the time), fetches nothing that a
//! stranger named, and lets no key into a log line, an error or a `Debug` output.
//!
//! To add a kind: a module with its section ([`AgentSection`](rejoinder_config::AgentSection), and its part of the
//! manual beside it) and a type that implements [`AgentRuntime`](rejoinder_core::AgentRuntime), a row in the table
//! above, and a descriptor in the list of `gateway/src/agents.rs`. Chosen silence is an outcome
//! ([`Silent`](rejoinder_core::Outcome::Silent)) and never a failure; an empty answer is a reply without
//! text, which the guard judges; what was cut off is an error
//! ([`Broken`](rejoinder_core::AgentError::Broken)), never half an answer. Text for drafts goes through
//! [`Shim`](rejoinder_core::Shim) before it is reported.

mod detect;
mod front_desk;
mod openai;

pub use detect::{Found, Knows, ModelsError, Origin, Places, find_local, knows_model, list_models};
pub use front_desk::{FrontDesk, FrontDeskSection, Status};
pub use openai::{OpenAi, OpenAiSection, SettingsError, place};
