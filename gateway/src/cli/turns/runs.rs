//! The runs of a turn, as `turns show` prints them.

use serde_json::Value;

use super::text::indented;
use crate::{
    console::output::one_line,
    view::{RunDetail, ShownDetail, ToolDetail},
};

/// The lines of a run: when, how it ended, what it took, its tool calls and, if `with_shown`, what the model was shown.
pub(super) fn lines(run: &RunDetail, with_shown: bool) -> Vec<String> {
    let end = run.end.as_deref().unwrap_or("running");
    let detail = run.detail.as_ref().map_or_else(String::new, |detail| format!(": {}", one_line(detail)));
    let ended_at = run.ended_at.as_deref().unwrap_or("now");
    let member = run.member.as_ref().map_or_else(String::new, |member| format!(" with {member}"));
    let mut lines =
        vec![format!("  {}. {}{member} from {} to {ended_at}: {end}{detail}", run.number, run.handler, run.started_at)];
    lines.extend(tokens(run));
    for call in &run.tools {
        tool(call, &mut lines);
    }
    if run.tools_left_out > 0 {
        lines.push(format!("     and {} more tool calls", run.tools_left_out));
    }
    match &run.shown {
        Some(input) if with_shown => shown(input, &mut lines),
        None if with_shown => lines.push("     Of what the model was shown, nothing is stored.".to_owned()),
        _ => {}
    }
    lines
}

fn tokens(run: &RunDetail) -> Option<String> {
    let tokens =
        run.input_tokens.zip(run.output_tokens).map(|(input, output)| format!("{input} tokens in, {output} out"));
    let cost = run.cost.as_ref().map(ToString::to_string);
    let known: Vec<_> = tokens.into_iter().chain(cost).collect();
    (!known.is_empty()).then(|| format!("     {}", known.join(": ")))
}

fn tool(call: &ToolDetail, lines: &mut Vec<String>) {
    let took = call.duration_ms.map_or_else(String::new, |millis| format!(" ({millis} ms)"));
    lines.push(format!("     tool {} {}{took}", one_line(&call.name), one_line(&call.arguments)));
    lines.push(quoted(&call.result));
}

fn shown(input: &ShownDetail, lines: &mut Vec<String>) {
    lines.push("     The model was shown:".to_owned());
    match &input.settings {
        Value::Object(settings) => {
            settings.iter().for_each(|(name, value)| field(name, value, lines));
        }
        other => lines.push(quoted(&text(other))),
    }
    if input.messages_left_out > 0 {
        lines.push(format!("     ({} older messages are not stored)", input.messages_left_out));
    }
    match &input.messages {
        Value::Array(messages) => messages.iter().for_each(|message| one_message(message, lines)),
        other => lines.push(quoted(&text(other))),
    }
}

fn field(name: &str, value: &Value, lines: &mut Vec<String>) {
    let value = text(value);
    if value.len() + name.len() < 80 && !value.contains('\n') {
        lines.push(format!("     {}: {}", one_line(name), one_line(&value)));
    } else {
        lines.push(format!("     {}:", one_line(name)));
        lines.push(quoted(&value));
    }
}

/// A message with a role and a content, as most servers have them; otherwise its JSON.
fn one_message(message: &Value, lines: &mut Vec<String>) {
    let Some((role, content)) = message.get("role").and_then(Value::as_str).zip(message.get("content")) else {
        lines.push(quoted(&text(message)));
        return;
    };
    lines.push(format!("     {}:", one_line(role)));
    lines.push(quoted(&text(content)));
    for (name, value) in message.as_object().into_iter().flatten() {
        if name != "role" && name != "content" {
            field(name, value, lines);
        }
    }
}

/// A text as it is, and other values as JSON.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// What somebody else wrote, so that it cannot look like a line of ours.
fn quoted(text: &str) -> String {
    indented(text).lines().map(|line| format!("     {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::view::{CostDetail, HandlerItem};

    fn run() -> RunDetail {
        RunDetail {
            number: 1,
            handler: HandlerItem { agent: Some("main".to_owned()), command: None },
            member: Some("second".to_owned()),
            started_at: "10:00".to_owned(),
            ended_at: Some("10:01".to_owned()),
            end: Some("reply".to_owned()),
            detail: None,
            input_tokens: Some(1200),
            output_tokens: Some(300),
            cost: Some(CostDetail { amount: 0.00036, currency: "USD".to_owned() }),
            shown: Some(ShownDetail {
                settings: json!({ "model": "m", "system": "Be kind.\nBe brief." }),
                messages: json!([
                    { "role": "user", "content": "cats?\n  1. main" },
                    { "role": "assistant", "content": "", "tool_calls": [1] },
                    "other",
                ]),
                messages_left_out: 2,
            }),
            tools: vec![ToolDetail {
                name: "search".to_owned(),
                arguments: "{\"q\":\n\"cats\"}".to_owned(),
                result: "two\ncats".to_owned(),
                duration_ms: Some(12),
            }],
            tools_left_out: 1,
        }
    }

    #[test]
    fn a_run_shows_its_tokens_its_cost_and_its_tools() {
        let expected = "  \
  1. main with second from 10:00 to 10:01: reply
     1200 tokens in, 300 out: 0.00036 USD
     tool search {\"q\": \"cats\"} (12 ms)
       | two
       | cats
     and 1 more tool calls";

        assert_eq!(lines(&run(), false).join("\n"), expected);
    }

    #[test]
    fn a_cost_is_shown_also_without_tokens() {
        let run = RunDetail { input_tokens: None, output_tokens: None, ..run() };

        assert_eq!(lines(&run, false)[1], "     0.00036 USD");
    }

    #[test]
    fn what_the_model_was_shown_cannot_look_like_a_line_of_ours() {
        let shown = lines(&run(), true).join("\n");

        let expected = "
     The model was shown:
     model: m
     system:
       | Be kind.
       | Be brief.
     (2 older messages are not stored)
     user:
       | cats?
       |   1. main
     assistant:

     tool_calls: [1]
       | other";
        assert!(shown.ends_with(expected), "{shown}");
    }

    #[test]
    fn a_run_of_which_nothing_is_stored_says_so() {
        let bare =
            RunDetail { shown: None, tools: Vec::new(), tools_left_out: 0, cost: None, input_tokens: None, ..run() };

        assert_eq!(lines(&bare, false).len(), 1);
        assert_eq!(lines(&bare, true)[1], "     Of what the model was shown, nothing is stored.");
    }
}
