//! Whether a lease that this node did not give is over.

use rejoinder_core::TurnId;

use super::{agent::Pull, leases::NotHeld};

impl Pull {
    /// Why a lease is not held. For [`NotHeld::Elsewhere`] the store is asked whether another node may have the turn.
    pub(super) async fn found_out(&self, turn: TurnId, why: NotHeld) -> NotHeld {
        let Some(handed_out) = self.handed_out.as_ref().filter(|_| why == NotHeld::Elsewhere) else { return why };
        let Ok(_asking) = self.asking.try_acquire() else { return NotHeld::NotYet };
        match handed_out.may_go_on(&self.name, turn).await {
            Ok(false) => NotHeld::Ended,
            Ok(true) => NotHeld::NotYet,
            Err(error) => {
                tracing::debug!(agent = &*self.name, turn_id = %turn, %error, "cannot read whether another node has a turn");
                NotHeld::NotYet
            }
        }
    }
}
