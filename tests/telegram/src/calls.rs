//! Records the bot's calls for assertions and for a log.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, LineWriter, Write as _},
    path::Path,
    time::Instant,
};

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    clock::unix_millis,
    error::{Answer, ApiError},
};

/// A method call, or a download (then `method` is `file`).
#[derive(Debug, Clone, Serialize)]
pub struct Call {
    /// The method in the Bot API's spelling, whatever the spelling of the call: `sendMessage`.
    pub method: String,
    /// The parameters as sent; unless the body was JSON, every value is a string.
    pub params: Value,
    /// The chat that the parameters name.
    pub chat: Option<i64>,
    /// When it arrived.
    #[serde(skip)]
    pub at: Instant,
    /// The result of its execution.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The name of the fault that affected it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<&'static str>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Not executed: still waiting, or stopped by a fault.
    None,
    /// Executed with this result, which a fault may have withheld from the caller.
    Result(Value),
    Error(ApiError),
}

impl Call {
    #[must_use]
    pub fn succeeded(&self) -> bool {
        matches!(self.outcome, Outcome::Result(_))
    }

    /// The error that it was rejected with.
    #[must_use]
    pub fn error(&self) -> Option<&ApiError> {
        match &self.outcome {
            Outcome::Error(error) => Some(error),
            _ => None,
        }
    }
}

/// All recorded calls, oldest first.
#[derive(Debug)]
pub(crate) struct Calls {
    keep: bool,
    kept: VecDeque<Call>,
    /// The number of the oldest call that is kept.
    first: usize,
    log: Option<LineWriter<File>>,
    total: u64,
}

impl Default for Calls {
    fn default() -> Self {
        Self { keep: true, kept: VecDeque::new(), first: 0, log: None, total: 0 }
    }
}

/// The number of a recorded call; `None` when calls are not kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallNumber(Option<usize>);

impl Calls {
    pub(crate) fn keep(&mut self, keep: bool) {
        self.keep = keep;
        if !keep {
            self.forget();
        }
    }

    pub(crate) fn forget(&mut self) {
        self.first += self.kept.len();
        self.kept.clear();
    }

    /// Also appends each further call to a file.
    pub(crate) fn log_to(&mut self, file: &Path) -> io::Result<()> {
        self.log = Some(LineWriter::new(File::options().create(true).append(true).open(file)?));
        Ok(())
    }

    /// Whether calls are recorded at all.
    pub(crate) fn wanted(&self) -> bool {
        self.keep || self.log.is_some()
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn kept(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.kept.iter()
    }

    pub(crate) fn began(&mut self, method: &str, params: impl FnOnce() -> Value, chat: Option<i64>) -> CallNumber {
        self.total += 1;
        if !self.keep {
            return CallNumber(None);
        }
        let outcome = Outcome::None;
        self.kept.push_back(Call {
            method: method.to_owned(),
            params: params(),
            chat,
            at: Instant::now(),
            outcome,
            fault: None,
        });
        CallNumber(Some(self.first + self.kept.len() - 1))
    }

    pub(crate) fn faulted(&mut self, number: CallNumber, fault: &'static str) {
        if let Some(call) = self.at(number) {
            call.fault = Some(fault);
        }
    }

    pub(crate) fn ended(&mut self, number: CallNumber, method: &str, params: impl FnOnce() -> Value, answer: &Answer) {
        if let Some(log) = &mut self.log {
            let mut line = json!({ "at": unix_millis(), "method": method, "params": params() });
            match answer {
                Ok(result) => line["result"] = result.clone(),
                Err(error) => line["error"] = json!(error),
            }
            // A failure to write the log does not affect the call.
            let _ = writeln!(log, "{line}");
        }
        self.settle(number, answer);
    }

    /// As [`Calls::ended`], without writing to the log.
    pub(crate) fn settle(&mut self, number: CallNumber, answer: &Answer) {
        if let Some(call) = self.at(number) {
            call.outcome = match answer {
                Ok(result) => Outcome::Result(result.clone()),
                Err(error) => Outcome::Error(error.clone()),
            };
        }
    }

    /// Writes an update that is pushed to the webhook to the log.
    pub(crate) fn pushed(&mut self, update: &str) {
        if let Some(log) = &mut self.log {
            let _ = writeln!(log, "{{\"at\":{},\"update\":{update}}}", unix_millis());
        }
    }

    fn at(&mut self, CallNumber(number): CallNumber) -> Option<&mut Call> {
        self.kept.get_mut(number?.checked_sub(self.first)?)
    }
}
