//! The server's Gateway and its process, seen by a bare WebSocket. Clients that are not ours judge the rest, in
//! `tests/judges`.

mod bare;
mod ending;
mod gateway;
