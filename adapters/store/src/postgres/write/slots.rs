//! The slots of conversations: in each, one turn of an agent runs at a time, whichever node runs it. Their conversations are locked.
//!
//! A node decides in memory which of its own turns has the slot, so it takes its own slots over once their runs have ended.

use rejoinder_core::{StoreError, TurnId, store::RunStart};
use uuid::Uuid;

use super::rows::{self, Transaction};
use crate::postgres::{sql::slot_is_kept, values::statement};

/// Takes the slot of a conversation for a run. `false` if another node has it. A command of the gateway needs none.
pub(super) async fn take(
    transaction: &mut Transaction<'_>,
    conversation: Uuid,
    run: &RunStart,
) -> Result<bool, StoreError> {
    if run.handler.agent().is_none() {
        return Ok(true);
    }
    let take = statement!(TAKE, conversation, run.turn, run.node.as_uuid());
    Ok(rows::change(transaction, take).await? > 0)
}

/// The same for a turn that begins as it is stored: `false` also if an earlier one of the conversation waits. Its node may not know of that
/// one: another node has accepted it, or it waited behind a run of another node.
pub(super) async fn take_at_once(
    transaction: &mut Transaction<'_>,
    conversation: Uuid,
    run: &RunStart,
) -> Result<bool, StoreError> {
    let is_behind = run.handler.agent().is_some()
        && rows::one(transaction, statement!(IS_BEHIND, conversation), |_| Ok(())).await?.is_some();
    Ok(!is_behind && take(transaction, conversation, run).await?)
}

/// Frees the slot of a conversation, if the turn has it: a run that went on after an approval has none. If no run `has_left` it, the one
/// in flight still has to end: then it is only freed if its node is over, and that node frees it later.
pub(super) async fn free(
    transaction: &mut Transaction<'_>,
    conversation: Uuid,
    turn: TurnId,
    has_left: bool,
) -> Result<(), StoreError> {
    rows::change(transaction, statement!(FREE, conversation, turn, has_left)).await.map(drop)
}

/// Of those that wait in a conversation, the first has a place.
const IS_BEHIND: &str = "select 1 from turns where place is not null and conversation_id = $1";

const TAKE: &str = concat!(
    "
    insert into slots (conversation_id, turn_id, node, since) values ($1, $2, $3, clock_timestamp())
    on conflict (conversation_id) do update
        set turn_id = excluded.turn_id, node = excluded.node, since = excluded.since
        where slots.turn_id is null
            or slots.node = excluded.node and (slots.turn_id = excluded.turn_id or not exists (
                select 1 from turns as r where r.id = slots.turn_id and r.work = 'running' offset 0))
            or not ",
    slot_is_kept!("slots")
);

const FREE: &str = "
    update slots as s set turn_id = null, node = null, since = null
    where s.conversation_id = $1 and s.turn_id = $2
        and ($3 or not exists (select 1 from living_nodes as n where n.id = s.node))";
