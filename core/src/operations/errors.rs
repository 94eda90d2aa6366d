//! What operators say of the errors of the gateway's own log.

use super::Operations;
use crate::{
    model::{
        line::{ErrorFilter, ErrorMark},
        log::Subject,
    },
    operator::{
        actor::{Actor, operation},
        error::OperationError,
    },
    ports::store::transition::Transition,
};

impl Operations {
    /// Stores what an operator says of an error.
    pub async fn mark_error(&self, id: i64, mark: ErrorMark, by: &Actor) -> Result<(), OperationError> {
        let filter = ErrorFilter { id: Some(id), limit: 1, ..ErrorFilter::default() };
        let error = self.store.errors(&filter).await?.pop();
        let may =
            |channel: &Option<_>| by.channels.is_none() || channel.as_ref().is_some_and(|channel| by.may(channel));
        let Some(error) = error.filter(|error| may(&error.channel)) else {
            return Err(OperationError::Unknown("there is no error with this id"));
        };
        let subject = error.channel.as_ref().map(Subject::channel).unwrap_or_default();
        let operation = operation(by, mark.audit_action(), id, subject, self.clock.now());
        let change = Transition { error: Some((id, mark)), operation: Some(operation), ..Transition::default() };
        self.store.commit(change).await?;
        Ok(())
    }
}
