//! The slots of conversations: in each, one turn of an agent runs at a time, whichever node runs it. Their conversations are locked.

use rejoinder_core::{StoreError, TurnId, store::RunStart};
use uuid::Uuid;

use super::rows::{self, Transaction};
use crate::postgres::values::statement;

/// Takes the slot of a conversation for a run. `false` if another turn has it. A command of the gateway needs none.
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

/// Frees the slot of a conversation, if the turn has it: a run that went on after an approval has none.
pub(super) async fn free(
    transaction: &mut Transaction<'_>,
    conversation: Uuid,
    turn: TurnId,
) -> Result<(), StoreError> {
    rows::change(transaction, statement!(FREE, conversation, turn)).await.map(drop)
}

const TAKE: &str = "
    insert into slots (conversation_id, turn_id, node, since) values ($1, $2, $3, clock_timestamp())
    on conflict (conversation_id) do update
        set turn_id = excluded.turn_id, node = excluded.node, since = excluded.since
        where slots.turn_id is null or slots.turn_id = excluded.turn_id";

const FREE: &str = "
    update slots set turn_id = null, node = null, since = null where conversation_id = $1 and turn_id = $2";
