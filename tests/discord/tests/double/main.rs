//! Tests the server's Gateway and its process with a bare WebSocket. Independent clients check the rest, in `tests/judges`.

mod bare;
mod ending;
mod gateway;
