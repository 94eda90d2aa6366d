//! Transitions: each is all or nothing, and many share one transaction.

use std::collections::{HashMap, HashSet};

use rejoinder_core::{
    ConversationId, DeliveryId, StoreError, TurnId,
    store::{Commit, Label, NewSession, Transition, TurnChange},
};
use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};
use uuid::Uuid;

use super::{
    lines::{self, Touched},
    rows::Statement,
    runs,
    sessions::INSERT_SESSIONS,
};
use crate::sqlite::{error::store_error, stored::ObligationColumns};

/// Applies transitions. Those that share a turn, a delivery or a conversation are applied in order.
pub(super) async fn all(
    connection: &mut SqliteConnection,
    transitions: &[&Transition],
) -> Result<Vec<Commit>, StoreError> {
    let mut commits = vec![Commit::Conflict; transitions.len()];
    for round in rounds(transitions) {
        let winners = swap(connection, transitions, round).await?;
        let won: Vec<&Transition> = winners.iter().map(|index| transitions[*index]).collect();
        write(connection, &won).await?;
        for index in winners {
            commits[index] = Commit::Done;
        }
    }
    Ok(commits)
}

/// Groups transitions into rounds, in order, so that no two of a round share an id of [`written_ids`].
fn rounds(transitions: &[&Transition]) -> Vec<Vec<usize>> {
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    // For every id, the first round after those that use it.
    let mut free: HashMap<Uuid, usize> = HashMap::with_capacity(transitions.len());
    for (index, transition) in transitions.iter().enumerate() {
        let round = written_ids(transition).filter_map(|id| free.get(&id)).copied().max().unwrap_or(0);
        free.extend(written_ids(transition).map(|id| (id, round + 1)));
        if round == rounds.len() {
            rounds.push(Vec::new());
        }
        rounds[round].push(index);
    }
    rounds
}

/// The ids of the turns, the deliveries and the conversations with new sessions that a transition writes.
fn written_ids(transition: &Transition) -> impl Iterator<Item = Uuid> {
    let turns = transition.turns.iter().map(|change| change.turn);
    let turns = turns
        .chain(transition.deliveries.iter().map(|delivery| delivery.record().turn))
        .chain(transition.withdrawn.iter().map(|withdrawal| withdrawal.turn))
        .chain(transition.runs_started.iter().map(|run| run.turn))
        .chain(transition.runs_ended.iter().map(|run| run.turn))
        .chain(transition.transcript.iter().map(|line| line.turn));
    let deliveries = transition.delivery_changes.iter().map(|change| change.id);
    let deliveries = deliveries
        .chain(transition.attempts_started.iter().map(|attempt| attempt.delivery))
        .chain(transition.attempts_ended.iter().map(|attempt| attempt.delivery));
    let conversations = transition.sessions.iter().map(|session| session.conversation.as_uuid());
    turns.map(TurnId::as_uuid).chain(deliveries.map(DeliveryId::as_uuid)).chain(conversations)
}

/// Updates the obligations of the transitions of a round whose turns all have the expected version, and returns
/// these transitions.
async fn swap(
    connection: &mut SqliteConnection,
    transitions: &[&Transition],
    mut round: Vec<usize>,
) -> Result<Vec<usize>, StoreError> {
    // A transition on several turns is checked before any of it is written.
    let several = round.iter().filter(|index| transitions[**index].turns.len() > 1);
    let together: Vec<&TurnChange> = several.flat_map(|index| &transitions[*index].turns).collect();
    if !together.is_empty() {
        let current = SELECT_CURRENT
            .answers(connection, &together, |change, values| {
                values.id(change.turn.as_uuid()).add(change.expected);
            })
            .await?;
        let current = turns(&current)?;
        let is_current = |change: &TurnChange| current.contains(&change.turn.as_uuid());
        round.retain(|index| {
            let turns = &transitions[*index].turns;
            turns.len() < 2 || turns.iter().all(is_current)
        });
    }

    let changes: Vec<&TurnChange> = round.iter().flat_map(|index| &transitions[*index].turns).collect();
    let swapped = CHANGE_OBLIGATIONS
        .answers(connection, &changes, |change, values| {
            let ObligationColumns { owed, state, work, wake_at, overdue_at, ended } =
                ObligationColumns::of(&change.obligation);
            values
                .id(change.turn.as_uuid())
                .add(change.expected)
                .add(owed)
                .add(state)
                .add(work)
                .at_maybe(wake_at)
                .at_maybe(overdue_at)
                .at_maybe(ended.then_some(change.at))
                .add(change.obligation.handoff())
                .json(&change.obligation);
        })
        .await?;
    let touched = swapped.iter().filter_map(|row| touched(row).transpose()).collect::<Result<Vec<_>, _>>();
    lines::settle(connection, &touched.map_err(store_error)?).await?;
    let swapped = turns(&swapped)?;
    let is_swapped = |change: &TurnChange| swapped.contains(&change.turn.as_uuid());
    round.retain(|index| transitions[*index].turns.iter().all(is_swapped));
    Ok(round)
}

/// The conversation of a changed turn, unless the turn is still the first one that waits, or still does not wait.
fn touched(row: &SqliteRow) -> Result<Option<Touched>, sqlx::Error> {
    let (is_waiting, place): (bool, Option<i64>) = (row.try_get("is_waiting")?, row.try_get("place")?);
    if is_waiting == place.is_some() {
        return Ok(None);
    }
    Ok(Some(Touched { conversation: row.try_get("conversation_id")?, place }))
}

fn turns(answers: &[SqliteRow]) -> Result<HashSet<Uuid>, StoreError> {
    answers.iter().map(|row| row.try_get(0).map_err(store_error)).collect()
}

/// Collects one part of all transitions.
fn all_of<'a, T>(transitions: &[&'a Transition], part: impl Fn(&'a Transition) -> &'a [T]) -> Vec<&'a T> {
    transitions.iter().flat_map(|transition| part(transition)).collect()
}

/// Writes the other rows of the transitions that won.
async fn write(connection: &mut SqliteConnection, transitions: &[&Transition]) -> Result<(), StoreError> {
    let sessions = all_of(transitions, |transition| &transition.sessions);
    change_sessions(connection, &sessions).await?;
    WITHDRAW
        .on(connection, &all_of(transitions, |transition| &transition.withdrawn), |withdrawal, values| {
            values.id(withdrawal.turn.as_uuid()).add(withdrawal.claim).add(&*withdrawal.reason);
        })
        .await?;
    insert_deliveries(connection, transitions).await?;
    let changes = all_of(transitions, |transition| &transition.delivery_changes);
    CHANGE_DELIVERIES
        .on_each(connection, "deliveries", &changes, |change, values| {
            values
                .id(change.id.as_uuid())
                .add(change.state.as_str())
                .add(change.attempts)
                .at(change.next_attempt_at)
                .add(change.label.map(Label::as_str))
                .add(change.parked)
                .json_maybe(change.action.as_ref())
                .json(&change.message_ids)
                .add(change.error.as_deref())
                .at_maybe(change.retried_at)
                .at_maybe(change.delivered_at);
        })
        .await?;
    write_attempts(connection, transitions).await?;
    runs::start(connection, &all_of(transitions, |transition| &transition.runs_started)).await?;
    runs::end(connection, &all_of(transitions, |transition| &transition.runs_ended)).await?;
    WRITE_TRANSCRIPT
        .on(connection, &all_of(transitions, |transition| &transition.transcript), |line, values| {
            values.id(line.session.as_uuid()).add(line.seq).id(line.turn.as_uuid());
            values
                .name(line.line.speaker)
                .json_maybe(line.line.author.as_ref())
                .json_maybe(line.line.forwarded.as_ref());
            values.add(&*line.line.text).at(line.line.at);
        })
        .await?;
    let audit = all_of(transitions, |transition| &transition.audit);
    INSERT_AUDIT
        .on_each(connection, "remarks", &audit, |entry, values| {
            values.id(entry.turn.as_uuid()).at(entry.at).add(&*entry.kind).add(&*entry.detail);
        })
        .await
}

async fn change_sessions(connection: &mut SqliteConnection, sessions: &[&NewSession]) -> Result<(), StoreError> {
    INSERT_SESSIONS
        .on_each(connection, "sessions", sessions, |session, values| {
            values.id(session.id.as_uuid()).id(session.conversation.as_uuid()).at(session.at);
        })
        .await?;
    CHANGE_SESSIONS
        .on_each(connection, "current sessions", sessions, |session, values| {
            values.id(session.id.as_uuid()).id(session.conversation.as_uuid());
        })
        .await
}

async fn write_attempts(connection: &mut SqliteConnection, transitions: &[&Transition]) -> Result<(), StoreError> {
    let started = all_of(transitions, |transition| &transition.attempts_started);
    INSERT_ATTEMPTS
        .on_each(connection, "attempts", &started, |attempt, values| {
            values.id(attempt.delivery.as_uuid()).add(attempt.number).id(attempt.owner.as_uuid()).at(attempt.at);
        })
        .await?;
    let ended = all_of(transitions, |transition| &transition.attempts_ended);
    END_ATTEMPTS
        .on_each(connection, "attempts", &ended, |attempt, values| {
            values.id(attempt.delivery.as_uuid()).add(attempt.number).at(attempt.at);
            values.add(&*attempt.result).add(attempt.detail.as_deref());
        })
        .await
}

/// Inserts deliveries, each after all earlier ones of its conversation.
async fn insert_deliveries(connection: &mut SqliteConnection, transitions: &[&Transition]) -> Result<(), StoreError> {
    let new = all_of(transitions, |transition| &transition.deliveries);
    let conversations: HashSet<ConversationId> = new.iter().map(|delivery| delivery.record().conversation_id).collect();
    let answers = SELECT_LATEST
        .answers(connection, &Vec::from_iter(conversations), |conversation, values| {
            values.id(conversation.as_uuid());
        })
        .await?;
    let mut latest: HashMap<Uuid, i64> = HashMap::with_capacity(answers.len());
    for row in answers {
        latest.insert(row.try_get(0).map_err(store_error)?, row.try_get(1).map_err(store_error)?);
    }
    let placed = new.iter().map(|delivery| {
        let record = delivery.record();
        let seq = latest.entry(record.conversation_id.as_uuid()).or_default();
        *seq += 1;
        (record, *seq)
    });
    let placed: Vec<_> = placed.collect();
    INSERT_DELIVERIES
        .on_each(connection, "deliveries", &placed, |(record, seq), values| {
            values
                .id(record.id.as_uuid())
                .id(record.turn.as_uuid())
                .add(record.claim)
                .add(record.part)
                .add(record.parts)
                .id(record.conversation_id.as_uuid())
                .add(record.conversation.channel.as_str())
                .add(*seq)
                .name(record.class)
                .add(record.signal.as_str())
                .json(&record.via)
                .add(record.is_copy)
                .json(&record.action)
                .add(record.state.as_str())
                .add(record.attempts)
                .at(record.next_attempt_at)
                .add(record.label.map(Label::as_str))
                .add(record.parked)
                .json(&record.message_ids)
                .add(record.error.as_deref())
                .at(record.created_at)
                .at_maybe(record.retried_at)
                .at_maybe(record.delivered_at)
                .at_maybe(record.fetched_at);
        })
        .await
}

static SELECT_CURRENT: Statement = Statement::new(
    "with r (turn_id, expected) as ({rows})
    select o.turn_id from r cross join obligations as o on o.turn_id = r.turn_id and o.version = r.expected",
);

static CHANGE_OBLIGATIONS: Statement = Statement::new(
    "with r (turn_id, expected, owed, state, work, wake_at, overdue_at, ended_at, agent, body) as ({rows})
    update obligations set
        version = version + 1,
        owed = r.owed,
        state = r.state,
        work = r.work,
        wake_at = r.wake_at,
        overdue_at = r.overdue_at,
        ended_at = iif(r.ended_at is null, null, coalesce(obligations.ended_at, r.ended_at)),
        agent = coalesce(r.agent, obligations.agent),
        body = r.body
    from r
    where obligations.turn_id = r.turn_id and obligations.version = r.expected
    returning turn_id, conversation_id, place, work is 'waiting' as is_waiting",
);

static CHANGE_SESSIONS: Statement = Statement::new(
    "with r (id, conversation_id) as ({rows})
    update conversations set session_id = r.id from r where conversations.id = r.conversation_id",
);

static WITHDRAW: Statement = Statement::new(
    "with r (turn_id, claim, reason) as ({rows})
    update deliveries set state = 'withdrawn', error = r.reason from r
    where deliveries.turn_id = r.turn_id and deliveries.claim = r.claim and deliveries.state = 'pending'",
);

static SELECT_LATEST: Statement = Statement::new(
    "with r (conversation_id) as ({rows})
    select r.conversation_id, coalesce((select max(d.seq) from deliveries as d where d.conversation_id = r.conversation_id), 0)
    from r where r.conversation_id is not null",
);

static INSERT_DELIVERIES: Statement = Statement::new(
    "with r (id, turn_id, claim, part, parts, conversation_id, channel, seq, class, signal, via, is_copy, action, state,
        attempts, next_attempt_at, label, parked, message_ids, error, created_at, retried_at, delivered_at,
        fetched_at) as ({rows})
    insert into deliveries
        (id, turn_id, claim, part, parts, conversation_id, channel, seq, class, signal, via, is_copy, action, state,
        attempts, next_attempt_at, label, parked, message_ids, error, created_at, retried_at, delivered_at,
        fetched_at)
    select * from r where id is not null",
);

static CHANGE_DELIVERIES: Statement = Statement::new(
    "with r (id, state, attempts, next_attempt_at, label, parked, action, message_ids, error, retried_at, delivered_at)
        as ({rows})
    update deliveries set
        state = r.state, attempts = r.attempts, next_attempt_at = r.next_attempt_at, label = r.label,
        parked = r.parked, action = coalesce(r.action, deliveries.action), message_ids = r.message_ids, error = r.error,
        retried_at = r.retried_at, delivered_at = r.delivered_at
    from r
    where deliveries.id = r.id",
);

static INSERT_ATTEMPTS: Statement = Statement::new(
    "with r (delivery_id, number, owner, started_at) as ({rows})
    insert into attempts (delivery_id, number, owner, started_at) select * from r where delivery_id is not null",
);

static END_ATTEMPTS: Statement = Statement::new(
    "with r (delivery_id, number, ended_at, result, detail) as ({rows})
    update attempts set ended_at = r.ended_at, result = r.result, detail = r.detail
    from r
    where attempts.delivery_id = r.delivery_id and attempts.number = r.number",
);

/// A person's text is stored once, with the event.
static WRITE_TRANSCRIPT: Statement = Statement::new(
    "with r (session_id, seq, turn_id, speaker, author, forwarded, text, at) as ({rows})
    insert into transcript (session_id, seq, turn_id, speaker, author, forwarded, text, at)
    select session_id, seq, turn_id, speaker, author, forwarded,
        iif(speaker = 'person', nullif(text, (
            select e.text from turns as t cross join events as e on e.id = t.event_id where t.id = r.turn_id)), text),
        at
    from r where session_id is not null
    on conflict do update set author = excluded.author, forwarded = excluded.forwarded,
        text = excluded.text, at = excluded.at",
);

static INSERT_AUDIT: Statement = Statement::new(
    "with r (turn_id, at, kind, detail) as ({rows})
    insert into audit (turn_id, at, kind, detail) select * from r where turn_id is not null",
);
