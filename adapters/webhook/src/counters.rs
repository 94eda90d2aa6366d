//! How many requests a hook had, by status.

use std::sync::OnceLock;

use axum::http::StatusCode;
use metrics::Counter;

/// The metric's name.
pub(crate) const REQUESTS: &str = "rejoinder_hook_requests_total";

/// The statuses that hooks answer with.
const STATUSES: [StatusCode; 14] = [
    StatusCode::OK,
    StatusCode::ACCEPTED,
    StatusCode::NO_CONTENT,
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::CONFLICT,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    StatusCode::UNPROCESSABLE_ENTITY,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::SERVICE_UNAVAILABLE,
];

/// One hook's counters. Each is looked up once, when it is first needed: by then the recorder is there.
pub(crate) struct Counters {
    hook: String,
    by_status: [OnceLock<Counter>; STATUSES.len()],
}

impl Counters {
    pub(crate) fn new(hook: String) -> Self {
        Self { hook, by_status: [const { OnceLock::new() }; STATUSES.len()] }
    }

    /// Counts a request that was answered with `status`.
    pub(crate) fn count(&self, status: StatusCode) {
        let Some(at) = STATUSES.iter().position(|known| *known == status) else { return };
        self.by_status[at]
            .get_or_init(
                || metrics::counter!(REQUESTS, "hook" => self.hook.clone(), "status" => status.as_str().to_owned()),
            )
            .increment(1);
    }
}
