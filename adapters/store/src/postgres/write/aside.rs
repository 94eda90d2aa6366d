//! Turns that cannot be read.

use rejoinder_core::{
    ApprovalState, ChannelId, Obligation, StoreError, Timestamp, TurnId,
    store::{ApprovalChange, LogEvent, NewLogEntry, Subject},
};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::{
    approvals, lines, log,
    rows::{self, Transaction},
    sessions, slots,
};
use crate::{
    postgres::values::{insert_into, statement},
    records::columns::{Columns, record},
    shared::stored::{ObligationColumns, json},
};

/// What can be read of a turn.
struct Unreadable {
    conversation: Uuid,
    position: Option<i64>,
    body: String,
    /// If it has not ended.
    channel: Option<ChannelId>,
}

/// Ends a turn with `obligation`, also if its rows cannot be read. A turn that has ended stays as it is; nothing
/// happens with it any more. While nodes of several versions live, another one may be able to read it.
pub(super) async fn set(
    transaction: &mut Transaction<'_>,
    turn: TurnId,
    obligation: &Obligation,
    reason: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    rows::change(transaction, statement!(LOCK, turn)).await?;
    let read = |row: &PgRow| Ok(record!(row => Unreadable { conversation, position, body, channel }));
    let found = rows::one(transaction, statement!(SELECT, turn), read).await?;
    let Some(Unreadable { conversation, position, body, channel }) = found else { return Ok(()) };

    let differ = rows::one(transaction, statement!(VERSIONS_DIFFER), |row| row.value("differ")).await?;
    if differ.unwrap_or_default() {
        return Err(StoreError::NotOwner);
    }

    let ObligationColumns { state, postponed, suspended, fell_back, merged_into, .. } =
        ObligationColumns::of(obligation);
    let end = statement!(END, turn, state, at, json(obligation), postponed, suspended, fell_back, merged_into);
    rows::change(transaction, end).await?;
    slots::free(transaction, conversation, turn, false).await?;
    approvals::change(transaction, &ApprovalChange::Closed { turn, state: ApprovalState::Dropped, at }).await?;
    rows::change(transaction, statement!(END_RUNS, turn, at, reason)).await?;
    rows::change(transaction, statement!(END_DELIVERIES, turn, reason)).await?;
    sessions::count_changes(transaction, [], &[turn]).await?;
    let detail = format!("{reason}: {body}");
    rows::change(transaction, insert_into!(remarks { turn_id: turn, at, kind: "set_aside", detail })).await?;
    if channel.is_some() {
        let subject = Subject { turn_id: Some(turn), conversation_id: Some(conversation.into()), channel };
        let event = LogEvent::TurnUndeliverable { cause: None };
        log::add(transaction, &NewLogEntry { at, subject, event }).await?;
    }
    if position.is_some() {
        lines::settle(transaction, conversation, position).await?;
    }
    Ok(())
}

/// The conversation before the turn, as in `lines.rs`.
const LOCK: &str = "
    select t.id from turns as t join conversations as c on c.id = t.conversation_id
    where t.id = $1 for no key update of c, t";

const SELECT: &str = "
    select conversation_id as conversation, place as position, body, case when ended_at is null then channel end as channel
    from turns
    where id = $1 and (ended_at is null or work is not null or wake_at is not null or exists (
        select 1 from deliveries where turn_id = $1 and state in ('pending', 'held', 'sending')))";

const VERSIONS_DIFFER: &str = "
    select count(distinct version) > 1 as differ from nodes where id in (select id from living_nodes)";

const END: &str = "
    update turns set version = version + 1, work = null, wake_at = null, place = null,
        state = case when ended_at is null then $2 else state end, body = case when ended_at is null then $4 else body end,
        postponed = case when ended_at is null then $5 else postponed end,
        suspended = case when ended_at is null then $6 else suspended end,
        fell_back = case when ended_at is null then $7 else fell_back end,
        merged_into = case when ended_at is null then $8 else merged_into end, ended_at = coalesce(ended_at, $3)
    where id = $1";

const END_RUNS: &str = "
    update runs set ended_at = $2, ending = 'crashed', detail = $3
    where ended_at is null and run between (select seq << 16 from turns where id = $1)
        and (select seq << 16 | 65535 from turns where id = $1)";

const END_DELIVERIES: &str = "
    update deliveries set state = 'dead', error = $2
    where turn_id = $1 and state in ('pending', 'held', 'sending')";
