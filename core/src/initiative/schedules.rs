//! Schedules: begins messages and turns at their times.
//!
//! Each time of a schedule has a key, so what it begins is begun once, also if the process dies before it is noted that this
//! was done.

use std::{collections::HashSet, sync::Arc};

use rejoinder_guard::{ObligationState, Settlement, Timestamp, Via};
use tracing::warn;

use super::Initiative;
use crate::{
    base::{conflicts::decide_anew, lifecycle::Lifecycle, pauses, words::rfc3339},
    model::{
        AgentName, LiveSettings, LogEvent, NewLogEntry, NewSchedule, NotReached, Reached, Schedule, ScheduleChange,
        ScheduleId, ScheduleRun, ScheduleState, ScheduledAction, Subject, TurnId, When,
    },
    nodes::leases::{Hold, Leases},
    operator::{
        actor::{Actor, Done, operation_done},
        error::OperationError,
    },
    ports::{Seen, StoreError, Transition, TransitionOf},
    schedules::Calendar,
};

/// The name of the sender of a schedule's messages and prompts.
const SENDER: &str = "schedule";

/// How many unfinished runs are passed over to find out whether earlier ones failed. A delivery may be tried for a day,
/// and an hourly schedule has 24 runs in a day.
const PASSED_OVER: u32 = 30;

/// Begins the turns of schedules.
pub struct Schedules {
    pub(crate) calendar: Arc<Calendar>,
    pub(crate) initiative: Arc<Initiative>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) agents: HashSet<AgentName>,
    pub(crate) settings: LiveSettings,
}

impl Schedules {
    /// Acts on every time of every schedule, until it is stopped.
    pub(crate) async fn run(self: Arc<Self>, lifecycle: Lifecycle) {
        loop {
            if let Err(error) = self.act_on_due().await {
                if !error.is_move() {
                    warn!(%error, "a schedule's time has come, and nothing can be begun yet, retrying");
                }
                if !lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await {
                    return;
                }
                continue;
            }
            tokio::select! {
                () = self.calendar.clock.sleep_until_next(self.calendar.next()) => {}
                () = self.calendar.changed() => {}
                () = lifecycle.stopping.cancelled() => return,
            }
        }
    }

    /// Makes a schedule.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn add(&self, new: NewSchedule, by: &Actor) -> Result<Schedule, OperationError> {
        if by.channels.is_some() && new.to.channel().is_none() {
            let why =
                "a token for certain channels makes schedules for conversations: people may be reached on any channel";
            return Err(OperationError::Unfit(why.to_owned()));
        }
        self.initiative.recipients.check(&new.to, |channel| by.may(channel)).await?;
        if let ScheduledAction::Prompt { agent, words, .. } = &new.action {
            if let Some(agent) = agent.as_ref().filter(|agent| !self.agents.contains(*agent)) {
                return Err(OperationError::Unfit(format!("there is no agent `{agent}`")));
            }
            self.initiative.recipients.check_words(&words.to, |channel| by.may(channel)).await?;
        }
        self.calendar.add(new, by).await
    }

    /// Runs a schedule now, beside its times. A repeated request has the same `key`.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn run_now(&self, name: &str, key: &str, by: &Actor) -> Result<Reached, OperationError> {
        let (schedule, now) = (self.calendar.find(name, by)?, self.calendar.clock.now());
        let key = format!("run:{}:{}", schedule.id, by.key(key));
        let (id, target, by) = (schedule.id, schedule.recorded_name(), by.clone());
        let follows = TransitionOf::new(move |reached: &Reached| {
            let (turns, not_reached) = of_run(reached);
            let run = ScheduleRun { schedule: id, due: now, at: now, turns, problem: None, not_reached };
            let subject = Subject::default();
            let operation = operation_done(&by, "run_schedule", &target, subject, now, Done::Begun(reached));
            let schedules = vec![ScheduleChange::Ran(run)];
            Transition { schedules, operation: Some(operation), ..Transition::default() }
        });
        self.initiative.begin_scheduled(&schedule, &key, None, Some(follows)).await
    }

    /// Acts on the times that have come.
    async fn act_on_due(&self) -> Result<(), StoreError> {
        let hold = self.leases.housekeeping()?;
        // They may have been another node's to act on until now.
        self.calendar.refresh().await?;
        let now = self.calendar.clock.now();
        let mut failed = None;
        for id in self.calendar.due(now) {
            if let Err(error) = self.act_on_one(id, now, &hold).await {
                // The others do not wait for it.
                failed = Some(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn act_on_one(&self, id: ScheduleId, now: Timestamp, hold: &Hold) -> Result<(), StoreError> {
        decide_anew!({
            self.calendar.refresh().await?;
            let seen = self.calendar.seen();
            match self.calendar.still_due(id, now) {
                Some(schedule) => self.act_on(schedule, seen, now, hold).await?.then_some(()),
                // It has been removed or paused meanwhile.
                None => Some(()),
            }
        })
    }

    /// Acts on the times of a schedule that have come; `false` if a schedule was changed since `seen`.
    async fn act_on(
        &self,
        mut schedule: Schedule,
        seen: Seen,
        now: Timestamp,
        hold: &Hold,
    ) -> Result<bool, StoreError> {
        let subject = || schedule.new.to.channel().map(Subject::channel).unwrap_or_default();
        let entry = |event| NewLogEntry { at: now, subject: subject(), event };
        let name = || schedule.recorded_name();
        let (mut changes, mut log) = (Vec::new(), Vec::new());
        let most = self.settings.get().schedules.max_failures;
        let (due, mut passed) = schedule.due(now);
        let is_passed_over = schedule.next_at.is_some_and(|first| !due.contains(&first));
        // It has one time, and no others to fail before it.
        let is_only = matches!(schedule.new.when, When::At(_));
        let (mut failures, mut why) = if is_only { (0, String::new()) } else { self.failures(&schedule, most).await? };
        for at in due {
            if failures >= most {
                break;
            }
            let ((turns, not_reached), problem) =
                match self.initiative.begin_scheduled(&schedule, &key(&schedule, at), hold.fence(), None).await {
                    Ok(reached) => (of_run(&reached), None),
                    Err(OperationError::Store(error)) => return Err(error),
                    Err(error) => {
                        failures += 1;
                        why = error.to_string();
                        (Default::default(), Some(why.clone()))
                    }
                };
            let run = ScheduleRun { schedule: schedule.id, due: at, at: now, turns, problem, not_reached };
            let (problem, not_reached) = (run.problem.clone(), run.not_reached.clone());
            log.push(entry(LogEvent::ScheduleRan { schedule: name(), due: rfc3339(at), problem, not_reached }));
            changes.push(ScheduleChange::Ran(run));
        }
        if is_passed_over && let Some(begun) = self.begun_before(&schedule, now).await? {
            // The process died before this was noted.
            passed = passed.saturating_sub(1);
            changes.push(ScheduleChange::Ran(begun));
        }
        if passed > 0 {
            log.push(entry(LogEvent::ScheduleMissed { schedule: name(), times: passed }));
        }
        let (state, next_at, why) = match schedule.next_after(now) {
            // Nobody would learn that its only time came to nothing.
            Ok(None) if failures > 0 => (ScheduleState::Paused, None, Some(why)),
            Ok(None) => (ScheduleState::Done, None, None),
            Ok(next_at) if failures >= most => {
                (ScheduleState::Paused, next_at, Some(format!("it failed {failures} times in a row: {why}")))
            }
            Ok(next_at) => (ScheduleState::Active, next_at, None),
            Err(wrong) => (ScheduleState::Paused, None, Some(wrong.to_string())),
        };
        if let Some(why) = &why {
            log.push(entry(LogEvent::SchedulePaused { schedule: name(), why: why.clone() }));
            warn!(schedule = name(), why, "a schedule is paused");
        }
        schedule = Schedule { state, why, next_at, failures, ..schedule };
        changes.push(ScheduleChange::Set(Box::new(schedule)));
        let fence = hold.fence();
        let transition = Transition { schedules: changes, log, fence: fence.clone(), ..Transition::default() };
        self.leases.checked(fence.as_ref(), self.calendar.change(seen, transition).await)
    }

    /// The result of the first time that is passed over, if it began already.
    async fn begun_before(&self, schedule: &Schedule, now: Timestamp) -> Result<Option<ScheduleRun>, StoreError> {
        let Some(due) = schedule.next_at else { return Ok(None) };
        let begun = self.initiative.find(&schedule.new, &key(schedule, due)).await?;
        let turns: Vec<_> = begun.into_iter().map(|one| one.turn).collect();
        let run = ScheduleRun { schedule: schedule.id, due, at: now, turns, problem: None, not_reached: Vec::new() };
        Ok(Some(run).filter(|run| !run.turns.is_empty()))
    }

    /// How many of the latest runs failed one after the other, at most `most`, and why the last one did. Unfinished
    /// runs are passed over.
    async fn failures(&self, schedule: &Schedule, most: u32) -> Result<(u32, String), StoreError> {
        let (mut failures, mut why) = (0, String::new());
        let mut runs =
            self.calendar.store.schedule_runs(schedule.id, most.saturating_add(PASSED_OVER)).await?.into_iter();
        while failures < most
            && let Some(run) = runs.next().filter(|run| schedule.counted_from.is_none_or(|from| run.at > from))
        {
            match self.became_of(&run).await? {
                Some(Ok(())) => break,
                Some(Err(reason)) => {
                    failures += 1;
                    why = if failures == 1 { reason } else { why };
                }
                None => {}
            }
        }
        Ok((failures, why))
    }

    /// Whether a run succeeded, or why it failed; `None` if it has not ended.
    async fn became_of(&self, run: &ScheduleRun) -> Result<Option<Result<(), String>>, StoreError> {
        if let Some(problem) = run.problem.as_ref().filter(|_| run.turns.is_empty()) {
            return Ok(Some(Err(problem.clone())));
        }
        let mut failed = None;
        for turn in &run.turns {
            match self.became_of_turn(*turn).await? {
                // What one of several people does costs no other.
                Some(Ok(())) => return Ok(Some(Ok(()))),
                Some(why) => failed = Some(why),
                None => {}
            }
        }
        Ok(failed)
    }

    /// As [`became_of`](Self::became_of), of a turn.
    async fn became_of_turn(&self, id: TurnId) -> Result<Option<Result<(), String>>, StoreError> {
        let Some(turn) = self.calendar.store.readable_turn(id).await? else { return Ok(Some(Ok(()))) };
        Ok(match turn.obligation.state() {
            ObligationState::Undeliverable { reason } => Some(Err(reason.clone())),
            ObligationState::Settled(Settlement::Signal { via: Via::Fallback { .. }, .. }) => {
                let why = turn.obligation.fallback().map_or("the ladder answered", |(_, why)| why);
                Some(Err(why.to_owned()))
            }
            // What owes nothing is silent whether its agent failed or had nothing to say.
            ObligationState::Settled(Settlement::Silence { .. }) => {
                let Some(last) = self.calendar.store.runs(id).await?.pop() else { return Ok(Some(Ok(()))) };
                match last.end.as_deref() {
                    None => None,
                    Some("reply" | "reaction" | "silent") => Some(Ok(())),
                    Some(end) => Some(Err(last.detail.unwrap_or_else(|| format!("the agent's run has {end}")))),
                }
            }
            ObligationState::Settled(_) => Some(Ok(())),
            _ => None,
        })
    }
}

/// The record of a run: its turns, and the recipients that were not reached.
fn of_run(reached: &Reached) -> (Vec<TurnId>, Vec<NotReached>) {
    (reached.begun.iter().map(|one| one.turn).collect(), reached.missed.clone())
}

/// The key of a time of a schedule.
fn key(schedule: &Schedule, due: Timestamp) -> String {
    format!("{SENDER}:{}:{}", schedule.id, due.as_millis())
}
