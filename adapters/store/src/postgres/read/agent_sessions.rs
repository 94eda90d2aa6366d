//! The sessions that agents keep, and what they are owed to be told of them.

use async_trait::async_trait;
use rejoinder_core::{
    AgentName, SessionId, StoreError, Timestamp,
    store::{AgentNotice, AgentSession, AgentSessionFilter, AgentSessionStore, AgentSessionSummary},
};
use sqlx::{Postgres, QueryBuilder};

use super::names;
use crate::{
    postgres::{connections::Connections, sql::turn_goes_on, store::PostgresStore, values::statement},
    records::{columns::Columns, session},
    shared::bounds::LOOK_AGAIN,
};

/// Whether a notice waits for the end of a turn: that the session of one turn is deleted, while that turn is open or a run of it goes on.
macro_rules! is_held {
    () => {
        concat!("(d.change = 'deleted' and ", turn_goes_on!("d.session_id"), ")")
    };
}

#[async_trait]
impl AgentSessionStore for PostgresStore {
    async fn agent_session(&self, agent: &AgentName, session: SessionId) -> Result<Option<AgentSession>, StoreError> {
        let sql = "
            select own_session, removals, (
                select coalesce(jsonb_agg(n.turn_id), '[]') from agent_notices as n
                where n.session_id = a.session_id and n.agent = a.agent and n.change = 'turn_removed') as removed
            from agent_sessions as a where session_id = $1 and agent = $2";
        self.readers.one(statement!(sql, session, agent), session::of_agent).await
    }

    async fn agent_notices(&self, until: Timestamp, limit: u32) -> Result<Vec<AgentNotice>, StoreError> {
        let sql = concat!(
            "
            select n.session_id, n.agent, n.change, n.turn_id, n.attempts, a.own_session, coalesce(a.removals, 0) as removals
            from (
                select *, row_number() over (partition by agent order by due_at) as number
                from agent_notices as d where due_at <= $1 and not ",
            is_held!(),
            ") as n left join agent_sessions as a using (session_id, agent)
            where n.number <= $2 order by n.due_at"
        );
        self.readers.all(statement!(sql, until, limit), session::notice).await
    }

    async fn next_agent_notice(&self, after: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let sql = concat!(
            "
            select min(at) as at from (
                select min(due_at) as at from agent_notices where due_at > $1
                union all select $2::bigint from agent_notices as d where due_at <= $1 and ",
            is_held!(),
            ") as n"
        );
        let next = self.readers.one(statement!(sql, after, after + LOOK_AGAIN), |row| row.value("at"));
        next.await.map(Option::flatten)
    }
}

pub(super) async fn list(
    connections: &Connections,
    filter: &AgentSessionFilter,
) -> Result<Vec<AgentSessionSummary>, StoreError> {
    let mut sql = QueryBuilder::<Postgres>::new(
        "select a.session_id, a.own_session is not null as has_own_id, s.name, s.title, s.created_at, s.used_at,
            s.conversation_id, p.name as person, c.channel, c.chat, c.thread
        from agent_sessions as a join sessions as s on s.id = a.session_id
            join conversations as c on c.id = s.conversation_id
            left join people as p on p.id = s.owner
        where a.agent = ",
    );
    sql.push_bind(&*filter.agent);
    if let Some(before) = filter.before {
        sql.push(" and a.session_id < ").push_bind(before.as_uuid());
    }
    if let Some(channels) = filter.channels.as_deref().map(names) {
        sql.push(" and c.channel = any(").push_bind(&*channels).push(")");
        // Only a person's session is used elsewhere, too.
        sql.push(
            " and (s.owner is null or not exists (
                select 1 from conversations as o where o.session_id = s.id and o.channel <> all(",
        );
        sql.push_bind(&*channels).push(
            ") union all
                select 1 from transcript as l join turns as t on t.seq = l.seq
                where l.session_id = s.id and t.channel <> all(",
        );
        sql.push_bind(&*channels).push(")))");
    }
    sql.push(" order by a.session_id desc limit ").push_bind(i64::from(filter.limit));
    connections.all(sql.build(), session::summary_of_agent).await
}
