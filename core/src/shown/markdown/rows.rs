//! Rows of a table that have more cells than its heading. GFM drops the surplus; here it belongs to the last cell.
//!
//! Models write such rows mostly because of a pipe inside code, which separates cells unless it is escaped.

use std::{collections::HashMap, ops::Range};

use pulldown_cmark::{Event, Tag};

/// Splits a row of a table into its cells, as written in the source: at most `columns`, of which the last one contains any
/// surplus. A pipe inside code does not separate cells if there would be too many.
pub fn row_cells(row: &str, columns: usize) -> Vec<&str> {
    let surplus = surplus(row, columns);
    let mut cells = Vec::new();
    let mut from = row.len() - row.trim_start().len();
    if row[from..].starts_with('|') {
        from += 1;
    }
    for at in separators(row).filter(|at| surplus.binary_search(at).is_err()) {
        cells.push(&row[from..at]);
        from = at + 1;
    }
    let last = row.get(from..).unwrap_or_default().trim_end();
    cells.push(last.strip_suffix('|').filter(|cell| !cell.ends_with('\\')).unwrap_or(last));
    cells
}

/// The source with every surplus pipe escaped; `None` if there is none. `events` are those of `markdown`.
pub(super) fn without_surplus(markdown: &str, events: &[(Event<'_>, Range<usize>)]) -> Option<String> {
    let mut columns = 0;
    let mut pipes = Vec::new();
    for (event, range) in events {
        match event {
            Event::Start(Tag::Table(alignments)) => columns = alignments.len(),
            Event::Start(Tag::TableRow) => {
                let surplus = surplus(&markdown[range.clone()], columns);
                pipes.extend(surplus.into_iter().map(|at| range.start + at));
            }
            _ => {}
        }
    }
    if pipes.is_empty() {
        return None;
    }
    let mut escaped = String::with_capacity(markdown.len() + pipes.len());
    let mut from = 0;
    for at in pipes {
        escaped.extend([&markdown[from..at], "\\"]);
        from = at;
    }
    escaped.push_str(&markdown[from..]);
    Some(escaped)
}

/// The pipes of a row that must not separate cells, in order.
fn surplus(row: &str, columns: usize) -> Vec<usize> {
    if separators(row).count() < columns {
        return Vec::new();
    }
    let code = code_spans(row);
    let in_code = |at: &usize| {
        let next = code.partition_point(|span| span.end <= *at);
        code.get(next).is_some_and(|span| span.contains(at))
    };
    let mut kept = columns.saturating_sub(1);
    separators(row)
        .filter(|at| {
            let separates = !in_code(at) && kept > 0;
            kept -= usize::from(separates);
            !separates
        })
        .collect()
}

/// The pipes between the cells of a row: those that are not escaped, without the ones around the row.
fn separators(row: &str) -> impl Iterator<Item = usize> {
    let first = row.len() - row.trim_start().len();
    let last = row.trim_end().len().saturating_sub(1);
    let pipes = row.match_indices('|').map(|(at, _)| at);
    pipes.filter(move |&at| at > first && at < last && !row[..at].ends_with('\\'))
}

/// The code spans of a row: from a run of backticks to the next run of the same length.
fn code_spans(row: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in row.match_indices('`') {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    let last_of_length: HashMap<usize, usize> =
        runs.iter().enumerate().map(|(index, run)| (run.len(), index)).collect();
    let mut spans = Vec::new();
    let mut index = 0;
    while let Some(run) = runs.get(index) {
        let is_escaped = row[..run.start].ends_with('\\');
        if is_escaped || last_of_length[&run.len()] <= index {
            index += 1;
            continue;
        }
        let length =
            runs[index + 1..].iter().position(|end| end.len() == run.len()).expect("the last one of its length");
        index += 1 + length;
        spans.push(run.start..runs[index].end);
        index += 1;
    }
    spans
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("| a | b |", 2, &[" a ", " b "])]
    #[case("a|b\n", 2, &["a", "b"])]
    #[case("| a |", 2, &[" a "])]
    #[case("| `ls | wc -l` | counts files |", 2, &[" `ls | wc -l` ", " counts files "])]
    #[case("| x || y | or |", 2, &[" x ", "| y | or "])]
    #[case("| `a | b | c |", 2, &[" `a ", " b | c "])]
    #[case("| `a|b` | `c|d` | e |", 2, &[" `a|b` ", " `c|d` | e "])]
    #[case("| a \\| b | c | d", 2, &[" a \\| b ", " c | d"])]
    #[case("| a | b \\|", 2, &[" a ", " b \\|"])]
    #[case("|", 1, &[""])]
    #[case("", 1, &[""])]
    fn a_row_has_no_more_cells_than_its_heading(#[case] row: &str, #[case] columns: usize, #[case] cells: &[&str]) {
        assert_eq!(row_cells(row, columns), cells);
    }

    #[test]
    fn a_hostile_row_takes_linear_time() {
        let runs: String = (1..1_500).map(|length| "`".repeat(length) + "|").collect();
        let pairs = "`|`".repeat(300_000);
        for row in [runs, pairs, "|".repeat(1_000_000), "\\|`".repeat(300_000)] {
            assert!(row_cells(&row, 2).len() <= 2);
        }
    }
}
