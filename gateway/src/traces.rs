//! Sends the traces of turns to a collector, by OpenTelemetry.
//!
//! A trace is drawn from what is stored about a turn when the turn ends, and its ids follow from the turn's. So a turn that
//! lived through several processes has one trace, and nothing on its way knows of traces. The place in the log up to which
//! traces were sent is stored: while the collector is away, nothing is lost that is not removed by its age.

mod exporter;
mod spans;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use opentelemetry_sdk::trace::SpanData;
use rejoinder_core::{
    ChannelId, Engine, StoreError, TurnId,
    store::{Beside, CursorMove, Fence, InboxStore, LeaseName, LogEntry, LogFilter, LogSeq, LogStore, OperatorStore},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::{exporter::ExportError, spans::Added};

pub(crate) use self::exporter::Exporter;

/// How long ends of turns are collected before their traces are sent together.
const COLLECT: Duration = Duration::from_secs(1);

/// How many entries of the log are read at once.
const PAGE: u32 = 500;

/// The pause after the collector or the store has failed.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// After how many failures in a row it is said again: about an hour.
const SAY_AGAIN: u32 = 360;

/// What spans are made of.
const TOPICS: [&str; 4] = ["turn.settled", "turn.undeliverable", "delivery.delivered", "delivery.failed"];

/// The name under which the place in the log is stored, like the cursor of a channel.
const CURSOR: (&str, &str) = ("gateway.traces", "log");

/// The place while no traces are wanted.
const OFF: &str = "off";

/// Sends traces until `stop` is cancelled, whenever this node does what must happen once. Without an exporter, what ends meanwhile will
/// not be sent later either.
pub(crate) fn follow(
    engine: Engine,
    store: Arc<dyn InboxStore>,
    log: Arc<dyn LogStore>,
    lists: Arc<dyn OperatorStore>,
    exporter: Option<Exporter>,
    stop: CancellationToken,
) {
    let cursor = TraceCursor { store };
    if let Some(exporter) = exporter {
        let tracer = Tracer { engine: engine.clone(), cursor, log, lists, exporter };
        let run = async move {
            while let Some(term) = engine.housekeeping().await {
                if term.run_until_cancelled(tracer.run()).await.is_some() {
                    // The store is closed.
                    return;
                }
            }
        };
        tokio::spawn(stop.run_until_cancelled_owned(run));
    } else {
        let run = async move {
            while let Some(term) = engine.housekeeping().await {
                if term.run_until_cancelled(until_stored(|| cursor.switch_off(&engine))).await.is_some() {
                    term.cancelled().await;
                }
            }
        };
        tokio::spawn(stop.run_until_cancelled_owned(run));
    }
}

/// Tries until it is stored that no traces are wanted: otherwise those of the time without a collector would be sent later.
async fn until_stored<F: Future<Output = Result<(), StoreError>>>(try_to: impl Fn() -> F) {
    let mut failures = 0;
    while let Err(error) = try_to().await {
        if !error.is_move() {
            if failures % SAY_AGAIN == 0 {
                warn!(%error, "cannot store that no traces are wanted, trying again");
            }
            failures += 1;
        }
        tokio::time::sleep(TRY_AGAIN).await;
    }
}

/// The position in the log up to which traces were sent.
struct TraceCursor {
    store: Arc<dyn InboxStore>,
}

impl TraceCursor {
    /// `None` if there is none yet, or no traces were wanted.
    async fn read(&self) -> Result<Option<LogSeq>, StoreError> {
        let text = self.store.cursor(&ChannelId::from_stored(CURSOR.0), CURSOR.1).await?;
        Ok(text.and_then(|text| text.parse().ok()))
    }

    /// Moves it, under the lease of who sends traces.
    async fn write(&self, position: String, fence: Option<(LeaseName, Fence)>) -> Result<(), StoreError> {
        let channel = ChannelId::from_stored(CURSOR.0);
        let move_to = CursorMove { channel, name: CURSOR.1.to_owned(), position, fence };
        self.store.accept(Vec::new(), Some(Beside::Cursor(move_to))).await.map(drop)
    }

    /// Notes that no traces are wanted, under the same lease.
    async fn switch_off(&self, engine: &Engine) -> Result<(), StoreError> {
        let fence = engine.housekeeping_fence()?;
        if self.read().await?.is_some() { self.write(OFF.to_owned(), fence).await } else { Ok(()) }
    }
}

/// Follows the log and sends traces.
struct Tracer {
    engine: Engine,
    cursor: TraceCursor,
    log: Arc<dyn LogStore>,
    lists: Arc<dyn OperatorStore>,
    exporter: Exporter,
}

impl Tracer {
    async fn run(&self) {
        let mut logged = self.log.logged();
        // Of turns that ended before traces were wanted there are none.
        let first = *logged.borrow_and_update();
        let (mut position, mut failures) = (None, 0);
        loop {
            match self.send_next(&mut position, first).await {
                Ok(is_at_end) => {
                    if failures > 0 {
                        info!("traces are sent again");
                    }
                    failures = 0;
                    if is_at_end {
                        if logged.changed().await.is_err() {
                            return;
                        }
                        tokio::time::sleep(COLLECT).await;
                    }
                }
                // Another node sends them: this one is stopped soon.
                Err(error) if error.downcast_ref::<StoreError>().is_some_and(StoreError::is_move) => {
                    tokio::time::sleep(COLLECT).await;
                }
                Err(error) => {
                    if failures % SAY_AGAIN == 0 {
                        warn!("traces cannot be sent, trying again: {error:#}");
                    }
                    failures += 1;
                    tokio::time::sleep(TRY_AGAIN).await;
                }
            }
            logged.borrow_and_update();
        }
    }

    /// Sends the next traces; returns whether there are no more for now.
    async fn send_next(&self, position: &mut Option<LogSeq>, first: LogSeq) -> Result<bool> {
        // Before anything is read: another node may go on from there once this one does not have the lease any more.
        let fence = self.engine.housekeeping_fence()?;
        let after = if let Some(position) = *position { position } else { self.cursor.read().await?.unwrap_or(first) };
        let end = *self.log.logged().borrow();
        let topics = TOPICS.map(ToOwned::to_owned).into();
        // Only up to the known end of the log, as in the feed.
        let filter = LogFilter { after, before: Some(end + 1), topics, limit: PAGE, ..LogFilter::default() };
        let entries = self.log.log(&filter).await?;
        let is_at_end = entries.len() < PAGE as usize;
        let last = entries.last().map_or(after, |entry| entry.seq);
        self.send(self.spans(&entries).await?).await?;
        let reached = if is_at_end { last.max(end) } else { last };
        let is_first = position.replace(reached).is_none();
        if is_first || !entries.is_empty() {
            // After a restart they may be sent again, with the same ids.
            self.cursor.write(reached.to_string(), fence).await.context("cannot store which traces were sent")?;
        }
        Ok(is_at_end)
    }

    /// Sends the spans of turns. If the collector refuses them, each turn is sent alone, and what is refused then is left out.
    async fn send(&self, turns: Vec<(TurnId, Vec<SpanData>)>) -> Result<()> {
        let all: Vec<_> = turns.iter().flat_map(|(_, spans)| spans).cloned().collect();
        if all.is_empty() {
            return Ok(());
        }
        match self.exporter.export(all).await {
            Ok(()) => return Ok(()),
            Err(ExportError::Failed(why)) => bail!(why),
            Err(ExportError::Refused(_)) => {}
        }
        for (turn, spans) in turns {
            match self.exporter.export(spans).await {
                Ok(()) => {}
                Err(ExportError::Failed(why)) => bail!(why),
                Err(ExportError::Refused(why)) => warn!(%turn, why, "the collector refuses the trace of a turn"),
            }
        }
        Ok(())
    }

    async fn spans(&self, entries: &[LogEntry]) -> Result<Vec<(TurnId, Vec<SpanData>)>, StoreError> {
        let mut added = BTreeMap::<TurnId, Added>::new();
        for entry in entries {
            let Some(turn) = entry.subject.turn_id else { continue };
            let added = added.entry(turn).or_default();
            let delivery = entry.data["delivery_id"].as_str().and_then(|id| id.parse().ok());
            match delivery.zip(entry.data["attempt"].as_u64()) {
                Some(attempt) => added.attempts.push(attempt),
                None => added.is_ended |= entry.topic.starts_with("turn."),
            }
        }
        let mut turns = Vec::new();
        for (turn, added) in added {
            match self.lists.dossier(turn).await {
                Ok(Some(dossier)) => turns.push((turn, spans::of_turn(&dossier, &added))),
                // It was removed.
                Ok(None) => {}
                Err(StoreError::Corrupt(error)) => warn!(%turn, error, "a turn cannot be read, and has no trace"),
                Err(error) => return Err(error),
            }
        }
        Ok(turns)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn that_no_traces_are_wanted_is_stored_once_the_store_is_back() {
        let tries = AtomicU32::new(0);
        let try_to = || async {
            match tries.fetch_add(1, Ordering::Relaxed) {
                0 => Err(StoreError::Unavailable("the database is away".to_owned())),
                1 => Err(StoreError::NotOwner),
                _ => Ok(()),
            }
        };

        until_stored(try_to).await;

        assert_eq!(tries.into_inner(), 3);
    }
}
