//! Values written as text, each with a parser and a description for errors.
#![expect(
    clippy::missing_errors_doc,
    reason = "called by serde; a value that does not fit a function's first line is an error"
)]

use std::{fmt, net::SocketAddr};

use rejoinder_core::{Language, is_blank};
use serde::{
    Deserializer, Serializer,
    de::{Error, Unexpected, Visitor},
};
use url::Url;

use crate::redacted;

/// Reads text with `parse`. If it returns `None`, the error is "must be {expected}".
pub fn parsed<'de, D, T>(
    deserializer: D,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
{
    struct Parsed<P> {
        expected: &'static str,
        parse: P,
    }
    impl<T, P: FnOnce(&str) -> Option<T>> Visitor<'_> for Parsed<P> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.expected)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            let Self { expected, parse } = self;
            parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &expected))
        }
    }
    deserializer.deserialize_str(Parsed { expected, parse })
}

/// Reads a newtype from text, and writes it as its content is displayed.
macro_rules! as_text {
    ($type:ty, $expected:expr, $parse:expr) => {
        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&self.0)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::text::parsed(deserializer, $expected, |text| $parse(text).map(Self))
            }
        }
    };
}
pub(crate) use as_text;

/// Text that shows something.
pub fn filled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = parsed(deserializer, "text", |text| Some(text.to_owned()))?;
    if is_blank(&text) { Err(D::Error::custom("is empty")) } else { Ok(text) }
}

/// As [`filled`], for an optional key.
pub fn filled_option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    filled(deserializer).map(Some)
}

/// A language.
pub fn language<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Language, D::Error> {
    parsed(deserializer, "a language such as \"de\"", Language::of)
}

/// As [`language`], for an optional key.
pub fn language_option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Language>, D::Error> {
    language(deserializer).map(Some)
}

/// An IP address and a port.
pub(crate) fn socket_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    parsed(deserializer, "an IP address and a port such as \"127.0.0.1:7420\"", |text| text.parse().ok())
}

/// As [`socket_address`], for an optional key.
pub(crate) fn socket_address_option<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    socket_address(deserializer).map(Some)
}

/// An HTTP URL. A user or a password in it is rejected, because it would be printed with the URL.
pub fn http_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    url_of(deserializer, "a URL that begins with http:// or https://", ["http", "https"])
}

/// A WebSocket URL, for an optional key. A user or a password in it is rejected.
pub fn websocket_url_option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
    url_of(deserializer, "a URL that begins with ws:// or wss://", ["ws", "wss"]).map(Some)
}

fn url_of<'de, D>(deserializer: D, expected: &'static str, schemes: [&str; 2]) -> Result<Url, D::Error>
where
    D: Deserializer<'de>,
{
    let url = parsed(deserializer, expected, |text| {
        let url = Url::parse(text).ok().filter(|url| schemes.contains(&url.scheme()));
        Some(url.ok_or_else(|| text.to_owned()))
    })?;
    let url = url.map_err(|text| {
        // A query, a user and a password may be secret, also if the rest is wrong.
        match text.split(['?', '#']).next() {
            Some(shown) if !text.contains('@') => D::Error::invalid_value(Unexpected::Str(shown), &expected),
            _ => D::Error::custom(format_args!("must be {expected}")),
        }
    })?;
    if url.username().is_empty() && url.password().is_none() {
        return Ok(url);
    }
    Err(D::Error::custom("contains a user or a password, which would be printed with it: remove them"))
}

/// As [`http_url`], for an optional key.
pub fn http_url_option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
    http_url(deserializer).map(Some)
}

/// Writes only the origin of a URL: its path may be a secret.
pub fn write_origin<S: Serializer>(url: &Option<Url>, serializer: S) -> Result<S::Ok, S::Error> {
    match url {
        Some(url) => {
            let printed = format!("{}/***", url.origin().ascii_serialization());
            serializer.serialize_some(&redacted::written(&printed, url.as_str()))
        }
        None => serializer.serialize_none(),
    }
}

/// Whether `name` is valid for a channel, an agent, a question or a template.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-'))
}

/// The error for an invalid name; continues the sentence after the key.
pub(crate) const NAME_RULE: &str = "has an invalid name: use a-z, 0-9, `_` and `-`, at most 64 characters";
