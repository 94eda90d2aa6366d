//! What this node may do while other nodes work on the same store: its leases, the channels that it runs under them, and its share of the
//! agents' permits. Nothing here knows what is done under a lease.

pub(crate) mod grants;
pub(crate) mod hints;
pub(crate) mod leases;
pub(crate) mod neighbours;
pub(crate) mod supervision;
pub(crate) mod until;
