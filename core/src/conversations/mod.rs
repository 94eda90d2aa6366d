//! What is known of a conversation beside its turns: its address, its sessions, what is open in it, when it was last
//! active. No turn runs here.

pub(crate) mod activity;
pub(crate) mod addresses;
pub(crate) mod loops;
pub(crate) mod sessions;
