//! Converts Markdown to Discord's Markdown, which lacks tables, pictures and small headings, and splits it. Pure.
//!
//! <https://support.discord.com/hc/en-us/articles/210298617>

mod table;

use std::borrow::Cow;

use rejoinder_core::split_markdown;
use rejoinder_kit::links;

/// The longest text of a message, in UTF-16 units
/// (<https://discord.com/developers/docs/resources/message#create-message>).
pub const MESSAGE_UNITS: usize = 2000;

const DEEPEST_HEADING: usize = 3;

/// The only fence of code blocks that Discord knows.
const FENCE: &str = "```";

/// Splits a text into parts that fit in one message each.
pub(crate) fn parts(text: &str) -> Vec<String> {
    split_markdown(text, MESSAGE_UNITS, |part| units(part).max(units(&formatted(part))))
}

/// Whether a text fits into a message with a label before it and, below it, a line for each file that is not uploaded.
pub(crate) fn fits_caption(text: &str) -> bool {
    units(&formatted(text)) <= MESSAGE_UNITS / 2
}

pub(crate) fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Rewrites the Markdown that Discord lacks.
pub(crate) fn formatted(text: &str) -> Cow<'_, str> {
    if !["|", "####", "](", FENCE, "~~~"].iter().any(|mark| text.contains(mark)) {
        return Cow::Borrowed(text);
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let mut formatted: Vec<Cow<'_, str>> = Vec::with_capacity(lines.len());
    let mut fence: Option<&str> = None;
    let mut at = 0;
    while let Some(&line) = lines.get(at) {
        if let Some(open) = fence {
            let closing = fence_of(line).filter(|marker| marker.starts_with(open) && line.trim() == *marker);
            formatted.push(closing.map_or_else(|| code(line), |marker| line.replacen(marker, FENCE, 1).into()));
            fence = closing.map_or(Some(open), |_| None);
            at += 1;
        } else if let Some(marker) = fence_of(line) {
            formatted.push(line.replacen(marker, FENCE, 1).into());
            fence = Some(marker);
            at += 1;
        } else if let Some((table, taken)) = table::table_at(&lines[at..]) {
            formatted.push(table::to_text(&table).into());
            at += taken;
        } else {
            formatted.push(pictures_as_links(heading(line)));
            at += 1;
        }
    }
    Cow::Owned(with_destinations(&formatted.join("\n")))
}

/// A line of a code block. Discord ends the block at any three backticks, however long its fence is.
fn code(line: &str) -> Cow<'_, str> {
    if line.contains(FENCE) { line.replace("``", "`\u{200b}`").into() } else { line.into() }
}

/// The marker of a line that opens or closes a code block.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    let is_inline = mark == '`' && line[length..].contains('`');
    (length >= FENCE.len() && !is_inline).then(|| &line[..length])
}

fn heading(line: &str) -> Cow<'_, str> {
    let title = line.trim_start_matches('#');
    let depth = line.len() - title.len();
    if depth <= DEEPEST_HEADING || depth > 6 || !title.starts_with(' ') {
        return line.into();
    }
    let title = title.trim().trim_end_matches('#').trim_end();
    let title = title.replace("**", "");
    if title.is_empty() { line.into() } else { format!("**{title}**").into() }
}

/// Turns pictures into links, of which Discord shows a preview.
fn pictures_as_links(line: Cow<'_, str>) -> Cow<'_, str> {
    let (mut ends, last) = (line.match_indices("](").map(|(end, _)| end).peekable(), line.rfind(')'));
    let (mut read, mut backticks) = (0, 0);
    let is_picture = |at: &usize| {
        while ends.next_if(|end| *end < at + 2).is_some() {}
        backticks += line[read..*at].matches('`').count();
        read = *at;
        let in_code = backticks % 2 == 1;
        ends.peek().zip(last).is_some_and(|(end, last)| *end < last) && !in_code && !line[..*at].ends_with('\\')
    };
    let pictures: Vec<usize> = line.match_indices("![").map(|(at, _)| at).filter(is_picture).collect();
    if pictures.is_empty() {
        return line;
    }
    let mut changed = String::with_capacity(line.len());
    let mut from = 0;
    for at in pictures {
        changed.push_str(&line[from..at]);
        from = at + 1;
        // A link without a label could not be clicked.
        if line[at..].starts_with("![](") {
            changed.push_str("[🖼");
            from = at + 2;
        }
    }
    changed.push_str(&line[from..]);
    changed.into()
}

/// Writes after each link where it leads, if its label does not say it.
fn with_destinations(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 32);
    let (mut at, mut copied) = (0, 0);
    // The begin of the last label.
    let mut label = None;
    while let Some(next) = text[at..].find(['\\', '`', '[', ']']).map(|next| at + next) {
        let rest = &text[next..];
        at = next + 1;
        match rest.as_bytes()[0] {
            b'\\' => at += rest[1..].chars().next().map_or(0, char::len_utf8),
            b'`' => at = next + code_span(rest),
            b'[' => label = Some(at),
            _ => {
                let Some((address, length)) = link_target(&rest[1..]) else { continue };
                at += length;
                let label = label.take().map_or("", |label| &text[label..next]);
                if let Some(shown) = links::destination(label, address) {
                    written.push_str(&text[copied..at]);
                    written.extend([" (", &*shown, ")"]);
                    copied = at;
                }
            }
        }
    }
    written.push_str(&text[copied..]);
    written
}

/// How many bytes a link's target or inline code may have: more do not fit in a message.
const MAX_SPAN: usize = 4 * MESSAGE_UNITS;

/// The beginning of a text, so that a search in it ends soon.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_SPAN)]
}

/// The length of the code at the beginning of the text, or of its backticks if it is not closed.
fn code_span(text: &str) -> usize {
    let text = beginning(text);
    let backticks = |text: &str| text.len() - text.trim_start_matches('`').len();
    let fence = backticks(text);
    let mut at = fence;
    while let Some(next) = text[at..].find('`').map(|next| at + next) {
        let length = backticks(&text[next..]);
        at = next + length;
        if length == fence {
            return at;
        }
    }
    fence
}

/// How many parentheses an address may have open at once, as in cmark.
const MOST_PARENTHESES: usize = 32;

/// The address in `(address)` or `(<address> "title")` at the beginning of the text, and the length of all of it.
fn link_target(text: &str) -> Option<(&str, usize)> {
    let text = beginning(text);
    let inside = text.strip_prefix('(')?.trim_start();
    let inside = inside.strip_prefix('<').unwrap_or(inside);
    let mut open = 0_usize;
    let end = inside.find(|c: char| {
        match c {
            '(' => {
                open += 1;
                return open > MOST_PARENTHESES;
            }
            ')' if open > 0 => open -= 1,
            ')' | '>' => return true,
            _ => {}
        }
        c.is_whitespace()
    })?;
    let rest = &inside[end..];
    if rest.starts_with('(') {
        return None;
    }
    let close = rest.find(')')?;
    let length = text.len() - rest.len() + close + 1;
    Some((&inside[..end], length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rejoinder_core::conformance::{
        growth::assert_linear,
        markdown::{PIECES, sample},
    };
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("plain | text", "plain | text")]
    #[case("### kept", "### kept")]
    #[case("#### Small **one** ##", "**Small one**")]
    #[case("####not one", "####not one")]
    #[case("a ![cat](https://example.org/c.png) b", "a [cat](https://example.org/c.png) (example.org) b")]
    #[case("![](https://example.org/c.png)", "[🖼](https://example.org/c.png) (example.org)")]
    #[case("`![cat](x)`", "`![cat](x)`")]
    #[case("```\n#### code\n| a | b |\n|---|---|\n```", "```\n#### code\n| a | b |\n|---|---|\n```")]
    #[case::long_fence("````rs\na\n```\n````\n#### x", "```rs\na\n`\u{200b}``\n```\n**x**")]
    #[case::runs("~~~\n``````` ``\n~~~", "```\n`\u{200b}``\u{200b}``\u{200b}`` `\u{200b}`\n```")]
    #[case::inline("```x``` a\n#### x", "```x``` a\n**x**")]
    fn what_discord_lacks_is_said_otherwise(#[case] markdown: &str, #[case] expected: &str) {
        assert_eq!(formatted(markdown), expected);
    }

    #[rstest]
    #[case("see [here](https://evil.example/?q=1), ok", "see [here](https://evil.example/?q=1) (evil.example), ok")]
    #[case(
        "[a](<https://b.example/(x)> \"good.example\")!",
        "[a](<https://b.example/(x)> \"good.example\") (b.example)!"
    )]
    #[case("[a](https://b.example/(x))", "[a](https://b.example/(x)) (b.example)")]
    #[case("[two\nlines](https://b.example)", "[two\nlines](https://b.example) (b.example)")]
    #[case("it` [a](https://b.example) and `code`", "it` [a](https://b.example) and `code`")]
    #[case("it`s [a](https://b.example)", "it`s [a](https://b.example) (b.example)")]
    #[case("\\` [a](https://b.example) `", "\\` [a](https://b.example) (b.example) `")]
    #[case("[b.example](https://b.example/x)", "[b.example](https://b.example/x)")]
    #[case("`[a](https://b.example)`", "`[a](https://b.example)`")]
    #[case("```\n[a](https://b.example)\n```", "```\n[a](https://b.example)\n```")]
    #[case("f[1](2) [a](b) [x](", "f[1](2) [a](b) [x](")]
    fn a_link_shows_where_it_leads(#[case] markdown: &str, #[case] expected: &str) {
        assert_eq!(formatted(markdown), expected);
    }

    #[test]
    fn a_table_is_a_block_of_code() {
        let table = "Look:\n\n| Name | n |\n|------|--:|\n| **Ada** | 1 |\n| Grace | 22 |\n\nDone.";

        assert_eq!(formatted(table), "Look:\n\n```\nName  |  n\n------+---\nAda   |  1\nGrace | 22\n```\n\nDone.");
    }

    #[test]
    fn a_table_that_is_too_wide_is_a_list() {
        let wide = "w".repeat(80);
        let table = format!("| a | b |\n|---|---|\n| {wide} | 2 |");

        assert_eq!(formatted(&table), format!("- **a**: {wide}, **b**: 2"));
    }

    #[test]
    fn no_cell_of_a_table_is_lost() {
        let table = "| cmd | what |\n|---|---|\n| `ls | wc -l` | counts files |\n| x || y | or |";

        let expected =
            "```\ncmd        | what\n-----------+-------------\nls | wc -l | counts files\nx          | | y | or\n```";
        assert_eq!(formatted(table), expected);
    }

    proptest! {
        /// Nothing that the agent said is lost.
        #[test]
        fn every_word_is_shown(pieces in prop::collection::vec(0..PIECES.len(), 0..400)) {
            let (markdown, words) = sample(&pieces);
            let shown = parts(&markdown).iter().map(|part| formatted(part).into_owned()).collect::<String>();
            for word in words {
                prop_assert!(shown.contains(&word), "{word} is missing of {markdown:?}: {shown}");
            }
        }
    }

    #[test]
    fn a_long_line_costs_what_its_length_asks_for() {
        assert_linear(&["![", "![a](", "](", "`"], |line| {
            drop(formatted(&format!("![{line}")));
            drop(formatted(&format!("![{line})")));
        });
    }

    /// K6, K7.
    #[test]
    fn every_part_fits_as_it_is_shown() {
        let row = "| 🎉 some words | and some more of them |\n";
        let text = format!("| a | b |\n|---|---|\n{}\n```rust\n{}```\n", row.repeat(90), "let x = 1;\n".repeat(300));

        let parts = parts(&text);

        assert!(parts.len() > 2);
        for part in &parts {
            assert!(units(&formatted(part)) <= MESSAGE_UNITS, "{}", units(&formatted(part)));
            assert_eq!(part.matches("```").count() % 2, 0);
        }
    }
}
