//! Printing to standard output.

use std::io::{self, Write};

use anyhow::Context;
use serde::Serialize;

use super::failure::Failure;

/// Prints `text` and a line break.
///
/// # Errors
/// When standard output is closed or full.
pub(crate) fn print(text: impl AsRef<str>) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let text = text.as_ref();
    let printed =
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush());
    Ok(printed.context("cannot print")?)
}

/// Prints `value` as JSON.
///
/// # Errors
/// As [`print()`].
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(serde_json::to_string_pretty(value).context("cannot print this as JSON")?)
}

/// Whether the reader closed our standard output, as in `| head`.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Makes untrusted text safe for a terminal: replaces control characters other than line breaks and tabs.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|char| if char.is_control() && !matches!(char, '\n' | '\t') { '\u{fffd}' } else { char }).collect()
}

/// Capitalises the first letter.
pub(crate) fn capital(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A table whose columns are as wide as their widest cell. Trailing blanks are removed.
pub(crate) fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
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
    }
}
