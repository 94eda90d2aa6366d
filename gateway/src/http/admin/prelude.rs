//! What the resources of the admin API have in common.

pub(super) use axum::{Json, extract::State, http::StatusCode};
pub(super) use serde::{Deserialize, Serialize};
pub(super) use utoipa::{IntoParams, ToSchema};

pub(super) use super::operation::{Accepted, Answered, Done, Empty, IdempotencyKey, Operation, Reason, act};
pub(super) use crate::{
    callers::Caller,
    http::{
        app::{App, Shared},
        error::{Answer, ApiError},
        paging::{self, Query, Segment, parsed},
        records::Records,
    },
    shapes::{body, item, names, page, query, whole},
    time::rfc3339,
};
