//! What the writer knows of the settings of runs without a look at the database.

const MOST_KNOWN: usize = 64;

/// Settings that are stored, with their bodies; those of the last run come first. A body has several kilobytes: it is compared with them
/// sooner than hashed.
#[derive(Debug, Default)]
pub(crate) struct KnownSettings(Vec<(String, KnownRow)>);

#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownRow {
    pub(crate) id: i64,
    /// The run that is written down as the last one that uses them.
    pub(crate) used: i64,
}

impl KnownSettings {
    pub(crate) fn get(&mut self, body: &str) -> Option<KnownRow> {
        let at = self.0.iter().position(|(known, _)| known == body)?;
        self.0.swap(0, at);
        self.0.first().map(|(_, row)| *row)
    }

    pub(crate) fn insert(&mut self, body: &str, row: KnownRow) {
        self.0.retain(|(known, _)| known != body);
        if self.0.len() >= MOST_KNOWN {
            self.0.clear();
        }
        self.0.insert(0, (body.to_owned(), row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_known_by_their_whole_body_until_there_are_too_many() {
        let mut known = KnownSettings::default();
        let id = |known: &mut KnownSettings, body: &str| known.get(body).map(|row| (row.id, row.used));
        for (body, id) in [("one", 1), ("two", 2)] {
            known.insert(body, KnownRow { id, used: 1 });
        }
        known.insert("one", KnownRow { id: 1, used: 9 });

        assert_eq!(
            ["one", "two", "one", "on"].map(|body| id(&mut known, body)),
            [Some((1, 9)), Some((2, 1)), Some((1, 9)), None]
        );
        for number in 2..=MOST_KNOWN {
            known.insert(&number.to_string(), KnownRow { id: 0, used: 0 });
        }
        assert_eq!(id(&mut known, "one"), None);
    }
}
