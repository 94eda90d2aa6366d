//! Transitions: each all or nothing, many of them in one transaction.

use std::collections::{HashMap, HashSet};

use rejoinder_core::{
    Action, Class, ConversationId, ConversationRef, DeliveryId, SessionId, SignalKind, Speaker, StoreError, Timestamp,
    TurnId, Usage, Via,
    store::{Commit, DeliveryChange, DeliveryState, Transition, TurnChange},
};
use serde::Serialize;
use sqlx::{Row, SqliteConnection};
use uuid::Uuid;

use super::{Ref, answers, each_row, rows};
use crate::sqlite::{error::store_error, stored::ObligationColumns};

/// Carries out transitions. Those on the same turn or delivery happen in order.
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

/// Groups transitions so that no two of a round concern the same turn or delivery, in order.
fn rounds(transitions: &[&Transition]) -> Vec<Vec<usize>> {
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    // For every turn and delivery, the first round that is free for it.
    let mut free: HashMap<Uuid, usize> = HashMap::with_capacity(transitions.len());
    for (index, transition) in transitions.iter().enumerate() {
        let concerned: HashSet<Uuid> = concerned(transition).collect();
        let round = concerned.iter().filter_map(|id| free.get(id)).copied().max().unwrap_or(0);
        free.extend(concerned.into_iter().map(|id| (id, round + 1)));
        if round == rounds.len() {
            rounds.push(Vec::new());
        }
        rounds[round].push(index);
    }
    rounds
}

fn concerned(transition: &Transition) -> impl Iterator<Item = Uuid> {
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

/// Changes the obligations of those transitions of a round whose turns are all at the expected version,
/// and returns which those are.
async fn swap(
    connection: &mut SqliteConnection,
    transitions: &[&Transition],
    mut round: Vec<usize>,
) -> Result<Vec<usize>, StoreError> {
    // A transition on several turns is looked at before anything of it is written.
    let several = round.iter().filter(|index| transitions[**index].turns.len() > 1);
    let expected: Vec<Expected> = several.flat_map(|index| &transitions[*index].turns).map(Expected::of).collect();
    if !expected.is_empty() {
        let current = turns(answers(connection, SELECT_CURRENT, &expected).await?)?;
        let is_current = |change: &TurnChange| current.contains(&change.turn.as_uuid());
        round.retain(|index| {
            let turns = &transitions[*index].turns;
            turns.len() < 2 || turns.iter().all(is_current)
        });
    }

    let changes: Vec<Change<'_>> = round.iter().flat_map(|index| &transitions[*index].turns).map(Change::of).collect();
    let changed = turns(answers(connection, CHANGE_OBLIGATIONS, &changes).await?)?;
    let is_changed = |change: &TurnChange| changed.contains(&change.turn.as_uuid());
    round.retain(|index| transitions[*index].turns.iter().all(is_changed));
    Ok(round)
}

fn turns(answered: Vec<sqlx::sqlite::SqliteRow>) -> Result<HashSet<Uuid>, StoreError> {
    answered.iter().map(|row| row.try_get(0).map_err(store_error)).collect()
}

/// Writes whatever else belongs to transitions that happen.
async fn write(connection: &mut SqliteConnection, transitions: &[&Transition]) -> Result<(), StoreError> {
    let sessions: Vec<Session> = transitions
        .iter()
        .flat_map(|transition| &transition.sessions)
        .map(|session| Session { id: session.id, conversation: session.conversation, at: session.at })
        .collect();
    each_row(connection, INSERT_SESSIONS, "sessions", &sessions).await?;
    each_row(connection, CHANGE_SESSIONS, "current sessions", &sessions).await?;

    let withdrawals: Vec<Withdrawn<'_>> = transitions
        .iter()
        .flat_map(|transition| &transition.withdrawn)
        .map(|withdrawal| Withdrawn { turn: withdrawal.turn, claim: withdrawal.claim, reason: &withdrawal.reason })
        .collect();
    rows(connection, WITHDRAW, &withdrawals).await?;

    insert_deliveries(connection, transitions).await?;

    let changes = transitions.iter().flat_map(|transition| &transition.delivery_changes);
    let changes: Vec<DeliveryChanged<'_>> = changes.map(DeliveryChanged::of).collect();
    each_row(connection, CHANGE_DELIVERIES, "deliveries", &changes).await?;

    let started: Vec<AttemptStarted> = transitions
        .iter()
        .flat_map(|transition| &transition.attempts_started)
        .map(|attempt| AttemptStarted { delivery: attempt.delivery, number: attempt.number, at: attempt.at })
        .collect();
    each_row(connection, INSERT_ATTEMPTS, "attempts", &started).await?;

    let ended: Vec<AttemptEnded<'_>> = transitions
        .iter()
        .flat_map(|transition| &transition.attempts_ended)
        .map(|attempt| AttemptEnded {
            delivery: attempt.delivery,
            number: attempt.number,
            at: attempt.at,
            result: &attempt.result,
            detail: attempt.detail.as_deref(),
        })
        .collect();
    each_row(connection, END_ATTEMPTS, "attempts", &ended).await?;

    write_runs(connection, transitions).await?;

    let lines: Vec<Line<'_>> = transitions
        .iter()
        .flat_map(|transition| &transition.transcript)
        .map(|line| Line {
            session: line.session,
            turn: line.turn,
            speaker: line.line.speaker,
            text: &line.line.text,
            at: line.line.at,
        })
        .collect();
    rows(connection, WRITE_TRANSCRIPT, &lines).await?;

    let remarks: Vec<Remark<'_>> = transitions
        .iter()
        .flat_map(|transition| &transition.audit)
        .map(|entry| Remark { turn: entry.turn, at: entry.at, kind: &entry.kind, detail: &entry.detail })
        .collect();
    each_row(connection, INSERT_AUDIT, "remarks", &remarks).await
}

async fn write_runs(connection: &mut SqliteConnection, transitions: &[&Transition]) -> Result<(), StoreError> {
    let started: Vec<RunStarted<'_>> = transitions
        .iter()
        .flat_map(|transition| &transition.runs_started)
        .map(|run| RunStarted { turn: run.turn, number: run.number, agent: &run.agent, at: run.at })
        .collect();
    each_row(connection, INSERT_RUNS, "runs", &started).await?;

    let ended: Vec<RunEnded<'_>> = transitions
        .iter()
        .flat_map(|transition| &transition.runs_ended)
        .map(|run| RunEnded {
            turn: run.turn,
            number: run.number,
            at: run.at,
            end: &run.end,
            detail: run.detail.as_deref(),
            usage: run.usage.as_ref(),
        })
        .collect();
    each_row(connection, END_RUNS, "runs", &ended).await
}

/// Inserts deliveries, each after all earlier ones of its conversation.
async fn insert_deliveries(connection: &mut SqliteConnection, transitions: &[&Transition]) -> Result<(), StoreError> {
    let records = || transitions.iter().flat_map(|transition| &transition.deliveries).map(|delivery| delivery.record());
    let mut index = HashMap::new();
    let mut refs: Vec<(&ConversationRef, Timestamp)> = Vec::new();
    for record in records() {
        index.entry(&record.conversation).or_insert_with(|| {
            refs.push((&record.conversation, record.created_at));
            refs.len() - 1
        });
    }
    if refs.is_empty() {
        return Ok(());
    }

    let lookups: Vec<Ref<'_>> = refs.iter().map(|(conversation, _)| Ref::of(conversation)).collect();
    let mut lines: Vec<Option<(ConversationId, i64)>> = vec![None; refs.len()];
    for row in answers(connection, SELECT_LINES, &lookups).await? {
        let key = usize::try_from(row.try_get::<i64, _>(0).map_err(store_error)?).unwrap_or(usize::MAX);
        let conversation: Uuid = row.try_get(1).map_err(store_error)?;
        if let Some(line) = lines.get_mut(key) {
            *line = Some((conversation.into(), row.try_get(2).map_err(store_error)?));
        }
    }
    // A conversation where nobody has spoken yet: the first that it has is from us.
    let mut unknown = Vec::new();
    for (line, (conversation, at)) in lines.iter_mut().zip(&refs) {
        if line.is_none() {
            let id = ConversationId::new(*at);
            unknown.push(Conversation { id, r#ref: Ref::of(conversation), created_at: *at });
            *line = Some((id, 0));
        }
    }
    each_row(connection, INSERT_CONVERSATIONS, "conversations", &unknown).await?;

    let inserted: Vec<Delivery<'_>> = records()
        .map(|record| {
            let line = lines[index[&record.conversation]].as_mut();
            let (conversation, seq) = line.expect("every conversation was found or made");
            *seq += 1;
            Delivery {
                id: record.id,
                turn: record.turn,
                claim: record.claim,
                part: record.part,
                parts: record.parts,
                conversation: *conversation,
                seq: *seq,
                class: record.class,
                signal: record.signal,
                via: &record.via,
                is_copy: record.is_copy,
                action: &record.action,
                state: record.state.as_str(),
                attempts: record.attempts,
                next_attempt_at: record.next_attempt_at,
                labelled: record.labelled,
                message_ids: &record.message_ids,
                error: record.error.as_deref(),
                created_at: record.created_at,
                delivered_at: record.delivered_at,
                fetched_at: record.fetched_at,
            }
        })
        .collect();
    each_row(connection, INSERT_DELIVERIES, "deliveries", &inserted).await
}

#[derive(Serialize)]
struct Expected {
    turn: TurnId,
    expected: i64,
}

impl Expected {
    const fn of(change: &TurnChange) -> Self {
        Self { turn: change.turn, expected: change.expected }
    }
}

const SELECT_CURRENT: &str = "
    select o.turn_id
    from json_each(?) as j cross join obligations as o
        on o.turn_id = unhex(j.value ->> 'turn', '-') and o.version = j.value ->> 'expected'";

#[derive(Serialize)]
struct Change<'a> {
    turn: TurnId,
    expected: i64,
    at: Timestamp,
    #[serde(flatten)]
    columns: ObligationColumns<'a>,
}

impl<'a> Change<'a> {
    fn of(change: &'a TurnChange) -> Self {
        let columns = ObligationColumns::of(&change.obligation);
        Self { turn: change.turn, expected: change.expected, at: change.at, columns }
    }
}

const CHANGE_OBLIGATIONS: &str = "
    update obligations set
        version = version + 1,
        owed = c.value ->> 'owed',
        state = c.value ->> 'state',
        work = c.value ->> 'work',
        wake_at = c.value ->> 'wake_at',
        ended_at = iif(c.value ->> 'ended', coalesce(ended_at, c.value ->> 'at'), null),
        body = c.value -> 'body'
    from json_each(?) as c
    where turn_id = unhex(c.value ->> 'turn', '-') and version = c.value ->> 'expected'
    returning turn_id";

#[derive(Serialize)]
struct Session {
    id: SessionId,
    conversation: ConversationId,
    at: Timestamp,
}

const INSERT_SESSIONS: &str = "
    insert into sessions (id, conversation_id, created_at)
    select unhex(value ->> 'id', '-'), unhex(value ->> 'conversation', '-'), value ->> 'at' from json_each(?)";

const CHANGE_SESSIONS: &str = "
    update conversations set session_id = unhex(s.value ->> 'id', '-') from json_each(?) as s
    where conversations.id = unhex(s.value ->> 'conversation', '-')";

#[derive(Serialize)]
struct Withdrawn<'a> {
    turn: TurnId,
    claim: u32,
    reason: &'a str,
}

const WITHDRAW: &str = "
    update deliveries set state = 'withdrawn', error = w.value ->> 'reason' from json_each(?) as w
    where deliveries.turn_id = unhex(w.value ->> 'turn', '-') and deliveries.claim = w.value ->> 'claim'
        and deliveries.state = 'pending'
        and not exists (select 1 from attempts as a where a.delivery_id = deliveries.id)";

#[derive(Serialize)]
struct Conversation<'a> {
    id: ConversationId,
    r#ref: Ref<'a>,
    created_at: Timestamp,
}

const SELECT_LINES: &str = "
    select j.key, c.id, coalesce((select max(d.seq) from deliveries as d where d.conversation_id = c.id), 0)
    from json_each(?) as j cross join conversations as c
        on c.channel = j.value ->> 'channel' and c.chat = j.value ->> 'chat' and c.thread = j.value ->> 'thread'";

const INSERT_CONVERSATIONS: &str = "
    insert into conversations (id, channel, chat, thread, session_id, created_at)
    select unhex(value ->> 'id', '-'), value ->> '$.ref.channel', value ->> '$.ref.chat', value ->> '$.ref.thread',
        null, value ->> 'created_at'
    from json_each(?)";

#[derive(Serialize)]
struct Delivery<'a> {
    id: DeliveryId,
    turn: TurnId,
    claim: u32,
    part: u32,
    parts: u32,
    conversation: ConversationId,
    seq: i64,
    class: Class,
    signal: SignalKind,
    via: &'a Via,
    is_copy: bool,
    action: &'a Action,
    state: &'static str,
    attempts: u32,
    next_attempt_at: Timestamp,
    labelled: bool,
    message_ids: &'a [String],
    error: Option<&'a str>,
    created_at: Timestamp,
    delivered_at: Option<Timestamp>,
    fetched_at: Option<Timestamp>,
}

const INSERT_DELIVERIES: &str = "
    insert into deliveries
        (id, turn_id, claim, part, parts, conversation_id, seq, class, signal, via, is_copy, action, state, attempts,
        next_attempt_at, labelled, message_ids, error, created_at, delivered_at, fetched_at)
    select unhex(value ->> 'id', '-'), unhex(value ->> 'turn', '-'), value ->> 'claim', value ->> 'part',
        value ->> 'parts', unhex(value ->> 'conversation', '-'), value ->> 'seq', value -> 'class', value -> 'signal',
        value -> 'via', value ->> 'is_copy', value -> 'action', value ->> 'state', value ->> 'attempts',
        value ->> 'next_attempt_at', value ->> 'labelled', value -> 'message_ids', value ->> 'error',
        value ->> 'created_at', value ->> 'delivered_at', value ->> 'fetched_at'
    from json_each(?)";

#[derive(Serialize)]
struct DeliveryChanged<'a> {
    id: DeliveryId,
    state: DeliveryState,
    attempts: u32,
    next_attempt_at: Timestamp,
    labelled: bool,
    message_ids: &'a [String],
    error: Option<&'a str>,
    delivered_at: Option<Timestamp>,
}

impl<'a> DeliveryChanged<'a> {
    fn of(change: &'a DeliveryChange) -> Self {
        Self {
            id: change.id,
            state: change.state,
            attempts: change.attempts,
            next_attempt_at: change.next_attempt_at,
            labelled: change.labelled,
            message_ids: &change.message_ids,
            error: change.error.as_deref(),
            delivered_at: change.delivered_at,
        }
    }
}

const CHANGE_DELIVERIES: &str = "
    update deliveries set
        state = c.value ->> 'state',
        attempts = c.value ->> 'attempts',
        next_attempt_at = c.value ->> 'next_attempt_at',
        labelled = c.value ->> 'labelled',
        message_ids = c.value -> 'message_ids',
        error = c.value ->> 'error',
        delivered_at = c.value ->> 'delivered_at'
    from json_each(?) as c
    where deliveries.id = unhex(c.value ->> 'id', '-')";

#[derive(Serialize)]
struct AttemptStarted {
    delivery: DeliveryId,
    number: u32,
    at: Timestamp,
}

const INSERT_ATTEMPTS: &str = "
    insert into attempts (delivery_id, number, started_at)
    select unhex(value ->> 'delivery', '-'), value ->> 'number', value ->> 'at' from json_each(?)";

#[derive(Serialize)]
struct AttemptEnded<'a> {
    delivery: DeliveryId,
    number: u32,
    at: Timestamp,
    result: &'a str,
    detail: Option<&'a str>,
}

const END_ATTEMPTS: &str = "
    update attempts set ended_at = e.value ->> 'at', result = e.value ->> 'result', detail = e.value ->> 'detail'
    from json_each(?) as e
    where delivery_id = unhex(e.value ->> 'delivery', '-') and number = e.value ->> 'number'";

#[derive(Serialize)]
pub(super) struct RunStarted<'a> {
    pub(super) turn: TurnId,
    pub(super) number: u32,
    pub(super) agent: &'a str,
    pub(super) at: Timestamp,
}

pub(super) const INSERT_RUNS: &str = "
    insert into runs (turn_id, number, agent, started_at)
    select unhex(value ->> 'turn', '-'), value ->> 'number', value ->> 'agent', value ->> 'at' from json_each(?)";

#[derive(Serialize)]
struct RunEnded<'a> {
    turn: TurnId,
    number: u32,
    at: Timestamp,
    end: &'a str,
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a Usage>,
}

const END_RUNS: &str = "
    update runs set
        ended_at = e.value ->> 'at', ending = e.value ->> 'end', detail = e.value ->> 'detail',
        usage = e.value -> 'usage'
    from json_each(?) as e
    where turn_id = unhex(e.value ->> 'turn', '-') and number = e.value ->> 'number'";

#[derive(Serialize)]
struct Line<'a> {
    session: SessionId,
    turn: TurnId,
    speaker: Speaker,
    text: &'a str,
    at: Timestamp,
}

const WRITE_TRANSCRIPT: &str = "
    insert into transcript (session_id, turn_id, speaker, text, at)
    select unhex(value ->> 'session', '-'), unhex(value ->> 'turn', '-'), value ->> 'speaker', value ->> 'text',
        value ->> 'at'
    from json_each(?)
    where true
    on conflict do update set text = excluded.text, at = excluded.at";

#[derive(Serialize)]
struct Remark<'a> {
    turn: TurnId,
    at: Timestamp,
    kind: &'a str,
    detail: &'a str,
}

const INSERT_AUDIT: &str = "
    insert into audit (turn_id, at, kind, detail)
    select unhex(value ->> 'turn', '-'), value ->> 'at', value ->> 'kind', value ->> 'detail' from json_each(?)";
