//! Failures of REST calls.

use std::time::Duration;

use serde_json::{Map, Value, json};

/// The scope of a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The bot on this route.
    User,
    /// Everybody on this resource.
    Shared,
    /// The bot on all routes.
    Global,
}

/// A failure of calls to one route: once, unless [`times`](Self::times) says otherwise. Faults of one route happen in the
/// order in which they were added.
#[derive(Clone, Debug)]
#[must_use = "a fault has no effect until it is passed to `DiscordServer::fault`"]
pub struct Fault(Map<String, Value>);

impl Fault {
    /// Selects calls of `method` to `route`, the path below `/api/v10`, in which `*` matches one segment and `**` anything:
    /// `/channels/*/messages`.
    pub fn on(method: &str, route: &str) -> FaultTarget {
        FaultTarget(Map::from_iter([("method".to_owned(), json!(method)), ("route".to_owned(), json!(route))]))
    }

    /// Selects all calls.
    pub fn on_everything() -> FaultTarget {
        FaultTarget(Map::new())
    }

    /// Sets how many calls it affects.
    ///
    /// # Panics
    /// If that is zero.
    pub fn times(self, times: u32) -> Self {
        assert!(times > 0, "a fault happens at least once");
        self.with("times", json!(times))
    }

    /// Affects all calls until it is removed.
    pub fn always(self) -> Self {
        self.with("times", json!(0))
    }

    /// Lets this many calls pass first.
    pub fn after(self, calls: u32) -> Self {
        self.with("skip", json!(calls))
    }

    /// Affects only calls whose JSON contains this text.
    pub fn saying(self, words: &str) -> Self {
        self.with("words", json!(words))
    }

    /// Happens this long after the call arrived.
    pub fn late(self, delay: Duration) -> Self {
        self.with("delay", json!(delay.as_secs_f64()))
    }

    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    fn with(mut self, name: &str, value: Value) -> Self {
        self.0.insert(name.to_owned(), value);
        self
    }
}

/// The calls that a fault affects; its methods say how.
#[derive(Clone, Debug)]
#[must_use = "choose how these calls fail"]
pub struct FaultTarget(Map<String, Value>);

impl FaultTarget {
    /// Not executed; a 429 with the headers and body that Discord sends.
    pub fn rate_limited(self, retry_after: Duration, scope: Scope) -> Fault {
        let scope = match scope {
            Scope::User => "user",
            Scope::Shared => "shared",
            Scope::Global => "global",
        };
        self.fault("rate_limit").with("retry_after", json!(retry_after.as_secs_f64())).with("scope", json!(scope))
    }

    /// Not executed; an error of Discord, such as 403 with the code 50013.
    pub fn refused(self, status: u16, code: u32, message: &str) -> Fault {
        self.failed(status).with("code", json!(code)).with("message", json!(message))
    }

    /// Not executed; a status such as 500.
    pub fn failed(self, status: u16) -> Fault {
        self.fault("error").with("status", json!(status))
    }

    /// Executed; a status such as 502, with the HTML page of the network in front of Discord.
    pub fn failed_after_executing(self, status: u16) -> Fault {
        self.failed(status).with("executed", json!(true)).with("html", json!(true))
    }

    /// Executed; the connection is cut before the response.
    pub fn executed_then_dropped(self) -> Fault {
        self.fault("drop")
    }

    /// Not executed; the connection is cut.
    pub fn reset(self) -> Fault {
        self.fault("reset")
    }

    /// Executed and answered after this time.
    pub fn delayed(self, delay: Duration) -> Fault {
        self.fault("delay").late(delay)
    }

    /// Executed at once; the response is sent after this time.
    pub fn answered_late(self, pause: Duration) -> Fault {
        self.fault("delay").with("pause", json!(pause.as_secs_f64()))
    }

    /// Executed; no response.
    pub fn executed_then_silent(self) -> Fault {
        self.fault("hang")
    }

    /// Not executed; no response.
    pub fn silent(self) -> Fault {
        self.fault("hang").with("executed", json!(false))
    }

    fn fault(self, kind: &str) -> Fault {
        Fault(self.0).with("do", json!(kind))
    }
}
