//! Parts of the running gateway's answers, as commands print them.

use serde_json::Value;

use crate::console::output;

/// A text in an answer; empty if it has none.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What a list in an answer holds; nothing if it has none.
pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The items of a list as a table, then `hint`; only `nothing` if there are none.
pub(super) fn table<const N: usize>(
    list: &Value,
    (nothing, hint): (&str, &str),
    heads: [&str; N],
    row: impl Fn(&Value) -> [String; N],
) -> String {
    let rows: Vec<_> = items(&list["items"]).map(row).collect();
    if rows.is_empty() {
        return nothing.to_owned();
    }
    format!("{}{hint}", output::table(heads, &rows))
}
