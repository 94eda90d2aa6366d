//! Scans a source into lines: the kind of each, and the containers that it is in.

use std::ops::Range;

/// The deepest nesting of containers; deeper ones are read as text, so that scanning a line takes linear time.
const DEEPEST: usize = 12;

#[derive(Debug)]
pub(super) struct MarkdownLine {
    pub(super) start: usize,
    /// The position of its line break, or the end of the text.
    pub(super) end: usize,
    /// Where its own text begins, after the quote marks, list markers and their indentation.
    pub(super) content: usize,
    pub(super) kind: LineKind,
    /// Whether it begins a list item.
    pub(super) opens_item: bool,
    pub(super) prefixes: Vec<Prefix>,
}

/// The kind of a line, inside its containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    Blank,
    /// A line of a paragraph, or of any block that no other kind covers.
    Text,
    /// A line of an indented code block.
    Code,
    Heading,
    /// Turns the lines before it into a heading (setext).
    Underline,
    Rule,
    Fence(usize, FencePart),
    Table(usize, TablePart),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FencePart {
    Open,
    Body,
    Close,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TablePart {
    Head,
    Delimiter,
    Row,
}

/// The range of a line that belongs to one of its containers: a quote mark, a list marker or indentation.
#[derive(Debug, Clone)]
pub(super) struct Prefix {
    pub(super) container: Container,
    pub(super) range: Range<usize>,
    /// Whether the container begins on this line.
    pub(super) opens: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Container {
    pub(super) id: usize,
    pub(super) shape: Shape,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Quote,
    /// The indentation of its lines, in columns.
    Item(usize),
}

#[derive(Debug)]
pub(super) struct Fence {
    /// The opening line, with its info string and without indentation.
    pub(super) opening: String,
    pub(super) marker: char,
    pub(super) length: usize,
    pub(super) containers: Vec<Container>,
}

impl Fence {
    pub(super) fn closing(&self) -> String {
        self.marker.to_string().repeat(self.length)
    }
}

/// All lines, and the fences and tables that their kinds refer to by index.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) lines: Vec<MarkdownLine>,
    pub(super) fences: Vec<Fence>,
    /// The index of each table's first line.
    pub(super) tables: Vec<usize>,
}

/// Scans `text`, in which lines end with `\n`. A fence whose opening line is longer than `longest_fence` bytes,
/// with the prefixes of its containers, is read as text: it could not be reopened.
pub(super) fn scan(text: &str, longest_fence: usize) -> Layout {
    let mut scan = Scan { text, longest_fence, found: Layout::default(), open: Vec::new(), fence: None, next_id: 0 };
    let mut start = 0;
    for line in text.split('\n') {
        scan.line(start, start + line.len());
        start += line.len() + 1;
    }
    scan.found
}

struct Scan<'a> {
    text: &'a str,
    longest_fence: usize,
    found: Layout,
    open: Vec<Container>,
    fence: Option<usize>,
    next_id: usize,
}

/// A position in a line. A tab reaches to the next multiple of four columns.
#[derive(Clone, Copy)]
struct Position {
    at: usize,
    column: usize,
}

impl Scan<'_> {
    fn line(&mut self, start: usize, end: usize) {
        let mut position = Position { at: start, column: 0 };
        let mut prefixes = self.continued(&mut position, end);
        if let Some(fence) = self.fence {
            if prefixes.len() == self.open.len() {
                let part =
                    if self.closes(fence, &self.text[position.at..end]) { FencePart::Close } else { FencePart::Body };
                if part == FencePart::Close {
                    self.fence = None;
                }
                return self.push(start, end, position.at, LineKind::Fence(fence, part), prefixes);
            }
            self.fence = None;
        }
        let in_paragraph = self.found.lines.last().is_some_and(|line| line.kind == LineKind::Text);
        let rest = &self.text[position.at..end];
        let lazy = prefixes.len() < self.open.len() && in_paragraph && !starts_block(rest) && !rest.trim().is_empty();
        if !lazy {
            self.open.truncate(prefixes.len());
            self.opened(&mut position, end, in_paragraph, &mut prefixes);
        }
        let kind = self.kind(position, end, in_paragraph, &prefixes);
        self.push(start, end, position.at, kind, prefixes);
    }

    fn push(&mut self, start: usize, end: usize, content: usize, kind: LineKind, prefixes: Vec<Prefix>) {
        let opens_item = prefixes.iter().any(|prefix| prefix.opens && matches!(prefix.container.shape, Shape::Item(_)));
        self.found.lines.push(MarkdownLine { start, end, content, kind, opens_item, prefixes });
    }

    /// The open containers that this line continues. Moves `position` past their prefixes.
    fn continued(&self, position: &mut Position, end: usize) -> Vec<Prefix> {
        let mut prefixes = Vec::new();
        for &container in &self.open {
            let from = position.at;
            let blank = self.text[from..end].trim().is_empty();
            match container.shape {
                Shape::Quote if self.takes_quote_mark(position, end) => {}
                Shape::Item(_) if blank => {}
                Shape::Item(width) if self.indent(*position, end) >= width => {
                    self.take_columns(position, end, width);
                }
                _ => break,
            }
            prefixes.push(Prefix { container, range: from..position.at, opens: false });
        }
        prefixes
    }

    /// Opens the containers that begin on this line. Moves `position` past their prefixes.
    fn opened(&mut self, position: &mut Position, end: usize, in_paragraph: bool, prefixes: &mut Vec<Prefix>) {
        while self.open.len() < DEEPEST {
            let from = position.at;
            let shape = if self.takes_quote_mark(position, end) {
                Shape::Quote
            } else if let Some(width) = self.takes_list_marker(position, end, in_paragraph && self.open.is_empty()) {
                Shape::Item(width)
            } else {
                break;
            };
            let container = Container { id: self.next_id, shape };
            self.next_id += 1;
            self.open.push(container);
            prefixes.push(Prefix { container, range: from..position.at, opens: true });
        }
    }

    fn kind(&mut self, position: Position, end: usize, in_paragraph: bool, prefixes: &[Prefix]) -> LineKind {
        let rest = &self.text[position.at..end];
        let content = rest.trim();
        let opens = prefixes.iter().any(|prefix| prefix.opens);
        let continues = in_paragraph && !opens;
        if content.is_empty() {
            let marker = prefixes.iter().any(|prefix| prefix.opens && matches!(prefix.container.shape, Shape::Item(_)));
            return if marker { LineKind::Text } else { LineKind::Blank };
        }
        if self.indent(position, end) >= 4 {
            return if continues { LineKind::Text } else { LineKind::Code };
        }
        if let Some(fence) = self.fence_opened_by(content, prefixes) {
            self.found.fences.push(fence);
            let index = self.found.fences.len() - 1;
            self.fence = Some(index);
            return LineKind::Fence(index, FencePart::Open);
        }
        if is_heading(content) {
            return LineKind::Heading;
        }
        if continues && self.is_delimiter_row(content) {
            let head = self.found.lines.len() - 1;
            let table = self.found.tables.len();
            self.found.tables.push(head);
            self.found.lines[head].kind = LineKind::Table(table, TablePart::Head);
            return LineKind::Table(table, TablePart::Delimiter);
        }
        if continues && (content.bytes().all(|b| b == b'=') || content.bytes().all(|b| b == b'-')) {
            return LineKind::Underline;
        }
        if is_rule(content) {
            return LineKind::Rule;
        }
        match self.found.lines.last().map(|line| line.kind) {
            Some(LineKind::Table(table, TablePart::Delimiter | TablePart::Row))
                if !opens && prefixes.len() == self.open.len() =>
            {
                LineKind::Table(table, TablePart::Row)
            }
            _ => LineKind::Text,
        }
    }

    fn fence_opened_by(&self, content: &str, prefixes: &[Prefix]) -> Option<Fence> {
        let marker = content.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = content.trim_start_matches(marker);
        let length = content.len() - info.len();
        let containers: Vec<Container> = prefixes.iter().map(|prefix| prefix.container).collect();
        let around: usize = containers
            .iter()
            .map(|container| match container.shape {
                Shape::Quote => 2,
                Shape::Item(width) => width,
            })
            .sum();
        let opens =
            length >= 3 && !(marker == '`' && info.contains('`')) && content.len() + around <= self.longest_fence;
        opens.then(|| Fence { opening: content.to_owned(), marker, length, containers })
    }

    fn closes(&self, fence: usize, rest: &str) -> bool {
        let fence = &self.found.fences[fence];
        let content = rest.trim_start_matches(' ');
        let after = content.trim_start_matches(fence.marker);
        rest.len() - content.len() <= 3 && content.len() - after.len() >= fence.length && after.trim().is_empty()
    }

    /// Whether `content` is the delimiter row of a table whose heading is the line before it. That line must be the
    /// first of its paragraph.
    fn is_delimiter_row(&self, content: &str) -> bool {
        let lines = &self.found.lines;
        let [.., before, head] = lines.as_slice() else {
            return lines.len() == 1 && self.delimits(&lines[0], content);
        };
        let first = before.kind != LineKind::Text || head.opens_item;
        first && self.delimits(head, content)
    }

    fn delimits(&self, head: &MarkdownLine, content: &str) -> bool {
        let cells = |row: &str| row.trim().trim_start_matches('|').trim_end_matches('|').split('|').count();
        let head = &self.text[head.content..head.end];
        head.contains('|')
            && content.contains('-')
            && content.contains('|')
            && content.bytes().all(|b| matches!(b, b'-' | b':' | b'|' | b' ' | b'\t'))
            && cells(&head.replace("\\|", "")) == cells(content)
    }

    fn indent(&self, position: Position, end: usize) -> usize {
        let mut column = position.column;
        for byte in self.text[position.at..end].bytes() {
            match byte {
                b' ' => column += 1,
                b'\t' => column += 4 - column % 4,
                _ => break,
            }
        }
        column - position.column
    }

    fn take_columns(&self, position: &mut Position, end: usize, columns: usize) {
        let until = position.column + columns;
        while position.column < until && position.at < end {
            match self.text.as_bytes()[position.at] {
                b' ' => position.column += 1,
                b'\t' => position.column += 4 - position.column % 4,
                _ => break,
            }
            position.at += 1;
        }
    }

    fn takes_quote_mark(&self, position: &mut Position, end: usize) -> bool {
        let indent = self.indent(*position, end);
        let mut ahead = *position;
        self.take_columns(&mut ahead, end, indent);
        if indent > 3 || !self.text[ahead.at..end].starts_with('>') {
            return false;
        }
        ahead.at += 1;
        ahead.column += 1;
        self.take_columns(&mut ahead, end, 1);
        *position = ahead;
        true
    }

    fn takes_list_marker(&self, position: &mut Position, end: usize, interrupts: bool) -> Option<usize> {
        let from = position.column;
        let indent = self.indent(*position, end);
        let mut ahead = *position;
        self.take_columns(&mut ahead, end, indent);
        let rest = &self.text[ahead.at..end];
        let marker = list_marker(rest)?;
        let empty = rest[marker..].trim().is_empty();
        let may_interrupt = !empty && (marker == 1 || rest.starts_with("1.") || rest.starts_with("1)"));
        if indent > 3 || is_rule(rest.trim()) || (interrupts && !may_interrupt) {
            return None;
        }
        ahead.at += marker;
        ahead.column += marker;
        let padding = self.indent(ahead, end);
        self.take_columns(&mut ahead, end, if empty || padding > 4 { 1 } else { padding });
        *position = ahead;
        // An empty item has no text after its marker; its lines are indented as if one space followed it.
        Some((ahead.column - from).max(indent + marker + 1))
    }
}

/// The length in bytes of the list marker that `rest` starts with.
fn list_marker(rest: &str) -> Option<usize> {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let marker = match rest.as_bytes().get(digits)? {
        b'-' | b'+' | b'*' if digits == 0 => 1,
        b'.' | b')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    rest[marker..].bytes().next().is_none_or(|b| matches!(b, b' ' | b'\t')).then_some(marker)
}

fn is_heading(content: &str) -> bool {
    let after = content.trim_start_matches('#');
    (1..=6).contains(&(content.len() - after.len())) && (after.is_empty() || after.starts_with([' ', '\t']))
}

fn is_rule(content: &str) -> bool {
    let mut marks = content.bytes().filter(|b| !matches!(b, b' ' | b'\t'));
    let Some(mark) = marks.next().filter(|b| matches!(b, b'-' | b'*' | b'_')) else { return false };
    let mut more = 0;
    marks.all(|b| {
        more += 1;
        b == mark
    }) && more >= 2
}

fn is_fence(content: &str) -> bool {
    content.starts_with("```") || content.starts_with("~~~")
}

/// Whether `rest` begins a new block, so that it cannot continue a paragraph.
fn starts_block(rest: &str) -> bool {
    let content = rest.trim();
    content.starts_with('>')
        || list_marker(content).is_some()
        || is_heading(content)
        || is_rule(content)
        || is_fence(content)
}

/// The offset at which a backslash turns block syntax at the start of a part into text; `None` if there is no such
/// syntax.
pub(super) fn escape_at(rest: &str) -> Option<usize> {
    // Reading all of a huge line once for each of its parts would take quadratic time.
    let near = &rest[..rest.floor_char_boundary(rest.len().min(256))];
    let content = near.split('\n').next().unwrap_or_default().trim();
    if let Some(marker) = list_marker(content) {
        return Some(marker - 1);
    }
    let definition = content.starts_with('[')
        && content.bytes().position(|b| b == b']').is_some_and(|end| content[end + 1..].starts_with(':'));
    (definition || starts_block(content)).then_some(0)
}
