//! The spans of a paragraph: emphasis, inline code and links.

use std::{collections::HashMap, ops::Range};

/// The most open emphasis delimiters that are tracked; beyond that the oldest one is read as text.
const DEEPEST: usize = 8;

/// The longest destination and title of a link, in bytes; longer ones are read as text.
const LONGEST_DESTINATION: usize = 4096;

/// The deepest nesting of brackets in a destination; deeper ones are read as text, as in other parsers.
const DEEPEST_BRACKETS: usize = 32;

/// A range of a paragraph, its delimiters included.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) range: Range<usize>,
    pub(super) shape: SpanShape,
    /// The index of the innermost span around this one.
    pub(super) parent: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanShape {
    /// The length of each of its two delimiters, in bytes.
    Emphasis(usize),
    /// The length of each of its two delimiters, in bytes.
    Code(usize),
    Link,
}

/// The spans of a whole text, in the order of their starts.
#[derive(Debug, Default)]
pub(super) struct Spans(Vec<Span>);

impl Spans {
    /// Adds the spans of one paragraph. Paragraphs are added in the order of the text.
    pub(super) fn add(&mut self, text: &str, range: Range<usize>) {
        let mut found = find(text, range);
        found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut around: Vec<usize> = Vec::new();
        for (range, shape) in found {
            while around.last().is_some_and(|&index| self.0[index].range.end <= range.start) {
                around.pop();
            }
            let parent = around.last().copied();
            // Of two spans that overlap without nesting, only the first is markup.
            if parent.is_some_and(|index| self.0[index].range.end < range.end) {
                continue;
            }
            around.push(self.0.len());
            self.0.push(Span { range, shape, parent });
        }
    }

    /// The spans that a cut at `at` splits, the innermost first.
    pub(super) fn around(&self, at: usize) -> impl Iterator<Item = &Span> {
        let last = self.0.partition_point(|span| span.range.start < at).checked_sub(1);
        let chain = std::iter::successors(last, |&index| self.0[index].parent);
        chain.map(|index| &self.0[index]).filter(move |span| span.range.end > at)
    }
}

fn find(text: &str, range: Range<usize>) -> Vec<(Range<usize>, SpanShape)> {
    let backticks = runs_of_backticks(text, range.clone());
    let mut found = Vec::new();
    let mut brackets: Vec<usize> = Vec::new();
    let mut delimiters: Vec<Range<usize>> = Vec::new();
    let bytes = text.as_bytes();
    let mut at = range.start;
    while at < range.end {
        match bytes[at] {
            b'\\' => at += 2,
            b'`' => {
                let length = run(bytes, at, range.end);
                let closers = backticks.get(&length).map_or(&[][..], Vec::as_slice);
                let closer = closers.get(closers.partition_point(|&closer| closer <= at));
                if let Some(&closer) = closer {
                    found.push((at..closer + length, SpanShape::Code(length)));
                    at = closer + length;
                } else {
                    at += length;
                }
            }
            b'[' => {
                brackets.push(if at > range.start && bytes[at - 1] == b'!' { at - 1 } else { at });
                at += 1;
            }
            b']' => {
                let opener = brackets.pop();
                at += 1;
                if let Some((opener, end)) = opener.zip(destination_end(bytes, at, range.end)) {
                    found.push((opener..end, SpanShape::Link));
                    at = end;
                }
            }
            b'*' | b'_' | b'~' => {
                let length = run(bytes, at, range.end);
                delimiter(text, at..at + length, &mut delimiters, &mut found);
                at += length;
            }
            _ => at += 1,
        }
    }
    found
}

fn runs_of_backticks(text: &str, range: Range<usize>) -> HashMap<usize, Vec<usize>> {
    let bytes = text.as_bytes();
    let mut runs: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut at = range.start;
    while at < range.end {
        if bytes[at] == b'`' {
            let length = run(bytes, at, range.end);
            runs.entry(length).or_default().push(at);
            at += length;
        } else {
            at += 1;
        }
    }
    runs
}

fn run(bytes: &[u8], at: usize, end: usize) -> usize {
    bytes[at..end].iter().take_while(|&&byte| byte == bytes[at]).count()
}

/// The end of the `(destination)` or `[reference]` that starts at `at`.
fn destination_end(bytes: &[u8], at: usize, end: usize) -> Option<usize> {
    let (open, close) = match bytes.get(at).filter(|_| at < end)? {
        b'(' => (b'(', b')'),
        b'[' => (b'[', b']'),
        _ => return None,
    };
    let mut depth = 0_usize;
    let mut escaped = false;
    for (offset, &byte) in bytes[at..end].iter().take(LONGEST_DESTINATION).enumerate() {
        if escaped {
            escaped = false;
        } else if byte == b'\\' {
            escaped = true;
        } else if byte == open {
            depth += 1;
        } else if byte == close {
            depth -= 1;
            if depth == 0 {
                return Some(at + offset + 1);
            }
        }
        if byte == b'\n' || depth > DEEPEST_BRACKETS {
            return None;
        }
    }
    None
}

fn delimiter(text: &str, run: Range<usize>, open: &mut Vec<Range<usize>>, found: &mut Vec<(Range<usize>, SpanShape)>) {
    let before = text[..run.start].chars().next_back();
    let after = text[run.end..].chars().next();
    let solid = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
    let in_word = text.as_bytes()[run.start] == b'_'
        && before.is_some_and(char::is_alphanumeric)
        && after.is_some_and(char::is_alphanumeric);
    if in_word || run.len() > 3 {
        return;
    }
    let opener = open.iter().rposition(|opener| text[opener.clone()] == text[run.clone()] && opener.end < run.start);
    if let Some(index) = opener.filter(|_| solid(before)) {
        found.push((open[index].start..run.end, SpanShape::Emphasis(run.len())));
        open.truncate(index);
    } else if solid(after) {
        if open.len() == DEEPEST {
            open.remove(0);
        }
        open.push(run);
    }
}
