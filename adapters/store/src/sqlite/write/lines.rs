//! The lines of conversations with waiting turns: which turn is the first of its conversation, and where the
//! conversation stands among those of its channel. Only rows that wait have a part in them.

use rejoinder_core::{
    StoreError,
    store::{AMBIENT_LAG, PERSON_STEP, TurnSeq},
};
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::rows;

/// The order of a turn within its conversation while it waits.
pub(super) const fn rank(seq: TurnSeq, owed: bool) -> i64 {
    if owed { seq } else { seq + AMBIENT_LAG }
}

/// The turn of a conversation that runs next.
struct First {
    turn: Uuid,
    rank: i64,
    channel: String,
    person: String,
    owed: bool,
    /// Whether it was the first one before.
    is_placed: bool,
}

/// Gives the first waiting turn of a conversation its place, after a turn began or ceased to wait in it.
pub(super) fn settle(connection: &Connection, conversation: Uuid) -> Result<(), StoreError> {
    let first = rows::one(connection, SELECT_FIRST, [conversation], first)?;
    if first.as_ref().is_some_and(|first| first.is_placed) {
        return Ok(());
    }
    let placed = |row: &Row<'_>| Ok((row.get::<_, Uuid>(0)?, row.get::<_, i64>(1)?, row.get::<_, bool>(2)?));
    let earlier = rows::one(connection, SELECT_PLACED, [conversation], placed)?;
    if let Some((turn, ..)) = earlier {
        rows::change_one(connection, "places", PLACE, params![turn, None::<i64>])?;
    }
    let Some(First { turn, rank, channel, person, owed, .. }) = first else { return Ok(()) };
    // The conversation had its turn at this place.
    let had = earlier.and_then(|(_, place, is_waiting)| (!is_waiting).then_some(place));
    let last = rows::one(connection, SELECT_LAST, params![channel, person, owed], |row| row.get(0))?.flatten();
    let after = [had, last].into_iter().flatten().map(|place: i64| place + PERSON_STEP);
    rows::change_one(connection, "places", PLACE, params![turn, after.fold(rank, i64::max)])
}

fn first(row: &Row<'_>) -> rusqlite::Result<First> {
    Ok(First {
        turn: row.get(0)?,
        rank: row.get(1)?,
        channel: row.get(2)?,
        person: row.get(3)?,
        owed: row.get(4)?,
        is_placed: row.get(5)?,
    })
}

const SELECT_FIRST: &str = "
    select turn_id, rank, channel, person, owed, place is not null from obligations indexed by obligations_waiting
    where work = 'waiting' and conversation_id = ? order by rank limit 1";

const SELECT_PLACED: &str = "
    select turn_id, place, work is 'waiting' from obligations indexed by obligations_first
    where place is not null and conversation_id = ?";

/// The last place of a conversation that waits with a turn of a person.
const SELECT_LAST: &str = "
    select max(place) from obligations indexed by obligations_of_person
    where work = 'waiting' and channel = ? and person = ? and owed = ?";

const PLACE: &str = "update obligations set place = ?2 where turn_id = ?1";
