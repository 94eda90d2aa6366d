//! `/budget`: tells what of the day is used, and what may be.

use super::{
    approve::owner_of,
    command::{Answer, Call, Command, Filled, Words},
};
use crate::{
    base::words::age,
    model::{Cost, Day},
    ports::{DayUse, StoreError},
};

pub(super) const BUDGET: Command =
    Command::new("budget", &["/budget"], 0, "What of the day is used", |call| Box::pin(budget(call)));

async fn budget(call: &Call<'_>) -> Result<Answer, StoreError> {
    let mut words = used_today(call).await?;
    words.extend(used_by_agents(call).await?);
    if words.is_empty() {
        return Ok(Answer::of("budget_nothing"));
    }
    let today = Day::of(call.now, &call.settings.time_zone);
    words.push(Filled { template: "budget_until", values: vec![("time", age(today.ends_at.since(call.now)))] });
    Ok(Answer::saying(Words::Templates(words)))
}

/// What of the day is used: the sender's turns, tokens and money where these are limited, else the tokens of the conversation.
pub(super) async fn used_today(call: &Call<'_>) -> Result<Vec<Filled>, StoreError> {
    let (event, known) = (&call.turn.event, call.people.known());
    let limits = call.settings.limits(event, &known);
    let today = Day::of(call.now, &call.settings.time_zone);
    let mut used = DayUse::default();
    if limits.has_daily() {
        for identity in known.all_of(&event.identity()) {
            used = used.and(call.usage.day_use(&identity, today.number).await?);
        }
    }
    let about = about(used);
    let limited =
        |template, used: String, most: String| Filled { template, values: vec![("count", used), ("most", most)] };
    let turns =
        limits.turns_per_day.map(|most| limited("status_turns_today", used.turns.to_string(), most.to_string()));
    let tokens = if let Some(most) = limits.tokens_per_day {
        Some(limited("status_tokens_limited", format!("{about}{}", used.tokens), most.to_string()))
    } else {
        let tokens = call.usage.tokens_since(call.turn.conversation, today.began_at).await?;
        let values = vec![("count", tokens.to_string())];
        (tokens > 0).then_some(Filled { template: "status_tokens_today", values })
    };
    let currency = call.settings.currency();
    let money = |micros| Cost { micros, currency }.to_string();
    let cost = limits
        .cost_per_day
        .map(|most| limited("status_cost_limited", format!("{about}{}", money(used.micros)), money(most)));
    Ok(turns.into_iter().chain(tokens).chain(cost).collect())
}

/// A sum of which a part is estimated is an estimate.
const fn about(used: DayUse) -> &'static str {
    if used.estimated > 0 { "~" } else { "" }
}

/// What agents have used of their budgets, for owners.
async fn used_by_agents(call: &Call<'_>) -> Result<Vec<Filled>, StoreError> {
    if owner_of(call).is_none() {
        return Ok(Vec::new());
    }
    let today = Day::of(call.now, &call.settings.time_zone);
    let mut words = Vec::new();
    for (agent, budget) in &call.settings.budgets {
        let used = call.usage.agent_use(agent, today.number).await?;
        let percent = format!("{}{}", about(used), budget.percent(used.tokens, used.micros));
        let values = vec![("name", agent.to_string()), ("percent", percent)];
        words.push(Filled { template: "budget_agent", values });
    }
    Ok(words)
}
