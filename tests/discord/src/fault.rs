//! What goes wrong with REST calls.

use std::time::Duration;

use serde_json::{Map, Value, json};

/// Whose rate limit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The bot's, on this route.
    User,
    /// Everybody's, on this resource.
    Shared,
    /// The bot's, on all routes.
    Global,
}

/// Something that goes wrong with calls of one route: once, unless [`times`](Self::times) says
/// otherwise. Faults of one route happen in the order in which they were given.
#[derive(Clone, Debug)]
#[must_use = "a fault happens once it is given to `DiscordServer::fault`"]
pub struct Fault(Map<String, Value>);

impl Fault {
    /// About calls of `method` to `route`, the path below `/api/v10`, in which `*` is one segment and
    /// `**` is anything: `/channels/*/messages`.
    pub fn on(method: &str, route: &str) -> Aim {
        Aim(Map::from_iter([("method".to_owned(), json!(method)), ("route".to_owned(), json!(route))]))
    }

    /// About all calls.
    pub fn on_everything() -> Aim {
        Aim(Map::new())
    }

    /// Happens that often.
    ///
    /// # Panics
    /// When that is never.
    pub fn times(self, times: u32) -> Self {
        assert!(times > 0, "a fault happens at least once");
        self.with("times", json!(times))
    }

    /// Happens until it is lifted.
    pub fn always(self) -> Self {
        self.with("times", json!(0))
    }

    /// Lets so many calls pass first.
    pub fn after(self, calls: u32) -> Self {
        self.with("skip", json!(calls))
    }

    /// Happens only to calls with these words in their JSON.
    pub fn saying(self, words: &str) -> Self {
        self.with("words", json!(words))
    }

    /// Happens this long after the call came.
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

/// Which calls a fault is about; what happens to them is its method.
#[derive(Clone, Debug)]
#[must_use = "say what happens to these calls"]
pub struct Aim(Map<String, Value>);

impl Aim {
    /// 429, with the headers and body that Discord sends. Not executed.
    pub fn rate_limited(self, retry_after: Duration, scope: Scope) -> Fault {
        let scope = match scope {
            Scope::User => "user",
            Scope::Shared => "shared",
            Scope::Global => "global",
        };
        self.fault("rate_limit").with("retry_after", json!(retry_after.as_secs_f64())).with("scope", json!(scope))
    }

    /// An error of Discord's, such as 403 with the code 50013. Not executed.
    pub fn refused(self, status: u16, code: u32, message: &str) -> Fault {
        self.failed(status).with("code", json!(code)).with("message", json!(message))
    }

    /// A status such as 500. Not executed.
    pub fn failed(self, status: u16) -> Fault {
        self.fault("error").with("status", json!(status))
    }

    /// A status such as 502, with the page of the network in front of Discord. Executed all the same.
    pub fn failed_after_executing(self, status: u16) -> Fault {
        self.failed(status).with("executed", json!(true)).with("html", json!(true))
    }

    /// The call is executed, and the connection is cut before the answer.
    pub fn executed_then_dropped(self) -> Fault {
        self.fault("drop")
    }

    /// The connection is cut before anything happens.
    pub fn reset(self) -> Fault {
        self.fault("reset")
    }

    /// The call is executed, and answered this much later.
    pub fn delayed(self, delay: Duration) -> Fault {
        self.fault("delay").late(delay)
    }

    /// The call is executed at once, and answered this much later.
    pub fn answered_late(self, pause: Duration) -> Fault {
        self.fault("delay").with("pause", json!(pause.as_secs_f64()))
    }

    /// The call is executed and never answered.
    pub fn executed_then_silent(self) -> Fault {
        self.fault("hang")
    }

    /// The call is neither executed nor answered.
    pub fn silent(self) -> Fault {
        self.fault("hang").with("executed", json!(false))
    }

    fn fault(self, kind: &str) -> Fault {
        Fault(self.0).with("do", json!(kind))
    }
}
