//! Converts Markdown to HTML that is safe to insert into the page. Pure.
//!
//! Safe by construction: the writer below emits a closed set of tags and attributes, and escapes all text. HTML in the
//! Markdown is shown as text. A link's URL is parsed and serialised by the `url` crate (which implements the browsers'
//! specification), and allowed only with http, https or mailto. Images become links, so that the page fetches nothing
//! that an agent names. Formulas become MathML, see `format/mathml.rs`; one that cannot be read is shown as text.
//!
//! The outermost blocks have `dir="auto"`: each takes its direction from its first letters, and everything in it follows. Code
//! is always left to right.

use std::{borrow::Cow, collections::HashMap, fmt::Write as _};

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Tag, TagEnd, TextMergeStream};
use rejoinder_core::read_markdown_with_notes;
use rejoinder_kit::{links, push_escaped};
use url::Url;

use formulas::{Formula, MARK, take_formulas};

mod formulas;
mod mathml;

/// How deep blocks may be nested. Deeper ones are shown at this depth.
const MAX_DEPTH: usize = 24;

/// The longest address that is a link, in bytes.
const MAX_ADDRESS: usize = 2_048;

pub(crate) fn to_html(markdown: &str) -> String {
    let (source, formulas) = take_formulas(markdown);
    let mut writer = Writer { html: String::with_capacity(source.len() * 3 / 2), formulas, ..Writer::default() };
    for event in TextMergeStream::new(without_padding(read_markdown_with_notes(&source)).into_iter()) {
        writer.write(event);
    }
    writer.end()
}

/// Removes the empty cells at the ends of rows: the parser fills each row up to the width of the heading, so that a few
/// characters could become hundreds of thousands of cells.
fn without_padding(events: Vec<Event<'_>>) -> Vec<Event<'_>> {
    let mut kept = Vec::with_capacity(events.len());
    for event in events {
        if event == Event::End(TagEnd::TableRow) {
            while let [.., Event::Start(Tag::TableCell), Event::End(TagEnd::TableCell)] = kept[..] {
                kept.truncate(kept.len() - 2);
            }
        }
        kept.push(event);
    }
    kept
}

/// The URL of a link in normal form, if it is safe to follow.
pub(crate) fn safe_href(address: &str) -> Option<String> {
    if address.len() > MAX_ADDRESS {
        return None;
    }
    let url = Url::parse(address).ok()?;
    let is_safe = match url.scheme() {
        "http" | "https" => url.has_host(),
        "mailto" => !url.path().is_empty(),
        _ => false,
    };
    is_safe.then(|| url.into())
}

struct Link {
    address: String,
    label: String,
}

#[derive(Default)]
struct Writer {
    html: String,
    formulas: Vec<Formula>,
    /// For each label of footnotes the number that joins a note and its references.
    notes_by_label: HashMap<String, usize>,
    /// The footnotes, which are shown at the end.
    notes: String,
    /// What was written before each open footnote.
    before_notes: Vec<String>,
    /// The end tag of each open element, innermost last; empty for an element that is not shown.
    open: Vec<&'static str>,
    /// The open links and images. Anchors must not nest, so only the outermost one has its label noted.
    links: Vec<Link>,
    /// The levels of the last heading and of those that it stands under, outermost first.
    headings: Vec<u8>,
    in_code_block: bool,
    in_table: bool,
    in_table_head: bool,
    alignments: Vec<Alignment>,
    column: usize,
}

impl Writer {
    fn write(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => {
                let end = if self.has_room_for(&tag) { self.start(tag) } else { "" };
                self.open.push(end);
            }
            Event::End(tag) => {
                let end = self.open.pop().unwrap_or_default();
                self.html.push_str(end);
                match tag {
                    TagEnd::Link | TagEnd::Image => self.end_link(!end.is_empty()),
                    TagEnd::CodeBlock => self.in_code_block = false,
                    TagEnd::TableHead => self.in_table_head = false,
                    TagEnd::Table => self.in_table = false,
                    TagEnd::FootnoteDefinition if !end.is_empty() => self.end_note(),
                    _ => {}
                }
            }
            Event::Text(text) => self.text(&text),
            Event::Code(code) => {
                let code = self.restored(&code);
                self.note_label(&code);
                self.html.push_str("<code>");
                push_escaped(&mut self.html, &code);
                self.html.push_str("</code>");
            }
            Event::FootnoteReference(label) => self.reference(&label),
            // Formulas were taken out of the source.
            Event::Html(text) | Event::InlineHtml(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                let text = self.restored(&text);
                self.note_label(&text);
                push_escaped(&mut self.html, &text);
            }
            // In a chat, line breaks are meant as written.
            Event::SoftBreak | Event::HardBreak => self.html.push_str("<br>"),
            Event::Rule => self.html.push_str("<hr>"),
            Event::TaskListMarker(done) => {
                self.html.push_str(if done {
                    r#"<input type="checkbox" aria-label="done" disabled checked> "#
                } else {
                    r#"<input type="checkbox" aria-label="not done" disabled> "#
                });
            }
        }
    }

    fn has_room_for(&self, tag: &Tag<'_>) -> bool {
        match tag {
            Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. } => true,
            // A table is shown completely or not at all.
            Tag::TableHead | Tag::TableRow | Tag::TableCell => self.in_table,
            _ => self.open.len() < MAX_DEPTH,
        }
    }

    /// Opens an element and returns its end tag.
    fn start(&mut self, tag: Tag<'_>) -> &'static str {
        let (start, end) = match tag {
            Tag::Paragraph => return self.block("<p", "</p>"),
            Tag::Heading { level, .. } => {
                let (start, end) = self.heading(level as u8);
                return self.block(start, end);
            }
            Tag::BlockQuote(_) => return self.block("<blockquote", "</blockquote>"),
            Tag::HtmlBlock => return self.block(r#"<p class="raw""#, "</p>"),
            Tag::CodeBlock(kind) => return self.code_block(&kind),
            Tag::List(Some(1)) => return self.block("<ol", "</ol>"),
            Tag::List(Some(first)) => return self.block(&format!(r#"<ol start="{first}""#), "</ol>"),
            Tag::List(None) => return self.block("<ul", "</ul>"),
            Tag::Item => ("<li>", "</li>"),
            Tag::Table(alignments) => {
                self.in_table = true;
                self.alignments = alignments;
                self.block(r#"<div class="table" role="group" aria-label="Table" tabindex="0""#, "");
                ("<table>", "</tbody></table></div>")
            }
            Tag::TableHead => {
                self.in_table_head = true;
                self.column = 0;
                ("<thead><tr>", "</tr></thead><tbody>")
            }
            Tag::TableRow => {
                self.column = 0;
                ("<tr>", "</tr>")
            }
            Tag::TableCell => return self.cell(),
            Tag::Emphasis => ("<em>", "</em>"),
            Tag::Strong => ("<strong>", "</strong>"),
            Tag::Strikethrough => ("<del>", "</del>"),
            Tag::Link { dest_url, .. } => return self.link(&dest_url),
            Tag::Image { dest_url, .. } => return self.image(&dest_url),
            Tag::FootnoteDefinition(label) => return self.note(&label),
            // Extensions that are not enabled.
            Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => ("", ""),
        };
        self.html.push_str(start);
        end
    }

    /// Opens a block, given its start tag without `>`, and returns its end tag.
    fn block(&mut self, start: &str, end: &'static str) -> &'static str {
        self.html.push_str(start);
        // In a block that has a direction of its own, the outer one would not see the letters.
        self.html.push_str(if self.open.is_empty() { r#" dir="auto">"# } else { ">" });
        end
    }

    /// The tags of a heading. The page has its title at level 1 and the speaker of each answer at level 2, and no level is
    /// skipped, whatever the agent wrote.
    fn heading(&mut self, level: u8) -> (&'static str, &'static str) {
        self.headings.retain(|outer| *outer < level);
        self.headings.push(level);
        match self.headings.len() {
            1 => ("<h3", "</h3>"),
            2 => ("<h4", "</h4>"),
            3 => ("<h5", "</h5>"),
            _ => ("<h6", "</h6>"),
        }
    }

    fn code_block(&mut self, kind: &CodeBlockKind<'_>) -> &'static str {
        self.in_code_block = true;
        self.html.push_str(r#"<figure class="code" dir="ltr"><figcaption><span>"#);
        if let CodeBlockKind::Fenced(info) = kind {
            let info = self.restored(info);
            push_escaped(&mut self.html, info.split([' ', ',', '{']).next().unwrap_or_default());
        }
        self.html.push_str(
            r#"</span><button type="button" class="copy" data-copy="code">Copy</button></figcaption><pre tabindex="0"><code>"#,
        );
        "</code></pre></figure>"
    }

    fn cell(&mut self) -> &'static str {
        let class = match self.alignments.get(self.column) {
            Some(Alignment::Center) => r#" class="center""#,
            Some(Alignment::Right) => r#" class="right""#,
            _ => "",
        };
        self.column += 1;
        let (name, end) = if self.in_table_head { ("th", "</th>") } else { ("td", "</td>") };
        let _ = write!(self.html, "<{name}{class}>");
        end
    }

    fn link(&mut self, address: &str) -> &'static str {
        let address = self.restored(address).into_owned();
        let href = safe_href(&address);
        self.links.push(Link { address, label: String::new() });
        match href {
            Some(href) if self.links.len() == 1 => {
                self.anchor(&href);
                "</a>"
            }
            _ => "",
        }
    }

    /// Shows where a link leads, if it can be followed.
    fn end_link(&mut self, is_anchor: bool) {
        let shown = self.links.pop().filter(|_| is_anchor);
        if let Some(shown) = shown.and_then(|link| links::destination(&link.label, &link.address)) {
            self.html.push_str(" (");
            push_escaped(&mut self.html, &shown);
            self.html.push(')');
        }
    }

    fn note_label(&mut self, text: &str) {
        if let Some(outermost) = self.links.first_mut() {
            outermost.label.push_str(text);
        }
    }

    fn image(&mut self, address: &str) -> &'static str {
        self.html.push_str("🖼 ");
        self.link(address)
    }

    fn anchor(&mut self, href: &str) {
        self.html.push_str(r#"<a href=""#);
        push_escaped(&mut self.html, href);
        self.html.push_str(r#"" target="_blank" rel="noopener noreferrer nofollow">"#);
    }

    fn text(&mut self, text: &str) {
        if !self.links.is_empty() || self.in_code_block {
            let text = self.restored(text);
            self.note_label(&text);
            return push_escaped(&mut self.html, &text);
        }
        for (index, piece) in text.split(MARK).enumerate() {
            if index.is_multiple_of(2) { self.words(piece) } else { self.formula(piece) }
        }
    }

    /// Text as it stands in the source, with its formulas.
    fn restored<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !text.contains(MARK) {
            return Cow::Borrowed(text);
        }
        let mut source = String::with_capacity(text.len());
        for (index, piece) in text.split(MARK).enumerate() {
            let formula = if index.is_multiple_of(2) { None } else { numbered(&self.formulas, piece) };
            source.push_str(formula.map_or(piece, |formula| formula.written.as_str()));
        }
        Cow::Owned(source)
    }

    fn formula(&mut self, number: &str) {
        let Some(formula) = numbered(&self.formulas, number) else { return };
        if formula.is_display {
            // It scrolls by itself.
            self.html.push_str(r#"<span class="formula" role="group" aria-label="Formula" tabindex="0">"#);
            self.html.push_str(&formula.mathml);
            self.html.push_str("</span>");
        } else {
            self.html.push_str(&formula.mathml);
        }
    }

    /// The number of the footnotes with this label.
    fn number_of(&mut self, label: &str) -> usize {
        let next = self.notes_by_label.len();
        *self.notes_by_label.entry(label.to_lowercase()).or_insert(next)
    }

    /// A reference to a footnote. The page makes links of both, with ids that are its own.
    fn reference(&mut self, label: &str) {
        let (number, label) = (self.number_of(label), self.restored(label));
        self.note_label(&label);
        self.html.push_str("<sup>");
        if self.links.is_empty() {
            let _ = write!(self.html, r#"<a role="doc-noteref" data-ref="{number}">"#);
        }
        push_escaped(&mut self.html, &label);
        self.html.push_str(if self.links.is_empty() { "</a></sup>" } else { "</sup>" });
    }

    /// Begins a footnote: what is written until its end is moved to the end of the text.
    fn note(&mut self, label: &str) -> &'static str {
        let (number, label) = (self.number_of(label), self.restored(label));
        self.before_notes.push(std::mem::take(&mut self.html));
        let _ = write!(self.html, r#"<li dir="auto"><a role="doc-backlink" data-note="{number}">"#);
        push_escaped(&mut self.html, &label);
        self.html.push_str("</a> ");
        "</li>"
    }

    fn end_note(&mut self) {
        let before = self.before_notes.pop().unwrap_or_default();
        self.notes.push_str(&std::mem::replace(&mut self.html, before));
    }

    fn end(mut self) -> String {
        if !self.notes.is_empty() {
            self.html.push_str(r#"<ul class="notes" aria-label="Footnotes">"#);
            self.html.push_str(&self.notes);
            self.html.push_str("</ul>");
        }
        self.html
    }

    /// Plain text, with links for the addresses in it.
    fn words(&mut self, text: &str) {
        let mut rest = text;
        while let Some((before, address)) = next_address(rest) {
            push_escaped(&mut self.html, before);
            match safe_href(address) {
                Some(href) => {
                    self.anchor(&href);
                    push_escaped(&mut self.html, address);
                    self.html.push_str("</a>");
                }
                None => push_escaped(&mut self.html, address),
            }
            rest = &rest[before.len() + address.len()..];
        }
        push_escaped(&mut self.html, rest);
    }
}

fn numbered<'a>(formulas: &'a [Formula], number: &str) -> Option<&'a Formula> {
    formulas.get(number.parse::<usize>().ok()?)
}

/// The next bare `http(s)://…` in `text`, with the text before it.
fn next_address(text: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find("http")?;
        let candidate = &text[start..];
        let stands_alone = text[..start].chars().next_back().is_none_or(|before| !before.is_alphanumeric());
        if stands_alone && (candidate.starts_with("http://") || candidate.starts_with("https://")) {
            let end = candidate
                .find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`'))
                .unwrap_or(candidate.len());
            return Some((&text[..start], without_punctuation(&candidate[..end])));
        }
        from = start + "http".len();
    }
}

/// `address` without the punctuation of the sentence around it.
fn without_punctuation(mut address: &str) -> &str {
    let surplus = |open, close| address.matches(close).count().saturating_sub(address.matches(open).count());
    let (mut round, mut square) = (surplus('(', ')'), surplus('[', ']'));
    while let Some(last) = address.chars().next_back() {
        match last {
            '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '*' | '_' | '~' | '…' => {}
            ')' if round > 0 => round -= 1,
            ']' if square > 0 => square -= 1,
            _ => break,
        }
        address = &address[..address.len() - last.len_utf8()];
    }
    address
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rejoinder_core::{
        conformance::{
            growth::{OPENERS, assert_linear},
            markdown::{PIECES, SEEN, UNSEEN, sample},
        },
        is_blank, shows_anything,
    };
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("plain", r#"<p dir="auto">plain</p>"#)]
    #[case(
        "**a** *b* ~~c~~ `d<e`",
        r#"<p dir="auto"><strong>a</strong> <em>b</em> <del>c</del> <code>d&lt;e</code></p>"#
    )]
    #[case("one\ntwo", r#"<p dir="auto">one<br>two</p>"#)]
    #[case("- a\n- b\n  1. c", r#"<ul dir="auto"><li>a</li><li>b<ol><li>c</li></ol></li></ul>"#)]
    #[case("3. a", r#"<ol start="3" dir="auto"><li>a</li></ol>"#)]
    #[case("- [x] a", r#"<ul dir="auto"><li><input type="checkbox" aria-label="done" disabled checked> a</li></ul>"#)]
    #[case("> a\n\n---", r#"<blockquote dir="auto"><p>a</p></blockquote><hr>"#)]
    #[case("a<br>b", r#"<p dir="auto">a<br>b</p>"#)]
    fn markdown_is_rendered(#[case] markdown: &str, #[case] html: &str) {
        assert_eq!(to_html(markdown), html);
    }

    #[rstest]
    #[case("# a", &[3])]
    #[case("## a\n\n### b\n\n## c", &[3, 4, 3])]
    #[case("###### a\n\n# b", &[3, 3])]
    #[case("# a\n\n###### b\n\n### c\n\n#### d", &[3, 4, 4, 5])]
    #[case("# a\n\n## b\n\n### c\n\n#### d\n\n##### e", &[3, 4, 5, 6, 6])]
    fn headings_skip_no_level_of_the_page(#[case] markdown: &str, #[case] levels: &[usize]) {
        let html = to_html(markdown);

        let found: Vec<usize> = html.split("<h").skip(1).map(|rest| rest[..1].parse().expect("a level")).collect();
        assert_eq!(found, levels, "{html}");
    }

    #[test]
    fn an_outermost_block_has_its_own_direction_and_code_has_not() {
        for markdown in ["א", "# א", "- א\n- b", "1. א", "> א", "| א |\n|--|\n| b |"] {
            let html = to_html(markdown);
            assert_eq!(html.matches(r#" dir="auto""#).count(), 1, "{html}");
            assert!(html[..html.find('>').expect("a tag")].ends_with(r#" dir="auto""#), "{html}");
        }
        let html = to_html("> א\n> ```\n> b\n> ```");
        assert!(
            html.starts_with(r#"<blockquote dir="auto"><p>"#) && html.contains(r#"class="code" dir="ltr""#),
            "{html}"
        );
    }

    /// The text that a person reads. A rule and a checkbox count as visible; the language of a code block does not, since it
    /// says nothing without code.
    fn visible_text(html: &str) -> String {
        let html = html.replace("<hr>", "──").replace("<input", "☐<");
        let html: String = html
            .split("<figcaption>")
            .map(|piece| piece.split_once("</figcaption>").map_or(piece, |(_, rest)| rest))
            .collect();
        let text: String = html.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text)).collect();
        let entities = [("&quot;", "\""), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
        entities.iter().fold(text, |text, (entity, character)| text.replace(entity, character))
    }

    /// A7.
    #[test]
    fn what_shows_something_is_shown() {
        for (markdown, seen) in SEEN {
            assert!(visible_text(&to_html(markdown)).contains(seen), "{markdown:?}: {:?}", to_html(markdown));
        }
        for markdown in UNSEEN {
            assert!(!shows_anything(markdown), "{markdown:?}");
        }
    }

    /// A7. The core takes such an answer for silence, on all channels.
    #[test]
    fn the_language_of_an_empty_code_block_is_no_word() {
        for markdown in ["```[a]: b", "```text\n\n```"] {
            assert!(!shows_anything(markdown) && is_blank(&visible_text(&to_html(markdown))), "{}", to_html(markdown));
        }
    }

    #[test]
    fn a_table_keeps_its_alignment_without_a_style() {
        let html = to_html("| a | b |\n|---|--:|\n| 1 | 2 |");

        assert_eq!(
            html,
            "<div class=\"table\" role=\"group\" aria-label=\"Table\" tabindex=\"0\" dir=\"auto\"><table><thead><tr><th>a</th>\
             <th class=\"right\">b</th></tr></thead><tbody><tr><td>1</td><td class=\"right\">2</td></tr></tbody></table></div>"
        );
    }

    #[test]
    fn a_fence_has_a_copy_button_and_names_its_language() {
        let html = to_html("```rust,ignore\nlet x = \"<b>\";\n```");

        assert!(html.contains("<span>rust</span>"), "{html}");
        assert!(html.contains(r#"data-copy="code""#), "{html}");
        assert!(html.contains("let x = &quot;&lt;b&gt;&quot;;\n</code>"), "{html}");
    }

    #[test]
    fn a_fence_that_is_still_being_written_is_a_code_block_already() {
        assert!(to_html("```sh\necho hi").ends_with("echo hi</code></pre></figure>"));
    }

    #[test]
    fn a_formula_is_mathml_and_one_on_its_own_line_scrolls() {
        let inline = to_html("So **$x$** and *y*.");
        let block = to_html("So\n\\[\nx\n+ 1\n\\]\nholds.");

        assert!(
            inline.contains(r#"<strong><math display="inline"><mi>x</mi></math></strong> and <em>y</em>."#),
            "{inline}"
        );
        let formula =
            r#"<span class="formula" role="group" aria-label="Formula" tabindex="0"><math display="block"><mi>x</mi>"#;
        assert!(block.contains(&format!("So<br>{formula}")) && block.ends_with("</span><br>holds.</p>"), "{block}");
        for html in [inline, block] {
            assert_is_safe(&html);
        }
    }

    #[rstest]
    #[case("It costs $5, or $6.", "It costs $5, or $6.")]
    #[case("`$x$`", "<code>$x$</code>")]
    #[case("[$x$](https://a.test/$y$)", r#"href="https://a.test/$y$""#)]
    #[case("[$x$](https://a.test/)", ">$x$</a>")]
    #[case("<b title=$x$>", "title=$x$&gt;")]
    #[case("$\\nosuch *a*$", "<em>a</em>$")]
    #[case("```$x$\n$y$\n```", "<span>$x$</span>")]
    fn what_is_no_formula_is_text(#[case] markdown: &str, #[case] part: &str) {
        let html = to_html(markdown);

        assert!(html.contains(part) && !html.contains("<math"), "{html}");
        assert_is_safe(&html);
    }

    #[test]
    fn footnotes_stand_at_the_end_with_their_labels() {
        let html = to_html("One[^a], two[^bc], none[^d].\n\n[^a]: *First*\n\nLast.\n\n[^bc]: Second\n");

        let reference = |number, label| format!(r#"<sup><a role="doc-noteref" data-ref="{number}">{label}</a></sup>"#);
        assert!(
            html.starts_with(&format!(
                r#"<p dir="auto">One{}, two{}, none[^d].</p>"#,
                reference(0, "a"),
                reference(1, "bc")
            )),
            "{html}"
        );
        assert!(
            html.contains(r#"<p dir="auto">Last.</p><ul class="notes" aria-label="Footnotes"><li dir="auto">"#),
            "{html}"
        );
        assert!(html.contains(r#"<a role="doc-backlink" data-note="0">a</a> <p><em>First</em></p></li>"#), "{html}");
        assert_is_safe(&html);
    }

    #[rstest]
    #[case("see https://example.org/a_b_c?x=1&y=2.", "https://example.org/a_b_c?x=1&amp;y=2", "</a>.")]
    #[case("(https://example.org/wiki/A_(b))", "https://example.org/wiki/A_(b)", "</a>)")]
    #[case("<https://example.org/x>", "https://example.org/x", "</a>")]
    #[case("[a](https://example.org/x \"t\")", "https://example.org/x", "a</a> (example.org)")]
    #[case("[b.test](https://a.test@b.test/)", "https://a.test@b.test/", "b.test</a> (b.test)")]
    #[case("[example.org](https://example.org/x)", "https://example.org/x", "example.org</a></p>")]
    #[case("[a](mailto:a@example.org)", "mailto:a@example.org", "a</a> (a@example.org)")]
    #[case("![alt](https://example.org/x.png)", "https://example.org/x.png", "alt</a> (example.org)")]
    fn addresses_become_links_that_open_elsewhere(#[case] markdown: &str, #[case] href: &str, #[case] then: &str) {
        let html = to_html(markdown);

        let link = format!(r#"<a href="{href}" target="_blank" rel="noopener noreferrer nofollow">"#);
        assert!(html.contains(&link) && html.contains(then), "{html}");
    }

    #[rstest]
    #[case("xhttp://example.org")]
    #[case("http://")]
    #[case("`https://example.org`")]
    #[case("[a](/relative)")]
    #[case("[a](#fragment)")]
    #[case("[a](//example.org)")]
    fn what_is_no_address_becomes_no_link(#[case] markdown: &str) {
        assert!(!to_html(markdown).contains("<a "), "{}", to_html(markdown));
    }

    #[test]
    fn an_address_of_more_than_two_kilobytes_is_no_link() {
        let address = |bytes: usize| format!("https://a.test/{}", "x".repeat(bytes - "https://a.test/".len()));
        let (short, long) = (address(MAX_ADDRESS), address(MAX_ADDRESS + 1));

        for markdown in [short.clone(), format!("[a]({short})")] {
            assert!(to_html(&markdown).contains("<a "), "{markdown}");
        }
        for markdown in [long.clone(), format!("[a]({long})")] {
            assert!(!to_html(&markdown).contains("<a "), "{markdown}");
        }
    }

    /// Takes hours if each bracket is counted again.
    #[test]
    fn the_end_of_an_address_is_found_at_once() {
        let brackets = ")".repeat(1 << 20);

        let html = to_html(&format!("https://a.test/(b{brackets}"));

        assert!(html.contains(">https://a.test/(b)</a>))"), "{}", &html[..200]);
    }

    #[test]
    fn a_row_has_no_more_cells_than_were_written() {
        let columns = 500;
        let table = format!("{}|\n{}|\n{}", "|a".repeat(columns), "|-".repeat(columns), "|b\n".repeat(500));

        let html = to_html(&table);

        assert_eq!((html.matches("<th>").count(), html.matches("<td>").count()), (columns, 500));
        assert_is_safe(&html);
    }

    #[test]
    fn a_picture_inside_a_link_is_one_link() {
        let html = to_html("[![alt](https://a.example/x.png)](https://b.example/)");

        assert_eq!(html.matches("<a ").count(), 1, "{html}");
        assert!(html.contains(r#"href="https://b.example/""#), "{html}");
    }

    /// Attacks that have worked against other renderers.
    #[rstest]
    #[case("<script>alert(1)</script>")]
    #[case("<img src=x onerror=alert(1)>")]
    #[case("a <img src=x onerror=alert(1)> b")]
    #[case("<svg/onload=alert(1)>")]
    #[case("<iframe srcdoc='<script>alert(1)</script>'></iframe>")]
    #[case("<a href=\"javascript:alert(1)\">x</a>")]
    #[case("<br onclick=alert(1)>")]
    #[case("<br\u{a0}>")]
    #[case("<!-- --><script>alert(1)</script>")]
    #[case("<![CDATA[<script>alert(1)</script>]]>")]
    #[case("[x](javascript:alert(1))")]
    #[case("[x](JaVaScRiPt:alert(1))")]
    #[case("[x](java\tscript:alert(1))")]
    #[case("[x](<java\nscript:alert(1)>)")]
    #[case("[x](&#106;avascript:alert(1))")]
    #[case("[x](&#x6A;&#x61;vascript&colon;alert(1))")]
    #[case("[x](javascript&#58;alert(1))")]
    #[case("[x](\\javascript:alert(1))")]
    #[case("[x](<\u{1}javascript:alert(1)>)")]
    #[case("[x](< javascript:alert(1)>)")]
    #[case("[x](vbscript:msgbox(1))")]
    #[case("[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)")]
    #[case("[x](view-source:javascript:alert(1))")]
    #[case("[x](blob:https://example.org/1)")]
    #[case("[x](file:///etc/passwd)")]
    #[case("<javascript:alert(1)>")]
    #[case("<data:text/html,x>")]
    #[case("![x](javascript:alert(1))")]
    #[case("![x](data:image/svg+xml;base64,PHN2Zy8+)")]
    #[case("![\"onerror=\"alert(1)](https://example.org/x.png)")]
    #[case("[x](https://example.org/\"onmouseover=\"alert(1))")]
    #[case("[x](https://example.org/'onmouseover='alert(1))")]
    #[case("[x](https://example.org \"\\\" onmouseover=alert(1) x=\\\"\")")]
    #[case("https://example.org/\"onmouseover=\"alert(1)")]
    #[case("https://example.org/'><script>alert(1)</script>")]
    #[case("[a]: javascript:alert(1)\n\n[a]")]
    #[case("[![x](javascript:alert(1))](javascript:alert(2))")]
    #[case("```\"><script>alert(1)</script>\n</code></pre><script>alert(1)</script>\n```")]
    #[case("``` <script>alert(1)</script>\nx\n```")]
    #[case("`</code><script>alert(1)</script>`")]
    #[case("| <script>alert(1)</script> | [x](javascript:alert(1)) |\n|--|--|\n| <b onclick=x> | a |")]
    #[case("# <script>alert(1)</script> {#id onclick=alert(1)}")]
    #[case("- [x] <input autofocus onfocus=alert(1)>")]
    #[case("&lt;script&gt;alert(1)&lt;/script&gt;")]
    #[case("\u{0}<\u{0}script>alert(1)</script>")]
    fn nothing_runs(#[case] markdown: &str) {
        assert_is_safe(&to_html(markdown));
    }

    #[test]
    fn depth_is_bounded() {
        let html = to_html(&format!("{} deep", ">".repeat(500)));

        assert!(html.matches("<blockquote").count() <= MAX_DEPTH, "{html}");
        assert!(html.contains("deep"));
        assert_is_safe(&html);
    }

    #[test]
    fn a_long_answer_costs_what_its_length_asks_for() {
        assert_linear(&OPENERS, |markdown| drop(to_html(markdown)));
        assert_linear(&[")", "]", ".", "(", "()", "http"], |rest| drop(to_html(&format!("http://a/{rest}"))));
        assert_linear(&["$", "$x", "$x$ ", "$$x", "\\[", "\\(x\\) ", "[^a] ", "[^a]: b\n\n"], |rest| {
            drop(to_html(rest));
        });
    }

    proptest! {
        /// Nothing that the agent said is lost.
        #[test]
        fn every_word_is_shown(pieces in prop::collection::vec(0..PIECES.len(), 0..400)) {
            let (markdown, words) = sample(&pieces);
            let shown = visible_text(&to_html(&markdown));
            for word in words {
                prop_assert!(shown.contains(&word), "{word} is missing of {markdown:?}: {shown}");
            }
        }

        /// A7. No bubble is empty.
        #[test]
        fn a_bubble_has_words_if_there_is_anything_to_see(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "[a]: b", "[a]", "[]()", "[](https://a.test)", "![]()", "#", "> ", "- ", "1.", "\n", "\n\n", "*", "**", "`", "` `",
                "&nbsp;", "\u{200b}", "\u{fe0f}", " ", "| |\n|-|\n", "---", "[x] ", "<br>", "<b>", "```\n", "\\", "x", "    ",
            ]), 0..8),
        ) {
            let markdown = pieces.concat();
            let seen = !is_blank(&visible_text(&to_html(&markdown)).replace('🖼', ""));
            prop_assert_eq!(seen, shows_anything(&markdown), "{:?}", to_html(&markdown));
        }

        #[test]
        fn nothing_unknown_is_ever_written(markdown in "\\PC{0,200}") {
            assert_is_safe(&to_html(&markdown));
        }

        #[test]
        fn nothing_unknown_is_written_of_what_looks_like_markup(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "<", ">", "\"", "'", "&", "[", "]", "(", ")", "![", "](", "`", "```\n", "\n", "\n\n", "> ", "- ", "1. ",
                "| ", "|--|\n", "# ", "*", "**", "_", "~~", "\\", ":", "javascript:", "data:", "https://a.example/", "<a href=",
                "<script>", "onerror=", "&#106;", "<!--", "-->", "\t", " ", "x", "$", "$$", "\\(", "\\)", "\\[", "\\]", "^", "{", "}",
                "\\frac", "\\text", "\\operatorname", "\\left(", "\\right)", "\\begin{matrix}", "\\end{matrix}", "[^a]", "[^a]: ",
            ]), 0..60),
        ) {
            assert_is_safe(&to_html(&pieces.concat()));
        }
    }

    /// Checks that all tags and attributes of `html` are known, and that all elements are closed in order.
    fn assert_is_safe(html: &str) {
        const TAGS: &str = "p h3 h4 h5 h6 blockquote figure figcaption span button pre code ol ul li div table \
            thead tbody tr th td em strong del a br hr input sup \
            math mi mn mo mtext mspace mrow mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd";
        const ATTRIBUTES: &str = r#"class="raw" class="code" class="copy" class="table" class="center" class="right"
            type="button" type="checkbox" data-copy="code" role="group" tabindex="0" target="_blank"
            rel="noopener noreferrer nofollow" aria-label="Table" aria-label="done" aria-label="not done"
            disabled checked dir="auto" dir="ltr" class="formula" aria-label="Formula" class="notes" aria-label="Footnotes"
            role="doc-noteref" role="doc-backlink""#;
        const NUMBERED: [&str; 2] = ["data-ref", "data-note"];
        const MATHEMATICAL: [&str; 15] = [
            "display",
            "displaystyle",
            "scriptlevel",
            "mathvariant",
            "stretchy",
            "symmetric",
            "largeop",
            "movablelimits",
            "width",
            "height",
            "depth",
            "linethickness",
            "minsize",
            "maxsize",
            "class",
        ];
        let mut open = Vec::new();
        for piece in html.split('<').skip(1) {
            let (tag, _) = piece.split_once('>').unwrap_or_else(|| panic!("an open tag in {html}"));
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "{html}");
                continue;
            }
            let mut words = tag.split(' ');
            let name = words.next().unwrap_or_default();
            assert!(TAGS.split_whitespace().any(|tag| tag == name), "<{tag}> in {html}");
            if name.starts_with('m') {
                open.push(name);
                let attributes = tag[name.len()..].split_terminator('"').collect::<Vec<_>>();
                for pair in attributes.chunks(2) {
                    let name = pair[0].trim().trim_end_matches('=');
                    let is_plain = pair.len() == 2
                        && pair[1].bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-. ".contains(&byte));
                    assert!(is_plain && MATHEMATICAL.contains(&name), "{name} in {html}");
                }
                continue;
            }
            if !matches!(name, "br" | "hr" | "input") {
                open.push(name);
            }
            for attribute in words {
                let is_href = attribute.strip_prefix("href=\"").is_some_and(|href| {
                    let address = href.strip_suffix('"').unwrap_or_default();
                    !address.contains(['"', '\''])
                        && ["http://", "https://", "mailto:"].iter().any(|scheme| address.starts_with(scheme))
                });
                let is_start = attribute
                    .strip_prefix("start=\"")
                    .is_some_and(|start| start.strip_suffix('"').is_some_and(|number| number.parse::<u64>().is_ok()));
                let is_known = ATTRIBUTES.split_whitespace().any(|known| known == attribute)
                    || NUMBERED.iter().any(|name| {
                        let number = attribute.strip_prefix(name).and_then(|rest| rest.strip_prefix("=\""));
                        number
                            .and_then(|number| number.strip_suffix('"'))
                            .is_some_and(|number| number.parse::<usize>().is_ok())
                    });
                assert!(is_href || is_start || is_known, "{attribute} in {html}");
            }
        }
        assert!(open.is_empty(), "{open:?} left open in {html}");
    }
}
