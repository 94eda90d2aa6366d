//! Tables, which Telegram does not have.

use pulldown_cmark::Alignment;
use unicode_width::UnicodeWidthStr;

/// The columns that a phone shows of monospace text without breaking the line.
const WIDTH: usize = 40;

const BETWEEN: &str = " | ";

/// A table as it was read; every cell is one line of plain text.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn cell(&mut self) -> Option<&mut String> {
        self.rows.last_mut()?.last_mut()
    }

    /// The table in aligned columns, or nothing if it is too wide for that.
    pub(super) fn aligned(&self) -> Option<String> {
        let columns = self.rows.iter().map(Vec::len).max()?;
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0)
            })
            .collect();
        let width = widths.iter().sum::<usize>() + BETWEEN.len() * columns.saturating_sub(1);
        if width > WIDTH || width == 0 {
            return None;
        }
        let mut lines: Vec<String> = self.rows.iter().map(|row| self.line(row, &widths)).collect();
        if lines.len() > 1 {
            let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
            lines.insert(1, rule.join("-+-"));
        }
        Some(lines.join("\n"))
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells: Vec<String> = widths
            .iter()
            .enumerate()
            .map(|(column, &width)| {
                let cell = row.get(column).map_or("", String::as_str);
                let free = width.saturating_sub(cell.width());
                let before = match self.alignments.get(column) {
                    Some(Alignment::Right) => free,
                    Some(Alignment::Center) => free / 2,
                    _ => 0,
                };
                format!("{}{cell}{}", " ".repeat(before), " ".repeat(free - before))
            })
            .collect();
        cells.join(BETWEEN).trim_end().to_owned()
    }

    /// For each row, the cells that hold something with the heading of their column.
    pub(super) fn records(&self) -> Vec<Vec<(&str, &str)>> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        if rows.is_empty() {
            return vec![head.iter().map(|cell| ("", cell.as_str())).filter(|(_, cell)| !cell.is_empty()).collect()];
        }
        rows.iter()
            .map(|row| {
                let keys = head.iter().map(String::as_str).chain(std::iter::repeat(""));
                keys.zip(row.iter().map(String::as_str)).filter(|(_, cell)| !cell.is_empty()).collect()
            })
            .collect()
    }
}
