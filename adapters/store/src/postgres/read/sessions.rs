//! Sessions, as people use them, and their lines.

use std::sync::Arc;

use super::turns;
use crate::{
    postgres::{connections::Connections, store::PostgresStore, values::statement},
    records::{
        columns::{Columns, record},
        session,
    },
    shared::{
        bounds::ANSWERED_WITHIN,
        transcript_lines::parse_lines,
        transcripts::{FoundLines, FoundTurn},
    },
};
use async_trait::async_trait;
use rejoinder_core::{
    ConversationId, HistoryLine, Identity, PersonId, SessionId, StoreError, Timestamp, TurnId,
    store::{AnsweredTurn, SessionChoice, SessionRecord, SessionStore, TurnRecord, TurnSeq},
};
use sqlx::postgres::PgRow;

#[async_trait]
impl SessionStore for PostgresStore {
    /// The session in which a conversation continues, if a turn of `person` may be in it.
    async fn current_session(
        &self,
        conversation: ConversationId,
        person: Option<PersonId>,
    ) -> Result<Option<(SessionId, SessionChoice)>, StoreError> {
        let sql = "
            select s.id, s.agent, s.model, s.owner, s.name is not null as is_named, s.conversation_id = c.id as began_here,
                coalesce(s.used_at, s.created_at) as used
            from conversations as c join sessions as s on s.id = c.session_id where c.id = $1";
        let select = statement!(sql, conversation);
        self.readers.one(select, |row| session::current(row, person)).await.map(Option::flatten)
    }

    async fn session_about(&self, turn: TurnId) -> Result<Option<SessionId>, StoreError> {
        let sql = "
            select s.id from asides as a join conversations as c on c.id = a.conversation_id
                join sessions as s on s.id = c.session_id
            where a.turn_id = $1";
        self.readers.one(statement!(sql, turn), |row| row.value("id")).await
    }

    async fn last_about(
        &self,
        conversation: ConversationId,
        sender: &str,
    ) -> Result<Option<(TurnId, Timestamp)>, StoreError> {
        let sql = "
            select t.id, t.accepted_at from asides as a join turns as t on t.id = a.turn_id
            where a.conversation_id = $1 and a.sender = $2 order by t.seq desc limit 1";
        let select = statement!(sql, conversation, sender);
        self.readers.one(select, |row| Ok((row.value("id")?, row.value("accepted_at")?))).await
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
                from (
                    select * from sessions where conversation_id = $1 and owner is null
                    union all select * from sessions where owner = $2) as s)
            select u.id, u.number, u.name, u.title, u.agent, u.model, u.used, u.conversation_id = $1 as began_here,
                exists (select 1 from conversations as c where c.session_id = u.id and c.id = $1) as is_current,
                exists (
                    select 1 from conversations as c where c.session_id = u.id and c.id <> $1 offset 0) as is_elsewhere, (
                    select coalesce(l.text, e.text)
                    from transcript as l join turns as t on t.seq = l.seq join events as e on e.seq = t.event
                    where l.session_id = u.id and l.speaker = 'person' and t.command is null
                        and coalesce(l.author ->> 'kind', '') <> 'operator' order by l.seq limit 1) as begins
            from (select * from usable order by used desc, number desc limit $3) as u
            order by u.used desc, u.number desc";
        self.readers.all(statement!(sql, conversation, person, limit), session::record).await
    }

    /// Looks at all turns that have not ended.
    async fn is_session_open(&self, session: SessionId) -> Result<bool, StoreError> {
        let sql = "
            select exists (
                select 1 from turns as t
                where t.ended_at is null and t.session_id = $1 and t.command is null
            ) or exists (
                select 1 from turns as t
                where t.work = 'running' and not t.absent and t.session_id = $1 and t.command is null) as is_open";
        let is_open = self.readers.one(statement!(sql, session), |row| row.value("is_open")).await?;
        Ok(is_open.unwrap_or_default())
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
        let count = || Box::pin(changes(&self.readers, session));
        let lines = || Box::pin(lines(&self.readers, session, limit));
        self.transcripts.lines(session, limit, count, lines).await
    }

    async fn answered_before(
        &self,
        session: SessionId,
        turn: TurnId,
        agent: &str,
    ) -> Result<Option<AnsweredTurn>, StoreError> {
        let count = || Box::pin(changes(&self.readers, session));
        let found = || Box::pin(run_before(&self.readers, turn, agent));
        let lines = |session, turn| Box::pin(lines_of_turn(&self.readers, session, turn));
        self.transcripts.answered_before(session, agent, count, found, lines).await
    }
}

/// How often the lines of a session were changed. `None`: there is no such session.
async fn changes(pool: &Connections, session: SessionId) -> Result<Option<i64>, StoreError> {
    pool.one(statement!("select changes from sessions where id = $1", session), |row| row.value("changes")).await
}

/// How many lines of a turn are read: one for each message that its agent sent.
const LINES_OF_TURN: u32 = 64;

/// Reads lines of the session $1 for which $of holds: the latest $2, oldest first, in one row.
///
/// It steps back along the keys, and works out the state of a line when it comes to it. Without `offset 0` that would be done again
/// at each place where the state is used, and for all lines of the session if they are sorted first. Whether a turn is left out is a
/// value and no `exists`, which would be joined: as few turns are, all turns would be read for that.
macro_rules! lines {
    ($of:literal) => {
        concat!(
            "
        select coalesce(json_agg(json_build_object(
            'seq', l.seq, 'claim', l.claim, 'turn', l.turn_id, 'state', l.state,
            'reason', case when l.state = 'not_delivered' then (
                select case when d.state = 'withdrawn' then d.state else (
                    select a.result from attempts as a where a.delivery_id = d.id order by a.number desc limit 1) end
                from deliveries as d where d.turn_id = l.turn_id and d.claim = l.claim and not d.is_copy
                order by d.part limit 1) end,
            'line', json_build_object('speaker', l.speaker, 'author', l.author,
                'forwarded', l.forwarded, 'at', l.at, 'text', coalesce(l.text, (
                select e.text from turns as t join events as e on e.seq = t.event where t.seq = l.seq)),
                'spoken', l.speaker = 'person' and (
                select e.details #>> '{voice,heard}' from turns as t join events as e on e.seq = t.event
                where t.seq = l.seq) is not distinct from 'words')
        ) order by l.seq, l.claim, l.turn_id), '[]') as lines, (
            select s.changes from sessions as s where s.id = $1) as changes
        from (
            select w.* from (
                select session_id, seq, claim, turn_id from transcript where session_id = $1 ",
            $of,
            "
                order by seq desc, claim desc, turn_id desc offset 0) as k
            cross join lateral (
                select * from transcript_lines as v
                where v.session_id = k.session_id and v.seq = k.seq and v.claim = k.claim and v.turn_id = k.turn_id
                offset 0) as w
            where (select t.left_out from turns as t where t.seq = w.seq) is not true
                and (w.speaker <> 'gateway' or w.state in ('seen', 'partly'))
                and not (w.speaker = 'agent' and exists (
                    select 1 from transcript_lines as n
                    where n.session_id = w.session_id and n.seq = w.seq and n.turn_id = w.turn_id and n.claim > w.claim
                        and n.speaker = 'agent' and n.state in ('seen', 'partly') and (
                            w.state not in ('seen', 'partly') or exists (
                                select 1 from deliveries as d
                                where d.turn_id = w.turn_id and d.claim = w.claim and d.signal = 'deferral'))))
            order by k.seq desc, k.claim desc, k.turn_id desc
            limit $2
        ) as l"
        )
    };
}

async fn lines(pool: &Connections, session: SessionId, limit: u32) -> Result<FoundLines, StoreError> {
    let read = |row: &PgRow| Ok((row.json("lines")?, row.value("changes")?));
    let (lines, count) = pool.one(statement!(lines!(""), session, limit), read).await?.unwrap_or_default();
    Ok(FoundLines { lines: parse_lines(session, &lines)?, count })
}

/// The lines of a turn, oldest first.
async fn lines_of_turn(
    pool: &Connections,
    session: SessionId,
    (seq, turn): (TurnSeq, TurnId),
) -> Result<Vec<HistoryLine>, StoreError> {
    // Its answer is in the place of the last message that it answers as well.
    let sql = lines!("and seq >= $3 and turn_id = $4");
    let lines = pool.one(statement!(sql, session, LINES_OF_TURN, seq, turn), |row| row.json("lines")).await?;
    let lines = parse_lines(session, &lines.unwrap_or_default())?;
    Ok(lines.into_iter().map(|stored| Arc::unwrap_or_clone(stored.line)).collect())
}

async fn run_before(pool: &Connections, turn: TurnId, agent: &str) -> Result<Option<FoundTurn>, StoreError> {
    let select = statement!(RUN_BEFORE, turn, agent, ANSWERED_WITHIN);
    pool.one(select, |row| Ok(record!(row => FoundTurn { session: session_id, seq, turn: id, is_own, reactions })))
        .await
}

/// Whether the turn `t` was run by the agent $2 in the session of `here`.
macro_rules! was_run_here {
    () => {
        "t.session_id = here.session_id and not t.left_out
            and exists (
                select 1 from runs as r where r.run between t.seq << 16 and t.seq << 16 | 65535 and r.agent = $2)
            and not exists (
                select 1 from events as e where e.seq = t.event and e.details #>> '{kind,prompt,on_copy}' = 'true')"
    };
}

/// $1: a turn, $2: an agent, $3: how many turns are searched of each conversation that continues in the session, and how many lines of
/// the session. Each search steps back and ends at the first turn that it finds.
const RUN_BEFORE: &str = concat!(
    "with here as materialized (select seq, session_id, conversation_id from turns where id = $1),
    found (seq) as (
        select (
            select t.seq from turns as t
            where t.conversation_id = c.id and t.seq < here.seq and t.seq > coalesce((
                    select l.seq from turns as l where l.conversation_id = c.id and l.seq < here.seq
                    order by l.seq desc limit 1 offset $3), 0)
                and ",
    was_run_here!(),
    " order by t.seq desc limit 1)
        from here cross join lateral (
            select here.conversation_id as id
            union select s.id from conversations as s where s.session_id = here.session_id) as c
        union all
        select (
            select t.seq from transcript as l join turns as t on t.id = l.turn_id
            where l.session_id = here.session_id and l.seq < here.seq and l.seq > coalesce((
                    select w.seq from transcript as w where w.session_id = here.session_id and w.seq < here.seq
                    order by w.seq desc limit 1 offset $3), 0)
                and t.seq < here.seq and ",
    was_run_here!(),
    " order by l.seq desc limit 1)
        from here)
    select t.id, t.seq, t.session_id,
        (select r.agent from runs as r where r.run between t.seq << 16 and t.seq << 16 | 65535
        order by r.run desc limit 1) is not distinct from $2 as is_own,
        (select coalesce(jsonb_agg(jsonb_build_object('emoji', r.emoji, 'by', r.author) order by r.at, r.person), '[]')
        from reactions as r where r.turn_id = t.id) as reactions
    from turns as t where t.seq = (select max(seq) from found)"
);
