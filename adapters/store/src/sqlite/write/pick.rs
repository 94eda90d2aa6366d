//! Picks from questions. The first pick answers its question and closes it.

use rejoinder_core::{
    Action, EventKind, StoreError, TurnId,
    store::{NewEvent, Stored},
};
use sqlx::{Row, SqliteConnection};

use super::insert;
use crate::sqlite::error::store_error;

/// The turn whose question an event picks from, if the event would open a turn.
pub(super) fn question(new: &NewEvent) -> Option<TurnId> {
    match new.event.kind {
        EventKind::Choice { turn } => new.turn.as_ref().map(|_| turn),
        _ => None,
    }
}

/// Accepts a pick. `question` is the turn that was answered with the question.
pub(super) async fn accept(
    connection: &mut SqliteConnection,
    new: &NewEvent,
    question: TurnId,
) -> Result<Stored, StoreError> {
    let refused = match picked(connection, question).await? {
        Some(choice) => Some(Stored::Picked { choice }),
        None if may_pick(connection, new, question).await? => None,
        None => Some(Stored::Kept),
    };
    if let Some(refused) = refused {
        let stored = insert::key(connection, new).await?;
        // A duplicate of the first pick is reported as a duplicate.
        return Ok(if stored == Stored::Kept { refused } else { stored });
    }
    let stored = insert::one(connection, new).await?;
    if let (Stored::Turn { .. }, Some(turn)) = (&stored, &new.turn) {
        let query = sqlx::query("update turns set picked = ? where id = ?").bind(turn.id.as_uuid());
        query.bind(question.as_uuid()).execute(connection).await.map_err(store_error)?;
    }
    Ok(stored)
}

/// The text of the first pick, if there is one.
async fn picked(connection: &mut SqliteConnection, question: TurnId) -> Result<Option<String>, StoreError> {
    let sql = "
        select t.picked, e.text from turns as t
        left join turns as p on p.id = t.picked left join events as e on e.id = p.event_id
        where t.id = ? and t.picked is not null";
    let row = sqlx::query(sql).bind(question.as_uuid()).fetch_optional(connection).await.map_err(store_error)?;
    row.map(|row| row.try_get::<Option<String>, _>("text").map(Option::unwrap_or_default).map_err(store_error))
        .transpose()
}

/// Whether the event's sender may pick: the question is for this sender or for everyone.
async fn may_pick(connection: &mut SqliteConnection, new: &NewEvent, question: TurnId) -> Result<bool, StoreError> {
    let query = sqlx::query("select action from deliveries where turn_id = ? order by claim desc, part desc");
    let rows = query.bind(question.as_uuid()).fetch_all(connection).await.map_err(store_error)?;
    for row in rows {
        let action: &str = row.try_get("action").map_err(store_error)?;
        let action: Action = serde_json::from_str(action)
            .map_err(|error| StoreError::Corrupt(format!("a delivery of turn {question}: {error}")))?;
        if let Action::Send { content, .. } | Action::Edit { content, .. } = action
            && !content.choices.is_empty()
        {
            return Ok(content.chooser.is_none_or(|chooser| chooser == new.event.sender.id));
        }
    }
    Ok(true)
}
