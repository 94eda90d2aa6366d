//! Removing rows that are past their time, and the size of the store.

use std::{collections::BTreeMap, time::Duration};

use rejoinder_guard::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::StoreError;
use crate::model::{EventSeq, Identity, Lifetimes, LineId, LogSeq, TurnId};

store_trait! {
    /// Removing what is past its time, or about a person.
    pub trait HousekeepingStore {
        /// What to remove next: at most `limit` rows, or pages of about 4 KiB for each. `None` if nothing is past its time. A turn
        /// that has not ended, that still runs, or that has an unfinished delivery is never past its time.
        read fn expired(cutoffs: &Cutoffs, limit: u32) -> Option<Removal>;

        /// When the next row is past its time, if nothing keeps it; `None` if no stored row ever is.
        read fn next_expiry(lifetimes: &Lifetimes) -> Option<Timestamp>;

        /// Removes rows in one transaction. Turns that are in work again are left alone.
        write fn remove(removal: Removal) -> ();

        /// The next rows about a person to remove: at most `limit`. These are their turns, the turns in which others
        /// were told of them or decided on them, and an operator's messages in conversations with nobody else. In
        /// conversations with others it is the input of all runs, quotes and payloads. `None` if only the turns of
        /// [`unended_of`](Self::unended_of) are left. The duration grows with the number of turns.
        read fn stored_of(person: &Identity, limit: u32) -> Option<Removal>;

        /// The turns of a person, or about them, that cannot be removed yet: they have not ended, still run, or have an unfinished delivery.
        read fn unended_of(person: &Identity) -> Vec<TurnId>;

        /// Takes a step of overwriting what removed rows have left in the files; `false` once nothing is left. The last step takes
        /// about a second for each 100 MB, and writes wait for it.
        write fn scrub() -> bool;

        /// The size of the database in bytes. The duration must not depend on how many rows there are.
        read fn size() -> u64;

        /// The size of the store, and how many rows are past their time. The duration grows with the number of rows.
        read fn stats(cutoffs: &Cutoffs) -> StoreStats;
    }
}

/// The times before which rows are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cutoffs {
    /// For turns that ended, with everything about them but the keys of their events, and for the entries of the log.
    pub turns: Timestamp,
    /// For turns that ended and are dead letters or have one.
    pub dead_letters: Timestamp,
    /// For the payloads of events that were received, and for the contents of runs that ended.
    pub payloads: Timestamp,
    /// For events of which only the key is stored.
    pub keys: Timestamp,
    /// For the lines of the gateway's own log.
    pub lines: Timestamp,
    /// For the sounds of spoken words.
    pub voice: Timestamp,
}

impl Cutoffs {
    /// The times at `now`.
    pub fn at(now: Timestamp, lifetimes: &Lifetimes) -> Self {
        let before = |lifetime: Option<Duration>| {
            let millis = lifetime.and_then(|lifetime| i64::try_from(lifetime.as_millis()).ok());
            Timestamp::from_millis(millis.map_or(i64::MIN, |millis| now.as_millis().saturating_sub(millis)))
        };
        let turns = before(lifetimes.turns);
        Self {
            turns,
            dead_letters: turns.min(before(lifetimes.dead_letters)),
            payloads: before(lifetimes.payloads),
            keys: before(Some(Lifetimes::KEYS)),
            lines: before(lifetimes.lines),
            voice: before(lifetimes.voice),
        }
    }
}

/// One step of removing: what one transaction removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    Payloads(Vec<EventSeq>),
    /// The contents of runs, by their turns and numbers.
    Contents(Vec<(TurnId, u32)>),
    /// What events quote, and their payloads.
    Quotes(Vec<EventSeq>),
    /// The sounds of spoken words of turns: the recordings of voice notes, and what answers sounded like. What refers to them stays.
    Sounds(Vec<TurnId>),
    /// Turns with everything about them, and the lines of the gateway's own log about them. Of their events the keys stay. A conversation without turns goes with its last
    /// one.
    Turns(Vec<TurnId>),
    /// The rest about a person without turns: lines of the gateway's own log and answers to requests that name them,
    /// the platforms' answers to deliveries of removed turns, and settings without a run.
    Mentions(Identity),
    /// Events of which only the key is stored.
    Keys(Vec<EventSeq>),
    /// The entries of the log up to this one.
    Log {
        /// The last one to remove. There is one after it: numbers are not used again.
        through: LogSeq,
        entries: u32,
    },
    /// The lines of the gateway's own log up to this one, and the errors that came last in one of them.
    Lines {
        /// The last one to remove.
        through: LineId,
        lines: u32,
    },
    /// Pages that removed rows left free: the file shrinks by these.
    Pages(u32),
}

/// The number of rows that are past their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpiredRows {
    pub turns: u64,
    pub payloads: u64,
    pub contents: u64,
    pub keys: u64,
    pub log: u64,
    /// Lines of the gateway's own log.
    pub lines: u64,
    /// Sounds of spoken words.
    pub sounds: u64,
}

/// The size of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStats {
    /// The size of the database in bytes.
    pub bytes: u64,
    /// How many of these bytes removed rows left free.
    pub free_bytes: u64,
    /// The number of rows by table.
    pub rows: BTreeMap<String, u64>,
    pub oldest_turn: Option<Timestamp>,
    /// The rows that are past their time.
    pub expired: ExpiredRows,
}
