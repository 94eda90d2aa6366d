//! Printing to standard output and standard error.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
};

use anyhow::Context;
use rejoinder_core::is_hidden;
use serde::Serialize;

use super::failure::Failure;

/// Prints what is [`printable`] of `text`, and a line break.
///
/// # Errors
/// When standard output is closed or full.
pub fn print(text: impl AsRef<str>) -> Result<(), Failure> {
    print_as_is(&printable(text.as_ref()))
}

/// Prints `text` and a line break, whatever it does to a terminal.
///
/// # Errors
/// As [`print()`].
pub fn print_as_is(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let printed =
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush());
    Ok(printed.context("cannot print")?)
}

/// Prints what is [`printable`] of `text`, without a line break.
///
/// # Errors
/// As [`print()`].
pub fn print_piece(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    Ok(stdout.write_all(printable(text).as_bytes()).and_then(|()| stdout.flush()).context("cannot print")?)
}

/// Prints `text` and a line break: as it is, but on a terminal only what is [`printable`].
///
/// # Errors
/// As [`print()`].
pub fn print_untrusted(text: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() { print(text) } else { print_as_is(text) }
}

/// Prints what is [`printable`] of a line to standard error, which may be closed: nobody need read it.
pub fn remark(line: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{}", printable(&line.to_string()));
}

/// Prints `value` as JSON.
///
/// # Errors
/// As [`print()`].
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(value).context("cannot print this as JSON")?;
    print_as_is(&escaped(&json))
}

/// Whether the reader closed our standard output, as in `| head`.
#[must_use]
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Makes text safe for a terminal: replaces what controls the terminal or the direction of the text, or is hidden. Lines
/// may end as on Windows.
#[must_use]
pub fn printable(text: &str) -> String {
    text.replace("\r\n", "\n").chars().map(|char| if is_unsafe(char) { '\u{fffd}' } else { char }).collect()
}

/// As [`printable`], for JSON: nothing is lost.
fn escaped(json: &str) -> String {
    let escape = |char: char| format!("\\u{:04x}", u32::from(char));
    json.chars().fold(String::with_capacity(json.len()), |mut text, char| {
        if is_unsafe(char) {
            text.push_str(&escape(char));
        } else {
            text.push(char);
        }
        text
    })
}

/// Control characters other than line breaks and tabs, and hidden ones other than the joiners, which belong to the spelling of
/// some languages and to emoji.
fn is_unsafe(char: char) -> bool {
    (char.is_control() && !matches!(char, '\n' | '\t')) || (is_hidden(char) && !matches!(char, '\u{200c}' | '\u{200d}'))
}

/// A text on one line, so that it cannot look like the lines after it.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The beginning of a text, on one line, of at most `most` characters.
#[must_use]
pub fn excerpt(text: &str, most: usize) -> String {
    let line = one_line(text);
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

/// A time on this machine's clock and in its time zone, to the second, with the zone.
#[must_use]
pub fn local_time(at: jiff::Timestamp) -> String {
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

/// Capitalises the first letter.
#[must_use]
pub fn capital(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A table whose columns are as wide as their widest cell. Trailing blanks are removed.
#[must_use]
pub fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = heads.map(|head| head.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; N]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let rows = rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
    std::iter::once(line(heads)).chain(rows).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest() {
        let rows =
            [["a".to_owned(), "long".to_owned(), String::new()], ["bcd".to_owned(), "x".to_owned(), "y".to_owned()]];

        assert_eq!(table(["ONE", "TWO", "THREE"], &rows), "ONE  TWO   THREE\na    long\nbcd  x     y");
    }

    #[test]
    fn what_controls_a_terminal_is_not_printed() {
        assert_eq!(printable("a\u{1b}[2Jb\nc\r"), "a\u{fffd}[2Jb\nc\u{fffd}");
        assert_eq!(printable("a\r\nb\r\rc"), "a\nb\u{fffd}\u{fffd}c");
        assert_eq!(printable("\u{202e}exe.\u{2066}txt\u{200f}"), "\u{fffd}exe.\u{fffd}txt\u{fffd}");
        assert_eq!(printable("\u{61c}می\u{200c}خواهم 👩\u{200d}🚀"), "\u{fffd}می\u{200c}خواهم 👩\u{200d}🚀");
    }

    #[test]
    fn in_json_it_is_escaped() {
        let value = serde_json::json!({ "text": "\u{202e}\u{9b}a\n" });
        let text = escaped(&serde_json::to_string_pretty(&value).unwrap());

        assert_eq!(text, "{\n  \"text\": \"\\u202e\\u009ba\\n\"\n}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
