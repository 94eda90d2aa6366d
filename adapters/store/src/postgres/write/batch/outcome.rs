//! What becomes of the requests of a batch, and what they have in common.

use std::hash::{DefaultHasher, Hash, Hasher};

use rejoinder_core::store::Commit;

use crate::shared::request::WriteResult;

pub(super) fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// What became of a request of a batch.
#[derive(Debug)]
pub(in crate::postgres) enum Outcome {
    Done(WriteResult),
    /// It is not for a batch.
    Alone,
    /// It was not done because of other requests: they leave the batch.
    Again,
}

impl Outcome {
    /// What became of transitions of which it is only known that they were committed but for the `refused` ones, by their numbers. The row
    /// path decides on these again. `included`: whether each of them was in the statement.
    pub(in crate::postgres) fn committed(included: &[bool], refused: &[i64]) -> Vec<Self> {
        let outcome = |(number, is_included): (i64, &bool)| {
            if *is_included && !refused.contains(&number) {
                Self::Done(WriteResult::Committed(Commit::Done))
            } else {
                Self::Alone
            }
        };
        (0..).zip(included).map(outcome).collect()
    }
}
