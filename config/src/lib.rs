//! The configuration of the gateway: `rejoinder.toml`, and `default.toml`, which is its manual.
//!
//! [`load`] puts three layers on each other: the built-in `default.toml`, the operator's file, and the
//! overrides of the environment (`REJOINDER__SERVER__LISTEN`). What comes out is a [`Config`] of plain structs,
//! checked; what is wrong comes out as [`ConfigErrors`], all of it at once, each [`Problem`] with its key and
//! the line or the variable that set it.
//!
//! It never acts on what it reads: it opens no socket and no database, and knows none of the crates that it
//! configures. It never prints a secret.
//!
//! **To add a key**: a field with its documentation in the section's struct, the bounds in its
//! `deserialize_with`, and a line with a comment in `default.toml`; a test fails until both are there. In a
//! table of which there may be many (a channel, an agent) the field has a serde default as well. **To add a section**: a file of
//! its name, and a line in `sections.rs`. **To add a platform or a kind of agent**: see `channels/mod.rs` and
//! `agents/mod.rs`.

mod admin;
mod agents;
mod channels;
mod check;
mod duration;
mod guard;
mod key;
mod log;
mod lookup;
mod node;
mod number;
mod outbox;
mod problem;
mod read;
mod routing;
mod secret;
mod sections;
mod server;
mod show;
mod size;
mod store;
mod text;

pub use crate::{
    admin::Admin,
    agents::{Agent, FrontDesk, KINDS, OpenAi},
    channels::{
        Access, AllowList, AutoJoin, Channels, Discord, DiscordPace, DiscordStreaming, DmPolicy, GroupPolicy, Matrix,
        MatrixPace, MatrixStreaming, PLATFORMS, Pace, People, REACTIONS, ReadReceipts, Streaming, Telegram,
        TelegramWebhook, UpdateMode, WebChat, Webhook,
    },
    guard::{
        Cause, Chat, Chats, Guard, Ladders, LateAnswer, OnUnknown, Question, Rung, Rungs, TEMPLATES, Template,
        Templates,
    },
    key::Key,
    log::{Log, LogFormat, LogLevel},
    lookup::{ConfigSource, DEFAULT_TOML, Environment, Loaded, Options, load, load_store},
    outbox::Outbox,
    problem::{ConfigErrors, Place, Problem},
    routing::Routing,
    secret::{Secret, Token},
    sections::Config,
    server::Server,
    size::Size,
    store::{Store, StoreUrl},
};
