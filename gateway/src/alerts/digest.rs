//! The daily summary.

use std::fmt::Write as _;

use rejoinder_core::{
    OpenLoop, StoreError, Timestamp, open_loops,
    store::{OperatorStore, TurnFilter},
};

use crate::{
    console::output::excerpt,
    figures::{Figures, PROMPT},
    problems::Problem,
    time::age,
};

/// How many open loops it lists.
const LOOPS: usize = 10;

/// What was answered in 24 hours, what is owed and what is wrong.
pub(super) async fn text(
    figures: &Figures,
    store: &dyn OperatorStore,
    wrong: &[Problem],
    now: Timestamp,
) -> Result<String, StoreError> {
    let (day, _) = figures.read(now).await?;
    let loops = open_loops(store, &TurnFilter::default(), now).await?;
    let mut text = format!("**The last 24 hours**: {} turns", day.turns);
    if let (Some(p50), Some(p95)) = (day.p50_ms, day.p95_ms) {
        let percent = (day.prompt * 100).checked_div(day.signals).unwrap_or(100);
        let _ = write!(text, ", {percent} % answered within {} s (half {p50} ms, p95 {p95} ms)", PROMPT.as_secs());
    }
    let fallbacks: u64 = day.fallbacks.values().sum();
    let _ = write!(text, ". The ladder answered {fallbacks}, {} could not be answered.", day.undeliverable);
    match wrong {
        [] => text.push_str("\n\nNothing is wrong."),
        wrong => {
            text.push_str("\n\n**Wrong now**\n");
            for problem in wrong {
                let _ = write!(text, "\n* {}", problem.text);
            }
        }
    }
    if !loops.is_empty() {
        let _ = write!(text, "\n\n**Open**: {}\n", loops.len());
        for open in loops.iter().take(LOOPS) {
            let _ = write!(text, "\n* {}", line(open, now));
        }
    }
    Ok(text)
}

fn line(OpenLoop { turn, kind, .. }: &OpenLoop, now: Timestamp) -> String {
    let who = turn.sender.as_ref().map(|sender| sender.name.clone().unwrap_or_else(|| sender.id.clone()));
    let (who, since) = (who.unwrap_or_default(), age(now.since(turn.accepted_at)));
    format!("{}, {since}: {who} on {}: {}", kind.as_str(), turn.conversation.channel, excerpt(&turn.text, 60))
}
