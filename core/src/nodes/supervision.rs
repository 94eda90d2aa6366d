//! Runs channels under their leases.

use std::sync::Arc;

use super::leases::Leases;
use crate::{
    base::{channels, lifecycle::Lifecycle},
    ports::{ChannelAdapter, Intake, LeaseName, SharedClock},
};

/// Runs a channel whenever this node holds its lease, or all the time if [each node](ChannelAdapter::runs_at_each_node) runs it, until the
/// gateway stops.
pub(crate) async fn supervise(
    adapter: Arc<dyn ChannelAdapter>,
    intake: Intake,
    clock: SharedClock,
    lifecycle: Lifecycle,
    leases: Arc<Leases>,
) {
    if adapter.runs_at_each_node() {
        return channels::supervise(adapter, intake, clock, lifecycle).await;
    }
    let name = LeaseName::Channel(adapter.channel().clone());
    while let Some(hold) = leases.held(&name).await {
        let _running = hold.keep_using();
        // Of this very term, also if it is over by now: then the store refuses what is received.
        let intake = Intake { fence: hold.fence(), ..intake.clone() };
        channels::supervise(Arc::clone(&adapter), intake, clock.clone(), hold.lifecycle().clone()).await;
    }
}
