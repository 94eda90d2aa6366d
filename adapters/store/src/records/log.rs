//! The log of events, and the audit.

use rejoinder_core::store::{AuditEntry, AuditRecord, LogEntry, Subject};

use super::columns::{record, records};

records! {
    pub(crate) fn entry(row) -> LogEntry { seq, at, topic, data; subject: subject(row)? }

    pub(crate) fn audit(row) -> AuditRecord {
        id, at;
        entry: record!(row => AuditEntry { by, action, target, reason, not_reached }),
        subject: subject(row)?,
    }

    fn subject(row) -> Subject { turn_id, conversation_id, channel }
}
