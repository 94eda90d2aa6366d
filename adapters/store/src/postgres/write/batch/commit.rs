//! Transitions: one statement applies those of a batch, with the rules of [`commit`](super::super::commit).

use std::collections::HashSet;

use rejoinder_core::{
    ConversationId, DeliveryId, NodeId, StoreError, TurnId, Used,
    store::{
        AttemptEnd, AttemptStart, Commit, DeliveryChange, DeliveryRecord, LogSeq, NewDelivery, NewLogEntry, Remark,
        RunEnd, RunStart, Subject, TranscriptLine, Transition, TurnChange,
    },
};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::{
    outcome::Outcome,
    sections::{
        ATTEMPT_ENDS, ATTEMPTS, CHANGED, CHANGED_SESSIONS, CHANGES, CONTENTS, DELIVERIES, DELIVERY_CHANGES,
        EMPTY_LANES, ENDED, GUARDS, KEPT, LINES, LOCKS, LOG, NO_SLOTS_TAKEN, REMARKS, REQUESTS, RUN_ENDS, SLOTS_TAKEN,
        STARTED, STARTS, UNSETTLED, USED, WRITER,
    },
    table::{Composed, Table, row},
};
use crate::{
    postgres::{
        values::{Bytes, List, Statement, statement},
        write::{
            lines,
            rows::{self, Transaction},
            values::{with_delivery, with_delivery_change, with_line},
        },
    },
    records::columns::Columns,
    shared::{
        bounds::{ATTEMPTS_KEPT, SETTINGS_STEP},
        known::{KnownRow, KnownSettings},
        request::{WriteRequest, WriteResult},
        stored::{ObligationColumns, compress, handler, json, thread},
        transcripts::line_changes,
    },
};

/// Whether a transition can be one of a batch. Its parts then touch no row twice, and need nothing that only one after the other of
/// several statements can do.
pub(super) fn fits(transition: &Transition) -> bool {
    let Transition {
        fence: _,
        turns,
        seen,
        configuration,
        deliveries,
        empty_lane: _,
        files,
        questions,
        closed_questions,
        withdrawn,
        delivery_changes,
        due_now,
        attempts_started,
        attempts_ended,
        runs_started,
        runs_ended,
        holders,
        transcript,
        lines: _,
        sessions,
        agent_sessions,
        used,
        remarks: _,
        bounded_remarks,
        log: _,
        operation,
        token,
        error,
        sign_ins,
        visitors,
        approvals,
        schedules,
        people,
        queue,
        voice,
        pause,
    } = transition;
    let has_only_parts_of_turns = seen.is_empty()
        && configuration.is_none()
        && files.is_empty()
        && questions.is_empty()
        && closed_questions.is_empty()
        && withdrawn.is_empty()
        && due_now.is_none()
        && holders.is_empty()
        && sessions.is_empty()
        && agent_sessions.is_empty()
        && used.is_none()
        && bounded_remarks.is_empty()
        && operation.is_none()
        && token.is_none()
        && error.is_none()
        && sign_ins.is_empty()
        && visitors.is_empty()
        && approvals.is_empty()
        && schedules.is_empty()
        && people.is_empty()
        && queue.is_none()
        && voice.is_none()
        && pause.is_none();
    let changed: HashSet<TurnId> = turns.iter().map(|change| change.turn).collect();
    let made = deliveries.iter().map(|delivery| delivery.record().id);
    let written: HashSet<DeliveryId> = made.chain(delivery_changes.iter().map(|change| change.id)).collect();
    let starts = |turn: TurnId, number: u32| runs_started.iter().any(|run| (run.turn, run.number) == (turn, number));
    let begins =
        |end: &AttemptEnd| attempts_started.iter().any(|it| (it.delivery, it.number) == (end.delivery, end.number));
    has_only_parts_of_turns
        && changed.len() == turns.len()
        && written.len() == deliveries.len() + delivery_changes.len()
        // If one of several did not get its slot, the others would have theirs.
        && runs_started.len() <= 1
        && attempts_started.iter().all(|attempt| written.contains(&attempt.delivery))
        && attempts_ended.iter().all(|end| end.number <= ATTEMPTS_KEPT + 1 && !begins(end))
        && runs_started.iter().all(|run| changed.contains(&run.turn) && u16::try_from(run.number).is_ok())
        && runs_ended.iter().all(|run| {
            changed.contains(&run.turn)
                && u16::try_from(run.number).is_ok()
                && !starts(run.turn, run.number)
                && run.agents.is_empty()
        })
        && transcript.iter().all(|line| line.claim != 0 || changed.contains(&line.turn))
}

/// Whether a turn may begin or cease to wait.
pub(super) fn may_settle(transition: &Transition) -> bool {
    !transition.runs_started.is_empty() || transition.turns.iter().any(|change| change.obligation.is_waiting())
}

/// What a transition writes: no two of a batch have one of these in common.
pub(super) fn keys(transition: &Transition) -> impl Iterator<Item = Uuid> {
    let Transition { turns, deliveries, empty_lane, delivery_changes, attempts_ended, transcript, .. } = transition;
    let made = deliveries.iter().map(NewDelivery::record);
    let turns = turns.iter().map(|change| change.turn).chain(made.clone().map(|made| made.turn));
    let turns = turns.chain(transcript.iter().map(|line| line.turn)).map(TurnId::as_uuid);
    let changed = delivery_changes.iter().map(|change| change.id).chain(attempts_ended.iter().map(|end| end.delivery));
    let lanes = made.map(|made| made.conversation_id).chain(empty_lane.iter().map(|(conversation, _)| *conversation));
    turns.chain(changed.map(DeliveryId::as_uuid)).chain(lanes.map(ConversationId::as_uuid))
}

/// The rows of the sections.
#[derive(Debug)]
pub(in crate::postgres) struct Form {
    /// Whether each transition of the batch is in these rows.
    pub(in crate::postgres) included: Vec<bool>,
    requests: Table,
    locks: Table,
    changes: Table,
    starts: Table,
    deliveries: Table,
    delivery_changes: Table,
    attempts: Table,
    attempt_ends: Table,
    run_ends: Table,
    used: Table,
    contents: Table,
    lines: Table,
    changed_sessions: Table,
    remarks: Table,
    log: Table,
    has_empty_lanes: bool,
    takes: bool,
    /// The last number of parts of a claim.
    family: i64,
}

impl Form {
    /// The rows of a batch. A transition that needs settings of runs of which it is not known that they are stored is left out.
    pub(in crate::postgres) fn of(requests: &[WriteRequest], settings: &mut KnownSettings) -> Self {
        let mut form = Self {
            included: Vec::with_capacity(requests.len()),
            requests: Table::new(REQUESTS),
            locks: Table::new(LOCKS),
            changes: Table::new(CHANGES),
            starts: Table::new(STARTS),
            deliveries: Table::new(DELIVERIES),
            delivery_changes: Table::new(DELIVERY_CHANGES),
            attempts: Table::new(ATTEMPTS),
            attempt_ends: Table::new(ATTEMPT_ENDS),
            run_ends: Table::new(RUN_ENDS),
            used: Table::new(USED),
            contents: Table::new(CONTENTS),
            lines: Table::new(LINES),
            changed_sessions: Table::new(CHANGED_SESSIONS),
            remarks: Table::new(REMARKS),
            log: Table::new(LOG),
            has_empty_lanes: false,
            takes: false,
            family: 0,
        };
        for (number, request) in requests.iter().enumerate() {
            let WriteRequest::Commit(transition) = request else {
                form.included.push(false);
                continue;
            };
            let known = known_settings(transition, settings);
            form.included.push(known.is_some());
            if let Some(known) = known {
                form.add(number, transition, &known);
            }
        }
        form
    }

    /// Whether no transition is in these rows.
    pub(in crate::postgres) const fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    fn add(&mut self, number: usize, transition: &Transition, settings: &[Option<KnownRow>]) {
        let holds = |run: &RunStart| {
            let begins = |change: &TurnChange| change.turn == run.turn && change.obligation.holds_slot();
            run.handler.agent().is_some() && transition.turns.iter().any(begins)
        };
        let takes = transition.runs_started.iter().any(holds);
        self.takes |= takes;
        let lease = transition.fence.as_ref().map(|(name, _)| name.to_string());
        let fence = transition.fence.as_ref().map(|(_, fence)| fence.0);
        let (conversation, address) = transition.empty_lane.as_ref().map(|(id, address)| (*id, address)).unzip();
        self.has_empty_lanes |= conversation.is_some();
        let (channel, chat) = (address.map(|at| &at.channel), address.map(|at| &*at.chat));
        self.requests.push(row![number, lease, fence, takes, conversation, channel, chat, address.map(thread)]);
        self.add_locks(transition);
        for change in &transition.turns {
            let is_ended = transition.runs_ended.iter().any(|end| end.turn == change.turn);
            self.add_change(number, change, is_ended);
        }
        for run in &transition.runs_started {
            let (agent, command) = handler(&run.handler);
            let (owner, takes) = (run.node.as_uuid(), holds(run));
            self.starts.push(row![number, run.turn, run.number, agent, command, owner, run.at, takes]);
        }
        self.add_deliveries(number, &transition.deliveries);
        for change in &transition.delivery_changes {
            self.add_delivery_change(number, change);
        }
        for AttemptStart { delivery, number: attempt, node, at } in &transition.attempts_started {
            self.attempts.push(row![number, delivery, attempt, node.as_uuid(), at]);
        }
        for AttemptEnd { delivery, number: attempt, at, result, detail } in &transition.attempts_ended {
            self.attempt_ends.push(row![number, delivery, attempt, at, result, detail]);
        }
        for (run, settings) in transition.runs_ended.iter().zip(settings) {
            self.add_run_end(number, run, *settings);
        }
        for line in &transition.transcript {
            self.add_line(number, line);
        }
        for (session, turn) in line_changes(transition) {
            self.changed_sessions.push(row![number, session, turn]);
        }
        for Remark { turn, at, kind, detail } in &transition.remarks {
            self.remarks.push(row![number, turn, at, kind, detail]);
        }
        for NewLogEntry { at, subject: Subject { turn_id, conversation_id, channel }, event } in &transition.log {
            self.log.push(row![number, at, &*event.topic(), turn_id, conversation_id, channel, json(event)]);
        }
    }

    /// As the row path: turns that are changed, and those of which rows are written; and the lanes.
    fn add_locks(&mut self, transition: &Transition) {
        let of_changes = transition.turns.iter().map(|change| change.turn);
        let of_lines = transition.transcript.iter().map(|line| line.turn);
        for turn in of_changes.chain(of_lines) {
            self.locks.push(row![turn, None::<Uuid>]);
        }
        for delivery in transition.deliveries.iter().map(NewDelivery::record) {
            self.locks.push(row![delivery.turn, delivery.conversation_id]);
        }
        if let Some((conversation, _)) = &transition.empty_lane {
            self.locks.push(row![None::<Uuid>, conversation]);
        }
    }

    /// `is_ended`: whether a run of the turn ends.
    fn add_change(&mut self, number: usize, change: &TurnChange, is_ended: bool) {
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
        self.changes.push(row![
            number,
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
            obligation.is_waiting(),
            obligation.holds_slot(),
            obligation.is_running() || is_ended,
        ]);
    }

    /// Deliveries, of which the parts of a claim follow each other.
    fn add_deliveries(&mut self, number: usize, deliveries: &[NewDelivery]) {
        let mut last: Option<&DeliveryRecord> = None;
        for record in deliveries.iter().map(NewDelivery::record) {
            let is_next_part = last.is_some_and(|of| {
                (of.turn, of.claim, of.is_copy) == (record.turn, record.claim, record.is_copy) && of.part < record.part
            });
            if !is_next_part {
                self.family += 1;
            }
            last = Some(record);
            self.deliveries.push(with_delivery!(row!(number, self.family), record));
        }
    }

    fn add_delivery_change(&mut self, number: usize, change: &DeliveryChange) {
        self.delivery_changes.push(with_delivery_change!(row!(number), change));
    }

    fn add_run_end(&mut self, number: usize, ended: &RunEnd, settings: Option<KnownRow>) {
        let RunEnd { turn, number: run, at, end, detail, usage, cost, used, agents: _, member, content } = ended;
        let (micros, currency) =
            (cost.as_ref().map(|cost| cost.micros), cost.as_ref().map(|cost| cost.currency.as_str()));
        let usage = usage.as_ref().map(json);
        self.run_ends.push(row![number, turn, run, at, end, detail, usage, micros, currency, member.as_deref()]);
        if *used != Used::default() {
            self.used.push(row![number, turn, used.tokens, used.estimated, used.micros]);
        }
        let Some(content) = content else { return };
        let input = content.input.as_ref();
        let messages = input.map(|input| compress(&input.messages));
        self.contents.push(row![
            number,
            turn,
            run,
            at,
            settings.map(|known| known.id),
            settings.map_or(i64::MAX, |known| known.used + SETTINGS_STEP),
            messages.as_deref().map(Bytes),
            input.map_or(0, |input| input.left_out),
            (!content.tools.is_empty()).then(|| json(&content.tools)),
            content.tools_left_out,
        ]);
    }

    fn add_line(&mut self, number: usize, new: &TranscriptLine) {
        self.lines.push(with_line!(row!(number), new));
    }

    /// The statement, as a transaction of its own: the `batch`th one of a lane.
    pub(in crate::postgres) fn alone(self, node: NodeId, lane: i64, batch: i64) -> Statement<'static> {
        let mut writer = Table::new(WRITER);
        writer.push(row![node.as_uuid(), lane, batch]);
        self.statement(Some(writer))
    }

    /// Without a row of a writer, turns may begin and cease to wait: the caller settles their lines in the same transaction.
    fn statement(self, writer: Option<Table>) -> Statement<'static> {
        let (has_changes, has_starts) = (!self.changes.is_empty(), !self.starts.is_empty());
        let (has_ends, has_contents) = (!self.run_ends.is_empty(), !self.contents.is_empty());
        let has_log = !self.log.is_empty();
        let mut composed = Composed::default();
        composed.add(self.requests);
        composed.add(self.locks);
        composed.add_some(self.changes);
        if self.has_empty_lanes {
            composed.add_section(EMPTY_LANES);
        }
        if has_changes && writer.is_some() {
            composed.add_section(UNSETTLED);
        }
        composed.add_some(self.starts);
        composed.add_some(self.run_ends);
        composed.add_some(self.contents);
        composed.add_section(GUARDS);
        composed.add_section(if self.takes { SLOTS_TAKEN } else { NO_SLOTS_TAKEN });
        if has_changes {
            composed.add_section(CHANGED);
        }
        if has_starts {
            composed.add_section(STARTED);
        }
        composed.add_some(self.deliveries);
        composed.add_some(self.delivery_changes);
        composed.add_some(self.attempts);
        composed.add_some(self.attempt_ends);
        if has_ends {
            composed.add_section(ENDED);
        }
        composed.add_some(self.used);
        if has_contents {
            composed.add_section(KEPT);
        }
        composed.add_some(self.lines);
        composed.add_some(self.changed_sessions);
        composed.add_some(self.remarks);
        composed.add_some(self.log);
        let logged = if has_log { "(select max(seq) from logged)" } else { "null::bigint" };
        let (touched, touching, order) = if has_changes && writer.is_none() {
            ("c.conversation_id as conversation, c.place as had", TOUCHING, "order by r.req, c.ord")
        } else {
            ("null::uuid as conversation, null::bigint as had", "", "")
        };
        if let Some(writer) = writer {
            composed.add(writer);
        }
        let select = format!(
            "
select r.req, r.code::bigint as code, {logged} as logged, {touched} from result as r{touching}
where true{}
{order}",
            composed.checks()
        );
        composed.statement(&select)
    }
}

/// The settings of each ended run, in order; `None` if some are not known to be stored.
fn known_settings(transition: &Transition, settings: &mut KnownSettings) -> Option<Vec<Option<KnownRow>>> {
    let mut known = Vec::with_capacity(transition.runs_ended.len());
    for run in &transition.runs_ended {
        let input = run.content.as_ref().and_then(|content| content.input.as_ref());
        known.push(match input {
            Some(input) => Some(settings.get(&input.settings)?),
            None => None,
        });
    }
    Some(known)
}

/// A row that the statement returns: what became of a transition.
#[derive(Debug)]
pub(in crate::postgres) struct Applied {
    number: u16,
    code: i64,
    /// The place of the last entry that the statement added to the log.
    pub(in crate::postgres) logged: Option<LogSeq>,
    /// A conversation in which a turn began or ceased to wait, and the place of that turn.
    touched: Option<(Uuid, Option<i64>)>,
}

impl Applied {
    pub(in crate::postgres) fn read(row: &PgRow) -> Result<Self, StoreError> {
        let (conversation, had) = (row.value::<Option<Uuid>>("conversation")?, row.value("had")?);
        let touched = conversation.map(|conversation| (conversation, had));
        Ok(Self { number: row.value("req")?, code: row.value("code")?, logged: row.value("logged")?, touched })
    }

    /// What became of a batch of this size.
    pub(in crate::postgres) fn outcomes(all: &[Self], size: usize) -> Vec<Outcome> {
        let mut outcomes: Vec<Outcome> = (0..size).map(|_| Outcome::Alone).collect();
        for Self { number, code, .. } in all {
            let commit = match code {
                0 => Commit::Done,
                1 => Commit::Conflict,
                2 => Commit::NotOwner,
                _ => continue,
            };
            if let Some(outcome) = outcomes.get_mut(usize::from(*number)) {
                *outcome = Outcome::Done(WriteResult::Committed(commit));
            }
        }
        outcomes
    }
}

/// Applies a batch in which turns may begin and cease to wait.
pub(super) async fn write(
    transaction: &mut Transaction<'_>,
    requests: &[WriteRequest],
) -> Result<Vec<Outcome>, StoreError> {
    let form = Form::of(requests, transaction.settings);
    if form.is_empty() {
        return Ok(Applied::outcomes(&[], requests.len()));
    }
    let all = rows::all(transaction, form.statement(None), Applied::read).await?;
    transaction.logged = all.first().and_then(|applied| applied.logged);
    let touched: Vec<(Uuid, Option<i64>)> = all.iter().filter_map(|applied| applied.touched).collect();
    if !touched.is_empty() {
        let conversations = List(touched.iter().map(|(conversation, _)| *conversation).collect::<Vec<_>>());
        let unsettled = statement!(SELECT_UNSETTLED, conversations);
        let unsettled = rows::all(transaction, unsettled, |row| row.value::<Uuid>("id")).await?;
        for (conversation, had) in touched.into_iter().filter(|(conversation, _)| unsettled.contains(conversation)) {
            lines::settle(transaction, conversation, had).await?;
        }
    }
    Ok(Applied::outcomes(&all, requests.len()))
}

/// Those of these conversations whose first waiting turn has no place.
const SELECT_UNSETTLED: &str = "
    select w.id
    from (select distinct id from unnest($1::uuid[]) as x (id)) as w cross join lateral (
        select t.place from turns as t where t.work = 'waiting' and t.conversation_id = w.id order by t.rank limit 1) as f
    where f.place is null";

/// Where turns began or ceased to wait, in the order of the changes.
const TOUCHING: &str = "
    left join changes as c on c.req = r.req and r.code = 0 and c.waits <> (c.place is not null)";
