//! The loops beside the turns: deadlines and retries that are due, rows past their time, the search index, what agents are told
//! of their sessions, outcomes that were refused, the log of health, what other nodes tell. Nothing here accepts an event.

pub(crate) mod absence;
pub(crate) mod hints;
pub(crate) mod indexer;
pub(crate) mod prober;
pub(crate) mod refusals;
pub(crate) mod retention;
pub(crate) mod session_teller;
pub(crate) mod sweep;
pub(crate) mod watch;
