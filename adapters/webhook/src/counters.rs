//! Counts a hook's requests by status.

use std::sync::OnceLock;

use axum::http::StatusCode;
use metrics::Counter;

pub(crate) const REQUESTS: &str = "rejoinder_hook_requests_total";

/// The statuses that a hook responds with. Others are not counted.
const STATUSES: [u16; 16] = [200, 202, 204, 400, 401, 404, 405, 408, 409, 410, 413, 415, 422, 429, 500, 503];

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
        let Some(at) = STATUSES.iter().position(|known| *known == status.as_u16()) else { return };
        self.by_status[at]
            .get_or_init(
                || metrics::counter!(REQUESTS, "hook" => self.hook.clone(), "status" => status.as_str().to_owned()),
            )
            .increment(1);
    }
}
