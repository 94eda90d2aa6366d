//! Inserts new events, and the turns that they open.

use std::collections::{HashMap, HashSet, VecDeque};

use rejoinder_core::{
    ConversationId, ConversationRef, SessionId, StoreError, Timestamp, TurnId,
    store::{NewEvent, NewTurn, RunStart, Stored},
};
use sqlx::{Row, SqliteConnection};
use uuid::Uuid;

use super::{rows::Statement, runs, sessions::INSERT_SESSIONS};
use crate::sqlite::{
    error::store_error,
    stored::{Details, ObligationColumns},
};

/// Inserts events that change no earlier rows, all at once.
pub(super) async fn all(connection: &mut SqliteConnection, events: &[&NewEvent]) -> Result<Vec<Stored>, StoreError> {
    let is_new = insert_events(connection, events).await?;

    let new = events.iter().zip(&is_new).filter(|(_, is_new)| **is_new).map(|(event, _)| *event);
    let turns: Vec<(&NewEvent, &NewTurn)> =
        new.filter_map(|event| event.turn.as_ref().map(|turn| (event, turn))).collect();
    let sessions = sessions(connection, &turns).await?;
    open(connection, &turns, &sessions).await?;

    let known = events.iter().zip(&is_new).filter(|(_, is_new)| !**is_new).map(|(event, _)| *event);
    let mut duplicates = duplicates(connection, &known.collect::<Vec<_>>()).await?;

    let stored = events.iter().zip(is_new).map(|(event, is_new)| match &event.turn {
        _ if !is_new => duplicates.pop_front().expect("every duplicate was found"),
        None => Stored::Kept,
        Some(_) => {
            let current = &sessions[&event.event.conversation];
            Stored::Turn {
                conversation: current.conversation,
                session: current.session,
                has_history: current.has_history,
            }
        }
    });
    Ok(stored.collect())
}

/// Inserts the events that are new. Returns for each event whether it was.
async fn insert_events(connection: &mut SqliteConnection, events: &[&NewEvent]) -> Result<Vec<bool>, StoreError> {
    let answers = INSERT_EVENTS
        .answers(connection, events, |new, values| {
            let event = &new.event;
            values.id(new.id.as_uuid());
            values.address(&event.conversation);
            values
                .add(&*event.external_id)
                .add(event.revision)
                .add(new.turn.as_ref().map(|turn| turn.id.as_uuid()))
                .add(&*event.text)
                .json(&Details::of(event))
                .add(&*event.raw)
                .at(event.received_at);
        })
        .await?;
    let mut inserted = HashSet::with_capacity(events.len());
    for row in answers {
        inserted.insert(row.try_get::<Uuid, _>(0).map_err(store_error)?);
    }
    // Of two equal events in one batch, the first is new.
    Ok(events.iter().map(|event| inserted.remove(&event.id.as_uuid())).collect())
}

/// The stored results of events that were accepted before, in order.
async fn duplicates(connection: &mut SqliteConnection, events: &[&NewEvent]) -> Result<VecDeque<Stored>, StoreError> {
    let numbered: Vec<(i64, &NewEvent)> = (0..).zip(events.iter().copied()).collect();
    let answers = SELECT_DUPLICATES
        .answers(connection, &numbered, |(number, new), values| {
            let event = &new.event;
            let channel = event.conversation.channel.as_str();
            values.add(*number).add(channel).add(&*event.external_id).add(event.revision);
        })
        .await?;
    if answers.len() != events.len() {
        return Err(StoreError::Failed("an event was neither inserted nor found".to_owned()));
    }
    let duplicate = |row: &sqlx::sqlite::SqliteRow| {
        let turn: Option<Uuid> = row.try_get(0)?;
        Ok(Stored::Duplicate { turn: turn.map(TurnId::from), text: row.try_get(1)?, sender: row.try_get(2)? })
    };
    answers.iter().map(|row| duplicate(row).map_err(store_error)).collect()
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

/// Inserts the turns, their obligations and the runs that start at once.
async fn open(
    connection: &mut SqliteConnection,
    turns: &[(&NewEvent, &NewTurn)],
    sessions: &HashMap<&ConversationRef, CurrentSession>,
) -> Result<(), StoreError> {
    INSERT_TURNS
        .on_each(connection, "turns", turns, |(event, turn), values| {
            let current = &sessions[&event.event.conversation];
            values
                .id(turn.id.as_uuid())
                .id(event.id.as_uuid())
                .id(current.conversation.as_uuid())
                .id(current.session.as_uuid());
            runs::handler(values, &turn.handler);
            values.at(event.event.received_at).add(event.event.conversation.channel.as_str());
        })
        .await?;
    INSERT_OBLIGATIONS
        .on_each(connection, "obligations", turns, |(event, turn), values| {
            let current = &sessions[&event.event.conversation];
            let ObligationColumns { owed, state, work, wake_at, ended } = ObligationColumns::of(&turn.obligation);
            values
                .id(turn.id.as_uuid())
                .id(current.conversation.as_uuid())
                .add(owed)
                .add(state)
                .add(work)
                .at_maybe(wake_at)
                .at_maybe(ended.then_some(event.event.received_at))
                .json(&turn.obligation);
        })
        .await?;
    let started: Vec<&RunStart> = turns.iter().filter_map(|(_, turn)| turn.run.as_ref()).collect();
    runs::start(connection, &started).await
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
    select e.turn_id, e.text, json_extract(e.details, '$.sender.id')
    from r cross join events as e
        on e.channel = r.channel and e.external_id = r.external_id and e.revision = r.revision
    order by r.number",
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
    "with r (id, event_id, conversation_id, session_id, agent, command, accepted_at, channel) as ({rows})
    insert into turns (id, event_id, conversation_id, session_id, agent, command, accepted_at, channel)
    select * from r where id is not null",
);

static INSERT_OBLIGATIONS: Statement = Statement::new(
    "with r (turn_id, conversation_id, owed, state, work, wake_at, ended_at, body) as ({rows})
    insert into obligations (turn_id, conversation_id, version, owed, state, work, wake_at, ended_at, body)
    select turn_id, conversation_id, 1, owed, state, work, wake_at, ended_at, body from r where turn_id is not null",
);

/// Inserts one event; see [`all`].
pub(super) async fn one(connection: &mut SqliteConnection, new: &NewEvent) -> Result<Stored, StoreError> {
    let stored = all(connection, &[new]).await?;
    stored.into_iter().next().ok_or_else(|| StoreError::Failed("an event has no result".to_owned()))
}
