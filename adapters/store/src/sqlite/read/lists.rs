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
use sqlx::{QueryBuilder, Sqlite, SqlitePool};

use super::{agent_sessions, conversations, dead_letters, deliveries, names, push_person, rows::all, stuck, turns};
use crate::{
    records::summary,
    shared::{bounds::ASKED_FOR, patterns::containing, positions::first_id},
    sqlite::{error::store_error, store::SqliteStore},
};

pub(in crate::sqlite) async fn list(
    pool: &SqlitePool,
    filter: &TurnFilter,
    now: Timestamp,
) -> Result<Vec<TurnSummary>, StoreError> {
    let mut sql = QueryBuilder::<Sqlite>::new(
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
    sql.push(
        " cross join conversations as c on c.id = t.conversation_id cross join events as e on e.seq = t.event where true",
    );
    if let Some(before) = filter.before {
        sql.push(" and t.seq < (select seq from turns where id = ").push_bind(before.as_uuid()).push(")");
    }
    if let Some((first, last)) = filter.ids {
        sql.push(" and t.id between ").push_bind(first.as_uuid()).push(" and ").push_bind(last.as_uuid());
    }
    push_state(&mut sql, filter.state, now);
    match filter.channels.as_deref() {
        None => {}
        // An index finds the turns of one channel.
        Some([channel]) => {
            sql.push(" and t.channel = ").push_bind(channel.as_str());
        }
        Some(channels) => {
            sql.push(" and t.channel in (select value from json_each(").push_bind(names(channels)).push("))");
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
        sql.push(" and e.text like ").push_bind(containing(text)).push(" escape '\\'");
    }
    if filter.fallback {
        sql.push(" and json_extract(t.body, '$.state.settled.via.fallback') is not null");
    }
    if let Some(since) = filter.since {
        sql.push(" and t.accepted_at >= ").push_bind(since.as_millis());
        // Older turns need not be read: ids begin with the time. `+`: found by the id, and not by going through the order.
        sql.push(" and t.seq >= coalesce((select min(+seq) from turns where id >= ").push_bind(first_id(since));
        sql.push("), 9223372036854775807)");
    }
    if let Some(until) = filter.until {
        sql.push(" and t.accepted_at < ").push_bind(until.as_millis());
    }
    sql.push(" order by t.seq desc limit ").push_bind(filter.limit);
    all(pool, sql.build(), summary::record).await
}

fn push_source(sql: &mut QueryBuilder<Sqlite>, filter: &TurnFilter, now: Timestamp) {
    // Partial indexes find the few open, overdue, absent or undeliverable turns of a long history.
    let source = match filter.state {
        Some(TurnListState::Asked) => {
            sql.push("(select turn_id from questions indexed by questions_open where state = 'open' and asked_at >= ");
            sql.push_bind(now.as_millis() - ASKED_FOR);
            ") as q cross join turns as t on t.id = q.turn_id"
        }
        _ if filter.conversation.is_some() => "turns as t",
        Some(TurnListState::Open | TurnListState::Overdue) => "turns as t indexed by turns_open",
        Some(TurnListState::Absent) => "turns as t indexed by turns_absent",
        Some(TurnListState::Undeliverable) => "turns as t indexed by turns_undeliverable",
        None | Some(TurnListState::Settled) => "turns as t",
    };
    sql.push(source);
}

fn push_state(sql: &mut QueryBuilder<Sqlite>, state: Option<TurnListState>, now: Timestamp) {
    match state {
        None => {}
        Some(TurnListState::Open) => {
            sql.push(" and t.ended_at is null and t.owed = 1");
        }
        Some(TurnListState::Settled) => {
            sql.push(" and t.state = 'settled'");
        }
        Some(TurnListState::Undeliverable) => {
            sql.push(" and t.state = 'undeliverable'");
        }
        Some(TurnListState::Overdue) => {
            sql.push(" and t.ended_at is null and t.owed = 1 and t.absent = 0 and t.overdue_at < ");
            sql.push_bind(now.as_millis());
        }
        Some(TurnListState::Absent) => {
            sql.push(" and t.absent = 1");
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

pub(in crate::sqlite) async fn backlog(pool: &SqlitePool, now: Timestamp) -> Result<Backlog, StoreError> {
    let sql = "select
        (select count(*) from turns indexed by turns_open where ended_at is null and owed = 1) as open,
        (select count(*) from turns indexed by turns_open
            where ended_at is null and owed = 1 and absent = 0 and overdue_at < ?) as overdue,
        (select count(*) from turns indexed by turns_waiting where work = 'waiting' and absent = 0) as waiting,
        (select count(*) from deliveries
            where state in ('pending', 'sending') and absent = 0 and state = 'pending') as pending,
        (select count(*) from deliveries
            where state in ('pending', 'sending') and absent = 0 and parked = 1 and attempts > 0) as parked,
        (select count(*) from turns indexed by turns_absent where absent = 1) as absent,
        (select count(*) from turns indexed by turns_undeliverable where state = 'undeliverable') as undeliverable,
        (select count(*) from deliveries where state = 'dead' and is_copy = 1) as dead_copies,
        (select count(*) from turns indexed by turns_deferred where state = 'deferred') as deferred,
        (select accepted_at from turns where seq = (select min(seq) from turns indexed by turns_open
            where ended_at is null and owed = 1 and absent = 0)) as oldest_open";
    let row = sqlx::query(sql).bind(now.as_millis()).fetch_one(pool).await.map_err(store_error)?;
    summary::backlog(&row)
}

#[async_trait]
impl OperatorStore for SqliteStore {
    async fn agent_figures(&self, since: Timestamp, limit: u32) -> Result<Vec<AgentFigures>, StoreError> {
        // Ids begin with the time, so only the runs of late turns are read.
        let sql = "
            select agent, ended_at - started_at as took, ending = 'failed' as failed,
                coalesce(json_extract(usage, '$.input_tokens'), 0) as input,
                coalesce(json_extract(usage, '$.output_tokens'), 0) as output, cost_micros, currency
            from runs
            where run >= (select min(seq) << 16 from turns where id >= ?) and started_at >= ?
                and agent is not null and ended_at is not null
            order by run desc limit ?";
        let query = sqlx::query(sql).bind(first_id(since)).bind(since.as_millis()).bind(limit);
        let runs = query.fetch_all(&self.operator).await.map_err(store_error)?;
        let rows = async |sql: &'static str| sqlx::query(sql).fetch_all(&self.operator).await.map_err(store_error);
        let waiting = "
            select next_agent as agent, count(*) as number from turns indexed by turns_waiting
            where work = 'waiting' and absent = 0 and next_agent <> '' group by next_agent";
        let sessions = "select agent, count(*) as number from agent_sessions group by agent";
        summary::of_agents(&runs, &rows(waiting).await?, &rows(sessions).await?)
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
