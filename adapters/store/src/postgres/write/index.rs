//! The index of the lines of ended turns.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use rejoinder_core::{
    ChannelId, ConversationId, SessionId, Speaker, StoreError, TurnId,
    store::{LogSeq, TurnSeq},
};
use sqlx::postgres::PgRow;

use super::rows::{self, Transaction};
use crate::{
    postgres::{
        log_order::{self, End},
        search,
        values::{List, statement},
    },
    records::columns::{Columns, record},
    shared::positions::{LONGEST, position},
};

/// How long a step waits for transactions that may add entries before those which it reads. Then it does nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// How far the index has followed the log.
#[derive(Clone, Copy)]
struct Progress {
    logged: LogSeq,
    /// While all turns are indexed anew: the last one.
    turn: Option<TurnSeq>,
    /// Whether all turns are indexed once more after that.
    again: bool,
}

/// Indexes the turns that ended, or were answered after that, as at most `limit` further entries of the log tell. Returns the
/// place in the log up to which lines are indexed; 0 while all turns are indexed anew.
///
/// Until all is known that is written, nothing is locked, and the transaction has no id: readers of the log do not wait for it. If another
/// node takes the same step, the first one counts.
pub(super) async fn step(transaction: &mut Transaction<'_>, limit: u32) -> Result<LogSeq, StoreError> {
    let progress = |row: &PgRow| Ok(record!(row => Progress { logged, turn, again }));
    let progress = rows::one(transaction, statement!(SELECT_PROGRESS), progress)
        .await?
        .ok_or_else(|| StoreError::Corrupt("the index of lines does not tell how far it is".to_owned()))?;
    if let Some(after) = progress.turn {
        return turns(transaction, progress, after, limit).await;
    }
    let logged = progress.logged;
    let end = log_order::end(transaction.connection, End::default(), PATIENCE).await?;
    let Some(End { entry: end, .. }) = end else { return Ok(logged) };
    let entry = |row: &PgRow| Ok((row.value::<LogSeq>("seq")?, row.value::<Option<TurnId>>("turn_id")?));
    let entries = rows::all(transaction, statement!(SELECT_ENTRIES, logged, end, limit), entry).await?;
    let Some((last, _)) = entries.last() else { return Ok(logged) };
    let turns: BTreeSet<TurnId> = entries.iter().filter_map(|(_, turn)| *turn).collect();
    let lines = lines(transaction, turns).await?;
    let is_done = write(transaction, progress, Progress { logged: *last, ..progress }, lines).await?;
    Ok(if is_done { *last } else { logged })
}

/// Has all turns indexed anew if entries of the log up to `through`, which are about to be removed, were not read. A pass over all turns
/// that has begun goes on to its end, and then another one begins: otherwise it might never get there.
pub(super) async fn note_removal(transaction: &mut Transaction<'_>, through: LogSeq) -> Result<(), StoreError> {
    rows::change(transaction, statement!(BEGIN_ANEW, through)).await.map(drop)
}

/// Indexes at most `limit` turns after the one with the number `after`. What they do from now on is in the log after what is logged.
async fn turns(
    transaction: &mut Transaction<'_>,
    progress: Progress,
    after: TurnSeq,
    limit: u32,
) -> Result<LogSeq, StoreError> {
    let turn = |row: &PgRow| Ok((row.value::<TurnSeq>("seq")?, row.value::<TurnId>("id")?));
    let turns = rows::all(transaction, statement!(SELECT_TURNS, after, limit), turn).await?;
    let last = turns.last().map(|(last, _)| *last);
    let lines = lines(transaction, turns.into_iter().map(|(_, turn)| turn)).await?;
    let next = match last {
        None if progress.again => Progress { turn: Some(0), again: false, ..progress },
        turn => Progress { turn, ..progress },
    };
    let is_done = write(transaction, progress, next, lines).await?;
    Ok(if is_done && next.turn.is_none() { progress.logged } else { 0 })
}

/// Stores lines, and how far the index is then; `false` if it is further than `from` already.
async fn write(
    transaction: &mut Transaction<'_>,
    from: Progress,
    to: Progress,
    lines: Vec<(i64, Option<String>)>,
) -> Result<bool, StoreError> {
    let update = statement!(UPDATE_PROGRESS, to.logged, to.turn, to.again, from.logged, from.turn);
    if rows::change(transaction, update).await? == 0 {
        return Ok(false);
    }
    let (mut positions, mut vectors, mut empty) = (Vec::new(), Vec::new(), Vec::new());
    for (position, vector) in lines {
        match vector {
            Some(vector) => {
                positions.push(position);
                vectors.push(vector);
            }
            None => empty.push(position),
        }
    }
    if !positions.is_empty() {
        rows::change(transaction, statement!(INDEX, List(positions), List(vectors))).await?;
    }
    if !empty.is_empty() {
        rows::change(transaction, statement!(FORGET, List(empty))).await?;
    }
    Ok(true)
}

/// A turn that has ended, with what each speaker said last.
struct Ended {
    session: SessionId,
    channel: ChannelId,
    conversation: ConversationId,
    texts: [Option<String>; 3],
}

/// The vectors of the lines of turns that were seen, unless a turn has not ended: of each speaker the last one. What was never put into a
/// transcript is found, too: a message to which the agent said nothing. `None` at the position of a speaker who said nothing.
async fn lines(
    transaction: &mut Transaction<'_>,
    turns: impl IntoIterator<Item = TurnId>,
) -> Result<Vec<(i64, Option<String>)>, StoreError> {
    let turns = List(turns.into_iter().map(TurnId::as_uuid).collect());
    let ended = |row: &PgRow| {
        let (session, channel) = (row.value("session_id")?, row.value("channel")?);
        let (conversation, texts) = (row.value("conversation_id")?, [row.value("text")?, None, None]);
        Ok((row.value::<TurnSeq>("seq")?, Ended { session, channel, conversation, texts }))
    };
    let ended = rows::all(transaction, statement!(SELECT_ENDED, turns, LONGEST), ended).await?;
    let mut ended: BTreeMap<TurnSeq, Ended> = ended.into_iter().collect();
    if ended.is_empty() {
        return Ok(Vec::new());
    }
    let sessions = List(ended.values().map(|turn| turn.session.as_uuid()).collect());
    let numbers = List(ended.keys().copied().collect());
    let line = |row: &PgRow| {
        let (turn, speaker) = (row.value::<TurnSeq>("seq")?, row.value::<u16>("speaker")?);
        Ok((turn, usize::from(speaker), row.value::<String>("text")?))
    };
    for (turn, speaker, text) in
        rows::all(transaction, statement!(SELECT_LINES, sessions, numbers, LONGEST), line).await?
    {
        if let Some(ended) = ended.get_mut(&turn) {
            ended.texts[speaker] = Some(text);
        }
    }
    let mut lines = Vec::new();
    for (seq, Ended { channel, conversation, texts, .. }) in ended {
        for (speaker, text) in [Speaker::Person, Speaker::Agent, Speaker::Gateway].into_iter().zip(texts) {
            let text = text.filter(|text| !text.trim().is_empty());
            let vector = text.map(|text| search::indexed(&text, &channel, conversation));
            lines.push((position(seq, speaker), vector));
        }
        // Long lines take milliseconds.
        tokio::task::yield_now().await;
    }
    Ok(lines)
}

const SELECT_PROGRESS: &str = "select logged, turn, again from search_progress";

const UPDATE_PROGRESS: &str = "
    update search_progress set logged = $1, turn = $2, again = $3 where logged = $4 and turn is not distinct from $5";

/// What is delivered after its turn ended is a late answer.
const SELECT_ENTRIES: &str = "
    select seq, case
        when topic in ('turn.claimed', 'turn.settled', 'turn.undeliverable', 'delivery.delivered') then turn_id
        end as turn_id
    from log where seq > $1 and seq <= $2 order by seq limit $3";

/// As for a removal, the last entry is no matter. What turns have done until now is seen when they are indexed. The entries that are not
/// removed are read again after that, as some before the last one may be committed later.
const BEGIN_ANEW: &str = "
    update search_progress set logged = $1, turn = coalesce(turn, 0), again = turn is not null
    where exists (select 1 from log where seq > logged and seq <= $1 and seq < (select max(seq) from log))";

const SELECT_TURNS: &str = "select seq, id from turns where seq > $1 order by seq limit $2";

const SELECT_ENDED: &str = "
    select t.seq, t.session_id, t.channel, t.conversation_id, substr(e.text, 1, $2::int) as text
    from turns as t left join events as e on e.seq = t.event
    where t.id = any($1) and t.ended_at is not null";

const SELECT_LINES: &str = "
    select l.seq, case l.speaker when 'person' then 0 when 'agent' then 1 else 2 end::bigint as speaker,
        substr(l.text, 1, $3::int) as text
    from unnest($1, $2) as t (session_id, seq)
        join transcript_lines as l on l.session_id = t.session_id and l.seq = t.seq
    where l.text is not null and l.state in ('seen', 'partly', 'stopped') order by l.seq, l.claim";

/// Of a turn that is removed meanwhile nothing is indexed: a removal locks its turns, too, in the same order.
const INDEX: &str = "
    insert into search (position, words)
    select l.position, l.words::tsvector
    from unnest($1::bigint[], $2::text[]) as l (position, words) join turns as t on t.seq = l.position >> 2
    order by t.conversation_id, t.id for key share of t
    on conflict (position) do update set words = excluded.words";

const FORGET: &str = "delete from search where position = any($1)";
