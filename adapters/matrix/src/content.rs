//! Builds the content of outbound events. Pure.

use serde_json::{Value, json};

use crate::{format, inbound::keycap, payload::OUR_FIELD};

/// The largest content, in bytes: encryption makes it a third larger, and the server adds fields of its own
/// (<https://spec.matrix.org/latest/client-server-api/#size-limits>: 65,536 bytes an event).
const MAX_CONTENT: usize = 44_000;

/// How many characters of an edit are shown by clients that do not support edits.
const FALLBACK: usize = 200;

/// A Markdown text as a message, with `ours` in our field. It has no HTML if that would make it too large.
pub(crate) fn text(markdown: &str, ours: &Value) -> Value {
    let plain = json!({ "msgtype": "m.text", "body": markdown, "m.mentions": {}, OUR_FIELD: ours });
    let Some(html) = format::formatted(markdown) else { return plain };
    let mut content = plain.clone();
    content["format"] = json!("org.matrix.custom.html");
    content["formatted_body"] = json!(html);
    if content.to_string().len() <= MAX_CONTENT { content } else { plain }
}

pub(crate) fn replacing(message: &str, content: &Value) -> Value {
    let body = content["body"].as_str().unwrap_or_default();
    let short: String = body.chars().take(FALLBACK).collect();
    let gap = if short.len() < body.len() { "…" } else { "" };
    json!({
        "msgtype": "m.text",
        "body": format!("* {short}{gap}"),
        "m.mentions": {},
        OUR_FIELD: content[OUR_FIELD],
        "m.new_content": content,
        "m.relates_to": { "rel_type": "m.replace", "event_id": message },
    })
}

/// A question with its choices as a numbered list.
pub(crate) fn question(markdown: &str, choices: &[String]) -> String {
    let mut text = markdown.to_owned();
    for (number, choice) in (1..).zip(choices) {
        let gap = if number == 1 && !text.is_empty() { "\n\n" } else { "\n" };
        text.extend([gap, &number.to_string(), ". ", choice]);
    }
    text
}

pub(crate) fn reaction(message: &str, emoji: &str) -> Value {
    json!({ "m.relates_to": { "rel_type": "m.annotation", "event_id": message, "key": emoji } })
}

/// The number emoji for choices, at most ten.
pub(crate) fn buttons(choices: &[String]) -> Vec<String> {
    (0..choices.len()).filter_map(keycap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_there_plain_and_as_html() {
        let content = text("**hello**", &json!({ "id": "1" }));

        assert_eq!(content["body"], "**hello**");
        assert_eq!(content["formatted_body"], "<strong>hello</strong>");
        assert_eq!(content[OUR_FIELD]["id"], "1");
        assert_eq!(content["m.mentions"], json!({}), "an agent's text never mentions anybody");
        assert!(text("hello", &Value::Null).get("formatted_body").is_none());
    }

    #[test]
    fn what_fits_into_a_message_fits_into_an_event() {
        let longest = crate::format::parts(&"**\"quoted\"** & <tagged>\n".repeat(4000));
        for part in longest {
            let edit = replacing("$1:example.org", &text(&part, &json!({ "id": "1" })));
            assert!(edit.to_string().len() * 4 / 3 < 64_000, "{}", edit.to_string().len());
        }
    }

    #[test]
    fn an_edit_names_what_it_replaces() {
        let edit = replacing("$1", &text(&"word ".repeat(100), &json!({ "id": "1" })));

        assert_eq!(edit["m.relates_to"], json!({ "rel_type": "m.replace", "event_id": "$1" }));
        assert_eq!(edit["m.new_content"]["body"], "word ".repeat(100));
        assert!(edit["body"].as_str().is_some_and(|body| body.starts_with("* word") && body.ends_with('…')));
        assert_eq!(edit[OUR_FIELD]["id"], "1");
    }

    #[test]
    fn choices_are_numbered_and_have_buttons() {
        let choices = ["Yes".to_owned(), "No".to_owned()];

        assert_eq!(question("Really?", &choices), "Really?\n\n1. Yes\n2. No");
        assert_eq!(buttons(&choices), ["1\u{fe0f}\u{20e3}", "2\u{fe0f}\u{20e3}"]);
        assert_eq!(buttons(&vec![String::new(); 12]).len(), 10);
    }

    /// An agent may name what an approver chooses.
    #[test]
    fn an_address_in_a_choice_is_no_link() {
        let choices = ["Yes".to_owned(), "Approve: see https://evil.example/a www.evil.example".to_owned()];

        let content = text(&question("Really?", &choices), &Value::Null);

        let html = content["formatted_body"].as_str().expect("a list");
        assert!(html.contains("https://evil.example/a") && !html.contains("<a "), "{html}");
    }
}
