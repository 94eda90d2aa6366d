//! What waits for somebody's decision: questions, approvals, the question about late messages, digests. What a decision
//! does to a turn is the ledger's.

pub(crate) mod approvals;
pub(crate) mod backlog_question;
pub(crate) mod digest;
pub(crate) mod expirer;
pub(crate) mod open;
