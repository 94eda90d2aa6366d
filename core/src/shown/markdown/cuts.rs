//! Finds the places where a text may be cut without splitting a word, and ranks them.

use super::{
    inline::SpanShape,
    lines::{FencePart, LineKind, MarkdownLine, Shape, TablePart, escape_at},
    part::Source,
};

/// A place where a part may end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// The end of the part. White space after it belongs to no part.
    pub(super) at: usize,
    pub(super) rank: Rank,
}

/// What a cut separates; a greater rank is a better place to cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Words inside one emphasis or heading, or a heading and the text below it.
    Bound,
    Word,
    Sentence,
    Line,
    Item,
    Block,
    /// A heading and the text above it.
    Section,
}

/// All cuts in order; the last is at the end of the last line that is not blank.
pub(super) fn find(source: &Source<'_>) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let mut lines = source.lines.iter().filter(|line| line.kind != LineKind::Blank).peekable();
    while let Some(line) = lines.next() {
        if matches!(line.kind, LineKind::Text | LineKind::Heading) {
            inside(source, line, &mut cuts);
        }
        let rank = match lines.peek() {
            None => Some(Rank::Section),
            Some(next) => between(source, line, next),
        };
        if let Some(rank) = rank {
            cuts.push(Cut { at: line.end, rank });
        }
    }
    cuts
}

/// The rank of a cut between a line and the next one that is not blank; `None` where they must stay together.
fn between(source: &Source<'_>, line: &MarkdownLine, next: &MarkdownLine) -> Option<Rank> {
    let adjacent = line.end + 1 == next.start;
    match (line.kind, next.kind) {
        (LineKind::Fence(_, FencePart::Open), _)
        | (_, LineKind::Fence(_, FencePart::Close) | LineKind::Underline | LineKind::Table(_, TablePart::Delimiter))
        | (LineKind::Table(_, TablePart::Delimiter), LineKind::Table(_, TablePart::Row)) => None,
        (LineKind::Fence(_, FencePart::Body), LineKind::Fence(_, FencePart::Body))
        | (LineKind::Table(_, TablePart::Row), LineKind::Table(_, TablePart::Row))
        | (LineKind::Code, LineKind::Code) => Some(Rank::Line),
        (LineKind::Heading | LineKind::Underline, _) => Some(Rank::Bound),
        (_, LineKind::Heading) => Some(Rank::Section),
        (LineKind::Text, LineKind::Text)
            if adjacent && !next.opens_item && line.prefixes.len() >= next.prefixes.len() =>
        {
            let start = next.content + source.text[next.content..next.end].len()
                - source.text[next.content..next.end].trim_start().len();
            if escape_at(&source.text[start..next.end]).is_some() {
                return None;
            }
            bound(source, line.end, Rank::Line)
        }
        // A line that introduces a list or a listing stays with it if that costs little room.
        (LineKind::Text, _) if source.text[line.content..line.end].trim_end().ends_with(':') => Some(Rank::Line),
        _ if in_list(next) && (in_list(line) || next.opens_item) => Some(Rank::Item),
        _ => Some(Rank::Block),
    }
}

fn in_list(line: &MarkdownLine) -> bool {
    line.prefixes.iter().any(|prefix| matches!(prefix.container.shape, Shape::Item(_)))
}

/// Lowers `rank` if the cut is inside emphasis. `None` inside a link or inline code.
fn bound(source: &Source<'_>, at: usize, rank: Rank) -> Option<Rank> {
    let mut rank = rank;
    for span in source.spans.around(at) {
        match span.shape {
            SpanShape::Emphasis(_) => rank = Rank::Bound,
            SpanShape::Code(_) | SpanShape::Link => return None,
        }
    }
    Some(rank)
}

/// Adds the cuts between the words and sentences of one line.
fn inside(source: &Source<'_>, line: &MarkdownLine, cuts: &mut Vec<Cut>) {
    let text = &source.text[line.content..line.end];
    let indent = text.len() - text.trim_start().len();
    let mut chars = text.char_indices().skip_while(|&(at, _)| at < indent).peekable();
    let mut ends_sentence = false;
    while let Some((at, c)) = chars.next() {
        if breaks(c) {
            while chars.peek().is_some_and(|&(_, c)| breaks(c)) {
                chars.next();
            }
            let Some(&(next, _)) = chars.peek() else { break };
            let rank = match line.kind {
                LineKind::Heading => Rank::Bound,
                _ if ends_sentence => Rank::Sentence,
                _ => Rank::Word,
            };
            push(source, line, at, next, rank, cuts);
            ends_sentence = false;
        } else if matches!(c, '。' | '！' | '？') {
            if let Some(&(next, after)) = chars.peek()
                && !breaks(after)
                && !closes_quote(after)
                && !matches!(after, '。' | '！' | '？')
            {
                push(source, line, next, next, Rank::Sentence, cuts);
            }
            ends_sentence = true;
        } else if matches!(c, '.' | '!' | '?' | '…') {
            ends_sentence = true;
        } else if !closes_quote(c) {
            ends_sentence = false;
        }
    }
}

fn push(source: &Source<'_>, line: &MarkdownLine, at: usize, next: usize, rank: Rank, cuts: &mut Vec<Cut>) {
    let (at, next) = (line.content + at, line.content + next);
    if escape_at(&source.text[next..line.end]).is_some() {
        return;
    }
    if let Some(rank) = bound(source, at, rank) {
        cuts.push(Cut { at, rank });
    }
}

fn breaks(c: char) -> bool {
    c.is_whitespace() && !matches!(c, '\u{a0}' | '\u{2007}' | '\u{202f}')
}

fn closes_quote(c: char) -> bool {
    matches!(c, ')' | ']' | '"' | '\'' | '”' | '’' | '»' | '」' | '』' | '）' | '*' | '_')
}
