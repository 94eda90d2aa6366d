//! What a caller wants to read, by its `Accept` header.

use axum::http::{HeaderMap, header};

use crate::quoted::{split_unquoted, unquoted};

/// Whether a caller prefers plain text to JSON (RFC 9110, section 12.5.1). Most callers prefer neither.
#[must_use]
pub fn prefers_text(headers: &HeaderMap) -> bool {
    let mut text = Quality::default();
    let mut json = Quality::default();
    for value in headers.get_all(header::ACCEPT) {
        for range in value.to_str().unwrap_or_default().split(',') {
            let mut parts = split_unquoted(range, ';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let weight = parts.find_map(|parameter| {
                let (name, value) = parameter.split_once('=')?;
                name.trim().eq_ignore_ascii_case("q").then(|| unquoted(value).parse().unwrap_or(0.0))
            });
            let weight: f32 = weight.unwrap_or(1.0);
            text.consider(media, "text/plain", "text/*", weight);
            json.consider(media, "application/json", "application/*", weight);
        }
    }
    text.weight > json.weight
}

/// The weight of one media type, given by the most specific range that matches it.
#[derive(Default)]
struct Quality {
    weight: f32,
    closeness: u8,
}

impl Quality {
    fn consider(&mut self, range: &str, exact: &str, family: &str, weight: f32) {
        let closeness = match range {
            range if range.eq_ignore_ascii_case(exact) => 3,
            range if range.eq_ignore_ascii_case(family) => 2,
            "*/*" => 1,
            _ => 0,
        };
        if closeness > self.closeness {
            *self = Self { weight, closeness };
        }
    }
}
