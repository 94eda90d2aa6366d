//! What people sign in to a chat page with, and their conversations there.

use rejoinder_core::store::{Invitation, Passkey, ThreadSummary, Visit};

use super::columns::records;

records! {
    pub(crate) fn passkey(row) -> Passkey {
        id, channel, account, party, algorithm, key, counter, browser, added_at, used_at
    }

    pub(crate) fn visit(row) -> Visit { id, hash, channel, account, challenge, browser, opened_at, expires_at }

    pub(crate) fn invitation(row) -> Invitation { code, channel, account, expires_at }

    pub(crate) fn thread(row) -> ThreadSummary { thread, first, last, at }
}
