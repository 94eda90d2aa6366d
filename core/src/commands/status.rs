//! `/status`: tells what is being worked on, what waits and what is promised.

use rejoinder_guard::ObligationState;

use super::command::{Answer, Call, Command, Filled, Words};
use crate::{
    base::words::{age, excerpt},
    model::{Day, TurnRecord},
    ports::{DayUse, StoreError},
};

/// How many open turns are told one by one.
const MOST: usize = 5;

/// How many characters of a message are told.
const EXCERPT: usize = 60;

pub(super) const STATUS: Command =
    Command::new("status", &["/status"], 0, "What is being worked on", |call| Box::pin(status(call)));

async fn status(call: &Call<'_>) -> Result<Answer, StoreError> {
    let mut open = call.open_before().await?;
    // The turn that answers for one tells for both.
    open.retain(|turn| !matches!(turn.obligation.state(), ObligationState::Merged { .. }));
    let mut words: Vec<Filled> = open.iter().take(MOST).map(|turn| of(turn, call)).collect();
    if open.is_empty() {
        words.push(Filled { template: "status_idle", values: Vec::new() });
    }
    if open.len() > MOST {
        words.push(Filled { template: "status_more", values: vec![("count", (open.len() - MOST).to_string())] });
    }
    words.extend(used_today(call).await?);
    Ok(Answer::saying(Words::Templates(words)))
}

/// What of the day is used: the sender's turns and tokens where these are limited, else the tokens of the conversation.
async fn used_today(call: &Call<'_>) -> Result<Vec<Filled>, StoreError> {
    let (event, known) = (&call.turn.event, call.people.known());
    let limits = call.settings.limits(event, &known);
    let today = Day::of(call.now, &call.settings.time_zone);
    let mut used = DayUse::default();
    if limits.has_daily() {
        for identity in known.all_of(&event.identity()) {
            let DayUse { turns, tokens } = call.usage.day_use(&identity, today.number).await?;
            used = DayUse { turns: used.turns + turns, tokens: used.tokens.saturating_add(tokens) };
        }
    }
    if limits.tokens_per_day.is_none() {
        used.tokens = call.usage.tokens_since(call.turn.conversation, today.began_at).await?;
    }
    let filled = |template, count: u64, most: Option<u32>| {
        let most = most.map_or_else(String::new, |most| most.to_string());
        Filled { template, values: vec![("count", count.to_string()), ("most", most)] }
    };
    let turns = limits.turns_per_day.map(|most| filled("status_turns_today", used.turns, Some(most)));
    let tokens = match limits.tokens_per_day {
        Some(most) => Some(filled("status_tokens_limited", used.tokens, Some(most))),
        None => (used.tokens > 0).then(|| filled("status_tokens_today", used.tokens, None)),
    };
    Ok(turns.into_iter().chain(tokens).collect())
}

fn of(turn: &TurnRecord, call: &Call<'_>) -> Filled {
    let template = match turn.obligation.state() {
        _ if turn.obligation.decide_by().is_some() => "status_approval",
        ObligationState::Deferred => "status_promised",
        _ if turn.obligation.is_running() => "status_running",
        _ if turn.obligation.is_waiting() || turn.obligation.is_postponed() => "status_waiting",
        _ => "status_sending",
    };
    let time = age(call.now.since(turn.event.received_at));
    let due = age(turn.obligation.due().unwrap_or(call.now).since(call.now));
    Filled { template, values: vec![("time", time), ("due", due), ("text", excerpt(turn.event.told(), EXCERPT))] }
}
