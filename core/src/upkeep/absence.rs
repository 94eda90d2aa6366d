//! Marks what waits for a channel that no node has, until one has it again.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tracing::warn;

use crate::{
    base::lifecycle::Lifecycle,
    model::ChannelId,
    nodes::leases::Leases,
    ports::{AbsentChannel, ChannelStore, StoreError},
};

/// How often this looks for channels that no node has. Two looks must agree: the last node of a channel may just start again.
const EVERY: Duration = Duration::from_mins(1);

/// After how many looks everything is marked anew: another node may have marked something else meanwhile.
const AGAIN: u32 = 10;

pub(crate) struct Absence {
    pub(crate) store: Arc<dyn ChannelStore>,
    pub(crate) leases: Arc<Leases>,
}

impl Absence {
    /// Marks what waits for such a channel, at the start.
    pub(crate) async fn mark(&self) -> Result<(), StoreError> {
        self.mark_all_but(&self.leases.known_channels().await?).await
    }

    /// Marks it again when nodes have come or gone, until the lifecycle stops. If there can be no other node, it returns at once.
    pub(crate) async fn run(self: Arc<Self>, lifecycle: Lifecycle) {
        let (mut seen, mut marked, mut looks) = (None, None, 0_u32);
        while !self.leases.are_for_good() && lifecycle.pause_unless_stopping(EVERY).await {
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(AGAIN) {
                marked = None;
            }
            if let Err(error) = self.look(&mut seen, &mut marked).await {
                warn!(%error, "cannot mark what waits for channels that no node has, trying again");
            }
        }
    }

    async fn look(
        &self,
        seen: &mut Option<BTreeSet<ChannelId>>,
        marked: &mut Option<BTreeSet<ChannelId>>,
    ) -> Result<(), StoreError> {
        let known = self.leases.known_channels().await?;
        let is_seen_again = seen.replace(known.clone()).is_some_and(|before| before == known);
        if is_seen_again && marked.as_ref() != Some(&known) {
            self.mark_all_but(&known).await?;
            *marked = Some(known);
        }
        Ok(())
    }

    async fn mark_all_but(&self, known: &BTreeSet<ChannelId>) -> Result<(), StoreError> {
        let known: Vec<_> = known.iter().cloned().collect();
        for AbsentChannel { channel, turns, deliveries } in self.store.set_channels(&known).await? {
            warn!(%channel, turns, deliveries, "turns and deliveries wait for a channel that is not configured");
        }
        Ok(())
    }
}
