//! Inserts new events, and the turns that they open.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use rejoinder_core::{
    ConversationId, ConversationRef, InboundEvent, SessionId, StoreError, Timestamp, TurnId,
    store::{EarlierMessage, NewEvent, NewTurn, RunStart, Stored, TurnSeq},
};
use sqlx::{Row, SqliteConnection};
use uuid::Uuid;

use super::{
    lines::{self, Touched},
    rows::Statement,
    runs,
    sessions::INSERT_SESSIONS,
};
use crate::sqlite::{
    error::store_error,
    stored::{Details, ObligationColumns},
};

/// Inserts events that change no earlier rows, all at once.
pub(super) async fn all(connection: &mut SqliteConnection, events: &[&NewEvent]) -> Result<Vec<Stored>, StoreError> {
    let rows = events.iter().filter(|new| !new.only_if_known);
    let rows: Vec<EventRow> = rows.map(|new| EventRow { new, has_content: new.turn.is_some() }).collect();
    let mut inserted = insert_events(connection, &rows).await?.into_iter();
    let is_new: Vec<bool> =
        events.iter().map(|new| !new.only_if_known && inserted.next().is_some_and(|is_new| is_new)).collect();

    let new = events.iter().zip(&is_new).filter(|(_, is_new)| **is_new).map(|(event, _)| *event);
    let turns: Vec<(&NewEvent, &NewTurn)> =
        new.filter_map(|event| event.turn.as_ref().map(|turn| (event, turn))).collect();
    let sessions = sessions(connection, &turns).await?;
    let mut seqs = open(connection, &turns, &sessions).await?;

    let known = events.iter().zip(&is_new).filter(|(_, is_new)| !**is_new).map(|(event, _)| *event);
    let mut duplicates = duplicates(connection, &known.collect::<Vec<_>>()).await?;

    let stored = events.iter().zip(is_new).map(|(event, is_new)| match &event.turn {
        _ if !is_new => duplicates.pop_front().expect("every event has its result"),
        None => Stored::Kept,
        Some(_) => {
            let current = &sessions[&event.event.conversation];
            Stored::Turn {
                seq: seqs.next().expect("every turn has its place"),
                conversation: current.conversation,
                session: current.session,
                has_history: current.has_history,
            }
        }
    });
    Ok(stored.collect())
}

/// Inserts an event that changes a turn. Returns whether it is new.
pub(super) async fn change(connection: &mut SqliteConnection, new: &NewEvent) -> Result<bool, StoreError> {
    let is_new = insert_events(connection, &[EventRow { new, has_content: true }]).await?;
    Ok(is_new == [true])
}

/// An event to insert.
struct EventRow<'a> {
    new: &'a NewEvent,
    /// Whether more than its key and its payload is stored.
    has_content: bool,
}

/// Inserts the events that are new. Returns for each event whether it was.
async fn insert_events(connection: &mut SqliteConnection, events: &[EventRow<'_>]) -> Result<Vec<bool>, StoreError> {
    let answers = INSERT_EVENTS
        .answers(connection, events, |EventRow { new, has_content }, values| {
            let event = &new.event;
            values.id(new.id.as_uuid());
            if *has_content {
                values.address(&event.conversation);
            } else {
                values.add(event.conversation.channel.as_str()).add("").add("");
            }
            values
                .add(&*event.external_id)
                .add(event.revision)
                .add(new.turn.as_ref().map(|turn| turn.id.as_uuid()))
                .add(has_content.then_some(&*event.text))
                .json_maybe(has_content.then(|| Details::of(event)).as_ref())
                .add(Some(&*event.raw).filter(|raw| !raw.is_empty()))
                .at(event.received_at);
        })
        .await?;
    let mut inserted = HashSet::with_capacity(events.len());
    for row in answers {
        inserted.insert(row.try_get::<Uuid, _>(0).map_err(store_error)?);
    }
    // Of two equal events in one batch, the first is new.
    Ok(events.iter().map(|row| inserted.remove(&row.new.id.as_uuid())).collect())
}

/// The stored results of events that were accepted before, and of those that were only looked for, in order.
async fn duplicates(connection: &mut SqliteConnection, events: &[&NewEvent]) -> Result<VecDeque<Stored>, StoreError> {
    let numbered: Vec<(i64, &NewEvent)> = (0..).zip(events.iter().copied()).collect();
    let answers = SELECT_DUPLICATES
        .answers(connection, &numbered, |(number, new), values| {
            let event = &new.event;
            let channel = event.conversation.channel.as_str();
            values.add(*number).add(channel).add(&*event.external_id).add(event.revision);
        })
        .await?;
    let duplicate = |row: &sqlx::sqlite::SqliteRow| {
        let turn: Option<Uuid> = row.try_get(1)?;
        let (text, sender): (Option<String>, Option<String>) = (row.try_get(2)?, row.try_get(3)?);
        let message = text.zip(sender).map(|(text, sender)| EarlierMessage { text, sender });
        Ok((row.try_get::<i64, _>(0)?, Stored::Duplicate { turn: turn.map(TurnId::from), message }))
    };
    let mut found: HashMap<i64, Stored> =
        answers.iter().map(|row| duplicate(row).map_err(store_error)).collect::<Result<_, _>>()?;
    let stored = numbered.iter().map(|(number, new)| match found.remove(number) {
        Some(stored) => Ok(stored),
        None if new.only_if_known => Ok(Stored::Unknown),
        None => Err(StoreError::Failed("an event was neither inserted nor found".to_owned())),
    });
    stored.collect()
}

/// A conversation and its current session.
struct CurrentSession {
    conversation: ConversationId,
    session: SessionId,
    has_history: bool,
}

/// Finds the conversations of turns, and creates the missing ones.
async fn sessions<'a>(
    connection: &mut SqliteConnection,
    turns: &[(&'a NewEvent, &'a NewTurn)],
) -> Result<HashMap<&'a ConversationRef, CurrentSession>, StoreError> {
    let mut first = HashMap::with_capacity(turns.len());
    let mut refs: Vec<(i64, &ConversationRef)> = Vec::with_capacity(turns.len());
    for (event, turn) in turns {
        first.entry(&event.event.conversation).or_insert_with(|| {
            refs.push((i64::try_from(refs.len()).unwrap_or(i64::MAX), &event.event.conversation));
            (event.event.received_at, *turn)
        });
    }
    let answers = SELECT_CURRENT_SESSIONS
        .answers(connection, &refs, |(number, conversation), values| {
            values.add(*number);
            values.address(conversation);
        })
        .await?;

    let mut known: HashMap<usize, ConversationId> = HashMap::new();
    let mut sessions = HashMap::with_capacity(refs.len());
    for row in answers {
        let index = usize::try_from(row.try_get::<i64, _>(0).map_err(store_error)?).unwrap_or(usize::MAX);
        let conversation = row.try_get::<Uuid, _>(1).map_err(store_error)?.into();
        let session: Option<Uuid> = row.try_get(2).map_err(store_error)?;
        let has_history = row.try_get(3).map_err(store_error)?;
        known.insert(index, conversation);
        if let (Some(session), Some((_, reference))) = (session, refs.get(index)) {
            sessions.insert(*reference, CurrentSession { conversation, session: session.into(), has_history });
        }
    }

    let mut opened: Vec<(ConversationId, &ConversationRef, SessionId, Timestamp)> = Vec::new();
    for (index, (_, reference)) in refs.iter().enumerate() {
        if !sessions.contains_key(reference) {
            let (at, turn) = first[reference];
            let conversation = known.get(&index).copied().unwrap_or(turn.conversation);
            opened.push((conversation, reference, turn.session, at));
            sessions.insert(*reference, CurrentSession { conversation, session: turn.session, has_history: false });
        }
    }
    OPEN_CONVERSATIONS
        .on_each(connection, "conversations", &opened, |(conversation, reference, session, at), values| {
            values.id(conversation.as_uuid());
            values.address(reference);
            values.id(session.as_uuid()).at(*at);
        })
        .await?;
    INSERT_SESSIONS
        .on_each(connection, "sessions", &opened, |(conversation, _, session, at), values| {
            values.id(session.as_uuid()).id(conversation.as_uuid()).at(*at);
        })
        .await?;
    Ok(sessions)
}

/// Inserts the turns, their obligations and the runs that start at once. Returns the places of the turns in the order
/// of acceptance.
async fn open(
    connection: &mut SqliteConnection,
    turns: &[(&NewEvent, &NewTurn)],
    sessions: &HashMap<&ConversationRef, CurrentSession>,
) -> Result<impl Iterator<Item = TurnSeq> + use<>, StoreError> {
    let last: TurnSeq = if turns.is_empty() {
        0
    } else {
        let last = sqlx::query_scalar("select coalesce(max(seq), 0) from turns");
        last.fetch_one(&mut *connection).await.map_err(store_error)?
    };
    let placed: Vec<(TurnSeq, &NewEvent, &NewTurn)> =
        (last + 1..).zip(turns).map(|(seq, (event, turn))| (seq, *event, *turn)).collect();
    INSERT_TURNS
        .on_each(connection, "turns", &placed, |(seq, event, turn), values| {
            let current = &sessions[&event.event.conversation];
            values
                .add(*seq)
                .id(turn.id.as_uuid())
                .id(event.id.as_uuid())
                .id(current.conversation.as_uuid())
                .id(current.session.as_uuid());
            runs::handler(values, &turn.handler);
            values.at(event.event.received_at).add(event.event.conversation.channel.as_str());
        })
        .await?;
    INSERT_OBLIGATIONS
        .on_each(connection, "obligations", &placed, |(seq, event, turn), values| {
            let current = &sessions[&event.event.conversation];
            let ObligationColumns { owed, state, work, wake_at, overdue_at, ended } =
                ObligationColumns::of(&turn.obligation);
            values
                .add(*seq)
                .id(turn.id.as_uuid())
                .id(current.conversation.as_uuid())
                .add(event.event.conversation.channel.as_str())
                .add(event.event.person())
                .add(turn.handler.agent().map_or("", AsRef::as_ref))
                .add(lines::rank(*seq, owed))
                .add(owed)
                .add(state)
                .add(work)
                .at_maybe(wake_at)
                .at_maybe(overdue_at)
                .at_maybe(ended.then_some(event.event.received_at))
                .json(&turn.obligation);
        })
        .await?;
    let waiting = turns.iter().filter(|(_, turn)| turn.obligation.is_waiting());
    let touched = waiting.map(|(event, _)| {
        let conversation = sessions[&event.event.conversation].conversation.as_uuid();
        Touched { conversation, place: None }
    });
    lines::settle(connection, &touched.collect::<Vec<_>>()).await?;
    let started: Vec<&RunStart> = turns.iter().filter_map(|(_, turn)| turn.run.as_ref()).collect();
    runs::start(connection, &started).await?;
    Ok((last + 1..).take(turns.len()))
}

static INSERT_EVENTS: Statement = Statement::new(
    "with r (id, channel, chat, thread, external_id, revision, turn_id, text, details, raw, received_at) as ({rows})
    insert into events
        (id, channel, chat, thread, external_id, revision, turn_id, text, details, raw, received_at)
    select * from r where id is not null
    on conflict do nothing
    returning id",
);

static SELECT_DUPLICATES: Statement = Statement::new(
    "with r (number, channel, external_id, revision) as ({rows})
    select r.number, e.turn_id, e.text, json_extract(e.details, '$.sender.id')
    from r cross join events as e
        on e.channel = r.channel and e.external_id = r.external_id and e.revision = r.revision",
);

static SELECT_CURRENT_SESSIONS: Statement = Statement::new(
    "with r (number, channel, chat, thread) as ({rows})
    select r.number, c.id, c.session_id, exists (select 1 from transcript as t where t.session_id = c.session_id)
    from r cross join conversations as c on c.channel = r.channel and c.chat = r.chat and c.thread = r.thread
        and c.succeeded_by is null",
);

static OPEN_CONVERSATIONS: Statement = Statement::new(
    "with r (id, channel, chat, thread, session_id, created_at) as ({rows})
    insert into conversations (id, channel, chat, thread, session_id, created_at)
    select * from r where id is not null
    on conflict (channel, chat, thread) where succeeded_by is null do update set session_id = excluded.session_id",
);

static INSERT_TURNS: Statement = Statement::new(
    "with r (seq, id, event_id, conversation_id, session_id, agent, command, accepted_at, channel) as ({rows})
    insert into turns (seq, id, event_id, conversation_id, session_id, agent, command, accepted_at, channel)
    select * from r where seq is not null",
);

static INSERT_OBLIGATIONS: Statement = Statement::new(
    "with r (seq, turn_id, conversation_id, channel, person, agent, rank, owed, state, work, wake_at, overdue_at, ended_at,
        body) as ({rows})
    insert into obligations (seq, turn_id, conversation_id, channel, person, agent, rank, owed, state, work, wake_at,
        overdue_at, ended_at, body, version)
    select *, 1 from r where seq is not null",
);

/// Inserts only the key of an event.
pub(super) async fn key(connection: &mut SqliteConnection, new: &NewEvent) -> Result<Stored, StoreError> {
    let event = InboundEvent { raw: String::new(), ..(*new.event).clone() };
    one(connection, &NewEvent { id: new.id, event: Arc::new(event), turn: None, only_if_known: false }).await
}

/// Inserts one event; see [`all`].
pub(super) async fn one(connection: &mut SqliteConnection, new: &NewEvent) -> Result<Stored, StoreError> {
    let stored = all(connection, &[new]).await?;
    stored.into_iter().next().ok_or_else(|| StoreError::Failed("an event has no result".to_owned()))
}
