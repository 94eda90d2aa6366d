//! The values of a section, without secrets.

use std::{
    borrow::Cow,
    cell::Cell,
    fmt,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use url::Url;

thread_local! {
    /// Whether values are written to compare them: a value that is not printed in whole has a digest.
    static COMPARES: Cell<bool> = const { Cell::new(false) };
}

/// Serialises shortened values within `write` with a digest, so that each change of them shows.
pub(crate) fn to_compare<T>(write: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            COMPARES.set(self.0);
        }
    }
    let _before = Before(COMPARES.replace(true));
    write()
}

/// Whether values are written to be compared, and not to be printed.
pub(crate) fn is_compared() -> bool {
    COMPARES.get()
}

/// What is serialised of a value of which only `printed` may be read.
pub(crate) fn written<'a>(printed: &'a str, value: &str) -> Cow<'a, str> {
    if is_compared() {
        let digest = BuildHasherDefault::<DefaultHasher>::default().hash_one(value);
        format!("{printed} {digest:x}").into()
    } else {
        printed.into()
    }
}

/// A section as it is printed: its keys in order, without secrets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RedactedValue {
    None,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Self>),
    Table(Vec<(String, Self)>),
}

impl RedactedValue {
    /// # Panics
    /// Never: every section was read from such values.
    pub(crate) fn of(section: &impl Serialize) -> Self {
        let written = serde_json::to_string(section).expect("values read from TOML can be written as JSON");
        serde_json::from_str(&written).expect("written JSON can be read")
    }

    /// The same table with one more key before the others.
    pub(crate) fn with_first(&self, key: &str, text: &str) -> Self {
        let first = (key.to_owned(), Self::Text(text.to_owned()));
        let others = if let Self::Table(entries) = self { entries.clone() } else { Vec::new() };
        Self::Table(std::iter::once(first).chain(others).collect())
    }
}

impl Serialize for RedactedValue {
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

impl<'de> Deserialize<'de> for RedactedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

/// A URL without its query, which may contain a key. Any other text stays as it is.
fn without_query(text: &str) -> Cow<'_, str> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https" | "ws" | "wss"));
    match url.filter(|url| url.query().is_some() || url.fragment().is_some()) {
        Some(mut url) => {
            url.set_query(Some("***"));
            url.set_fragment(None);
            String::from(url).into()
        }
        None => text.into(),
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = RedactedValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<RedactedValue, E> {
        Ok(RedactedValue::None)
    }

    fn visit_bool<E>(self, boolean: bool) -> Result<RedactedValue, E> {
        Ok(RedactedValue::Boolean(boolean))
    }

    fn visit_i64<E>(self, integer: i64) -> Result<RedactedValue, E> {
        Ok(RedactedValue::Integer(integer))
    }

    fn visit_u64<E: serde::de::Error>(self, integer: u64) -> Result<RedactedValue, E> {
        i64::try_from(integer).map(RedactedValue::Integer).map_err(E::custom)
    }

    fn visit_f64<E>(self, float: f64) -> Result<RedactedValue, E> {
        Ok(RedactedValue::Float(float))
    }

    fn visit_str<E>(self, text: &str) -> Result<RedactedValue, E> {
        Ok(RedactedValue::Text(match without_query(text) {
            Cow::Borrowed(text) => text.to_owned(),
            Cow::Owned(printed) => written(&printed, text).into_owned(),
        }))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RedactedValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(RedactedValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<RedactedValue, A::Error> {
        let mut table = Vec::new();
        while let Some((key, value)) = entries.next_entry::<String, RedactedValue>()? {
            match value {
                // A part, whose keys stand in the table itself.
                RedactedValue::Table(part) if key.starts_with("..") => table.extend(part),
                value => table.push((key, value)),
            }
        }
        Ok(RedactedValue::Table(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_of_a_url_is_not_printed() {
        let section = serde_json::json!({
            "callback_url": "https://host/a?token=secret#secret", "list": ["wss://host/?secret"],
            "base_url": "https://host/v1", "greeting": "Why https://host/?b=c?",
        });

        let printed = serde_json::to_value(RedactedValue::of(&section)).expect("JSON");

        assert_eq!(
            printed,
            serde_json::json!({
                "callback_url": "https://host/a?***", "list": ["wss://host/?***"],
                "base_url": "https://host/v1", "greeting": "Why https://host/?b=c?",
            })
        );
    }
}
