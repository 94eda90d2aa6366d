//! Keeps Discord's rate limits: those in its headers, those in its 429s, and the limit on refused calls
//! (<https://discord.com/developers/docs/topics/rate-limits>).

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use parking_lot::Mutex;
use rejoinder_core::{MAX_RETRY_AFTER, Scope, Timestamp};
use reqwest::{Method, StatusCode, header::HeaderMap};

use crate::errors::Limit;

/// How long a limit lasts if Discord does not say.
const DEFAULT_LIMIT: Duration = Duration::from_secs(5);

/// The time window in which refused calls are counted.
const WINDOW: Duration = Duration::from_mins(10);

/// How many refused calls (401, 403, 429) in the window hold back all calls. Discord bans an IP address after 10,000
/// ("Invalid Request Limit"), and other programs may share ours.
const MAX_REFUSED: usize = 1_000;

const HELD_BACK: Duration = Duration::from_mins(1);

/// How many limited routes are remembered. Above this, the half whose limits end first is forgotten.
const MAX_ROUTES: usize = 4_096;

/// The calls that share a limit: a method on a kind of resource, in one channel, server or webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Route(String);

impl Route {
    pub(crate) fn of(method: &Method, path: &str) -> Self {
        Self(format!("{method} {}", Self::normal(path, false)))
    }

    /// A path without its secrets, for logs.
    pub(crate) fn name(path: &str) -> String {
        Self::normal(path, true)
    }

    fn normal(path: &str, hides_tokens: bool) -> String {
        let path = path.split('?').next().unwrap_or_default();
        let mut normal = String::with_capacity(path.len());
        let mut segments = path.split('/').filter(|segment| !segment.is_empty());
        let first = segments.next().unwrap_or_default();
        normal.push_str(first);
        for (index, segment) in segments.enumerate() {
            let is_major = index == 0 && matches!(first, "channels" | "guilds" | "webhooks");
            let is_token = index == 1 && matches!(first, "webhooks" | "interactions");
            let is_emoji = normal.ends_with("/reactions");
            normal.push('/');
            normal.push_str(match segment {
                _ if is_token && hides_tokens => "…",
                _ if is_major || (is_token && first == "webhooks") => segment,
                _ if is_token || is_emoji || segment.parse::<u64>().is_ok() => "*",
                _ => segment,
            });
        }
        normal
    }

    /// Whether the call needs the bot's token. A call for an interaction has its own token in the path.
    pub(crate) fn needs_token(&self) -> bool {
        !self.is_of_an_interaction()
    }

    /// Calls for an interaction do not count against the global limit.
    fn is_of_an_interaction(&self) -> bool {
        let path = self.0.split_once(' ').map_or("", |(_, path)| path);
        path.starts_with("webhooks/") || path.starts_with("interactions/")
    }
}

#[derive(Default)]
pub(crate) struct Limits(Mutex<LimitState>);

#[derive(Default)]
struct LimitState {
    /// Until when they are used up.
    routes: HashMap<Route, Timestamp>,
    /// Until when only one more call may be made.
    last_calls: HashMap<Route, Timestamp>,
    everything: Option<Timestamp>,
    refused: VecDeque<Timestamp>,
    held_back: Option<Timestamp>,
}

impl Limits {
    /// Checks that no known limit blocks a call now.
    pub(crate) fn check(&self, route: &Route, now: Timestamp) -> Result<(), Limit> {
        let mut state = self.0.lock();
        if state.routes.get(route).is_some_and(|until| *until <= now) {
            state.routes.remove(route);
        }
        let limit =
            |until: Timestamp, scope, why: &str| Limit { retry_after: until.since(now), scope, why: why.to_owned() };
        if let Some(until) = state.held_back.filter(|until| *until > now) {
            return Err(limit(until, Scope::Account, "too many calls were refused recently"));
        }
        if let Some(until) = state.everything.filter(|until| *until > now && !route.is_of_an_interaction()) {
            return Err(limit(until, Scope::Account, "the application is rate limited"));
        }
        match state.routes.get(route) {
            Some(until) => Err(limit(*until, Scope::Conversation, "the channel is rate limited")),
            None => Ok(()),
        }
    }

    /// How long to wait until more than one call may be made; `None`: as far as is known, it may be made now.
    pub(crate) fn last_call(&self, route: &Route, now: Timestamp) -> Option<Duration> {
        let until = self.0.lock().last_calls.get(route).copied().filter(|until| *until > now)?;
        Some(until.since(now))
    }

    /// Notes a response's status and its limits for later calls.
    pub(crate) fn note(&self, route: &Route, status: StatusCode, headers: &HeaderMap, now: Timestamp) {
        let mut state = self.0.lock();
        // A 429 for a resource shared with others does not count towards a ban.
        let is_shared = text(headers, "x-ratelimit-scope") == Some("shared");
        if matches!(status.as_u16(), 401 | 403 | 429) && !is_shared {
            state.refused.push_back(now);
            while state.refused.front().is_some_and(|at| now.since(*at) > WINDOW) || state.refused.len() > MAX_REFUSED {
                state.refused.pop_front();
            }
            if state.refused.len() >= MAX_REFUSED {
                state.held_back = Some(now + HELD_BACK);
            }
        }
        let reset = number(headers, "x-ratelimit-reset-after").map(|reset| now + seconds(reset));
        let left: Option<u32> = text(headers, "x-ratelimit-remaining").and_then(|left| left.trim().parse().ok());
        match (left, reset) {
            (Some(0), Some(reset)) => note_until(&mut state.routes, route, reset),
            (Some(1), Some(reset)) => note_until(&mut state.last_calls, route, reset),
            (Some(_), _) => {
                state.last_calls.remove(route);
            }
            (None, _) => {}
        }
    }

    /// Notes a 429 and returns its limit.
    pub(crate) fn note_limited(
        &self,
        route: &Route,
        headers: &HeaderMap,
        stated: Option<Duration>,
        is_global: bool,
        now: Timestamp,
    ) -> Limit {
        let retry_after = stated
            .or_else(|| number(headers, "retry-after").map(seconds))
            .or_else(|| number(headers, "x-ratelimit-reset-after").map(seconds))
            .unwrap_or(DEFAULT_LIMIT)
            .min(MAX_RETRY_AFTER);
        let is_global = is_global
            || headers.contains_key("x-ratelimit-global")
            || text(headers, "x-ratelimit-scope") == Some("global");
        let mut state = self.0.lock();
        if is_global {
            state.everything = state.everything.max(Some(now + retry_after));
        } else {
            note_until(&mut state.routes, route, now + retry_after);
        }
        Limit {
            retry_after,
            scope: if is_global { Scope::Account } else { Scope::Conversation },
            why: format!("429 for {retry_after:?}"),
        }
    }

    pub(crate) fn is_held_back(&self, now: Timestamp) -> bool {
        self.0.lock().held_back.is_some_and(|until| until > now)
    }
}

fn note_until(routes: &mut HashMap<Route, Timestamp>, route: &Route, until: Timestamp) {
    if routes.len() >= MAX_ROUTES {
        // The limits that end later are worth more.
        let mut ends: Vec<_> = routes.values().copied().collect();
        ends.sort_unstable();
        let middle = ends[ends.len() / 2];
        routes.retain(|_, end| *end > middle);
    }
    let end = routes.entry(route.clone()).or_insert(until);
    *end = (*end).max(until);
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn number(headers: &HeaderMap, name: &str) -> Option<f64> {
    text(headers, name)?.trim().parse().ok()
}

fn seconds(number: f64) -> Duration {
    Duration::from_secs_f64(number.clamp(0.0, 86_400.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn headers(of: &[(&'static str, &'static str)]) -> HeaderMap {
        of.iter().map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))).collect()
    }

    fn sends(channel: u64) -> Route {
        Route::of(&Method::POST, &format!("channels/{channel}/messages"))
    }

    #[test]
    fn a_route_is_a_resource_in_a_channel() {
        let route = |path: &str| Route::of(&Method::PATCH, path);

        assert_eq!(route("channels/1/messages/2"), route("channels/1/messages/3?x=y"));
        assert_ne!(route("channels/1/messages/2"), route("channels/2/messages/2"));
        assert_eq!(route("channels/1/messages/2/reactions/👍/@me"), route("channels/1/messages/2/reactions/👎/@me"));
        assert_ne!(route("webhooks/1/token/messages/2"), route("webhooks/1/other/messages/2"));
        assert!(!Route::name("webhooks/1/token/messages/2").contains("token"));
        assert!(!Route::name("interactions/1/token/callback").contains("token"));
    }

    #[test]
    fn what_is_used_up_is_not_asked_for() {
        let limits = Limits::default();
        let last = headers(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset-after", "1.5")]);

        limits.note(&sends(1), StatusCode::OK, &last, at(0));

        let held = limits.check(&sends(1), at(500)).expect_err("used up");
        assert_eq!((held.retry_after, held.scope), (Duration::from_secs(1), Scope::Conversation));
        assert!(limits.check(&sends(2), at(500)).is_ok());
        assert!(limits.check(&sends(1), at(1500)).is_ok());
    }

    #[test]
    fn the_last_call_is_known_until_there_are_more() {
        let limits = Limits::default();
        let left = |calls: &'static str| headers(&[("x-ratelimit-remaining", calls), ("x-ratelimit-reset-after", "5")]);
        let note = |calls| limits.note(&sends(1), StatusCode::OK, &left(calls), at(0));

        note("2");
        assert_eq!(limits.last_call(&sends(1), at(0)), None);
        note("1");
        assert_eq!(limits.last_call(&sends(1), at(1000)), Some(Duration::from_secs(4)));
        assert_eq!(limits.last_call(&sends(2), at(1000)), None);
        assert!(limits.check(&sends(1), at(1000)).is_ok());
        assert_eq!(limits.last_call(&sends(1), at(5000)), None);
        note("2");
        assert_eq!(limits.last_call(&sends(1), at(1000)), None);
    }

    /// H4.
    #[test]
    fn a_429_blocks_its_scope() {
        let limits = Limits::default();

        let limit = limits.note_limited(&sends(1), &headers(&[("retry-after", "3")]), None, false, at(0));
        assert_eq!((limit.retry_after, limit.scope), (Duration::from_secs(3), Scope::Conversation));
        assert!(limits.check(&sends(2), at(0)).is_ok());

        let limit = limits.note_limited(&sends(1), &HeaderMap::new(), Some(Duration::from_secs(2)), true, at(0));
        assert_eq!(limit.scope, Scope::Account);
        assert!(limits.check(&sends(2), at(0)).is_err());
        let callback = Route::of(&Method::POST, "interactions/1/token/callback");
        assert!(limits.check(&callback, at(0)).is_ok(), "the global limit does not cover an interaction");
    }

    #[test]
    fn a_limit_is_obeyed_for_an_hour_at_most() {
        let limits = Limits::default();

        let limit =
            limits.note_limited(&sends(1), &HeaderMap::new(), Some(Duration::from_secs(1_000_000)), false, at(0));

        assert_eq!(limit.retry_after, Duration::from_hours(1));
        assert!(limits.check(&sends(1), at(3_600_000)).is_ok());
    }

    #[test]
    fn refusals_are_stopped_long_before_a_ban() {
        let limits = Limits::default();
        for _ in 1..MAX_REFUSED {
            limits.note(&sends(1), StatusCode::FORBIDDEN, &HeaderMap::new(), at(0));
        }
        let shared = headers(&[("x-ratelimit-scope", "shared")]);
        limits.note(&sends(1), StatusCode::TOO_MANY_REQUESTS, &shared, at(0));
        assert!(limits.check(&sends(2), at(0)).is_ok());

        limits.note(&sends(1), StatusCode::FORBIDDEN, &HeaderMap::new(), at(0));

        assert_eq!(limits.check(&sends(2), at(0)).expect_err("held back").scope, Scope::Account);
        assert!(limits.is_held_back(at(0)));
        let later = i64::try_from(WINDOW.as_millis()).expect("minutes") + 1;
        limits.note(&sends(1), StatusCode::FORBIDDEN, &HeaderMap::new(), at(later));
        assert!(limits.check(&sends(2), at(later)).is_ok());
    }
}
