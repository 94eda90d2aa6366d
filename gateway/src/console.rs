//! What commands share with whoever sits at the terminal: questions, answers, findings and failures.

pub(crate) mod ask;
pub(crate) mod failure;
pub(crate) mod finding;
pub(crate) mod output;
pub(crate) mod secret;
pub(crate) mod toml;
