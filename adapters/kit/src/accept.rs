//! What a caller wants to read, by its `Accept` header.

use axum::http::{HeaderMap, header};
use rejoinder_core::SoundFormat;

use crate::quoted::{split_unquoted, unquoted};

/// What a caller wants an answer as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON: the default, because most callers prefer nothing.
    Json,
    /// Plain text.
    Text,
    /// Sound.
    Sound(SoundFormat),
}

/// Media types, each with the format that it asks for. Of equal weights the first counts: sound comes before text.
const TYPES: [(&str, Format); 8] = [
    ("application/json", Format::Json),
    ("audio/mpeg", Format::Sound(SoundFormat::Mp3)),
    ("audio/mp3", Format::Sound(SoundFormat::Mp3)),
    ("audio/ogg", Format::Sound(SoundFormat::Opus)),
    ("audio/opus", Format::Sound(SoundFormat::Opus)),
    ("audio/wav", Format::Sound(SoundFormat::Wav)),
    ("audio/x-wav", Format::Sound(SoundFormat::Wav)),
    ("text/plain", Format::Text),
];

impl Format {
    /// Reads `Accept` (RFC 9110, section 12.5.1).
    #[must_use]
    pub fn read(headers: &HeaderMap) -> Self {
        let mut weights = TYPES.map(|_| Quality::default());
        for value in headers.get_all(header::ACCEPT) {
            for range in value.to_str().unwrap_or_default().split(',') {
                let mut parts = split_unquoted(range, ';').map(str::trim);
                let media = parts.next().unwrap_or_default();
                let weight = parts.find_map(|parameter| {
                    let (name, value) = parameter.split_once('=')?;
                    name.trim().eq_ignore_ascii_case("q").then(|| unquoted(value).parse().unwrap_or(0.0))
                });
                for ((name, _), quality) in TYPES.iter().zip(&mut weights) {
                    quality.consider(media, name, weight.unwrap_or(1.0));
                }
            }
        }
        let mut best = (0.0, Self::Json);
        for ((_, format), quality) in TYPES.iter().zip(&weights) {
            // `*/*` asks for no sound.
            let is_asked = !matches!(format, Self::Sound(_)) || quality.closeness > ANYTHING;
            if is_asked && quality.weight > best.0 {
                best = (quality.weight, *format);
            }
        }
        best.1
    }
}

/// How close `*/*` is to any type.
const ANYTHING: u8 = 1;

/// The weight of one media type, given by the most specific range that matches it.
#[derive(Clone, Copy, Default)]
struct Quality {
    weight: f32,
    closeness: u8,
}

impl Quality {
    fn consider(&mut self, range: &str, name: &str, weight: f32) {
        let kind = name.split('/').next().unwrap_or_default();
        let is_kind = |range: &str| range.strip_suffix("/*").is_some_and(|found| found.eq_ignore_ascii_case(kind));
        let closeness = match range {
            range if range.eq_ignore_ascii_case(name) => 3,
            range if is_kind(range) => 2,
            "*/*" => ANYTHING,
            _ => 0,
        };
        if closeness > self.closeness {
            *self = Self { weight, closeness };
        }
    }
}
