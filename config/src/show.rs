//! Prints the effective configuration, and writes it to compare it with another one.

use std::collections::BTreeMap;

use serde::Serialize;
use toml_edit::{
    Array, DocumentMut, Item, Table,
    visit_mut::{VisitMut, visit_array_mut, visit_item_mut, visit_table_mut},
};

use crate::{Config, redacted};

impl Config {
    /// The configuration as TOML that can be loaded again, except for the secrets, which are `***`.
    ///
    /// # Panics
    /// Never: every value of a configuration was read from TOML.
    pub fn to_toml_redacted(&self) -> String {
        laid_out(self)
    }

    /// The section of the agent of this name alone; empty if there is none.
    ///
    /// # Panics
    /// Never: every value of a configuration was read from TOML.
    pub fn agent_to_toml_redacted(&self, name: &str) -> String {
        let agents: BTreeMap<_, _> = self.agents.get(name).map(|agent| (name, agent)).into_iter().collect();
        laid_out(&BTreeMap::from([("agents", agents)]))
    }

    /// The configuration as JSON, to compare it with another one. A secret and a URL of which a part is not printed have a
    /// digest, which must not be printed.
    ///
    /// # Panics
    /// Never: every value of a configuration was read from TOML.
    pub fn to_compare(&self) -> serde_json::Value {
        redacted::to_compare(|| serde_json::to_value(self).expect("values read from TOML can be written as JSON"))
    }

    /// What all nodes of one gateway must have in common, as JSON: all but secrets, where a node listens and stores, its own URL, and its log.
    ///
    /// # Panics
    /// Never: every value of a configuration was read from TOML.
    pub fn in_common(&self) -> serde_json::Value {
        let mut all = serde_json::to_value(self).expect("values read from TOML can be written as JSON");
        if let Some(sections) = all.as_object_mut() {
            sections.retain(|name, _| !["log", "store"].contains(&name.as_str()));
            for section in ["admin", "server"] {
                if let Some(keys) = sections.get_mut(section).and_then(serde_json::Value::as_object_mut) {
                    keys.retain(|key, _| !["listen", "node_url"].contains(&key.as_str()));
                }
            }
        }
        all
    }
}

fn laid_out(values: &impl Serialize) -> String {
    let mut document = toml_edit::ser::to_document(values).expect("values read from TOML can be written as TOML");
    Layout.visit_document_mut(&mut document);
    // There is a blank line before each table, and thus before the first one.
    document.to_string().trim_start().to_owned()
}

/// Gives tables their own headers. Lists and references to secrets stay on one line.
struct Layout;

impl VisitMut for Layout {
    fn visit_document_mut(&mut self, document: &mut DocumentMut) {
        self.visit_table_mut(document.as_table_mut());
    }

    fn visit_item_mut(&mut self, item: &mut Item) {
        let is_reference = item.as_inline_table().is_some_and(|table| table.contains_key("generate"));
        if item.is_inline_table() && !is_reference {
            let table = std::mem::take(item).into_table().expect("an inline table is a table");
            *item = Item::Table(table);
        }
        visit_item_mut(self, item);
    }

    fn visit_table_mut(&mut self, table: &mut Table) {
        table.decor_mut().clear();
        table.set_implicit(!table.is_empty());
        visit_table_mut(self, table);
    }

    fn visit_array_mut(&mut self, array: &mut Array) {
        visit_array_mut(self, array);
        array.fmt();
    }
}
