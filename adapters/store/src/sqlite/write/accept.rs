//! Accepting: deduplicated, kept, and opened as turns, in one step.

use std::collections::{HashMap, HashSet, VecDeque};

use rejoinder_core::{
    ConversationId, ConversationRef, EventId, SessionId, StoreError, Timestamp, TurnId,
    store::{CursorMove, NewEvent, NewTurn, RunStart, Stored},
};
use serde::Serialize;
use sqlx::{Row, SqliteConnection};
use uuid::Uuid;

use super::{Ref, answers, commit, each_row, rows};
use crate::sqlite::{
    error::store_error,
    stored::{Details, ObligationColumns},
};

/// Accepts the events of several requests, each with the cursor that covers them, in order.
pub(super) async fn all(
    connection: &mut SqliteConnection,
    requests: &[(&[NewEvent], Option<&CursorMove>)],
) -> Result<Vec<Vec<Stored>>, StoreError> {
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let events: Vec<&NewEvent> = requests.iter().flat_map(|(events, _)| events.iter()).collect();
    let cursors: Vec<Cursor<'_>> = requests.iter().filter_map(|(_, cursor)| cursor.map(Cursor::of)).collect();

    let event_rows: Vec<Event<'_>> = events.iter().map(|event| Event::of(event)).collect();
    let mut inserted = HashSet::with_capacity(events.len());
    for row in answers(connection, INSERT_EVENTS, &event_rows).await? {
        inserted.insert(row.try_get::<Uuid, _>(0).map_err(store_error)?);
    }
    // The same event twice in one batch is new the first time.
    let is_new: Vec<bool> = events.iter().map(|event| inserted.remove(&event.id.as_uuid())).collect();

    let new = events.iter().zip(&is_new).filter(|(_, is_new)| **is_new).map(|(event, _)| *event);
    let turns: Vec<(&NewEvent, &NewTurn)> =
        new.filter_map(|event| event.turn.as_ref().map(|turn| (event, turn))).collect();
    let places = open(connection, &turns).await?;

    let known = events.iter().zip(&is_new).filter(|(_, is_new)| !**is_new).map(|(event, _)| *event);
    let keys: Vec<Key<'_>> = known.map(Key::of).collect();
    let mut duplicates = VecDeque::with_capacity(keys.len());
    for row in answers(connection, SELECT_DUPLICATES, &keys).await? {
        let turn: Option<Uuid> = row.try_get(0).map_err(store_error)?;
        let text = row.try_get(1).map_err(store_error)?;
        duplicates.push_back(Stored::Duplicate { turn: turn.map(TurnId::from), text });
    }
    if duplicates.len() != keys.len() {
        return Err(StoreError::Failed("an event was neither new nor known".to_owned()));
    }
    rows(connection, MOVE_CURSORS, &cursors).await?;

    let mut stored = events.iter().zip(is_new).map(|(event, is_new)| match &event.turn {
        _ if !is_new => duplicates.pop_front().expect("there is one for every such event"),
        None => Stored::Kept,
        Some(_) => {
            let place = &places[&event.event.conversation];
            Stored::Turn { conversation: place.conversation, session: place.session, has_history: place.has_history }
        }
    });
    Ok(requests.iter().map(|(events, _)| stored.by_ref().take(events.len()).collect()).collect())
}

/// A conversation's id, and what is current in it.
struct Place {
    conversation: ConversationId,
    session: SessionId,
    has_history: bool,
}

/// Opens the turns, and the conversations they are in.
async fn open<'a>(
    connection: &mut SqliteConnection,
    turns: &[(&'a NewEvent, &'a NewTurn)],
) -> Result<HashMap<&'a ConversationRef, Place>, StoreError> {
    let mut first: HashMap<&ConversationRef, (&NewEvent, &NewTurn)> = HashMap::with_capacity(turns.len());
    let mut refs = Vec::with_capacity(turns.len());
    for (event, turn) in turns {
        first.entry(&event.event.conversation).or_insert_with(|| {
            refs.push(&event.event.conversation);
            (event, turn)
        });
    }

    let lookups: Vec<Ref<'_>> = refs.iter().map(|conversation| Ref::of(conversation)).collect();
    let mut known: HashMap<usize, ConversationId> = HashMap::new();
    let mut places = HashMap::with_capacity(refs.len());
    for row in answers(connection, SELECT_PLACES, &lookups).await? {
        let index = usize::try_from(row.try_get::<i64, _>(0).map_err(store_error)?).unwrap_or(usize::MAX);
        let conversation = row.try_get::<Uuid, _>(1).map_err(store_error)?.into();
        let session: Option<Uuid> = row.try_get(2).map_err(store_error)?;
        let has_history = row.try_get(3).map_err(store_error)?;
        known.insert(index, conversation);
        if let (Some(session), Some(reference)) = (session, refs.get(index)) {
            places.insert(*reference, Place { conversation, session: session.into(), has_history });
        }
    }

    let mut conversations = Vec::new();
    for (index, reference) in refs.iter().enumerate() {
        if !places.contains_key(reference) {
            let (event, turn) = first[reference];
            let conversation = known.get(&index).copied().unwrap_or(turn.conversation);
            let (session, created_at) = (turn.session, event.event.received_at);
            conversations.push(Conversation { id: conversation, r#ref: Ref::of(reference), session, created_at });
            places.insert(*reference, Place { conversation, session, has_history: false });
        }
    }
    rows(connection, INSERT_CONVERSATIONS, &conversations).await?;
    rows(connection, INSERT_SESSIONS, &conversations).await?;

    let (mut turn_rows, mut obligation_rows, mut run_rows) = (Vec::new(), Vec::new(), Vec::new());
    for (event, turn) in turns {
        let place = &places[&event.event.conversation];
        turn_rows.push(Turn {
            id: turn.id,
            event: event.id,
            conversation: place.conversation,
            session: place.session,
            agent: &turn.agent,
            accepted_at: event.event.received_at,
        });
        obligation_rows.push(Obligation {
            turn: turn.id,
            conversation: place.conversation,
            at: event.event.received_at,
            columns: ObligationColumns::of(&turn.obligation),
        });
        run_rows.extend(turn.run.as_ref().map(|RunStart { turn, number, agent, at }| commit::RunStarted {
            turn: *turn,
            number: *number,
            agent,
            at: *at,
        }));
    }
    each_row(connection, INSERT_TURNS, "turns", &turn_rows).await?;
    each_row(connection, INSERT_OBLIGATIONS, "obligations", &obligation_rows).await?;
    each_row(connection, commit::INSERT_RUNS, "runs", &run_rows).await?;
    Ok(places)
}

#[derive(Serialize)]
struct Event<'a> {
    id: EventId,
    r#ref: Ref<'a>,
    external_id: &'a str,
    revision: i64,
    turn: Option<TurnId>,
    text: &'a str,
    details: Details<'a>,
    raw: &'a str,
    at: Timestamp,
}

impl<'a> Event<'a> {
    fn of(new: &'a NewEvent) -> Self {
        let event = &new.event;
        Self {
            id: new.id,
            r#ref: Ref::of(&event.conversation),
            external_id: &event.external_id,
            revision: event.revision,
            turn: new.turn.as_ref().map(|turn| turn.id),
            text: &event.text,
            details: Details::of(event),
            raw: &event.raw,
            at: event.received_at,
        }
    }
}

const INSERT_EVENTS: &str = "
    insert into events
        (id, channel, chat, thread, external_id, revision, turn_id, text, details, raw, received_at)
    select unhex(value ->> 'id', '-'), value ->> '$.ref.channel', value ->> '$.ref.chat', value ->> '$.ref.thread',
        value ->> 'external_id', value ->> 'revision', unhex(value ->> 'turn', '-'), value ->> 'text',
        value -> 'details', value ->> 'raw', value ->> 'at'
    from json_each(?)
    where true
    on conflict do nothing
    returning id";

/// What an event is deduplicated by.
#[derive(Serialize)]
struct Key<'a> {
    channel: &'a str,
    external_id: &'a str,
    revision: i64,
}

impl<'a> Key<'a> {
    fn of(new: &'a NewEvent) -> Self {
        let event = &new.event;
        Self { channel: event.conversation.channel.as_str(), external_id: &event.external_id, revision: event.revision }
    }
}

const SELECT_DUPLICATES: &str = "
    select e.turn_id, e.text
    from json_each(?) as j cross join events as e
        on e.channel = j.value ->> 'channel'
        and e.external_id = j.value ->> 'external_id'
        and e.revision = j.value ->> 'revision'
    order by j.key";

const SELECT_PLACES: &str = "
    select j.key, c.id, c.session_id, exists (select 1 from transcript as t where t.session_id = c.session_id)
    from json_each(?) as j cross join conversations as c
        on c.channel = j.value ->> 'channel' and c.chat = j.value ->> 'chat' and c.thread = j.value ->> 'thread'";

#[derive(Serialize)]
struct Conversation<'a> {
    id: ConversationId,
    r#ref: Ref<'a>,
    session: SessionId,
    created_at: Timestamp,
}

const INSERT_CONVERSATIONS: &str = "
    insert into conversations (id, channel, chat, thread, session_id, created_at)
    select unhex(value ->> 'id', '-'), value ->> '$.ref.channel', value ->> '$.ref.chat', value ->> '$.ref.thread',
        unhex(value ->> 'session', '-'), value ->> 'created_at'
    from json_each(?)
    where true
    on conflict (channel, chat, thread) do update set session_id = excluded.session_id";

const INSERT_SESSIONS: &str = "
    insert into sessions (id, conversation_id, created_at)
    select unhex(value ->> 'session', '-'), unhex(value ->> 'id', '-'), value ->> 'created_at' from json_each(?)";

#[derive(Serialize)]
struct Turn<'a> {
    id: TurnId,
    event: EventId,
    conversation: ConversationId,
    session: SessionId,
    agent: &'a str,
    accepted_at: Timestamp,
}

const INSERT_TURNS: &str = "
    insert into turns (id, event_id, conversation_id, session_id, agent, accepted_at)
    select unhex(value ->> 'id', '-'), unhex(value ->> 'event', '-'), unhex(value ->> 'conversation', '-'),
        unhex(value ->> 'session', '-'), value ->> 'agent', value ->> 'accepted_at'
    from json_each(?)";

#[derive(Serialize)]
struct Obligation<'a> {
    turn: TurnId,
    conversation: ConversationId,
    at: Timestamp,
    #[serde(flatten)]
    columns: ObligationColumns<'a>,
}

const INSERT_OBLIGATIONS: &str = "
    insert into obligations (turn_id, conversation_id, version, owed, state, work, wake_at, ended_at, body)
    select unhex(value ->> 'turn', '-'), unhex(value ->> 'conversation', '-'), 1, value ->> 'owed', value ->> 'state',
        value ->> 'work', value ->> 'wake_at', iif(value ->> 'ended', value ->> 'at', null), value -> 'body'
    from json_each(?)";

#[derive(Serialize)]
struct Cursor<'a> {
    channel: &'a str,
    name: &'a str,
    position: &'a str,
}

impl<'a> Cursor<'a> {
    fn of(cursor: &'a CursorMove) -> Self {
        Self { channel: cursor.channel.as_str(), name: &cursor.name, position: &cursor.position }
    }
}

const MOVE_CURSORS: &str = "
    insert into channels_cursor (channel, name, position)
    select value ->> 'channel', value ->> 'name', value ->> 'position' from json_each(?)
    where true
    on conflict do update set position = excluded.position";
