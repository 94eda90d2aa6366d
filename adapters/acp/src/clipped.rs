//! What is known of a message of which only the beginning was kept. No I/O.

use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

/// The fields that stand whole in the beginning of a message.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Clipped {
    pub(crate) id: Option<Value>,
    pub(crate) method: Option<String>,
    /// The session of its parameters.
    pub(crate) session: Option<String>,
    /// Whether a result or an error begins in it.
    pub(crate) is_answer: bool,
}

impl Clipped {
    pub(crate) fn read(beginning: &[u8]) -> Self {
        let mut clipped = Self::default();
        let fields = Fields { clipped: &mut clipped, are_parameters: false };
        // It fails where the beginning ends. What was read until then is kept.
        let _ = fields.deserialize(&mut serde_json::Deserializer::from_slice(beginning));
        clipped
    }
}

struct Fields<'a> {
    clipped: &'a mut Clipped,
    are_parameters: bool,
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, fields: D) -> Result<(), D::Error> {
        fields.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let Self { clipped, are_parameters } = self;
        while let Some(name) = fields.next_key::<String>()? {
            clipped.is_answer |= !are_parameters && matches!(name.as_str(), "result" | "error");
            match (are_parameters, name.as_str()) {
                (true, "sessionId") => clipped.session = Some(fields.next_value()?),
                (false, "id") => clipped.id = Some(fields.next_value()?),
                (false, "method") => clipped.method = Some(fields.next_value()?),
                (false, "params") => fields.next_value_seed(Fields { clipped: &mut *clipped, are_parameters: true })?,
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_beginning_tells_what_a_message_is() {
        let text = |text: &str| Some(text.to_owned());
        let update = br#"{"jsonrpc":"2.0","method":"session/update","params":{"x":{"sessionId":"no"},"sessionId":"s1","update":{"a":"aaa"#;
        assert_eq!(
            Clipped::read(update),
            Clipped { method: text("session/update"), session: text("s1"), ..Clipped::default() }
        );
        let answer = br#"{"jsonrpc":"2.0","id":3,"result":{"sessionId":"s1","x":"aaa"#;
        assert_eq!(Clipped::read(answer), Clipped { id: Some(json!(3)), is_answer: true, ..Clipped::default() });
        let hidden = br#"{"method":"session/update","params":{"update":"aaa"#;
        assert_eq!(Clipped::read(hidden), Clipped { method: text("session/update"), ..Clipped::default() });
        assert_eq!(Clipped::read(br#"{"method":"session/upd"#), Clipped::default());
        assert_eq!(Clipped::read(b"[1, 2"), Clipped::default());
    }
}
