//! What is written under a lease.
//!
//! The lease is locked as the first row of its transaction. So there is no deadlock: a transaction that waits for a lease holds nothing
//! that others wait for, and a node that takes leases waits for nothing else. From then on the lease is not granted to another node
//! before the transaction has ended, also if its time is over by then. A renewal does not wait for it.

use rejoinder_core::{
    StoreError,
    store::{Fence, LeaseName},
};

use super::rows::{self, Transaction};
use crate::postgres::{sql::lease_is_held, values::statement};

/// Whether the lease is still held as it was granted with this fence. A fence belongs to one grant, so it says which node holds it.
pub(super) async fn is_held(
    transaction: &mut Transaction<'_>,
    (name, Fence(fence)): &(LeaseName, Fence),
) -> Result<bool, StoreError> {
    let statement = statement!(LOCK, name.to_string(), fence);
    Ok(rows::one(transaction, statement, |_| Ok(())).await?.is_some())
}

const LOCK: &str =
    concat!("select 1 from leases as l where l.name = $1 and l.fence = $2 and ", lease_is_held!("l"), " for key share");
