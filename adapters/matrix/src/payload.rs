//! The parts of Matrix events that we read. Unknown fields and kinds are not errors.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

/// The key of our own field in events that we send. Other Rejoinders recognise us by it, and a message whose receipt
/// was lost is found by it.
pub(crate) const OUR_FIELD: &str = "org.rejoinder.delivery";

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Event {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(rename = "event_id")]
    pub(crate) id: String,
    pub(crate) sender: String,
    #[serde(default)]
    pub(crate) origin_server_ts: i64,
    #[serde(default)]
    pub(crate) content: Value,
    pub(crate) state_key: Option<String>,
    /// The event that a redaction redacts, in rooms before version 11.
    pub(crate) redacts: Option<String>,
    #[serde(default)]
    pub(crate) unsigned: Unsigned,
}

/// Fields that the homeserver adds to an event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Unsigned {
    pub(crate) redacted_because: Option<Value>,
    pub(crate) prev_content: Option<Member>,
}

/// The content of `m.room.member`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Member {
    pub(crate) membership: String,
}

/// The content of `m.room.message` and `m.sticker`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Message {
    pub(crate) msgtype: String,
    pub(crate) body: String,
    pub(crate) formatted_body: Option<String>,
    pub(crate) filename: Option<String>,
    pub(crate) geo_uri: Option<String>,
    pub(crate) info: Info,
    #[serde(rename = "m.relates_to")]
    pub(crate) relates_to: Relation,
    #[serde(rename = "m.mentions")]
    pub(crate) mentions: Option<Mentions>,
    #[serde(rename = "m.new_content")]
    pub(crate) new_content: Option<Box<Message>>,
    /// Marks a voice message beside `m.audio`: MSC3245.
    #[serde(rename = "org.matrix.msc3245.voice")]
    pub(crate) voice: Option<IgnoredAny>,
    #[serde(rename = "org.rejoinder.delivery")]
    pub(crate) ours: Option<OurField>,
}

/// The content of our own field in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct OurField {
    pub(crate) id: String,
    /// The turn's id, if the message is a question with choices.
    pub(crate) turn: Option<String>,
    pub(crate) choices: Vec<String>,
    /// The user who may pick; `None`: everybody.
    pub(crate) chooser: Option<String>,
    /// The line that was shown below the question when it was closed.
    pub(crate) picked: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Info {
    pub(crate) mimetype: Option<String>,
    pub(crate) size: Option<u64>,
    /// In milliseconds, if it is a number.
    pub(crate) duration: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Mentions {
    pub(crate) user_ids: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Relation {
    pub(crate) rel_type: Option<String>,
    pub(crate) event_id: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) is_falling_back: bool,
    #[serde(rename = "m.in_reply_to")]
    pub(crate) in_reply_to: Option<InReplyTo>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct InReplyTo {
    pub(crate) event_id: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Membership {
    pub(crate) now: String,
    pub(crate) before: Option<String>,
}

impl Membership {
    /// Whether the user joined. A change of the display name alone is not a join.
    pub(crate) fn is_join(&self) -> bool {
        self.now == "join" && self.before.as_deref() != Some("join")
    }
}

impl Relation {
    fn of_type(&self, rel_type: &str) -> Option<&str> {
        self.event_id.as_deref().filter(|id| self.rel_type.as_deref() == Some(rel_type) && may_be_id(id))
    }

    /// The root of the thread that the event is in.
    pub(crate) fn thread(&self) -> Option<&str> {
        self.of_type("m.thread")
    }

    pub(crate) fn replaces(&self) -> Option<&str> {
        self.of_type("m.replace")
    }

    /// The event that it reacts to, and the emoji.
    pub(crate) fn annotates(&self) -> Option<(&str, &str)> {
        Some((self.of_type("m.annotation")?, self.key.as_deref()?))
    }

    /// The event that it replies to. In a thread every event names the one before it, for clients without threads: that
    /// is not a reply.
    pub(crate) fn replies_to(&self) -> Option<&str> {
        let is_fallback = self.is_falling_back && self.thread().is_some();
        self.in_reply_to.as_ref().map(|to| to.event_id.as_str()).filter(|id| !is_fallback && may_be_id(id))
    }
}

impl Event {
    /// The content as a message. `None` if the event is neither a message nor a sticker, or has no content.
    pub(crate) fn message(&self) -> Option<Message> {
        if !matches!(&*self.kind, "m.room.message" | "m.sticker") || !self.content.is_object() {
            return None;
        }
        let content = without_nulls(self.content.clone());
        // A malformed field does not hide the text.
        Some(serde_json::from_value(content).unwrap_or_else(|_| {
            let text = |key: &str| self.content[key].as_str().unwrap_or_default().to_owned();
            Message { msgtype: text("msgtype"), body: text("body"), ..Message::default() }
        }))
    }

    /// The relation of the event. It is not encrypted, even in encrypted events.
    pub(crate) fn relation(&self) -> Relation {
        let relation = self.content.get("m.relates_to").cloned().unwrap_or_default();
        serde_json::from_value(relation).unwrap_or_default()
    }

    /// The event that it redacts, if it is a redaction.
    pub(crate) fn redaction_target(&self) -> Option<&str> {
        if self.kind != "m.room.redaction" {
            return None;
        }
        let target = self.content.get("redacts").and_then(Value::as_str).or(self.redacts.as_deref());
        target.filter(|id| may_be_id(id))
    }

    /// The event as far as an encrypted event may be believed. Membership, other state and redactions come from the
    /// server unencrypted; inside an encrypted event, anybody could have written them.
    pub(crate) fn without_server_claims(self) -> Self {
        let is_servers = self.state_key.is_some() || self.kind == "m.room.redaction";
        let kind = if is_servers { "m.room.encrypted".to_owned() } else { self.kind };
        Self { kind, state_key: None, redacts: None, ..self }
    }

    pub(crate) fn is_redacted(&self) -> bool {
        self.unsigned.redacted_because.is_some()
    }

    /// The change of `user`'s membership, if the event is one.
    pub(crate) fn membership_of(&self, user: &str) -> Option<Membership> {
        if self.kind != "m.room.member" || self.state_key.as_deref() != Some(user) {
            return None;
        }
        let member: Member = serde_json::from_value(self.content.clone()).ok()?;
        let before = self.unsigned.prev_content.as_ref().map(|before| before.membership.clone());
        Some(Membership { now: member.membership, before })
    }
}

/// Whether an event may have this id. What another one writes of it is not checked by servers, and U+0000 cannot be stored.
fn may_be_id(id: &str) -> bool {
    !id.contains('\0')
}

/// Removes fields that are null, so that they count as absent.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(fields.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        other => other,
    }
}
