//! The lines of a session.

use std::sync::Arc;

use rejoinder_core::{HistoryLine, LineState, SessionId, StoreError, TurnId, json_error, store::TurnSeq};
use serde::Deserialize;
use sqlx::SqlitePool;

use super::error::store_error;

/// How many lines of a turn are read: one for each message that its agent sent.
const LINES_OF_TURN: u32 = 64;

/// A line with its keys for finding and ordering.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct StoredLine {
    pub(super) seq: TurnSeq,
    pub(super) claim: u32,
    pub(super) turn: TurnId,
    state: State,
    reason: Option<String>,
    pub(super) line: Arc<HistoryLine>,
}

/// The column `state` of `transcript_lines`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Seen,
    Partly,
    Stopped,
    OnItsWay,
    NotDelivered,
}

impl StoredLine {
    #[cfg(test)]
    pub(super) fn of(seq: TurnSeq, claim: u32, turn: TurnId, line: HistoryLine) -> Self {
        Self { seq, claim, turn, state: State::Seen, reason: None, line: Arc::new(line) }
    }

    fn with_state(mut self) -> Self {
        let state = match self.state {
            State::Seen => LineState::Seen,
            State::Partly => LineState::Partly,
            State::Stopped => LineState::Stopped,
            State::OnItsWay => LineState::OnItsWay,
            State::NotDelivered => LineState::NotDelivered(self.reason.take().unwrap_or_else(|| "not_sent".to_owned())),
        };
        Arc::make_mut(&mut self.line).state = state;
        self
    }
}

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
                select e.text from turns as t cross join events as e on e.seq = t.event where t.seq = l.seq)))
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

pub(super) async fn transcript(
    pool: &SqlitePool,
    session: SessionId,
    limit: u32,
) -> Result<Vec<StoredLine>, StoreError> {
    let query = sqlx::query_scalar(lines!("")).bind(session.as_uuid()).bind(limit);
    let lines: String = query.fetch_one(pool).await.map_err(store_error)?;
    let mut lines = parse_lines(session, &lines)?;
    lines.reverse();
    Ok(lines)
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

/// The lines that can be read. Only if there is another one is each read by itself.
fn parse_lines(session: SessionId, text: &str) -> Result<Vec<StoredLine>, StoreError> {
    if let Ok(lines) = serde_json::from_str::<Vec<StoredLine>>(text) {
        return Ok(lines.into_iter().map(StoredLine::with_state).collect());
    }
    let lines: Vec<serde_json::Value> = serde_json::from_str(text)
        .map_err(|error| StoreError::Corrupt(format!("a transcript: {}", json_error(&error))))?;
    let read = |line| match serde_json::from_value::<StoredLine>(line) {
        Ok(line) => Some(line.with_state()),
        Err(error) => {
            tracing::error!(%session, error = json_error(&error), "a line of a transcript cannot be read, and is left out");
            None
        }
    };
    Ok(lines.into_iter().filter_map(read).collect())
}
