//! The types of the bodies in the OpenAPI description.

use serde::Serialize;
use utoipa::ToSchema;

use crate::wire::{WireObject, WireTurn};

/// A turn, with the lease under which the worker has it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a schema: the real value is written by `wire`")]
pub(super) struct LeasedTurn {
    #[serde(flatten)]
    turn: WireTurn<'static>,
    /// Is sent back with all that is about this turn.
    lease: String,
    /// When the lease ends, unless it is renewed.
    #[schema(format = DateTime)]
    lease_until: String,
}

/// How a turn ends: the lease, and an object that ends the run.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a schema: the real value is read by `wire`")]
pub(super) struct Answer {
    lease: String,
    #[serde(flatten)]
    object: WireObject,
}

/// What happens while a worker works on a turn.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a schema: the real value is read by `wire`")]
pub(super) struct Events {
    lease: String,
    /// None ends the run.
    events: Vec<WireObject>,
}

/// A lease.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a schema")]
pub(super) struct LeaseOnly {
    lease: String,
}

/// A lease that goes on.
#[derive(Serialize, ToSchema)]
pub(super) struct Renewed {
    /// When it ends, unless it is renewed.
    #[schema(format = DateTime)]
    pub(super) lease_until: String,
}

/// What became of reported events. The lease goes on.
#[derive(Serialize, ToSchema)]
pub(super) struct Reported {
    /// When the lease ends, unless it is renewed.
    #[schema(format = DateTime)]
    pub(super) lease_until: String,
    /// Whether a message that was sent (`send`) became the turn's answer.
    pub(super) sent: bool,
}

/// Why a request was refused (RFC 9457).
#[derive(ToSchema)]
#[expect(dead_code, reason = "a schema: the real type is `rejoinder_kit::Problem`")]
pub(super) struct WorkerProblem {
    /// The kind of problem: `urn:rejoinder:problem:` followed by a name.
    #[schema(example = "urn:rejoinder:problem:lease-ended")]
    r#type: String,
    /// The kind as a short text.
    title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What is wrong with this request.
    detail: String,
    /// The field of the body that is wrong.
    #[schema(nullable = false)]
    field: Option<String>,
}
