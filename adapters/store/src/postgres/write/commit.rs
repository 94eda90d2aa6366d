//! Transitions: each is all or nothing.

use rejoinder_core::{
    ConversationId, ConversationRef, QueueMode, StoreError, TurnId, VoiceMode,
    store::{
        AttemptEnd, AttemptStart, BoundedRemark, Commit, DeliveryChange, DeliveryRecord, NewDelivery, Remark,
        TranscriptLine, Transition, TurnChange, TurnFile, Version, rules,
    },
};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::{
    agent_sessions, approvals, channels, daily_use, files, leases, lines, log, log_lines, people, questions,
    rows::{self, Transaction},
    runs, schedules, sessions, slots, tokens,
    values::{with_delivery, with_delivery_change, with_line},
    versions, visitors,
};
use crate::{
    postgres::values::{List, insert_into, statement},
    records::columns::{Columns, record},
    shared::{
        bounds::ATTEMPTS_KEPT,
        stored::{ObligationColumns, json, thread},
        transcripts::line_changes,
    },
};

/// Applies a transition if all that it was decided on is as expected.
pub(super) async fn apply(transaction: &mut Transaction<'_>, transition: &Transition) -> Result<Commit, StoreError> {
    if let Some(fence) = &transition.fence
        && !leases::is_held(transaction, fence).await?
    {
        return Ok(Commit::NotOwner);
    }
    if let Some(configuration) = &transition.configuration
        && !versions::make_latest(transaction, configuration).await?
    {
        return Ok(Commit::Conflict);
    }
    let locked = lock(transaction, transition).await?;
    // Conversations in which a turn began or ceased to wait, and the place of that turn.
    let mut touched = Vec::new();
    for TurnChange { turn, expected, obligation, .. } in &transition.turns {
        let current = locked.iter().find(|locked| locked.turn == *turn && locked.version == *expected);
        let Some(&LockedTurn { conversation, position, .. }) = current else { return Ok(Commit::Conflict) };
        if rules::may_change_first(position, obligation.is_waiting()) {
            touched.push((conversation, position));
        }
    }
    for seen in &transition.seen {
        if !versions::is_current(transaction, seen).await? {
            return Ok(Commit::Conflict);
        }
    }
    if !tokens::has_links(transaction, &transition.sign_ins).await?
        || !visitors::fit(transaction, &transition.visitors).await?
    {
        return Ok(Commit::Conflict);
    }
    if let Some((channel, pause)) = &transition.pause {
        // A channel that is not paused has no row that could be locked.
        rows::change(transaction, statement!(LOCK_PAUSED)).await?;
        if channels::is_paused(transaction, channel).await? == pause.is_some() {
            return Ok(Commit::Conflict);
        }
    }
    if let Some((conversation, address)) = &transition.empty_lane
        && !has_empty_lane(transaction, *conversation, address).await?
    {
        return Ok(Commit::Conflict);
    }
    if !change_slots(transaction, transition, &locked).await? {
        return Ok(Commit::Conflict);
    }
    versions::count(transaction, transition).await?;
    for change in &transition.turns {
        change_obligation(transaction, change).await?;
    }
    for (conversation, position) in touched {
        lines::settle(transaction, conversation, position).await?;
    }
    write(transaction, transition).await?;
    Ok(Commit::Done)
}

/// A turn that a transition changes, or of which it writes rows.
struct LockedTurn {
    turn: TurnId,
    conversation: Uuid,
    position: Option<i64>,
    version: Version,
    is_running: bool,
}

/// Locks the conversations in which a transition changes something, and the turns that it changes or of which it writes rows. So the
/// guards hold until its end, the places in lines and in the order of claims are given by one transaction after another, and no turn
/// is removed meanwhile.
async fn lock(transaction: &mut Transaction<'_>, transition: &Transition) -> Result<Vec<LockedTurn>, StoreError> {
    let deliveries = || transition.deliveries.iter().map(NewDelivery::record);
    let of_changes = transition.turns.iter().map(|change| change.turn);
    let of_lines = transition.transcript.iter().map(|line| line.turn);
    let of_files = transition.files.iter().map(|file| file.turn);
    let turns = of_changes.chain(deliveries().map(|delivery| delivery.turn)).chain(of_lines).chain(of_files);
    let turns = List(turns.map(TurnId::as_uuid).collect::<Vec<_>>());
    let locked = if turns.0.is_empty() {
        Vec::new()
    } else {
        let read = |row: &PgRow| Ok(record!(row => LockedTurn { turn, conversation, position, version, is_running }));
        rows::all(transaction, statement!(LOCK, turns), read).await?
    };
    // An answer may be sent to another conversation.
    let lanes = deliveries().map(|delivery| delivery.conversation_id);
    let lanes = lanes.chain(transition.empty_lane.iter().map(|(conversation, _)| *conversation));
    let is_locked = |conversation: &Uuid| locked.iter().any(|locked| locked.conversation == *conversation);
    let others: Vec<Uuid> = lanes.map(ConversationId::as_uuid).filter(|other| !is_locked(other)).collect();
    if !others.is_empty() {
        lines::lock(transaction, others).await?;
    }
    Ok(locked)
}

/// Frees the slots of turns that hold them no more, and takes those of runs that start. `false` if another node has one of them: the
/// transaction is rolled back.
async fn change_slots(
    transaction: &mut Transaction<'_>,
    transition: &Transition,
    locked: &[LockedTurn],
) -> Result<bool, StoreError> {
    let of = |turn: TurnId| locked.iter().find(|locked| locked.turn == turn);
    for TurnChange { turn, obligation, .. } in &transition.turns {
        if !obligation.holds_slot()
            && let Some(LockedTurn { conversation, is_running: true, .. }) = of(*turn)
        {
            let has_left = obligation.is_running() || transition.runs_ended.iter().any(|end| end.turn == *turn);
            slots::free(transaction, *conversation, *turn, has_left).await?;
        }
    }
    for run in &transition.runs_started {
        let begins = |change: &TurnChange| change.turn == run.turn && change.obligation.holds_slot();
        if transition.turns.iter().any(begins)
            && let Some(LockedTurn { conversation, .. }) = of(run.turn)
            && !slots::take(transaction, *conversation, run).await?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a conversation is at this address, and nothing of it is pending or being sent.
async fn has_empty_lane(
    transaction: &mut Transaction<'_>,
    conversation: ConversationId,
    address: &ConversationRef,
) -> Result<bool, StoreError> {
    let statement = statement!(HAS_EMPTY_LANE, conversation, address.channel, address.chat, thread(address));
    Ok(rows::one(transaction, statement, |_| Ok(())).await?.is_some())
}

async fn change_obligation(transaction: &mut Transaction<'_>, change: &TurnChange) -> Result<(), StoreError> {
    let TurnChange { turn, expected, obligation, at } = change;
    let ObligationColumns {
        owed,
        state,
        work,
        wake_at,
        overdue_at,
        ended,
        postponed,
        suspended,
        fell_back,
        merged_into,
    } = ObligationColumns::of(obligation);
    let statement = statement!(
        CHANGE_OBLIGATION,
        turn,
        expected,
        owed,
        state,
        work,
        wake_at,
        overdue_at,
        ended.then_some(*at),
        obligation.handoff(),
        json(obligation),
        postponed,
        suspended,
        fell_back,
        merged_into,
    );
    rows::change_one(transaction, "turns", statement).await
}

async fn write(transaction: &mut Transaction<'_>, transition: &Transition) -> Result<(), StoreError> {
    for change in &transition.sessions {
        sessions::change(transaction, change).await?;
    }
    // It locks sessions: before the agents' sessions and the budgets of the day, as an accept and a batch do.
    let (changed, turns): (Vec<_>, Vec<_>) = line_changes(transition).unzip();
    let turns: Vec<_> = turns.into_iter().flatten().collect();
    sessions::count_changes(transaction, changed, &turns).await?;
    for change in &transition.agent_sessions {
        agent_sessions::change(transaction, change).await?;
    }
    if let Some((conversation, mode)) = &transition.queue {
        let statement = statement!(CHANGE_QUEUE, conversation, mode.map(QueueMode::as_str));
        rows::change_one(transaction, "queue modes", statement).await?;
    }
    if let Some((conversation, mode)) = &transition.voice {
        let statement = statement!(CHANGE_VOICE, conversation, mode.map(VoiceMode::as_str));
        rows::change_one(transaction, "voice modes", statement).await?;
    }
    for withdrawal in &transition.withdrawn {
        let statement = statement!(WITHDRAW, withdrawal.turn, withdrawal.claim, withdrawal.reason);
        rows::change(transaction, statement).await?;
    }
    for TurnFile { turn, file } in &transition.files {
        files::add(transaction, *turn, file).await?;
    }
    insert_deliveries(transaction, &transition.deliveries).await?;
    // Before a turn asks another question.
    for change in &transition.approvals {
        approvals::change(transaction, change).await?;
    }
    for question in &transition.closed_questions {
        questions::close_pointless(transaction, question).await?;
    }
    for question in &transition.questions {
        questions::ask(transaction, question).await?;
    }
    for change in &transition.delivery_changes {
        change_delivery(transaction, change).await?;
    }
    if let Some((delivery, at)) = &transition.due_now {
        rows::change(transaction, statement!(MAKE_DUE, delivery, at)).await?;
    }
    write_attempts(transaction, transition).await?;
    for run in &transition.runs_started {
        runs::start(transaction, run).await?;
    }
    for run in &transition.holders {
        runs::hand_out(transaction, run).await?;
    }
    for run in &transition.runs_ended {
        runs::end(transaction, run).await?;
    }
    for line in &transition.transcript {
        write_line(transaction, line).await?;
    }
    if let Some((used, at)) = &transition.used {
        daily_use::add_to_agent(transaction, used, *at).await?;
    }
    for Remark { turn, at, kind, detail } in &transition.remarks {
        rows::change(transaction, insert_into!(remarks { turn_id: turn, at, kind, detail })).await?;
    }
    for BoundedRemark { remark: Remark { turn, at, kind, detail }, most } in &transition.bounded_remarks {
        rows::change(transaction, statement!(REMARK_WITHIN, turn, at, kind, detail, most)).await?;
    }
    for entry in &transition.log {
        log::add(transaction, entry).await?;
    }
    if let Some((channel, pause)) = &transition.pause {
        channels::pause(transaction, channel, pause.as_ref()).await?;
    }
    if let Some(token) = &transition.token {
        tokens::change(transaction, token).await?;
    }
    if let Some((error, mark)) = transition.error {
        let at = transition.operation.as_ref().map_or(0, |operation| operation.at.as_millis());
        log_lines::mark(transaction, error, mark, at).await?;
    }
    for sign_in in &transition.sign_ins {
        tokens::change_sign_in(transaction, sign_in).await?;
    }
    for change in &transition.visitors {
        visitors::change(transaction, change).await?;
    }
    for change in &transition.schedules {
        schedules::change(transaction, change).await?;
    }
    for change in &transition.people {
        people::change(transaction, change).await?;
    }
    if let Some(operation) = &transition.operation {
        log::operation(transaction, operation).await?;
    }
    Ok(())
}

/// Inserts deliveries, of which the parts of a claim follow each other.
async fn insert_deliveries(transaction: &mut Transaction<'_>, deliveries: &[NewDelivery]) -> Result<(), StoreError> {
    let mut last: Option<(&DeliveryRecord, i64)> = None;
    for delivery in deliveries.iter().map(NewDelivery::record) {
        let is_next_part = |of: &DeliveryRecord| {
            (of.turn, of.claim, of.is_copy) == (delivery.turn, delivery.claim, delivery.is_copy)
                && of.part < delivery.part
        };
        let number = last.filter(|(of, _)| is_next_part(of)).map(|(_, number)| number);
        last = Some((delivery, insert_delivery(transaction, delivery, number).await?));
    }
    Ok(())
}

/// Inserts a part of a claim. Returns the claim's number among all, which is a new one for `None`.
async fn insert_delivery(
    transaction: &mut Transaction<'_>,
    record: &DeliveryRecord,
    number: Option<i64>,
) -> Result<i64, StoreError> {
    let statement = with_delivery!(statement!(INSERT_DELIVERY, number), record);
    let number = rows::one(transaction, statement, |row| row.value("number")).await?;
    number.ok_or_else(|| StoreError::Failed("the turn of a delivery is gone".to_owned()))
}

async fn change_delivery(transaction: &mut Transaction<'_>, change: &DeliveryChange) -> Result<(), StoreError> {
    let statement = with_delivery_change!(statement!(CHANGE_DELIVERY), change);
    rows::change_one(transaction, "deliveries", statement).await
}

async fn write_attempts(transaction: &mut Transaction<'_>, transition: &Transition) -> Result<(), StoreError> {
    for AttemptStart { delivery, number, node, at } in &transition.attempts_started {
        let statement = statement!(START_ATTEMPT, delivery, number, node.as_uuid(), at);
        rows::change_one(transaction, "deliveries to attempt", statement).await?;
    }
    for AttemptEnd { delivery, number, at, result, detail } in &transition.attempts_ended {
        let statement = statement!(END_ATTEMPT, delivery, number, at, result, detail);
        rows::change_one(transaction, "attempts", statement).await?;
        if *number > ATTEMPTS_KEPT + 1 {
            rows::change(transaction, statement!(FOLD_ATTEMPT, delivery, number, result)).await?;
        }
    }
    Ok(())
}

async fn write_line(transaction: &mut Transaction<'_>, new: &TranscriptLine) -> Result<(), StoreError> {
    let statement = with_line!(statement!(WRITE_TRANSCRIPT), new);
    rows::change(transaction, statement).await.map(drop)
}

/// Each conversation before its turns, as in `lines.rs`.
const LOCK: &str = "
    select t.id as turn, t.conversation_id as conversation, t.place as position, t.version,
        t.work is not distinct from 'running' as is_running
    from turns as t join conversations as c on c.id = t.conversation_id
    where t.id = any($1) order by c.id, t.id for no key update of c, t";

/// Others can still read it.
const LOCK_PAUSED: &str = "lock table paused in share row exclusive mode";

const HAS_EMPTY_LANE: &str = "
    select 1 from conversations as c
    where c.id = $1 and c.channel = $2 and c.chat = $3 and c.thread = $4 and not exists (
        select 1 from deliveries as d where d.channel = c.channel and d.conversation_id = c.id and d.state in ('pending', 'sending'))";

const CHANGE_OBLIGATION: &str = "
    update turns set
        version = version + 1, owed = $3, state = $4, work = $5, wake_at = $6, overdue_at = $7,
        place = case when $5 = 'waiting' then place end, absent = absent and $8 is null,
        ended_at = case when $8 is not null then coalesce(ended_at, $8) end, next_agent = coalesce($9, next_agent), body = $10,
        postponed = $11, suspended = $12, fell_back = $13, merged_into = $14
    where id = $1 and version = $2";

const CHANGE_QUEUE: &str = "update conversations set queue = $2 where id = $1";

const CHANGE_VOICE: &str = "update conversations set voice = $2 where id = $1";

const WITHDRAW: &str = "
    update deliveries set state = 'withdrawn', error = $3, absent = false
    where turn_id = $1 and claim = $2 and state in ('pending', 'held')";

const INSERT_DELIVERY: &str = "
    insert into deliveries (
        seq, id, turn_id, claim, part, parts, conversation_id, channel, class, signal, via, by_agent, is_copy, action, state, attempts,
        next_attempt_at, label, parked, message_ids, error, created_at, retried_at, delivered_at, fetched_at)
    select coalesce($1, nextval('claim_seq')) << 16 | $5, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14::jsonb, $15, $16,
        $17, $18, $19, $20::jsonb, $21, $22, $23, $24, $25
    from turns where id = $3
    returning seq >> 16 as number";

const CHANGE_DELIVERY: &str = "
    update deliveries set
        state = $2, attempts = $3, next_attempt_at = $4, label = $5, parked = $6, action = coalesce($7::jsonb, action),
        message_ids = $8::jsonb, error = $9, retried_at = $10, delivered_at = $11, copies = $12, resend_from = $13
    where id = $1";

/// The node that has the channel may be sending it.
const MAKE_DUE: &str =
    "update deliveries set next_attempt_at = $2 where id = $1 and state = 'pending' and next_attempt_at > $2";

/// The delivery cannot be removed before the end of the transaction.
const START_ATTEMPT: &str = "
    insert into attempts (delivery_id, number, owner, started_at)
    select id, $2, $3, $4 from deliveries where id = $1 for key share";

/// Another node may have ended it.
const END_ATTEMPT: &str = "
    update attempts set ended_at = $3, result = $4, detail = $5
    where delivery_id = $1 and number = $2 and ended_at is null";

/// Of attempts in a row with the same result, the first and the last are kept: an outage of a day has thousands.
const FOLD_ATTEMPT: &str = "
    delete from attempts
    where delivery_id = $1 and number = $2 - 1 and result = $3 and result = (
        select b.result from attempts as b where b.delivery_id = $1 and b.number < $2 - 1
        order by b.number desc limit 1)";

const REMARK_WITHIN: &str = "
    insert into remarks (turn_id, at, kind, detail)
    select t.id, $2, $3, $4
    from turns as t
    where t.id = $1
        and not exists (select 1 from remarks as r where r.turn_id = $1 and r.kind = $3 and r.detail = $4)
        and (select count(*) from remarks as r where r.turn_id = $1 and r.kind = $3) < $5
    for key share of t";

/// A person's text is stored once, with the event.
/// The session of the turn may be another one than when its run began.
const WRITE_TRANSCRIPT: &str = "
    insert into transcript (session_id, seq, turn_id, speaker, author, forwarded, text, at, claim, stopped)
    values (coalesce((select session_id from turns where id = $3), $1), $2, $3, $4, $5::jsonb, $6::jsonb,
        case when $4 = 'person' then nullif($7, (
            select e.text from turns as t join events as e on e.seq = t.event where t.seq = $2)) else $7 end,
        $8, $9, $10)
    on conflict (session_id, seq, claim, turn_id) do update set author = excluded.author,
        forwarded = excluded.forwarded, text = excluded.text, at = excluded.at, stopped = excluded.stopped";
