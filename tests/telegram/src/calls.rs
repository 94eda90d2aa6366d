//! What the bot called, for assertions and for a log.

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

/// One call of a method, or one download (`method` is `file` then).
#[derive(Debug, Clone, Serialize)]
pub struct Call {
    /// As the Bot API writes it, whatever the call did: `sendMessage`.
    pub method: String,
    /// As they came: in anything but JSON, every value is a text.
    pub params: Value,
    /// The chat that the parameters name.
    pub chat: Option<i64>,
    /// When it came.
    #[serde(skip)]
    pub at: Instant,
    /// What was done; nothing while it waits, or when it was not executed.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What a fault did to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<&'static str>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Not executed: still waiting, or stopped by a fault.
    None,
    /// Executed, with this result, which a fault may have kept from the caller.
    Result(Value),
    /// Refused.
    Error(ApiError),
}

impl Call {
    /// Whether it was executed.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        matches!(self.outcome, Outcome::Result(_))
    }

    /// What it was refused with.
    #[must_use]
    pub fn error(&self) -> Option<&ApiError> {
        match &self.outcome {
            Outcome::Error(error) => Some(error),
            _ => None,
        }
    }
}

/// All calls, oldest first.
#[derive(Debug)]
pub(crate) struct Calls {
    keep: bool,
    kept: VecDeque<Call>,
    /// The number of the oldest that is kept.
    first: usize,
    log: Option<LineWriter<File>>,
    total: u64,
}

impl Default for Calls {
    fn default() -> Self {
        Self { keep: true, kept: VecDeque::new(), first: 0, log: None, total: 0 }
    }
}

/// Where a call stands in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place(Option<usize>);

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

    /// Writes each from now on to a file too.
    pub(crate) fn log_to(&mut self, file: &Path) -> io::Result<()> {
        self.log = Some(LineWriter::new(File::options().create(true).append(true).open(file)?));
        Ok(())
    }

    /// Whether somebody wants to see calls.
    pub(crate) fn wanted(&self) -> bool {
        self.keep || self.log.is_some()
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn kept(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.kept.iter()
    }

    pub(crate) fn began(&mut self, method: &str, params: impl FnOnce() -> Value, chat: Option<i64>) -> Place {
        self.total += 1;
        if !self.keep {
            return Place(None);
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
        Place(Some(self.first + self.kept.len() - 1))
    }

    pub(crate) fn faulted(&mut self, place: Place, fault: &'static str) {
        if let Some(call) = self.at(place) {
            call.fault = Some(fault);
        }
    }

    pub(crate) fn ended(&mut self, place: Place, method: &str, params: impl FnOnce() -> Value, answer: &Answer) {
        if let Some(log) = &mut self.log {
            let mut line = json!({ "at": unix_millis(), "method": method, "params": params() });
            match answer {
                Ok(result) => line["result"] = result.clone(),
                Err(error) => line["error"] = json!(error),
            }
            // A log that cannot be written is missed by who reads it; the calls go on.
            let _ = writeln!(log, "{line}");
        }
        self.settle(place, answer);
    }

    /// As [`Calls::ended`], for the transcript only.
    pub(crate) fn settle(&mut self, place: Place, answer: &Answer) {
        if let Some(call) = self.at(place) {
            call.outcome = match answer {
                Ok(result) => Outcome::Result(result.clone()),
                Err(error) => Outcome::Error(error.clone()),
            };
        }
    }

    /// Writes what a webhook was sent to the log.
    pub(crate) fn pushed(&mut self, update: &str) {
        if let Some(log) = &mut self.log {
            let _ = writeln!(log, "{{\"at\":{},\"update\":{update}}}", unix_millis());
        }
    }

    fn at(&mut self, Place(number): Place) -> Option<&mut Call> {
        self.kept.get_mut(number?.checked_sub(self.first)?)
    }
}
