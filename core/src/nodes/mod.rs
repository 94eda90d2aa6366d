//! What this node may do while other nodes work on the same store: its leases, and the channels that it runs under them. Nothing here
//! knows what is done under a lease.

pub(crate) mod leases;
pub(crate) mod neighbours;
pub(crate) mod supervision;
