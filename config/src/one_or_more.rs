//! Keys that take one value or a list.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, IntoDeserializer, SeqAccess, Visitor},
};

/// The values of a key. Empty: the key is not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OneOrMore<T>(Vec<T>);

impl<T> Default for OneOrMore<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> OneOrMore<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

impl<T: Clone> OneOrMore<T> {
    /// `make` of the values, if there are any.
    pub(crate) fn then<C>(&self, make: impl FnOnce(Vec<T>) -> C) -> Option<C> {
        (!self.is_empty()).then(|| make(self.0.clone()))
    }
}

impl<T: Serialize> Serialize for OneOrMore<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &*self.0 {
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMore<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Values<T> {
            type Value = OneOrMore<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, or a list of texts")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<OneOrMore<T>, E> {
                Ok(OneOrMore(vec![T::deserialize(text.into_deserializer())?]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMore<T>, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                if values.is_empty() {
                    Err(A::Error::custom("is empty: remove it, or name one"))
                } else {
                    Ok(OneOrMore(values))
                }
            }
        }
        deserializer.deserialize_any(Values(PhantomData))
    }
}
