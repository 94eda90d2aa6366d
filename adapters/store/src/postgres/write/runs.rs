//! Runs that start and end.

use rejoinder_core::{
    StoreError, Timestamp, TurnId,
    store::{RunContent, RunEnd, RunHolder, RunStart, TurnSeq},
};

use super::{
    daily_use,
    rows::{self, Transaction},
    settings,
};
use crate::{
    postgres::values::{Bytes, insert_into, statement},
    records::columns::Columns,
    shared::stored::{compress, handler, json, run_key},
};

pub(super) async fn start(transaction: &mut Transaction<'_>, run: &RunStart) -> Result<(), StoreError> {
    let seq = seq_of(transaction, run.turn).await?;
    let seq = seq.ok_or_else(|| StoreError::Failed("the turn of a run is gone".to_owned()))?;
    start_of(transaction, seq, run).await
}

/// As [`start`], of the turn with this place.
pub(super) async fn start_of(
    transaction: &mut Transaction<'_>,
    seq: TurnSeq,
    run: &RunStart,
) -> Result<(), StoreError> {
    let (agent, command) = handler(&run.handler);
    let (owner, started_at) = (run.node.as_uuid(), run.at);
    let run = run_key(seq, run.number).ok_or_else(|| StoreError::Failed("a turn has had too many runs".to_owned()))?;
    let statement = insert_into!(runs { run, agent, command, owner, started_at });
    rows::change(transaction, statement).await.map(drop)
}

pub(super) async fn hand_out(transaction: &mut Transaction<'_>, run: &RunHolder) -> Result<(), StoreError> {
    let RunHolder { turn, number, holder } = run;
    let key = key(transaction, *turn, *number).await?;
    rows::change_one(transaction, "runs", statement!(HAND_OUT, key, holder)).await
}

pub(super) async fn end(transaction: &mut Transaction<'_>, run: &RunEnd) -> Result<(), StoreError> {
    let RunEnd { turn, number, at, end, detail, usage, cost, used: _, agents: _, member, content } = run;
    let key = key(transaction, *turn, *number).await?;
    let statement = statement!(
        END_RUN,
        key,
        at,
        end,
        detail,
        usage.as_ref().map(json),
        cost.as_ref().map(|cost| cost.micros),
        cost.as_ref().map(|cost| cost.currency.as_str()),
        member.as_deref(),
    );
    if rows::change(transaction, statement).await? == 0 {
        let is_there = rows::one(transaction, statement!(SELECT_RUN, key), |row| row.value::<i64>("run")).await?;
        return is_there.map(drop).ok_or_else(|| StoreError::Failed("there is no run to end".to_owned()));
    }
    daily_use::add(transaction, run).await?;
    match key.zip(content.as_ref()) {
        Some((key, content)) => keep(transaction, key, *at, content).await,
        None => Ok(()),
    }
}

/// The key of a run; `None` for one that is not stored.
async fn key(transaction: &mut Transaction<'_>, turn: TurnId, number: u32) -> Result<Option<i64>, StoreError> {
    Ok(seq_of(transaction, turn).await?.and_then(|seq| run_key(seq, number)))
}

/// The place of a turn among all; `None` if it is not stored.
async fn seq_of(transaction: &mut Transaction<'_>, turn: TurnId) -> Result<Option<TurnSeq>, StoreError> {
    rows::one(transaction, statement!(LOCK_SEQ, turn), |row| row.value("seq")).await
}

/// Stores what the model of a run was shown and did.
async fn keep(
    transaction: &mut Transaction<'_>,
    run: i64,
    at: Timestamp,
    content: &RunContent,
) -> Result<(), StoreError> {
    let RunContent { input, tools, tools_left_out } = content;
    let settings = match input {
        Some(input) => Some(settings::id(transaction, &input.settings, run).await?),
        None => None,
    };
    let messages = input.as_ref().map(|input| compress(&input.messages));
    let statement = statement!(
        WRITE_CONTENT,
        run,
        at,
        settings,
        messages.as_deref().map(Bytes),
        input.as_ref().map_or(0, |input| input.left_out),
        (!tools.is_empty()).then(|| json(tools)),
        tools_left_out,
    );
    rows::change_one(transaction, "the contents of runs", statement).await
}

const HAND_OUT: &str = "update runs set holder = nullif($2, '') where run = $1";

/// How a run ended is written once. That it crashed or was stopped may be a guess of another node, and gives way.
const END_RUN: &str = "
    update runs set ended_at = $2, ending = $3, detail = $4, usage = $5::jsonb, cost_micros = $6, currency = $7, member = $8,
        holder = case when $3 in ('crashed', 'stopped') then holder end
    where run = $1 and (ended_at is null or ending in ('crashed', 'stopped'))";

const SELECT_RUN: &str = "select run from runs where run = $1";

/// The turn cannot be removed before the end of the transaction.
const LOCK_SEQ: &str = "select seq from turns where id = $1 for key share";

const WRITE_CONTENT: &str = "
    insert into run_contents (run, at, settings, messages, left_out, tools, tools_left_out)
    values ($1, $2, $3, $4, $5, $6, $7)
    on conflict (run) do update set at = excluded.at, settings = excluded.settings, messages = excluded.messages,
        left_out = excluded.left_out, tools = excluded.tools, tools_left_out = excluded.tools_left_out";
