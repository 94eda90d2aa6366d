//! What a person sees of a room.

use serde_json::Value;

/// A message in its current version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The event id.
    pub id: String,
    /// The user id of the sender.
    pub sender: String,
    pub text: String,
    /// The formatted body.
    pub html: Option<String>,
    /// The id of its thread's root event.
    pub thread: Option<String>,
    /// The id of the event that it replies to.
    pub replies_to: Option<String>,
    /// The emoji reactions, each with the user id of the sender.
    pub reactions: Vec<(String, String)>,
    /// Whether it arrived encrypted.
    pub is_encrypted: bool,
    pub edits: usize,
    /// The content as originally sent.
    pub content: Value,
}

/// Derives the messages of a room from all its events, in order, with edits applied and without redacted messages.
pub(crate) fn messages(events: &[Value]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for event in events {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (id, sender, content) = (text(&event["event_id"]), text(&event["sender"]), &event["content"]);
        let relation = &content["m.relates_to"];
        let target = text(&relation["event_id"]);
        match event["type"].as_str() {
            Some("m.room.message") if relation["rel_type"] == "m.replace" => {
                let new = &content["m.new_content"];
                if let Some(earlier) = messages.iter_mut().find(|it| it.id == target && it.sender == sender) {
                    earlier.text = text(&new["body"]);
                    earlier.html = new["formatted_body"].as_str().map(str::to_owned);
                    earlier.edits += 1;
                }
            }
            Some("m.room.message") if content["body"].is_string() => messages.push(Message {
                id,
                sender,
                text: text(&content["body"]),
                html: content["formatted_body"].as_str().map(str::to_owned),
                thread: (relation["rel_type"] == "m.thread").then_some(target),
                replies_to: relation["m.in_reply_to"]["event_id"].as_str().map(str::to_owned),
                reactions: Vec::new(),
                is_encrypted: event["encrypted"] == true,
                edits: 0,
                content: content.clone(),
            }),
            Some("m.reaction") => {
                if let Some(message) = messages.iter_mut().find(|it| it.id == target) {
                    message.reactions.push((text(&relation["key"]), sender));
                }
            }
            Some("m.room.redaction") => {
                let redacted = event["redacts"].as_str().or_else(|| content["redacts"].as_str());
                messages.retain(|it| Some(&*it.id) != redacted);
            }
            _ => {}
        }
    }
    messages
}
