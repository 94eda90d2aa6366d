//! Positions of lines among all, and of ids in the order of their times.

use rejoinder_core::{Speaker, Timestamp, TurnId, store::TurnSeq};
use uuid::Uuid;

/// How many characters of a line are indexed: the writer must not be busy with one line for long.
pub(crate) const LONGEST: u32 = 50_000;

/// The position of a line among all, and its rowid in the index.
pub(crate) const fn position(turn: TurnSeq, speaker: Speaker) -> i64 {
    turn << 2
        | match speaker {
            Speaker::Person => 0,
            Speaker::Agent => 1,
            Speaker::Gateway => 2,
        }
}

pub(crate) const fn speaker(position: i64) -> Speaker {
    match position & 3 {
        0 => Speaker::Person,
        1 => Speaker::Agent,
        _ => Speaker::Gateway,
    }
}

/// An id below those of all turns that were accepted at this time or later. An id holds when it was made, which is after its
/// event was received; an hour is for clocks that differ.
pub(crate) fn first_id(since: Timestamp) -> Uuid {
    let millis = u128::try_from(since.as_millis() - 3_600_000).unwrap_or(0);
    Uuid::from_u128(millis << 80)
}

/// The id to start after; for `None` the nil id, which is below all others.
pub(crate) fn id_after(after: Option<TurnId>) -> Uuid {
    after.map_or(Uuid::nil(), TurnId::as_uuid)
}
