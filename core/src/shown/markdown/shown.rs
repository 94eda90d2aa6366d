//! Reads Markdown for rendering, the same for every platform, without hiding any of the agent's text.

use std::ops::Range;

use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, RefDefs, Tag, TagEnd};
use rejoinder_guard::is_blank;

use super::rows::without_surplus;

/// The extensions to CommonMark.
const OPTIONS: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// Reads Markdown with tables, strike-through and task lists into events. An adapter renders them as its platform's
/// markup.
///
/// CommonMark would hide some text that agents mean to show. Therefore
/// * a link definition (`[Answer]: 42`) is a paragraph, unless a link uses it and it holds an address;
/// * a link without text shows its address;
/// * a number alone (`42.`) is a paragraph, not an empty list;
/// * the cells of a row beyond those of its heading belong to its last cell;
/// * an inline `<br>` is a line break.
pub fn read_markdown(markdown: &str) -> Vec<Event<'_>> {
    read(markdown, OPTIONS)
}

/// As [`read_markdown`], with footnotes: `[^1]` is a reference if there is a definition (`[^1]: text`), which is an element of its own
/// where it stands.
pub fn read_markdown_with_notes(markdown: &str) -> Vec<Event<'_>> {
    read(markdown, OPTIONS.union(Options::ENABLE_FOOTNOTES))
}

fn read(markdown: &str, options: Options) -> Vec<Event<'_>> {
    let mut parser = Parser::new_ext(markdown, options).into_offset_iter();
    let events: Vec<_> = parser.by_ref().collect();
    if let Some(escaped) = without_surplus(markdown, &events) {
        return read(&escaped, options).into_iter().map(Event::into_static).collect();
    }
    let mut reader = Reader { markdown, used: None, at: 0, blocks: 0, links: Vec::new(), events: Vec::new() };
    let definitions = parser.reference_definitions();
    if definitions.iter().next().is_some() {
        reader.used = Some(used(definitions, &events));
    }
    reader.events.reserve(events.len());
    for (event, range) in events {
        reader.take(event, range);
    }
    reader.gap(markdown.len());
    reader.events
}

/// Whether Markdown renders to anything visible. An empty list, quote, table or heading does not.
pub fn shows_anything(markdown: &str) -> bool {
    read_markdown(markdown).iter().any(is_seen)
}

fn is_seen(event: &Event<'_>) -> bool {
    match event {
        Event::Text(text)
        | Event::Code(text)
        | Event::Html(text)
        | Event::InlineHtml(text)
        | Event::InlineMath(text)
        | Event::DisplayMath(text)
        | Event::FootnoteReference(text) => !is_blank(text),
        Event::Rule | Event::TaskListMarker(_) => true,
        Event::Start(_) | Event::End(_) | Event::SoftBreak | Event::HardBreak => false,
    }
}

/// The ranges of the definitions that hold an address and that a link uses, in order.
fn used(definitions: &RefDefs<'_>, events: &[(Event<'_>, Range<usize>)]) -> Vec<Range<usize>> {
    let mut used: Vec<Range<usize>> = events
        .iter()
        .filter_map(|(event, _)| match event {
            Event::Start(Tag::Link { link_type, id, .. } | Tag::Image { link_type, id, .. })
                if matches!(link_type, LinkType::Reference | LinkType::Collapsed | LinkType::Shortcut) =>
            {
                definitions.get(id).filter(|definition| is_address(&definition.dest))
            }
            _ => None,
        })
        .map(|definition| definition.span.clone())
        .collect();
    used.sort_unstable_by_key(|span| span.start);
    used.dedup();
    used
}

/// Whether a destination is an address (`scheme:rest`). Any other text would be lost if only the link's text were shown.
fn is_address(destination: &str) -> bool {
    let is_scheme = |scheme: &str| scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+');
    destination.split_once(':').is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty())
}

struct Link<'a> {
    address: CowStr<'a>,
    has_words: bool,
}

struct Reader<'a> {
    markdown: &'a str,
    /// The definitions that links use; `None` if the source has no definitions.
    used: Option<Vec<Range<usize>>>,
    /// The source before this position is done: it has become events, or needs none.
    at: usize,
    /// How many elements are open that contain no blocks. No definition can be inside them.
    blocks: usize,
    links: Vec<Link<'a>>,
    events: Vec<Event<'a>>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, event: Event<'a>, range: Range<usize>) {
        let is_outside = self.blocks == 0;
        match &event {
            Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item) => self.gap(range.start),
            Event::Start(Tag::FootnoteDefinition(_)) => {
                self.gap(range.start);
                let label = self.markdown[range.clone()].find("]:").map_or(0, |at| at + "]:".len());
                self.at = self.at.max(range.start + label);
            }
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item | TagEnd::FootnoteDefinition) => {
                self.gap(range.end);
            }
            Event::Start(_) => {
                if is_outside {
                    self.gap(range.start);
                }
                self.blocks += 1;
            }
            Event::End(_) => {
                self.blocks -= 1;
                if self.blocks == 0 {
                    self.at = self.at.max(range.end);
                }
            }
            _ if is_outside => {
                self.gap(range.start);
                self.at = self.at.max(range.end);
            }
            _ => {}
        }
        self.push(event, range);
    }

    fn push(&mut self, event: Event<'a>, range: Range<usize>) {
        match event {
            Event::InlineHtml(tag) if is_line_break(&tag) => return self.events.push(Event::HardBreak),
            Event::Start(Tag::Link { ref dest_url, .. } | Tag::Image { ref dest_url, .. }) => {
                self.links.push(Link { address: dest_url.clone(), has_words: false });
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                if let Some(Link { address, has_words: false }) = self.links.pop() {
                    self.push(Event::Text(address), range.clone());
                }
            }
            Event::End(TagEnd::List(true)) if self.is_number_alone() => {
                let number = self.markdown[range].trim();
                self.events.truncate(self.events.len() - 3);
                let paragraph =
                    [Event::Start(Tag::Paragraph), Event::Text(number.into()), Event::End(TagEnd::Paragraph)];
                return self.events.extend(paragraph);
            }
            _ => {}
        }
        if is_seen(&event) {
            self.links.iter_mut().for_each(|link| link.has_words = true);
        }
        self.events.push(event);
    }

    /// Whether the latest events are a numbered list with a single empty item.
    fn is_number_alone(&self) -> bool {
        matches!(
            self.events.as_slice(),
            [.., Event::Start(Tag::List(Some(_))), Event::Start(Tag::Item), Event::End(TagEnd::Item)]
        )
    }

    /// Shows the unused definitions between the current position and `end`, a range for which the parser gave no events.
    fn gap(&mut self, end: usize) {
        let mut start = self.at;
        self.at = start.max(end);
        let Some(used) = &self.used else { return };
        if start >= end || !self.markdown[start..end].contains('[') {
            return;
        }
        let mut unused = String::new();
        let first = used.partition_point(|span| span.start < start);
        for span in used[first..].iter().take_while(|span| span.start < end) {
            unused.extend([&self.markdown[start..span.start], "\n\n"]);
            start = span.end;
        }
        unused.push_str(&self.markdown[start..end.max(start)]);
        for words in paragraphs(&unused) {
            // The backslash in front prevents a second reading as a definition.
            for event in Parser::new_ext(&words, OPTIONS) {
                self.events.push(event.into_static());
            }
        }
    }
}

/// The definitions in `source`, escaped, one string for each run of lines. The marks of quotes around them are removed
/// from every line.
fn paragraphs(source: &str) -> Vec<String> {
    let mut paragraphs: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in source.lines() {
        let words = line.trim_start_matches([' ', '\t', '>']).trim_end();
        match (paragraphs.last_mut().filter(|_| is_open), words.find('[')) {
            (_, _) if words.is_empty() => is_open = false,
            (Some(paragraph), _) => paragraph.extend(["\n", words]),
            (None, Some(start)) => {
                paragraphs.push(format!("\\{}", &words[start..]));
                is_open = true;
            }
            (None, None) => {}
        }
    }
    paragraphs
}

/// Models write `<br>` in table cells, where Markdown has no line break.
fn is_line_break(tag: &str) -> bool {
    ["<br>", "<br/>", "<br />"].iter().any(|line_break| tag.eq_ignore_ascii_case(line_break))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    /// The text of what is shown, line by line.
    fn words(markdown: &str) -> String {
        let mut words = String::new();
        for event in read_markdown(markdown) {
            match event {
                Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                    words.push_str(&text);
                }
                Event::SoftBreak | Event::HardBreak | Event::End(TagEnd::Paragraph | TagEnd::Item) => words.push('\n'),
                _ => {}
            }
        }
        words.trim_end().to_owned()
    }

    /// A7.
    #[rstest]
    #[case("")]
    #[case("#")]
    #[case("######  ")]
    #[case("> ")]
    #[case("> > #")]
    #[case("- ")]
    #[case("+\n+")]
    #[case("1.\n2.")]
    #[case("&nbsp;")]
    #[case("&#8203; &ZeroWidthSpace;")]
    #[case("[]()")]
    #[case("[ ](<>)")]
    #[case("![]()")]
    #[case("*\u{200b}*")]
    #[case("**&nbsp;**")]
    #[case("` `")]
    #[case("```\n```")]
    #[case("```text\n\n```")]
    #[case("| | |\n|-|-|\n| | |")]
    #[case("\u{e0020}")]
    #[case("\u{fe0f}")]
    #[case("\\\n&nbsp;")]
    #[case("<br><br/>")]
    #[case("> - *&#x200b;*\n> - ` `")]
    fn nothing_is_seen_of(#[case] markdown: &str) {
        assert!(!shows_anything(markdown), "{:?}", read_markdown(markdown));
    }

    #[rstest]
    #[case("Hello.")]
    #[case("[Answer]: 42")]
    #[case("[//]: # (comment)")]
    #[case("[](https://example.org)")]
    #[case("42.")]
    #[case("0)")]
    #[case("---")]
    #[case("- [x] ")]
    #[case("> # a")]
    #[case("`a`")]
    #[case("<!-- a -->")]
    #[case("🏳\u{fe0f}")]
    #[case("\\#")]
    fn something_is_seen_of(#[case] markdown: &str) {
        assert!(shows_anything(markdown));
    }

    #[rstest]
    #[case("[Answer]: 42", "[Answer]: 42")]
    #[case("[Answer]: **42**", "[Answer]: 42")]
    #[case("[Answer]:\n42", "[Answer]:\n42")]
    #[case(
        "Paris.\n\n[Source]: https://x.test\n[Source]: https://y.test",
        "Paris.\n[Source]: https://x.test\n[Source]: https://y.test"
    )]
    #[case("[a]: b\n\n[A]: c\n\nd", "[a]: b\n[A]: c\nd")]
    #[case("[Note]: done\n# Next", "[Note]: done\nNext")]
    #[case("> [Note]: done\n> more", "[Note]: done\nmore")]
    #[case("> - [Note]: \"a\n>   b\"\n> - c", "[Note]: \"a\nb\"\nc")]
    #[case("1. a\n\n   [Note]: done\n2. b", "a\n[Note]: done\n\nb\n")]
    #[case("- \\[a] `[b]`\n\n  [c]: d 'e'", "[a] [b]\n[c]: d 'e'")]
    #[case("[//]: # (hidden)", "[//]: # (hidden)")]
    #[case("[1]: https://example.org", "[1]: https://example.org")]
    fn a_definition_that_no_link_uses_is_text(#[case] markdown: &str, #[case] shown: &str) {
        assert_eq!(words(markdown), shown.trim_end());
    }

    #[rstest]
    #[case("See [the page][1].\n\n[1]: https://example.org", "See the page.")]
    #[case("[1]: https://example.org \"title\"\n\n> See [1].", "See 1.")]
    #[case(
        "See [a] and [c].\n\n[a]: https://a.test\n[b]: https://b.test\n[c]: https://c.test",
        "See a and c.\n[b]: https://b.test"
    )]
    #[case("> ![x][]\n>\n> [X]: https://a.test\n> [x]: https://b.test", "x\n[x]: https://b.test")]
    fn a_definition_that_a_link_uses_is_not_shown(#[case] markdown: &str, #[case] shown: &str) {
        assert_eq!(words(markdown), shown);
        let leads = |event: &Event<'_>| matches!(event, Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) if dest_url.starts_with("https://"));
        assert!(read_markdown(markdown).iter().any(leads));
    }

    /// Its text would be lost on platforms where only addresses become links.
    #[test]
    fn a_definition_without_an_address_is_shown_although_it_is_used() {
        assert_eq!(words("It is [so][1].\n\n[1]: Smith"), "It is so.\n[1]: Smith");
    }

    #[rstest]
    #[case("[](https://example.org)", "https://example.org")]
    #[case("[&nbsp;](https://example.org)", "\u{a0}https://example.org")]
    #[case("[![](https://a.test/x.png)](https://b.test)", "https://a.test/x.png")]
    #[case("[`a`](https://example.org)", "a")]
    fn a_link_without_words_shows_its_address(#[case] markdown: &str, #[case] shown: &str) {
        assert_eq!(words(markdown), shown);
    }

    #[rstest]
    #[case("42.", "42.")]
    #[case("1)", "1)")]
    #[case("> 2024.", "2024.")]
    #[case("The answer:\n\n 7. ", "The answer:\n7.")]
    fn a_number_alone_is_text(#[case] markdown: &str, #[case] shown: &str) {
        assert_eq!(words(markdown), shown);
    }

    #[rstest]
    #[case("| cmd | what |\n|-|-|\n| `ls | wc -l` | counts files |", "cmdwhatls | wc -lcounts files")]
    #[case("| a | b |\n|-|-|\n| x || y | or |", "abx| y | or")]
    #[case("> - | a |\n>   |---|\n>   | b | **c** | `d|e` |", "ab | c | d|e")]
    #[case("| a | b |\n|-|-|\n| c |", "abc")]
    fn the_surplus_of_a_row_is_in_its_last_cell(#[case] markdown: &str, #[case] shown: &str) {
        assert_eq!(words(markdown).replace('\n', ""), shown);
    }

    #[test]
    fn a_note_is_read_where_there_are_notes() {
        let markdown = "a[^1] b[^2]\n\n[^1]: c *d*\n\n[e]: f\n";
        let is_note =
            |event: &Event<'_>| matches!(event, Event::FootnoteReference(_) | Event::Start(Tag::FootnoteDefinition(_)));

        assert_eq!(read_markdown_with_notes(markdown).iter().filter(|event| is_note(event)).count(), 2);
        assert!(!read_markdown(markdown).iter().any(is_note));
        assert_eq!(words(markdown), "a[^1] b[^2]\n[^1]: c d\n[e]: f");
        let text = |event| if let Event::Text(text) = event { Some(text.into_string()) } else { None };
        let with_notes: String = read_markdown_with_notes(markdown).into_iter().filter_map(text).collect();
        assert_eq!(with_notes, "a b[^2]c d[e]: f");
    }

    fn letters(text: &str) -> String {
        text.chars().filter(|c| c.is_alphanumeric()).collect()
    }

    #[test]
    fn many_definitions_take_linear_time() {
        for unit in
            ["[a]: b\n", "[a]: b\n\n", "> [a]: b\n", "- [a]: b\n", "[a]: https://x.y\n\n[a]\n\n", "[a]:\n", "1.\n\n"]
        {
            let markdown = unit.repeat(300_000 / unit.len());
            assert!(!read_markdown(&markdown).is_empty(), "{unit:?}");
        }
    }

    proptest! {
        /// The letters of every definition are shown, wherever it is.
        #[test]
        fn no_word_is_swallowed(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "[a]: b\n", "[A]: b c\n", "[b]:\n c\n", "[c]: d 'e'\n", "[c]: d\n'e\nf'\n", "\n", "\n\n", "> ", "- ", "  ", "x\n", "x y",
                "# x\n", "*x*", "`x`\n", "\\[", "    ", "> - ", "---\n", "***\n", "\t",
            ]), 0..40),
        ) {
            let markdown = pieces.concat();
            prop_assert_eq!(letters(&words(&markdown)), letters(&markdown));
        }

        #[test]
        fn what_is_opened_is_closed(markdown in "(\\PC|[\n\\[\\]: >*#a1.-]){0,80}") {
            let mut open = 0_i32;
            for event in read_markdown(&markdown).into_iter().chain(read_markdown_with_notes(&markdown)) {
                match event {
                    Event::Start(_) => open += 1,
                    Event::End(_) => open -= 1,
                    _ => {}
                }
                prop_assert!(open >= 0);
            }
            prop_assert_eq!(open, 0);
        }
    }
}
