//! What waits for a person's decision: questions, approvals, the question about late messages, digests. What follows
//! for the turn is decided in `ledger`.

pub(crate) mod approvals;
pub(crate) mod backlog_question;
pub(crate) mod digest;
pub(crate) mod expirer;
pub(crate) mod first_pick;
pub(crate) mod open_questions;
pub(crate) mod request;
