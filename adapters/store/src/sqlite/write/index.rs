//! The index of the lines of ended turns.

use std::collections::BTreeSet;

use rejoinder_core::{
    ChannelId, Speaker, StoreError,
    store::{LogSeq, TurnSeq},
};
use rusqlite::{Row, params};
use uuid::Uuid;

use super::rows::{self, Transaction};
use crate::{
    shared::positions::{LONGEST, position},
    sqlite::search,
};

/// Indexes the turns that ended, or were answered after that, as at most `limit` further entries of the log tell. Returns the
/// place in the log up to which lines are indexed; 0 while all turns are indexed anew.
pub(super) fn step(transaction: &Transaction<'_>, limit: u32) -> Result<LogSeq, StoreError> {
    let progress = |row: &Row<'_>| Ok((row.get::<_, LogSeq>(0)?, row.get::<_, Option<TurnSeq>>(1)?));
    let (logged, turn) = rows::one(transaction, SELECT_PROGRESS, [], progress)?
        .ok_or_else(|| StoreError::Corrupt("the index of lines does not tell how far it is".to_owned()))?;
    if let Some(turn) = turn {
        return turns(transaction, logged, turn, limit);
    }
    let entry = |row: &Row<'_>| Ok((row.get::<_, LogSeq>(0)?, row.get::<_, Option<Uuid>>(1)?));
    let entries = rows::all(transaction, SELECT_ENTRIES, params![logged, limit], entry)?;
    let Some((last, _)) = entries.last() else { return Ok(logged) };
    let turns: BTreeSet<Uuid> = entries.iter().filter_map(|(_, turn)| *turn).collect();
    for turn in turns {
        lines(transaction, turn)?;
    }
    progress_to(transaction, *last, None)?;
    Ok(*last)
}

/// Has all turns indexed anew if entries of the log up to `through`, which are about to be removed, were not read. A pass over all turns
/// that has begun goes on to its end, and then another one begins: otherwise it might never get there.
pub(super) fn note_removal(transaction: &Transaction<'_>, through: LogSeq) -> Result<(), StoreError> {
    rows::change(transaction, BEGIN_ANEW, [through]).map(drop)
}

/// Indexes at most `limit` turns after the last one of a pass over all turns, as it is stored. What they do from now on is in the log
/// after `logged`.
fn turns(transaction: &Transaction<'_>, logged: LogSeq, stored: TurnSeq, limit: u32) -> Result<LogSeq, StoreError> {
    let is_repeated = stored < 0;
    let marked = |turn: TurnSeq| if is_repeated { !turn } else { turn };
    let turn = |row: &Row<'_>| Ok((row.get::<_, TurnSeq>(0)?, row.get::<_, Uuid>(1)?));
    let turns = rows::all(transaction, SELECT_TURNS, params![marked(stored), limit], turn)?;
    for (_, turn) in &turns {
        lines(transaction, *turn)?;
    }
    match turns.last() {
        Some((last, _)) => progress_to(transaction, logged, Some(marked(*last))).map(|()| 0),
        None if is_repeated => rows::change(transaction, REPEAT, []).map(|_| 0),
        None => progress_to(transaction, logged, None).map(|()| logged),
    }
}

/// Merges parts of the index, so that words of deleted lines go; `false` once all of it is one part without them.
pub(super) fn merge(transaction: &Transaction<'_>) -> Result<bool, StoreError> {
    let before = transaction.connection.total_changes();
    rows::change(transaction, MERGE, [MERGE_STEP])?;
    // FTS5 reports progress so: at least two changes.
    Ok(transaction.connection.total_changes() - before >= 2)
}

/// How many pages of the index are written in one step; negative: all parts are merged into one.
const MERGE_STEP: i32 = -500;

const MERGE: &str = "insert into search (search, rank) values ('merge', ?)";

fn progress_to(transaction: &Transaction<'_>, logged: LogSeq, turn: Option<TurnSeq>) -> Result<(), StoreError> {
    rows::change_one(transaction, "the progress of the index", UPDATE_PROGRESS, params![logged, turn])
}

/// Indexes the lines of a turn that were seen, unless it has not ended: of each speaker the last one. What was never put into a
/// transcript is found, too: a message to which the agent said nothing.
fn lines(transaction: &Transaction<'_>, turn: Uuid) -> Result<(), StoreError> {
    let ended = |row: &Row<'_>| {
        let (seq, session): (TurnSeq, Uuid) = (row.get(0)?, row.get(1)?);
        let (channel, conversation): (String, Uuid) = (row.get(2)?, row.get(3)?);
        Ok((seq, session, channel, conversation, row.get::<_, Option<String>>(4)?))
    };
    let Some((seq, session, channel, conversation, message)) =
        rows::one(transaction, SELECT_ENDED, params![turn, LONGEST], ended)?
    else {
        return Ok(());
    };
    let mut texts = [message, None, None];
    let line = |row: &Row<'_>| Ok((row.get::<_, usize>(0)?, row.get::<_, String>(1)?));
    for (speaker, text) in rows::all(transaction, SELECT_LINES, params![session, seq, LONGEST], line)? {
        texts[speaker] = Some(text);
    }
    let location = search::where_it_is(&ChannelId::from_stored(&channel), conversation.into());
    for (speaker, text) in [Speaker::Person, Speaker::Agent, Speaker::Gateway].into_iter().zip(texts) {
        let row = position(seq, speaker);
        match text.filter(|text| !text.trim().is_empty()) {
            Some(text) => rows::change(transaction, INDEX, params![row, search::indexed(&text), location])?,
            None => rows::change(transaction, FORGET, [row])?,
        };
    }
    Ok(())
}

const SELECT_PROGRESS: &str = "select logged, turn from search_progress";

const UPDATE_PROGRESS: &str = "update search_progress set logged = ?, turn = ?";

/// What is delivered after its turn ended is a late answer.
const SELECT_ENTRIES: &str = "
    select seq, iif(topic in ('turn.claimed', 'turn.settled', 'turn.undeliverable', 'delivery.delivered'), turn_id, null)
    from log where seq > ? order by seq limit ?";

/// As for a removal, the last entry is no matter. What turns have done until now is seen when they are indexed. The complement of a
/// turn's number, which is negative, says that the pass is repeated.
const BEGIN_ANEW: &str = "
    update search_progress set
        logged = iif(turn is null, (select max(seq) from log), logged),
        turn = iif(turn is null, 0, min(turn, ~turn))
    where exists (select 1 from log where seq > logged and seq <= ? and seq < (select max(seq) from log))";

const REPEAT: &str = "update search_progress set logged = coalesce((select max(seq) from log), logged), turn = 0";

const SELECT_TURNS: &str = "select seq, id from turns where seq > ? order by seq limit ?";

const SELECT_ENDED: &str = "
    select t.seq, t.session_id, t.channel, t.conversation_id, substr(e.text, 1, ?2)
    from turns as t left join events as e on e.seq = t.event
    where t.id = ?1 and t.ended_at is not null";

const SELECT_LINES: &str = "
    select case speaker when 'person' then 0 when 'agent' then 1 else 2 end, substr(text, 1, ?3)
    from transcript_lines
    where session_id = ?1 and seq = ?2 and text is not null and state in ('seen', 'partly', 'stopped') order by claim";

const INDEX: &str = "insert or replace into search (rowid, text, place) values (?, ?, ?)";

const FORGET: &str = "delete from search where rowid = ?";
