//! The core of Rejoinder: types, ports, and the path of a turn.
//!
//! ```text
//! adapter ─► intake ─► scheduler ─► worker ─► agent
//!                                     │
//! adapter ◄─ dispatcher ◄─ ledger ◄─ guard
//! ```
//!
//! This crate knows no platform, no SQL and no HTTP client. Platforms are reached through
//! [`ChannelAdapter`], agents through [`AgentRuntime`], rows through [`Store`], and time through
//! [`Clock`]. What a person sees is decided only in `rejoinder-guard` and stored only by the `ledger` module.
//!
//! To add a platform or an agent runtime: implement its port in a crate under `adapters/`, run the suite
//! in `conformance` (feature `testing`) on it, and describe it to the gateway
//! (`gateway/src/platforms.rs`, `gateway/src/agents.rs`).

#![warn(missing_docs)]

mod access;
mod addresses;
mod channels;
mod commands;
#[cfg(feature = "testing")]
pub mod conformance;
mod crash;
mod engine;
pub mod explain;
mod hub;
mod intake;
mod ledger;
mod lifecycle;
mod markdown;
mod model;
mod outbox;
mod pauses;
mod ports;
mod router;
mod scheduler;
mod sweep;
mod timer;
mod visibility;
mod worker;

/// The port to the store, and the rows that it writes and reads.
pub mod store {
    pub use crate::{
        model::{
            stored_delivery::{DeliveryRecord, DeliveryState},
            turn::{Handler, TurnRecord, Version},
            view::{FallbackView, Shown, TurnStatus, TurnView},
        },
        ports::store::{
            Operator, Outbox, Store, StoreError, Turns,
            accept::{CursorMove, NewEvent, NewTurn, Stored},
            list::{TurnFilter, TurnListState, TurnSummary},
            record::{
                AbsentChannel, AttemptRecord, AuditEntry, Backlog, BlockedScope, Dossier, RunRecord, WaitingTurn,
            },
            transition::{
                AttemptEnd, AttemptStart, Commit, DeliveryChange, NewDelivery, NewSession, RunEnd, RunStart,
                TranscriptLine, Transition, TurnChange, Withdrawal,
            },
        },
    };
}

pub use commands::{COMMANDS, CommandHelp};
pub use engine::{Engine, Parts};
pub use hub::Watch;
pub use markdown::{read_markdown, row_cells, shows_anything, split_markdown};
pub use model::{
    access::{Access, AllowList, DirectPolicy, GroupPolicy},
    agent::{AgentFile, AgentName, AgentTurn, Deferred, HistoryLine, Speaker, Surface, Usage},
    capabilities::{Capabilities, Rate, Receipts, Resend, Support, TextLimit, TextUnit},
    conversation::{ChannelId, ChatKind, ConversationRef},
    delivery::{Action, Class, Content, Delivery, DeliveryError, Receipt, Scope},
    event::{Amends, Directed, EventKind, InboundEvent, Sender, SenderKind},
    ids::{ConversationId, DeliveryId, EventId, OwnerId, SessionId, TurnId},
    settings::{Policies, Question, Settings, Templates},
    turn::Handler,
    view::{FallbackView, Shown, TurnStatus, TurnView},
};
pub use pauses::Backoff;
pub use ports::{
    agent::{AgentError, AgentRuntime, RunEvent, RunEvents, SendResult},
    channel::{ChannelAdapter, ChannelError, ChannelHealth, FetchError},
    clock::{Clock, SharedClock, SystemClock},
    intake::{Accepted, Intake, IntakeError},
    store::{Store, StoreError},
};

pub use rejoinder_guard::{
    Attachment, CancelledBy, Cause, End, Expectation, Ladder, LateAnswer, Obligation, ObligationState, OnUnknown,
    Outcome, Policy, Reply, Rung, Settlement, Shim, SignalKind, Timestamp, Via, is_blank,
};
