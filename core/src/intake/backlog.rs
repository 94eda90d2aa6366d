//! Gives up what waited too long while the gateway was down.

use super::{accept::Acceptor, event_router::Notice};
use crate::{
    model::{event::InboundEvent, queue::Backlog},
    ports::store::{StoreError, accept::Stored},
};

impl Acceptor {
    /// Tells each conversation whose waiting turns are late, and gives these up, if they are not to be answered. Nothing runs
    /// yet.
    pub(crate) async fn expire_late(&self) -> Result<(), StoreError> {
        let settings = self.router.settings.get();
        if settings.queues.backlog != Backlog::Expire {
            return Ok(());
        }
        let now = self.router.clock.now();
        for waiting in self.store.waiting(u32::MAX).await? {
            let turn = match self.store.turn(waiting.turn).await {
                Ok(Some(turn)) => turn,
                // One that cannot be read is set aside when it is next.
                Ok(None) | Err(StoreError::CorruptTurn { .. }) => continue,
                Err(error) => return Err(error),
            };
            if turn.runs == 0 && settings.queues.is_late(&turn.event, now) {
                self.give_up_late(&turn.event).await?;
            }
        }
        Ok(())
    }

    async fn give_up_late(&self, event: &InboundEvent) -> Result<(), StoreError> {
        let Some(notice) = self.router.notice(event, Notice::Late).await? else { return Ok(()) };
        let turn = notice.new.turn.as_ref().map(|turn| turn.id);
        let stored = self.store.accept(vec![notice.new], None).await?;
        match (&stored[..], turn) {
            ([Stored::Turn { .. }], Some(turn)) => self.commands.try_to_perform(turn).await,
            _ => Ok(()),
        }
    }
}
