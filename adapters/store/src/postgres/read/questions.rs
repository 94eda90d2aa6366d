//! Questions with choices.

use async_trait::async_trait;
use rejoinder_core::{
    ApprovalId, ApprovalRequest, ChannelId, StoreError, Timestamp,
    store::{Approval, ApprovalFilter, QuestionFilter, QuestionRecord, QuestionStore},
};

use crate::{
    postgres::{store::PostgresStore, values::statement},
    records::{
        approval,
        columns::{Columns, readable},
        question,
    },
};

/// `select` of questions `q`, with the current address of their conversations.
macro_rules! select_questions {
    ($rest:literal) => {
        concat!(
            "select q.turn_id, q.claim, q.conversation_id, q.channel, q.chooser, q.text, q.choices, q.free_text, q.asked_at,
                q.expires_at, q.language, c.chat, c.thread, exists (
                select 1 from turns as t join events as e on e.seq = t.event
                where t.conversation_id = q.conversation_id and t.seq > (select seq from turns where id = q.turn_id)
                    and t.accepted_at >= q.asked_at and (q.chooser is null or t.person = q.chooser) and (
                        t.command = 'new' or t.command is null and t.owed
                            and e.details ->> 'kind' = 'message'
                            and e.details #>> '{voice,heard}' is distinct from 'awaited')) as is_overtaken, exists (
                select 1 from deliveries as d
                where d.turn_id = q.turn_id and d.claim = q.claim and not d.is_copy
                    and (d.state in ('sending', 'delivered') or d.state = 'pending' and d.attempts > 0) offset 0) as is_shown, (
                select coalesce(jsonb_agg(m.id order by d.part, m.number), '[]')
                from deliveries as d cross join jsonb_array_elements(d.message_ids) with ordinality as m (id, number)
                where d.turn_id = q.turn_id and d.claim = q.claim and not d.is_copy) as message_ids
            from questions as q join conversations as c on c.id = q.conversation_id ",
            $rest
        )
    };
}

/// `select` of approvals `a`, with who was told of each.
macro_rules! select_approvals {
    ($rest:literal) => {
        concat!(
            "select a.id, a.turn_id, a.channel, a.agent, a.person, a.action, a.details, a.kind, a.asked_at, a.expires_at, a.state,
                a.decided_at, a.decided_by, a.note, a.given_to, a.choices, a.options, a.chosen, (
                select coalesce(jsonb_agg(n.person_id), '[]') from approval_notices as n where n.approval_id = a.id
                ) as told, exists (select 1 from whole_requests as w where w.approval_id = a.id) as has_whole
            from approvals as a ",
            $rest
        )
    };
}

#[async_trait]
impl QuestionStore for PostgresStore {
    async fn questions(&self, filter: QuestionFilter<'_>, limit: u32) -> Result<Vec<QuestionRecord>, StoreError> {
        let select = match filter {
            QuestionFilter::Of(turn) => statement!(select_questions!("where q.turn_id = $1 limit $2"), turn, limit),
            QuestionFilter::Besides(turn, message) => {
                let sql = select_questions!(
                    "where q.turn_id = $1 and exists (
                        select 1 from deliveries as d
                        where d.turn_id = q.turn_id and d.claim <> q.claim and not d.is_copy and d.message_ids ? $2)
                    limit $3"
                );
                statement!(sql, turn, message, limit)
            }
            QuestionFilter::OpenIn(conversation) => {
                let sql = select_questions!(
                    "where q.conversation_id = $1 and q.state = 'open' order by q.asked_at desc, q.seq desc limit $2"
                );
                statement!(sql, conversation, limit)
            }
            QuestionFilter::OpenBy(conversation, command) => {
                let sql = select_questions!(
                    "where q.conversation_id = $1 and q.state = 'open'
                        and (select command from turns where id = q.turn_id) = $2
                    order by q.asked_at desc, q.seq desc limit $3"
                );
                statement!(sql, conversation, command, limit)
            }
            QuestionFilter::OpenAs(conversation, message) => {
                let sql = select_questions!(
                    "where q.conversation_id = $1 and q.state = 'open' and exists (
                        select 1 from deliveries as d
                        where d.turn_id = q.turn_id and d.claim = q.claim and not d.is_copy and d.message_ids ? $2)
                    order by q.asked_at desc, q.seq desc limit $3"
                );
                statement!(sql, conversation, message, limit)
            }
            QuestionFilter::DueAt(now) => {
                let sql = select_questions!(
                    "where q.expires_at <= $1 and q.expires_at is not null and q.state = 'open'
                    order by q.expires_at limit $2"
                );
                statement!(sql, now, limit)
            }
        };
        Ok(readable(&self.readers.rows(select).await?, "turn_id", question::record))
    }

    async fn next_question_expiry(&self) -> Result<Option<Timestamp>, StoreError> {
        let sql = "select min(expires_at) as at from questions where state = 'open' and expires_at is not null";
        self.readers.one(statement!(sql), |row| row.value("at")).await.map(Option::flatten)
    }

    async fn approvals(&self, filter: ApprovalFilter, limit: u32) -> Result<Vec<Approval>, StoreError> {
        let select = match filter {
            ApprovalFilter::Is(id) => {
                statement!(select_approvals!("where a.id = $1 and a.choices is null limit $2"), id, limit)
            }
            ApprovalFilter::Of(turn) => {
                statement!(select_approvals!("where a.turn_id = $1 order by a.seq limit $2"), turn, limit)
            }
            ApprovalFilter::Waiting => {
                let sql = select_approvals!("where a.state = 'waiting' and a.choices is null order by a.seq limit $1");
                statement!(sql, limit)
            }
            ApprovalFilter::WaitingAfter(id) => {
                let sql = select_approvals!(
                    "where a.state = 'waiting' and a.choices is null
                        and a.seq > coalesce((select seq from approvals where id = $1), 0)
                    order by a.seq limit $2"
                );
                statement!(sql, id, limit)
            }
            ApprovalFilter::Latest => {
                statement!(select_approvals!("where a.choices is null order by a.seq desc limit $1"), limit)
            }
        };
        Ok(readable(&self.readers.rows(select).await?, "turn_id", approval::record))
    }

    async fn whole_request(&self, approval: ApprovalId) -> Result<Option<ApprovalRequest>, StoreError> {
        let sql = "
            select action, details, kind, null as choices, '[]' as options from whole_requests where approval_id = $1";
        self.readers.one(statement!(sql, approval), approval::request).await
    }

    async fn approvals_for(&self, channel: &ChannelId, person: &str, limit: u32) -> Result<u32, StoreError> {
        let sql = "
            select count(*) as number from (
                select 1 from approvals as a join turns as t on t.id = a.turn_id
                where a.state = 'waiting' and a.choices is null and t.channel = $1 and t.person = $2 limit $3) as w";
        let number = self.readers.one(statement!(sql, channel, person, limit), |row| row.value("number")).await?;
        Ok(number.unwrap_or_default())
    }
}
