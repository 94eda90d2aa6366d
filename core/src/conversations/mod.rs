//! What is known of a conversation beside its turns: its address, its sessions, what is open in it, when it was last
//! active. No turn runs here.

pub(crate) mod activity;
pub(crate) mod addresses;
pub(crate) mod inheritance;
pub(crate) mod loops;
pub(crate) mod session_of_turn;
pub(crate) mod sessions;
pub(crate) mod succession;
