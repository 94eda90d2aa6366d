//! `rejoinder chat` and `rejoinder ask`: talk to the running gateway in a terminal or a script.
//!
//! Both are clients of a web chat's socket (`docs/webchat-protocol.md`). [`connection`] keeps the socket open, [`book`] keeps what
//! is known of the turns, and [`block`] says what is shown of one.

mod ask;
mod block;
mod book;
mod chat;
mod connection;
mod door;
mod editor;
mod frames;
mod outbox;
mod save;
mod screen;

pub(super) use self::{
    ask::{Ask, HELP as ASK_HELP},
    chat::{Chat, HELP as CHAT_HELP},
};
