//! Values of columns, whatever the database is.

use rejoinder_core::without_nul;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `uuid`, in SQLite 16 bytes.
    Id,
    /// As [`Id`](Self::Id), but a missing id is the nil id, in SQLite zero bytes.
    RemovedId,
    /// `bigint`.
    Number,
    /// A number that is the row's own in SQLite: `rowid`.
    RowId,
    /// `boolean`, in SQLite 0 or 1.
    Flag,
    /// What somebody wrote, or a program.
    Text,
    /// An id or a name by which something is found.
    Name,
    /// JSON that PostgreSQL stores as `jsonb`, and so not as it was written.
    Json,
    /// JSON that is text in both.
    JsonText,
    /// `bytea`.
    Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    Null,
    Id(Uuid),
    Number(i64),
    Flag(bool),
    Text(String),
    Bytes(Vec<u8>),
}

impl Value {
    /// The same value as both databases can store it: without U+0000, and JSON in one way of writing.
    ///
    /// U+0000 goes from texts. In a name it becomes U+FFFD: without it the name could be that of something else.
    pub(crate) fn settled(self, kind: Kind) -> serde_json::Result<Self> {
        let Self::Text(mut text) = self else { return Ok(self) };
        if kind == Kind::Name {
            return Ok(Self::Text(if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }));
        }
        if text.contains('\0') {
            text.retain(|character| character != '\0');
        }
        let json: Option<Json> = match kind {
            Kind::Json => Some(serde_json::from_str(&text)?),
            // Statements that read it as `json` fail at the escape. What is not JSON stays as it is: its reader reports it.
            Kind::JsonText if text.contains("\\u0000") => serde_json::from_str(&text).ok(),
            _ => None,
        };
        Ok(Self::Text(json.map_or(text, |mut json| {
            strip(&mut json);
            json.sort_all_objects();
            json.to_string()
        })))
    }

    pub(crate) fn has_nul(&self) -> bool {
        matches!(self, Self::Text(text) if text.contains('\0'))
    }
}

/// Removes U+0000 from all texts.
fn strip(json: &mut Json) {
    match json {
        Json::String(text) => text.retain(|character| character != '\0'),
        Json::Array(items) => items.iter_mut().for_each(strip),
        Json::Object(fields) => {
            if fields.keys().any(|name| name.contains('\0')) {
                *fields = std::mem::take(fields)
                    .into_iter()
                    .map(|(name, value)| (without_nul(&name).into_owned(), value))
                    .collect();
            }
            fields.values_mut().for_each(strip);
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// The digest of rows in their order.
#[derive(Debug, Default)]
pub(crate) struct RowDigest(Sha256);

impl RowDigest {
    pub(crate) fn add(&mut self, row: &[Value]) {
        let mut scratch;
        for value in row {
            let (kind, bytes): (u8, &[u8]) = match value {
                Value::Null => (0, &[]),
                Value::Id(id) => (1, id.as_bytes()),
                Value::Number(number) => {
                    scratch = number.to_le_bytes();
                    (2, &scratch)
                }
                Value::Flag(flag) => (3, if *flag { &[1] } else { &[0] }),
                Value::Text(text) => (4, text.as_bytes()),
                Value::Bytes(bytes) => (5, bytes),
            };
            self.0.update([kind]);
            self.0.update(bytes.len().to_le_bytes());
            self.0.update(bytes);
        }
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// Reads a column of a row of SQLx: the place `$index`, as a [`Kind`].
macro_rules! value_of {
    ($row:expr, $index:expr, $kind:expr) => {{
        use $crate::shared::copying::values::{Kind, Value};
        match $kind {
            Kind::Id | Kind::RemovedId => value_of!(@as uuid::Uuid, Id, $row, $index),
            Kind::Number | Kind::RowId => value_of!(@as i64, Number, $row, $index),
            Kind::Flag => value_of!(@as bool, Flag, $row, $index),
            Kind::Text | Kind::Name | Kind::Json | Kind::JsonText => value_of!(@as String, Text, $row, $index),
            Kind::Bytes => value_of!(@as Vec<u8>, Bytes, $row, $index),
        }
    }};
    (@as $type:ty, $value:ident, $row:expr, $index:expr) => {
        sqlx::Row::try_get::<Option<$type>, _>($row, $index).map(|value| value.map_or(Value::Null, Value::$value))
    };
}
pub(crate) use value_of;

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(kind: Kind, text: &str) -> String {
        let Ok(Value::Text(settled)) = Value::Text(text.to_owned()).settled(kind) else { panic!("it is no text") };
        let again = Value::Text(settled.clone()).settled(kind).expect("it can be settled");
        assert_eq!(again, Value::Text(settled.clone()), "it stays so");
        settled
    }

    #[test]
    fn a_nul_goes_from_texts_and_is_marked_in_names() {
        assert_eq!(settled(Kind::Text, "a\0b"), "ab");
        assert_eq!(settled(Kind::Name, "a\0b"), "a\u{fffd}b");
        assert_eq!(settled(Kind::JsonText, r#"{"b":"\u0000x", "a":"\\u0000"}"#), r#"{"a":"\\u0000","b":"x"}"#);
        assert_eq!(settled(Kind::JsonText, "{ \"a\": 1 }"), "{ \"a\": 1 }", "it is left as it was written");
        assert_eq!(settled(Kind::JsonText, "damaged \\u0000\0"), "damaged \\u0000");
        assert_eq!(Value::Null.settled(Kind::Text).expect("it is settled"), Value::Null);
    }

    #[test]
    fn json_is_the_same_in_any_order_and_without_a_nul() {
        let one = settled(Kind::Json, r#"{"bb":[1,"x\u0000"],"a\u0000":{"d":null,"c":2.5}}"#);
        let other = settled(Kind::Json, r#"{"a": {"c": 2.5, "d": null}, "bb": [1, "x"]}"#);
        assert_eq!(one, other);
        assert!(Value::Text("{".to_owned()).settled(Kind::Json).is_err());
    }

    #[test]
    fn a_digest_tells_rows_apart() {
        let digest = |rows: &[&[Value]]| {
            let mut digest = RowDigest::default();
            for row in rows {
                digest.add(row);
            }
            digest.finish()
        };
        let text = |text: &str| Value::Text(text.to_owned());
        let digests = [
            digest(&[&[text("ab"), text("c")]]),
            digest(&[&[text("a"), text("bc")]]),
            digest(&[&[text("ab"), Value::Bytes(b"c".to_vec())]]),
            digest(&[&[text("ab"), Value::Null]]),
            digest(&[&[text("ab"), text("")]]),
            digest(&[&[Value::Number(1)]]),
            digest(&[&[Value::Flag(true)]]),
        ];
        for (number, one) in digests.iter().enumerate() {
            assert!(!digests[..number].contains(one), "{number}");
        }
    }
}
