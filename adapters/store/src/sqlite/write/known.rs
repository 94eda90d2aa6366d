//! What the writer knows of the settings of runs without a look at the database.

use std::collections::HashMap;

const MOST_KNOWN: usize = 64;

/// Settings that are stored, by their body.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct KnownSettings(HashMap<String, KnownRow>);

#[derive(Clone, Copy, Debug)]
pub(super) struct KnownRow {
    pub(super) id: i64,
    /// The run that is written down as the last one that uses them.
    pub(super) used: i64,
}

impl KnownSettings {
    pub(super) fn get(&self, body: &str) -> Option<KnownRow> {
        self.0.get(body).copied()
    }

    pub(super) fn insert(&mut self, body: &str, row: KnownRow) {
        if self.0.len() >= MOST_KNOWN {
            self.0.clear();
        }
        self.0.insert(body.to_owned(), row);
    }
}
