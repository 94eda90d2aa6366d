//! Whether anything is owed and late, and what is wrong: the first thing that an operator looks at.

use rejoinder_core::{
    SpeechOfToday, SpeechUse,
    store::{Backlog, TurnFilter, TurnListState},
};

use super::{
    agents::{self, AgentItem},
    channels::{self, ChannelItem},
    nodes::{self, NodeItem},
    prelude::*,
};
use crate::{
    figures::{Figure, PROMPT},
    problems::{Problem, Waits},
    view::TurnItem,
};

/// How many overdue turns are shown.
const SHOWN: u32 = 20;

/// What an operator should know first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Overview {
    #[schema(format = DateTime)]
    at: String,
    /// False if anything is late, dead or down.
    ok: bool,
    /// What to know, in one sentence.
    headline: String,
    /// What is wrong, the worst first.
    problems: Vec<Problem>,
    backlog: BacklogItem,
    /// The turns that are late, the latest first.
    overdue: Vec<TurnItem>,
    channels: Vec<ChannelItem>,
    agents: Vec<AgentItem>,
    /// How much was written down today of what is spoken, if that is bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    heard: Option<SpeechItem>,
    /// How much was spoken today, if that is bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    spoken: Option<SpeechItem>,
    /// The nodes that live.
    nodes: Vec<NodeItem>,
    /// The figures of the last 24 hours.
    day: Figure,
    /// The same by quarter of an hour, oldest first; without those in which nothing happened.
    intervals: Vec<Figure>,
}

item! {
    /// The numbers of turns and deliveries that wait.
    BacklogItem of (backlog: Backlog) {
        /// Turns that are owed an answer.
        open: u64 = backlog.open,
        /// Those of them that are late for the person.
        overdue: u64 = backlog.overdue,
        /// Turns that wait for a run.
        waiting: u64 = backlog.waiting,
        /// Deliveries that wait for an attempt.
        pending_deliveries: u64 = backlog.pending_deliveries,
        /// Those of them that get nowhere.
        parked_deliveries: u64 = backlog.parked_deliveries,
        /// Turns whose channel is not configured.
        absent: u64 = backlog.absent,
        /// Turns that are dead letters.
        undeliverable: u64 = backlog.undeliverable,
        /// Callbacks that are dead letters.
        dead_callbacks: u64 = backlog.dead_copies,
    }
}

item! {
    /// How much speech there was today, and how much there may be.
    SpeechItem of (of: SpeechUse) {
        seconds: u64 = of.used.as_secs(),
        seconds_per_day: u64 = of.most.as_secs(),
    }
}

/// Says whether anything is owed and late, what is wrong, and how the last 24 hours were. A token that is limited to channels
/// sees the channels and late turns of these; the numbers are those of all.
#[utoipa::path(get, path = "/overview", operation_id = "overview",
    responses((status = 200, description = "The overview", body = Overview)))]
pub(super) async fn show(State(app): Shared, caller: Caller) -> Answer<Overview> {
    let now = app.clock.now();
    let waits = app.problems.waits(now).await?;
    let filter = TurnFilter {
        state: Some(TurnListState::Overdue),
        channels: caller.channels(None),
        limit: SHOWN,
        now: Some(now),
        ..TurnFilter::default()
    };
    let overdue = app.records.lists.list_turns(&filter).await?.into_iter().map(TurnItem::of).collect();
    let (day, intervals) = app.figures.read(now).await?;
    let (channels, agents) = (channels::items(&app, &caller), agents::items(&app).await?);
    let problems = problems(&app, &caller, &waits).await;
    let nodes = nodes::items(&app, &caller).await?;
    let SpeechOfToday { heard, spoken } = app.engine.speech_of_today().await?;
    Ok(Json(Overview {
        at: rfc3339(now),
        ok: problems.is_empty(),
        headline: headline(&problems, &day),
        problems,
        backlog: BacklogItem::of(waits.backlog),
        overdue,
        channels,
        agents,
        heard: heard.map(SpeechItem::of),
        spoken: spoken.map(SpeechItem::of),
        nodes,
        day,
        intervals,
    }))
}

/// What is wrong, as far as a caller may see it.
async fn problems(app: &App, caller: &Caller, waits: &Waits) -> Vec<Problem> {
    let mut problems = app.problems.find(app.probe.store_writes().await.err(), Some(waits), app.clock.now());
    let schedules = app.engine.calendar().seen_by(caller.channels.as_deref());
    problems.retain(|problem| problem.is_seen_by(caller.channels.as_deref(), &schedules));
    let abandoned = app.engine.operations().approvals_without_approver().await.unwrap_or_default();
    let abandoned = abandoned.iter().filter(|approval| caller.may_see(&approval.channel));
    problems.extend(app.problems.of_approvals(abandoned.map(|approval| approval.asked_at), app.clock.now()));
    problems
}

fn headline(problems: &[Problem], day: &Figure) -> String {
    if let Some(worst) = problems.first() {
        return match problems.len() {
            1 => worst.text.clone(),
            more => format!("{} And {} more.", worst.text, more - 1),
        };
    }
    let turns = match day.turns {
        0 => return "Everything is answered. There were no turns in the last 24 hours.".to_owned(),
        1 => "One turn".to_owned(),
        turns => format!("{} turns", grouped(turns)),
    };
    let prompt = (day.prompt * 1000).checked_div(day.signals).unwrap_or(1000);
    let seconds = PROMPT.as_secs();
    format!("Everything is answered. {turns} in 24 hours, {}.{} % within {seconds} s.", prompt / 10, prompt % 10)
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([7, 999, 1204, 1_000_000].map(grouped), ["7", "999", "1,204", "1,000,000"]);
    }
}
