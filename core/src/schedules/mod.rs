//! What is scheduled: the schedules of operators, of the configuration and of agents, as they are stored. Nothing here
//! starts a scheduled turn.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rejoinder_guard::Timestamp;
use tokio::sync::Notify;

use crate::{
    base::conflicts::decide_anew,
    model::{
        Asker, ChannelId, Identity, NewSchedule, Schedule, ScheduleChange, ScheduleId, ScheduleLimits, ScheduleOrigin,
        ScheduleRun, ScheduleState, Subject, Target, TurnRecord, Version, When,
    },
    nodes::hints::Hints,
    operator::{
        actor::{Actor, Done, operation, operation_done},
        error::OperationError,
    },
    ports::{Hint, Noun, Operation, ScheduleStore, Seen, SharedClock, StoreError, Transition},
};

/// The name under which the configuration's schedules are made.
const CONFIGURATION: &str = "configuration";

/// How many of the latest runs of a schedule are shown.
const SHOWN_RUNS: u32 = 100;

const HOUR: Duration = Duration::from_hours(1);

/// How many schedules there are at most, and how many bytes of text they have together: all are in memory.
const MOST: usize = 5000;
const MOST_BYTES: usize = 8 << 20;

/// The schedules.
pub struct Calendar {
    pub(crate) store: Arc<dyn ScheduleStore>,
    pub(crate) clock: SharedClock,
    hints: Arc<Hints>,
    snapshot: Mutex<Snapshot>,
    changed: Notify,
}

/// The schedules, as they were read from the store at this version.
struct Snapshot {
    version: Version,
    schedules: BTreeMap<ScheduleId, Schedule>,
}

impl Calendar {
    /// Reads the schedules.
    pub(crate) async fn load(
        store: Arc<dyn ScheduleStore>,
        clock: SharedClock,
        hints: Arc<Hints>,
    ) -> Result<Self, StoreError> {
        let snapshot = Mutex::new(read(&*store, clock.now()).await?);
        Ok(Self { store, clock, hints, snapshot, changed: Notify::new() })
    }

    /// The version that this is decided on, and the changes that make the schedules of a configuration and remove those that it no longer
    /// has. Also returns the names of the schedules of operators and agents that give way.
    pub(crate) fn to_plant(&self, seeds: &[NewSchedule]) -> (Seen, Vec<ScheduleChange>, Vec<String>) {
        let seen = self.seen();
        let mut schedules = self.snapshot().schedules.clone();
        let (changes, replaced) = planted(seeds, &mut schedules, self.clock.now());
        (seen, changes, replaced)
    }

    pub(crate) fn all(&self) -> Vec<Schedule> {
        let mut all: Vec<_> = self.snapshot().schedules.values().cloned().collect();
        all.sort_by(|one, other| one.new.name.cmp(&other.new.name));
        all
    }

    /// Makes a schedule. One with the same name that is over gives way.
    pub(crate) async fn add(&self, new: NewSchedule, by: &Actor) -> Result<Schedule, OperationError> {
        Ok(decide_anew!({
            let seen = self.seen();
            self.try_to_add(seen, new.clone(), by).await?
        })?)
    }

    /// `None` if another schedule was changed since `seen`.
    async fn try_to_add(&self, seen: Seen, new: NewSchedule, by: &Actor) -> Result<Option<Schedule>, OperationError> {
        let namesake = self.snapshot().schedules.values().find(|it| it.new.name == new.name).cloned();
        let gives_way = |it: &Schedule| it.is_over() && !is_configured(it) && it.is_seen_by(by.channels.as_deref());
        if namesake.as_ref().is_some_and(|it| !gives_way(it)) {
            return Err(OperationError::Unfit(format!(
                "there is a schedule `{}`: remove it, or choose another name",
                new.name
            )));
        }
        let schedule = self.made(new, by)?;
        let removed: Vec<_> = namesake.iter().map(|it| it.id).collect();
        let is_stored = self.store_by(seen, schedule.clone(), &removed, "schedule", by).await?;
        Ok(is_stored.then_some(schedule))
    }

    /// A schedule that somebody makes, before it is stored.
    fn made(&self, new: NewSchedule, by: &Actor) -> Result<Schedule, OperationError> {
        let now = self.clock.now();
        let next_at = new.check(now).map_err(|why| OperationError::Unfit(why.to_string()))?;
        check_room(self.snapshot().schedules.values(), &new).map_err(OperationError::Unfit)?;
        Ok(Schedule::new(new, ScheduleOrigin::Operator, by.name.clone(), Some(next_at), now))
    }

    /// Makes the schedule of an agent, once in a turn. Those of agents in the same conversation that are done are removed.
    pub(crate) async fn add_of_agent(
        &self,
        new: NewSchedule,
        run: (&TurnRecord, Timestamp),
        limits: ScheduleLimits,
        by: &Actor,
    ) -> Result<Schedule, OperationError> {
        Ok(decide_anew!({
            let seen = self.seen();
            self.try_to_add_of_agent(seen, new.clone(), run, limits, by).await?
        })?)
    }

    /// `None` if another schedule was changed since `seen`.
    async fn try_to_add_of_agent(
        &self,
        seen: Seen,
        new: NewSchedule,
        (turn, run_began): (&TurnRecord, Timestamp),
        limits: ScheduleLimits,
        by: &Actor,
    ) -> Result<Option<Schedule>, OperationError> {
        let own = self.of_agents(&new.to);
        // An earlier run of the turn made it, perhaps for a time that was counted from its own beginning.
        let is_same = |it: &&Schedule| {
            let is_repeated = it.created_at < run_began || it.new.when == new.when;
            it.turn == Some(turn.id) && it.new.action == new.action && is_called(it, &new.name) && is_repeated
        };
        if let Some(same) = own.iter().find(is_same) {
            return Ok(Some(same.clone()));
        }
        let (done, active): (Vec<_>, Vec<_>) = own.into_iter().partition(Schedule::is_over);
        if active.len() >= limits.most as usize {
            return Err(OperationError::Unfit(format!("there are {} already: remove one first", active.len())));
        }
        // On the day on which clocks are set forward, the times of a daily pattern are an hour closer.
        let is_daily = matches!(new.when, When::Cron(_)) && limits.shortest > HOUR;
        let tolerated = if is_daily { HOUR } else { Duration::ZERO };
        if new.shortest_distance(self.clock.now()).is_some_and(|distance| distance + tolerated < limits.shortest) {
            let why = format!("too often: not more than once in {} minutes", limits.shortest.as_secs().div_ceil(60));
            return Err(OperationError::Unfit(why));
        }
        let new = NewSchedule { name: self.free_name(&new.name), ..new };
        let (origin, asked_by) = (ScheduleOrigin::Agent, Some(Asker::of(&turn.event)));
        let schedule = Schedule { origin, turn: Some(turn.id), asked_by, ..self.made(new, by)? };
        let removed: Vec<_> = done.iter().map(|it| it.id).collect();
        let is_stored = self.store_by(seen, schedule.clone(), &removed, "schedule", by).await?;
        Ok(is_stored.then_some(schedule))
    }

    /// The schedules that agents have made for a conversation, in the order of their names.
    pub(crate) fn of_agents(&self, to: &Target) -> Vec<Schedule> {
        self.all().into_iter().filter(|it| it.origin == ScheduleOrigin::Agent && it.new.to == *to).collect()
    }

    /// The name, or one that begins with it, which no schedule has.
    fn free_name(&self, name: &str) -> String {
        let snapshot = self.snapshot();
        let is_free = |name: &String| snapshot.schedules.values().all(|it| it.new.name != *name);
        let numbered = (2..).map(|number| format!("{name} {number}"));
        std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
    }

    /// The schedules that a caller with these channels may see (`None`: all channels), in the order of their names.
    pub fn seen_by(&self, channels: Option<&[ChannelId]>) -> Vec<Schedule> {
        self.all().into_iter().filter(|schedule| schedule.is_seen_by(channels)).collect()
    }

    /// The schedule with this name or id, and its latest runs, newest first.
    ///
    /// # Errors
    /// When there is none for channels that the operator may see, or the store cannot be read.
    pub async fn with_runs(&self, name: &str, by: &Actor) -> Result<(Schedule, Vec<ScheduleRun>), OperationError> {
        let schedule = self.find(name, by)?;
        let runs = self.store.schedule_runs(schedule.id, SHOWN_RUNS).await?;
        Ok((schedule, runs))
    }

    /// The latest run of a schedule.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn last_run(&self, schedule: &Schedule) -> Result<Option<ScheduleRun>, StoreError> {
        Ok(self.store.schedule_runs(schedule.id, 1).await?.pop())
    }

    /// Removes a schedule, with its history. What it has begun goes on.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn remove(&self, name: &str, by: &Actor) -> Result<(), OperationError> {
        Ok(decide_anew!({
            let (seen, schedule) = (self.seen(), self.find(name, by)?);
            if is_configured(&schedule) {
                let why =
                    "it is in the configuration, and would come back at the next start: remove it there, or pause it";
                return Err(OperationError::Unfit(why.to_owned()));
            }
            let operation = operation(by, "unschedule", schedule.recorded_name(), Subject::default(), self.clock.now());
            self.take_away(seen, &[schedule.id], Some(operation)).await?.then_some(())
        })?)
    }

    /// Removes what somebody had agents schedule.
    pub(crate) async fn forget(&self, who: &Identity) -> Result<(), StoreError> {
        let is_theirs = |it: &Schedule| {
            let asked_there = it.new.to.channel() == Some(&who.channel);
            asked_there && it.asked_by.as_ref().is_some_and(|asker| asker.person == who.id)
        };
        decide_anew!({
            let seen = self.seen();
            let theirs: Vec<_> =
                self.snapshot().schedules.values().filter(|it| is_theirs(it)).map(|it| it.id).collect();
            self.take_away(seen, &theirs, None).await?.then_some(())
        })
    }

    /// Removes those of operators and agents that were over before `before`.
    pub(crate) async fn remove_over(&self, before: Timestamp) -> Result<usize, StoreError> {
        let is_old = |it: &Schedule| it.was_over_before(before) && !is_configured(it);
        decide_anew!({
            let seen = self.seen();
            let old: Vec<_> = self.snapshot().schedules.values().filter(|it| is_old(it)).map(|it| it.id).collect();
            self.take_away(seen, &old, None).await?.then_some(old.len())
        })
    }

    /// Removes schedules; `false` if another one was changed since `seen`.
    async fn take_away(
        &self,
        seen: Seen,
        schedules: &[ScheduleId],
        operation: Option<Operation>,
    ) -> Result<bool, StoreError> {
        if schedules.is_empty() {
            return Ok(true);
        }
        let removed = schedules.iter().copied().map(ScheduleChange::Removed).collect();
        self.change(seen, Transition { schedules: removed, operation, ..Transition::default() }).await
    }

    /// Pauses a schedule, or resumes it: times that have passed are not made up for.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn pause(&self, name: &str, pauses: bool, by: &Actor) -> Result<Schedule, OperationError> {
        Ok(decide_anew!({
            let seen = self.seen();
            self.try_to_pause(seen, name, pauses, by).await?
        })?)
    }

    /// `None` if another schedule was changed since `seen`.
    async fn try_to_pause(
        &self,
        seen: Seen,
        name: &str,
        pauses: bool,
        by: &Actor,
    ) -> Result<Option<Schedule>, OperationError> {
        let (mut schedule, now) = (self.find(name, by)?, self.clock.now());
        match (schedule.state, pauses) {
            (ScheduleState::Active, true) => {
                schedule = Schedule { state: ScheduleState::Paused, why: by.reason.clone(), failures: 0, ..schedule };
            }
            (ScheduleState::Paused, false) => {
                let next_at = schedule.next_after(now).map_err(|wrong| OperationError::Unfit(wrong.to_string()))?;
                let state = if next_at.is_some() { ScheduleState::Active } else { ScheduleState::Done };
                // The clock may have been ahead.
                let last = self.last_run(&schedule).await?;
                let now = last.map_or(now, |run| run.at.max(now));
                schedule = Schedule { state, why: None, next_at, failures: 0, counted_from: Some(now), ..schedule };
            }
            (state, _) => return Err(OperationError::Unfit(format!("the schedule is {}", state.as_str()))),
        }
        let action = if pauses { "pause_schedule" } else { "resume_schedule" };
        let is_stored = self.store_by(seen, schedule.clone(), &[], action, by).await?;
        Ok(is_stored.then_some(schedule))
    }

    /// The schedule with this name or id, if it is for channels that the operator may see.
    pub(crate) fn find(&self, name: &str, by: &Actor) -> Result<Schedule, OperationError> {
        let snapshot = self.snapshot();
        let mut meant = snapshot.schedules.values().filter(|it| it.new.name == name || it.id.to_string() == name);
        let schedule = meant.next().filter(|it| it.is_seen_by(by.channels.as_deref()));
        schedule.cloned().ok_or(OperationError::Unknown("there is no schedule with this name"))
    }

    /// The schedules whose time has come.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<ScheduleId> {
        self.snapshot().schedules.values().filter(|it| is_due(it, now)).map(|it| it.id).collect()
    }

    /// The schedule, if its time has still come.
    pub(crate) fn still_due(&self, id: ScheduleId, now: Timestamp) -> Option<Schedule> {
        self.snapshot().schedules.get(&id).filter(|it| is_due(it, now)).cloned()
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        let snapshot = self.snapshot();
        snapshot.schedules.values().filter(|it| it.state == ScheduleState::Active).filter_map(|it| it.next_at).min()
    }

    /// What a change is decided on: taken before anything else is looked at.
    pub(crate) fn seen(&self) -> Seen {
        Seen { noun: Noun::Schedules, version: self.snapshot().version }
    }

    /// Stores changes, and takes them over. `false` if a schedule was changed since `seen`: decide again.
    pub(crate) async fn change(&self, seen: Seen, mut transition: Transition) -> Result<bool, StoreError> {
        let (changes, is_counted) = (transition.schedules.clone(), transition.changes_schedules());
        transition.seen.push(seen);
        if !self.store.commit(transition).await?.is_done()? {
            self.refresh().await?;
            return Ok(false);
        }
        if is_counted {
            self.hints.tell(|| Hint::Noun(Noun::Schedules));
        }
        let mut snapshot = self.snapshot();
        // They may have been read from the store meanwhile.
        if is_counted && snapshot.version == seen.version {
            snapshot.version += 1;
            for change in changes {
                match change {
                    ScheduleChange::Set(schedule) => drop(snapshot.schedules.insert(schedule.id, *schedule)),
                    ScheduleChange::Removed(id) => drop(snapshot.schedules.remove(&id)),
                    ScheduleChange::Ran(_) => {}
                }
            }
        }
        drop(snapshot);
        self.changed.notify_one();
        Ok(true)
    }

    /// Reads the schedules again if another node has changed them.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        if self.store.version(Noun::Schedules).await? <= self.seen().version {
            return Ok(());
        }
        let read = read(&*self.store, self.clock.now()).await?;
        let mut snapshot = self.snapshot();
        if read.version > snapshot.version {
            *snapshot = read;
            self.changed.notify_one();
        }
        Ok(())
    }

    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Stores a schedule that somebody has made or changed, and removes others; `false` if another one was changed since `seen`.
    async fn store_by(
        &self,
        seen: Seen,
        schedule: Schedule,
        removed: &[ScheduleId],
        action: &str,
        by: &Actor,
    ) -> Result<bool, OperationError> {
        let (target, done) = (schedule.recorded_name(), Done::Scheduled(&schedule));
        let operation = operation_done(by, action, target, Subject::default(), self.clock.now(), done);
        let mut schedules: Vec<_> = removed.iter().copied().map(ScheduleChange::Removed).collect();
        schedules.push(ScheduleChange::Set(Box::new(schedule)));
        let transition = Transition { schedules, operation: Some(operation), ..Transition::default() };
        Ok(self.change(seen, transition).await?)
    }

    fn snapshot(&self) -> MutexGuard<'_, Snapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn read(store: &dyn ScheduleStore, now: Timestamp) -> Result<Snapshot, StoreError> {
    let version = store.version(Noun::Schedules).await?;
    let schedules = store.schedules().await?.into_iter().map(|it| (it.id, it.not_ahead_of(now))).collect();
    Ok(Snapshot { version, schedules })
}

/// Fails if there are too many schedules for another one, or too long ones.
fn check_room<'a>(snapshot: impl Iterator<Item = &'a Schedule>, new: &NewSchedule) -> Result<(), String> {
    let size = |schedule: &NewSchedule| schedule.action.text().map_or(0, str::len);
    let (count, bytes) = snapshot.fold((0, size(new)), |(count, bytes), it| (count + 1, bytes + size(&it.new)));
    if count >= MOST {
        return Err(format!("there are {count} schedules, and more are not kept: remove some first"));
    }
    if bytes > MOST_BYTES {
        let most = MOST_BYTES >> 20;
        return Err(format!(
            "the texts of all schedules may have {most} MiB together: remove some first, or shorten it"
        ));
    }
    Ok(())
}

/// Whether it has this name, or had it before another one took it.
fn is_called(schedule: &Schedule, name: &str) -> bool {
    let rest = schedule.new.name.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.trim_start().parse::<u32>().is_ok())
}

fn is_configured(schedule: &Schedule) -> bool {
    schedule.origin == ScheduleOrigin::Configuration
}

fn is_due(schedule: &Schedule, now: Timestamp) -> bool {
    schedule.state == ScheduleState::Active && schedule.next_at.is_some_and(|at| at <= now)
}

/// Makes the configuration's schedules, and removes those that are not in it any more. One that is the same keeps its times, and
/// one that an operator paused stays paused. Returns also the names of others' schedules that gave way.
fn planted(
    seeds: &[NewSchedule],
    snapshot: &mut BTreeMap<ScheduleId, Schedule>,
    now: Timestamp,
) -> (Vec<ScheduleChange>, Vec<String>) {
    let is_gone = |it: &Schedule| {
        let is_named = seeds.iter().any(|seed| seed.name == it.new.name);
        // Another one with that name gives way: names are the configuration's.
        if is_configured(it) { !seeds.contains(&it.new) } else { is_named }
    };
    let gone: Vec<_> = snapshot.extract_if(.., |_, schedule| is_gone(schedule)).map(|(_, schedule)| schedule).collect();
    let mut changes: Vec<_> = gone.iter().map(|it| ScheduleChange::Removed(it.id)).collect();
    for seed in seeds.iter().filter(|seed| !snapshot.values().any(|it| it.new == **seed)).cloned().collect::<Vec<_>>() {
        let is_before = |it: &&Schedule| is_configured(it) && it.new.name == seed.name && !it.has_paused_itself();
        let paused = gone.iter().find(is_before).filter(|it| it.state == ScheduleState::Paused);
        // One whose only time has passed is done.
        let next_at = seed.check(now).ok();
        let by = CONFIGURATION.to_owned();
        let mut schedule = Schedule::new(seed, ScheduleOrigin::Configuration, by, next_at, now);
        if let Some(paused) = paused.filter(|_| next_at.is_some()) {
            schedule = Schedule { state: ScheduleState::Paused, why: paused.why.clone(), ..schedule };
        }
        changes.push(ScheduleChange::Set(Box::new(schedule.clone())));
        snapshot.insert(schedule.id, schedule);
    }
    let replaced = gone.into_iter().filter(|it| !is_configured(it)).map(|it| it.new.name).collect();
    (changes, replaced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Missed, ScheduledAction};

    fn new(text: &str) -> NewSchedule {
        NewSchedule {
            name: "news".to_owned(),
            when: When::Every(HOUR),
            time_zone: "UTC".into(),
            to: "Ada".parse().expect("a target"),
            action: ScheduledAction::Message(text.to_owned()),
            missed: Missed::Once,
        }
    }

    /// Who pauses it means what has this name, whatever its words and times are.
    #[test]
    fn a_configured_schedule_that_an_operator_paused_stays_paused_when_its_entry_changes() {
        let (mut snapshot, now) = (BTreeMap::new(), Timestamp::from_millis(1));
        planted(&[new("Tea.")], &mut snapshot, now);
        for schedule in snapshot.values_mut() {
            (schedule.state, schedule.why) = (ScheduleState::Paused, Some("holidays".to_owned()));
        }

        planted(&[new("Coffee.")], &mut snapshot, now);

        let found: Vec<_> = snapshot.values().map(|it| (&it.new.action, it.state, it.why.as_deref())).collect();
        assert_eq!(found, [(&new("Coffee.").action, ScheduleState::Paused, Some("holidays"))]);
    }

    #[test]
    fn an_operators_schedule_that_gives_way_to_a_configured_one_is_named() {
        let mut snapshot: BTreeMap<_, _> = snapshot(1, "mine").into_iter().map(|it| (it.id, it)).collect();

        let (_, replaced) = planted(&[new("theirs")], &mut snapshot, Timestamp::from_millis(1));

        assert_eq!(replaced, ["news"]);
    }

    fn snapshot(count: usize, text: &str) -> Vec<Schedule> {
        let now = Timestamp::from_millis(1);
        let one = || Schedule::new(new(text), ScheduleOrigin::Operator, "grace".to_owned(), None, now);
        std::iter::repeat_with(one).take(count).collect()
    }

    /// A14.
    #[test]
    fn number_and_size_of_schedules_are_bounded() {
        let (most, long) = (snapshot(MOST - 1, "hello"), "x".repeat(1 << 20));
        let room = |snapshot: &[Schedule], text: &str| check_room(snapshot.iter(), &new(text));

        assert_eq!(room(&most, "hello"), Ok(()));
        assert!(room(&snapshot(MOST, "hello"), "hello").is_err_and(|why| why.contains("5000 schedules")));
        assert_eq!(room(&snapshot(7, &long), &long), Ok(()));
        assert!(room(&snapshot(8, &long), "hello").is_err_and(|why| why.contains("8 MiB")));
    }
}
