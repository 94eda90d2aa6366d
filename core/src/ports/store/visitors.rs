//! What people sign in to a chat page with.

use super::{error::StoreError, transition::Transitions};
use crate::model::{Identity, Invitation, Passkey, Visit};

store_trait! {
    /// Passkeys, visits and invitations of people. Those that are over are found as well.
    pub trait VisitorStore: Transitions {
        /// The passkey with this id.
        read fn passkey(id: &[u8]) -> Option<Passkey>;

        /// The passkeys of somebody, oldest first.
        read fn passkeys(of: &Identity) -> Vec<Passkey>;

        /// The visit whose secret has this digest.
        read fn visit(hash: &[u8; 32]) -> Option<Visit>;

        /// The visits of somebody, oldest first.
        read fn visits(of: &Identity) -> Vec<Visit>;

        /// The invitation whose code has this digest.
        read fn invitation(code: &[u8; 32]) -> Option<Invitation>;
    }
}
