//! Retention: removes rows that are past their time.
//!
//! It works in small steps, each of which is one transaction, and pauses between them, so that turns do not wait for it.
//! A step that a crash interrupts is done again at the next start.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::Timestamp;
use tracing::{info, warn};

use crate::{
    base::{crash::crash_point, lifecycle::Lifecycle},
    model::LiveSettings,
    ports::{Cutoffs, HousekeepingStore, Removal, SharedClock, StoreError},
    schedules::Calendar,
};

const STEP: u32 = 100;

/// The shortest and the longest time between two sweeps. They are shorter if a lifetime is shorter.
const INTERVAL: (Duration, Duration) = (Duration::from_hours(1), Duration::from_hours(24));

/// The time between two sweeps if the sounds of spoken words go with the end of their turns.
const SOON: Duration = Duration::from_mins(1);

/// The pause after a step is this many times as long as the step.
const PAUSE_FACTOR: u32 = 3;

/// The shortest and the longest pause after a step.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// Removes rows that are past their time.
pub(crate) struct Retention {
    pub(crate) store: Arc<dyn HousekeepingStore>,
    pub(crate) calendar: Arc<Calendar>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
}

impl Retention {
    /// Removes what is past its time, again and again, until it is stopped.
    pub(crate) async fn run(self: Arc<Self>, lifecycle: Lifecycle) {
        let lifetimes = &self.settings.get().lifetimes;
        let all = [lifetimes.turns, lifetimes.payloads, lifetimes.lines, lifetimes.voice].into_iter().flatten();
        // What is not kept at all is not stored, or goes with the end of its turn.
        let sounds = lifetimes.voice.filter(Duration::is_zero).map(|_| SOON);
        let shortest = all.filter(|lifetime| !lifetime.is_zero()).chain(sounds).min().unwrap_or(Duration::MAX);
        let (least, most) = (shortest.min(INTERVAL.0), shortest.min(INTERVAL.1));
        loop {
            let pause = match self.remove_expired(&lifecycle).await {
                Ok(Some(next)) => next.since(self.clock.now()).clamp(least, most),
                // Rows that are stored meanwhile are not past their time before the longest pause is over.
                Ok(None) => most,
                Err(error) => {
                    warn!(%error, "cannot remove rows that are past their time, trying again later");
                    least
                }
            };
            if !lifecycle.pause_unless_stopping(pause).await {
                return;
            }
        }
    }

    /// Returns when the next row is past its time.
    async fn remove_expired(&self, lifecycle: &Lifecycle) -> Result<Option<Timestamp>, StoreError> {
        let cutoffs = Cutoffs::at(self.clock.now(), &self.settings.get().lifetimes);
        let (mut turns, mut payloads, mut contents, mut keys) = (0, 0, 0, 0);
        let (mut sounds, mut log, mut lines, mut pages) = (0, 0, 0, 0);
        while let Some(removal) = self.store.expired(&cutoffs, STEP).await? {
            match &removal {
                Removal::Turns(ids) => turns += ids.len(),
                Removal::Payloads(ids) | Removal::Quotes(ids) => payloads += ids.len(),
                Removal::Contents(runs) => contents += runs.len(),
                Removal::Sounds(turns) => sounds += turns.len(),
                Removal::Keys(ids) => keys += ids.len(),
                Removal::Log { entries, .. } => log += entries,
                Removal::Lines { lines: removed, .. } => lines += removed,
                Removal::Pages(number) => pages += number,
                Removal::Mentions(_) => {}
            }
            let begun = self.clock.now();
            self.store.remove(removal).await?;
            crash_point!("removed");
            let pause = (self.clock.now().since(begun) * PAUSE_FACTOR).clamp(PAUSE.0, PAUSE.1);
            if !lifecycle.pause_unless_stopping(pause).await {
                break;
            }
        }
        let schedules = self.calendar.remove_over(cutoffs.turns).await?;
        // Not of lines alone: the line about them would be the next one to remove.
        if turns + payloads + contents + sounds + keys > 0 || log + pages > 0 || schedules > 0 {
            info!(
                turns,
                payloads,
                contents,
                sounds,
                keys,
                log,
                lines,
                pages,
                schedules,
                "removed rows that were past their time"
            );
        }
        self.store.next_expiry(&self.settings.get().lifetimes).await
    }
}
