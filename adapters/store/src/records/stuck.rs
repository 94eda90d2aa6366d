//! What is overdue, gets nowhere, or was given up.

use rejoinder_core::store::{DeadTurn, OverdueTurn, ParkedDelivery};

use super::columns::records;

records! {
    pub(crate) fn overdue(row) -> OverdueTurn { seq, channel, agent, person, is_claimed, since: overdue_at }

    pub(crate) fn parked(row) -> ParkedDelivery { seq, channel, person, owed, error, since: created_at }

    pub(crate) fn dead(row) -> DeadTurn { seq, person, owed, since: ended_at }
}
