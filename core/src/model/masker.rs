//! Keeps the operator's secrets out of the records of runs.

use std::{fmt, sync::Arc};

use aho_corasick::{AhoCorasick, MatchKind, packed};
use serde_json::Value;

/// Stands in place of a secret.
const MASK: &str = "••••";

/// How many characters a secret has at least. A shorter one is as likely to be a word.
const SHORTEST: usize = 8;

/// Replaces the operator's secrets in texts. Only exact occurrences are found, and those that JSON has escaped once or
/// twice; not a secret that a model has written in another way, such as in parts.
#[derive(Clone, Default)]
pub struct Masker(Option<Arc<Secrets>>);

struct Secrets {
    automaton: AhoCorasick,
    /// Finds whether there is any, several bytes at once. `None` if there are too many of them, or the processor cannot.
    quick: Option<packed::Searcher>,
}

impl Secrets {
    fn are_in(&self, text: &str) -> bool {
        self.quick.as_ref().map_or_else(|| self.automaton.is_match(text), |quick| quick.find(text).is_some())
    }
}

impl fmt::Debug for Masker {
    /// Prints no secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secrets = self.0.as_ref().map_or(0, |secrets| secrets.automaton.patterns_len());
        f.debug_struct("Masker").field("secrets", &secrets).finish()
    }
}

impl Masker {
    /// A masker of these secrets. Those with fewer than eight characters are ignored.
    ///
    /// # Panics
    /// When the secrets have gigabytes.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let secrets = secrets.into_iter().map(str::trim).filter(|secret| secret.chars().count() >= SHORTEST);
        let mut patterns: Vec<String> = secrets
            .flat_map(|secret| {
                let once = escaped(secret);
                [secret.to_owned(), escaped(&once), once]
            })
            .collect();
        patterns.sort_unstable();
        patterns.dedup();
        if patterns.is_empty() {
            return Self(None);
        }
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns);
        let automaton = automaton.expect("secrets are small");
        Self(Some(Arc::new(Secrets { automaton, quick: packed::Searcher::new(&patterns) })))
    }

    /// The text without secrets.
    pub fn text(&self, text: String) -> String {
        match &self.0 {
            Some(secrets) if secrets.are_in(&text) => replaced(&secrets.automaton, &text),
            _ => text,
        }
    }

    /// The JSON without secrets. It stays JSON.
    pub fn json(&self, json: String) -> String {
        let Some(secrets) = self.0.as_ref().filter(|secrets| secrets.are_in(&json)) else { return json };
        let secrets = &secrets.automaton;
        // A secret may begin within an escape (`\n`), so the texts are masked, and not what JSON makes of them.
        match serde_json::from_str(&json) {
            Ok(mut value) => {
                mask_values(secrets, &mut value);
                value.to_string()
            }
            Err(_) => replaced(secrets, &json),
        }
    }
}

fn mask_values(secrets: &AhoCorasick, value: &mut Value) {
    match value {
        Value::String(text) => *text = replaced(secrets, text),
        Value::Array(values) => values.iter_mut().for_each(|value| mask_values(secrets, value)),
        Value::Object(fields) => {
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(name, mut value)| {
                    mask_values(secrets, &mut value);
                    (replaced(secrets, &name), value)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn replaced(secrets: &AhoCorasick, text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    secrets.replace_all_with(text, &mut masked, |_, _, masked| {
        masked.push_str(MASK);
        true
    });
    masked
}

/// The text as it is in JSON, without the quotes.
fn escaped(text: &str) -> String {
    let json = Value::from(text).to_string();
    json[1..json.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_masked_wherever_it_stands() {
        let masker = Masker::new(["sk-12345678", "sk-12345678-longer", "short", "  padded-secret\n"]);

        assert_eq!(masker.text("a sk-12345678, b sk-12345678-longer.".to_owned()), "a ••••, b ••••.");
        assert_eq!(masker.text("padded-secret and short".to_owned()), "•••• and short");
        assert_eq!(masker.text("nothing".to_owned()), "nothing");
        assert_eq!(Masker::default().text("sk-12345678".to_owned()), "sk-12345678");
    }

    #[test]
    fn secrets_are_found_in_short_and_long_texts_however_many_there_are() {
        for count in [1, 2, 40, 200] {
            let secrets: Vec<String> = (0..count).map(|number| format!("secret-{number:04}")).collect();
            let masker = Masker::new(secrets.iter().map(String::as_str));
            for around in ["", "a secret that is none: secret-x, "].map(|text| text.repeat(20)) {
                for secret in &secrets {
                    assert_eq!(masker.text(format!("{around}{secret}{around}")), format!("{around}••••{around}"));
                }
                assert_eq!(masker.text(around.clone()), around);
            }
        }
    }

    #[test]
    fn json_stays_json() {
        let masker = Masker::new(["pass\"word\\1", "nsecret12", "12345678"]);
        let inner = r#"{"text":"pass\"word\\1"}"#;
        let json = serde_json::json!([
            { "role": "user", "content": "is it pass\"word\\1?" },
            { "content": inner, "number": 12_345_678, "nsecret12": "\nsecret12" },
        ]);

        let kept: Value = serde_json::from_str(&masker.json(json.to_string())).expect("JSON");

        let expected = serde_json::json!([
            { "role": "user", "content": "is it ••••?" },
            { "content": r#"{"text":"••••"}"#, "number": 12_345_678, "••••": "\nsecret12" },
        ]);
        assert_eq!(kept, expected);
        assert_eq!(masker.json("{ 12345678 is cut".to_owned()), "{ •••• is cut");
    }

    #[test]
    fn what_has_no_secret_is_not_changed() {
        let masker = Masker::new(["sk-12345678"]);
        let json = r#"{ "b": 1, "a": 1.0 }"#;

        assert_eq!(masker.json(json.to_owned()), json);
    }

    #[test]
    fn a_masker_prints_no_secrets() {
        let printed = format!("{:?}", Masker::new(["sk-12345678"]));

        assert_eq!(printed, "Masker { secrets: 1 }");
    }
}
