//! Writes a range of a source as a part that renders alone.

use super::{
    inline::{Span, SpanShape, Spans},
    lines::{Fence, FencePart, Layout, LineKind, MarkdownLine, Shape, TablePart, escape_at, scan},
};

/// A text and its scan.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) lines: Vec<MarkdownLine>,
    pub(super) spans: Spans,
    fences: Vec<Fence>,
    tables: Vec<usize>,
    max: usize,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str, max: usize) -> Self {
        let Layout { lines, fences, tables } = scan(text, max / 3);
        let mut spans = Spans::default();
        let in_paragraph =
            |a: &MarkdownLine, b: &MarkdownLine| a.kind == LineKind::Text && b.kind == LineKind::Text && !b.opens_item;
        for paragraph in lines.chunk_by(in_paragraph) {
            let (first, last) = (&paragraph[0], &paragraph[paragraph.len() - 1]);
            if matches!(first.kind, LineKind::Text | LineKind::Heading) {
                spans.add(text, first.content..last.end);
            }
        }
        Self { text, lines, spans, fences, tables, max }
    }

    /// The index of the line that contains `at`. A line break belongs to the line that it ends.
    pub(super) fn line_at(&self, at: usize) -> usize {
        self.lines.partition_point(|line| line.start <= at).saturating_sub(1)
    }

    /// Where the part after one that ends at `end` starts, after white space and closing fences; `None` at the end.
    pub(super) fn start_after(&self, end: usize) -> Option<usize> {
        let mut index = self.line_at(end);
        let mut at = end;
        if at == self.lines.get(index)?.end {
            index += 1;
            at = self.lines.get(index)?.start;
        }
        loop {
            let line = self.lines.get(index)?;
            let begun = at > line.content;
            let seen = match line.kind {
                LineKind::Blank | LineKind::Fence(_, FencePart::Close) => None,
                LineKind::Fence(..) => Some(at),
                _ if begun => self.next_word(at, line),
                LineKind::Text if self.continues_paragraph(index) => self.next_word(line.content, line),
                _ => Some(line.start),
            };
            if seen.is_some() {
                return seen;
            }
            index += 1;
            at = self.lines.get(index)?.start;
        }
    }

    fn next_word(&self, at: usize, line: &MarkdownLine) -> Option<usize> {
        let mut at = at;
        // The previous part has already closed this span: skip its closing delimiter.
        while let Some(span) = self.spans.around(at).next().filter(|span| at >= span.range.end - delimiter_length(span))
        {
            at = span.range.end;
        }
        let rest = self.text.get(at..line.end)?;
        let word = rest.trim_start();
        (!word.is_empty()).then_some(line.end - word.len())
    }

    fn continues_paragraph(&self, index: usize) -> bool {
        let before = index.checked_sub(1).map(|before| self.lines[before].kind);
        before == Some(LineKind::Text) && !self.lines[index].opens_item
    }

    /// The part from `start` to `end`, completed so that it renders alone.
    pub(super) fn part(&self, start: usize, end: usize) -> String {
        let first = self.line_at(start);
        let line = &self.lines[first];
        let begun = start > line.content;
        let left: Vec<usize> = line
            .prefixes
            .iter()
            .filter(|prefix| matches!(prefix.container.shape, Shape::Item(_)) && (begun || !prefix.opens))
            .map(|prefix| prefix.container.id)
            .collect();
        let mut part = String::with_capacity(end - start + 16);
        match line.kind {
            LineKind::Fence(fence, FencePart::Body | FencePart::Close) => {
                let fence = &self.fences[fence];
                self.quote_marks(line, &mut part);
                part.push_str(&fence.opening);
                part.push('\n');
            }
            LineKind::Table(table, TablePart::Row) if !begun => self.table_heading(table, first, &left, &mut part),
            _ => {}
        }
        let mut last = first;
        for (index, line) in
            self.lines[first..].iter().enumerate().take_while(|(_, line)| line.start < end || line.start == start)
        {
            if index > 0 {
                part.push('\n');
            }
            last = first + index;
            if index == 0 && begun {
                self.quote_marks(line, &mut part);
                let rest = self.reopen(start, line, &mut part);
                part.push_str(&self.text[rest..line.end.min(end).max(rest)]);
            } else {
                self.line(line, end, &left, &mut part);
            }
        }
        self.close(end, &self.lines[last], &left, &mut part);
        part
    }

    fn line(&self, line: &MarkdownLine, end: usize, left: &[usize], part: &mut String) {
        for prefix in line.prefixes.iter().filter(|prefix| !left.contains(&prefix.container.id)) {
            part.push_str(&self.text[prefix.range.clone()]);
        }
        part.push_str(&self.text[line.content..line.end.min(end.max(line.content))]);
    }

    fn quote_marks(&self, line: &MarkdownLine, part: &mut String) {
        let quotes = line.prefixes.iter().filter(|prefix| matches!(prefix.container.shape, Shape::Quote)).count();
        if quotes * 2 <= self.max / 3 {
            part.push_str(&"> ".repeat(quotes));
        }
    }

    fn table_heading(&self, table: usize, row: usize, left: &[usize], part: &mut String) {
        let head = self.tables[table];
        let mut heading = String::new();
        for line in &self.lines[head..head + 2] {
            // A list marker before the heading is not repeated.
            let marker = |id: usize| line.prefixes.iter().any(|prefix| prefix.opens && prefix.container.id == id);
            let left: Vec<usize> = left.iter().copied().filter(|&id| !marker(id)).collect();
            let from = if line.opens_item { line.content } else { line.start };
            if from == line.start {
                self.line(line, line.end, &left, &mut heading);
            } else {
                self.quote_marks(line, &mut heading);
                heading.push_str(&self.text[line.content..line.end]);
            }
            heading.push('\n');
        }
        let row = &self.lines[row];
        if heading.len() <= self.max / 3 && heading.len() + (row.end - row.start) <= self.max {
            part.push_str(&heading);
        }
    }

    /// Writes what a line needs that goes on at `start`. Returns where its text goes on after that.
    fn reopen(&self, start: usize, line: &MarkdownLine, part: &mut String) -> usize {
        if matches!(line.kind, LineKind::Fence(..)) {
            return start;
        }
        let spans = self.open_spans(start);
        for span in spans.iter().rev() {
            part.push_str(&self.text[span.range.start..span.range.start + delimiter_length(span)]);
        }
        let escape = escape_at(&self.text[start..line.end]).filter(|_| spans.is_empty());
        escape.map_or(start, |escape| {
            part.push_str(&self.text[start..start + escape]);
            part.push('\\');
            start + escape
        })
    }

    fn close(&self, end: usize, line: &MarkdownLine, left: &[usize], part: &mut String) {
        if let LineKind::Fence(fence, FencePart::Open | FencePart::Body) = line.kind {
            let fence = &self.fences[fence];
            part.push('\n');
            for container in &fence.containers {
                match container.shape {
                    Shape::Quote => part.push_str("> "),
                    Shape::Item(width) if !left.contains(&container.id) => part.push_str(&" ".repeat(width)),
                    Shape::Item(_) => {}
                }
            }
            part.push_str(&fence.closing());
            return;
        }
        part.truncate(part.trim_end().len());
        for span in self.open_spans(end) {
            part.push_str(&self.text[span.range.end - delimiter_length(span)..span.range.end]);
        }
    }

    /// The spans with delimiters that a cut at `at` splits, the innermost first. Empty if closing them would take too
    /// much room.
    fn open_spans(&self, at: usize) -> Vec<&Span> {
        let spans: Vec<&Span> = self
            .spans
            .around(at)
            .filter(|span| delimiter_length(span) > 0 && at >= span.range.start + delimiter_length(span))
            .collect();
        let room: usize = spans.iter().map(|span| delimiter_length(span)).sum();
        if room <= self.max / 8 { spans } else { Vec::new() }
    }
}

fn delimiter_length(span: &Span) -> usize {
    match span.shape {
        SpanShape::Emphasis(length) | SpanShape::Code(length) => length,
        SpanShape::Link => 0,
    }
}
