//! The history of the benchmark: one line of figures for each recorded run, and the table that is made of them.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::{
    document::{Document, Origin},
    workspace::Workspace,
};

/// One JSON object a line, the oldest first.
pub(super) const FILE: &str = "xtask/bench/history.jsonl";

/// What is shown of a figure that a run did not measure.
const NONE: &str = "–";

/// The height of a value between the least and the most of its column.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A column of the table.
struct Column {
    title: &'static str,
    /// The name of the figure.
    figure: &'static str,
    digits: usize,
}

static COLUMNS: [Column; 5] = [
    Column {
        title: "throughput beside the proxy, 64 callers",
        figure: "throughput beside the proxy, 64 callers",
        digits: 2,
    },
    Column {
        title: "CPU time beside the proxy's, 16 callers",
        figure: "CPU time of the proxy beside the gateway, 16 callers",
        digits: 2,
    },
    Column {
        title: "CPU time beside the proxy's, 64 callers",
        figure: "CPU time of the proxy beside the gateway, 64 callers",
        digits: 2,
    },
    Column { title: "KiB a turn, 64 callers", figure: "written to the disk for a turn, 64 callers", digits: 1 },
    Column { title: "idle MiB", figure: "resident memory, idle", digits: 1 },
];

/// The history, whose table is a part of a document.
pub(super) struct History {
    document: Document,
}

impl History {
    /// The history in the document of this name.
    ///
    /// # Errors
    ///
    /// When the document has no place for it. Said before the run.
    pub(super) fn find(workspace: &Workspace, document: &'static str) -> Result<Self> {
        Ok(Self { document: Document::find(workspace, document, "bench --record")? })
    }

    /// Adds the results of a run, and writes the table.
    ///
    /// # Errors
    ///
    /// When the results are not those of a run, or a file cannot be read or written.
    pub(super) fn add(&self, workspace: &Workspace, results: &Map<String, Value>, run: &Origin) -> Result<()> {
        let path = workspace.root().join(FILE);
        let line = line(results, run)?;
        let append = || -> Result<String> {
            writeln!(OpenOptions::new().append(true).create(true).open(&path)?, "{line}")?;
            Ok(fs::read_to_string(&path)?)
        };
        let lines = append().with_context(|| format!("cannot write {FILE}"))?;
        self.document.write(&table(&lines)?)
    }
}

/// The line of a run: where and when it was, and the median of each figure.
fn line(results: &Map<String, Value>, run: &Origin) -> Result<Value> {
    let figures = results.get("figures").and_then(Value::as_array).context("the results have no figures")?;
    let median = |figure: &Value| Some((figure["name"].as_str()?.to_owned(), figure["median"].clone()));
    let figures: Map<String, Value> = figures.iter().filter_map(median).collect();
    Ok(json!({
        "date": run.date,
        "commit": run.commit,
        "cpu": results.get("cpu"),
        "cores": results.get("cores"),
        "figures": figures,
    }))
}

/// The table in Markdown: a row for each run, and one with the course of each figure.
fn table(lines: &str) -> Result<String> {
    let runs = lines.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>();
    let runs = runs.with_context(|| format!("cannot read {FILE}"))?;
    let columns = COLUMNS
        .each_ref()
        .map(|column| runs.iter().map(|run| run["figures"][column.figure].as_f64()).collect::<Vec<_>>());

    let titles = ["date", "commit"].into_iter().chain(COLUMNS.iter().map(|column| column.title));
    let mut rows = vec![row(titles), row(["---", "---"].into_iter().chain(COLUMNS.iter().map(|_| "---:")))];
    for (number, run) in runs.iter().enumerate() {
        let cells = COLUMNS.iter().zip(&columns).map(|(column, values)| show(values[number], column.digits));
        let origin = ["date", "commit"].map(|key| run[key].as_str().unwrap_or(NONE).to_owned());
        rows.push(row(origin.into_iter().chain(cells)));
    }
    let courses = columns.iter().map(|values| course(values));
    rows.push(row(["course".to_owned(), String::new()].into_iter().chain(courses)));
    Ok(rows.join("\n"))
}

fn row(cells: impl Iterator<Item = impl Into<String>>) -> String {
    format!("| {} |", cells.map(Into::into).collect::<Vec<String>>().join(" | "))
}

fn show(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.digits$}"))
}

/// A bar for each value, from the least to the most of them; nothing for a run without one.
fn course(values: &[Option<f64>]) -> String {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    let least = known.iter().copied().fold(f64::INFINITY, f64::min);
    let most = known.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    known.iter().map(|value| bar((value - least) / (most - least))).collect()
}

/// The bar of a share from 0 to 1; the lowest if it is not a number.
fn bar(share: f64) -> char {
    // The shares at which the next bar begins.
    let steps = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0].map(|step| step / 8.0);
    BARS[steps.iter().filter(|step| share >= **step).count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(idle: f64) -> Map<String, Value> {
        let figures = json!([{ "name": "resident memory, idle", "median": idle, "rounds": [idle] }]);
        let results = json!({ "cpu": "a CPU", "cores": 2, "memory_gib": 8.0, "figures": figures });
        results.as_object().unwrap().clone()
    }

    fn run(date: &str) -> Origin {
        Origin { commit: "0123456789".to_owned(), date: date.to_owned() }
    }

    #[test]
    fn a_line_has_the_medians_of_a_run() {
        let line = line(&results(20.5), &run("2026-01-31")).unwrap();

        let figures = json!({ "resident memory, idle": 20.5 });
        let wanted =
            json!({ "date": "2026-01-31", "commit": "0123456789", "cpu": "a CPU", "cores": 2, "figures": figures });
        assert_eq!(line, wanted);
        assert!(super::line(&Map::new(), &run("2026-01-31")).is_err());
    }

    #[test]
    fn the_table_has_a_row_for_each_run_and_the_course_of_each_figure() {
        let lines = [("2026-01-30", 20.0), ("2026-01-31", 30.0), ("2026-02-01", 25.0)]
            .map(|(date, idle)| line(&results(idle), &run(date)).unwrap().to_string());

        let table = table(&lines.join("\n")).unwrap();

        let rows: Vec<_> = table.lines().collect();
        assert_eq!(rows.len(), 6, "{table}");
        assert_eq!(rows[3], "| 2026-01-31 | 0123456789 | – | – | – | – | 30.0 |");
        assert_eq!(rows[5], "| course |  |  |  |  |  | ▁█▅ |");
    }

    #[test]
    fn equal_values_have_equal_bars() {
        assert_eq!(course(&[Some(2.0), None, Some(2.0)]), "▁▁");
        assert_eq!(course(&[None]), "");
    }

    #[test]
    fn the_history_of_this_repository_can_be_shown() {
        assert!(
            table(include_str!("../../bench/history.jsonl")).unwrap().contains("| 2026-11-23 | d1e33b3dcf | 0.24 |")
        );
    }
}
