//! The configuration of the gateway: how `rejoinder.toml` is read, and the sections that belong to no platform.
//!
//! [`load`] puts three layers on each other: the built-in manual, the operator's file, and the overrides of the
//! environment (`REJOINDER__SERVER__LISTEN`). What comes out is a [`Config`] of plain structs, checked; what is wrong
//! comes out as [`ConfigErrors`], all of it at once, each [`Problem`] with its key and the line or the variable that set
//! it.
//!
//! It knows no platform and no kind of agent: those give it their sections, in a [`Build`]. The manual is `default.toml`
//! with their parts in it. It never acts on what it reads: it opens no socket and no database. It never prints a secret.
//!
//! **To add a key**: a field with its documentation in the section's struct, the bounds in its `deserialize_with`, its
//! default (in `default.toml`; for a channel or an agent in the section's `Default`), and a line with a comment in
//! `default.toml` or the section's own part of the manual; a test fails until all are there. **To add a section**: a file
//! of its name, and a line in `sections.rs`. **To add a platform or a kind of agent**: a type that is a
//! [`ChannelSection`] or an [`AgentSection`], in the crate of its adapter.

mod admin;
mod agents;
mod boxed;
mod build;
mod channels;
mod check;
pub mod duration;
mod environment;
mod guard;
mod key;
mod log;
mod lookup;
mod names;
mod node;
pub mod number;
mod outbox;
mod people;
mod problem;
mod read;
mod routing;
mod secret;
mod sections;
mod server;
mod show;
mod shown;
mod size;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;

pub use crate::{
    admin::Admin,
    agents::{Agent, AgentKind, AgentSection},
    build::Build,
    channels::{Account, Channel, ChannelSection, Channels, Common, PlatformSection},
    check::{Checks, Section},
    environment::Environment,
    guard::{Chats, Guard, Ladders, Rungs, TEMPLATES, Template, Templates},
    key::Key,
    log::{Log, LogFormat, LogLevel},
    lookup::{ConfigSource, Loaded, Options, load, load_store},
    outbox::Outbox,
    people::{AllowList, Looks, People},
    problem::{ConfigErrors, Place, Problem},
    routing::Routing,
    secret::{Secret, Token},
    sections::Config,
    server::Server,
    size::Size,
    store::{Store, StoreUrl},
};
