//! The lines of a session.

use std::sync::Arc;

use rejoinder_core::{HistoryLine, SessionId, StoreError, TurnId, store::TurnSeq};
use sqlx::SqlitePool;

use super::error::store_error;
use crate::shared::{transcript_lines::parse_lines, transcripts::FoundLines};

/// How many lines of a turn are read: one for each message that its agent sent.
const LINES_OF_TURN: u32 = 64;

/// Reads lines of the session ?1 for which $of holds: the latest ?2, the latest first. One row for all lines: returning a row costs as
/// much as reading it from the database.
macro_rules! lines {
    ($of:literal) => {
        concat!(
            "
        select json_group_array(json_object(
            'seq', l.seq, 'claim', l.claim, 'turn', lower(hex(l.turn_id)), 'state', l.state,
            'reason', iif(l.state = 'not_delivered', (
                select iif(d.state = 'withdrawn', d.state, (
                    select a.result from attempts as a where a.delivery_id = d.id order by a.number desc limit 1))
                from deliveries as d where d.turn_id = l.turn_id and d.claim = l.claim and d.is_copy = 0
                order by d.part limit 1), null),
            'line', json_object('speaker', l.speaker, 'author', json(l.author),
                'forwarded', json(l.forwarded), 'at', l.at, 'text', coalesce(l.text, (
                select e.text from turns as t cross join events as e on e.seq = t.event where t.seq = l.seq)),
                'spoken', json(iif(l.speaker = 'person' and (
                    select json_extract(e.details, '$.voice.heard') from turns as t cross join events as e on e.seq = t.event
                    where t.seq = l.seq) is 'words', 'true', 'false')))
        )) from (
            select seq, claim, turn_id, speaker, author, forwarded, text, at, state from transcript_lines as w
            where session_id = ?1 ",
            $of,
            "
                and not exists (select 1 from turns as t where t.seq = w.seq and t.left_out = 1)
                and (speaker <> 'gateway' or state in ('seen', 'partly'))
                and not (speaker = 'agent' and exists (
                    select 1 from transcript_lines as n
                    where n.session_id = w.session_id and n.seq = w.seq and n.turn_id = w.turn_id and n.claim > w.claim
                        and n.speaker = 'agent' and n.state in ('seen', 'partly') and (
                            w.state not in ('seen', 'partly') or exists (
                                select 1 from deliveries as d
                                where d.turn_id = w.turn_id and d.claim = w.claim and d.signal = 'deferral'))))
            order by seq desc, claim desc, turn_id desc
            limit ?2
        ) as l"
        )
    };
}

pub(super) async fn transcript(pool: &SqlitePool, session: SessionId, limit: u32) -> Result<FoundLines, StoreError> {
    let query = sqlx::query_scalar(lines!("")).bind(session.as_uuid()).bind(limit);
    let lines: String = query.fetch_one(pool).await.map_err(store_error)?;
    let mut lines = parse_lines(session, &lines)?;
    lines.reverse();
    Ok(FoundLines { lines, count: None })
}

/// The lines of a turn, oldest first.
pub(super) async fn of_turn(
    pool: &SqlitePool,
    session: SessionId,
    (seq, turn): (TurnSeq, TurnId),
) -> Result<Vec<HistoryLine>, StoreError> {
    // Its answer is in the place of the last message that it answers as well.
    let query = sqlx::query_scalar(lines!("and seq >= ?3 and turn_id = ?4"));
    let query = query.bind(session.as_uuid()).bind(LINES_OF_TURN).bind(seq).bind(turn.as_uuid());
    let lines: String = query.fetch_one(pool).await.map_err(store_error)?;
    Ok(parse_lines(session, &lines)?.into_iter().rev().map(|stored| Arc::unwrap_or_clone(stored.line)).collect())
}
