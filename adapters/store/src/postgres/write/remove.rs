//! Removes rows that are past their time. Each statement is for all of them.

use std::collections::BTreeSet;

use rejoinder_core::{SessionId, StoreError, Timestamp, TurnId, store::Removal};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::{
    agent_sessions, daily_use, index,
    rows::{self, Transaction},
    sessions, settings,
};
use crate::{
    postgres::values::{List, statement},
    records::columns::{Columns, record},
    shared::stored::json,
};

/// Removes rows; returns the sessions of the turns that were removed.
pub(super) async fn rows(
    transaction: &mut Transaction<'_>,
    removal: &Removal,
    now: Timestamp,
) -> Result<Vec<SessionId>, StoreError> {
    match removal {
        Removal::Turns(ids) => return turns(transaction, ids, now).await,
        Removal::Payloads(events) => {
            rows::change(transaction, statement!(CLEAR_PAYLOADS, List(events.clone()))).await?;
        }
        Removal::Quotes(events) => {
            rows::change(transaction, statement!(CLEAR_QUOTES, List(events.clone()))).await?;
        }
        Removal::Contents(runs) => {
            let runs = runs.iter().map(|(turn, number)| (turn.as_uuid(), i64::from(*number)));
            let (turns, numbers): (Vec<Uuid>, Vec<i64>) = runs.unzip();
            rows::change(transaction, statement!(DELETE_CONTENTS, List(turns), List(numbers))).await?;
            settings::remove_unused(transaction).await?;
        }
        Removal::Sounds(turns) => sounds(transaction, turns).await?,
        Removal::Mentions(person) => {
            let (channel, id) = (&person.channel, &person.id);
            for sql in DELETE_LINES_ABOUT {
                rows::change(transaction, statement!(sql, channel, json(id), json(&person.to_string()))).await?;
            }
            let turns =
                rows::all(transaction, statement!(DELETE_REACTIONS, channel, id), |row| row.value("turn_id")).await?;
            rows::change(transaction, statement!(DELETE_ANSWERS, json(id))).await?;
            rows::change(transaction, statement!(CLEAR_LOG)).await?;
            settings::remove_unreferenced(transaction).await?;
            // Last, because it locks sessions, and the turns in them wait for that.
            sessions::count_changes(transaction, [], &turns).await?;
        }
        Removal::Keys(events) => {
            rows::change(transaction, statement!(DELETE_KEYS, List(events.clone()))).await?;
        }
        Removal::Log { through, .. } => {
            index::note_removal(transaction, *through).await?;
            rows::change(transaction, statement!(DELETE_LOG, through)).await?;
        }
        Removal::Lines { through, .. } => {
            for sql in DELETE_LINES {
                rows::change(transaction, statement!(sql, through)).await?;
            }
        }
        // The database finds free pages by itself, and uses them again.
        Removal::Pages(_) => {}
    }
    Ok(Vec::new())
}

/// A turn that has ended.
struct EndedTurn {
    turn: TurnId,
    conversation: Uuid,
    session: Uuid,
}

/// Removes the sounds of spoken words of turns.
async fn sounds(transaction: &mut Transaction<'_>, turns: &[TurnId]) -> Result<(), StoreError> {
    let all = List(turns.iter().copied().map(TurnId::as_uuid).collect::<Vec<_>>());
    for sql in LOCK_TURNS {
        rows::change(transaction, statement!(sql, all)).await?;
    }
    let ended = rows::all(transaction, statement!(SELECT_ENDED, all), |row| row.value::<Uuid>("turn")).await?;
    let ids = List(ended);
    for sql in DELETE_SOUNDS {
        rows::change(transaction, statement!(sql, ids)).await?;
    }
    Ok(())
}

/// Removes turns, the conversations that have none left, and the sessions that have no line left.
async fn turns(
    transaction: &mut Transaction<'_>,
    turns: &[TurnId],
    now: Timestamp,
) -> Result<Vec<SessionId>, StoreError> {
    let mut all = List(turns.iter().copied().map(TurnId::as_uuid).collect::<Vec<_>>());
    // What others were told of its approvals goes with it.
    let notices = rows::all(transaction, statement!(SELECT_NOTICES, all), |row| row.value::<Uuid>("turn_id")).await?;
    all.0.extend(notices);
    for sql in LOCK_TURNS {
        rows::change(transaction, statement!(sql, all)).await?;
    }
    let ended = |row: &PgRow| Ok(record!(row => EndedTurn { turn, conversation, session }));
    let ended = rows::all(transaction, statement!(SELECT_ENDED, all), ended).await?;
    for EndedTurn { turn, .. } in &ended {
        agent_sessions::owe_removed(transaction, *turn).await?;
    }
    let ids = List(ended.iter().map(|ended| ended.turn.as_uuid()).collect::<Vec<_>>());
    let changed: BTreeSet<Uuid> = ended.iter().map(|ended| ended.session).collect();
    if !ended.is_empty() {
        for sql in DELETE_TURNS {
            rows::change(transaction, statement!(sql, ids)).await?;
        }
        remove_conversations(transaction, ended.iter().map(|ended| ended.conversation).collect()).await?;
        sessions::count_changes(transaction, changed.iter().copied().map(SessionId::from), &[]).await?;
        remove_sessions(transaction, &changed).await?;
    }
    settings::remove_unused(transaction).await?;
    daily_use::remove_old(transaction, now).await?;
    rows::change(transaction, statement!(DELETE_LEFT_ANSWERS)).await?;
    Ok(changed.into_iter().map(SessionId::from).collect())
}

/// Removes those of these conversations that are empty, and then their successors that are.
async fn remove_conversations(
    transaction: &mut Transaction<'_>,
    mut conversations: BTreeSet<Uuid>,
) -> Result<(), StoreError> {
    while !conversations.is_empty() {
        let candidates = List(conversations.into_iter().collect::<Vec<_>>());
        rows::change(transaction, statement!(LOCK_CONVERSATIONS, candidates)).await?;
        let empty = |row: &PgRow| Ok((row.value::<Uuid>("id")?, row.value::<Option<Uuid>>("succeeded_by")?));
        let empty = rows::all(transaction, statement!(SELECT_EMPTY, candidates), empty).await?;
        if empty.is_empty() {
            break;
        }
        let ids = List(empty.iter().map(|(id, _)| *id).collect::<Vec<_>>());
        for sql in [LOCK_SESSIONS_IN, HAND_OVER_SESSIONS] {
            rows::change(transaction, statement!(sql, ids)).await?;
        }
        let deleted = rows::all(transaction, statement!(DELETE_SESSIONS_IN, ids), |row| row.value("id")).await?;
        for session in deleted {
            agent_sessions::owe_deleted(transaction, session).await?;
        }
        for sql in DELETE_CONVERSATIONS {
            rows::change(transaction, statement!(sql, ids)).await?;
        }
        // Those may have been kept only because of these.
        conversations = empty.into_iter().filter_map(|(_, successor)| successor).collect();
    }
    Ok(())
}

/// Removes those of these sessions of which nothing is left to read, and clears the titles of the others.
async fn remove_sessions(transaction: &mut Transaction<'_>, sessions: &BTreeSet<Uuid>) -> Result<(), StoreError> {
    let ids = List(sessions.iter().copied().collect::<Vec<_>>());
    rows::change(transaction, statement!(LOCK_SESSIONS, ids)).await?;
    for session in rows::all(transaction, statement!(DELETE_SESSIONS, ids), |row| row.value("id")).await? {
        agent_sessions::owe_deleted(transaction, session).await?;
    }
    for session in sessions {
        rows::change(transaction, statement!(sessions::CLEAR_TITLE, session)).await?;
    }
    Ok(())
}

const CLEAR_PAYLOADS: &str = "update events set raw = null, details = details - 'brief' where seq = any($1)";

const CLEAR_QUOTES: &str = "
    update events set raw = null, details = details - 'brief' - 'quoted' where seq = any($1)";

const DELETE_LOG: &str = "delete from log where seq <= $1 and seq < (select max(seq) from log)";

const DELETE_LINES: [&str; 2] =
    ["delete from errors where last_line <= $1 and not muted", "delete from log_lines where id <= $1"];

/// The lines of no turn that name an identity in a field, and the errors that came last in one of them. $1: the channel, $2: the id
/// there, $3: both, these two as JSON.
macro_rules! lines_about {
    () => {
        "(select l.id from log_lines as l, json_each(l.fields::json) as f
        where l.turn_id is null and (f.value::text = $3 or (f.value::text = $2 and l.channel = $1)))"
    };
}

const DELETE_LINES_ABOUT: [&str; 3] = [
    concat!("update errors set fields = '{}' where muted and last_line in ", lines_about!()),
    concat!("delete from errors where not muted and last_line in ", lines_about!()),
    concat!("delete from log_lines where id in ", lines_about!()),
];

const DELETE_REACTIONS: &str = "delete from reactions where channel = $1 and person = $2 returning turn_id";

/// $1: an id, as JSON. It may stand alone, or at the end of an address.
/// Those of nodes that have ended without it.
const DELETE_LEFT_ANSWERS: &str = "delete from answers_under_way where at < clock_timestamp() - interval '1 hour'";

const DELETE_ANSWERS: &str = "
    delete from answers where strpos(body, $1) > 0 or strpos(body, '/' || substr($1, 2)) > 0";

/// What platforms said of deliveries of turns that are gone.
const CLEAR_LOG: &str = "
    update log set data = (data::jsonb - 'error')::text
    where topic = 'delivery.failed' and jsonb_typeof(data::jsonb -> 'error') = 'string'
        and not exists (select 1 from turns where id = log.turn_id)";

const DELETE_KEYS: &str = "delete from events where seq = any($1) and details is null and raw is null";

const SELECT_NOTICES: &str = "
    select n.turn_id from approvals as a join approval_notices as n on n.approval_id = a.id
    where a.turn_id = any($1)";

/// Who writes rows of a turn or changes its deliveries waits for the end of the removal, and what others have written until now is
/// seen by the next statement. Conversations before their turns, as in `lines.rs`.
const LOCK_TURNS: [&str; 2] = [
    "select t.id from turns as t join conversations as c on c.id = t.conversation_id
    where t.id = any($1) order by c.id, t.id for update of c, t",
    "select id from deliveries where turn_id = any($1) order by id for update",
];

const SELECT_ENDED: &str = "
    select t.id as turn, t.conversation_id as conversation, t.session_id as session
    from turns as t
    where t.id = any($1) and t.ended_at is not null and t.work is null and not exists (
        select 1 from deliveries as d
        where d.turn_id = t.id and d.state not in ('delivered', 'withdrawn', 'refused', 'dead', 'held'))
    order by t.seq";

const DELETE_CONTENTS: &str = "
    delete from run_contents as c
    using unnest($1, $2) as r (turn, number) join turns as t on t.id = r.turn
    where c.run = t.seq << 16 | r.number";

/// The sounds of spoken words that no other turn has, nor these for another reason, and that these have them.
const DELETE_SOUNDS: [&str; 3] = [
    // As for turns: who uses one of them meanwhile is seen by the next statement.
    "select digest from files where digest in (
        select digest from file_uses where turn_id = any($1) and spoken_at is not null)
    order by digest for update",
    "delete from files where digest in (
        select u.digest from file_uses as u
        where u.turn_id = any($1) and u.spoken_at is not null and not exists (
            select 1 from file_uses as o
            where o.digest = u.digest and (o.turn_id <> all($1) or o.spoken_at is null)))",
    "delete from file_uses where turn_id = any($1) and spoken_at is not null",
];

/// What belongs to turns, and the turns.
const DELETE_TURNS: [&str; 24] = [
    "delete from guesses where who in (select channel || '/' || person from turns where id = any($1))",
    "update errors set fields = '{}' where muted and last_line in (select id from log_lines where turn_id = any($1))",
    "delete from errors where not muted and last_line in (select id from log_lines where turn_id = any($1))",
    "delete from log_lines where turn_id = any($1)",
    "delete from search as s using turns as t
    where t.id = any($1) and s.position between t.seq << 2 and t.seq << 2 | 3",
    "delete from run_contents as c using turns as t
    where t.id = any($1) and c.run between t.seq << 16 and t.seq << 16 | 65535",
    "delete from attempts as a using deliveries as d where d.turn_id = any($1) and a.delivery_id = d.id",
    "delete from deliveries where turn_id = any($1)",
    // As for turns: who uses one of them meanwhile is seen by the next statement.
    "select digest from files where digest in (select digest from file_uses where turn_id = any($1))
    order by digest for update",
    "delete from files where digest in (
        select u.digest from file_uses as u where u.turn_id = any($1) and not exists (
            select 1 from file_uses as o where o.digest = u.digest and o.turn_id <> all($1)))",
    "delete from file_uses where turn_id = any($1)",
    "delete from questions where turn_id = any($1)",
    "delete from approval_notices where turn_id = any($1)",
    "delete from approval_notices as n using approvals as a where a.turn_id = any($1) and n.approval_id = a.id",
    "delete from whole_requests as w using approvals as a where a.turn_id = any($1) and w.approval_id = a.id",
    "delete from approvals where turn_id = any($1)",
    "delete from runs as r using turns as t
    where t.id = any($1) and r.run between t.seq << 16 and t.seq << 16 | 65535",
    "delete from remarks where turn_id = any($1)",
    "delete from reactions where turn_id = any($1)",
    "delete from asides where turn_id = any($1)",
    "delete from transcript as l using turns as t
    where t.id = any($1) and l.session_id = t.session_id and l.seq = t.seq",
    // The language that somebody chose goes with their last turn in a conversation, unless they are known.
    "delete from languages as l
    using (select distinct channel, conversation_id, person from turns where id = any($1)) as r
    where l.channel = r.channel and l.id = r.person
        and not exists (select 1 from identities as i where i.channel = l.channel and i.id = l.id)
        and not exists (
            select 1 from turns as t
            where t.conversation_id = r.conversation_id and t.person = r.person and t.id <> all($1))",
    // All events of a turn have the same key but for the revision.
    "update events set chat = '', thread = '', text = null, details = null, sender_names = null, raw = null
    where seq in (
        select f.seq
        from turns as t join events as e on e.seq = t.event
            join events as f on f.channel = e.channel and f.external_id = e.external_id
        where t.id = any($1) and f.turn_id = t.id)",
    "delete from turns where id = any($1)",
];

const LOCK_CONVERSATIONS: &str = "select id from conversations where id = any($1) order by id for update";

const SELECT_EMPTY: &str = "
    select c.id, c.succeeded_by from conversations as c
    where c.id = any($1) and not exists (select 1 from turns as t where t.conversation_id = c.id)
        and not exists (select 1 from conversations as o where o.succeeded_by = c.id)";

/// As for turns: a conversation may have moved on to one of them.
const LOCK_SESSIONS_IN: &str = "select id from sessions where conversation_id = any($1) order by id for update";

/// A session that another conversation continues in, or in which one has said something, becomes that one's.
const HAND_OVER_SESSIONS: &str = "
    with others (session, conversation) as (
        select s.id, coalesce(
            (select c.id from conversations as c where c.session_id = s.id and c.id <> all($1) limit 1),
            (select t.conversation_id from transcript as l join turns as t on t.seq = l.seq
            where l.session_id = s.id and t.conversation_id <> all($1) limit 1))
        from sessions as s where s.conversation_id = any($1))
    update sessions as s set conversation_id = o.conversation
    from others as o where o.session = s.id and o.conversation is not null";

const DELETE_SESSIONS_IN: &str = "delete from sessions where conversation_id = any($1) returning id";

const DELETE_CONVERSATIONS: [&str; 4] = [
    "delete from blocked as b using conversations as c
    where c.id = any($1) and b.channel = c.channel and not b.account and b.chat = c.chat",
    "delete from push_subscriptions as p using conversations as c
    where c.id = any($1) and p.channel = c.channel and p.chat = c.chat and p.thread = c.thread",
    "delete from slots where conversation_id = any($1)",
    "delete from conversations where id = any($1)",
];

const LOCK_SESSIONS: &str = "select id from sessions where id = any($1) order by id for update";

/// Sessions of which nothing is left to read, unless a conversation continues in them.
const DELETE_SESSIONS: &str = "
    delete from sessions as s where id = any($1)
        and not exists (select 1 from transcript as l where l.session_id = s.id)
        and not exists (select 1 from conversations as c where c.session_id = s.id)
    returning id";
