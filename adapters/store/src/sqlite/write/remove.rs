//! Removes rows that are past their time.

use std::collections::HashSet;

use rejoinder_core::{EventId, SessionId, StoreError, TurnId, store::Removal};
use sqlx::{AssertSqlSafe, Row, SqliteConnection, sqlite::SqliteRow};
use uuid::Uuid;

use super::rows::Statement;
use crate::sqlite::error::store_error;

/// Removes rows; returns the sessions of the turns that were removed.
pub(super) async fn rows(connection: &mut SqliteConnection, removal: &Removal) -> Result<Vec<SessionId>, StoreError> {
    match removal {
        Removal::Turns(ids) => return turns(connection, ids).await,
        Removal::Payloads(ids) => by_id(connection, &[&CLEAR_PAYLOADS], &uuids(ids)).await?,
        Removal::Keys(ids) => by_id(connection, &[&DELETE_KEYS], &uuids(ids)).await?,
        Removal::Pages(number) => {
            let pragma = AssertSqlSafe(format!("pragma incremental_vacuum({number})"));
            sqlx::query(pragma).fetch_all(connection).await.map_err(store_error)?;
        }
    }
    Ok(Vec::new())
}

fn uuids(events: &[EventId]) -> Vec<Uuid> {
    events.iter().map(|event| event.as_uuid()).collect()
}

/// Executes statements whose rows are ids, each on all of them.
async fn by_id(connection: &mut SqliteConnection, all: &[&Statement], ids: &[Uuid]) -> Result<(), StoreError> {
    for statement in all {
        statement
            .on(connection, ids, |id, values| {
                values.id(*id);
            })
            .await?;
    }
    Ok(())
}

async fn answers(
    connection: &mut SqliteConnection,
    statement: &Statement,
    ids: &[Uuid],
) -> Result<Vec<SqliteRow>, StoreError> {
    statement
        .answers(connection, ids, |id, values| {
            values.id(*id);
        })
        .await
}

fn ids<T: From<Uuid>>(rows: &[SqliteRow], column: usize) -> Result<Vec<T>, StoreError> {
    let id = |row: &SqliteRow| row.try_get::<Option<Uuid>, _>(column).transpose();
    rows.iter().filter_map(id).map(|id| id.map(T::from).map_err(store_error)).collect()
}

/// Removes turns, and the sessions and conversations that have none left.
async fn turns(connection: &mut SqliteConnection, turns: &[TurnId]) -> Result<Vec<SessionId>, StoreError> {
    let asked: Vec<Uuid> = turns.iter().map(|turn| turn.as_uuid()).collect();
    let rows = answers(connection, &SELECT_ENDED, &asked).await?;
    let all = [
        &DELETE_ATTEMPTS,
        &DELETE_DELIVERIES,
        &DELETE_RUNS,
        &DELETE_AUDIT,
        &DELETE_TRANSCRIPT,
        &DELETE_OBLIGATIONS,
        &CLEAR_EVENTS,
        &DELETE_TURNS,
    ];
    by_id(connection, &all, &ids(&rows, 0)?).await?;

    let mut conversations: HashSet<Uuid> = ids(&rows, 1)?.into_iter().collect();
    while !conversations.is_empty() {
        let empty = answers(connection, &SELECT_EMPTY, &Vec::from_iter(conversations)).await?;
        by_id(connection, &[&DELETE_SESSIONS_OF, &DELETE_CONVERSATIONS], &ids(&empty, 0)?).await?;
        // Their successors may have been kept only because of them.
        conversations = ids(&empty, 1)?.into_iter().collect();
    }
    let sessions: HashSet<Uuid> = ids(&rows, 2)?.into_iter().collect();
    let sessions = Vec::from_iter(sessions);
    by_id(connection, &[&DELETE_SESSIONS], &sessions).await?;
    Ok(sessions.into_iter().map(SessionId::from).collect())
}

static CLEAR_PAYLOADS: Statement = Statement::new(
    "with r (id) as ({rows})
    update events set raw = null where id in (select id from r)",
);

static DELETE_KEYS: Statement = Statement::new(
    "with r (id) as ({rows})
    delete from events where id in (select id from r) and details is null and raw is null",
);

static SELECT_ENDED: Statement = Statement::new(
    "with r (id) as ({rows})
    select t.id, t.conversation_id, t.session_id
    from r cross join obligations as o on o.turn_id = r.id cross join turns as t on t.id = r.id
    where o.ended_at is not null and o.work is null and not exists (
        select 1 from deliveries as d
        where d.turn_id = t.id and d.state not in ('delivered', 'withdrawn', 'refused', 'dead'))",
);

static DELETE_ATTEMPTS: Statement = Statement::new(
    "with r (id) as ({rows})
    delete from attempts where delivery_id in (
        select d.id from r cross join deliveries as d on d.turn_id = r.id)",
);

static DELETE_DELIVERIES: Statement =
    Statement::new("with r (id) as ({rows}) delete from deliveries where turn_id in (select id from r)");

static DELETE_RUNS: Statement =
    Statement::new("with r (id) as ({rows}) delete from runs where turn_id in (select id from r)");

static DELETE_AUDIT: Statement =
    Statement::new("with r (id) as ({rows}) delete from audit where turn_id in (select id from r)");

static DELETE_TRANSCRIPT: Statement = Statement::new(
    "with r (id) as ({rows})
    delete from transcript where (session_id, seq) in (
        select t.session_id, t.seq from r cross join turns as t on t.id = r.id)",
);

static DELETE_OBLIGATIONS: Statement =
    Statement::new("with r (id) as ({rows}) delete from obligations where turn_id in (select id from r)");

/// All events of a turn have the same key but for the revision.
static CLEAR_EVENTS: Statement = Statement::new(
    "with r (id) as ({rows})
    update events set chat = '', thread = '', text = null, details = null, raw = null
    where rowid in (
        select f.rowid
        from r cross join turns as t on t.id = r.id
            cross join events as e on e.id = t.event_id
            cross join events as f on f.channel = e.channel and f.external_id = e.external_id
        where f.turn_id = t.id)",
);

static DELETE_TURNS: Statement =
    Statement::new("with r (id) as ({rows}) delete from turns where id in (select id from r)");

static SELECT_EMPTY: Statement = Statement::new(
    "with r (id) as ({rows})
    select c.id, c.succeeded_by
    from r cross join conversations as c on c.id = r.id
    where not exists (select 1 from turns as t where t.conversation_id = c.id)
        and not exists (select 1 from conversations as o where o.succeeded_by = c.id)",
);

static DELETE_SESSIONS_OF: Statement =
    Statement::new("with r (id) as ({rows}) delete from sessions where conversation_id in (select id from r)");

static DELETE_CONVERSATIONS: Statement =
    Statement::new("with r (id) as ({rows}) delete from conversations where id in (select id from r)");

/// Sessions without turns, unless a conversation continues in them.
static DELETE_SESSIONS: Statement = Statement::new(
    "with r (id) as ({rows})
    delete from sessions where id in (
        select r.id from r
        where not exists (select 1 from turns as t where t.session_id = r.id)
            and not exists (select 1 from conversations as c where c.session_id = r.id))",
);
