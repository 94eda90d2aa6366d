//! Parses header values whose parts may be quoted.

/// Splits `text` at each `separator` outside quotes.
pub fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |character| {
        if is_escaped {
            is_escaped = false;
        } else if is_quoted && character == '\\' {
            is_escaped = true;
        } else if character == '"' {
            is_quoted = !is_quoted;
        }
        character == separator && !is_quoted
    })
}

/// The value of the parameter `wanted` of a header such as `text/plain; charset=utf-8`, without quotes.
#[must_use]
pub fn parameter<'a>(header: &'a str, wanted: &str) -> Option<&'a str> {
    split_unquoted(header, ';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case(wanted).then(|| unquoted(value))
    })
}

/// Strips surrounding space and quotes.
#[must_use]
pub fn unquoted(value: &str) -> &str {
    let value = value.trim();
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}
