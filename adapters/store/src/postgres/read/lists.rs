//! Lists and counts for the operator.

use async_trait::async_trait;
use rejoinder_core::{
    ConversationId, StoreError, Timestamp, TurnId,
    store::{
        AgentFigures, AgentSessionFilter, AgentSessionSummary, Backlog, ConversationFilter, ConversationSummary,
        DeadLetter, DeadLetterFilter, DeliveryFilter, Dossier, ListedDelivery, OperatorStore, Origin, SessionSummary,
        Stuck, TurnFilter, TurnListState, TurnSummary,
    },
};
use sqlx::{Postgres, QueryBuilder};

use super::{agent_sessions, conversations, dead_letters, deliveries, names, push_person, stuck, turns};
use crate::{
    postgres::{connections::Connections, store::PostgresStore, values::statement},
    records::summary,
    shared::{bounds::ASKED_FOR, patterns::containing, positions::first_id},
};

async fn list(connections: &Connections, filter: &TurnFilter, now: Timestamp) -> Result<Vec<TurnSummary>, StoreError> {
    let mut sql = QueryBuilder::<Postgres>::new(
        "select t.id, t.conversation_id, c.channel, c.chat, c.thread, t.accepted_at, t.agent, t.command, t.owed, t.state, t.wake_at,
        t.ended_at, t.body, e.text, e.details, (
            select coalesce(d.error, (
                select coalesce(a.detail, a.result) from attempts as a
                where a.delivery_id = d.id and a.ended_at is not null order by a.number desc limit 1))
            from deliveries as d
            where d.turn_id = t.id and d.state in ('pending', 'sending')
            order by d.seq desc limit 1) as error,
            exists (select 1 from paused as p where p.channel = t.channel) as is_paused
        from ",
    );
    push_source(&mut sql, filter, now);
    sql.push(" join conversations as c on c.id = t.conversation_id join events as e on e.seq = t.event where true");
    if let Some(before) = filter.before {
        sql.push(" and t.seq < (select seq from turns where id = ").push_bind(before.as_uuid()).push(")");
    }
    if let Some((first, last)) = filter.ids {
        sql.push(" and t.id between ").push_bind(first.as_uuid()).push(" and ").push_bind(last.as_uuid());
    }
    push_state(&mut sql, filter.state, now);
    match filter.channels.as_deref() {
        None => {}
        // An index has the turns of one channel in their order.
        Some([channel]) => {
            sql.push(" and t.channel = ").push_bind(channel.as_str());
        }
        Some(channels) => {
            sql.push(" and t.channel = any(").push_bind(names(channels)).push(")");
        }
    }
    if let Some(conversation) = filter.conversation {
        sql.push(" and t.conversation_id = ").push_bind(conversation.as_uuid());
    }
    if let Some(agent) = &filter.agent {
        sql.push(" and t.agent = ").push_bind(&**agent);
    }
    if let Some(person) = &filter.person {
        sql.push(" and ");
        push_person(&mut sql, person);
    }
    if let Some(text) = &filter.text {
        // With this collation `ilike` ignores the case of ASCII letters only.
        sql.push(" and e.text collate \"C\" ilike ").push_bind(containing(text)).push(" escape '\\'");
    }
    if filter.fallback {
        sql.push(" and t.fell_back");
    }
    if let Some(since) = filter.since {
        sql.push(" and t.accepted_at >= ").push_bind(since.as_millis());
        // Older turns need not be read: ids begin with the time. `+ 0`: found by the id, and not by going through the order.
        sql.push(" and t.seq >= coalesce((select min(seq + 0) from turns where id >= ").push_bind(first_id(since));
        sql.push("), 9223372036854775807)");
    }
    if let Some(until) = filter.until {
        sql.push(" and t.accepted_at < ").push_bind(until.as_millis());
    }
    sql.push(" order by t.seq desc limit ").push_bind(i64::from(filter.limit));
    connections.all(sql.build(), summary::record).await
}

fn push_source(sql: &mut QueryBuilder<Postgres>, filter: &TurnFilter, now: Timestamp) {
    // Partial indexes find the few open, overdue, absent or undeliverable turns of a long history.
    if filter.state == Some(TurnListState::Asked) {
        sql.push("(select turn_id from questions where state = 'open' and asked_at >= ");
        sql.push_bind(now.as_millis() - ASKED_FOR);
        sql.push(") as q join turns as t on t.id = q.turn_id");
    } else {
        sql.push("turns as t");
    }
}

fn push_state(sql: &mut QueryBuilder<Postgres>, state: Option<TurnListState>, now: Timestamp) {
    match state {
        None => {}
        Some(TurnListState::Open) => {
            sql.push(" and t.ended_at is null and t.owed");
        }
        Some(TurnListState::Settled) => {
            sql.push(" and t.state = 'settled'");
        }
        Some(TurnListState::Undeliverable) => {
            sql.push(" and t.state = 'undeliverable'");
        }
        Some(TurnListState::Overdue) => {
            sql.push(" and t.ended_at is null and t.owed and not t.absent and t.overdue_at < ");
            sql.push_bind(now.as_millis());
        }
        Some(TurnListState::Absent) => {
            sql.push(" and t.absent");
        }
        Some(TurnListState::Asked) => {
            sql.push(
                " and t.state = 'settled' and not exists (
                select 1 from turns as l
                where l.conversation_id = t.conversation_id and l.seq > t.seq
                    and coalesce(l.command, '') not in (",
            )
            .push_bind(Origin::MESSAGE)
            .push(", ")
            .push_bind(Origin::DIGEST)
            .push(", ")
            .push_bind(Origin::ASKS_AGAIN)
            .push("))");
        }
    }
}

/// `+ 0`: the oldest is found among the open ones, and not by going through the order.
const BACKLOG: &str = "
    select
        (select count(*) from turns where ended_at is null and owed) as open,
        (select count(*) from turns where ended_at is null and owed and not absent and overdue_at < $1) as overdue,
        (select count(*) from turns where work = 'waiting' and not absent) as waiting,
        (select count(*) from deliveries where state = 'pending' and not absent) as pending,
        (select count(*) from deliveries
            where state in ('pending', 'sending') and not absent and parked and attempts > 0) as parked,
        (select count(*) from turns where absent) as absent,
        (select count(*) from turns where state = 'undeliverable') as undeliverable,
        (select count(*) from deliveries where state = 'dead' and is_copy) as dead_copies,
        (select count(*) from turns where state = 'deferred') as deferred,
        (select accepted_at from turns where seq = (
            select min(seq + 0) from turns where ended_at is null and owed and not absent)) as oldest_open";

async fn backlog(connections: &Connections, now: Timestamp) -> Result<Backlog, StoreError> {
    let backlog = connections.one(statement!(BACKLOG, now), summary::backlog).await?;
    backlog.ok_or_else(|| StoreError::Failed("the backlog was not counted".to_owned()))
}

/// Tokens of a run as `bigint`. Agents tell how many they are, and may tell any number.
macro_rules! tokens {
    ($field:literal) => {
        concat!("least(coalesce((usage ->> '", $field, "')::numeric, 0), 9223372036854775807)::bigint")
    };
}

#[async_trait]
impl OperatorStore for PostgresStore {
    async fn agent_figures(&self, since: Timestamp, limit: u32) -> Result<Vec<AgentFigures>, StoreError> {
        // Ids begin with the time, so only the runs of late turns are read. `+ 0`: see `list`.
        let sql = concat!(
            "
            select agent, ended_at - started_at as took, ending is not distinct from 'failed' as failed, ",
            tokens!("input_tokens"),
            " as input, ",
            tokens!("output_tokens"),
            " as output, cost_micros, currency
            from runs
            where run >= (select min(seq + 0) << 16 from turns where id >= $1) and started_at >= $2
                and agent is not null and ended_at is not null
            order by run desc limit $3"
        );
        let runs = self.operator.rows(statement!(sql, first_id(since), since, limit)).await?;
        let waiting = "
            select next_agent as agent, count(*) as number from turns
            where work = 'waiting' and not absent and next_agent <> '' group by next_agent";
        let waiting = self.operator.rows(statement!(waiting)).await?;
        let sessions = "select agent, count(*) as number from agent_sessions group by agent";
        let sessions = self.operator.rows(statement!(sessions)).await?;
        summary::of_agents(&runs, &waiting, &sessions)
    }

    async fn agent_sessions(&self, filter: &AgentSessionFilter) -> Result<Vec<AgentSessionSummary>, StoreError> {
        agent_sessions::list(&self.operator, filter).await
    }

    async fn list_turns(&self, filter: &TurnFilter) -> Result<Vec<TurnSummary>, StoreError> {
        let now = filter.now.unwrap_or_else(|| self.clock.now());
        list(&self.operator, filter, now).await
    }

    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>, StoreError> {
        dead_letters::dead_letters(&self.operator, filter).await
    }

    async fn list_deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<ListedDelivery>, StoreError> {
        deliveries::list_deliveries(&self.operator, filter).await
    }

    async fn conversations(&self, filter: &ConversationFilter) -> Result<Vec<ConversationSummary>, StoreError> {
        conversations::conversations(&self.operator, filter).await
    }

    async fn sessions(&self, conversation: ConversationId, limit: u32) -> Result<Vec<SessionSummary>, StoreError> {
        conversations::sessions(&self.operator, conversation, limit).await
    }

    async fn dossier(&self, turn: TurnId) -> Result<Option<Dossier>, StoreError> {
        turns::dossier(&self.operator, turn).await
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        backlog(&self.operator, self.clock.now()).await
    }

    async fn stuck(&self, limit: u32) -> Result<Stuck, StoreError> {
        stuck::stuck(&self.operator, self.clock.now(), limit).await
    }
}
