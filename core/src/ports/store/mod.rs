//! The port to the store: the transactions it writes and the rows it reads.
//!
//! The store guarantees three things. A write that returned is durable. A [`Transition`](transition::Transition) is atomic, and is
//! applied only if every turn it changes is at the version it was decided on. And accepting is atomic: an event is stored
//! with the turn it opens, or it is a duplicate and changes nothing.
//!
//! Runs and attempts carry the process that began them, their node. What a node leaves in flight, another one recovers. Which node
//! does what is decided by [leases](nodes::NodeStore). With a database that only one process can open, as SQLite's lock ensures, this
//! process holds them all, and every earlier node is over.
//!
//! The port is one trait for each noun, and [`Store`] is their sum: a constructor takes the traits that it uses. To add a query,
//! write it here in the trait of its noun, in SQL in `adapters/store`, and a check of it in `conformance/store`. To add a
//! database, implement the traits and run the suite `rejoinder_core::conformance::store` on it.

#![expect(missing_docs, reason = "a field or a variant has a comment where its name does not say it all")]

#[macro_use]
mod declare;

pub(crate) mod accept;
pub(crate) mod agent_sessions;
pub(crate) mod agreements;
pub(crate) mod channels;
pub(crate) mod day_use;
pub(crate) mod error;
pub(crate) mod files;
pub(crate) mod hints;
pub(crate) mod housekeeping;
pub(crate) mod keyring;
#[cfg(feature = "testing")]
pub mod layered;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod nodes;
pub(crate) mod outbox;
pub(crate) mod people;
pub(crate) mod pushes;
pub(crate) mod questions;
pub(crate) mod record;
pub(crate) mod schedules;
pub(crate) mod sessions;
pub(crate) mod state;
pub(crate) mod transition;
pub(crate) mod turns;
pub(crate) mod visitors;

use self::{
    accept::InboxStore,
    agent_sessions::AgentSessionStore,
    agreements::AgreementStore,
    channels::ChannelStore,
    files::FileStore,
    hints::HintStore,
    housekeeping::HousekeepingStore,
    keyring::KeyringStore,
    list::{OperatorStore, TokenStore},
    log::{LineStore, LogStore, SearchStore},
    nodes::NodeStore,
    outbox::OutboxStore,
    people::PeopleStore,
    pushes::PushStore,
    questions::QuestionStore,
    schedules::ScheduleStore,
    sessions::SessionStore,
    turns::{DeadlineStore, QueueStore, TurnStore, ViewStore},
    visitors::VisitorStore,
};

/// A complete store. The core never drops a future of its traits before it has completed.
pub trait Store:
    InboxStore
    + ChannelStore
    + TurnStore
    + ViewStore
    + QueueStore
    + DeadlineStore
    + SessionStore
    + AgentSessionStore
    + PeopleStore
    + PushStore
    + QuestionStore
    + ScheduleStore
    + OutboxStore
    + FileStore
    + LogStore
    + LineStore
    + SearchStore
    + OperatorStore
    + TokenStore
    + HousekeepingStore
    + NodeStore
    + AgreementStore
    + HintStore
    + KeyringStore
    + VisitorStore
{
}
