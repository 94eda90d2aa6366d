//! The frames of the Gateway (<https://discord.com/developers/docs/events/gateway-events#payload-structure>).

use std::{borrow::Cow, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use serenity::{constants::Opcode, model::gateway::GatewayIntents};

use super::Session;

/// A frame from Discord.
#[derive(Debug, Deserialize)]
pub(super) struct Frame<'a> {
    op: u8,
    s: Option<u64>,
    #[serde(borrow)]
    t: Option<Cow<'a, str>>,
    #[serde(borrow)]
    d: Option<&'a RawValue>,
}

/// The content of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said<'a> {
    /// The connection is open; holds the heartbeat interval.
    Hello(Duration),
    Event {
        seq: u64,
        kind: &'a str,
        data: &'a str,
    },
    /// Discord asks for a heartbeat now.
    Beat,
    Acknowledged,
    /// Discord asks us to reconnect and resume.
    Reconnect,
    /// The session is invalid; holds whether it can be resumed.
    Invalid(bool),
    /// An unknown or malformed frame.
    Else,
}

/// The payload of `HELLO`.
#[derive(Deserialize)]
struct Hello {
    heartbeat_interval: u64,
}

/// The session in the payload of `READY`.
#[derive(Deserialize)]
pub(super) struct Opened {
    pub(super) session_id: String,
    pub(super) resume_gateway_url: Option<String>,
}

impl<'a> Frame<'a> {
    pub(super) fn says(&'a self) -> Said<'a> {
        let data = self.d.map_or("null", RawValue::get);
        match Opcode::from(self.op) {
            Opcode::Dispatch => {
                Said::Event { seq: self.s.unwrap_or_default(), kind: self.t.as_deref().unwrap_or_default(), data }
            }
            Opcode::Heartbeat => Said::Beat,
            Opcode::Reconnect => Said::Reconnect,
            Opcode::InvalidSession => Said::Invalid(data == "true"),
            Opcode::Hello => serde_json::from_str::<Hello>(data)
                .map_or(Said::Else, |hello| Said::Hello(Duration::from_millis(hello.heartbeat_interval.max(1)))),
            Opcode::HeartbeatAck => Said::Acknowledged,
            _ => Said::Else,
        }
    }
}

pub(super) fn heartbeat(seq: Option<u64>) -> String {
    json!({"op": u8::from(Opcode::Heartbeat), "d": seq}).to_string()
}

pub(super) fn identify(token: &str, intents: GatewayIntents) -> String {
    let properties = json!({"os": std::env::consts::OS, "browser": "rejoinder", "device": "rejoinder"});
    let identity = json!({"token": token, "intents": intents.bits(), "properties": properties, "large_threshold": 50});
    said(Opcode::Identify, &identity)
}

pub(super) fn resume(token: &str, session: &Session) -> String {
    said(Opcode::Resume, &json!({"token": token, "session_id": session.id, "seq": session.seq}))
}

fn said(op: Opcode, data: &Value) -> String {
    json!({"op": u8::from(op), "d": data}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(text: &str, expected: &Said<'_>) {
        let frame: Frame<'_> = serde_json::from_str(text).expect("a frame");
        assert_eq!(frame.says(), *expected);
    }

    #[test]
    fn a_frame_says_what_it_is() {
        says(
            r#"{"op":10,"d":{"heartbeat_interval":41250},"s":null,"t":null}"#,
            &Said::Hello(Duration::from_millis(41_250)),
        );
        says(r#"{"op":11}"#, &Said::Acknowledged);
        says(r#"{"op":9,"d":true}"#, &Said::Invalid(true));
        says(r#"{"op":9,"d":false}"#, &Said::Invalid(false));
        says(r#"{"op":7,"d":null}"#, &Said::Reconnect);
        says(r#"{"op":99,"d":null}"#, &Said::Else);
        says(
            r#"{"op":0,"t":"MESSAGE_CREATE","s":3,"d":{"id":"1"}}"#,
            &Said::Event { seq: 3, kind: "MESSAGE_CREATE", data: r#"{"id":"1"}"# },
        );
    }
}
