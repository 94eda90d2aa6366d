//! Converts parser events to text and marks.

use pulldown_cmark::{CodeBlockKind, Event, Tag, TagEnd};
use rejoinder_kit::{Table, links};
use teloxide::types::MessageEntityKind;
use url::Url;

use super::entities::{self, Formatted, Mark};

/// The columns of monospace text that a phone shows without wrapping.
const TABLE_WIDTH: usize = 40;

const RULE: &str = "──────────";

/// Writes the text, block by block. Line breaks, indentation and list markers are held back until text follows them.
#[derive(Debug, Default)]
pub(super) struct Writer {
    text: String,
    marks: Vec<Mark>,
    /// Line breaks to write before the next text.
    breaks: usize,
    frames: Vec<Frame>,
    /// The open lists: the next number of a numbered list, `None` for others.
    lists: Vec<Option<u64>>,
    styles: Vec<Style>,
    quotes: usize,
    links: Vec<Link>,
    code: Option<(Option<String>, String)>,
    table: Option<Table>,
}

/// What an open container puts at the start of its lines.
#[derive(Debug)]
struct Frame {
    /// For the first line; `None` once it is written.
    marker: Option<String>,
    /// For the lines after it.
    indent: String,
}

/// An open style, which becomes a mark when it is closed.
#[derive(Debug)]
struct Style {
    kind: MessageEntityKind,
    /// The byte offset of its text, once it has some.
    start: Option<usize>,
    /// The number of frames around it.
    depth: usize,
    /// It is inside another style of the same kind, so it makes no mark.
    repeated: bool,
}

#[derive(Debug)]
struct Link {
    destination: String,
    /// The byte offset of its label, in the text or in the table's cell.
    start: usize,
    styled: bool,
}

impl Writer {
    pub(super) fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.write(&text),
            Event::Code(code) => self.inline_code(&code),
            Event::SoftBreak | Event::HardBreak => self.line_break(),
            Event::Rule => {
                self.block();
                self.write(RULE);
                self.block();
            }
            Event::TaskListMarker(done) => self.task(done),
            Event::FootnoteReference(label) => self.write(&format!("[{label}]")),
            Event::InlineMath(math) | Event::DisplayMath(math) => self.write(&math),
        }
    }

    pub(super) fn finish(self) -> Formatted {
        let (text, entities) = entities::finish(&self.text, self.marks);
        Formatted { text, entities }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => {
                self.block();
                self.open(MessageEntityKind::Bold);
            }
            Tag::BlockQuote(_) => self.quote(),
            Tag::CodeBlock(kind) => {
                self.block();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => language(&info),
                    CodeBlockKind::Indented => None,
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.block();
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Table(alignments) => {
                self.block();
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::TableCell => {
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(String::new());
                }
            }
            Tag::Emphasis => self.open(MessageEntityKind::Italic),
            Tag::Strong => self.open(MessageEntityKind::Bold),
            Tag::Strikethrough => self.open(MessageEntityKind::Strikethrough),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.link(&dest_url),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.close();
                self.block();
            }
            TagEnd::Paragraph => self.breaks(2),
            TagEnd::HtmlBlock => self.block(),
            TagEnd::BlockQuote(_) => self.end_quote(),
            TagEnd::CodeBlock => self.code_block(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.block();
            }
            TagEnd::Item => {
                if self.frames.last().is_some_and(|frame| frame.marker.is_some()) {
                    self.begin_text();
                }
                self.frames.pop();
                self.breaks(1);
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.close(),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// Separates blocks: by an empty line, or by a line break inside a list.
    fn block(&mut self) {
        self.breaks(if self.lists.is_empty() { 2 } else { 1 });
    }

    fn breaks(&mut self, breaks: usize) {
        self.breaks = self.breaks.max(breaks);
    }

    fn line_break(&mut self) {
        if self.table.is_some() {
            self.write(" ");
        } else {
            self.breaks(1);
        }
    }

    fn item(&mut self) {
        self.breaks(1);
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "• ".to_owned(),
        };
        let indent = " ".repeat(marker.chars().count());
        self.frames.push(Frame { marker: Some(marker), indent });
    }

    fn task(&mut self, done: bool) {
        let sign = if done { "☑ " } else { "☐ " };
        match self.frames.last_mut().and_then(|frame| frame.marker.as_mut()) {
            Some(marker) if marker == "• " => sign.clone_into(marker),
            Some(marker) => marker.push_str(sign),
            None => self.write(sign),
        }
    }

    /// Opens a quote. Telegram forbids nested quotes, so an inner one is written with `>`.
    fn quote(&mut self) {
        self.block();
        self.quotes += 1;
        if self.quotes == 1 {
            self.open(MessageEntityKind::Blockquote);
        } else {
            self.frames.push(Frame { marker: None, indent: "> ".to_owned() });
        }
    }

    fn end_quote(&mut self) {
        self.quotes -= 1;
        if self.quotes == 0 {
            self.close();
        } else {
            self.frames.pop();
        }
        self.block();
    }

    fn open(&mut self, kind: MessageEntityKind) {
        let repeated = self.styles.iter().any(|style| style.kind == kind);
        self.styles.push(Style { kind, start: None, depth: self.frames.len(), repeated });
    }

    fn close(&mut self) {
        if let Some(style) = self.styles.pop() {
            self.mark(style.start.filter(|_| !style.repeated), style.kind);
        }
    }

    fn mark(&mut self, start: Option<usize>, kind: MessageEntityKind) {
        if let Some(start) = start {
            self.marks.push(Mark { range: start..self.text.len(), kind });
        }
    }

    /// Ends the open styles, which cannot contain code. They start again with the next text.
    fn suspend_styles(&mut self) {
        let here = self.text.len();
        for style in &mut self.styles {
            if style.kind == MessageEntityKind::Blockquote {
                continue;
            }
            if let Some(start) = style.start.take().filter(|_| !style.repeated) {
                self.marks.push(Mark { range: start..here, kind: style.kind.clone() });
            }
        }
    }

    /// Writes what is held back: line breaks, then indentation and list markers.
    fn begin_text(&mut self) {
        if self.begin_line() {
            for depth in 0..self.frames.len() {
                self.begin_quotes(depth);
                let frame = &mut self.frames[depth];
                match frame.marker.take() {
                    Some(marker) => self.text.push_str(&marker),
                    None => self.text.push_str(&frame.indent),
                }
            }
        }
        let here = self.text.len();
        for style in &mut self.styles {
            style.start.get_or_insert(here);
        }
    }

    /// Starts open quotes here, before the list markers and indentation inside them.
    fn begin_quotes(&mut self, depth: usize) {
        let here = self.text.len();
        let quotes = self.styles.iter_mut().filter(|style| style.kind == MessageEntityKind::Blockquote);
        for style in quotes.filter(|style| style.start.is_none() && style.depth <= depth) {
            style.start = Some(here);
        }
    }

    /// Writes the held-back line breaks. Returns whether a new line begins here.
    fn begin_line(&mut self) -> bool {
        let breaks = std::mem::take(&mut self.breaks);
        if !self.text.is_empty() {
            self.text.push_str(&"\n".repeat(breaks));
        }
        self.text.is_empty() || breaks > 0
    }

    fn write(&mut self, text: &str) {
        if let Some((_, code)) = &mut self.code {
            code.push_str(text);
            return;
        }
        if let Some(cell) = self.table.as_mut().and_then(Table::cell) {
            cell.push_str(&text.replace(['\n', '\t'], " "));
            return;
        }
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.breaks += 1;
            }
            if !line.is_empty() {
                self.begin_text();
                self.text.push_str(line);
            }
        }
    }

    fn inline_code(&mut self, code: &str) {
        if self.table.is_some() || self.links.iter().any(|link| link.styled) {
            return self.write(code);
        }
        self.begin_text();
        self.suspend_styles();
        let start = self.text.len();
        self.text.push_str(code);
        self.mark(Some(start), MessageEntityKind::Code);
    }

    fn code_block(&mut self) {
        if let Some((language, code)) = self.code.take() {
            self.pre(code.trim_end_matches('\n'), language);
        }
        self.block();
    }

    /// Writes a monospace block without indentation.
    fn pre(&mut self, code: &str, language: Option<String>) {
        if code.trim().is_empty() {
            return;
        }
        if self.frames.iter().any(|frame| frame.marker.is_some()) {
            self.begin_text();
            self.breaks(1);
        }
        self.begin_line();
        self.begin_quotes(usize::MAX);
        self.suspend_styles();
        let start = self.text.len();
        self.text.push_str(code);
        self.mark(Some(start), MessageEntityKind::Pre { language });
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        if let Some(aligned) = table.aligned(TABLE_WIDTH) {
            self.pre(&aligned, None);
        } else {
            for record in table.records() {
                for (key, value) in record {
                    if !key.is_empty() {
                        self.open(MessageEntityKind::Bold);
                        self.write(key);
                        self.close();
                        self.write(": ");
                    }
                    self.write(value);
                    self.breaks(1);
                }
                self.block();
            }
        }
        self.block();
    }

    fn link(&mut self, destination: &str) {
        let url = Url::parse(destination).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let styled = self.table.is_none() && self.links.is_empty() && url.is_some();
        if let Some(url) = url.filter(|_| styled) {
            self.open(MessageEntityKind::TextLink { url });
        }
        let start = self.written();
        self.links.push(Link { destination: destination.to_owned(), start, styled });
    }

    fn written(&mut self) -> usize {
        match self.table.as_mut().and_then(Table::cell) {
            Some(cell) => cell.len(),
            None => self.text.len(),
        }
    }

    fn end_link(&mut self) {
        let Some(link) = self.links.pop() else { return };
        // Telegram recognises an e-mail address without its scheme. An address of its own could notify somebody.
        let schemes = ["mailto:", "tg://", "tg:"];
        let shown = schemes.iter().find_map(|scheme| link.destination.strip_prefix(scheme));
        let shown = shown.unwrap_or(&link.destination).to_owned();
        let label = match self.table.as_mut().and_then(Table::cell) {
            Some(cell) => cell[link.start..].trim().to_owned(),
            None => self.text[link.start..].trim().to_owned(),
        };
        if label.is_empty() {
            self.write(&shown);
        } else if !link.styled && !label.ends_with(&shown) {
            // A picture inside a link contributes only its label.
            if self.links.is_empty() {
                self.write(&format!(" ({shown})"));
            }
        }
        if link.styled {
            if label.ends_with(&shown) || label.is_empty() {
                self.styles.pop();
            } else {
                self.close();
                if let Some(host) = links::destination(&label, &link.destination) {
                    self.write(&format!(" ({host})"));
                }
            }
        }
    }
}

/// The language in an info string, if it has the form of a language name.
fn language(info: &str) -> Option<String> {
    let word = info.split([' ', '\t', ',', '{']).next().unwrap_or_default();
    let known = word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '_' | '.'));
    (!word.is_empty() && known).then(|| word.to_owned())
}
