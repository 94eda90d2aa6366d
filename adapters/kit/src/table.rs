//! Tables, for platforms whose markup has no tables.

pub use pulldown_cmark::Alignment;
use unicode_width::UnicodeWidthStr;

const BETWEEN: &str = " | ";

/// A table of Markdown. Every cell is one line of plain text; the first row is the heading.
#[derive(Debug, Default)]
pub struct Table {
    /// One per column; a column without one is aligned left.
    pub alignments: Vec<Alignment>,
    /// The cells of each row, heading first; missing cells at the end of a row are empty.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// The last cell of the last row: the one that is being written.
    pub fn cell(&mut self) -> Option<&mut String> {
        self.rows.last_mut()?.last_mut()
    }

    /// The table in aligned columns of monospace text; `None` when it is wider than `width` columns, or empty.
    #[must_use]
    pub fn aligned(&self, width: usize) -> Option<String> {
        let columns = self.rows.iter().map(Vec::len).max()?;
        let cells = |column| self.rows.iter().filter_map(move |row: &Vec<String>| row.get(column));
        let widths: Vec<usize> =
            (0..columns).map(|column| cells(column).map(|cell| cell.width()).max().unwrap_or(0)).collect();
        let needed = widths.iter().sum::<usize>() + BETWEEN.len() * columns.saturating_sub(1);
        if needed > width || needed == 0 {
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

    /// For a table that is too wide: the non-empty cells of each row, each as (heading of its column, cell). A heading without
    /// any cell is in the first row, with an empty cell. A heading row alone is returned as one row without headings.
    #[must_use]
    pub fn records(&self) -> Vec<Vec<(&str, &str)>> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        if rows.is_empty() {
            return vec![head.iter().map(|cell| ("", cell.as_str())).filter(|(_, cell)| !cell.is_empty()).collect()];
        }
        let is_bare = |column: usize| rows.iter().all(|row| text(row, column).is_empty());
        rows.iter()
            .enumerate()
            .map(|(index, row)| {
                let cells =
                    (0..row.len().max(head.len())).map(|column| (column, text(head, column), text(row, column)));
                let is_shown = |&(column, heading, cell): &(usize, &str, &str)| {
                    !cell.is_empty() || (index == 0 && !heading.is_empty() && is_bare(column))
                };
                cells.filter(is_shown).map(|(_, heading, cell)| (heading, cell)).collect()
            })
            .collect()
    }
}

/// The text of a cell; empty if the row has no such cell.
fn text(row: &[String], column: usize) -> &str {
    row.get(column).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[&[&str]]) -> Table {
        let cells = |row: &&[&str]| row.iter().map(|cell| (*cell).to_owned()).collect();
        Table { alignments: vec![Alignment::None, Alignment::Right], rows: rows.iter().map(cells).collect() }
    }

    #[test]
    fn a_table_that_fits_is_aligned() {
        let table = table(&[&["Name", "n"], &["Ada", "1"], &["日本", "22"], &["only"]]);

        assert_eq!(table.aligned(9).as_deref(), Some("Name |  n\n-----+---\nAda  |  1\n日本 | 22\nonly |"));
        assert_eq!(table.aligned(8), None);
        assert_eq!(Table::default().aligned(40), None);
    }

    #[test]
    fn a_table_that_does_not_fit_is_read_row_by_row() {
        let table = table(&[&["Name", ""], &["Ada", "1"], &["Grace", ""]]);

        assert_eq!(table.records(), [vec![("Name", "Ada"), ("", "1")], vec![("Name", "Grace")]]);
    }

    #[test]
    fn a_heading_without_cells_is_read_once() {
        let table = table(&[&["Name", "Age"], &["Ada", ""], &["Grace"]]);

        assert_eq!(table.records(), [vec![("Name", "Ada"), ("Age", "")], vec![("Name", "Grace")]]);
    }
}
