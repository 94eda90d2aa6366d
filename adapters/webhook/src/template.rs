//! The text of an event, made of its request. No I/O.

use std::fmt::Write;

use minijinja::{
    AutoEscape, Environment, Error, UndefinedBehavior, Value, context,
    value::{Serde, ValueKind},
};
use serde_json::Value as Json;

/// The name of the only template of an environment.
const NAME: &str = "template";

/// How many steps a template may take: a few for each of the values that it writes.
const FUEL: u64 = 100_000;

const MAX_TEXT: usize = 20_000;

/// Stands at the end of a text that is too long.
const CUT: &str = "…";

#[derive(Debug)]
pub(crate) struct EventTemplate {
    environment: Option<Environment<'static>>,
    is_for_person: bool,
}

/// A request, as templates see it.
pub(crate) struct EventRequest<'a> {
    /// What the body holds. A text is a JSON string.
    pub(crate) body: Json,
    /// The headers that say what the event is, in lower case.
    pub(crate) headers: Vec<(&'a str, &'a str)>,
}

impl EventTemplate {
    /// Makes texts with this template, or of the whole body. For a person the values are escaped as Markdown; an agent gets them
    /// as they are.
    pub(crate) fn new(template: Option<&str>, is_for_person: bool) -> Result<Self, Error> {
        let environment = template.map(|template| environment(template, is_for_person)).transpose()?;
        Ok(Self { environment, is_for_person })
    }

    pub(crate) fn check(template: &str) -> Result<(), Error> {
        environment(template, false).map(drop)
    }

    /// The text of an event; empty if there is nothing to tell. Fails when the template does not fit the request.
    pub(crate) fn text(&self, request: &EventRequest<'_>) -> Result<String, Error> {
        let text = match &self.environment {
            Some(environment) => {
                let body = Value::from(Serde(&request.body));
                let headers = Value::from_pairs(request.headers.iter().copied());
                environment.get_template(NAME)?.render(context! { body, headers })?
            }
            None => whole(&request.body),
        };
        let text = text.trim();
        Ok(match text.char_indices().nth(MAX_TEXT) {
            // It may be cut where code begins: what follows would be read as Markdown.
            Some((end, _)) if self.is_for_person => format!("{}{CUT}", escaped(&text[..end])),
            Some((end, _)) => format!("{}{CUT}", &text[..end]),
            None => text.to_owned(),
        })
    }
}

fn environment(template: &str, is_for_person: bool) -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_fuel(Some(FUEL));
    let escape = if is_for_person { AutoEscape::Custom("markdown".into()) } else { AutoEscape::None };
    environment.set_auto_escape_callback(move |_| escape.clone());
    environment.set_formatter(|out, state, value| {
        if matches!(value.kind(), ValueKind::Undefined | ValueKind::None) {
            return Ok(());
        }
        let text = value.to_string();
        let is_plain = value.is_safe() || matches!(state.auto_escape(), AutoEscape::None);
        Ok(out.write_str(&if is_plain { text } else { escaped(&text) })?)
    });
    environment.add_filter("code", |value: Value| {
        let is_missing = matches!(value.kind(), ValueKind::Undefined | ValueKind::None);
        Value::from_safe_string(if is_missing { String::new() } else { code(&value.to_string()) })
    });
    environment.add_template_owned(NAME, template.to_owned())?;
    Ok(environment)
}

/// A text as it is, with nothing in it that Markdown reads as its own.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_punctuation() {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

fn code(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    if text.is_empty() { text } else { format!("{fence} {text} {fence}") }
}

/// What the body says: its `message` or `text`, or all of it.
fn whole(body: &Json) -> String {
    let said = body.as_str().or_else(|| ["message", "text"].iter().find_map(|key| body[*key].as_str()));
    if let Some(said) = said {
        return said.to_owned();
    }
    let mut text = String::from("```json\n");
    let _ = write!(text, "{body:#}");
    text.push_str("\n```");
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(template: Option<&str>, is_for_person: bool, body: Json) -> String {
        let headers = vec![("x-github-event", "issues")];
        EventTemplate::new(template, is_for_person)
            .expect("a template")
            .text(&EventRequest { body, headers })
            .expect("a text")
    }

    #[test]
    fn a_text_is_made_of_the_body_and_the_headers() {
        let template = "{{ headers['x-github-event'] }} {{ body.issue.title }}{{ body.nothing.there }}\
            {% for label in body.labels %} #{{ label }}{% endfor %}";
        let body = json!({"issue": {"title": "It *burns*"}, "labels": ["a", 1]});
        assert_eq!(text(Some(template), false, body.clone()), "issues It *burns* #a #1");
        assert_eq!(text(Some(template), true, body), "issues It \\*burns\\* #a #1");
    }

    #[test]
    fn without_a_template_it_is_what_the_body_says() {
        assert_eq!(text(None, true, json!("disk *full*")), "disk *full*");
        assert_eq!(text(None, true, json!({"message": "disk full"})), "disk full");
        assert_eq!(text(None, true, json!({"text": "disk full"})), "disk full");
        assert_eq!(text(None, true, json!({"disk": 1})), "```json\n{\n  \"disk\": 1\n}\n```");
    }

    #[test]
    fn nothing_may_be_said() {
        assert_eq!(
            text(Some("{% if body.action == 'opened' %}new{% endif %}\n"), true, json!({"action": "closed"})),
            ""
        );
    }

    /// What strangers choose becomes no link and no mention.
    #[test]
    fn a_value_is_no_markup() {
        let body = json!({"title": "[pay](https://evil.example)\n# now", "ref": "a`b\n``c"});
        let shown = text(Some("{{ body.title }} {{ body.ref | code }} {{ body.title | safe }}"), true, body);
        assert_eq!(
            shown,
            "\\[pay\\]\\(https\\:\\/\\/evil\\.example\\)\n\\# now ``` a`b ``c ``` [pay](https://evil.example)\n# now"
        );
    }

    /// Where a text is cut, nothing of it becomes markup; and `code` takes numbers, and what is missing.
    #[test]
    fn code_is_never_cut_open() {
        let long = format!("[pay](https://evil.example) {}", "a".repeat(MAX_TEXT));
        let shown = text(Some("{{ body.title | code }}"), true, json!({ "title": long }));
        assert!(shown.starts_with("\\` \\[pay\\]\\(https"), "{}", &shown[..40]);
        let missing = text(Some("{{ body.number | code }}{{ body.nothing | code }}."), true, json!({ "number": 7 }));
        assert_eq!(missing, "` 7 `.");
    }

    #[test]
    fn a_template_ends() {
        let endless = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
        let template = EventTemplate::new(Some(endless), true).expect("a template");
        assert!(template.text(&EventRequest { body: json!({}), headers: Vec::new() }).is_err());
        assert!(text(Some("{{ body }}"), false, json!("x".repeat(MAX_TEXT + 1))).ends_with("x…"));
        assert!(EventTemplate::check("{{ body.").is_err());
    }
}
