//! Which worker a request is from, and how long it waits.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use rejoinder_kit::{Peer, Problem, bearer};
use url::form_urlencoded;

use super::agent::{Caller, Pull};

/// The longest wait for a turn: as long as proxies usually allow.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// How long a worker waits that does not say.
const USUAL_WAIT: Duration = Duration::from_secs(30);

impl Pull {
    /// Finds out which worker a request is from.
    pub(super) async fn identify(&self, headers: &HeaderMap, peer: Peer) -> Result<Caller<'_>, Problem> {
        let surface = format!("agents.{}", self.name);
        let Some(sent) = bearer(headers) else {
            self.guesses.missing(peer, &surface);
            return Err(unauthorized("send the token of the agent or of a worker as `Authorization: Bearer TOKEN`"));
        };
        self.guesses.turn_of(peer, &surface, sent).await?;
        let Some(caller) = self.caller(sent, peer) else {
            self.guesses.wrong(peer, &surface);
            return Err(unauthorized("this token is neither that of the agent nor of one of its workers"));
        };
        self.guesses.right(peer, &surface, sent);
        Ok(caller)
    }
}

/// How long a worker waits for what it fetches.
pub(super) fn wait_of(parts: &Parts) -> Result<Duration, Problem> {
    let query = parts.uri.query().unwrap_or_default();
    let Some((_, wait)) = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "wait") else {
        return Ok(USUAL_WAIT);
    };
    let seconds: u32 = wait.parse().map_err(|_| {
        let detail = "`wait` must be a whole number of seconds, such as ?wait=30";
        Problem::new(StatusCode::BAD_REQUEST, "bad-wait", "Bad request: `wait` is no number", detail)
    })?;
    Ok(Duration::from_secs(seconds.into()).min(LONGEST_WAIT))
}

fn unauthorized(detail: &'static str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized: the worker is not known", detail)
        .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}
