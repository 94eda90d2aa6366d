//! Schedules: begins messages and turns at their times.
//!
//! Each time of a schedule has a key, so what it begins is begun once, also if the process dies before it is noted that this
//! was done.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rejoinder_guard::{ObligationState, Settlement, Timestamp, Via};
use tokio::sync::Notify;
use tracing::warn;

use super::Initiative;
use crate::{
    explain::text::rfc3339,
    lifecycle::Lifecycle,
    model::{
        ids::{ScheduleId, TurnId},
        log::{LogEvent, NewLogEntry, Subject},
        schedule::{
            NewSchedule, Schedule, ScheduleChange, ScheduleOrigin, ScheduleRun, ScheduleState, ScheduledAction,
        },
        settings::LiveSettings,
        target::Begun,
    },
    operations::{Actor, OperationError, operation},
    pauses,
    ports::{
        clock::SharedClock,
        store::{
            Store, StoreError,
            transition::{IdempotentAnswer, Transition},
        },
    },
};

/// The name under which the configuration's schedules are made.
const CONFIGURATION: &str = "configuration";

/// Who sends what a schedule says, and tells the agent what it prompts.
const SENDER: &str = "schedule";

/// Begins what is scheduled.
pub(crate) struct Schedules {
    store: Arc<dyn Store>,
    initiative: Arc<Initiative>,
    settings: LiveSettings,
    clock: SharedClock,
    lifecycle: Lifecycle,
    known: Mutex<BTreeMap<ScheduleId, Schedule>>,
    changed: Notify,
    /// Held from the read to the write.
    deciding: tokio::sync::Mutex<()>,
}

impl Schedules {
    /// Reads the schedules, and makes those of the configuration.
    pub(crate) async fn load(
        initiative: Arc<Initiative>,
        settings: LiveSettings,
        lifecycle: Lifecycle,
    ) -> Result<Self, StoreError> {
        let (store, clock) = (Arc::clone(&initiative.store), Arc::clone(&initiative.clock));
        let (stored, now) = (store.schedules().await?, clock.now());
        let mut known: BTreeMap<_, _> = stored.into_iter().map(|it| (it.id, it.not_ahead_of(now))).collect();
        let schedules = planted(&settings.get().schedules.seeds, &mut known, now);
        if !schedules.is_empty() {
            store.commit(Transition { schedules, ..Transition::default() }).await?;
        }
        let (known, changed, deciding) = (Mutex::new(known), Notify::new(), tokio::sync::Mutex::default());
        Ok(Self { store, initiative, settings, clock, lifecycle, known, changed, deciding })
    }

    /// Acts on every time of every schedule, until the gateway stops.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            if let Err(error) = self.act_on_due().await {
                warn!(%error, "a schedule's time has come, and nothing can be begun yet, retrying");
                if !self.lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await {
                    return;
                }
                continue;
            }
            let next =
                self.known().values().filter(|it| it.state == ScheduleState::Active).filter_map(|it| it.next_at).min();
            let due = async {
                match next {
                    Some(at) => self.clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                () = self.changed.notified() => {}
                () = self.lifecycle.stopping.cancelled() => return,
            }
        }
    }

    /// All schedules, in the order of their names.
    pub(crate) fn all(&self) -> Vec<Schedule> {
        let mut all: Vec<_> = self.known().values().cloned().collect();
        all.sort_by(|one, other| one.new.name.cmp(&other.new.name));
        all
    }

    /// Makes a schedule, and stores the answer to the request that `answer` makes of it.
    pub(crate) async fn add(
        &self,
        new: NewSchedule,
        by: &Actor,
        answer: impl FnOnce(&Schedule) -> Option<IdempotentAnswer> + Send,
    ) -> Result<Schedule, OperationError> {
        let _deciding = self.deciding.lock().await;
        let now = self.clock.now();
        let next_at = new.check(now).map_err(|why| OperationError::Unfit(why.to_string()))?;
        if self.known().values().any(|other| other.new.name == new.name) {
            return Err(OperationError::Unfit(format!(
                "there is a schedule `{}`: remove it, or choose another name",
                new.name
            )));
        }
        if by.channels.is_some() && new.to.channel().is_none() {
            let why =
                "a token for certain channels makes schedules for conversations: people may be reached on any channel";
            return Err(OperationError::Unfit(why.to_owned()));
        }
        self.initiative.check_target(&new.to, |channel| by.may(channel)).await?;
        if let ScheduledAction::Prompt { agent: Some(agent), .. } = &new.action
            && !self.initiative.agents.contains(agent)
        {
            return Err(OperationError::Unfit(format!("there is no agent `{agent}`")));
        }
        let schedule = Schedule {
            id: ScheduleId::new(now),
            new,
            origin: ScheduleOrigin::Operator,
            by: by.name.clone(),
            created_at: now,
            state: ScheduleState::Active,
            why: None,
            next_at: Some(next_at),
            failures: 0,
        };
        let by = Actor { answer: answer(&schedule), ..by.clone() };
        self.store_by(schedule.clone(), "schedule", &by).await?;
        Ok(schedule)
    }

    /// Removes a schedule, with its history. What it has begun goes on.
    pub(crate) async fn remove(&self, name: &str, by: &Actor) -> Result<(), OperationError> {
        let _deciding = self.deciding.lock().await;
        let schedule = self.find(name, by)?;
        if schedule.origin == ScheduleOrigin::Configuration {
            let why = "it is in the configuration, and would come back at the next start: remove it there, or pause it";
            return Err(OperationError::Unfit(why.to_owned()));
        }
        let operation = operation(by, "unschedule", &schedule.new.name, Subject::default(), self.clock.now());
        let schedules = vec![ScheduleChange::Removed(schedule.id)];
        self.store.commit(Transition { schedules, operation: Some(operation), ..Transition::default() }).await?;
        self.known().remove(&schedule.id);
        self.changed.notify_one();
        Ok(())
    }

    /// Pauses a schedule, or resumes it: times that have passed are not made up for.
    pub(crate) async fn pause(&self, name: &str, pauses: bool, by: &Actor) -> Result<Schedule, OperationError> {
        let _deciding = self.deciding.lock().await;
        let (mut schedule, now) = (self.find(name, by)?, self.clock.now());
        match (schedule.state, pauses) {
            (ScheduleState::Active, true) => {
                schedule = Schedule { state: ScheduleState::Paused, why: by.reason.clone(), failures: 0, ..schedule };
            }
            (ScheduleState::Paused, false) => {
                let next_at = schedule.next_after(now).map_err(|wrong| OperationError::Unfit(wrong.to_string()))?;
                let state = if next_at.is_some() { ScheduleState::Active } else { ScheduleState::Done };
                schedule = Schedule { state, why: None, next_at, failures: 0, ..schedule };
            }
            (state, _) => return Err(OperationError::Unfit(format!("the schedule is {}", state.as_str()))),
        }
        self.store_by(schedule.clone(), if pauses { "pause_schedule" } else { "resume_schedule" }, by).await?;
        Ok(schedule)
    }

    /// Begins what a schedule begins, now and beside its times. `key` is the same for a request that is repeated.
    pub(crate) async fn run_now(
        &self,
        name: &str,
        key: &str,
        by: &Actor,
        answer: impl FnOnce(&[Begun]) -> Option<IdempotentAnswer> + Send,
    ) -> Result<Vec<Begun>, OperationError> {
        let _deciding = self.deciding.lock().await;
        let (schedule, now) = (self.find(name, by)?, self.clock.now());
        let begun = self.begin(&schedule, &format!("{SENDER}:{}:{}:{key}", schedule.id, by.name)).await?;
        let turns = begun.iter().map(|one| one.turn).collect();
        let run = ScheduleRun { schedule: schedule.id, due: now, at: now, turns, problem: None };
        let by = Actor { answer: answer(&begun), ..by.clone() };
        let operation = operation(&by, "run_schedule", &schedule.new.name, Subject::default(), now);
        let schedules = vec![ScheduleChange::Ran(run)];
        self.store.commit(Transition { schedules, operation: Some(operation), ..Transition::default() }).await?;
        Ok(begun)
    }

    /// The schedule with this name or id, if it is for channels that the operator may see.
    pub(crate) fn find(&self, name: &str, by: &Actor) -> Result<Schedule, OperationError> {
        let known = self.known();
        let mut meant = known.values().filter(|it| it.new.name == name || it.id.to_string() == name);
        let schedule = meant.next().filter(|it| it.is_seen_by(by.channels.as_deref()));
        schedule.cloned().ok_or(OperationError::Unknown("there is no schedule with this name"))
    }

    /// Acts on the times that have come.
    async fn act_on_due(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let is_due = |it: &Schedule| it.state == ScheduleState::Active && it.next_at.is_some_and(|at| at <= now);
        let due: Vec<_> = self.known().values().filter(|it| is_due(it)).map(|it| it.id).collect();
        let mut failed = None;
        for id in due {
            let _deciding = self.deciding.lock().await;
            // It may have been removed or paused meanwhile.
            let schedule = self.known().get(&id).filter(|it| is_due(it)).cloned();
            if let Some(schedule) = schedule
                && let Err(error) = self.act_on(schedule, now).await
            {
                // The others do not wait for it.
                failed = Some(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Acts on the times of a schedule that have come.
    async fn act_on(&self, mut schedule: Schedule, now: Timestamp) -> Result<(), StoreError> {
        let subject = || schedule.new.to.channel().map(Subject::channel).unwrap_or_default();
        let entry = |event| NewLogEntry { at: now, subject: subject(), event };
        let name = || schedule.new.name.clone();
        let (mut changes, mut log) = (Vec::new(), Vec::new());
        let most = self.settings.get().schedules.max_failures;
        let (due, mut passed) = schedule.due(now);
        let is_passed_over = schedule.next_at.is_some_and(|first| !due.contains(&first));
        // Each run is counted once: when the next one is added.
        let unknown = (schedule.failures, String::new());
        let (mut failures, mut why) = if due.is_empty() { unknown } else { self.failures(&schedule).await? };
        for at in due {
            if failures >= most {
                break;
            }
            let (turns, problem) = match self.begin(&schedule, &key(&schedule, at)).await {
                Ok(begun) => (begun.iter().map(|one| one.turn).collect(), None),
                Err(OperationError::Store(error)) => return Err(error),
                Err(error) => {
                    failures += 1;
                    why = error.to_string();
                    (Vec::new(), Some(why.clone()))
                }
            };
            log.push(entry(LogEvent::ScheduleRan { schedule: name(), due: rfc3339(at), problem: problem.clone() }));
            changes.push(ScheduleChange::Ran(ScheduleRun { schedule: schedule.id, due: at, at: now, turns, problem }));
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
        changes.push(ScheduleChange::Set(Box::new(schedule.clone())));
        self.store.commit(Transition { schedules: changes, log, ..Transition::default() }).await?;
        self.known().insert(schedule.id, schedule);
        Ok(())
    }

    /// What the first time that is passed over began already, if it did.
    async fn begun_before(&self, schedule: &Schedule, now: Timestamp) -> Result<Option<ScheduleRun>, StoreError> {
        let Some(due) = schedule.next_at else { return Ok(None) };
        let begun = self.initiative.find(&schedule.new, &key(schedule, due)).await?;
        let turns: Vec<_> = begun.into_iter().map(|one| one.turn).collect();
        let run = ScheduleRun { schedule: schedule.id, due, at: now, turns, problem: None };
        Ok(Some(run).filter(|run| !run.turns.is_empty()))
    }

    async fn begin(&self, schedule: &Schedule, key: &str) -> Result<Vec<Begun>, OperationError> {
        self.initiative.begin_scheduled(&schedule.new, key).await
    }

    /// How many of the latest runs failed one after the other, and why the last one did.
    async fn failures(&self, schedule: &Schedule) -> Result<(u32, String), StoreError> {
        let Some(last) = self.store.schedule_runs(schedule.id, 1).await?.pop() else { return Ok((0, String::new())) };
        if let Some(problem) = last.problem {
            return Ok((schedule.failures, problem));
        }
        let mut failed = None;
        for turn in &last.turns {
            match self.failure(*turn).await? {
                Some(Some(why)) => failed = Some(why),
                // What one of several people does costs no other.
                Some(None) => return Ok((0, String::new())),
                None => {}
            }
        }
        Ok(failed.map_or((schedule.failures, String::new()), |why| (schedule.failures + 1, why)))
    }

    /// Why a turn failed, if it did; `None` if it has not ended.
    async fn failure(&self, turn: TurnId) -> Result<Option<Option<String>>, StoreError> {
        let turn = match self.store.turn(turn).await {
            Ok(turn) => turn,
            Err(StoreError::CorruptTurn { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(turn.map_or(Some(None), |turn| match turn.obligation.state() {
            ObligationState::Undeliverable { reason } => Some(Some(reason.clone())),
            ObligationState::Settled(Settlement::Signal { via: Via::Fallback { .. }, .. }) => {
                let why = turn.obligation.fallback().map_or("the ladder answered", |(_, why)| why);
                Some(Some(why.to_owned()))
            }
            ObligationState::Settled(_) => Some(None),
            _ => None,
        }))
    }

    /// Stores a schedule that an operator has made or changed.
    async fn store_by(&self, schedule: Schedule, action: &str, by: &Actor) -> Result<(), OperationError> {
        let operation = operation(by, action, &schedule.new.name, Subject::default(), self.clock.now());
        let schedules = vec![ScheduleChange::Set(Box::new(schedule.clone()))];
        self.store.commit(Transition { schedules, operation: Some(operation), ..Transition::default() }).await?;
        self.known().insert(schedule.id, schedule);
        self.changed.notify_one();
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<ScheduleId, Schedule>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of a time of a schedule.
fn key(schedule: &Schedule, due: Timestamp) -> String {
    format!("{SENDER}:{}:{}", schedule.id, due.as_millis())
}

/// Makes the configuration's schedules, and removes those that are not in it any more. One that is the same keeps its times.
fn planted(seeds: &[NewSchedule], known: &mut BTreeMap<ScheduleId, Schedule>, now: Timestamp) -> Vec<ScheduleChange> {
    let mut changes = Vec::new();
    let is_gone = |it: &Schedule| {
        let is_named = seeds.iter().any(|seed| seed.name == it.new.name);
        // Another one with that name gives way: names are the configuration's.
        if it.origin == ScheduleOrigin::Configuration { !seeds.contains(&it.new) } else { is_named }
    };
    known.retain(|id, schedule| {
        let is_gone = is_gone(schedule);
        changes.extend(is_gone.then_some(ScheduleChange::Removed(*id)));
        !is_gone
    });
    for seed in seeds.iter().filter(|seed| !known.values().any(|it| it.new == **seed)).cloned().collect::<Vec<_>>() {
        // One whose only time has passed is done.
        let next_at = seed.check(now).ok();
        let schedule = Schedule {
            id: ScheduleId::new(now),
            new: seed,
            origin: ScheduleOrigin::Configuration,
            by: CONFIGURATION.to_owned(),
            created_at: now,
            state: if next_at.is_some() { ScheduleState::Active } else { ScheduleState::Done },
            why: None,
            next_at,
            failures: 0,
        };
        changes.push(ScheduleChange::Set(Box::new(schedule.clone())));
        known.insert(schedule.id, schedule);
    }
    changes
}
