//! Values that must not be printed: tokens, keys and signing secrets.

use std::{fmt, path::Path};

use secrecy::{ExposeSecret, SecretString};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, IgnoredAny, SeqAccess, Visitor},
    ser::SerializeMap,
};

use crate::{
    environment::ResolveContext,
    node::{Node, Value},
    problem::Origin,
    redacted,
};

/// Printed in place of a secret.
const HIDDEN: &str = "***";

/// Type names that tell the reader to resolve a value that may be a reference.
pub(crate) const SECRET: &str = "$rejoinder::Secret";
pub(crate) const TOKEN: &str = "$rejoinder::Token";

/// A secret, written inline or as `{ env = "NAME" }` or `{ file = "path" }`.
///
/// `Debug` and serialisation give `***`. The memory is wiped on drop.
#[derive(Clone, Default)]
pub struct Secret(SecretString);

impl Secret {
    /// The wrapped secret. Read it with `expose_secret`.
    pub fn get(&self) -> &SecretString {
        &self.0
    }

    /// The plain secret, to check its format.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<SecretString> for Secret {
    fn from(secret: SecretString) -> Self {
        Self(secret)
    }
}

impl From<Secret> for SecretString {
    fn from(secret: Secret) -> Self {
        secret.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&redacted::written(HIDDEN, self.expose()))
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl Visitor<'_> for TextVisitor {
            type Value = Secret;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a secret")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Secret, E> {
                Ok(Secret(text.into()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Secret, E> {
                Ok(Secret(text.into()))
            }
        }
        deserializer.deserialize_newtype_struct(SECRET, TextVisitor)
    }
}

/// A secret that others send to the gateway, so that the gateway can generate it. While the operator changes it, the
/// one before holds too: `[new, old]`.
#[derive(Clone, Debug)]
pub struct Token {
    pub current: TokenValue,
    pub former: Option<Secret>,
}

#[derive(Clone, Debug)]
pub enum TokenValue {
    /// Set by the operator.
    Configured(Secret),
    /// `{ generate = true }`: generated at the first start and kept with mode 600 in the data directory.
    Generate,
}

impl Serialize for Token {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.former {
            None => self.current.serialize(serializer),
            Some(former) => (&self.current, former).serialize(serializer),
        }
    }
}

impl Serialize for TokenValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Configured(secret) => secret.serialize(serializer),
            Self::Generate => {
                let mut table = serializer.serialize_map(Some(1))?;
                table.serialize_entry("generate", &true)?;
                table.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrTwo;
        impl<'de> Visitor<'de> for OneOrTwo {
            type Value = Token;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a token")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Token, E> {
                Ok(Token { current: TokenValue::Configured(text.into()), former: None })
            }

            fn visit_unit<E: Error>(self) -> Result<Token, E> {
                Ok(Token { current: TokenValue::Generate, former: None })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut tokens: A) -> Result<Token, A::Error> {
                let one = |token: Token| match (token.former, token.current) {
                    (None, TokenValue::Configured(secret)) => Some(secret),
                    _ => None,
                };
                let new: Option<Token> = tokens.next_element()?;
                let new = new.filter(|new| new.former.is_none());
                let former = tokens.next_element()?.and_then(one);
                match (new, former, tokens.next_element::<IgnoredAny>()?) {
                    (Some(new), Some(former), None) => Ok(Token { former: Some(former), ..new }),
                    _ => Err(A::Error::custom("must be one token, or the new and the old one: [new, old]")),
                }
            }
        }
        deserializer.deserialize_newtype_struct(TOKEN, OneOrTwo)
    }
}

/// The least number of characters of a token.
pub const MIN_TOKEN: usize = 20;

pub(crate) enum ResolvedSecret {
    Text(String),
    Generate,
}

/// Reads a secret from `node` or from the place that it refers to. A token is sent by callers, and may be generated.
///
/// # Errors
/// What is wrong; continues the sentence after the key. Never contains any part of the secret, or of a value in its place.
pub(crate) fn resolve(node: &Node, context: &ResolveContext<'_>, is_token: bool) -> Result<ResolvedSecret, String> {
    let text = match reference(node) {
        None => node.text().ok_or_else(|| misplaced(is_token))?.to_owned(),
        Some(("generate", Node { value: Value::Boolean(true), .. })) if is_token => {
            return Ok(ResolvedSecret::Generate);
        }
        Some(("env", Node { value: Value::Text(name), .. })) => from_variable(name, context)?,
        Some(("file", Node { value: Value::Text(path), origin, .. })) => from_file(Path::new(path), origin, context)?,
        Some(_) => return Err(misplaced(is_token)),
    };
    if text.trim().is_empty() {
        return Err(match reference(node) {
            Some((kind, Node { value: Value::Text(from), .. })) => {
                let kind = if kind == "env" { "environment variable" } else { "file" };
                format!("is empty: the {kind} `{from}` holds nothing")
            }
            _ => "is empty".to_owned(),
        });
    }
    // A tab can be part of a header's value.
    if is_token && text.trim().contains(|c: char| c.is_control() && c != '\t') {
        return Err("contains a line break or another control character, so no caller can send it".to_owned());
    }
    if is_token && text.trim().chars().count() < MIN_TOKEN {
        return Err(format!(
            "has less than {MIN_TOKEN} characters, so it could be guessed: write `{{ generate = true }}`, or use what \
             `openssl rand -hex 24` prints"
        ));
    }
    context.secrets.borrow_mut().push(text.as_str().into());
    Ok(ResolvedSecret::Text(text))
}

fn reference(node: &Node) -> Option<(&str, &Node)> {
    let table = node.table()?;
    let (name, value) = table.first_key_value()?;
    Some((if table.len() == 1 { name } else { "several" }, value))
}

fn misplaced(may_generate: bool) -> String {
    let ways = if may_generate {
        "`{ env = \"NAME\" }`, `{ file = \"path\" }` or `{ generate = true }`"
    } else {
        "`{ env = \"NAME\" }` or `{ file = \"path\" }`"
    };
    format!("must be text in quotes, {ways}")
}

fn from_variable(name: &str, context: &ResolveContext<'_>) -> Result<String, String> {
    let value = context.environment.get(name).ok_or_else(|| {
        format!("is read from the environment variable `{name}`, which is not set: set it, or write the value here")
    })?;
    let value = value
        .to_str()
        .ok_or_else(|| format!("is read from the environment variable `{name}`, whose value is not UTF-8"))?;
    Ok(value.to_owned())
}

fn from_file(path: &Path, origin: &Origin, context: &ResolveContext<'_>) -> Result<String, String> {
    let path = context.path(path, origin);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("is read from the file {}, which cannot be read: {error}", path.display()))?;
    context.secret_files.borrow_mut().insert(path);
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
