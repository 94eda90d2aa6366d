//! What a digest tells: chosen when it begins, so that what is pressed later means what was shown.

use super::{Initiative, Recipient};
use crate::{
    commands::message::message,
    digest::{LISTED, is_theirs, read, snoozed},
    loops::open_loops,
    model::{
        event::{EventKind, InboundEvent},
        ids::PersonId,
    },
    operations::OperationError,
    ports::store::{StoreError, list::TurnSummary},
};

impl Initiative {
    /// The event that tells somebody what is open: an owner everything, others what is theirs.
    pub(super) async fn digest(&self, to: &Recipient, by: &str) -> Result<InboundEvent, OperationError> {
        let Some(person) = to.person else {
            return Err(OperationError::Unfit("a digest is for a person or a role".to_owned()));
        };
        let (store, now) = (self.store.as_ref(), self.clock.now());
        let snoozed = snoozed(store, person, now).await?;
        let (mut items, mut more) = (Vec::new(), 0);
        for open in open_loops(store, None, now).await? {
            let turn = &open.turn;
            let is_listed = turn.state != "merged" && !snoozed.contains(&turn.turn_id);
            if !is_listed || !(to.is_owner || self.is_theirs(turn, person).await?) {
                continue;
            }
            if items.len() < LISTED {
                items.push(turn.turn_id);
            } else {
                more += 1;
            }
        }
        let kind = EventKind::Digest { person, items, more };
        Ok(InboundEvent { kind, language: to.language, ..message(&to.place, String::new(), by, "", now) })
    }

    async fn is_theirs(&self, turn: &TurnSummary, person: PersonId) -> Result<bool, StoreError> {
        let turn = read(self.store.as_ref(), turn.turn_id).await?;
        Ok(turn.is_some_and(|turn| is_theirs(&turn.event, person, &self.people)))
    }
}
