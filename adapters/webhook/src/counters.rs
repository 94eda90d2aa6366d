//! Counts a hook's requests by status.

use std::sync::OnceLock;

use axum::http::StatusCode;
use metrics::Counter;

pub(crate) const REQUESTS: &str = "rejoinder_hook_requests_total";

/// The statuses that a hook responds with. Others are not counted.
const STATUSES: [StatusCode; 16] = [
    StatusCode::OK,
    StatusCode::ACCEPTED,
    StatusCode::NO_CONTENT,
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::CONFLICT,
    StatusCode::GONE,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    StatusCode::UNPROCESSABLE_ENTITY,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::SERVICE_UNAVAILABLE,
];

/// One hook's counters. Each is looked up on its first use, because the recorder is installed by then.
pub(crate) struct Counters {
    hook: String,
    by_status: [OnceLock<Counter>; STATUSES.len()],
}

impl Counters {
    pub(crate) fn new(hook: String) -> Self {
        Self { hook, by_status: [const { OnceLock::new() }; STATUSES.len()] }
    }

    pub(crate) fn count(&self, status: StatusCode) {
        let Some(at) = STATUSES.iter().position(|known| *known == status) else { return };
        self.by_status[at]
            .get_or_init(
                || metrics::counter!(REQUESTS, "hook" => self.hook.clone(), "status" => status.as_str().to_owned()),
            )
            .increment(1);
    }
}
