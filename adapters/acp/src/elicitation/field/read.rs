//! What the words of a person say about a property, and whether that fits.

use serde_json::{Number, Value};

use super::{
    super::words::{DECLINE, DEFAULT, NONE, SKIP},
    Field, Item, Kind,
};

/// What a person has said about a property.
#[derive(Debug, PartialEq)]
pub(in crate::elicitation) enum Said {
    Value(Value),
    /// It is left out.
    Nothing,
    /// The whole form is declined.
    Decline,
}

impl Field {
    /// The error says what is wrong.
    pub(in crate::elicitation) fn read(&self, words: &str) -> Result<Said, String> {
        let is = |word: &str| words.to_lowercase() == word.to_lowercase();
        let one = match &self.kind {
            Kind::One(items) => picked(items, words),
            _ => None,
        };
        match &self.default {
            _ if one.is_some() => {}
            _ if is(DECLINE) => return Ok(Said::Decline),
            _ if is(SKIP) && !self.is_required => return Ok(Said::Nothing),
            Some(default) if is(DEFAULT) => return Ok(Said::Value(default.clone())),
            _ => {}
        }
        let value = match &self.kind {
            Kind::One(items) => one.map(|index| items[index].value.clone()).ok_or("That is none of the choices.")?,
            Kind::Many { items, least, most } => many(items, words, *least, *most)?,
            Kind::Words { format, least, most } => {
                is_of_format(format.as_deref(), words)?;
                has_length(words, *least, *most)?;
                words.into()
            }
            Kind::Number { is_whole, least, most } => number(words, *is_whole, least.as_ref(), most.as_ref())?.into(),
        };
        Ok(Said::Value(value))
    }
}

impl Kind {
    /// Whether its own schema takes a default. The agent validates what it is sent: another default is not offered. Nor does a default
    /// stand in for a property that is left out: in ACP, as in MCP, it is what the person begins with, and may change.
    pub(super) fn takes(&self, default: &Value) -> bool {
        let is_item = |items: &[Item], value: &Value| items.iter().any(|item| item.value == *value);
        match self {
            Self::Words { format, least, most } => default.as_str().is_some_and(|words| {
                let fits = is_of_format(format.as_deref(), words).is_ok() && has_length(words, *least, *most).is_ok();
                fits && !words.is_empty()
            }),
            Self::Number { is_whole, least, most } => default.as_number().is_some_and(|number| {
                (number.is_i64() || !is_whole) && is_within(number, least.as_ref(), most.as_ref()).is_ok()
            }),
            Self::One(items) => is_item(items, default),
            Self::Many { items, least, most } => default.as_array().is_some_and(|chosen| {
                chosen.iter().all(|value| is_item(items, value)) && has_count(chosen.len(), *least, *most).is_ok()
            }),
        }
    }
}

/// The index of what words choose: a title comes before a number.
fn picked(items: &[Item], words: &str) -> Option<usize> {
    let lower = words.to_lowercase();
    let is_number = !words.is_empty() && words.bytes().all(|byte| byte.is_ascii_digit());
    let number = || words.parse::<usize>().ok().filter(|_| is_number)?.checked_sub(1).filter(|at| *at < items.len());
    items
        .iter()
        .position(|item| item.title == words)
        .or_else(|| items.iter().position(|item| item.title.to_lowercase() == lower))
        .or_else(number)
}

/// The values that words choose, in the order of the form.
fn many(items: &[Item], words: &str, least: Option<u64>, most: Option<u64>) -> Result<Value, String> {
    let mut chosen = vec![false; items.len()];
    let wants_none = words.to_lowercase() == NONE;
    for part in words.split([',', ';', '\n']).map(str::trim).filter(|part| !part.is_empty() && !wants_none) {
        if let Some(index) = picked(items, part) {
            chosen[index] = true;
            continue;
        }
        for word in part.split_whitespace() {
            let index = picked(items, word).ok_or("That is not a list of numbers of the choices.")?;
            chosen[index] = true;
        }
    }
    let values: Vec<_> = items.iter().zip(chosen).filter(|(_, it)| *it).map(|(item, _)| item.value.clone()).collect();
    has_count(values.len(), least, most)?;
    Ok(values.into())
}

fn has_count(count: usize, least: Option<u64>, most: Option<u64>) -> Result<(), String> {
    let count = count as u64;
    match (least, most) {
        (Some(least), _) if count < least => Err(format!("Please choose at least {least}.")),
        (_, Some(most)) if count > most => Err(format!("Please choose at most {most}.")),
        _ => Ok(()),
    }
}

fn number(words: &str, is_whole: bool, least: Option<&Number>, most: Option<&Number>) -> Result<Number, String> {
    let whole = words.parse::<i64>().ok().map(Number::from);
    let number = match whole {
        None if is_whole => return Err("That is no whole number.".to_owned()),
        None => words.parse().ok().and_then(Number::from_f64).ok_or("That is no number.")?,
        Some(whole) => whole,
    };
    is_within(&number, least, most)?;
    Ok(number)
}

fn is_within(number: &Number, least: Option<&Number>, most: Option<&Number>) -> Result<(), String> {
    match (least, most) {
        (Some(least), _) if is_less(number, least) => Err(format!("That is less than {least}.")),
        (_, Some(most)) if is_less(most, number) => Err(format!("That is more than {most}.")),
        _ => Ok(()),
    }
}

fn is_less(one: &Number, other: &Number) -> bool {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one < other,
        _ => one.as_f64() < other.as_f64(),
    }
}

/// Formats that are not known fit.
fn is_of_format(format: Option<&str>, words: &str) -> Result<(), &'static str> {
    let (fits, wrong) = match format {
        Some("email") => (is_email(words), "That is no e-mail address."),
        Some("uri") => (url::Url::parse(words).is_ok(), "That is no web address. It begins with https:// or the like."),
        Some("date") => {
            let is_written_so = words.len() == "2026-11-28".len();
            (is_written_so && words.parse::<jiff::civil::Date>().is_ok(), "That is no date such as 2026-11-28.")
        }
        Some("date-time") => {
            let has_time = words.get(10..11) == Some("T");
            let fits = has_time && words.parse::<jiff::Timestamp>().is_ok();
            (fits, "That is no time such as 2026-11-28T14:30:00Z.")
        }
        _ => (true, ""),
    };
    if fits { Ok(()) } else { Err(wrong) }
}

fn is_email(words: &str) -> bool {
    let is_part =
        |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c.is_control() || c == '@');
    words.rsplit_once('@').is_some_and(|(name, host)| is_part(name) && is_part(host))
}

fn has_length(words: &str, least: Option<u64>, most: Option<u64>) -> Result<(), String> {
    let length = words.chars().count() as u64;
    match (least, most) {
        (Some(least), _) if length < least => Err(format!("That has fewer than {least} characters.")),
        (_, Some(most)) if length > most => Err(format!("That has more than {most} characters.")),
        _ => Ok(()),
    }
}
