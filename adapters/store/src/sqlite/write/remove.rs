//! Removes rows that are past their time.

use std::collections::BTreeSet;

use rejoinder_core::{SessionId, StoreError, Timestamp, TurnId, store::Removal};
use rusqlite::{Row, params};
use uuid::Uuid;

use super::{
    agent_sessions, daily_use, index,
    rows::{self, Transaction},
    settings,
};
use crate::{shared::stored::json, sqlite::error::store_error};

/// Removes rows; returns the sessions of the turns that were removed.
pub(super) fn rows(
    transaction: &Transaction<'_>,
    removal: &Removal,
    now: Timestamp,
) -> Result<Vec<SessionId>, StoreError> {
    match removal {
        Removal::Turns(ids) => return turns(transaction, ids, now),
        Removal::Payloads(events) => {
            for event in events {
                rows::change(transaction, CLEAR_PAYLOAD, [event])?;
            }
        }
        Removal::Quotes(events) => {
            for event in events {
                rows::change(transaction, CLEAR_QUOTE, [event])?;
            }
        }
        Removal::Contents(runs) => {
            for (turn, number) in runs {
                rows::change(transaction, DELETE_CONTENT, params![turn.as_uuid(), number])?;
            }
            settings::remove_unused(transaction)?;
        }
        Removal::Sounds(turns) => {
            for turn in turns {
                if rows::one(transaction, SELECT_ENDED, [turn.as_uuid()], |_| Ok(()))?.is_none() {
                    continue;
                }
                for sql in DELETE_SOUNDS {
                    rows::change(transaction, sql, [turn.as_uuid()])?;
                }
            }
        }
        Removal::Mentions(person) => {
            let (whole, channel, id) = (person.to_string(), person.channel.as_str(), &person.id);
            for sql in DELETE_LINES_ABOUT {
                rows::change(transaction, sql, params![channel, id, whole])?;
            }
            rows::change(transaction, DELETE_REACTIONS, params![channel, id])?;
            rows::change(transaction, DELETE_ANSWERS, [json(id)])?;
            rows::change(transaction, CLEAR_LOG, [])?;
            settings::remove_unreferenced(transaction)?;
        }
        Removal::Keys(events) => {
            for event in events {
                rows::change(transaction, DELETE_KEY, [event])?;
            }
        }
        Removal::Log { through, .. } => {
            index::note_removal(transaction, *through)?;
            rows::change(transaction, DELETE_LOG, [through])?;
        }
        Removal::Lines { through, .. } => {
            for sql in DELETE_LINES {
                rows::change(transaction, sql, [through])?;
            }
        }
        Removal::Pages(number) => free(transaction, *number).map_err(store_error)?,
    }
    Ok(Vec::new())
}

/// Gives free pages back. The pragma frees one with each of its rows.
fn free(transaction: &Transaction<'_>, pages: u32) -> rusqlite::Result<()> {
    let mut statement = transaction.connection.prepare(&format!("pragma incremental_vacuum({pages})"))?;
    let mut freed = statement.query([])?;
    while freed.next()?.is_some() {}
    Ok(())
}

/// Removes turns, the conversations that have none left, and the sessions that have no line left.
fn turns(transaction: &Transaction<'_>, turns: &[TurnId], now: Timestamp) -> Result<Vec<SessionId>, StoreError> {
    let (mut conversations, mut sessions) = (BTreeSet::new(), BTreeSet::new());
    let mut all: Vec<TurnId> = turns.to_vec();
    for turn in turns {
        // What others were told of its approvals goes with it.
        all.extend(
            rows::all(transaction, SELECT_NOTICES, [turn.as_uuid()], |row| row.get::<_, Uuid>(0))?
                .into_iter()
                .map(TurnId::from),
        );
    }
    for turn in &all {
        let found = |row: &Row<'_>| Ok((row.get::<_, Uuid>(0)?, row.get::<_, Uuid>(1)?));
        let found = rows::one(transaction, SELECT_ENDED, [turn.as_uuid()], found)?;
        let Some((conversation, session)) = found else { continue };
        agent_sessions::owe_removed(transaction, *turn)?;
        for sql in DELETE_TURN {
            rows::change(transaction, sql, [turn.as_uuid()])?;
        }
        conversations.insert(conversation);
        sessions.insert(session);
    }
    while let Some(conversation) = conversations.pop_first() {
        let successor = rows::one(transaction, SELECT_EMPTY, [conversation], |row| row.get::<_, Option<Uuid>>(0))?;
        if let Some(successor) = successor {
            rows::change(transaction, HAND_OVER_SESSIONS, [conversation])?;
            for session in rows::all(transaction, SELECT_SESSIONS, [conversation], |row| row.get::<_, Uuid>(0))? {
                rows::change(transaction, "delete from sessions where id = ?", [session])?;
                agent_sessions::owe_deleted(transaction, session.into())?;
            }
            for sql in DELETE_CONVERSATION {
                rows::change(transaction, sql, [conversation])?;
            }
            // It may have been kept only because of this one.
            conversations.extend(successor);
        }
    }
    for session in &sessions {
        if rows::change(transaction, DELETE_SESSION, [session])? > 0 {
            agent_sessions::owe_deleted(transaction, (*session).into())?;
        }
        rows::change(transaction, CLEAR_TITLE, [session])?;
    }
    settings::remove_unused(transaction)?;
    daily_use::remove_old(transaction, now)?;
    Ok(sessions.into_iter().map(SessionId::from).collect())
}

const CLEAR_PAYLOAD: &str = "update events set raw = null, details = json_remove(details, '$.brief') where seq = ?";

const CLEAR_QUOTE: &str = "
    update events set raw = null, details = json_remove(details, '$.brief', '$.quoted') where seq = ?";

const DELETE_LOG: &str = "delete from log where seq <= ? and seq < (select max(seq) from log)";

const DELETE_LINES: [&str; 2] =
    ["delete from errors where last_line <= ? and muted = 0", "delete from log_lines where id <= ?"];

/// The lines of no turn that name an identity in a field, and the errors that came last in one of them. ?1: the channel, ?2: the id
/// there, ?3: both.
macro_rules! lines_about {
    () => {
        "(select l.id from log_lines as l cross join json_each(l.fields) as f
        where l.turn_id is null and (f.value = ?3 or (f.value = ?2 and l.channel = ?1)))"
    };
}

const DELETE_LINES_ABOUT: [&str; 3] = [
    concat!("update errors set fields = '{}' where muted = 1 and last_line in ", lines_about!()),
    concat!("delete from errors where muted = 0 and last_line in ", lines_about!()),
    concat!("delete from log_lines where id in ", lines_about!()),
];

const DELETE_REACTIONS: &str = "delete from reactions where channel = ? and person = ?";

/// ?1: an id, as JSON. It may stand alone, or at the end of an address.
const DELETE_ANSWERS: &str = "delete from answers where instr(body, ?1) > 0 or instr(body, '/' || substr(?1, 2)) > 0";

/// What platforms said of deliveries of turns that are gone.
const CLEAR_LOG: &str = "
    update log set data = json_remove(data, '$.error')
    where topic = 'delivery.failed' and json_type(data, '$.error') = 'text'
        and not exists (select 1 from turns where id = log.turn_id)";

const DELETE_KEY: &str = "delete from events where seq = ? and details is null and raw is null";

const SELECT_ENDED: &str = "
    select t.conversation_id, t.session_id
    from turns as t
    where t.id = ? and t.ended_at is not null and t.work is null and not exists (
        select 1 from deliveries as d
        where d.turn_id = t.id and d.state not in ('delivered', 'withdrawn', 'refused', 'dead', 'held'))";

const SELECT_NOTICES: &str = "
    select n.turn_id from approvals as a cross join approval_notices as n on n.approval_id = a.id where a.turn_id = ?";

const DELETE_CONTENT: &str = "delete from run_contents where run = (select seq << 16 | ?2 from turns where id = ?1)";

const DELETE_CONTENTS: &str = "
    delete from run_contents where run in (
        select c.run from turns as t cross join run_contents as c on c.run between t.seq << 16 and t.seq << 16 | 65535
        where t.id = ?)";

/// The sounds of spoken words that no turn has for another reason, and that this one has them.
const DELETE_SOUNDS: [&str; 2] = [
    "delete from files where digest in (
        select u.digest from file_uses as u where u.turn_id = ?1 and u.spoken_at is not null and not exists (
            select 1 from file_uses as o where o.digest = u.digest and o.turn_id <> u.turn_id))",
    "delete from file_uses where turn_id = ? and spoken_at is not null",
];

/// What belongs to a turn, and the turn.
const DELETE_TURN: [&str; 22] = [
    "delete from guesses where who = (select channel || '/' || person from turns where id = ?)",
    "update errors set fields = '{}' where muted = 1 and last_line in (select id from log_lines where turn_id = ?)",
    "delete from errors where muted = 0 and last_line in (select id from log_lines where turn_id = ?)",
    "delete from log_lines where turn_id = ?",
    "delete from search where rowid between (select seq << 2 from turns where id = ?1)
        and (select seq << 2 | 3 from turns where id = ?1)",
    DELETE_CONTENTS,
    "delete from attempts where delivery_id in (select id from deliveries where turn_id = ?)",
    "delete from deliveries where turn_id = ?",
    "delete from files where digest in (
        select u.digest from file_uses as u where u.turn_id = ?1 and not exists (
            select 1 from file_uses as o where o.digest = u.digest and o.turn_id <> u.turn_id))",
    "delete from file_uses where turn_id = ?",
    "delete from questions where turn_id = ?",
    "delete from approval_notices where turn_id = ?1 or approval_id in (select id from approvals where turn_id = ?1)",
    "delete from whole_requests where approval_id in (select id from approvals where turn_id = ?)",
    "delete from approvals where turn_id = ?",
    "delete from runs where run between (select seq << 16 from turns where id = ?1)
        and (select seq << 16 | 65535 from turns where id = ?1)",
    "delete from remarks where turn_id = ?",
    "delete from reactions where turn_id = ?",
    "delete from asides where turn_id = ?",
    "delete from transcript where (session_id, seq) in (select session_id, seq from turns where id = ?)",
    // The language that somebody chose goes with their last turn in a conversation, unless they are known.
    "delete from languages where (channel, id) = (select channel, person from turns where id = ?1)
        and not exists (select 1 from identities as i where i.channel = languages.channel and i.id = languages.id)
        and not exists (
            select 1 from turns as t
            where t.conversation_id = (select conversation_id from turns where id = ?1) and t.id <> ?1
                and t.person = languages.id)",
    // All events of a turn have the same key but for the revision.
    "update events set chat = '', thread = '', text = null, details = null, raw = null
    where seq in (
        select f.seq
        from turns as t cross join events as e on e.seq = t.event
            cross join events as f on f.channel = e.channel and f.external_id = e.external_id
        where t.id = ?1 and f.turn_id = ?1)",
    "delete from turns where id = ?",
];

const SELECT_EMPTY: &str = "
    select succeeded_by from conversations as c
    where c.id = ? and not exists (select 1 from turns as t where t.conversation_id = c.id)
        and not exists (select 1 from conversations as o where o.succeeded_by = c.id)";

/// A session that another conversation continues in, or in which one has said something, becomes that one's.
const HAND_OVER_SESSIONS: &str = "
    with others (session, conversation) as (
        select s.id, coalesce(
            (select c.id from conversations as c where c.session_id = s.id and c.id <> ?1 limit 1),
            (select t.conversation_id from transcript as l cross join turns as t on t.seq = l.seq
            where l.session_id = s.id and t.conversation_id <> ?1 limit 1))
        from sessions as s where s.conversation_id = ?1)
    update sessions set conversation_id = (select conversation from others where session = sessions.id)
    where id in (select session from others where conversation is not null)";

const SELECT_SESSIONS: &str = "select id from sessions where conversation_id = ?";

const DELETE_CONVERSATION: [&str; 3] = [
    "delete from blocked where (channel, account, chat) = (select channel, 0, chat from conversations where id = ?)",
    "delete from push_subscriptions
    where (channel, chat, thread) = (select channel, chat, thread from conversations where id = ?)",
    "delete from conversations where id = ?",
];

/// A title may repeat what was said in a turn that is removed.
pub(super) const CLEAR_TITLE: &str = "update sessions set title = null where id = ? and title is not null";

/// A session of which nothing is left to read, unless a conversation continues in it.
const DELETE_SESSION: &str = "
    delete from sessions where id = ?1
        and not exists (select 1 from transcript as l where l.session_id = ?1)
        and not exists (select 1 from conversations as c where c.session_id = ?1)";
