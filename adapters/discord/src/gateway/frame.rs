//! The frames of the Gateway (<https://discord.com/developers/docs/events/gateway-events#payload-structure>).

use std::{borrow::Cow, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use serenity::{constants::Opcode, model::gateway::GatewayIntents};

use super::session::Session;

#[derive(Debug, Deserialize)]
pub(super) struct Frame<'a> {
    op: u8,
    s: Option<u64>,
    #[serde(borrow)]
    t: Option<Cow<'a, str>>,
    #[serde(borrow)]
    d: Option<&'a RawValue>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Op<'a> {
    /// The connection is open; holds the heartbeat interval.
    Hello(Duration),
    Event {
        seq: u64,
        kind: &'a str,
        data: &'a str,
    },
    HeartbeatRequest,
    Acknowledged,
    Reconnect,
    /// The session is invalid; holds whether it can be resumed.
    Invalid(bool),
    /// An unknown or malformed frame.
    Other,
}

#[derive(Deserialize)]
struct Hello {
    heartbeat_interval: u64,
}

/// The session in the payload of `READY`.
#[derive(Deserialize)]
pub(super) struct ReadySession {
    pub(super) session_id: String,
    pub(super) resume_gateway_url: Option<String>,
}

impl<'a> Frame<'a> {
    pub(super) fn op(&'a self) -> Op<'a> {
        let data = self.d.map_or("null", RawValue::get);
        match Opcode::from(self.op) {
            Opcode::Dispatch => {
                Op::Event { seq: self.s.unwrap_or_default(), kind: self.t.as_deref().unwrap_or_default(), data }
            }
            Opcode::Heartbeat => Op::HeartbeatRequest,
            Opcode::Reconnect => Op::Reconnect,
            Opcode::InvalidSession => Op::Invalid(data == "true"),
            Opcode::Hello => serde_json::from_str::<Hello>(data)
                .map_or(Op::Other, |hello| Op::Hello(Duration::from_millis(hello.heartbeat_interval.max(1)))),
            Opcode::HeartbeatAck => Op::Acknowledged,
            _ => Op::Other,
        }
    }
}

pub(super) fn heartbeat(seq: Option<u64>) -> String {
    json!({"op": u8::from(Opcode::Heartbeat), "d": seq}).to_string()
}

pub(super) fn identify(token: &str, intents: GatewayIntents) -> String {
    let properties = json!({"os": std::env::consts::OS, "browser": "rejoinder", "device": "rejoinder"});
    let identity = json!({"token": token, "intents": intents.bits(), "properties": properties, "large_threshold": 50});
    encode(Opcode::Identify, &identity)
}

pub(super) fn resume(token: &str, session: &Session) -> String {
    encode(Opcode::Resume, &json!({"token": token, "session_id": session.id, "seq": session.seq}))
}

fn encode(op: Opcode, data: &Value) -> String {
    json!({"op": u8::from(op), "d": data}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_op(text: &str, expected: &Op<'_>) {
        let frame: Frame<'_> = serde_json::from_str(text).expect("a frame");
        assert_eq!(frame.op(), *expected);
    }

    #[test]
    fn a_frame_says_what_it_is() {
        check_op(
            r#"{"op":10,"d":{"heartbeat_interval":41250},"s":null,"t":null}"#,
            &Op::Hello(Duration::from_millis(41_250)),
        );
        check_op(r#"{"op":11}"#, &Op::Acknowledged);
        check_op(r#"{"op":9,"d":true}"#, &Op::Invalid(true));
        check_op(r#"{"op":9,"d":false}"#, &Op::Invalid(false));
        check_op(r#"{"op":7,"d":null}"#, &Op::Reconnect);
        check_op(r#"{"op":99,"d":null}"#, &Op::Other);
        check_op(
            r#"{"op":0,"t":"MESSAGE_CREATE","s":3,"d":{"id":"1"}}"#,
            &Op::Event { seq: 3, kind: "MESSAGE_CREATE", data: r#"{"id":"1"}"# },
        );
    }
}
