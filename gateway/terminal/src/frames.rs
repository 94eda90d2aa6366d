//! The frames of a web chat's socket, as a client writes and reads them.

use rejoinder_core::{SignalKind, TurnStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A frame to the gateway.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ClientFrame<'a> {
    Hello {
        conversation: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        token: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        language: Option<&'a str>,
    },
    Message {
        id: &'a str,
        text: &'a str,
    },
    Choose {
        id: &'a str,
        turn_id: &'a str,
        choice: usize,
    },
    Stop,
    Pong,
}

impl ClientFrame<'_> {
    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("frames serialise to JSON")
    }
}

/// A step of an agent's work.
#[derive(Debug, Deserialize)]
pub(crate) struct Step {
    text: String,
    /// `None` for a thought.
    #[serde(default)]
    state: Option<String>,
}

/// A draft with a line for what the agent does now.
pub(crate) fn with_activity(text: String, steps: &[Step]) -> String {
    let is_working = |step: &&Step| step.state.as_deref() == Some("working");
    match steps.iter().rev().find(is_working) {
        Some(step) if text.is_empty() => format!("… {}", step.text),
        Some(step) => format!("{text}\n\n… {}", step.text),
        None => text,
    }
}

/// A frame from the gateway.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ServerFrame {
    Welcome(Box<Welcome>),
    Accepted {
        id: String,
        turn_id: Option<String>,
    },
    Turn {
        turn: Box<Turn>,
    },
    Draft {
        turn_id: String,
        /// The Markdown so far.
        #[serde(default)]
        text: Option<String>,
        /// What the agent did and thought.
        #[serde(default)]
        steps: Vec<Step>,
    },
    Typing {
        turn_id: String,
        on: bool,
    },
    Sync {
        turns: Vec<Turn>,
    },
    Error {
        id: Option<String>,
        code: String,
        message: String,
        #[serde(default)]
        retry: bool,
    },
    Ping,
    #[serde(other)]
    Unknown,
}

/// The answer to the hello.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Welcome {
    pub(crate) title: String,
    pub(crate) agent: String,
    #[serde(default)]
    pub(crate) commands: Vec<Command>,
    /// The last turns of the conversation, oldest first.
    pub(crate) turns: Vec<Turn>,
}

/// A command of the gateway's.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Command {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
}

/// A turn. Fields that are not used here are kept, for printing it as JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(clippy::struct_field_names, reason = "the name on the wire")]
pub(crate) struct Turn {
    pub(crate) turn_id: String,
    /// Its place in the conversation; 0: not known yet.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) seq: i64,
    pub(crate) text: String,
    pub(crate) status: TurnStatus,
    pub(crate) shown: Option<Signal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) picked: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) merged_into: Option<String>,
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

/// What a turn shows.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(clippy::struct_field_names, reason = "the name on the wire")]
pub(crate) struct Signal {
    pub(crate) signal: SignalKind,
    /// The agent that said it; `None`: the gateway itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// Whether the gateway said it because the agent gave no answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) fallback: bool,
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<File>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) choices: Vec<String>,
    /// When the answer is due, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due: Option<String>,
    /// When it was shown, in RFC 3339 with milliseconds.
    pub(crate) at: String,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// A file of an answer.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) r#type: String,
    /// Where it is; `None` if it is not safe to follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// Whether the gateway has it.
    #[serde(skip)]
    pub(crate) is_stored: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl Turn {
    /// A turn of which only this is known: it was accepted.
    pub(crate) fn accepted(id: String, text: String) -> Self {
        Self {
            turn_id: id,
            seq: 0,
            text,
            status: TurnStatus::Accepted,
            shown: None,
            picked: None,
            merged_into: None,
            rest: Map::new(),
        }
    }

    /// Makes the links to files whole that the gateway at `base` has.
    pub(crate) fn complete_links(&mut self, base: &str) {
        for file in self.shown.iter_mut().flat_map(|shown| &mut shown.files) {
            if let Some(path) = file.url.as_mut().filter(|url| url.starts_with('/')) {
                path.insert_str(0, base);
                file.is_stored = true;
            }
        }
    }

    /// Whether nothing more is owed for it.
    pub(crate) fn is_final(&self) -> bool {
        self.status.is_final()
    }

    /// Whether the person has said nothing: the gateway began the turn by itself.
    pub(crate) fn is_unasked(&self) -> bool {
        let has_files = self.rest.get("files").and_then(Value::as_array).is_some_and(|files| !files.is_empty());
        self.text.trim().is_empty() && !has_files
    }
}

#[cfg(test)]
pub(crate) mod examples {
    use serde_json::{Value, json};

    use super::Turn;

    /// A turn with this status that shows `shown`.
    pub(crate) fn turn(status: &str, shown: &Value) -> Turn {
        let turn = json!({ "turn_id": "t1", "seq": 7, "at": "2026-01-01T10:00:00.000Z", "text": "hello?",
            "status": status, "shown": shown });
        serde_json::from_value(turn).unwrap()
    }

    /// A reply of the agent `main`.
    pub(crate) fn reply(text: &str) -> Value {
        json!({ "signal": "reply", "agent": "main", "text": text, "html": "<p>", "at": "2026-01-01T10:00:01.000Z" })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(r#"{"type":"accepted","id":"a","turn_id":null}"#)]
    #[case(r#"{"type":"draft","turn_id":"t","html":"<p>"}"#)]
    #[case(r#"{"type":"error","code":"limited","message":"no","retry":false}"#)]
    #[case(r#"{"type":"ping","later":1}"#)]
    #[case(r#"{"type":"of another version","x":1}"#)]
    fn frames_are_read(#[case] frame: &str) {
        serde_json::from_str::<ServerFrame>(frame).unwrap();
    }

    #[test]
    fn a_draft_says_what_the_agent_does() {
        let frame =
            r#"{"type":"draft","turn_id":"t","text":"Hi","steps":[{"text":"reads","state":"working"},{"text":"Hm."}]}"#;

        let ServerFrame::Draft { text, steps, .. } = serde_json::from_str(frame).unwrap() else { panic!("a draft") };

        assert_eq!(with_activity(text.unwrap(), &steps), "Hi\n\n… reads");
        assert_eq!(with_activity(String::new(), &steps), "… reads");
        assert_eq!(with_activity("Hi".to_owned(), &steps[1..]), "Hi");
    }

    #[test]
    fn a_turn_is_printed_with_all_that_came() {
        let turn = examples::turn("answered", &examples::reply("hi"));

        let printed = serde_json::to_value(&turn).unwrap();

        assert_eq!((&printed["at"], &printed["shown"]["html"]), (&json!("2026-01-01T10:00:00.000Z"), &json!("<p>")));
        assert!(printed.get("picked").is_none());
    }
}
