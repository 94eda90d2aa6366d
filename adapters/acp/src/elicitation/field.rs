//! A property of a form, and how it is asked. No I/O.

pub(super) mod read;

use rejoinder_core::{Choices, excerpt, is_hidden};
use serde_json::{Number, Value};

use super::words::{DECLINE, DEFAULT, NO, NONE, SKIP, YES};
use crate::protocol::{Items, Property};

/// How many choices are shown, and how many characters of each: the core shows as many.
const MOST_CHOICES: usize = 8;
const MOST_CHOICE: usize = 64;

/// How many characters are shown of a title, of a description and of a default.
const MOST_TITLE: usize = 100;
const MOST_DESCRIPTION: usize = 300;
const MOST_DEFAULT: usize = 60;

/// How many characters all choices have at most that are listed.
const MOST_LISTED: usize = 1_100;

/// Words for what nobody is to write in a chat.
const SECRETS: [&str; 10] =
    ["password", "passwd", "pwd", "passphrase", "passcode", "secret", "token", "apikey", "credential", "credentials"];

/// Words that make the word `key` after them a secret.
const SECRET_KEYS: [&str; 4] = ["api", "access", "private", "secret"];

/// A property of a form.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    title: Option<String>,
    description: Option<String>,
    is_required: bool,
    /// One that the property [takes](Kind::takes).
    default: Option<Value>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Words { format: Option<String>, least: Option<u64>, most: Option<u64> },
    Number { is_whole: bool, least: Option<Number>, most: Option<Number> },
    One(Vec<Item>),
    Many { items: Vec<Item>, least: Option<u64>, most: Option<u64> },
}

/// A value, and its title on one line.
#[derive(Debug)]
struct Item {
    value: Value,
    title: String,
}

/// How the values of a choice are shown.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    Titles,
    /// As numbers of a list.
    Numbers,
    /// As a list, of which the person writes a number.
    List,
}

impl Field {
    /// `None`: it is left out, because it cannot be asked and need not be. The error says why its form cannot be shown.
    pub(super) fn of(name: String, property: Property, is_required: bool) -> Result<Option<Self>, &'static str> {
        let Property { title, description, default, .. } = &property;
        let (title, description) =
            (shown(title.as_deref(), MOST_TITLE), shown(description.as_deref(), MOST_DESCRIPTION));
        let default = default.clone();
        let is_secret = property.format.as_deref() == Some("password")
            || asks_for_secret(&name)
            || title.as_deref().is_some_and(asks_for_secret);
        let kind = match Kind::of(property) {
            Some(Kind::Words { .. } | Kind::Number { .. }) if is_secret => {
                return Err("it asks for a password or another secret, which does not belong into a chat");
            }
            Some(kind) => kind,
            None if is_required => return Err("it asks for something of a type that is not known"),
            None => return Ok(None),
        };
        if let Kind::One(items) | Kind::Many { items, .. } = &kind
            && items.iter().map(|item| item.title.chars().count() + 4).sum::<usize>() > MOST_LISTED
        {
            return Err("it has more choices than can be shown");
        }
        let default = default.filter(|default| kind.takes(default));
        Ok(Some(Self { name, title, description, is_required, default, kind }))
    }

    /// What is asked, without the message of the form. `place`: the number of the field and how many there are.
    pub(super) fn text(&self, place: (usize, usize)) -> String {
        let name = self.title.clone().unwrap_or_else(|| excerpt(&self.name, MOST_TITLE));
        let head = match place {
            (_, 1) => name,
            (number, all) => format!("{name} ({number} of {all})"),
        };
        let parts = [Some(head), self.description.clone(), self.listed(), Some(self.hint())];
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    /// Where words are to be written there are none: a number would pick one by its place.
    pub(super) fn choices(&self) -> Choices {
        let options = match &self.kind {
            Kind::One(items) => self.labels(items),
            _ => None,
        };
        let free_text = options.is_none();
        Choices { options: options.unwrap_or_default(), free_text, expires: None }
    }

    /// The gateway's own choices.
    fn own_choices(&self) -> impl Iterator<Item = &'static str> {
        (!self.is_required).then_some(SKIP).into_iter().chain([DECLINE])
    }

    fn shown(&self, items: &[Item]) -> Shown {
        if items.len() + self.own_choices().count() > MOST_CHOICES {
            return Shown::List;
        }
        let mut seen: Vec<_> = self.own_choices().map(str::to_lowercase).collect();
        let is_label = |item: &Item| {
            let title = item.title.to_lowercase();
            let is_new = !seen.contains(&title);
            seen.push(title);
            let is_seen = !item.title.chars().any(is_hidden);
            is_new && is_seen && item.title.chars().count() <= MOST_CHOICE && !item.title.contains("```")
        };
        if items.iter().all(is_label) { Shown::Titles } else { Shown::Numbers }
    }

    /// `None`: the person is to write.
    fn labels(&self, items: &[Item]) -> Option<Vec<String>> {
        let label = |(index, item): (usize, &Item), shown| match shown {
            Shown::Titles => item.title.clone(),
            Shown::Numbers | Shown::List => (index + 1).to_string(),
        };
        let shown = self.shown(items);
        let labels = items.iter().enumerate().map(|item| label(item, shown));
        (shown != Shown::List).then(|| labels.chain(self.own_choices().map(str::to_owned)).collect())
    }

    /// The list of the choices, where they are not shown themselves.
    fn listed(&self) -> Option<String> {
        let (Kind::One(items) | Kind::Many { items, .. }) = &self.kind else { return None };
        if matches!(self.kind, Kind::One(_)) && self.shown(items) == Shown::Titles {
            return None;
        }
        let lines = items.iter().enumerate().map(|(index, item)| format!("{}. {}", index + 1, item.title));
        Some(lines.collect::<Vec<_>>().join("\n"))
    }

    /// What to write.
    fn hint(&self) -> String {
        let default = self.default.as_ref().map(|default| self.kind.title(default));
        if let Kind::One(items) = &self.kind
            && self.shown(items) != Shown::List
        {
            return default.map(|default| format!("Default: {default}")).unwrap_or_default();
        }
        let mut words = Vec::new();
        if let Some(default) = default {
            words.push(format!("“{DEFAULT}” for {default}"));
        }
        if matches!(&self.kind, Kind::Many { least: None | Some(0), .. }) {
            words.push(format!("“{NONE}” for none"));
        }
        if !self.is_required {
            words.push(format!("“{}” to leave it out", SKIP.to_lowercase()));
        }
        words.push(format!("“{}” to refuse", DECLINE.to_lowercase()));
        let words = words.join(", ");
        match self.kind.expects() {
            Some(expected) => format!("Please write {expected}; or {words}."),
            None => format!("Please write your answer; or {words}."),
        }
    }
}

impl Kind {
    /// `None`: its type is not known, or has nothing to choose.
    fn of(property: Property) -> Option<Self> {
        let Property { kind, format, min_length, max_length, minimum, maximum, min_items, max_items, .. } = property;
        Some(match kind.as_str() {
            "string" => match items_of(property.values) {
                Some(items) if items.is_empty() => return None,
                Some(items) => Self::One(items),
                None => Self::Words { format, least: min_length, most: max_length },
            },
            "number" | "integer" => Self::Number { is_whole: kind == "integer", least: minimum, most: maximum },
            "boolean" => Self::One(
                [(true, YES), (false, NO)].map(|(it, title)| Item { value: it.into(), title: title.to_owned() }).into(),
            ),
            "array" => {
                let items = items_of(property.items?).filter(|items| !items.is_empty())?;
                Self::Many { items, least: min_items, most: max_items }
            }
            _ => return None,
        })
    }

    /// A default as it is shown.
    fn title(&self, default: &Value) -> String {
        let of = |value: &Value| match (self, value) {
            (Self::One(items) | Self::Many { items, .. }, value) => {
                items.iter().find(|item| item.value == *value).map(|item| item.title.clone()).unwrap_or_default()
            }
            (_, Value::String(words)) => words.clone(),
            (_, value) => value.to_string(),
        };
        let title = match default {
            Value::Array(chosen) if chosen.is_empty() => NONE.to_owned(),
            Value::Array(chosen) => chosen.iter().map(of).collect::<Vec<_>>().join(", "),
            one => of(one),
        };
        excerpt(&title, MOST_DEFAULT)
    }

    /// What words are expected. `None`: any.
    fn expects(&self) -> Option<String> {
        match self {
            Self::One(_) => Some("the number of your choice".to_owned()),
            Self::Many { least, most, .. } => {
                let range = range(least.filter(|least| *least > 0), *most);
                Some(format!(
                    "the numbers of your choices, such as “1, 3”{}",
                    range.map_or_else(String::new, |it| format!(" ({it} of them)"))
                ))
            }
            Self::Number { is_whole, least, most } => {
                let what = if *is_whole { "a whole number" } else { "a number" };
                Some(range(least.as_ref(), most.as_ref()).map_or_else(|| what.to_owned(), |it| format!("{what}, {it}")))
            }
            Self::Words { format, least, most } => {
                let what = match format.as_deref() {
                    Some("email") => Some("an e-mail address"),
                    Some("uri") => Some("a web address"),
                    Some("date") => Some("a date such as 2026-11-28"),
                    Some("date-time") => Some("a time such as 2026-11-28T14:30:00Z"),
                    _ => None,
                };
                let length = range(least.filter(|least| *least > 1), *most).map(|it| format!("{it} characters"));
                match (what, length) {
                    (Some(what), Some(length)) => Some(format!("{what}, {length}")),
                    (what, length) => what.map(str::to_owned).or(length),
                }
            }
        }
    }
}

/// `None`: nothing is said about the values.
fn items_of(items: Items) -> Option<Vec<Item>> {
    let item = |value: String, title: &str| {
        let title = one_line(if title.trim().is_empty() { &value } else { title });
        Item { value: value.into(), title }
    };
    match items {
        Items { titled: Some(titled), .. } => {
            Some(titled.into_iter().map(|titled| item(titled.value, &titled.title)).collect())
        }
        Items { untitled: Some(values), .. } => {
            Some(values.into_iter().map(|value| item(value.clone(), &value)).collect())
        }
        _ => None,
    }
}

fn range<T: std::fmt::Display>(least: Option<T>, most: Option<T>) -> Option<String> {
    match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (None, Some(most)) => Some(format!("at most {most}")),
        (None, None) => None,
    }
}

/// Whether a name is one of a secret: `apiToken`, `api_key`, `Password`.
fn asks_for_secret(name: &str) -> bool {
    let mut spaced = String::with_capacity(name.len() + 8);
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && was_lower {
            spaced.push(' ');
        }
        was_lower = c.is_lowercase();
        spaced.extend(c.to_lowercase());
    }
    let words: Vec<_> = spaced.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_key = |pair: &[&str]| SECRET_KEYS.contains(&pair[0]) && pair[1] == "key";
    words.iter().any(|word| SECRETS.contains(word)) || words.windows(2).any(is_key)
}

/// A text on one line as it is shown. `None`: there is none.
fn shown(text: Option<&str>, most: usize) -> Option<String> {
    text.map(|text| excerpt(text, most)).filter(|text| !text.is_empty())
}

/// The title of a choice. Unlike an [`excerpt`] it is whole and as it is written: a person may write it to choose.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
