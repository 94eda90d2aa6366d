//! An agent behind a server with a model, whatever its [protocol].
//!
//! | File | Contains |
//! | --- | --- |
//! | `run` | the rounds of a run, and the retry of a request |
//! | `request` | a request's body, and what the operator sees of it (no I/O) |
//! | `answer` | an answer while it arrives (no I/O) |
//! | `dialect` | which parts of the API a server refused |
//! | `server` | a server, and how it is reached |
//! | `protocol` | what the kinds differ in |
//! | `section` | a section, as the gateway uses it |
//! | `listed` | which models a server has |
//! | `exchange` | one request and its answer: HTTP, timeouts, which errors are retried |
//!
//! A run is one request, plus another one whenever the model must learn the result of a tool call (an invalid call, or a
//! `send` that was not sent), [`MAX_ROUNDS`](run::MAX_ROUNDS) in total, or [`MAX_TOOL_ROUNDS`](run::MAX_TOOL_ROUNDS) if it has
//! tools that are not the gateway's own. A choice (`react`, `ask`, `defer`, `stay_silent`), or a
//! `send` that became the turn's answer, ends the run without another request.

#![expect(private_bounds, reason = "only the kinds of this crate are protocols")]

mod answer;
mod dialect;
mod exchange;
mod listed;
mod protocol;
mod request;
mod run;
mod section;
mod server;

#[cfg(test)]
pub(crate) use self::request::Request;
pub(crate) use self::{
    answer::{Answer, AnswerError, AnswerText, MAX_CALLS, Stage},
    dialect::Dialect,
    listed::list,
    protocol::Protocol,
    request::write_elements,
    section::ModelKind,
    server::count_request,
};
pub use self::{
    listed::{ModelStatus, ModelsError},
    section::{ModelSection, MoreTools},
    server::{Model, SettingsError, redacted_url},
};
