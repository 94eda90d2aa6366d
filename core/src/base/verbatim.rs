//! Texts of others within the gateway's words, exactly as they are: nothing in them formats, links or is hidden.

use std::fmt::Write as _;

use super::words::plain;
use crate::model::name::is_hidden;

/// The longest run of backticks that a block shows as it is: a fence that is much longer could not be repeated where a message is split.
const MOST_BACKTICKS: usize = 8;

/// A block of code with this text. The fence is longer than any run of backticks in it.
pub(crate) fn code_block(text: &str) -> String {
    let shown = revealed(text.replace("\r\n", "\n").trim_end(), |c| matches!(c, '\n' | '\t'));
    let fence = "`".repeat(longest_run(&shown).max(2) + 1);
    format!("{fence}\n{shown}\n{fence}")
}

/// A text on one line: as it is if nothing in it has a meaning in Markdown, else as inline code.
pub(crate) fn verbatim(text: &str) -> String {
    let shown = revealed(text, |_| false);
    if !shown.contains('&') && plain(&shown) == shown {
        return shown;
    }
    let mark = "`".repeat(longest_run(&shown) + 1);
    let pad = if shown.starts_with(['`', ' ']) || shown.ends_with(['`', ' ']) { " " } else { "" };
    format!("{mark}{pad}{shown}{pad}{mark}")
}

/// How many of one blank character stand in a row as they are: of more the end of a text would not be seen.
const MOST_BLANKS: usize = 40;
const MOST_LINE_ENDS: usize = 3;

/// The text with `\u{20}×500` for 500 spaces in a row, and the like for line ends.
fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let most = match first {
            ' ' | '\t' => MOST_BLANKS,
            '\n' => MOST_LINE_ENDS,
            _ => usize::MAX,
        };
        let next = rest.find(|c| c != first).unwrap_or(rest.len());
        let (run, after) = rest.split_at(next);
        let count = run.chars().count();
        if count > most {
            let _ = write!(folded, "{}×{count} ", first.escape_unicode());
        } else {
            folded.push_str(run);
        }
        rest = after;
    }
    folded
}

/// The text with escapes such as `\u{202e}` for characters that show nothing or turn the direction of the text, unless they are kept.
fn revealed(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let is_blank = |c: char| (c.is_whitespace() && !matches!(c, ' ' | '\n' | '\t')) || c == '\u{2800}';
    let is_unseen = |c: char| is_hidden(c) || c.is_control() || is_blank(c);
    let shown = text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if is_unseen(c) && !is_kept(c) {
            let _ = write!(shown, "{}", c.escape_unicode());
        } else {
            shown.push(c);
        }
        shown
    });
    let most = MOST_BACKTICKS + 1;
    folded(&shown.replace(&"`".repeat(most), &r"\u{60}".repeat(most)))
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::markdown("[safe](https://evil.example) **x**", "```\n[safe](https://evil.example) **x**\n```")]
    #[case::fence("a\n```\n# Approved", "````\na\n```\n# Approved\n````")]
    #[case::bidi("abc\u{202e}fdp.exe\u{200b}", "```\nabc\\u{202e}fdp.exe\\u{200b}\n```")]
    #[case::control("a\u{1b}[2K\r\n\tb\rc\u{2028}d", "```\na\\u{1b}[2K\n\tb\\u{d}c\\u{2028}d\n```")]
    #[case::far_away("ok\n\n\n\n\n\nrm -rf ~", "```\nok\\u{a}×6 rm -rf ~\n```")]
    #[case::blanks("a\u{3000}\u{a0}\u{2800}b", "```\na\\u{3000}\\u{a0}\\u{2800}b\n```")]
    fn a_block_shows_a_text_as_it_is(#[case] text: &str, #[case] block: &str) {
        assert_eq!(code_block(text), block);
    }

    #[rstest]
    #[case::words("Pay 800 € to the landlord", "Pay 800 € to the landlord")]
    #[case::name("Call files_write (3f)", "`Call files_write (3f)`")]
    #[case::shell("cat a | sh > b", "`cat a | sh > b`")]
    #[case::backticks("`id`", "`` `id` ``")]
    #[case::far_away(&format!("ok{}rm", " ".repeat(100)), "`ok\\u{20}×100 rm`")]
    #[case::entity("a&rlm;b", "`a&rlm;b`")]
    #[case::bidi("a\u{202e}b", "`a\\u{202e}b`")]
    fn a_line_shows_a_text_as_it_is(#[case] text: &str, #[case] line: &str) {
        assert_eq!(verbatim(text), line);
    }
}
