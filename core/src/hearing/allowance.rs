//! How much of recordings is written down on a day, of all channels and by all nodes.

use std::sync::Arc;

use crate::{
    model::{AgentName, Budget, Day, LiveSettings, Used},
    ports::{AgentUse, DayUse, PeopleStore, SharedClock, StoreError, Transcriber, Transition, TurnStore},
};

/// Under this name it is counted what is written down on a day: seconds in place of tokens.
const HEARING: &str = "voice.hear";

/// How many bytes a second of a recording has at most: one without compression has 176,400. A larger file lasts longer than its sender
/// says.
const MOST_A_SECOND: usize = 200_000;

/// Counts recordings. Nothing is kept in memory: it is a row.
pub(crate) struct Allowance {
    pub(crate) store: Arc<dyn TurnStore>,
    pub(crate) usage: Arc<dyn PeopleStore>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
}

impl Allowance {
    /// Counts a recording among those of today, before it is written down: also what is lost has its price. `false` if they would be too
    /// many.
    pub(crate) async fn spend(&self, transcriber: &dyn Transcriber, seconds: u64) -> Result<bool, StoreError> {
        let Some(most) = transcriber.most_per_day().map(|most| most.as_secs()) else { return Ok(true) };
        let (agent, at) = (AgentName::from(HEARING), self.clock.now());
        let day = Day::of(at, &self.settings.get().time_zone).number;
        let DayUse { tokens: before, .. } = self.usage.agent_use(&agent, day).await?;
        if before.saturating_add(seconds) > most {
            return Ok(false);
        }
        let (used, budget) = (Used { tokens: seconds, ..Used::default() }, Budget { tokens: Some(most), micros: None });
        let used = Some((AgentUse { agent, day, used, budget }, at));
        self.store.commit(Transition { used, ..Transition::default() }).await?.is_done()
    }
}

/// How long a recording is at least. None is free: many short ones have their price.
pub(crate) fn least_seconds(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len() / MOST_A_SECOND).unwrap_or(u64::MAX).max(1)
}
