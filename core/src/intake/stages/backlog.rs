//! Decides about messages that waited too long while the gateway was down (`[queue] backlog`).

use rejoinder_guard::Timestamp;

use crate::{
    intake::arrival::{Arrival, Notice, Verdict, end},
    model::Backlog,
    questions::backlog_question::may_be_asked,
};

pub(in crate::intake) fn backlog(arrival: &mut Arrival, now: Timestamp) -> Verdict {
    let queues = &arrival.settings.queues;
    if arrival.is_command() || !queues.is_backlog(&arrival.event, now) {
        return Ok(());
    }
    match queues.backlog {
        Backlog::Expire => return end(arrival.is_owed().then_some(Notice::BacklogExpired)),
        Backlog::Ask if !may_be_asked(&arrival.event) => {}
        Backlog::Ask if !arrival.is_owed() => return end(None),
        Backlog::Ask => arrival.is_asked_about = true,
        Backlog::Answer | Backlog::Summarize => {}
    }
    Ok(())
}
