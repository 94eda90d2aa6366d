//! The loops beside the turns: deadlines and retries that are due, rows past their time, the search index, the log
//! of health. Nothing here accepts an event.

pub(crate) mod indexer;
pub(crate) mod retention;
pub(crate) mod sweep;
pub(crate) mod watch;
