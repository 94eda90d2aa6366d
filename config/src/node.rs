//! A TOML tree that remembers where each value was written.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use toml::de::{DeTable, DeValue};

use crate::{
    key::{Key, KeyStep},
    problem::{Origin, Problem},
};

/// The manual. The parts of platforms and kinds of agents replace the lines `#{channels}` and `#{agents}`.
pub(crate) const DEFAULT_TOML: &str = include_str!("../default.toml");

pub(crate) type Table = BTreeMap<String, Node>;

#[derive(Clone)]
pub(crate) enum Value {
    Table(Table),
    List(Vec<Node>),
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Date,
}

#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
    /// The text of an environment variable, used by keys whose value is text: a token of digits is not a number.
    pub(crate) raw: Option<String>,
}

/// Finds the place of a byte offset in a source.
type Locate<'a> = &'a dyn Fn(usize) -> Origin;

impl Node {
    pub(crate) fn new(value: Value, origin: Origin) -> Self {
        Self { value, origin, raw: None }
    }

    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.table()?.get(name)
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match (&self.value, &self.raw) {
            (Value::Text(text), _) => Some(text),
            (Value::Table(_) | Value::List(_), _) => None,
            (_, raw) => raw.as_deref(),
        }
    }

    /// The place of the value at `steps`, or of the nearest value above it.
    pub(crate) fn origin_of(&self, steps: &[KeyStep]) -> &Origin {
        let next = match (steps.first(), &self.value) {
            (Some(KeyStep::Name(name)), Value::Table(table)) => table.get(name),
            (Some(KeyStep::Index(index)), Value::List(list)) => list.get(*index),
            _ => None,
        };
        next.map_or(&self.origin, |next| next.origin_of(&steps[1..]))
    }

    /// Removes the value at `steps`. Returns `false` if there is none.
    pub(crate) fn remove(&mut self, steps: &[KeyStep]) -> bool {
        let (Some(KeyStep::Name(name)), Value::Table(table)) = (steps.first(), &mut self.value) else {
            return false;
        };
        if steps.len() == 1 {
            return table.remove(name).is_some();
        }
        table.get_mut(name).is_some_and(|next| next.remove(&steps[1..]))
    }

    /// Applies `over`: tables are merged, other values are replaced.
    pub(crate) fn overlay(&mut self, over: Self) {
        if self.is_reference() || over.is_reference() {
            *self = over;
            return;
        }
        match (&mut self.value, over) {
            (Value::Table(table), Self { value: Value::Table(over), origin, .. }) => {
                for (name, node) in over {
                    match table.get_mut(&name) {
                        Some(under) => under.overlay(node),
                        None => drop(table.insert(name, node)),
                    }
                }
                if self.origin == Origin::Default {
                    self.origin = origin;
                }
            }
            (_, over) => *self = over,
        }
    }

    /// Whether `over` replaces no table with a single value.
    pub(crate) fn preserves_tables(&self, over: &Self) -> bool {
        match (self.table().filter(|_| !self.is_reference()), over.table()) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(table), Some(over)) => {
                over.iter().all(|(name, over)| table.get(name).is_none_or(|node| node.preserves_tables(over)))
            }
        }
    }

    /// Whether this is a reference to a secret (`{ env = "NAME" }`), which counts as one value although it is a TOML table.
    fn is_reference(&self) -> bool {
        self.table().is_some_and(|table| {
            !table.is_empty() && table.keys().all(|name| matches!(&**name, "env" | "file" | "generate"))
        })
    }

    fn from_toml(value: &DeValue<'_>, origin: Origin, locate: Locate<'_>) -> Self {
        let value = match value {
            DeValue::String(text) => Value::Text(text.clone().into_owned()),
            // TOML integers have 64 bits. No key accepts a larger number, so it is kept as text.
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
                .map_or_else(|_| Value::Text(integer.to_string()), Value::Integer),
            DeValue::Float(float) => {
                float.as_str().parse().map_or_else(|_| Value::Text(float.to_string()), Value::Float)
            }
            DeValue::Boolean(boolean) => Value::Boolean(*boolean),
            DeValue::Datetime(_) => Value::Date,
            DeValue::Array(items) => Value::List(
                items.iter().map(|item| Self::from_toml(item.get_ref(), locate(item.span().start), locate)).collect(),
            ),
            DeValue::Table(table) => return Self::from_table(table, origin, locate),
        };
        Self::new(value, origin)
    }

    fn from_table(table: &DeTable<'_>, origin: Origin, locate: Locate<'_>) -> Self {
        let entries = table.iter().map(|(name, value)| {
            let origin = locate(name.span().start);
            (name.get_ref().clone().into_owned(), Self::from_toml(value.get_ref(), origin, locate))
        });
        Self::new(Value::Table(entries.collect()), origin)
    }
}

/// Parses a document.
///
/// # Errors
/// Every syntax error.
pub(crate) fn parse_file(source: &str, path: &Path) -> Result<Node, Vec<Problem>> {
    let path: Arc<Path> = path.into();
    let line = |offset: usize| 1 + source.get(..offset).unwrap_or(source).matches('\n').count();
    let locate = |offset: usize| Origin::File { path: Arc::clone(&path), line: line(offset) };

    let (table, errors) = DeTable::parse_recoverable(source);
    if errors.is_empty() {
        return Ok(Node::from_table(table.get_ref(), locate(0), &locate));
    }
    let mut problems: Vec<Problem> = errors.iter().map(|error| syntax_problem(error, source, &locate)).collect();
    // Keys below a duplicate table are not reported again.
    let twice: Vec<Key> = problems.iter().filter_map(|problem| problem.key().cloned()).collect();
    problems.retain(|problem| problem.key().is_none_or(|key| !twice.iter().any(|other| key.is_below(other))));
    Err(problems)
}

/// Parses the built-in defaults.
///
/// # Panics
/// When the manual is not TOML; a test shows that it is.
pub(crate) fn parse_default(source: &str) -> Node {
    let table = DeTable::parse(source).expect("the manual is TOML");
    Node::from_table(table.get_ref(), Origin::Default, &|_| Origin::Default)
}

/// Parses the value of an environment variable as TOML, or else as text.
pub(crate) fn parse_variable(held: &str, name: &str) -> Node {
    let origin = Origin::Variable(name.into());
    let mut node = match DeValue::parse(held) {
        Ok(value) => Node::from_toml(value.get_ref(), origin.clone(), &|_| origin.clone()),
        Err(_) => Node::new(Value::Text(held.to_owned()), origin),
    };
    node.raw = Some(held.to_owned());
    node
}

fn syntax_problem(error: &toml::de::Error, source: &str, locate: Locate<'_>) -> Problem {
    let origin = locate(error.span().map_or(0, |span| span.start));
    match duplicate_key(error, source) {
        Some(key) => Problem::Key { key, what: "is defined twice: rename or remove one of them".to_owned(), origin },
        None => Problem::Syntax { what: format!("not TOML: {}", error.message()), origin },
    }
}

/// The key of a duplicate-key error. The parser reports only the place of its last part.
fn duplicate_key(error: &toml::de::Error, source: &str) -> Option<Key> {
    if !error.message().contains("duplicate key") {
        return None;
    }
    let span = error.span()?;
    let line_start = source[..span.start].rfind('\n').map_or(0, |newline| newline + 1);
    let line = source[line_start..].lines().next()?;
    let (before_line, before_key) = (&source[..line_start], &source[line_start..span.start]);

    let mut key = Key::default();
    if let Some(header) = header(line) {
        return Some(dotted(&key, header));
    }
    if let Some(header) = before_line.lines().rev().find_map(header) {
        key = dotted(&key, header);
    }
    key = dotted(&key, line.split('=').next()?);
    // In an inline table the duplicate is below the line's own key.
    Some(if before_key.contains('=') { dotted(&key, &source[span]) } else { key })
}

fn header(line: &str) -> Option<&str> {
    line.trim().strip_prefix('[')?.trim_start_matches('[').split(']').next()
}

fn dotted(key: &Key, written: &str) -> Key {
    written.split('.').fold(key.clone(), |key, name| key.name(name.trim().trim_matches(['"', '\''])))
}
