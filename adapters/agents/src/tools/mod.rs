//! The tools with which a model can do something other than write text, in no protocol's form.
//!
//! | File | Contains |
//! | --- | --- |
//! | `offer` | which tools a run has, and how they are described |
//! | `call` | reads a call of one |
//! | `schedule` | the tool `schedule` |
//! | `chosen` | how several choices become one outcome |
//! | `run` | carries calls out, and combines what a run said and chose into its outcome |
//!
//! `react`, `ask`, `request_approval`, `defer` and `stay_silent` are choices: they end the run without another request. `send`
//! sends the answer at once. The model gets the result of `schedule`.

mod call;
mod chosen;
mod number;
mod offer;
mod run;
mod schedule;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    call::{ASK, REQUEST_APPROVAL, STAY_SILENT, ToolCall, can_react, looks_like_emoji, rfc3339, shortened},
    chosen::Choice,
    offer::{Tool, offered},
    run::{MAX_TOOL_NAME, RunState},
};
