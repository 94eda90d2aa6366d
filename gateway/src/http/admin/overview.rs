//! Whether anything is owed and late, and what is wrong: the first thing that an operator looks at.

use axum::{Extension, Json, extract::State};
use rejoinder_core::store::{Backlog, TurnFilter, TurnListState};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    agents::{self, AgentItem},
    caller::Caller,
    channels::{self, ChannelItem},
    responses::Reading,
};
use crate::{
    figures::{Figure, PROMPT},
    http::{App, Shared, error::ApiError},
    time::rfc3339,
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
    problems: Vec<ProblemItem>,
    backlog: BacklogItem,
    /// The turns that are late, the latest first.
    overdue: Vec<TurnItem>,
    channels: Vec<ChannelItem>,
    agents: Vec<AgentItem>,
    /// The figures of the last 24 hours.
    day: Figure,
    /// The same by quarter of an hour, oldest first; without those in which nothing happened.
    intervals: Vec<Figure>,
}

/// Something that is wrong.
#[derive(Debug, Serialize, ToSchema)]
struct ProblemItem {
    /// `store`, `channel`, `paused`, `agent`, `overdue`, `undeliverable`, `callbacks` or `absent`.
    kind: &'static str,
    /// What is wrong, in one sentence.
    text: String,
    /// The channel or agent that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    /// How many turns or deliveries it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

/// The numbers of turns and deliveries that wait.
#[derive(Debug, Serialize, ToSchema)]
struct BacklogItem {
    /// Turns that are owed an answer.
    open: u64,
    /// Those of them that are late for the person.
    overdue: u64,
    /// Turns that wait for a run.
    waiting: u64,
    /// Deliveries that wait for an attempt.
    pending_deliveries: u64,
    /// Those of them that get nowhere.
    parked_deliveries: u64,
    /// Turns whose channel is not configured.
    absent: u64,
    /// Turns that are dead letters.
    undeliverable: u64,
    /// Callbacks that are dead letters.
    dead_callbacks: u64,
}

impl From<Backlog> for BacklogItem {
    fn from(backlog: Backlog) -> Self {
        Self {
            open: backlog.open,
            overdue: backlog.overdue,
            waiting: backlog.waiting,
            pending_deliveries: backlog.pending_deliveries,
            parked_deliveries: backlog.parked_deliveries,
            absent: backlog.absent,
            undeliverable: backlog.undeliverable,
            dead_callbacks: backlog.dead_copies,
        }
    }
}

/// Says whether anything is owed and late, what is wrong, and how the last 24 hours were. A token that is limited to channels
/// sees the channels and late turns of these; the numbers are those of all.
#[utoipa::path(get, path = "/admin/api/overview", tag = "admin", operation_id = "overview",
    responses((status = 200, description = "The overview", body = Overview), Reading),
    security(("admin_token" = [])))]
pub(in crate::http) async fn show(
    State(app): Shared,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Overview>, ApiError> {
    let now = app.clock.now();
    let backlog = app.store.backlog().await?;
    let filter = TurnFilter {
        state: Some(TurnListState::Overdue),
        channels: caller.channels(None),
        limit: SHOWN,
        now: Some(now),
        ..TurnFilter::default()
    };
    let overdue = app.store.list_turns(&filter).await?.into_iter().map(TurnItem::from).collect();
    let (day, intervals) = app.figures.read(now).await?;
    let (channels, agents) = (channels::items(&app, &caller), agents::items(&app).await?);
    let problems = problems(&app, &backlog, &channels, &agents).await;
    Ok(Json(Overview {
        at: rfc3339(now),
        ok: problems.is_empty(),
        headline: headline(&problems, &day),
        problems,
        backlog: backlog.into(),
        overdue,
        channels,
        agents,
        day,
        intervals,
    }))
}

async fn problems(app: &App, backlog: &Backlog, channels: &[ChannelItem], agents: &[AgentItem]) -> Vec<ProblemItem> {
    let mut problems = Vec::new();
    if let Err(error) = app.probe.store_writes().await {
        let text = format!("The store cannot write: {error}. Nothing is accepted until it can.");
        problems.push(ProblemItem { kind: "store", text, subject: None, count: None });
    }
    for channel in channels.iter().filter(|channel| !channel.live || !channel.sends) {
        let why = channel.problem.as_deref().unwrap_or("it has received nothing for too long");
        let text = format!("{} is down: {why}.", channel.channel);
        problems.push(ProblemItem { kind: "channel", text, subject: Some(channel.channel.clone()), count: None });
    }
    for (channel, paused) in channels.iter().filter_map(|channel| Some((channel, channel.paused.as_ref()?))) {
        let why = paused.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let text = format!("{} is paused by {}{why}.", channel.channel, paused.by);
        problems.push(ProblemItem { kind: "paused", text, subject: Some(channel.channel.clone()), count: None });
    }
    for agent in agents.iter().filter(|agent| !agent.up) {
        let text = format!("The agent {} fails: {}.", agent.name, agent.error.as_deref().unwrap_or("no run succeeds"));
        problems.push(ProblemItem { kind: "agent", text, subject: Some(agent.name.clone()), count: None });
    }
    let counted = [
        (
            "overdue",
            backlog.overdue,
            "One turn is late: the person has seen no answer in time",
            "turns are late: these people have seen no answer in time",
        ),
        ("undeliverable", backlog.undeliverable, "One turn could not be answered", "turns could not be answered"),
        ("callbacks", backlog.dead_copies, "One callback of a hook was given up", "callbacks of hooks were given up"),
        (
            "absent",
            backlog.absent,
            "One turn waits for a channel that is not configured",
            "turns wait for a channel that is not configured",
        ),
    ];
    for (kind, count, one, many) in counted.into_iter().filter(|(_, count, ..)| *count > 0) {
        let text = if count == 1 { format!("{one}.") } else { format!("{count} {many}.") };
        problems.push(ProblemItem { kind, text, subject: None, count: Some(count) });
    }
    problems
}

fn headline(problems: &[ProblemItem], day: &Figure) -> String {
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
