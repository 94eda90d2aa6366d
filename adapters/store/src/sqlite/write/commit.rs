//! Transitions: each is all or nothing.

use rejoinder_core::{
    ConversationId, ConversationRef, LineState, QueueMode, StoreError, Timestamp, VoiceMode,
    store::{
        AttemptEnd, AttemptStart, BoundedRemark, Commit, DeliveryChange, DeliveryRecord, Label, Remark, TranscriptLine,
        Transition, TurnChange, TurnFile, rules,
    },
};
use rusqlite::{Row, params};
use uuid::Uuid;

use super::{
    agent_sessions, approvals, channels, daily_use, files, lines, log, log_lines, people, questions,
    rows::{self, Transaction, insert_into},
    runs, schedules, sessions, tokens, versions, visitors,
};
use crate::shared::{
    bounds::ATTEMPTS_KEPT,
    stored::{ObligationColumns, json, name, thread},
};

/// Applies a transition if all that it was decided on is as expected.
pub(super) fn apply(transaction: &Transaction<'_>, transition: &Transition) -> Result<Commit, StoreError> {
    // Conversations in which a turn began or ceased to wait, and the place of that turn.
    let mut touched = Vec::new();
    for TurnChange { turn, expected, obligation, .. } in &transition.turns {
        let current = |row: &Row<'_>| Ok((row.get::<_, Uuid>(0)?, row.get::<_, Option<i64>>(1)?));
        let current = rows::one(transaction, SELECT_CURRENT, params![turn.as_uuid(), expected], current)?;
        let Some((conversation, position)) = current else { return Ok(Commit::Conflict) };
        if rules::may_change_first(position, obligation.is_waiting()) {
            touched.push((conversation, position));
        }
    }
    for seen in &transition.seen {
        if !versions::is_current(transaction, seen)? {
            return Ok(Commit::Conflict);
        }
    }
    if !tokens::has_links(transaction, &transition.sign_ins)? || !visitors::fit(transaction, &transition.visitors)? {
        return Ok(Commit::Conflict);
    }
    if let Some((channel, pause)) = &transition.pause
        && channels::is_paused(transaction, channel)? == pause.is_some()
    {
        return Ok(Commit::Conflict);
    }
    if let Some((conversation, address)) = &transition.empty_lane
        && !has_empty_lane(transaction, *conversation, address)?
    {
        return Ok(Commit::Conflict);
    }
    versions::count(transaction, transition)?;
    for change in &transition.turns {
        change_obligation(transaction, change)?;
    }
    for (conversation, position) in touched {
        lines::settle(transaction, conversation, position)?;
    }
    write(transaction, transition)?;
    Ok(Commit::Done)
}

/// Whether a conversation is at this address, and nothing of it is pending or being sent.
fn has_empty_lane(
    transaction: &Transaction<'_>,
    conversation: ConversationId,
    address: &ConversationRef,
) -> Result<bool, StoreError> {
    let values = params![conversation.as_uuid(), address.channel.as_str(), address.chat, thread(address)];
    rows::one(transaction, HAS_EMPTY_LANE, values, |_| Ok(())).map(|found| found.is_some())
}

fn change_obligation(transaction: &Transaction<'_>, change: &TurnChange) -> Result<(), StoreError> {
    let TurnChange { turn, expected, obligation, at } = change;
    let ObligationColumns { owed, state, work, wake_at, overdue_at, ended, .. } = ObligationColumns::of(obligation);
    let values = params![
        turn.as_uuid(),
        expected,
        owed,
        state,
        work,
        wake_at.map(Timestamp::as_millis),
        overdue_at.map(Timestamp::as_millis),
        ended.then_some(at.as_millis()),
        obligation.handoff(),
        json(obligation),
    ];
    rows::change_one(transaction, "turns", CHANGE_OBLIGATION, values)
}

fn change_modes(transaction: &Transaction<'_>, transition: &Transition) -> Result<(), StoreError> {
    if let Some((conversation, mode)) = &transition.queue {
        let values = params![conversation.as_uuid(), mode.map(QueueMode::as_str)];
        rows::change_one(transaction, "queue modes", CHANGE_QUEUE, values)?;
    }
    if let Some((conversation, mode)) = &transition.voice {
        let values = params![conversation.as_uuid(), mode.map(VoiceMode::as_str)];
        rows::change_one(transaction, "voice modes", CHANGE_VOICE, values)?;
    }
    Ok(())
}

fn write(transaction: &Transaction<'_>, transition: &Transition) -> Result<(), StoreError> {
    for change in &transition.sessions {
        sessions::change(transaction, change)?;
    }
    for change in &transition.agent_sessions {
        agent_sessions::change(transaction, change)?;
    }
    change_modes(transaction, transition)?;
    for withdrawal in &transition.withdrawn {
        let values = params![withdrawal.turn.as_uuid(), withdrawal.claim, withdrawal.reason];
        rows::change(transaction, WITHDRAW, values)?;
    }
    for TurnFile { turn, file } in &transition.files {
        files::add(transaction, *turn, file)?;
    }
    for delivery in &transition.deliveries {
        insert_delivery(transaction, delivery.record())?;
    }
    // Before a turn asks another question.
    for change in &transition.approvals {
        approvals::change(transaction, change)?;
    }
    for question in &transition.closed_questions {
        questions::close_pointless(transaction, question)?;
    }
    for question in &transition.questions {
        questions::ask(transaction, question)?;
    }
    for change in &transition.delivery_changes {
        change_delivery(transaction, change)?;
    }
    if let Some((delivery, at)) = &transition.due_now {
        rows::change(transaction, MAKE_DUE, params![delivery.as_uuid(), at.as_millis()])?;
    }
    for AttemptStart { delivery, number, node, at } in &transition.attempts_started {
        let (delivery_id, owner, started_at) = (delivery.as_uuid(), node.as_uuid(), at.as_millis());
        insert_into!(transaction, attempts { delivery_id, number, owner, started_at })?;
    }
    for AttemptEnd { delivery, number, at, result, detail } in &transition.attempts_ended {
        let values = params![delivery.as_uuid(), number, at.as_millis(), result, detail];
        rows::change_one(transaction, "attempts", END_ATTEMPT, values)?;
        if *number > ATTEMPTS_KEPT + 1 {
            rows::change(transaction, FOLD_ATTEMPT, params![delivery.as_uuid(), number, result])?;
        }
    }
    for run in &transition.runs_started {
        runs::start(transaction, run)?;
    }
    for run in &transition.holders {
        runs::hand_out(transaction, run)?;
    }
    for run in &transition.runs_ended {
        runs::end(transaction, run)?;
    }
    for TranscriptLine { session, turn, seq, claim, line } in &transition.transcript {
        let (author, forwarded) = (line.author.as_ref().map(json), line.forwarded.as_ref().map(json));
        let (session, turn, at) = (session.as_uuid(), turn.as_uuid(), line.at.as_millis());
        let is_stopped = line.state == LineState::Stopped;
        let values =
            params![session, seq, turn, name(line.speaker), author, forwarded, line.text, at, claim, is_stopped];
        rows::change(transaction, WRITE_TRANSCRIPT, values)?;
    }
    if let Some((used, at)) = &transition.used {
        daily_use::add_to_agent(transaction, used, *at)?;
    }
    for Remark { turn, at, kind, detail } in &transition.remarks {
        insert_into!(transaction, remarks { turn_id: turn.as_uuid(), at: at.as_millis(), kind, detail })?;
    }
    for BoundedRemark { remark: Remark { turn, at, kind, detail }, most } in &transition.bounded_remarks {
        rows::change(transaction, REMARK_WITHIN, params![turn.as_uuid(), at.as_millis(), kind, detail, most])?;
    }
    for entry in &transition.log {
        log::add(transaction, entry)?;
    }
    if let Some((channel, pause)) = &transition.pause {
        channels::pause(transaction, channel, pause.as_ref())?;
    }
    if let Some(token) = &transition.token {
        tokens::change(transaction, token)?;
    }
    if let Some((error, mark)) = transition.error {
        let at = transition.operation.as_ref().map_or(0, |operation| operation.at.as_millis());
        log_lines::mark(transaction, error, mark, at)?;
    }
    for sign_in in &transition.sign_ins {
        tokens::change_sign_in(transaction, sign_in)?;
    }
    for change in &transition.visitors {
        visitors::change(transaction, change)?;
    }
    for change in &transition.schedules {
        schedules::change(transaction, change)?;
    }
    for change in &transition.people {
        people::change(transaction, change)?;
    }
    if let Some(operation) = &transition.operation {
        log::operation(transaction, operation)?;
    }
    Ok(())
}

fn insert_delivery(transaction: &Transaction<'_>, record: &DeliveryRecord) -> Result<(), StoreError> {
    insert_into!(
        transaction,
        deliveries {
            id: record.id.as_uuid(),
            turn_id: record.turn.as_uuid(),
            claim: record.claim,
            part: record.part,
            parts: record.parts,
            conversation_id: record.conversation_id.as_uuid(),
            channel: record.conversation.channel.as_str(),
            class: name(record.class),
            signal: record.signal.as_str(),
            via: json(&record.via),
            is_copy: record.is_copy,
            action: json(&record.action),
            state: record.state.as_str(),
            attempts: record.attempts,
            next_attempt_at: record.next_attempt_at.as_millis(),
            label: record.label.map(Label::as_str),
            parked: record.parked,
            message_ids: json(&record.message_ids),
            error: record.error,
            created_at: record.created_at.as_millis(),
            retried_at: record.retried_at.map(Timestamp::as_millis),
            delivered_at: record.delivered_at.map(Timestamp::as_millis),
            fetched_at: record.fetched_at.map(Timestamp::as_millis),
        }
    )
}

fn change_delivery(transaction: &Transaction<'_>, change: &DeliveryChange) -> Result<(), StoreError> {
    let values = params![
        change.id.as_uuid(),
        change.state.as_str(),
        change.attempts,
        change.next_attempt_at.as_millis(),
        change.label.map(Label::as_str),
        change.parked,
        change.action.as_ref().map(json),
        json(&change.message_ids),
        change.error,
        change.retried_at.map(Timestamp::as_millis),
        change.delivered_at.map(Timestamp::as_millis),
        change.copies,
        change.resend_from.map(Timestamp::as_millis),
    ];
    rows::change_one(transaction, "deliveries", CHANGE_DELIVERY, values)
}

const SELECT_CURRENT: &str = "select conversation_id, place from turns where id = ? and version = ?";

const HAS_EMPTY_LANE: &str = "
    select 1 from conversations as c
    where c.id = ? and c.channel = ? and c.chat = ? and c.thread = ? and not exists (
        select 1 from deliveries as d where d.conversation_id = c.id and d.state in ('pending', 'sending'))";

const CHANGE_OBLIGATION: &str = "
    update turns set
        version = version + 1, owed = ?3, state = ?4, work = ?5, wake_at = ?6, overdue_at = ?7,
        place = iif(?5 is 'waiting', place, null), absent = iif(?8 is null, absent, 0),
        ended_at = iif(?8 is null, null, coalesce(ended_at, ?8)), next_agent = coalesce(?9, next_agent), body = ?10
    where id = ?1 and version = ?2";

const CHANGE_QUEUE: &str = "update conversations set queue = ?2 where id = ?1";

const CHANGE_VOICE: &str = "update conversations set voice = ?2 where id = ?1";

const WITHDRAW: &str = "
    update deliveries set state = 'withdrawn', error = ?3, absent = 0 where turn_id = ?1 and claim = ?2 and state in ('pending', 'held')";

const CHANGE_DELIVERY: &str = "
    update deliveries set
        state = ?2, attempts = ?3, next_attempt_at = ?4, label = ?5, parked = ?6, action = coalesce(?7, action),
        message_ids = ?8, error = ?9, retried_at = ?10, delivered_at = ?11, copies = ?12, resend_from = ?13
    where id = ?1";

const MAKE_DUE: &str =
    "update deliveries set next_attempt_at = ?2 where id = ?1 and state = 'pending' and next_attempt_at > ?2";

const END_ATTEMPT: &str = "
    update attempts set ended_at = ?3, result = ?4, detail = ?5
    where delivery_id = ?1 and number = ?2 and ended_at is null";

/// Of attempts in a row with the same result, the first and the last are kept: an outage of a day has thousands.
const FOLD_ATTEMPT: &str = "
    delete from attempts
    where delivery_id = ?1 and number = ?2 - 1 and result = ?3 and result = (
        select b.result from attempts as b where b.delivery_id = ?1 and b.number < ?2 - 1
        order by b.number desc limit 1)";

const REMARK_WITHIN: &str = "
    insert into remarks (turn_id, at, kind, detail)
    select ?1, ?2, ?3, ?4
    where exists (select 1 from turns where id = ?1)
        and not exists (select 1 from remarks where turn_id = ?1 and kind = ?3 and detail = ?4)
        and (select count(*) from remarks where turn_id = ?1 and kind = ?3) < ?5";

/// A person's text is stored once, with the event.
/// The session of the turn may be another one than when its run began.
const WRITE_TRANSCRIPT: &str = "
    insert into transcript (session_id, seq, turn_id, speaker, author, forwarded, text, at, claim, stopped)
    values (coalesce((select session_id from turns where id = ?3), ?1), ?2, ?3, ?4, ?5, ?6,
        iif(?4 = 'person', nullif(?7, (
            select e.text from turns as t cross join events as e on e.seq = t.event where t.seq = ?2)), ?7),
        ?8, ?9, ?10)
    on conflict do update set author = excluded.author, forwarded = excluded.forwarded,
        text = excluded.text, at = excluded.at, stopped = excluded.stopped";
