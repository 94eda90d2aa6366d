//! Renders tables, which Discord's Markdown lacks.

use rejoinder_core::row_cells;
use rejoinder_kit::{Alignment, Table};

/// The columns of monospace text that Discord shows without wrapping.
const WIDTH: usize = 60;

/// The table that starts at the first line, and the number of its lines.
pub(super) fn table_at(lines: &[&str]) -> Option<(Table, usize)> {
    let [heading, rule, rest @ ..] = lines else { return None };
    if !heading.contains('|') {
        return None;
    }
    let rule_cells = row_cells(rule, usize::MAX);
    let alignments = rule_cells.iter().map(|cell| alignment(cell)).collect::<Option<Vec<Alignment>>>()?;
    let columns = alignments.len();
    if !rule.contains('-') || !rule.contains('|') || row_cells(heading, usize::MAX).len() != columns {
        return None;
    }
    let body = rest.iter().take_while(|line| line.contains('|') && !line.trim().is_empty());
    let rows: Vec<_> = std::iter::once(heading).chain(body).map(|line| row(line, columns)).collect();
    let taken = rows.len() + 1;
    Some((Table { rows, alignments }, taken))
}

/// Renders aligned columns in a code block, or a list if they are too wide.
pub(super) fn to_text(table: &Table) -> String {
    if let Some(aligned) = table.aligned(WIDTH) {
        return format!("```\n{aligned}\n```");
    }
    let item = |record: Vec<(&str, &str)>| {
        let named = record.into_iter().map(|(heading, cell)| match heading {
            "" => cell.to_owned(),
            heading => format!("**{heading}**: {cell}"),
        });
        format!("- {}", named.collect::<Vec<_>>().join(", "))
    };
    table.records().into_iter().map(item).collect::<Vec<_>>().join("\n")
}

/// The cells of a row without mark-up, which a code block would show as it is.
fn row(line: &str, columns: usize) -> Vec<String> {
    let text = |cell: &str| cell.trim().replace("\\|", "|").replace("**", "").replace('`', "");
    row_cells(line, columns).into_iter().map(text).collect()
}

fn alignment(cell: &str) -> Option<Alignment> {
    let cell = cell.trim();
    let dashes = cell.trim_start_matches(':').trim_end_matches(':');
    if dashes.is_empty() || !dashes.bytes().all(|byte| byte == b'-') {
        return None;
    }
    Some(match (cell.starts_with(':'), cell.ends_with(':')) {
        (true, true) => Alignment::Center,
        (false, true) => Alignment::Right,
        _ => Alignment::None,
    })
}
