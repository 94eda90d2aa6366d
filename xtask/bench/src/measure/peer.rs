//! Another server under the loads of the hooks.

use anyhow::Result;

use super::plan::{plan, throughput_and_waits};
use crate::{
    bench::Bench,
    client::Endpoint,
    figures::{Sample, Unit::Ratio},
    helper::load,
    load::{Plan, Report, start_of},
};

const CALLERS: [&str; 3] = ["1 caller", "16 callers", "64 callers"];

/// The peer's results with as many callers as [`CALLERS`].
pub(super) struct PeerResults([Report; 3]);

impl PeerResults {
    /// Measures the peer. Any 2xx counts as an answer.
    ///
    /// # Errors
    ///
    /// When it cannot be reached or answers anything else.
    pub(super) async fn measure(bench: &Bench, peer: &Endpoint) -> Result<Self> {
        let with = async |callers| load(&Plan { expect: None, ..plan(bench, peer, callers) }).await;
        let results = [with(1).await?, with(16).await?, with(64).await?];
        // A reader of the comparison should see whether it is the agent's answer or the promise of one.
        eprintln!("the peer's last answer: {}", start_of(&results[2].last));
        Ok(Self(results))
    }

    /// The figures of the peer and of the gateway with the same callers.
    pub(super) fn samples(&self, gateway: [&Report; 3]) -> Vec<Sample> {
        let mut samples = Vec::new();
        for ((callers, peer), gateway) in CALLERS.into_iter().zip(&self.0).zip(gateway) {
            let share = gateway.throughput / peer.throughput;
            samples.push(Sample::untargeted(format!("gateway beside the peer, {callers}"), share, Ratio));
            samples.extend(throughput_and_waits("peer", callers, peer));
        }
        samples
    }
}
