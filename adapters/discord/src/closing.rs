//! Closes a question that was answered or has expired: removes its buttons and says so below its text. Pure.
//!
//! The acknowledgement of the press does it: type 7, "edit the message the component was attached to"
//! (<https://discord.com/developers/docs/interactions/receiving-and-responding#interaction-response-object-interaction-callback-type>).
//! An interaction carries the message as it is now, so closing is idempotent.

use serde_json::{Value, json};

use crate::format::{MESSAGE_UNITS, units};

/// The acknowledgement of the press `raw`, which closes a question, with `line` below it.
pub(crate) fn closing(raw: &str, line: &str) -> Value {
    let mut closed = json!({ "components": [], "allowed_mentions": { "parse": [] } });
    let end = format!("\n\n{line}");
    let interaction: Value = serde_json::from_str(raw).unwrap_or_default();
    let content = interaction.pointer("/message/content").and_then(Value::as_str);
    let content = content.filter(|content| !line.is_empty() && !content.ends_with(&end));
    let content = content.map(|content| format!("{content}{end}"));
    if let Some(content) = content.filter(|content| units(content) <= MESSAGE_UNITS) {
        closed["content"] = json!(content);
    }
    json!({ "type": 7, "data": closed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(content: &str) -> Value {
        closing(&json!({ "message": { "content": content } }).to_string(), "✓ Tell me more")["data"].take()
    }

    #[test]
    fn a_question_says_what_was_picked_and_calls_nobody() {
        let closed = closed("Which, @everyone?");

        assert_eq!(closed["content"], "Which, @everyone?\n\n✓ Tell me more");
        assert_eq!((&closed["components"], &closed["allowed_mentions"]["parse"]), (&json!([]), &json!([])));
    }

    #[test]
    fn the_buttons_go_in_any_case() {
        for content in ["Which?\n\n✓ Tell me more", &"x".repeat(1990)] {
            assert_eq!((closed(content).get("content"), &closed(content)["components"]), (None, &json!([])));
        }
        assert_eq!(closing("{}", "✓ Tell me more")["data"].get("content"), None);
    }
}
