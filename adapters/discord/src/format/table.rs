//! Renders tables, which Discord's Markdown lacks.

use rejoinder_kit::{Alignment, Table};

/// The columns of monospace text that Discord shows without wrapping.
const WIDTH: usize = 60;

/// The table that starts at the first line, and the number of its lines.
pub(super) fn table_at(lines: &[&str]) -> Option<(Table, usize)> {
    let [heading, rule, rest @ ..] = lines else { return None };
    if !heading.contains('|') {
        return None;
    }
    let alignments = cells(rule).iter().map(|cell| alignment(cell)).collect::<Option<Vec<Alignment>>>()?;
    let heading = row(heading);
    if !rule.contains('-') || !rule.contains('|') || heading.len() != alignments.len() {
        return None;
    }
    let body: Vec<Vec<String>> =
        rest.iter().take_while(|line| line.contains('|') && !line.trim().is_empty()).map(|line| row(line)).collect();
    let taken = body.len() + 2;
    let rows = std::iter::once(heading).chain(body).map(|mut row| {
        row.truncate(alignments.len());
        row
    });
    Some((Table { rows: rows.collect(), alignments }, taken))
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

/// The text between the bars of a line.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let line = if line.ends_with("\\|") { line } else { line.strip_suffix('|').unwrap_or(line) };
    let mut cells = vec![String::new()];
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let last = cells.last_mut().expect("it starts with one cell");
        match character {
            '\\' if characters.peek() == Some(&'|') => last.extend(characters.next()),
            '|' => cells.push(String::new()),
            _ => last.push(character),
        }
    }
    cells
}

/// The cells of a row without mark-up, which a code block would show as it is.
fn row(line: &str) -> Vec<String> {
    cells(line).iter().map(|cell| cell.trim().replace("**", "").replace('`', "")).collect()
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
