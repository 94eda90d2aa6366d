//! The configuration of the gateway: how `rejoinder.toml` is read, and the sections that belong to no platform.
//!
//! [`load`] merges three layers: the built-in manual, the operator's file, and environment variables
//! (`REJOINDER__SERVER__LISTEN`). The result is a checked [`Config`] of plain structs, or [`ConfigErrors`] with every
//! [`Problem`] at once, each with its key and the line or variable that set it.
//!
//! This crate knows no platform and no kind of agent: they provide their sections in a [`Build`]. The manual is
//! `default.toml` with their parts inserted. The crate only reads: it opens no socket and no database. It never prints a
//! secret.
//!
//! **To add a key**: add a field to the section's struct, with its bounds in `deserialize_with`; a default (in
//! `default.toml`, or for a channel or an agent in the section's `Default`); and a line with a comment in `default.toml` or
//! in the section's part of the manual. A test fails until all of them exist. **To add a section**: add a file of its name,
//! and its lines in `sections.rs`. **To add a platform or a kind of agent**: implement [`ChannelSection`] or
//! [`AgentSection`] in the crate of its adapter.

mod admin;
mod agents;
mod alerts;
mod approvals;
mod boxed;
mod build;
mod channels;
mod check;
mod commands;
pub mod duration;
mod environment;
mod files;
mod foreign;
mod groups;
mod guard;
pub mod headers;
mod key;
mod limits;
mod log;
mod lookup;
mod metrics;
mod names;
mod network;
mod node;
pub mod number;
mod one_or_more;
mod outbox;
mod pairing;
mod people;
mod persons;
mod problem;
mod queue;
mod read;
mod redacted;
mod retention;
mod routing;
mod schedules;
mod secret;
mod sections;
mod server;
mod sessions;
mod show;
mod size;
mod span;
mod store;
mod system_prompt;
mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
mod triggers;
mod voice;

pub use crate::{
    admin::Admin,
    agents::{Agent, AgentKind, AgentSection},
    alerts::{AlertKind, AlertTarget, Alerts, OrOff, TimeOfDay, Zone},
    approvals::Approvals,
    build::Build,
    channels::{Account, Channel, ChannelKeys, ChannelSection, Channels, Common, DirectKeys, PlatformSection},
    check::{Checks, Section},
    commands::Commands,
    environment::Environment,
    files::Files,
    groups::{Group, Groups},
    guard::{
        Chats, Deadlines, Guard, HardDeadline, Ladders, Questions, Rungs, ScopedDeadlines, SoftDeadline, TEMPLATES,
        Template, Templates,
    },
    key::Key,
    limits::{Limits, SomeLimits},
    log::{KeepLevel, Log, LogFormat, LogLevel},
    lookup::{ConfigSource, Loaded, Options, Remembered, load, load_log, load_retention, load_store},
    metrics::Metrics,
    network::Network,
    outbox::Outbox,
    pairing::Pairing,
    people::{AllowList, IdFormat, People},
    persons::Persons,
    problem::{ConfigErrors, Origin, Problem},
    queue::Queue,
    retention::Retention,
    routing::Routing,
    schedules::Schedules,
    secret::{MIN_TOKEN, Secret, Token, TokenValue},
    sections::Config,
    server::Server,
    sessions::Sessions,
    size::Size,
    store::{PostgresUrl, Store, StoreUrl},
    system_prompt::SystemPrompt,
    telemetry::Telemetry,
    triggers::Triggers,
    voice::{Speech, Transcriptions, Voice},
};
