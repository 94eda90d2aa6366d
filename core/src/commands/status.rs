//! `/status`: tells what is being worked on, what waits and what is promised.

use rejoinder_guard::ObligationState;

use super::{
    budget::used_today,
    command::{Answer, Call, Command, Filled, Words},
};
use crate::{
    base::words::{age, excerpt},
    model::{ApprovalFilter, TurnRecord},
    ports::StoreError,
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
    let mut words = Vec::new();
    for turn in open.iter().take(MOST) {
        words.push(of(turn, call).await?);
    }
    if open.is_empty() {
        words.push(Filled { template: "status_idle", values: Vec::new() });
    }
    if open.len() > MOST {
        words.push(Filled { template: "status_more", values: vec![("count", (open.len() - MOST).to_string())] });
    }
    words.extend(used_today(call).await?);
    Ok(Answer::saying(Words::Templates(words)))
}

async fn of(turn: &TurnRecord, call: &Call<'_>) -> Result<Filled, StoreError> {
    let waits_for_person = async || {
        let asked = call.approvals.list(ApprovalFilter::Of(turn.id)).await?;
        Ok::<_, StoreError>(asked.last().is_some_and(|asked| asked.request.choices.is_some()))
    };
    let template = match turn.obligation.state() {
        _ if turn.obligation.decide_by().is_some() && waits_for_person().await? => "status_question",
        _ if turn.obligation.decide_by().is_some() => "status_approval",
        ObligationState::Deferred => "status_promised",
        _ if turn.obligation.is_running() => "status_running",
        _ if turn.obligation.is_waiting() || turn.obligation.is_postponed() => "status_waiting",
        _ => "status_sending",
    };
    let time = age(call.now.since(turn.event.received_at));
    let due = age(turn.obligation.due().unwrap_or(call.now).since(call.now));
    Ok(Filled { template, values: vec![("time", time), ("due", due), ("text", excerpt(turn.event.told(), EXCERPT))] })
}
