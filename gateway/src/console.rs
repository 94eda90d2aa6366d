//! Terminal input and output: questions, answers, findings and failures.

pub(crate) mod ask;
pub(crate) mod command;
pub(crate) mod finding;
pub(crate) mod secret;
pub(crate) mod toml;

pub(crate) use rejoinder_terminal::{failure, output};
