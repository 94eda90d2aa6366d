//! Tables, which Discord does not have.

use unicode_width::UnicodeWidthStr;

/// The columns of monospace text that are shown without breaking the line.
const WIDTH: usize = 60;

const BETWEEN: &str = " | ";

/// On which side of its column a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Middle,
    Right,
}

/// A table; every cell is plain text. The first row is its heading.
pub(super) struct Table {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// The table that begins with the first of these lines, and how many of them it takes.
    pub(super) fn at(lines: &[&str]) -> Option<(Self, usize)> {
        let [heading, rule, rest @ ..] = lines else { return None };
        if !heading.contains('|') {
            return None;
        }
        let sides = cells(rule).iter().map(|cell| side(cell)).collect::<Option<Vec<Side>>>()?;
        let heading = row(heading);
        if !rule.contains('-') || !rule.contains('|') || heading.len() != sides.len() {
            return None;
        }
        let body: Vec<Vec<String>> = rest
            .iter()
            .take_while(|line| line.contains('|') && !line.trim().is_empty())
            .map(|line| row(line))
            .collect();
        let taken = body.len() + 2;
        let rows = std::iter::once(heading).chain(body).map(|mut row| {
            row.resize(sides.len(), String::new());
            row
        });
        Some((Self { rows: rows.collect(), sides }, taken))
    }

    /// In aligned columns, or as a list where they would be too wide.
    pub(super) fn to_text(&self) -> String {
        let widths: Vec<usize> = (0..self.sides.len())
            .map(|column| self.rows.iter().map(|row| row[column].width()).max().unwrap_or(0))
            .collect();
        let width = widths.iter().sum::<usize>() + BETWEEN.len() * widths.len().saturating_sub(1);
        if width > WIDTH {
            return self.list();
        }
        let mut lines: Vec<String> = self.rows.iter().map(|row| self.line(row, &widths)).collect();
        let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
        lines.insert(1, rule.join("-+-"));
        format!("```\n{}\n```", lines.join("\n"))
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row.iter().zip(widths).zip(&self.sides).map(|((cell, width), side)| {
            let free = width.saturating_sub(cell.width());
            let before = match side {
                Side::Left => 0,
                Side::Middle => free / 2,
                Side::Right => free,
            };
            format!("{}{cell}{}", " ".repeat(before), " ".repeat(free - before))
        });
        cells.collect::<Vec<_>>().join(BETWEEN).trim_end().to_owned()
    }

    fn list(&self) -> String {
        let Some((heading, body)) = self.rows.split_first() else { return String::new() };
        let item = |row: &Vec<String>| {
            let cells = heading.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
            let named =
                cells.map(|(name, cell)| if name.is_empty() { cell.clone() } else { format!("**{name}**: {cell}") });
            format!("- {}", named.collect::<Vec<_>>().join(", "))
        };
        if body.is_empty() { item(heading) } else { body.iter().map(item).collect::<Vec<_>>().join("\n") }
    }
}

/// What stands between the bars of a line.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let line = if line.ends_with("\\|") { line } else { line.strip_suffix('|').unwrap_or(line) };
    let mut cells = vec![String::new()];
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let last = cells.last_mut().expect("there is one from the start");
        match character {
            '\\' if characters.peek() == Some(&'|') => last.extend(characters.next()),
            '|' => cells.push(String::new()),
            _ => last.push(character),
        }
    }
    cells
}

/// The cells of a row in plain text: in a block of code no mark-up is read.
fn row(line: &str) -> Vec<String> {
    cells(line).iter().map(|cell| cell.trim().replace("**", "").replace('`', "")).collect()
}

fn side(cell: &str) -> Option<Side> {
    let cell = cell.trim();
    let dashes = cell.trim_start_matches(':').trim_end_matches(':');
    if dashes.is_empty() || !dashes.bytes().all(|byte| byte == b'-') {
        return None;
    }
    Some(match (cell.starts_with(':'), cell.ends_with(':')) {
        (true, true) => Side::Middle,
        (false, true) => Side::Right,
        _ => Side::Left,
    })
}
