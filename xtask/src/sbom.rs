//! Makes a bill of materials (CycloneDX) the same for the same tree.
//!
//! `cargo-sbom` lists components in another order at each run, and adds the time, a random number and the name of the user.

use anyhow::{Context, Result};
use serde_json::Value;

/// Sorts all lists, and replaces or removes what depends on the run. `time` is the new timestamp, as in RFC 3339.
///
/// # Errors
///
/// When the document is not JSON, or has no metadata.
pub(crate) fn reproducible(document: &str, time: &str) -> Result<String> {
    let mut document: Value = serde_json::from_str(document).context("the bill of materials is not JSON")?;
    sort(&mut document);
    if let Some(fields) = document.as_object_mut() {
        fields.remove("serialNumber");
    }
    let metadata = document.get_mut("metadata").and_then(Value::as_object_mut);
    let metadata = metadata.context("the bill of materials has no `metadata`")?;
    metadata.remove("authors");
    metadata.insert("timestamp".to_owned(), time.into());
    Ok(format!("{document:#}\n"))
}

/// Sorts lists by their content; CycloneDX gives no meaning to their order.
fn sort(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(sort);
            items.sort_by_cached_key(Value::to_string);
        }
        Value::Object(fields) => fields.values_mut().for_each(sort),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn two_runs_give_the_same_bill() {
        let run = |serial: &str, time: &str, user: &str, components: [&str; 2], needed: [&str; 2]| {
            json!({
                "serialNumber": serial,
                "metadata": { "timestamp": time, "authors": [{ "name": user }], "tools": [{ "name": "cargo-sbom" }] },
                "components": components.map(|name| json!({ "name": name, "version": "1.0.0" })),
                "dependencies": [{ "ref": "serde", "dependsOn": needed }],
            })
            .to_string()
        };
        let first = run("urn:uuid:1", "2026-01-01T10:00:00Z", "ada", ["serde", "tokio"], ["a", "b"]);
        let second = run("urn:uuid:2", "2026-01-02T11:00:00Z", "ben", ["tokio", "serde"], ["b", "a"]);

        let bill = reproducible(&first, "2025-12-31T00:00:00Z").unwrap();

        assert_eq!(bill, reproducible(&second, "2025-12-31T00:00:00Z").unwrap());
        let bill: Value = serde_json::from_str(&bill).unwrap();
        assert_eq!(bill["metadata"]["timestamp"], "2025-12-31T00:00:00Z");
        assert_eq!(
            bill["components"],
            json!([{ "name": "serde", "version": "1.0.0" }, { "name": "tokio", "version": "1.0.0" }])
        );
    }

    #[test]
    fn what_is_no_bill_is_refused() {
        assert!(reproducible("[]", "2025-12-31T00:00:00Z").is_err());
        assert!(reproducible("not JSON", "2025-12-31T00:00:00Z").is_err());
    }
}
