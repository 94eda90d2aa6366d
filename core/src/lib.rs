//! Types, ports, and the path a turn takes.
//!
//! ```text
//! adapter ─► intake ─► router ─► conversation ─► worker ─► agent
//!                                                  │
//!            adapter ◄─ dispatcher ◄─ outbox ◄─ guard
//! ```
//!
//! This crate knows no platform, no SQL and no HTTP client. Platforms are reached through
//! [`ChannelAdapter`], agents through [`AgentRuntime`], rows through [`Store`], and time through
//! [`Clock`]. What a person gets to see is decided in one place, `rejoinder-guard`, and stored in one
//! place, the `ledger` module.
//!
//! To add a platform or an agent runtime: implement its port in a crate of its own under `adapters/`,
//! run the suite in `conformance` (feature `testing`) on it, and describe it to the gateway
//! (`gateway/src/platforms.rs`, `gateway/src/agents.rs`).

mod access;
mod agent;
mod backoff;
mod channel;
mod clock;
mod commands;
#[cfg(feature = "testing")]
pub mod conformance;
mod conversation;
mod crash;
mod delivery;
mod engine;
mod event;
pub mod explain;
mod hub;
mod ids;
mod intake;
mod ledger;
mod markdown;
mod outbox;
mod router;
mod seen;
mod settings;
pub mod store;
mod sweep;
mod worker;

pub use access::{Access, AllowList, DirectPolicy, GroupPolicy};
pub use agent::{
    AgentError, AgentFile, AgentName, AgentRuntime, AgentTurn, Deferred, Line, RunEvent, RunEvents, SendResult,
    Speaker, Usage,
};
pub use backoff::Backoff;
pub use channel::{
    Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId, ChatKind, ConversationRef, FetchError, Rate,
    Receipts, Resend, Support, TextLimit, TextUnit,
};
pub use clock::{Clock, SharedClock, SystemClock};
pub use commands::{AGENT as GATEWAY_AGENT, COMMANDS, CommandHelp};
pub use delivery::{Action, Class, Content, Delivery, DeliveryError, Receipt, Scope};
pub use engine::{Engine, Parts};
pub use event::{Amends, Directed, EventKind, InboundEvent, Sender, SenderKind};
pub use hub::Watch;
pub use ids::{ConversationId, DeliveryId, EventId, RunId, SessionId, TurnId};
pub use intake::{Accepted, Intake, IntakeError};
pub use markdown::{read_markdown, shows_anything, split_markdown};
pub use settings::{Policies, Question, Settings, Words};
pub use store::{FallbackView, Shown, Store, StoreError, TurnStatus, TurnView};

pub use rejoinder_guard::{
    Attachment, Cause, End, Expectation, Ladder, LateAnswer, Obligation, OnUnknown, Outcome, Policy, Reply, Rung,
    Settlement, Shim, SignalKind, State, Timestamp, Via, is_blank,
};
