//! The data types of the core: plain data that uses nothing else of this crate.

#![expect(missing_docs, reason = "a field or a variant has a comment where its name does not say it all")]

#[macro_use]
mod named;

pub(crate) mod access;
pub(crate) mod agent;
pub(crate) mod agent_session;
pub(crate) mod approval;
pub(crate) mod approvers;
pub(crate) mod brief;
pub(crate) mod capabilities;
pub(crate) mod command;
pub(crate) mod conversation;
pub(crate) mod conversation_trigger;
pub(crate) mod cron;
pub(crate) mod day;
pub(crate) mod delivery;
pub(crate) mod down;
pub(crate) mod event;
pub(crate) mod file_budget;
pub(crate) mod file_bytes;
pub(crate) mod file_links;
pub(crate) mod file_type;
pub(crate) mod finding;
pub(crate) mod ids;
pub(crate) mod language;
pub(crate) mod line;
pub(crate) mod log;
pub(crate) mod masker;
pub(crate) mod name;
pub(crate) mod nul;
pub(crate) mod people;
pub(crate) mod push;
pub(crate) mod question;
pub(crate) mod queue;
pub(crate) mod routing;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod sound_length;
pub(crate) mod stored_delivery;
pub(crate) mod stored_file;
pub(crate) mod target;
pub(crate) mod tokens;
pub(crate) mod trace;
pub(crate) mod turn;
pub(crate) mod unread;
pub(crate) mod view;
pub(crate) mod visitors;
pub(crate) mod voice;
pub(crate) mod words;

pub(crate) use self::{
    access::*, agent::*, agent_session::*, approval::*, approvers::*, brief::*, capabilities::*, command::*,
    conversation::*, conversation_trigger::*, day::*, delivery::*, down::*, event::*, file_budget::*, file_bytes::*,
    file_links::*, finding::*, ids::*, language::*, line::*, log::*, masker::*, name::clean, nul::*, people::*,
    push::*, question::*, queue::*, routing::*, run::*, schedule::*, search::*, session::*, settings::*,
    stored_delivery::*, stored_file::*, target::*, tokens::*, trace::*, turn::*, unread::*, view::*, visitors::*,
    voice::*, words::*,
};
