//! Formats times, durations and quotations for sentences.

use std::time::Duration;

use rejoinder_guard::Timestamp;

use crate::base::words::rfc3339;

/// The longest quotation, in characters.
const LONGEST: usize = 160;

/// A point in time and its distance from `now`.
pub(super) fn until(at: Timestamp, now: Timestamp) -> String {
    if at > now {
        format!("{} (in {})", rfc3339(at), span(at.since(now)))
    } else {
        format!("{} (overdue by {})", rfc3339(at), span(now.since(at)))
    }
}

/// A duration in its two largest units.
pub(super) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..60 if duration.subsec_millis() >= 50 => format!("{:.1} s", duration.as_secs_f64()),
        1..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// The beginning of a text, on one line and without its full stop: the sentence around it has one.
pub(super) fn clip(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.trim_end_matches('.').to_owned(),
    }
}

/// The beginning of a text, on one line, in quotation marks.
pub(super) fn quote(text: &str) -> String {
    let clipped = clip(text);
    let clipped = if text.trim_end().ends_with('.') && !clipped.ends_with('…') { clipped + "." } else { clipped };
    format!("“{clipped}”")
}
