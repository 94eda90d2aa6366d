//! Sessions, as people use them.

use std::{
    future::{Ready, ready},
    sync::Arc,
};

use async_trait::async_trait;
use rejoinder_core::{
    ConversationId, HistoryLine, Identity, PersonId, SessionId, StoreError, Timestamp, TurnId,
    store::{AnsweredTurn, SessionChoice, SessionRecord, SessionStore, TurnRecord},
};
use sqlx::SqlitePool;

use super::{
    rows::{all, one},
    turns,
};
use crate::{
    records::{
        columns::{Columns, record},
        session,
    },
    shared::{bounds::ANSWERED_WITHIN, transcripts::FoundTurn},
    sqlite::{error::store_error, store::SqliteStore, transcript},
};

/// Changes are not counted: no other process writes.
fn no_count() -> Ready<Result<Option<i64>, StoreError>> {
    ready(Ok(None))
}

#[async_trait]
impl SessionStore for SqliteStore {
    /// The session in which a conversation continues, if a turn of `person` may be in it.
    async fn current_session(
        &self,
        conversation: ConversationId,
        person: Option<PersonId>,
    ) -> Result<Option<(SessionId, SessionChoice)>, StoreError> {
        let sql = "
            select s.id, s.agent, s.model, s.owner, s.name is not null as is_named, s.conversation_id = c.id as began_here,
                coalesce(s.used_at, s.created_at) as used
            from conversations as c cross join sessions as s on s.id = c.session_id where c.id = ?";
        let query = sqlx::query(sql).bind(conversation.as_uuid());
        one(&self.readers, query, |row| session::current(row, person)).await.map(Option::flatten)
    }

    async fn session_about(&self, turn: TurnId) -> Result<Option<SessionId>, StoreError> {
        let sql = "
            select s.id from asides as a cross join conversations as c on c.id = a.conversation_id
                cross join sessions as s on s.id = c.session_id
            where a.turn_id = ?";
        one(&self.readers, sqlx::query(sql).bind(turn.as_uuid()), |row| row.value("id")).await
    }

    async fn last_about(
        &self,
        conversation: ConversationId,
        sender: &str,
    ) -> Result<Option<(TurnId, Timestamp)>, StoreError> {
        let sql = "
            select t.id, t.accepted_at from asides as a cross join turns as t on t.id = a.turn_id
            where a.conversation_id = ? and a.sender = ? order by t.seq desc limit 1";
        let query = sqlx::query(sql).bind(conversation.as_uuid()).bind(sender);
        one(&self.readers, query, |row| Ok((row.value("id")?, row.value("accepted_at")?))).await
    }

    async fn usable_sessions(
        &self,
        conversation: ConversationId,
        person: Option<PersonId>,
        limit: u32,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        let sql = "
            with usable as (
                select s.*, coalesce(s.used_at, s.created_at) as used,
                    row_number() over (order by s.created_at, s.id) as number
                from sessions as s where s.conversation_id = ?1 and s.owner is null or s.owner = ?2)
            select u.id, u.number, u.name, u.title, u.agent, u.model, u.used, u.conversation_id = ?1 as began_here,
                exists (select 1 from conversations as c where c.session_id = u.id and c.id = ?1) as is_current,
                exists (select 1 from conversations as c where c.session_id = u.id and c.id <> ?1) as is_elsewhere, (
                    select coalesce(l.text, e.text)
                    from transcript as l cross join turns as t on t.seq = l.seq cross join events as e on e.seq = t.event
                    where l.session_id = u.id and l.speaker = 'person' and t.command is null
                        and coalesce(l.author ->> 'kind', '') <> 'operator' order by l.seq limit 1) as begins
            from (select * from usable order by used desc, number desc limit ?3) as u
            order by u.used desc, u.number desc";
        let query = sqlx::query(sql).bind(conversation.as_uuid()).bind(person.map(PersonId::as_uuid)).bind(limit);
        all(&self.readers, query, session::record).await
    }

    /// Looks at all turns that have not ended.
    async fn is_session_open(&self, session: SessionId) -> Result<bool, StoreError> {
        let sql = "
            select exists (
                select 1 from turns as t indexed by turns_open
                where t.ended_at is null and t.session_id = ?1 and t.command is null
            ) or exists (
                select 1 from turns as t indexed by turns_open
                where t.work = 'running' and t.absent = 0 and t.session_id = ?1 and t.command is null)";
        sqlx::query_scalar(sql).bind(session.as_uuid()).fetch_one(&self.readers).await.map_err(store_error)
    }

    async fn last_question(
        &self,
        session: SessionId,
        conversation: Option<ConversationId>,
        by: Option<&Identity>,
    ) -> Result<Option<TurnRecord>, StoreError> {
        turns::last_question(&self.readers, session, conversation, by).await
    }

    async fn transcript(&self, session: SessionId, limit: u32) -> Result<Vec<Arc<HistoryLine>>, StoreError> {
        let lines = || transcript::transcript(&self.readers, session, limit);
        self.transcripts.lines(session, limit, no_count, lines).await
    }

    async fn answered_before(
        &self,
        session: SessionId,
        turn: TurnId,
        agent: &str,
    ) -> Result<Option<AnsweredTurn>, StoreError> {
        let found = || run_before(&self.readers, turn, agent);
        let lines = |session, turn| transcript::of_turn(&self.readers, session, turn);
        self.transcripts.answered_before(session, agent, no_count, found, lines).await
    }
}

async fn run_before(pool: &SqlitePool, turn: TurnId, agent: &str) -> Result<Option<FoundTurn>, StoreError> {
    let query = sqlx::query(RUN_BEFORE).bind(turn.as_uuid()).bind(agent).bind(ANSWERED_WITHIN);
    one(pool, query, |row| Ok(record!(row => FoundTurn { session: session_id, seq, turn: id, is_own, reactions })))
        .await
}

/// Whether the turn `t` was run by the agent ?2 in the session of `here`.
macro_rules! was_run_here {
    () => {
        "t.session_id = here.session_id and t.left_out = 0
            and exists (
                select 1 from runs as r where r.run between t.seq << 16 and t.seq << 16 | 65535 and r.agent = ?2)
            and not exists (
                select 1 from events as e where e.seq = t.event and json_extract(e.details, '$.kind.prompt.on_copy') = 1)"
    };
}

/// ?1: a turn, ?2: an agent, ?3: how many turns are searched of each conversation that continues in the session, and how many lines of
/// the session. Each search steps back and ends at the first turn that it finds.
const RUN_BEFORE: &str = concat!(
    "with here as materialized (select seq, session_id, conversation_id from turns where id = ?1),
    found (seq) as (
        select (
            select t.seq from turns as t
            where t.conversation_id = c.id and t.seq < here.seq and t.seq > coalesce((
                    select l.seq from turns as l where l.conversation_id = c.id and l.seq < here.seq
                    order by l.seq desc limit 1 offset ?3), 0)
                and ",
    was_run_here!(),
    " order by t.seq desc limit 1)
        from here cross join conversations as c on c.id in (
            select here.conversation_id union select s.id from conversations as s where s.session_id = here.session_id)
        union all
        select (
            select t.seq from transcript as l cross join turns as t on t.id = l.turn_id
            where l.session_id = here.session_id and l.seq < here.seq and l.seq > coalesce((
                    select w.seq from transcript as w where w.session_id = here.session_id and w.seq < here.seq
                    order by w.seq desc limit 1 offset ?3), 0)
                and t.seq < here.seq and ",
    was_run_here!(),
    " order by l.seq desc limit 1)
        from here)
    select t.id, t.seq, t.session_id,
        (select r.agent from runs as r where r.run between t.seq << 16 and t.seq << 16 | 65535
        order by r.run desc limit 1) is ?2 as is_own,
        (select json_group_array(json_object('emoji', r.emoji, 'by', json(r.author)))
        from (select emoji, author from reactions where turn_id = t.id order by at, person) as r) as reactions
    from turns as t where t.seq = (select max(seq) from found)"
);
