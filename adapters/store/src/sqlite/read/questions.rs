//! Questions with choices.

use rejoinder_core::{
    ConversationId, StoreError, Timestamp,
    store::{AskedQuestion, QuestionFilter, QuestionRecord},
};
use sqlx::{SqlitePool, sqlite::SqliteRow};

use super::columns::{Columns, readable};
use crate::sqlite::error::store_error;

/// `select` of questions `q`, with the current address of their conversations.
macro_rules! select_questions {
    ($rest:literal) => {
        concat!(
            "select q.*, c.chat, c.thread, exists (
                select 1 from turns as t cross join obligations as o on o.turn_id = t.id
                    cross join events as e on e.id = t.event_id
                where t.conversation_id = q.conversation_id and t.seq > (select seq from turns where id = q.turn_id)
                    and t.accepted_at >= q.asked_at and (q.chooser is null or o.person = q.chooser) and (
                        t.command = 'new' or t.command is null and o.owed = 1
                            and json_extract(e.details, '$.kind') = 'message')) as is_overtaken, exists (
                select 1 from deliveries as d
                where d.turn_id = q.turn_id and d.claim = q.claim and d.is_copy = 0
                    and (d.state in ('sending', 'delivered') or d.state = 'pending' and d.attempts > 0)) as is_shown, (
                select json_group_array(m.value) from deliveries as d cross join json_each(d.message_ids) as m
                where d.turn_id = q.turn_id and d.claim = q.claim and d.is_copy = 0) as message_ids ",
            $rest
        )
    };
}

pub(in crate::sqlite) async fn asked(pool: &SqlitePool) -> Result<Vec<ConversationId>, StoreError> {
    let sql = "select distinct conversation_id from questions indexed by questions_open where state = 'open'";
    let rows = sqlx::query(sql).fetch_all(pool).await.map_err(store_error)?;
    rows.iter().map(|row| row.id("conversation_id")).collect()
}

pub(in crate::sqlite) async fn questions(
    pool: &SqlitePool,
    filter: QuestionFilter<'_>,
    limit: u32,
) -> Result<Vec<QuestionRecord>, StoreError> {
    let query = match filter {
        QuestionFilter::Of(turn) => sqlx::query(select_questions!(
            "from questions as q cross join conversations as c on c.id = q.conversation_id where q.turn_id = ? limit ?"
        ))
        .bind(turn.as_uuid()),
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
    let rows = query.bind(limit).fetch_all(pool).await.map_err(store_error)?;
    Ok(readable(&rows, "turn_id", question))
}

pub(in crate::sqlite) async fn next_question_expiry(pool: &SqlitePool) -> Result<Option<Timestamp>, StoreError> {
    let sql = "select min(expires_at) from questions where state = 'open' and expires_at is not null";
    let at: Option<i64> = sqlx::query_scalar(sql).fetch_one(pool).await.map_err(store_error)?;
    Ok(at.map(Timestamp::from_millis))
}

fn question(row: &SqliteRow) -> Result<QuestionRecord, StoreError> {
    let question = AskedQuestion {
        turn: row.id("turn_id")?,
        claim: row.value("claim")?,
        conversation: row.id("conversation_id")?,
        place: row.conversation()?,
        chooser: row.value("chooser")?,
        text: row.value("text")?,
        choices: row.json("choices")?,
        free_text: row.value("free_text")?,
        asked_at: row.at("asked_at")?,
        expires_at: row.at_maybe("expires_at")?,
        language: row.name_maybe("language")?,
    };
    Ok(QuestionRecord {
        question,
        is_shown: row.value("is_shown")?,
        is_overtaken: row.value("is_overtaken")?,
        message_ids: row.json("message_ids")?,
    })
}
