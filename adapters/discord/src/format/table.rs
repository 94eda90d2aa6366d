//! Tables, which Discord does not have.

use rejoinder_kit::{Alignment, Table};

/// The columns of monospace text that are shown without breaking the line.
const WIDTH: usize = 60;

/// The table that begins with the first of these lines, and how many of them it takes.
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

/// In aligned columns, or as a list where they would be too wide.
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
