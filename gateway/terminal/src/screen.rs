//! The rows above the prompt, and how the last block among them is rewritten in place.
//!
//! A terminal only lets us rewrite what it still shows, and only if we know how many rows that takes. So every row is broken here, and
//! only the last block is rewritten, as long as nothing was printed or typed below it.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

use super::block::{Block, Speaker};

/// What the body of a block is indented by.
const INDENT: &str = "  ";

/// The size of the terminal, and of the typed text at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Room {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    /// How many rows the prompt takes, with the typed text.
    pub(crate) prompt_rows: usize,
}

/// What is known of the rows above the prompt.
#[derive(Debug)]
pub(crate) struct Screen {
    last: Option<LastBlock>,
    has_colors: bool,
}

/// The last block, while nothing stands below it.
#[derive(Debug)]
struct LastBlock {
    turn: String,
    rows: Vec<String>,
    is_passing: bool,
    columns: usize,
}

impl Screen {
    pub(crate) const fn new(has_colors: bool) -> Self {
        Self { last: None, has_colors }
    }

    /// Whether the last block is of this turn, and can be rewritten.
    pub(crate) fn ends_with(&self, turn: &str) -> bool {
        self.last.as_ref().is_some_and(|last| last.turn == turn)
    }

    /// Something else stands below the last block now, such as a typed line.
    pub(crate) fn break_off(&mut self) {
        self.last = None;
    }

    /// What to print so that this block of `turn` is the last one: in place of what the turn showed if that is still the last, or
    /// else below everything. `None` removes it.
    pub(crate) fn show(&mut self, turn: &str, block: Option<&Block>, room: Room) -> String {
        let is_passing = block.is_some_and(|block| block.is_passing);
        let rows = block.map(|block| self.rows(block, room.columns)).unwrap_or_default();
        let old = self.last.take_if(|last| last.turn == turn && last.columns == room.columns);
        let mut out = String::new();
        let mut kept = 0;
        if let Some(old) = old {
            kept = old.rows.iter().zip(&rows).take_while(|(old, new)| old == new).count();
            let up = old.rows.len() - kept;
            if up > room.rows.saturating_sub(room.prompt_rows) {
                // Its beginning has left the screen.
                kept = 0;
                if is_passing {
                    self.last = Some(old);
                    return out;
                }
            } else if up > 0 {
                out = erased(up);
            }
        } else {
            out = self.without_passing(room);
        }
        let is_removed = rows.len() == kept;
        for row in &rows[kept..] {
            let _ = writeln!(out, "{row}");
        }
        if is_removed && !out.is_empty() {
            out.push_str(BACK);
        }
        self.last =
            (!rows.is_empty()).then(|| LastBlock { turn: turn.to_owned(), rows, is_passing, columns: room.columns });
        out
    }

    /// What to print for lines that are never rewritten.
    pub(crate) fn print(&mut self, lines: &[String], room: Room) -> String {
        let mut out = self.without_passing(room);
        for line in lines.iter().flat_map(|line| wrapped(line, width(room.columns))) {
            let _ = writeln!(out, "{}", self.styled(&line, DIM));
        }
        self.last = None;
        out
    }

    /// What removes the last block, if it only holds a place.
    fn without_passing(&mut self, room: Room) -> String {
        let last = self.last.take();
        let passing = last.filter(|last| last.is_passing && last.columns == room.columns);
        let rows = passing.map_or(0, |last| last.rows.len());
        if rows == 0 || rows > room.rows.saturating_sub(room.prompt_rows) { String::new() } else { erased(rows) }
    }

    /// The rows of a block, with an empty one at the end.
    fn rows(&self, block: &Block, columns: usize) -> Vec<String> {
        let width = width(columns);
        let style = match block.speaker {
            Speaker::Agent => BOLD,
            Speaker::Gateway => DIM,
        };
        let mut rows: Vec<_> = wrapped(&block.head, width).iter().map(|row| self.styled(row, style)).collect();
        let body = if block.body.is_empty() { Vec::new() } else { wrapped(&block.body, width - INDENT.len()) };
        let foot = block.foot.iter().flat_map(|line| wrapped(line, width - INDENT.len()));
        rows.extend(body.into_iter().chain(foot).map(|row| format!("{INDENT}{row}").trim_end().to_owned()));
        rows.push(String::new());
        rows
    }

    fn styled(&self, row: &str, style: &str) -> String {
        if self.has_colors && !row.is_empty() { format!("{style}{row}{PLAIN}") } else { row.to_owned() }
    }
}

const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// Ends an output without a new row: its caller adds a line break that does not count.
const BACK: &str = "\u{1b}[1A\n";

/// Moves up so many rows, and clears from there on.
fn erased(rows: usize) -> String {
    format!("\u{1b}[{rows}A\r\u{1b}[J")
}

/// The width of our rows: one less than the terminal's, so that none ends at its edge.
fn width(columns: usize) -> usize {
    columns.saturating_sub(1).max(INDENT.len() + 8)
}

/// How many rows a text takes in a terminal that breaks it anywhere.
pub(crate) fn row_count(text: &str, columns: usize) -> usize {
    text.split('\n').map(|line| wide(line) / columns.max(1) + 1).sum()
}

fn wide(text: &str) -> usize {
    text.chars().map(|char| char.width().unwrap_or(0)).sum()
}

/// Breaks a text into rows, between words where that is possible.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| wrapped_line(&line.replace('\t', "    "), width)).collect()
}

fn wrapped_line(line: &str, width: usize) -> Vec<String> {
    let (mut rows, mut row, mut taken) = (Vec::new(), String::new(), 0);
    for char in line.chars() {
        let wide = char.width().unwrap_or(0);
        if taken + wide > width {
            // The word that does not fit goes to the next row, unless it fills this one.
            let break_at = row.rfind(' ').map_or(row.len(), |space| space + 1);
            let is_indent = row[..break_at].trim().is_empty();
            let rest = if char == ' ' || is_indent { String::new() } else { row.split_off(break_at) };
            rows.push(row.trim_end().to_owned());
            row = rest;
            taken = self::wide(&row);
            if char == ' ' {
                continue;
            }
        }
        row.push(char);
        taken += wide;
    }
    rows.push(row);
    rows
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ROOM: Room = Room { columns: 21, rows: 10, prompt_rows: 1 };

    fn block(body: &str) -> Block {
        Block { head: "main".into(), body: body.into(), speaker: Speaker::Agent, ..Block::default() }
    }

    fn draft(body: &str) -> Block {
        Block { foot: vec!["…".into()], is_passing: true, ..block(body) }
    }

    #[rstest]
    #[case("one two three", 8, &["one two", "three"])]
    #[case("abcdefghij", 4, &["abcd", "efgh", "ij"])]
    #[case("ab abcdefgh", 6, &["ab", "abcdef", "gh"])]
    #[case("  indented words", 10, &["  indented", "words"])]
    #[case("one\n\ntwo", 8, &["one", "", "two"])]
    #[case("漢字漢字漢", 4, &["漢字", "漢字", "漢"])]
    #[case("a\tb", 8, &["a    b"])]
    #[case("", 8, &[""])]
    fn a_text_is_broken_between_words(#[case] text: &str, #[case] width: usize, #[case] rows: &[&str]) {
        assert_eq!(wrapped(text, width), rows);
    }

    #[test]
    fn a_growing_draft_rewrites_only_what_changed() {
        let mut screen = Screen::new(false);

        assert_eq!(screen.show("t", Some(&draft("one")), ROOM), "main\n  one\n  …\n\n");
        assert_eq!(screen.show("t", Some(&draft("one\ntwo")), ROOM), "\u{1b}[2A\r\u{1b}[J  two\n  …\n\n");
        assert_eq!(screen.show("t", Some(&block("one\ntwo")), ROOM), "\u{1b}[2A\r\u{1b}[J\n");
        assert_eq!(screen.show("t", Some(&block("one\ntwo")), ROOM), "");
    }

    #[test]
    fn below_a_typed_line_nothing_is_rewritten() {
        let mut screen = Screen::new(false);
        screen.show("t", Some(&draft("one")), ROOM);

        screen.break_off();

        assert!(!screen.ends_with("t"));
        assert_eq!(screen.show("t", Some(&block("one")), ROOM), "main\n  one\n\n");
    }

    #[test]
    fn what_holds_a_place_makes_way_for_another_block() {
        let mut screen = Screen::new(false);
        screen.show("t", Some(&draft("one")), ROOM);

        assert_eq!(screen.show("u", Some(&block("two")), ROOM), "\u{1b}[4A\r\u{1b}[Jmain\n  two\n\n");
        assert_eq!(screen.show("t", Some(&block("one")), ROOM), "main\n  one\n\n", "an answer stays");
    }

    #[test]
    fn what_is_removed_leaves_no_empty_row() {
        let mut screen = Screen::new(false);
        screen.show("t", Some(&draft("one")), ROOM);

        assert_eq!(screen.show("t", None, ROOM), "\u{1b}[4A\r\u{1b}[J\u{1b}[1A\n");
        assert_eq!(screen.show("t", None, ROOM), "");
    }

    #[test]
    fn what_has_left_the_screen_is_printed_again_once_it_is_final() {
        let mut screen = Screen::new(false);
        let long = (1..=12).map(|number| number.to_string()).collect::<Vec<_>>().join("\n");
        screen.show("t", Some(&draft(&long)), ROOM);

        assert_eq!(screen.show("t", Some(&draft(&long.replace("1\n", "one\n"))), ROOM), "");
        assert_eq!(screen.show("t", Some(&draft(&format!("{long}\n13"))), ROOM), "\u{1b}[2A\r\u{1b}[J  13\n  …\n\n");
        assert!(screen.show("t", Some(&block("else")), ROOM).starts_with("main\n  else\n"));
    }

    #[test]
    fn after_a_change_of_the_width_the_rows_are_not_known() {
        let mut screen = Screen::new(false);
        screen.show("t", Some(&draft("one")), ROOM);

        let shown = screen.show("t", Some(&block("one")), Room { columns: 80, ..ROOM });

        assert_eq!(shown, "main\n  one\n\n");
    }

    #[test]
    fn rows_of_what_is_typed_are_counted() {
        assert_eq!(row_count("› abc", 80), 1);
        assert_eq!(row_count("› abc\nd", 80), 2);
        assert_eq!(row_count("› 3456789012", 10), 2);
    }
}
