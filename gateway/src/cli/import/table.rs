//! A table of another gateway's configuration, from which keys are taken. What is left over has no counterpart here.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    notes::Notes,
    shared::{flag, words},
};

pub(super) struct Table {
    path: String,
    rest: Map<String, Value>,
    /// Tables in it of which keys were taken.
    entered: BTreeMap<String, Table>,
    /// Keys with a value of another type than theirs, and what it must be.
    wrong: Vec<(String, &'static str)>,
}

impl Table {
    /// The table at `path`, such as `channels.telegram`; "" is the root.
    pub(super) fn new(path: &str, rest: Map<String, Value>) -> Self {
        Self { path: path.to_owned(), rest, entered: BTreeMap::new(), wrong: Vec::new() }
    }

    /// The path of a key in it.
    pub(super) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.rest.keys().cloned().collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.rest.get(name).is_some_and(|value| !value.is_null()) || self.entered.contains_key(name)
    }

    /// Its keys that nobody has taken yet.
    pub(super) fn rest(&self) -> &Map<String, Value> {
        &self.rest
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.rest.remove(name).filter(|value| !value.is_null())
    }

    /// The table with this name, of which single keys are to be taken.
    pub(super) fn enter(&mut self, name: &str) -> Option<&mut Self> {
        if let Some(Value::Object(_)) = self.rest.get(name)
            && let Some(Value::Object(table)) = self.rest.remove(name)
        {
            self.entered.insert(name.to_owned(), Self::new(&self.path(name), table));
        }
        self.entered.get_mut(name)
    }

    /// The tables of a list or of a table, each with its path.
    pub(super) fn tables(&mut self, name: &str) -> Vec<(String, Self)> {
        let path = self.path(name);
        let named: Vec<(String, String, Value)> = match self.take(name) {
            None => return Vec::new(),
            Some(Value::Object(table)) => {
                table.into_iter().map(|(name, value)| (name.clone(), format!("{path}.{name}"), value)).collect()
            }
            Some(Value::Array(values)) => {
                (0..).zip(values).map(|(index, value)| (index.to_string(), format!("{path}[{index}]"), value)).collect()
            }
            Some(_) => {
                self.wrong.push((path, "a list or a table"));
                return Vec::new();
            }
        };
        let mut tables = Vec::new();
        for (name, path, value) in named {
            match value {
                Value::Object(table) => tables.push((name, Self::new(&path, table))),
                Value::Null => tables.push((name, Self::new(&path, Map::new()))),
                _ => self.wrong.push((path, "a table")),
            }
        }
        tables
    }

    /// A text. A number counts as one, because ids are written in both ways.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let text = match self.take(name)? {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => {
                self.wrong.push((self.path(name), "a text"));
                return None;
            }
        };
        Some(text).filter(|text| !text.is_empty())
    }

    pub(super) fn flag(&mut self, name: &str) -> Option<bool> {
        let flag = match self.take(name)? {
            Value::Bool(flag) => Some(flag),
            Value::String(text) => flag(&text),
            _ => None,
        };
        if flag.is_none() {
            self.wrong.push((self.path(name), "true or false"));
        }
        flag
    }

    pub(super) fn number(&mut self, name: &str) -> Option<u64> {
        let value = self.take(name)?;
        // Whole numbers may be written with a point.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked: whole, not negative, small"
        )]
        let whole =
            value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..1e15).contains(number)).map(|it| it as u64);
        let number = value.as_u64().or(whole).or_else(|| value.as_str()?.trim().parse().ok());
        if number.is_none() {
            self.wrong.push((self.path(name), "a whole number"));
        }
        number
    }

    /// Texts: a list, or one text with commas. `None` if the key is not there.
    pub(super) fn list(&mut self, name: &str) -> Option<Vec<String>> {
        let path = self.path(name);
        let mut texts = Vec::new();
        match self.take(name)? {
            Value::String(text) => texts.extend(words(&text)),
            Value::Number(number) => texts.push(number.to_string()),
            Value::Array(values) => {
                for (index, value) in values.into_iter().enumerate() {
                    match value {
                        Value::String(text) if text.trim().is_empty() => {}
                        Value::String(text) => texts.push(text.trim().to_owned()),
                        Value::Number(number) => texts.push(number.to_string()),
                        _ => self.wrong.push((format!("{path}[{index}]"), "a text or a number")),
                    }
                }
            }
            _ => self.wrong.push((path, "a list")),
        }
        Some(texts)
    }

    /// Notes what is left over, with the reasons that `hints` gives.
    pub(super) fn note_rest(self, notes: &mut Notes) {
        for (key, expected) in &self.wrong {
            notes.add(key, format!("is not {expected}"), "nothing was taken over: correct it there, or set ours");
        }
        for name in self.rest.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name) {
            notes.without_counterpart(&self.path(name));
        }
        for table in self.entered.into_values() {
            table.note_rest(notes);
        }
    }
}

pub(super) fn as_table(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(table) => table,
        _ => Map::new(),
    }
}
