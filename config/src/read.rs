//! Reads structs from the tree, with a serde deserializer whose errors contain the key and its place.

use std::{cell::RefCell, fmt, fmt::Write as _, rc::Rc};

use serde::{
    Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, EnumAccess, Error, Expected, IntoDeserializer, MapAccess, SeqAccess,
        Unexpected, VariantAccess, Visitor,
        value::{SeqDeserializer, StrDeserializer},
    },
    forward_to_deserialize_any,
};

use crate::{
    check::{Checks, Names, Section},
    environment::ResolveContext,
    key::Key,
    names::{list, nearest, one_of, unknown},
    node::{Node, Table, Value},
    problem::{Origin, Problem},
    secret, system_prompt,
    text::{NAME_RULE, is_name},
};

/// Reads sections and collects their problems.
pub(crate) struct Reader<'a> {
    pub(crate) context: &'a ResolveContext<'a>,
    pub(crate) names: &'a Names,
    pub(crate) problems: Vec<Problem>,
}

impl Reader<'_> {
    pub(crate) fn problem(&mut self, key: Key, origin: &Origin, what: impl Into<String>) {
        self.problems.push(Problem::Key { key, what: what.into(), origin: origin.clone() });
    }

    /// Reads and checks one section, like [`read_and`](Self::read_and).
    pub(crate) fn read<T: Section + DeserializeOwned>(&mut self, node: &Node, key: &Key) -> Option<T> {
        self.read_and(node, key, |_, _| {})
    }

    /// Reads one section, checks it, and runs the `more` checks. Reports all problems and not only the first: each wrong
    /// value is removed from the tree, and the rest is read again. `None` if anything was wrong.
    pub(crate) fn read_and<T: Section + DeserializeOwned>(
        &mut self,
        node: &Node,
        key: &Key,
        more: impl Fn(&T, &mut Checks<'_>),
    ) -> Option<T> {
        let missing: Vec<_> =
            T::REQUIRED.iter().filter(|name| node.table().is_some() && node.get(name).is_none()).collect();
        for name in &missing {
            self.problem(key.name(name), &node.origin, "must be set");
        }
        let mut rest = node.clone();
        let mut removed = Vec::new();
        loop {
            let error = match T::deserialize(Source::new(&rest, key.clone(), self.context)) {
                Ok(section) if missing.is_empty() && removed.is_empty() => {
                    let mut checks = Checks::new(key, node, self.names);
                    section.check(&mut checks);
                    more(&section, &mut checks);
                    let problems = checks.into_problems();
                    let sound = problems.is_empty();
                    self.problems.extend(problems);
                    return sound.then_some(section);
                }
                Ok(_) => return None,
                Err(error) => error,
            };
            let (at, origin) = error.at.unwrap_or_else(|| (key.clone(), node.origin.clone()));
            let unusable = if error.missing { at.parent().unwrap_or_default() } else { at.or_list() };
            // A required value that was removed above is not reported as missing.
            if !(error.missing && removed.contains(&at)) {
                self.problem(at, &origin, error.what);
            }
            if !rest.remove(unusable.below(key)) {
                return None;
            }
            removed.push(unusable);
        }
    }
}

/// The keys of a section, taken from the error for an unknown one; `None` if it takes any.
pub(crate) fn keys<T: DeserializeOwned>(context: &ResolveContext<'_>) -> Option<Vec<&'static str>> {
    let at_default = |value| Node::new(value, Origin::Default);
    // No section has a key without a name.
    let table = Table::from([(String::new(), at_default(Value::Boolean(true)))]);
    let node = at_default(Value::Table(table));
    T::deserialize(Source::new(&node, Key::default(), context)).err()?.known
}

/// Why a value cannot be read. The innermost value that it passes through sets its location.
#[derive(Debug)]
pub(crate) struct ReadError {
    at: Option<(Key, Origin)>,
    missing: bool,
    what: String,
    /// If a key is unknown: those that are known.
    known: Option<Vec<&'static str>>,
}

impl ReadError {
    fn new(what: impl Into<String>) -> Self {
        Self { at: None, missing: false, what: what.into(), known: None }
    }

    fn unknown(field: &str, known: Vec<&'static str>) -> Self {
        let what = unknown(field, known.iter().copied());
        Self { known: Some(known), ..Self::new(what) }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for ReadError {}

impl Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match unexpected {
            Unexpected::Map => "a table".to_owned(),
            Unexpected::Seq => "a list".to_owned(),
            Unexpected::Str(text) => excerpt(text),
            Unexpected::Signed(number) => number.to_string(),
            Unexpected::Float(number) => number.to_string(),
            Unexpected::Bool(boolean) => boolean.to_string(),
            Unexpected::Other(text) => text.to_owned(),
            // The name of a variant without the value that it needs.
            Unexpected::UnitVariant => return Self::new("needs a value: write it as `{ name = \"value\" }`"),
            unexpected => unexpected.to_string(),
        };
        Self::new(format!("must be {expected}, not {found}"))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match unexpected {
            Unexpected::Str("") => Self::new(format!("is empty: it must be {expected}")),
            unexpected => Self::invalid_type(unexpected, expected),
        }
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        let mut what = format!("must be {}, not `{variant}`", one_of(known.iter().copied()));
        if let Some(nearest) = nearest(variant, known.iter().copied()) {
            let _ = write!(what, " (did you mean `{nearest}`?)");
        }
        Self::new(what)
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::unknown(field, known.to_vec())
    }

    fn missing_field(field: &'static str) -> Self {
        // `Source::locate` replaces the text and adds the table's key.
        Self { missing: true, ..Self::new(field) }
    }
}

/// The text, unless no store can keep it.
fn storable(text: &str) -> Result<&str, ReadError> {
    if text.contains('\0') { Err(ReadError::new("must not contain the character U+0000")) } else { Ok(text) }
}

/// Quotes the beginning of a text for an error message.
fn excerpt(text: &str) -> String {
    const MAX_CHARACTERS: usize = 60;
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Calls `each` for the entries of a table whose keys are names that the operator chose. Reports invalid names.
pub(crate) fn entries<'a>(
    node: &Node,
    key: &Key,
    reader: &mut Reader<'a>,
    mut each: impl FnMut(&str, &Node, &Key, &mut Reader<'a>),
) {
    let Some(table) = node.table() else {
        reader.problem(key.clone(), &node.origin, "must be a table");
        return;
    };
    for (name, node) in table {
        let key = key.name(name);
        if is_name(name) {
            each(name, node, &key, reader);
        } else {
            reader.problem(key, &node.origin, NAME_RULE);
        }
    }
}

/// A deserializer for one value of the tree.
#[derive(Clone)]
struct Source<'a> {
    node: &'a Node,
    key: Key,
    context: &'a ResolveContext<'a>,
    /// For a [part](is_part): the keys that parts have taken.
    taken: Option<Taken>,
}

/// The keys of the parts of a struct, in its order.
type Taken = Rc<RefCell<Vec<&'static [&'static str]>>>;

/// Whether a field is a struct whose keys stand in the same table as those of the other fields. Such a part takes its keys
/// before the other fields do.
fn is_part(field: &str) -> bool {
    field.starts_with("..")
}

impl<'a> Source<'a> {
    const fn new(node: &'a Node, key: Key, context: &'a ResolveContext<'a>) -> Self {
        Self { node, key, context, taken: None }
    }

    fn below(&self, name: &str, node: &'a Node) -> Self {
        Self::new(node, self.key.name(name), self.context)
    }

    fn visit_table<V: Visitor<'a>>(
        &self,
        table: &'a Table,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let parts = fields.iter().filter(|field| is_part(field)).copied().collect::<Vec<_>>().into_iter();
        visitor.visit_map(Entries { parts, taken: Taken::default(), fields, rest: table.iter(), value: None, of: self })
    }

    fn locate<T>(&self, result: Result<T, ReadError>) -> Result<T, ReadError> {
        result.map_err(|mut error| {
            if error.at.is_none() {
                let key = if error.missing {
                    let field = std::mem::replace(&mut error.what, "must be set".to_owned());
                    self.key.name(&field)
                } else {
                    self.key.clone()
                };
                error.at = Some((key, self.node.origin.clone()));
            }
            error
        })
    }

    fn any<V: Visitor<'a>>(&self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.node.value {
            Value::Table(table) => self.visit_table(table, &[], visitor),
            Value::List(list) => visitor.visit_seq(Elements { rest: list.iter().enumerate(), of: self }),
            Value::Text(text) => visitor.visit_str(storable(text)?),
            Value::Integer(integer) => visitor.visit_i64(*integer),
            Value::Float(float) => visitor.visit_f64(*float),
            Value::Boolean(boolean) => visitor.visit_bool(*boolean),
            Value::Date => Err(ReadError::invalid_type(Unexpected::Other("a date or time"), &visitor)),
        }
    }

    fn type_mismatch(&self, expected: &str) -> ReadError {
        let found = match &self.node.value {
            Value::Table(_) => "a table",
            Value::List(_) => "a list",
            Value::Text(_) => "text",
            Value::Integer(_) | Value::Float(_) => "a number",
            Value::Boolean(_) => "a boolean",
            Value::Date => "a date or time",
        };
        ReadError::new(format!("must be {expected}, not {found}"))
    }
}

impl<'de> Deserializer<'de> for Source<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.locate(self.any(visitor))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.locate(match self.node.text() {
            Some(text) => storable(text).and_then(|text| visitor.visit_str(text)),
            None => self.any(visitor),
        })
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match name {
            // The new and the old one.
            secret::TOKEN if matches!(self.node.value, Value::List(_)) => self.locate(self.any(visitor)),
            secret::SECRET | secret::TOKEN => self.locate(
                secret::resolve(self.node, self.context, name == secret::TOKEN).map_err(ReadError::new).and_then(
                    |found| match found {
                        secret::ResolvedSecret::Text(text) => visitor.visit_string(text),
                        secret::ResolvedSecret::Generate => visitor.visit_unit(),
                    },
                ),
            ),
            system_prompt::FILE => self.locate(
                system_prompt::read(self.node, self.context)
                    .map_err(ReadError::new)
                    .and_then(|path_and_text| visitor.visit_seq(SeqDeserializer::new(path_and_text.into_iter()))),
            ),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.locate(match &self.node.value {
            Value::List(_) => self.any(visitor),
            _ => Err(self.type_mismatch("a list")),
        })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.locate(match &self.node.value {
            Value::Table(_) => self.any(visitor),
            _ => Err(self.type_mismatch("a table")),
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if let Some(taken) = &self.taken {
            taken.borrow_mut().push(fields);
        }
        self.locate(match &self.node.value {
            Value::Table(table) => self.visit_table(table, fields, visitor),
            _ => Err(self.type_mismatch("a table")),
        })
    }

    /// A text is a variant without a value; `{ variant = value }` is a variant with one.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.locate(match (&self.node.value, self.node.text()) {
            (Value::Table(table), _) => match (table.first_key_value(), table.len()) {
                (Some((variant, node)), 1) => {
                    visitor.visit_enum(Variant { name: variant, value: self.below(variant, node) })
                }
                (_, count) => Err(ReadError::new(format!(
                    "must name exactly one of {}, not {count} of them",
                    list(variants.iter().copied(), "or")
                ))),
            },
            (_, Some(text)) => visitor.visit_enum(text.into_deserializer()),
            _ => Err(self.type_mismatch(&one_of(variants.iter().copied()))),
        })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}

struct Entries<'a, 's> {
    /// The parts that are still to be read.
    parts: std::vec::IntoIter<&'static str>,
    taken: Taken,
    fields: &'static [&'static str],
    rest: std::collections::btree_map::Iter<'a, String, Node>,
    value: Option<Source<'a>>,
    of: &'s Source<'a>,
}

impl Entries<'_, '_> {
    /// Reports a key that neither a part nor the struct itself has. A struct without parts does this itself.
    fn check(&self, name: &str) -> Result<(), ReadError> {
        let taken = self.taken.borrow();
        if taken.is_empty() || self.fields.contains(&name) && !is_part(name) {
            return Ok(());
        }
        let mut of_parts = taken.iter();
        let known = self.fields.iter().flat_map(|field| {
            if is_part(field) { of_parts.next().copied().unwrap_or_default() } else { std::slice::from_ref(field) }
        });
        Err(ReadError::unknown(name, known.copied().collect()))
    }
}

impl<'a> MapAccess<'a> for Entries<'a, '_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let as_key = |name: &'a str| -> StrDeserializer<'a, ReadError> { name.into_deserializer() };
        if let Some(part) = self.parts.next() {
            self.value = Some(Source { taken: Some(Rc::clone(&self.taken)), ..self.of.clone() });
            return seed.deserialize(as_key(part)).map(Some);
        }
        let taken = self.taken.borrow().concat();
        let is_own =
            |name: &str| if self.of.taken.is_some() { self.fields.contains(&name) } else { !taken.contains(&name) };
        let Some((name, node)) = self.rest.find(|(name, _)| is_own(name)) else { return Ok(None) };
        let source = self.of.below(name, node);
        self.value = Some(source.clone());
        source.locate(self.check(name).and_then(|()| seed.deserialize(as_key(name)))).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<S::Value, ReadError> {
        let source = self.value.take().expect("serde asks for a key before its value");
        let located = source.clone();
        located.locate(seed.deserialize(source))
    }
}

struct Elements<'a, 's> {
    rest: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
    of: &'s Source<'a>,
}

impl<'a> SeqAccess<'a> for Elements<'a, '_> {
    type Error = ReadError;

    fn next_element_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        let Some((index, node)) = self.rest.next() else {
            return Ok(None);
        };
        let source = Source::new(node, self.of.key.index(index), self.of.context);
        let located = source.clone();
        located.locate(seed.deserialize(source)).map(Some)
    }
}

struct Variant<'a> {
    name: &'a str,
    value: Source<'a>,
}

impl<'a> EnumAccess<'a> for Variant<'a> {
    type Error = ReadError;
    type Variant = Source<'a>;

    fn variant_seed<S: DeserializeSeed<'a>>(self, seed: S) -> Result<(S::Value, Source<'a>), ReadError> {
        let name: StrDeserializer<'_, ReadError> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self.value))
    }
}

impl<'a> VariantAccess<'a> for Source<'a> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        Err(ReadError::new("takes no value: write only its name"))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'a>>(self, seed: S) -> Result<S::Value, ReadError> {
        let located = self.clone();
        located.locate(seed.deserialize(self))
    }

    fn tuple_variant<V: Visitor<'a>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'a>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_map(visitor)
    }
}
