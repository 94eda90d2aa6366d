//! What is overdue, gets nowhere, or was given up.

use rejoinder_core::{StoreError, Timestamp, store::Stuck};

use crate::{
    postgres::{connections::Connections, values::statement},
    records::stuck,
};

const OVERDUE: &str = "
    select seq, channel, next_agent as agent, person, state = 'claimed' as is_claimed, overdue_at from turns
    where ended_at is null and owed and not absent and overdue_at < $1 order by seq desc limit $2";

const PARKED: &str = "
    select d.seq, d.channel, t.person, d.error, d.created_at,
        d.class = 'final' and not d.is_copy and t.owed and t.ended_at is null as owed
    from deliveries as d join turns as t on t.id = d.turn_id
    where d.state in ('pending', 'sending') and not d.absent and d.parked and d.attempts > 0 and not coalesce(
        t.ended_at is null and t.owed and t.overdue_at < $1, false)
    order by d.seq desc limit $2";

const DEAD: &str = "
    select seq, person, owed, ended_at from turns where state = 'undeliverable' order by seq desc limit $1";

pub(super) async fn stuck(connections: &Connections, now: Timestamp, limit: u32) -> Result<Stuck, StoreError> {
    Ok(Stuck {
        overdue: connections.all(statement!(OVERDUE, now, limit), stuck::overdue).await?,
        parked: connections.all(statement!(PARKED, now, limit), stuck::parked).await?,
        dead: connections.all(statement!(DEAD, limit), stuck::dead).await?,
    })
}
