//! The lines of conversations with waiting turns: which turn is the first of its conversation, and where the
//! conversation stands among those of its channel. Only rows that wait have a part in them.
//!
//! The conversation's row is locked while its line changes. A transaction that locks turns in it, too, locks it before them.

use rejoinder_core::{StoreError, store::rules};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::rows::{self, Transaction};
use crate::{
    postgres::values::{List, statement},
    records::columns::{Columns, record},
};

/// Locks conversations, in the order of their ids.
pub(super) async fn lock(transaction: &mut Transaction<'_>, conversations: Vec<Uuid>) -> Result<(), StoreError> {
    rows::change(transaction, statement!(LOCK, List(conversations))).await.map(drop)
}

/// The place of a turn that is about to be inserted and to wait; `None` if others of its conversation, which is locked, run before
/// it. If a placed one runs after it, [`settle`] must follow.
pub(super) async fn position_of(
    transaction: &mut Transaction<'_>,
    conversation: Uuid,
    turn: &Candidate<'_>,
) -> Result<Option<i64>, StoreError> {
    match rows::one(transaction, statement!(SELECT_PLACED, conversation), |row| row.value::<Uuid>("id")).await? {
        Some(_) => Ok(None),
        None => position(transaction, turn, None).await.map(Some),
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
pub(super) async fn settle(
    transaction: &mut Transaction<'_>,
    conversation: Uuid,
    had: Option<i64>,
) -> Result<(), StoreError> {
    lock(transaction, vec![conversation]).await?;
    loop {
        let first = rows::one(transaction, statement!(SELECT_FIRST, conversation), first).await?;
        let Some(First { turn, rank, channel, person, owed, is_placed: false }) = first else { return Ok(()) };
        rows::change(transaction, statement!(CLEAR, conversation)).await?;
        let candidate = Candidate { rank, channel: &channel, person: &person, owed };
        let position = position(transaction, &candidate, had).await?;
        // If another transaction has let it run or end meanwhile, the next one is the first.
        if rows::change(transaction, statement!(PLACE, turn, position)).await? > 0 {
            return Ok(());
        }
    }
}

async fn position(
    transaction: &mut Transaction<'_>,
    turn: &Candidate<'_>,
    had: Option<i64>,
) -> Result<i64, StoreError> {
    let Candidate { rank, channel, person, owed } = turn;
    let last = rows::one(transaction, statement!(SELECT_LAST, channel, person, owed), |row| row.value("last")).await?;
    Ok(rules::position(*rank, had, last))
}

fn first(row: &PgRow) -> Result<First, StoreError> {
    Ok(record!(row => First { turn: id, rank, channel, person, owed, is_placed }))
}

const LOCK: &str = "select id from conversations where id = any($1) order by id for no key update";

const SELECT_FIRST: &str = "
    select id, rank, channel, person, owed, place is not null as is_placed from turns
    where work = 'waiting' and conversation_id = $1 order by rank limit 1";

const SELECT_PLACED: &str = "select id from turns where place is not null and conversation_id = $1";

/// The last place of a conversation that waits with a turn of a person: the order and `place is not null` lead to the end of an index,
/// past the turns without a place.
const SELECT_LAST: &str = "
    select place as last from turns
    where work = 'waiting' and channel = $1 and person = $2 and owed = $3 and place is not null
    order by place desc limit 1";

const CLEAR: &str = "update turns set place = null where place is not null and conversation_id = $1";

/// With `work = 'waiting'` it might be planned to read an index of all waiting turns.
const PLACE: &str = "update turns set place = $2 where id = $1 and work is not distinct from 'waiting'";
