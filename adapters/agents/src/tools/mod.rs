//! The tools with which a model can do something other than write text, in no protocol's form.
//!
//! | File | Contains |
//! | --- | --- |
//! | `offer` | which tools a run has, and how they are described |
//! | `answer` | the result of a call |
//! | `call` | reads a call of one |
//! | `file` | the tool `send_file` |
//! | `schedule` | the tool `schedule` |
//! | `search` | the tool `search_history` |
//! | `chosen` | how several choices become one outcome |
//! | `foreign` | tools that are not the gateway's own, and their approvals |
//! | `run` | carries calls out, and combines what a run said and chose into its outcome |
//! | `callers` | the same for an agent that calls the tools itself, while it runs |
//! | `session_tokens` | tokens that open them, also for an agent that is told one once in a session |
//!
//! `react`, `ask`, `request_approval`, `defer` and `stay_silent` are choices: they end the run without another request. `send`
//! sends the answer at once. The model gets the result of `send_file`, `schedule`, `search_history` and tools that are not the
//! gateway's own.

mod answer;
mod call;
mod callers;
mod chosen;
mod file;
mod foreign;
mod number;
mod offer;
mod run;
mod schedule;
mod search;
mod session_tokens;
#[cfg(test)]
mod tests;

pub use self::{
    answer::ToolAnswer,
    callers::CallerTools,
    foreign::{ForeignAnswer, ForeignTool, ToolSource},
    offer::Tool,
    session_tokens::{SessionTokens, TOKEN_PREFIX},
};
pub(crate) use self::{
    call::{ASK, REQUEST_APPROVAL, STAY_SILENT, ToolCall, can_react, looks_like_emoji, rfc3339, shortened},
    chosen::Choice,
    file::{SEND_FILE, drop_bytes, without_bytes},
    foreign::ForeignCalls,
    offer::offered,
    run::{MAX_TOOL_NAME, RunState},
    session_tokens::{end_of_token, without_tokens},
};
