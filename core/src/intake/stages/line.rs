//! Takes the slot of its conversation for a turn of an agent, or finds it room among the turns that wait.

use std::sync::Arc;

use crate::{
    conversations::addresses::Addresses,
    handles::slots::{Slots, permit::Permit},
    intake::{
        arrival::{Arrival, Notice, Verdict},
        limits::{Full, Limits, is_limited},
    },
    merges::{Merges, waits_for_more},
    model::{EventKind, Handler},
    ports::StoreError,
};

pub(in crate::intake) async fn line(
    arrival: &mut Arrival,
    addresses: &Addresses,
    merges: &Merges,
    slots: &Arc<Slots>,
    limits: &Limits,
) -> Verdict {
    let is_behind = is_behind(arrival, addresses, slots, limits).await?;
    // Earlier stages may have waited, and a late message may be about to be stored as postponed meanwhile.
    let here = arrival.conversation_now(addresses).await?;
    let conversation = here.id;
    let Arrival { id, event, handling, .. } = &*arrival;
    // A command does not wait.
    let Handler::Agent(agent) = &handling.handler else { return Ok(()) };
    let mode = merges.mode_of(here.queue, event, handling.rule.as_deref());
    // What comes after late messages is answered together with them.
    let is_message = event.kind == EventKind::Message && arrival.is_owed();
    let is_postponed = arrival.is_asked_about || (is_message && here.has_postponed);
    let slot = if !arrival.may_begin || is_postponed || is_behind {
        None
    } else if waits_for_more(event, mode) {
        slots.try_reserve(conversation, *id, agent)
    } else {
        let permit = Permit { agent: agent.clone(), channel: event.conversation.channel.clone() };
        slots.try_take(conversation, *id, &permit)
    };
    (arrival.mode, arrival.is_postponed, arrival.slot) = (mode, is_postponed, slot);
    if arrival.slot.is_some() || !is_limited(&arrival.event) {
        return Ok(());
    }
    if let Some(counted) = &arrival.counted
        && let Some(over) = limits.check_waiting(&arrival.event, counted, &arrival.known).await?
    {
        return arrival.end_over_limit(over);
    }
    match limits.check_line(&arrival.event, conversation, arrival.is_asked_about).await? {
        Some(Full::Refuses(over)) => return arrival.end_over_limit(over),
        Some(Full::Drops { minute }) => arrival.notice = Some(Notice::Dropped { minute }),
        None => {}
    }
    Ok(())
}

/// Whether an earlier turn of the conversation waits, as the store says where the slots do not know.
async fn is_behind(
    arrival: &mut Arrival,
    addresses: &Addresses,
    slots: &Slots,
    limits: &Limits,
) -> Result<bool, StoreError> {
    let conversation = arrival.conversation(addresses).await?.id;
    let hide = arrival.handling.handler.agent().is_some_and(|agent| slots.hide_row(conversation, agent));
    Ok(hide && limits.waits_in(conversation).await?)
}
