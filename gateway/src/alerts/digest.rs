//! The daily summary.

use std::fmt::Write as _;

use jiff::{ToSpan, Zoned, civil::Time, tz::TimeZone};
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

/// A time in a zone.
pub(super) fn zoned(at: Timestamp, zone: &TimeZone) -> Zoned {
    jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or_default().to_zoned(zone.clone())
}

/// When it is next this time of day. If the clocks skip it, the moment after.
pub(super) fn next(now: Timestamp, time: Time, zone: &TimeZone) -> Option<Timestamp> {
    let today = zoned(now, zone).date();
    let on = |date: jiff::civil::Date| {
        let at = date.to_datetime(time).to_zoned(zone.clone()).ok()?;
        Some(Timestamp::from_millis(at.timestamp().as_millisecond()))
    };
    on(today).filter(|at| *at > now).or_else(|| on(today.checked_add(1.day()).ok()?))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_comes_at_the_same_time_of_day_when_the_clocks_change() {
        let zone = TimeZone::get("Europe/Vienna").unwrap();
        let at = |text: &str| Timestamp::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond());
        let eight = Time::strptime("%H:%M", "08:00").unwrap();

        assert_eq!(next(at("2026-03-28T05:00:00Z"), eight, &zone), Some(at("2026-03-28T07:00:00Z")));
        assert_eq!(next(at("2026-03-28T07:00:00Z"), eight, &zone), Some(at("2026-03-29T06:00:00Z")));
        assert_eq!(next(at("2026-10-24T12:00:00Z"), eight, &zone), Some(at("2026-10-25T07:00:00Z")));
        // 02:30 does not exist on that day.
        let skipped = Time::strptime("%H:%M", "02:30").unwrap();
        assert_eq!(next(at("2026-03-28T12:00:00Z"), skipped, &zone), Some(at("2026-03-29T01:30:00Z")));
    }
}
