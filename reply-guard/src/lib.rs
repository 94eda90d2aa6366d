//! The promise: every turn that is owed an answer ends in exactly one user-visible signal.
//!
//! This crate is a state machine and nothing else. It does no I/O, reads no clock and starts no
//! task: what happened comes in as an [`Event`] with the time it happened at, what must be done
//! comes out as [`Effect`]s. The caller stores the [`Obligation`] and the effects in one
//! transaction, by compare-and-swap, and only then acts on them.
//!
//! * [`Obligation`] is what is owed for one turn, and the only place that decides what a person sees.
//! * [`Cleared`] marks what the guard let through. It has no public constructor, so nothing can be
//!   sent that the guard did not decide on.
//! * [`Policy`] is what the operator chose: deadlines, the fallback [`Ladder`] by [`Cause`].
//! * [`Shim`] takes the silence markers of other people's runtimes out of a stream.
//!
//! To add a rung to the ladder: a variant in [`Rung`], its arm in `Obligation::climb`, its body in
//! [`Body`]. To add an event: a variant in [`Event`], its arm in [`Obligation::on`], and its place in
//! the model of `tests/model.rs`, which explores every order in which events can meet.

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
pub use obligation::{Decision, Effect, Event, Expectation, Obligation, Settlement, State, Suppressed};
pub use outcome::{Attachment, Outcome, Reply};
pub use policy::{LateAnswer, OnUnknown, Policy};
pub use precedence::End;
pub use shim::{Shim, Silence};
pub use signal::{Body, Draft, Signal, SignalKind, Via};
pub use time::Timestamp;
