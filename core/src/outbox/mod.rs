//! Sends stored deliveries to the platform. Nothing is sent that the guard did not clear, and nothing here decides what
//! a person is told.
//!
//! Every delivery is a row before it is sent, and rows are made only from signals and drafts that the guard cleared.

pub(crate) mod abandoned_edits;
pub(crate) mod account_line;
pub(crate) mod attempts;
pub(crate) mod caller;
pub(crate) mod calls;
pub(crate) mod dispatcher;
pub(crate) mod ephemerals;
pub(crate) mod files;
pub(crate) mod first_attempts;
pub(crate) mod gate;
pub(crate) mod health;
pub(crate) mod round;
pub(crate) mod speaking;
