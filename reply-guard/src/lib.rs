//! The promise: every turn that is owed an answer ends in exactly one user-visible signal.
//!
//! A signal is a reply, a deliberate reaction, or a deferral (a debt that is paid later). It counts when the
//! platform has acknowledged it. No turn is lost, left silent or answered twice. When no answer can be
//! delivered, the turn is a visible dead letter.
//!
//! This crate is a state machine and nothing else. It does no I/O, reads no clock and starts no task.
//! The caller passes an [`Event`] with its time, and carries out the [`Effect`]s that come back.
//!
//! ```
//! use rejoinder_guard::{Effect, Event, Expectation, Obligation, Outcome, Policy, Reply, Timestamp};
//!
//! let policy = Policy::default();
//! let now = Timestamp::from_millis(0);
//! let mut obligation = Obligation::open(Expectation::Answer, &policy, None, now);
//!
//! let decision = obligation.on(Event::Begin, &policy, now);
//! assert!(matches!(decision.effects[..], [Effect::Run { attempt: 1, .. }]));
//!
//! let decision = obligation.on(Event::Outcome(Outcome::Reply(Reply::text("Hello, Ada."))), &policy, now);
//! let [Effect::Send(signal)] = &decision.effects[..] else { unreachable!("an answer is sent") };
//! let claim = signal.get().claim;
//!
//! let _ = obligation.on(Event::Attempted { claim }, &policy, now);
//! let _ = obligation.on(Event::Delivered { claim, messages: vec!["m1".to_owned()] }, &policy, now);
//! assert!(obligation.state().is_final());
//! ```
//!
//! * [`Obligation`] is what is owed for one turn, and the only place that decides what a person sees.
//! * [`Cleared`] marks what the guard cleared. It has no public constructor, so nothing can be sent
//!   that the guard did not decide on.
//! * [`Policy`] holds the operator's settings: deadlines, limits, the fallback [`Ladder`] by [`Cause`].
//! * [`End`] is the order of precedence between the ends that compete for a turn.
//! * [`Shim`] removes silence markers and reasoning from the text stream of an agent runtime.
//!
//! # What the caller does
//!
//! 1. It stores the obligation and the rows that its [`Effect`]s insert or suppress in one transaction, by
//!    compare-and-swap on the row it read. When the swap fails, it reads and decides again.
//! 2. It stores [`Event::Attempted`] before it sends the first byte of an attempt. It reports how the attempt
//!    ended as one of `Delivered`, `PartDelivered`, `NotSent`, `Refused`, `Expired` and `Lost`, and before that as
//!    [`Event::MessageGone`] that there was nothing to edit.
//! 3. After a restart it sends [`Event::Recovered`] for every turn that was running, and
//!    [`Event::Lost`] for every attempt that was under way.
//! 4. It keeps an approval open from [`Effect::AskApproval`] until [`Event::Decided`], [`Effect::ApprovalExpired`] or
//!    [`Effect::ApprovalDropped`], each in the same transaction.
//! 5. It has asked somebody when it sends [`Event::Postponed`], and sends [`Event::Continued`] or [`Event::Cancelled`] when that
//!    is decided, or nobody did in time. For a turn that nobody told the person about, it sends [`Event::GivenUp`], unless
//!    somebody chose that they are told nothing.
//! 6. It passes what [`Effect::ToMerged`] says to the merged turns in the same transaction.
//! 7. It sends [`Event::Tick`] at [`Obligation::wake_at`], and [`Event::Begin`] when [`Obligation::is_waiting`]
//!    and it can run the turn.
//!
//! `tests/model` explores every order of these events within small bounds, and shows that each clause is needed.
//!
//! # Extending it
//!
//! A rung of the ladder: a variant in [`Rung`], its arm in `obligation/climb.rs`, its body in [`Body`].
//! An event: a variant in [`Event`], its arm in [`Obligation::on`], and its place in `tests/model` and
//! `tests/properties.rs`. A silence marker: an entry in `MARKERS` in `shim.rs`.

#![warn(missing_docs)]

mod cleared;
mod ladder;
mod obligation;
mod outcome;
mod policy;
mod precedence;
mod shim;
mod signal;
mod time;

pub use cleared::Cleared;
pub use ladder::{Cause, Ladder, Rung};
pub use obligation::{
    CancelledBy, Claim, Decision, DraftTarget, Effect, Event, Expectation, MergedTurn, Obligation, ObligationState,
    Settlement, Suppressed,
};
pub use outcome::{ApprovalOption, ApprovalRequest, Attachment, Choices, Outcome, Reply, SEALED};
pub use policy::{LateAnswer, OnUnknown, Policy};
pub use precedence::End;
pub use shim::{Shim, Silence, is_blank};
pub use signal::{Body, Draft, Signal, SignalKind, Via};
pub use time::Timestamp;
