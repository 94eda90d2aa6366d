//! Texts for people, and the values of their placeholders.

use std::time::Duration;

use rejoinder_guard::Timestamp;

/// A text with its placeholders filled in. What is filled in is no template: a placeholder in it stays.
pub(crate) fn filled(text: &str, values: &[(&'static str, String)]) -> String {
    let next = |rest: &str| {
        let places = values.iter().filter_map(|(name, value)| {
            let placeholder = format!("{{{name}}}");
            Some((rest.find(&placeholder)?, placeholder.len(), value.as_str()))
        });
        places.min_by_key(|(at, ..)| *at)
    };
    let (mut rest, mut whole) = (text, String::new());
    while let Some((at, length, value)) = next(rest) {
        whole.push_str(&rest[..at]);
        whole.push_str(value);
        rest = &rest[at + length..];
    }
    whole + rest
}

/// The beginning of a text, at most so many characters, on one line. It opens no block of code, which would swallow what
/// follows.
pub fn excerpt(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("```", "'''");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A duration in its largest unit: `5 min`.
pub fn age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// A name without Markdown: a stranger may have chosen it to do harm.
pub(crate) fn plain(name: &str) -> String {
    let is_plain =
        |char: &char| !matches!(char, '*' | '_' | '`' | '[' | ']' | '(' | ')' | '<' | '>' | '\\' | '#' | '|' | '~');
    name.chars().filter(is_plain).collect()
}

/// A text that Markdown leaves as it is, if it does not begin a line.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if matches!(char, '\\' | '*' | '_' | '`' | '[' | ']' | '<' | '>' | '~' | '|' | '&' | '$') {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

/// RFC 3339, UTC, with milliseconds. A time out of range is printed as stored.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.as_millis()).map_or_else(|_| at.to_string(), |at| format!("{at:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_told_in_its_largest_unit() {
        let told = [0, 59, 60, 3599, 3600, 86_399, 86_400].map(|seconds| age(Duration::from_secs(seconds)));

        assert_eq!(told, ["0 s", "59 s", "1 min", "59 min", "1 h", "23 h", "1 d"]);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(excerpt(" one\n two ", 60), "one two");
        assert_eq!(excerpt(&"é".repeat(60), 60), "é".repeat(60));
        assert_eq!(excerpt(&"é".repeat(61), 60), format!("{}…", "é".repeat(60)));
    }

    #[test]
    fn an_excerpt_opens_no_block_of_code() {
        assert_eq!(excerpt("`so`:\n```rust\nfn main() {}\n```", 13), "`so`: '''rust…");
    }

    #[test]
    fn what_is_filled_in_is_no_template() {
        let values = [("name", "{text}".to_owned()), ("text", "{name} said".to_owned())];

        assert_eq!(filled("{name}: {text} {other} {name}", &values), "{text}: {name} said {other} {text}");
        assert_eq!(filled("nothing", &values), "nothing");
    }
}
