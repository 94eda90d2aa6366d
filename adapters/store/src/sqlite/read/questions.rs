//! Questions with choices.

use async_trait::async_trait;
use rejoinder_core::{
    ApprovalId, ApprovalRequest, ChannelId, StoreError, Timestamp,
    store::{Approval, ApprovalFilter, QuestionFilter, QuestionRecord, QuestionStore},
};

use super::rows::one;
use crate::{
    records::{approval, columns::readable, question},
    sqlite::{error::store_error, store::SqliteStore},
};

/// `select` of questions `q`, with the current address of their conversations.
macro_rules! select_questions {
    ($rest:literal) => {
        concat!(
            "select q.*, c.chat, c.thread, exists (
                select 1 from turns as t
                    cross join events as e on e.seq = t.event
                where t.conversation_id = q.conversation_id and t.seq > (select seq from turns where id = q.turn_id)
                    and t.accepted_at >= q.asked_at and (q.chooser is null or t.person = q.chooser) and (
                        t.command = 'new' or t.command is null and t.owed = 1
                            and json_extract(e.details, '$.kind') = 'message'
                            and json_extract(e.details, '$.voice.heard') is not 'awaited')) as is_overtaken, exists (
                select 1 from deliveries as d
                where d.turn_id = q.turn_id and d.claim = q.claim and d.is_copy = 0
                    and (d.state in ('sending', 'delivered') or d.state = 'pending' and d.attempts > 0)) as is_shown, (
                select json_group_array(m.value) from deliveries as d cross join json_each(d.message_ids) as m
                where d.turn_id = q.turn_id and d.claim = q.claim and d.is_copy = 0) as message_ids ",
            $rest
        )
    };
}

/// `select` of approvals `a`, with who was told of each.
macro_rules! select_approvals {
    ($rest:literal) => {
        concat!(
            "select a.*, (
                select json_group_array(hex(n.person_id)) from approval_notices as n where n.approval_id = a.id) as told,
                exists (select 1 from whole_requests as w where w.approval_id = a.id) as has_whole
            from approvals as a ",
            $rest
        )
    };
}

#[async_trait]
impl QuestionStore for SqliteStore {
    async fn questions(&self, filter: QuestionFilter<'_>, limit: u32) -> Result<Vec<QuestionRecord>, StoreError> {
        let query = match filter {
            QuestionFilter::Of(turn) => sqlx::query(select_questions!(
                "from questions as q cross join conversations as c on c.id = q.conversation_id where q.turn_id = ? limit ?"
            ))
            .bind(turn.as_uuid()),
            QuestionFilter::Besides(turn, message) => sqlx::query(select_questions!(
                "from questions as q cross join conversations as c on c.id = q.conversation_id
                where q.turn_id = ? and exists (
                    select 1 from deliveries as d cross join json_each(d.message_ids) as m
                    where d.turn_id = q.turn_id and d.claim <> q.claim and d.is_copy = 0 and m.value = ?)
                limit ?"
            ))
            .bind(turn.as_uuid())
            .bind(message),
            QuestionFilter::OpenIn(conversation) => sqlx::query(select_questions!(
                "from questions as q indexed by questions_open cross join conversations as c on c.id = q.conversation_id
                where q.conversation_id = ? and q.state = 'open' order by q.asked_at desc, q.rowid desc limit ?"
            ))
            .bind(conversation.as_uuid()),
            QuestionFilter::OpenBy(conversation, command) => sqlx::query(select_questions!(
                "from questions as q indexed by questions_open cross join conversations as c on c.id = q.conversation_id
                where q.conversation_id = ? and q.state = 'open'
                    and (select command from turns where id = q.turn_id) = ?
                order by q.asked_at desc, q.rowid desc limit ?"
            ))
            .bind(conversation.as_uuid())
            .bind(command),
            QuestionFilter::OpenAs(conversation, message) => sqlx::query(select_questions!(
                "from questions as q indexed by questions_open cross join conversations as c on c.id = q.conversation_id
                where q.conversation_id = ? and q.state = 'open' and exists (
                    select 1 from deliveries as d cross join json_each(d.message_ids) as m
                    where d.turn_id = q.turn_id and d.claim = q.claim and d.is_copy = 0 and m.value = ?)
                order by q.asked_at desc, q.rowid desc limit ?"
            ))
            .bind(conversation.as_uuid())
            .bind(message),
            QuestionFilter::DueAt(now) => sqlx::query(select_questions!(
                "from questions as q indexed by questions_expiring
                cross join conversations as c on c.id = q.conversation_id
                where q.expires_at <= ? and q.expires_at is not null and q.state = 'open' order by q.expires_at limit ?"
            ))
            .bind(now.as_millis()),
        };
        let rows = query.bind(limit).fetch_all(&self.readers).await.map_err(store_error)?;
        Ok(readable(&rows, "turn_id", question::record))
    }

    async fn next_question_expiry(&self) -> Result<Option<Timestamp>, StoreError> {
        let sql = "select min(expires_at) from questions where state = 'open' and expires_at is not null";
        let at: Option<i64> = sqlx::query_scalar(sql).fetch_one(&self.readers).await.map_err(store_error)?;
        Ok(at.map(Timestamp::from_millis))
    }

    async fn approvals(&self, filter: ApprovalFilter, limit: u32) -> Result<Vec<Approval>, StoreError> {
        let query = match filter {
            ApprovalFilter::Is(id) => sqlx::query(select_approvals!("where a.id = ? and a.choices is null limit ?")).bind(id.as_uuid()),
            ApprovalFilter::Of(turn) => {
                sqlx::query(select_approvals!("where a.turn_id = ? order by a.seq limit ?")).bind(turn.as_uuid())
            }
            ApprovalFilter::Waiting => sqlx::query(select_approvals!(
                "indexed by approvals_waiting where a.state = 'waiting' and a.choices is null order by a.seq limit ?"
            )),
            ApprovalFilter::WaitingAfter(id) => sqlx::query(select_approvals!(
                "indexed by approvals_waiting
                where a.state = 'waiting' and a.choices is null and a.seq > coalesce((select seq from approvals where id = ?), 0)
                order by a.seq limit ?"
            ))
            .bind(id.as_uuid()),
            ApprovalFilter::Latest => sqlx::query(select_approvals!("where a.choices is null order by a.seq desc limit ?")),
        };
        let rows = query.bind(limit).fetch_all(&self.readers).await.map_err(store_error)?;
        Ok(readable(&rows, "turn_id", approval::record))
    }

    async fn whole_request(&self, approval: ApprovalId) -> Result<Option<ApprovalRequest>, StoreError> {
        let sql =
            "select action, details, kind, null as choices, '[]' as options from whole_requests where approval_id = ?";
        one(&self.readers, sqlx::query(sql).bind(approval.as_uuid()), approval::request).await
    }

    async fn approvals_for(&self, channel: &ChannelId, person: &str, limit: u32) -> Result<u32, StoreError> {
        let sql = "
            select count(*) from (
                select 1 from approvals as a indexed by approvals_waiting
                    cross join turns as t on t.id = a.turn_id
                where a.state = 'waiting' and a.choices is null and t.channel = ? and t.person = ? limit ?)";
        let query = sqlx::query_scalar(sql).bind(channel.as_str()).bind(person).bind(limit);
        query.fetch_one(&self.readers).await.map_err(store_error)
    }
}
