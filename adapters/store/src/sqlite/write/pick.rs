//! Picks from questions. The first pick answers its question and closes it.

use rejoinder_core::{
    Action, EventKind, StoreError, TurnId,
    store::{NewEvent, Stored},
};
use rusqlite::params;

use super::{
    insert,
    rows::{self, Transaction},
};

/// The turn whose question an event picks from, if the event would open a turn.
pub(super) fn question(new: &NewEvent) -> Option<TurnId> {
    match new.event.kind {
        EventKind::Choice { turn } => new.turn.as_ref().map(|_| turn),
        _ => None,
    }
}

/// Accepts a pick. `question` is the turn that was answered with the question.
pub(super) fn accept(transaction: &Transaction<'_>, new: &NewEvent, question: TurnId) -> Result<Stored, StoreError> {
    let refused = match picked(transaction, question)? {
        Some(choice) => Some(Stored::Picked { choice }),
        None if may_pick(transaction, new, question)? => None,
        None => Some(Stored::Kept),
    };
    if let Some(refused) = refused {
        let stored = insert::key(transaction, new)?;
        // A duplicate of the first pick is reported as a duplicate.
        return Ok(if stored == Stored::Kept { refused } else { stored });
    }
    let stored = insert::one(transaction, new)?;
    if let (Stored::Turn { .. }, Some(turn)) = (&stored, &new.turn) {
        let sql = "update turns set picked = ? where id = ?";
        rows::change(transaction, sql, params![turn.id.as_uuid(), question.as_uuid()])?;
    }
    Ok(stored)
}

/// The text of the first pick, if there is one.
fn picked(transaction: &Transaction<'_>, question: TurnId) -> Result<Option<String>, StoreError> {
    let sql = "
        select t.picked, e.text from turns as t
        left join turns as p on p.id = t.picked left join events as e on e.id = p.event_id
        where t.id = ? and t.picked is not null";
    rows::one(transaction, sql, [question.as_uuid()], |row| {
        Ok(row.get::<_, Option<String>>("text")?.unwrap_or_default())
    })
}

/// Whether the event's sender may pick: the question is for this sender or for everyone.
fn may_pick(transaction: &Transaction<'_>, new: &NewEvent, question: TurnId) -> Result<bool, StoreError> {
    let sql = "select action from deliveries where turn_id = ? order by claim desc, part desc";
    for action in rows::all(transaction, sql, [question.as_uuid()], |row| row.get::<_, String>(0))? {
        let action: Action = serde_json::from_str(&action)
            .map_err(|error| StoreError::Corrupt(format!("a delivery of turn {question}: {error}")))?;
        if let Action::Send { content, .. } | Action::Edit { content, .. } = action
            && !content.choices.is_empty()
        {
            return Ok(content.chooser.is_none_or(|chooser| chooser == new.event.sender.id));
        }
    }
    Ok(true)
}
