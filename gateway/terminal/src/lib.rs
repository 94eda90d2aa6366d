//! What the commands print, and `rejoinder chat` and `rejoinder ask`: talk to the running gateway in a terminal or a script.
//!
//! Both are clients of a web chat's socket (`docs/webchat-protocol.md`); the gateway's commands say where it is ([`Door`]).
//! `connection` keeps the socket open, `book` keeps what is known of the turns, and `block` says what is shown of one.

mod ask;
mod block;
mod book;
mod chat;
mod connection;
mod door;
mod editor;
pub mod failure;
mod frames;
mod outbox;
pub mod output;
mod save;
mod screen;
mod upload;

pub use self::{
    ask::{Ask, HELP as ASK_HELP, MAX_WAIT},
    chat::{Chat, HELP as CHAT_HELP},
    door::{Conversation, Door},
};
