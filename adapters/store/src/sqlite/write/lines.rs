//! The lines of conversations with waiting turns: which turn is the first of its conversation, and where the
//! conversation stands among those of its channel. Only rows that wait have a part in them.

use std::collections::{HashMap, HashSet};

use rejoinder_core::{
    StoreError,
    store::{AMBIENT_LAG, PERSON_STEP, TurnSeq},
};
use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};
use uuid::Uuid;

use super::rows::Statement;
use crate::sqlite::error::store_error;

/// The order of a turn within its conversation while it waits.
pub(super) const fn rank(seq: TurnSeq, owed: bool) -> i64 {
    if owed { seq } else { seq + AMBIENT_LAG }
}

/// A conversation in which a turn began or ceased to wait.
pub(super) struct Touched {
    pub(super) conversation: Uuid,
    /// The place that the conversation had with the turn that ceased to wait.
    pub(super) place: Option<i64>,
}

/// The turn of a conversation that runs next.
struct First {
    turn: Uuid,
    conversation: Uuid,
    rank: i64,
    person: Person,
    /// Whether it was the first one before.
    is_placed: bool,
}

/// The sender of turns on a channel, of those that are owed an answer or of the others.
#[derive(PartialEq, Eq, Hash)]
struct Person {
    channel: String,
    name: String,
    owed: bool,
}

/// Gives the first waiting turn of each conversation its place.
pub(super) async fn settle(connection: &mut SqliteConnection, touched: &[Touched]) -> Result<(), StoreError> {
    if touched.is_empty() {
        return Ok(());
    }
    let mut before: HashMap<Uuid, Option<i64>> = HashMap::with_capacity(touched.len());
    for Touched { conversation, place } in touched {
        let known = before.entry(*conversation).or_default();
        *known = (*known).max(*place);
    }
    let mut conversations: Vec<Uuid> = before.keys().copied().collect();
    let answers = SELECT_FIRST
        .answers(connection, &conversations, |conversation, values| {
            values.id(*conversation);
        })
        .await?;
    let mut firsts: Vec<First> = answers.iter().map(first).collect::<Result<_, _>>().map_err(store_error)?;
    let is_settled: HashSet<Uuid> =
        firsts.iter().filter(|first| first.is_placed).map(|first| first.conversation).collect();
    conversations.retain(|conversation| !is_settled.contains(conversation));
    CLEAR
        .on(connection, &conversations, |conversation, values| {
            values.id(*conversation);
        })
        .await?;
    firsts.retain(|first| !first.is_placed);
    firsts.sort_unstable_by_key(|first| first.rank);
    let mut last = last_places(connection, &firsts).await?;
    let placed = firsts.iter().map(|first| {
        let own = before.get(&first.conversation).copied().flatten();
        let last = last.entry(&first.person).or_default();
        let after = [own, *last].into_iter().flatten().map(|place| place + PERSON_STEP);
        let place = after.fold(first.rank, i64::max);
        *last = Some(place);
        (first.turn, place)
    });
    let placed: Vec<(Uuid, i64)> = placed.collect();
    PLACE
        .on_each(connection, "places", &placed, |(turn, place), values| {
            values.id(*turn).add(*place);
        })
        .await
}

fn first(row: &SqliteRow) -> Result<First, sqlx::Error> {
    Ok(First {
        turn: row.try_get("turn_id")?,
        conversation: row.try_get("conversation_id")?,
        rank: row.try_get("rank")?,
        person: Person { channel: row.try_get("channel")?, name: row.try_get("person")?, owed: row.try_get("owed")? },
        is_placed: row.try_get::<Option<i64>, _>("place")?.is_some(),
    })
}

/// For each person the last place of a conversation that waits with a turn of theirs.
async fn last_places<'a>(
    connection: &mut SqliteConnection,
    firsts: &'a [First],
) -> Result<HashMap<&'a Person, Option<i64>>, StoreError> {
    let people: HashSet<&Person> = firsts.iter().map(|first| &first.person).collect();
    let people: Vec<(i64, &Person)> = (0..).zip(people).collect();
    let answers = SELECT_LAST
        .answers(connection, &people, |(number, person), values| {
            values.add(*number).add(&*person.channel).add(&*person.name).add(person.owed);
        })
        .await?;
    let mut last = HashMap::with_capacity(people.len());
    for row in answers {
        let number = usize::try_from(row.try_get::<i64, _>(0).map_err(store_error)?).unwrap_or(usize::MAX);
        if let Some((_, person)) = people.get(number) {
            last.insert(*person, row.try_get(1).map_err(store_error)?);
        }
    }
    Ok(last)
}

static SELECT_FIRST: Statement = Statement::new(
    "with r (id) as ({rows})
    select o.turn_id, o.conversation_id, o.rank, o.channel, o.person, o.owed, o.place
    from r cross join obligations as o on o.turn_id = (
        select w.turn_id from obligations as w indexed by obligations_waiting
        where w.work = 'waiting' and w.conversation_id = r.id order by w.rank limit 1)",
);

static CLEAR: Statement = Statement::new(
    "with r (id) as ({rows})
    update obligations set place = null where place is not null and conversation_id in (select id from r)",
);

static SELECT_LAST: Statement = Statement::new(
    "with r (number, channel, person, owed) as ({rows})
    select r.number, (
        select max(o.place) from obligations as o indexed by obligations_of_person
        where o.work = 'waiting' and o.channel = r.channel and o.person = r.person and o.owed = r.owed)
    from r where r.number is not null",
);

static PLACE: Statement = Statement::new(
    "with r (turn_id, place) as ({rows})
    update obligations set place = r.place from r where obligations.turn_id = r.turn_id",
);
