//! Reads the files of another gateway. They are data of a stranger: bounded, never executed, and an error names the file and the
//! place, never the content.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::Path,
};

use anyhow::{Context, anyhow, bail};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::variables::Variables;

/// The most bytes of one file. OpenClaw itself reads 2 MiB of an included file (openclaw/openclaw, `src/config/includes.ts`).
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// How deep tables and lists may be nested. The parsers recurse once for each level.
const MAX_DEPTH: usize = 64;

/// The text of a file; `None` if there is none.
///
/// # Errors
/// When it cannot be read, is larger than [`MAX_BYTES`], is no regular file, or is not UTF-8.
pub(super) fn text(path: &Path) -> anyhow::Result<Option<String>> {
    let cannot = || format!("cannot read {}", path.display());
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // To open a pipe waits for its writer.
        Ok(metadata) if !metadata.is_file() => bail!("{} is not a file", path.display()),
        metadata => metadata.with_context(cannot)?,
    };
    let mut bytes = Vec::new();
    File::open(path).with_context(cannot)?.take(MAX_BYTES + 1).read_to_end(&mut bytes).with_context(cannot)?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("{} is larger than {} MiB, which no configuration is", path.display(), MAX_BYTES / 1024 / 1024);
    }
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("{} is not UTF-8", path.display()))?;
    Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
}

/// The content of a JSON5 file, of which JSON is a part; `None` if there is no such file.
///
/// # Errors
/// As [`text`], and when it is not JSON5.
pub(super) fn json5(path: &Path) -> anyhow::Result<Option<Value>> {
    let Some(text) = text(path)? else { return Ok(None) };
    let parsed = json5::from_str::<Limited>(&text).map_err(|error| {
        let what = error.code().map_or_else(|| "its tables are nested too deep".to_owned(), |code| code.to_string());
        let place = error.position().map_or(String::new(), |at| format!(":{}:{}", at.line + 1, at.column + 1));
        anyhow!("{}{place} is not JSON5: {what}", path.display())
    })?;
    Ok(Some(parsed.0))
}

/// A value in JSON5; `None` if it is none, or is nested too deep.
pub(super) fn json5_value(text: &str) -> Option<Value> {
    json5::from_str::<Limited>(text).ok().map(|Limited(value)| value)
}

/// The content of a YAML file; `None` if there is no such file. An empty file is an empty table.
///
/// # Errors
/// As [`text`], and when it is not YAML.
pub(super) fn yaml(path: &Path) -> anyhow::Result<Option<Value>> {
    let Some(text) = text(path)? else { return Ok(None) };
    // As PyYAML, with which Hermes reads it: the last of several equal keys counts.
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins, with_snippet: false };
    let parsed = serde_saphyr::from_str_with_options::<Option<Limited>>(&text, options).map_err(|error| {
        let place = error.location().map_or(String::new(), |at| format!(":{}:{}", at.line(), at.column()));
        anyhow!("{}{place} is not YAML that can be read here", path.display())
    })?;
    Ok(Some(parsed.map_or_else(|| Value::Object(Map::new()), |Limited(value)| value)))
}

/// The variables of a `.env` file: `NAME=value` lines, of which the value may be quoted. Empty if there is no such file.
///
/// # Errors
/// As [`text`], and when a line is none of those.
pub(super) fn dotenv(path: &Path) -> anyhow::Result<Variables> {
    let mut variables = Variables::default();
    for (number, line) in (1..).zip(text(path)?.unwrap_or_default().lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let assigned = line.strip_prefix("export ").unwrap_or(line).split_once('=');
        let (name, value) = assigned
            .and_then(|(name, value)| Some((name.trim(), unquoted(value.trim())?)))
            .filter(|(name, _)| !name.is_empty() && !name.contains(char::is_whitespace))
            .ok_or_else(|| anyhow!("{}:{number} is not NAME=value", path.display()))?;
        variables.set(name, value);
    }
    Ok(variables)
}

/// `None` if a quote is not closed.
fn unquoted(value: &str) -> Option<String> {
    let Some(quote) = value.chars().next().filter(|first| matches!(first, '"' | '\'')) else {
        let end = value.find(" #").or_else(|| value.starts_with('#').then_some(0)).unwrap_or(value.len());
        return Some(value[..end].trim_end().to_owned());
    };
    let (mut text, mut chars) = (String::new(), value[1..].chars());
    loop {
        match chars.next()? {
            char if char == quote => return Some(text),
            '\\' if quote == '"' => match chars.next()? {
                'n' => text.push('\n'),
                char => text.push(char),
            },
            char => text.push(char),
        }
    }
}

/// A value whose nesting is bounded.
struct Limited(Value);

impl<'de> Deserialize<'de> for Limited {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Depth(MAX_DEPTH).deserialize(deserializer).map(Self)
    }
}

/// How much deeper a value may be nested.
#[derive(Clone, Copy)]
struct Depth(usize);

impl Depth {
    fn below<E: Error>(self) -> Result<Self, E> {
        self.0.checked_sub(1).map(Self).ok_or_else(|| E::custom("nested too deep"))
    }
}

impl<'de> DeserializeSeed<'de> for Depth {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Depth {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let (below, mut values) = (self.below()?, Vec::new());
        while let Some(value) = list.next_element_seed(below)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Value, A::Error> {
        let (below, mut values) = (self.below()?, Map::new());
        while let Some(name) = table.next_key::<String>()? {
            values.insert(name, table.next_value_seed(below)?);
        }
        Ok(Value::Object(values))
    }
}
