//! Agent runtimes: they give a turn to an agent and return its outcome.
//!
//! | Kind | Type | Is |
//! | --- | --- | --- |
//! | `front-desk` | [`FrontDesk`] | the built-in default: needs no key and no network; says that no agent is configured |
//! | `anthropic` | [`Anthropic`] | a server with Anthropic's Messages API, streamed |
//! | `command` | [`Command`] | a program of the operator, started for each turn |
//! | `http` | [`Http`] | a service of the operator, which gets one request for each turn |
//! | `openai` | [`OpenAi`], [`OpenAiResponses`] | any server with OpenAI's Chat Completions API or its Responses API, streamed |
//! | `pull` | [`Pull`] | workers anywhere, which fetch turns over HTTP and post the answers |
//! | `cascade` | [`Cascade`] | other agents, of which the next one is asked if one fails |
//!
//! A runtime ends every run with an [`Outcome`](rejoinder_core::Outcome) or an
//! [`AgentError`](rejoinder_core::AgentError). It never decides what a person sees (the guard does), never sends
//! anything except through [`RunEvents`](rejoinder_core::RunEvents), keeps no state of a conversation, takes the time from
//! the turn and not from a clock, fetches no URL that a stranger named, and puts no key into a log line, an error or a
//! `Debug` output.
//!
//! To add a kind, add a module with its section ([`AgentSection`](rejoinder_config::AgentSection), with its part of the
//! manual) and a type that implements [`AgentRuntime`](rejoinder_core::AgentRuntime), a row in the table above, and a
//! descriptor in the list of `gateway/src/agents.rs`. `prompt` and `tools` hold what a model reads and can call, in no protocol's
//! form, `report` passes its text on to drafts, and `model` is the runtime of every kind with a model behind HTTP: such a kind's own
//! module holds its section and its protocol alone. Run
//! `rejoinder_core::runtime_conformance!` on a double of the agent. Chosen silence is an outcome
//! ([`Silent`](rejoinder_core::Outcome::Silent)), never a failure. An empty answer is a reply without text, which the guard
//! judges. An answer that was cut off is an error ([`Broken`](rejoinder_core::AgentError::Broken)), never half an answer.
//! Text for drafts passes through [`Shim`](rejoinder_core::Shim) before it is reported.

mod added;
mod anthropic;
mod approval;
pub mod asking;
mod attachments;
mod cascade;
mod command;
mod detect;
pub mod events;
mod file_kind;
mod front_desk;
mod http;
mod mcp_server;
mod model;
mod openai;
mod person_answer;
mod piece;
pub mod prompt;
mod pull;
pub mod report;
pub mod response;
mod section;
pub mod serving;
pub mod sessions;
mod supervise;
pub mod tail;
#[cfg(test)]
mod tests;
mod timeout;
mod tools;
mod wire;

pub use added::{AddedToPrompt, OfferedTool, PromptPiece, added_to_prompt, added_to_session};
pub use anthropic::{Anthropic, AnthropicSection};
pub use attachments::{MAX_DATA, MAX_FILES, attachment, default_name, text_attachment};
pub use cascade::{Cascade, CascadeMember, CascadeSection, Order};
pub use command::{Command, CommandSection, Memory, ProgramError, is_executable};
pub use detect::{FoundServer, Origin, ServerCandidates, find_local, list_models};
pub use file_kind::{FileKind, Sounds, Takes};
pub use front_desk::{FrontDesk, FrontDeskSection, NextStep, Status};
pub use http::{Http, HttpSection, openapi as http_openapi};
pub use mcp_server::McpServerSection;
pub use model::{Model, ModelSection, ModelStatus, ModelsError, MoreTools, SettingsError, redacted_url};
pub use openai::{OpenAi, OpenAiApi, OpenAiResponses, OpenAiSection, ResponsesSection, say_hello};
pub use piece::PieceName;
pub use pull::{Pull, PullSection, PullSettings, WorkerSection, openapi as pull_openapi};
pub use section::{PriceSection, SchedulesSection};
pub use supervise::{LONGEST_END, Supervisor, program_end, supervise};
pub use tools::{CallerTools, ForeignAnswer, ForeignTool, SessionTokens, TOKEN_PREFIX, Tool, ToolAnswer, ToolSource};
