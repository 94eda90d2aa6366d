//! HTTP headers that the operator adds to the gateway's own requests.

use std::collections::BTreeMap;

use crate::{Checks, Secret, key::Key};

/// Headers of every request.
const OWN: [&str; 12] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Checks a table of headers at `key`. `own` are further headers that the gateway sets, in lower case, each with the key that
/// sets it, if there is one.
pub fn check(headers: &BTreeMap<String, Secret>, key: &Key, own: &[(&str, Option<&str>)], checks: &mut Checks<'_>) {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    for (name, value) in headers {
        let lower = name.to_ascii_lowercase();
        let of_key = own.iter().find(|(own, _)| *own == lower).map(|(_, key)| *key);
        let what = if name.is_empty() || !name.bytes().all(is_name) {
            "is not the name of a header: use letters, digits, `-`, `_` and `.`".to_owned()
        } else if let Some(Some(key)) = of_key {
            format!("is set by the gateway itself: set `{key}`")
        } else if of_key.is_some() || OWN.contains(&&*lower) {
            "is set by the gateway itself: remove it".to_owned()
        } else if headers.keys().any(|other| other != name && other.eq_ignore_ascii_case(name)) {
            "is there twice: remove one".to_owned()
        } else if value.expose().bytes().any(|byte| byte.is_ascii_control()) {
            "contains a character that is not allowed in a header (a line break, perhaps)".to_owned()
        } else {
            continue;
        };
        checks.wrong(key.name(name), what);
    }
}
