//! Splits Markdown source into parts that fit a platform's limit.
//!
//! The source is scanned once for its lines (containers, fences, tables) and its inline spans. A part is a
//! range of the source, completed so that it renders alone: fences are closed and reopened, table headings are
//! repeated, and the continuation of a list item starts at the margin. This is not a Markdown parser: where the
//! scan and a renderer disagree, no text is lost and every part still fits.

mod cuts;
pub(crate) mod embedded;
mod inline;
mod lines;
mod part;
mod rows;
mod shown;
mod spoken;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use self::{
    cuts::{Cut, Rank},
    lines::{FencePart, LineKind},
    part::Source,
};
pub use embedded::EmbeddedFiles;
pub use rows::row_cells;
pub use shown::{read_markdown, read_markdown_with_notes, shows_anything};
pub use spoken::spoken;
use unicode_segmentation::GraphemeCursor;

/// The ranks in order of preference, each with the least share of the longest possible part that a part must fill to
/// end at a cut of this rank, in sixths.
const PREFERENCES: [(Rank, usize); 6] =
    [(Rank::Section, 2), (Rank::Block, 2), (Rank::Item, 3), (Rank::Line, 3), (Rank::Sentence, 3), (Rank::Word, 3)];

/// Splits Markdown source into parts, in order, each with `measure(part) <= max`.
///
/// `measure` returns the length of a part as the platform counts it, such as bytes or the UTF-16 units of the
/// rendered text. It need not grow with every character, but a part twice as long should measure about twice as much.
/// `max` is in the same unit and at least 32. A single character that measures more still becomes a part.
///
/// A part ends before a heading or between blocks if possible, else between list items, lines, sentences or
/// words. It ends inside a word only if the word fits in no part; never inside a character, and inside a combining
/// sequence only if that alone is too long. A code fence that is cut is closed, and reopened with its info string in
/// the next part. A table is cut between rows, and its heading is repeated where there is room. Emphasis and inline
/// code that are cut are closed and reopened. A link is cut only if it fits in no part. Otherwise the source is
/// unchanged, except for white space at a cut.
///
/// Text that fits, and text of white space only, is returned unchanged as one part.
pub fn split_markdown(text: &str, max: usize, measure: impl Fn(&str) -> usize) -> Vec<String> {
    if text.trim().is_empty() || measure(text) <= max {
        return vec![text.to_owned()];
    }
    let text = if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    };
    let source = Source::new(text.trim_end(), max);
    let splitter = Splitter { cuts: cuts::find(&source), source, max, measure };
    let mut parts = Vec::new();
    let mut next = splitter.source.start_after(0);
    while let Some(start) = next {
        let end = splitter.end_of_part(start);
        parts.push(splitter.source.part(start, end));
        next = splitter.source.start_after(end);
    }
    parts
}

struct Splitter<'a, M> {
    source: Source<'a>,
    cuts: Vec<Cut>,
    max: usize,
    measure: M,
}

impl<M: Fn(&str) -> usize> Splitter<'_, M> {
    fn fits(&self, start: usize, end: usize) -> bool {
        (self.measure)(&self.source.part(start, end)) <= self.max
    }

    fn end_of_part(&self, start: usize) -> usize {
        let first = self.cuts.partition_point(|cut| cut.at <= start);
        let cuts = &self.cuts[first..];
        let limit = cuts.first().map_or(self.source.text.len(), |cut| cut.at);
        self.soft_end(start, cuts).unwrap_or_else(|| self.hard_end(start, limit))
    }

    /// The best cut outside a word, or `None` if not even the first one fits.
    fn soft_end(&self, start: usize, cuts: &[Cut]) -> Option<usize> {
        let first = cuts.first()?;
        // Measuring a huge word once for each of its parts would take quadratic time.
        let far = start.saturating_add(self.max.saturating_mul(16)).saturating_add(1024);
        if first.at > far && !self.fits(start, self.source.text.floor_char_boundary(far)) {
            return None;
        }
        let furthest = self.furthest(start, cuts)?;
        let reached = &cuts[..=furthest];
        let end = cuts[furthest].at;
        if furthest + 1 == cuts.len() {
            return Some(end);
        }
        let preferred = PREFERENCES.iter().filter_map(|&(rank, sixths)| {
            let least = start + (end - start) * sixths / 6;
            let cut = reached.iter().rev().take_while(|cut| cut.at >= least).find(|cut| cut.rank >= rank)?;
            Some(cut.at)
        });
        preferred.into_iter().find(|&at| at == end || self.fits(start, at)).or(Some(end))
    }

    /// The index of the last cut that fits, found by measuring a few candidates.
    fn furthest(&self, start: usize, cuts: &[Cut]) -> Option<usize> {
        let mut reach = self.max;
        let mut fitting = None;
        let mut failing = cuts.len();
        loop {
            let within = cuts.partition_point(|cut| cut.at <= start.saturating_add(reach));
            let least = fitting.map_or(0, |index| index + 1);
            let probe = within.saturating_sub(1).clamp(least, cuts.len() - 1);
            if !self.fits(start, cuts[probe].at) {
                failing = probe;
                break;
            }
            fitting = Some(probe);
            if probe + 1 == cuts.len() {
                break;
            }
            reach = reach.saturating_mul(2);
        }
        loop {
            let least = fitting.map_or(0, |index| index + 1);
            if least >= failing {
                return fitting;
            }
            let probe = usize::midpoint(least, failing);
            if self.fits(start, cuts[probe].at) {
                fitting = Some(probe);
            } else {
                failing = probe;
            }
        }
    }

    /// The end of a part that must cut a word; at most `limit`.
    fn hard_end(&self, start: usize, limit: usize) -> usize {
        let text = self.source.text;
        let floor = self.hard_floor(start).min(limit);
        let least = text.ceil_char_boundary(floor + 1).min(limit);
        let mut fitting = least;
        let mut failing = limit;
        let mut reach = self.max;
        loop {
            let probe = text.floor_char_boundary(start.saturating_add(reach).min(limit)).max(least);
            if probe >= failing || !self.fits(start, probe) {
                failing = probe;
                break;
            }
            fitting = probe;
            reach = reach.saturating_mul(2);
        }
        while fitting < failing {
            let probe = text.floor_char_boundary(usize::midpoint(fitting, failing));
            let probe = if probe <= fitting { text.ceil_char_boundary(fitting + 1) } else { probe };
            if probe >= failing {
                break;
            }
            if self.fits(start, probe) {
                fitting = probe;
            } else {
                failing = probe;
            }
        }
        let gentle = [self.after_space(floor, fitting), self.before_grapheme(floor, fitting)];
        gentle.into_iter().flatten().find(|&at| at == fitting || self.fits(start, at)).unwrap_or(fitting)
    }

    /// The earliest end of a hard cut: the opening line of a fence stays whole.
    fn hard_floor(&self, start: usize) -> usize {
        let index = self.source.line_at(start);
        let line = &self.source.lines[index];
        match line.kind {
            LineKind::Fence(_, FencePart::Open) => {
                self.source.lines.get(index + 1).map_or(line.end, |body| body.content)
            }
            _ => start,
        }
    }

    fn after_space(&self, floor: usize, end: usize) -> Option<usize> {
        let least = usize::midpoint(floor, end);
        let text = self.source.text;
        let (from, space) =
            text[floor..end].char_indices().rev().map(|(at, c)| (floor + at, c)).find(|&(_, c)| c.is_whitespace())?;
        let at = if space == '\n' { from } else { from + space.len_utf8() };
        (at > least && at < end).then_some(at)
    }

    /// The last grapheme boundary that does not split a backslash escape, an entity or a run of markers.
    fn before_grapheme(&self, floor: usize, end: usize) -> Option<usize> {
        const TRIES: usize = 12;
        let text = self.source.text;
        let chunk = &text[floor..text.ceil_char_boundary((end + 64).min(text.len()))];
        let mut cursor = GraphemeCursor::new(end - floor, chunk.len(), true);
        let mut at = if cursor.is_boundary(chunk, 0).unwrap_or(true) {
            end - floor
        } else {
            cursor.prev_boundary(chunk, 0).ok().flatten()?
        };
        let whole = at;
        for _ in 0..TRIES {
            if at == 0 {
                break;
            }
            if !tears(&chunk[..at], &chunk[at..]) {
                return Some(floor + at);
            }
            at = cursor_before(chunk, at)?;
        }
        (whole > 0).then_some(floor + whole)
    }
}

fn cursor_before(chunk: &str, at: usize) -> Option<usize> {
    GraphemeCursor::new(at, chunk.len(), true).prev_boundary(chunk, 0).ok().flatten()
}

fn tears(before: &str, after: &str) -> bool {
    let last = before.chars().next_back();
    let entity = before.char_indices().rev().take(8).find(|&(_, c)| !c.is_ascii_alphanumeric() && c != '#');
    last == Some('\\')
        || entity.is_some_and(|(_, c)| c == '&')
        || last.is_some_and(|c| matches!(c, '*' | '_' | '~' | '`' | '|') && after.starts_with(c))
}
