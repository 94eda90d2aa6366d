//! The log of what happened, the gateway's own log, and the index for the search.

use std::sync::Arc;

use rejoinder_guard::Timestamp;

use super::{
    error::StoreError,
    list::{AuditFilter, AuditRecord, FoundLine, SearchFilter},
    state::StoreState,
};
use crate::model::{ErrorFilter, ErrorRecord, LogEntry, LogFilter, LogLine, LogLineFilter, LogLineRecord, LogSeq};

store_trait! {
    /// The log of what happened, and what operators did.
    pub trait LogStore: StoreState {
        /// Entries of the log.
        read fn log(filter: &LogFilter) -> Vec<LogEntry>;

        /// The position in the log before the first entry of `at` or later. The duration must not depend on how long the log is.
        read fn log_before(at: Timestamp) -> LogSeq;

        /// What operators did, newest first.
        read fn audit(filter: &AuditFilter) -> Vec<AuditRecord>;
    }
}

store_trait! {
    /// The gateway's own log: its lines, and its errors and warnings.
    pub trait LineStore {
        /// Adds lines to the gateway's own log, in one transaction. A line without a channel gets that of its turn. Errors and
        /// warnings are counted among the equal ones.
        write fn keep_lines(lines: Arc<[LogLine]>) -> ();

        /// The lines of the gateway's own log that match `filter`, newest first.
        read fn log_lines(filter: &LogLineFilter) -> Vec<LogLineRecord>;

        /// The errors and warnings of the gateway's own log, equal ones together; first those that happened last.
        read fn errors(filter: &ErrorFilter) -> Vec<ErrorRecord>;
    }
}

store_trait! {
    /// The index of what people and agents wrote.
    pub trait SearchStore: StoreState {
        /// Reads at most `limit` further entries of the log, and indexes the lines of the turns that ended, for
        /// [`search`](Self::search), in one transaction. Returns the position in the log up to which this was done: at least
        /// [`logged`](StoreState::logged) once nothing is left, also if the last entry is before that. It is 0 while all turns are
        /// indexed, at most `limit` at a time, because entries were removed before they were read. If that happens meanwhile, all are
        /// indexed once more after that.
        write fn index(limit: u32) -> LogSeq;

        /// The lines that were [indexed](Self::index) and match `filter`, newest first.
        read fn search(filter: &SearchFilter) -> Vec<FoundLine>;
    }
}
