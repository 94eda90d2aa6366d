//! Markdown as words, for a voice: without the marks, and with the cells of a table beside their headings.

use std::fmt::Write as _;

use pulldown_cmark::{Event, Tag, TagEnd};

use super::shown::read_markdown;

/// The words of Markdown, to be read aloud. A link is its text, a picture its description, and a row of a table names the
/// column of each cell. Markdown that shows nothing is returned as it is.
pub fn spoken(markdown: &str) -> String {
    let mut speech = Speech::default();
    for event in read_markdown(markdown) {
        speech.add(event);
    }
    let words = speech.words.trim();
    if words.is_empty() { markdown.trim().to_owned() } else { words.to_owned() }
}

#[derive(Default)]
struct Speech {
    words: String,
    /// The number of the next item of each open list; `None` in a list without numbers.
    lists: Vec<Option<u64>>,
    table: Table,
}

#[derive(Default)]
struct Table {
    headings: Vec<String>,
    row: Vec<String>,
    /// Where the words of the open cell begin.
    cell: usize,
}

impl Speech {
    fn add(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text)
            | Event::Code(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.words.push_str(&text),
            Event::SoftBreak => self.words.push(' '),
            Event::HardBreak => self.words.push('\n'),
            Event::TaskListMarker(is_done) => self.words.push_str(if is_done { "☑ " } else { "☐ " }),
            Event::Rule => self.end_line(),
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::List(first) => {
                self.end_line();
                self.lists.push(*first);
            }
            Tag::Item => {
                self.end_line();
                if let Some(Some(number)) = self.lists.last_mut() {
                    let _ = write!(self.words, "{number}. ");
                    *number += 1;
                }
            }
            Tag::Table(_) => {
                self.end_line();
                self.table = Table::default();
            }
            Tag::TableCell => self.table.cell = self.words.len(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::CodeBlock | TagEnd::HtmlBlock | TagEnd::Item => {
                self.end_line();
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::TableCell => {
                let cell = self.words.split_off(self.table.cell);
                self.table.row.push(cell.trim().to_owned());
            }
            TagEnd::TableHead => self.table.headings = std::mem::take(&mut self.table.row),
            TagEnd::TableRow => {
                let row = std::mem::take(&mut self.table.row);
                self.words.push_str(&named(&self.table.headings, &row));
                self.end_line();
            }
            _ => {}
        }
    }

    fn end_line(&mut self) {
        let end = self.words.trim_end().len();
        self.words.truncate(end);
        if end > 0 {
            self.words.push('\n');
        }
    }
}

/// A row as `Heading: cell, Heading: cell`. Empty cells are left out.
fn named(headings: &[String], row: &[String]) -> String {
    let cells = row.iter().enumerate().filter(|(_, cell)| !cell.is_empty());
    let named = cells.map(|(at, cell)| match headings.get(at).filter(|heading| !heading.is_empty()) {
        Some(heading) => format!("{heading}: {cell}"),
        None => cell.clone(),
    });
    named.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("# Result\n\nIt is **very** _good_.", "Result\nIt is very good.")]
    #[case("Run `ls`:\n\n```sh\nls -l\n```\nDone.", "Run ls:\nls -l\nDone.")]
    #[case("| City | Sky |\n|---|---|\n| Graz | sunny |\n| Linz | |", "City: Graz, Sky: sunny\nCity: Linz")]
    #[case("See [the page](https://example.org/a?b=c).", "See the page.")]
    #[case("![a cat](https://example.org/cat.png)", "a cat")]
    #[case("- one\n- two\n  1. deep\n  2. deeper\n\nEnd", "one\ntwo\n1. deep\n2. deeper\nEnd")]
    #[case("> quoted\n\n---\n~~gone~~ here", "quoted\ngone here")]
    #[case("- [x] milk\n- [ ] bread", "☑ milk\n☐ bread")]
    #[case("2 * 3 * 4 = 24", "2 * 3 * 4 = 24")]
    #[case("👍", "👍")]
    #[case("#", "#")]
    #[case("42.", "42.")]
    fn a_voice_hears_words(#[case] markdown: &str, #[case] words: &str) {
        assert_eq!(spoken(markdown), words);
    }
}
