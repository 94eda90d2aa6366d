//! Lists of the running gateway, as commands print them.

use clap::Args;
use serde_json::Value;

use super::running::RunningGateway;
use crate::console::{failure::Failure, output};

#[derive(Debug, Args)]
pub(super) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    /// Prints the list at `path`, or its `lines`.
    pub(super) async fn print(
        &self,
        gateway: &RunningGateway,
        path: &str,
        lines: fn(&Value) -> String,
    ) -> Result<(), Failure> {
        print(self.json, &gateway.get(path).await?, lines)
    }
}

/// Prints an answer as JSON, or its `lines`.
pub(super) fn print(json: bool, answer: &Value, lines: fn(&Value) -> String) -> Result<(), Failure> {
    if json { output::print_json(answer) } else { output::print(lines(answer)) }
}

/// A text in an answer; empty if it has none.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The items of a list as a table, then `hint`; only `nothing` if there are none.
pub(super) fn table<const N: usize>(
    list: &Value,
    (nothing, hint): (&str, &str),
    heads: [&str; N],
    row: impl Fn(&Value) -> [String; N],
) -> String {
    let rows: Vec<_> = list["items"].as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        return nothing.to_owned();
    }
    format!("{}{hint}", output::table(heads, &rows))
}
