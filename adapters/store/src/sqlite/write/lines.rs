//! The lines of conversations with waiting turns: which turn is the first of its conversation, and where the
//! conversation stands among those of its channel. Only rows that wait have a part in them.

use rejoinder_core::{StoreError, store::rules};
use rusqlite::{Row, params};
use uuid::Uuid;

use super::rows::{self, Transaction};

/// The place of a turn that is about to be inserted and to wait; `None` if others of its conversation run before it. If a
/// placed one runs after it, [`settle`] must follow.
pub(super) fn position_of(
    transaction: &Transaction<'_>,
    conversation: Uuid,
    turn: &Candidate<'_>,
) -> Result<Option<i64>, StoreError> {
    match rows::one(transaction, SELECT_PLACED, [conversation], |row| row.get::<_, Uuid>(0))? {
        Some(_) => Ok(None),
        None => position(transaction, turn, None).map(Some),
    }
}

/// A turn that may be given a place.
pub(super) struct Candidate<'a> {
    pub(super) rank: i64,
    pub(super) channel: &'a str,
    pub(super) person: &'a str,
    pub(super) owed: bool,
}

/// The turn of a conversation that runs next.
struct First {
    turn: Uuid,
    rank: i64,
    channel: String,
    person: String,
    owed: bool,
    is_placed: bool,
}

/// Gives the first waiting turn of a conversation its place, after a turn began or ceased to wait in it. `had` is the place
/// at which the conversation had its turn just now.
pub(super) fn settle(transaction: &Transaction<'_>, conversation: Uuid, had: Option<i64>) -> Result<(), StoreError> {
    let first = rows::one(transaction, SELECT_FIRST, [conversation], first)?;
    let Some(First { turn, rank, channel, person, owed, is_placed: false }) = first else { return Ok(()) };
    rows::change(transaction, CLEAR, [conversation])?;
    let candidate = Candidate { rank, channel: &channel, person: &person, owed };
    let position = position(transaction, &candidate, had)?;
    rows::change_one(transaction, "places", PLACE, params![turn, position])
}

fn position(transaction: &Transaction<'_>, turn: &Candidate<'_>, had: Option<i64>) -> Result<i64, StoreError> {
    let Candidate { rank, channel, person, owed } = turn;
    let last = rows::one(transaction, SELECT_LAST, params![channel, person, owed], |row| row.get(0))?.flatten();
    Ok(rules::position(*rank, had, last))
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
    select id, rank, channel, person, owed, place is not null from turns indexed by turns_waiting
    where work = 'waiting' and conversation_id = ? order by rank limit 1";

const SELECT_PLACED: &str = "
    select id from turns indexed by turns_first where place is not null and conversation_id = ?";

/// The last place of a conversation that waits with a turn of a person.
const SELECT_LAST: &str = "
    select max(place) from turns indexed by turns_of_person
    where work = 'waiting' and channel = ? and person = ? and owed = ?";

const CLEAR: &str = "
    update turns indexed by turns_first set place = null where place is not null and conversation_id = ?";

const PLACE: &str = "update turns set place = ?2 where id = ?1";
