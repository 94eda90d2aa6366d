//! The effective configuration, printed.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use toml_edit::{
    Array, DocumentMut, Item, Table,
    visit_mut::{VisitMut, visit_array_mut, visit_item_mut, visit_table_mut},
};

use crate::Config;

/// What is shown of a section: its keys in their order, without secrets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shown {
    None,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Self>),
    Table(Vec<(String, Self)>),
}

impl Shown {
    /// # Panics
    /// Never: every section was read from such values.
    pub(crate) fn of(section: &impl Serialize) -> Self {
        let written = serde_json::to_string(section).expect("what was read from TOML can be written as JSON");
        serde_json::from_str(&written).expect("what was written as JSON can be read")
    }

    /// The same table with one more key, before the others.
    pub(crate) fn with_first(&self, key: &str, text: &str) -> Self {
        let first = (key.to_owned(), Self::Text(text.to_owned()));
        let others = if let Self::Table(entries) = self { entries.clone() } else { Vec::new() };
        Self::Table(std::iter::once(first).chain(others).collect())
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_none(),
            Self::Boolean(boolean) => serializer.serialize_bool(*boolean),
            Self::Integer(integer) => serializer.serialize_i64(*integer),
            Self::Float(float) => serializer.serialize_f64(*float),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Table(entries) => serializer.collect_map(entries.iter().map(|(key, value)| (key, value))),
        }
    }
}

impl<'de> Deserialize<'de> for Shown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Shown;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Shown, E> {
        Ok(Shown::None)
    }

    fn visit_bool<E>(self, boolean: bool) -> Result<Shown, E> {
        Ok(Shown::Boolean(boolean))
    }

    fn visit_i64<E>(self, integer: i64) -> Result<Shown, E> {
        Ok(Shown::Integer(integer))
    }

    fn visit_u64<E: serde::de::Error>(self, integer: u64) -> Result<Shown, E> {
        i64::try_from(integer).map(Shown::Integer).map_err(E::custom)
    }

    fn visit_f64<E>(self, float: f64) -> Result<Shown, E> {
        Ok(Shown::Float(float))
    }

    fn visit_str<E>(self, text: &str) -> Result<Shown, E> {
        Ok(Shown::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Shown, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Shown::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Shown, A::Error> {
        let mut table = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            table.push(entry);
        }
        Ok(Shown::Table(table))
    }
}

impl Config {
    /// The configuration as TOML that can be loaded again, but for the secrets: each is `***`.
    ///
    /// # Panics
    /// Never: every value of a configuration was read from TOML.
    #[must_use]
    pub fn to_toml_redacted(&self) -> String {
        let mut document = toml_edit::ser::to_document(self).expect("what was read from TOML can be written as TOML");
        Layout.visit_document_mut(&mut document);
        // A blank line stands before each table, and so before the first.
        document.to_string().trim_start().to_owned()
    }
}

/// Tables get headers of their own; what stands in a list, and what is one value, stays in its line.
struct Layout;

impl VisitMut for Layout {
    fn visit_document_mut(&mut self, document: &mut DocumentMut) {
        self.visit_table_mut(document.as_table_mut());
    }

    fn visit_item_mut(&mut self, item: &mut Item) {
        let is_reference = item.as_inline_table().is_some_and(|table| table.contains_key("generate"));
        if item.is_inline_table() && !is_reference {
            let table = std::mem::take(item).into_table().expect("an inline table is a table");
            *item = Item::Table(table);
        }
        visit_item_mut(self, item);
    }

    fn visit_table_mut(&mut self, table: &mut Table) {
        table.decor_mut().clear();
        table.set_implicit(!table.is_empty());
        visit_table_mut(self, table);
    }

    fn visit_array_mut(&mut self, array: &mut Array) {
        visit_array_mut(self, array);
        array.fmt();
    }
}
