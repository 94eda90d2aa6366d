//! Schedules: what the gateway begins at given times.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use rejoinder_core::{
    Actor, Addressees, Done, Missed, NewSchedule, NotAPlaceForWords, PromptSession, ScheduledAction, Timestamp, TurnId,
    When, Words, WordsTo, read_time,
    store::{Schedule, ScheduleOrigin, ScheduleRun},
};

use super::{
    messages::{NotReachedItem, SentMessages},
    prelude::*,
};
use crate::time::{duration, time_of_day};

whole! {
    /// The schedules, in the order of their names.
    ScheduleList of ListedSchedule
}

/// A schedule, and what became of its last time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListedSchedule {
    #[serde(flatten)]
    schedule: ScheduleItem,
    /// Missing before its first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<ScheduleRunItem>,
}

item! {
    /// A schedule.
    pub(crate) ScheduleItem of (schedule: &Schedule) {
        let NewSchedule { name, when, time_zone, to, action, missed } = &schedule.new;
        let (message, prompt, agent, quiet, words) = match action {
            ScheduledAction::Message(message) => (Some(message.clone()), None, None, false, None),
            ScheduledAction::Prompt { text, agent, quiet, words } => {
                (None, Some(text.clone()), agent.as_ref(), *quiet, Some(words))
            }
            ScheduledAction::Digest => (None, None, None, false, None),
        };
        let words_to = words.map(|words| &words.to).filter(|to| **to != WordsTo::Chat);
        let session = words.map(|words| words.session).filter(|session| *session != PromptSession::Current);
    } with {
        #[schema(format = "uuid")] id: String = schedule.id.to_string(),
        name: String = name.clone(),
        /// The only time.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(format = DateTime)]
        at: Option<String> = if let When::At(at) = when { Some(rfc3339(*at)) } else { None },
        /// The distance between two times.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(example = "6h")]
        every: Option<String> = if let When::Every(every) = when { Some(print(*every)) } else { None },
        /// The cron pattern.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(example = "0 8 * * MON-FRI")]
        cron: Option<String> = if let When::Cron(cron) = when { Some(cron.clone()) } else { None },
        /// The time zone of the cron pattern: its IANA name, or `system`.
        time_zone: String = time_zone.to_string(),
        /// The recipients.
        #[schema(example = "telegram.main/42")] to: String = to.to_string(),
        /// The message that is sent.
        #[serde(skip_serializing_if = "Option::is_none")] message: Option<String> = message,
        /// The prompt that is put before the agent.
        #[serde(skip_serializing_if = "Option::is_none")] prompt: Option<String> = prompt,
        /// Whether it tells what is open, with buttons.
        #[serde(skip_serializing_if = "std::ops::Not::not")] digest: bool = *action == ScheduledAction::Digest,
        /// The agent, if not that of the conversation.
        #[serde(skip_serializing_if = "Option::is_none")] agent: Option<String> = agent.map(ToString::to_string),
        /// Whether the agent owes no answer.
        quiet: bool = quiet,
        /// Where the agent's words go, if not to the conversation.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(example = "words.journal")]
        words_to: Option<String> = words_to.map(ToString::to_string),
        /// `copy`: the agent gets a copy of the session, which stays as it is.
        #[serde(skip_serializing_if = "Option::is_none")] session: Option<SessionName> = session.map(SessionName::from),
        /// What happens to times that passed while the gateway was down: `once`, `skip` or `all`.
        missed: MissedName = (*missed).into(),
        /// `active`, `paused`, or `done`: its last time has passed.
        state: &'static str = schedule.state.as_str(),
        /// Why it is paused.
        why: Option<String> = schedule.why.clone(),
        #[schema(format = DateTime)] next_at: Option<String> = schedule.next_at.map(rfc3339),
        /// How many of its latest runs failed in a row, as far as that was known at the last one. After five it is paused.
        failures: u32 = schedule.failures,
        /// `operator`, `configuration` or `agent`.
        origin: &'static str = match schedule.origin {
            ScheduleOrigin::Operator => "operator",
            ScheduleOrigin::Configuration => "configuration",
            ScheduleOrigin::Agent => "agent",
        },
        /// Who made it.
        by: String = schedule.by.clone(),
        #[schema(format = DateTime)] created_at: String = rfc3339(schedule.created_at),
    }
}

/// A schedule, and what became of its times.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScheduleDetail {
    #[serde(flatten)]
    schedule: ScheduleItem,
    /// The last hundred, newest first.
    runs: Vec<ScheduleRunItem>,
}

item! {
    /// What became of one time of a schedule.
    pub(crate) ScheduleRunItem of (run: ScheduleRun, name: impl Fn(Addressees) -> String) {
        /// The time.
        #[schema(format = DateTime)] due: String = rfc3339(run.due),
        /// When it was acted on.
        #[schema(format = DateTime)] at: String = rfc3339(run.at),
        /// The turns that were begun: they say what became of them.
        turns: Vec<String> = run.turns.iter().map(ToString::to_string).collect(),
        /// Why none was begun.
        problem: Option<String> = run.problem,
        /// The recipients that were not reached.
        not_reached: Vec<NotReachedItem> = NotReachedItem::list(&run.not_reached, name),
    }
}

names! {
    /// What happens to times that passed while the gateway was down: one run makes up for all of them (`once`), none does (`skip`),
    /// or each is made up for, but no more than the last hundred (`all`).
    #[derive(Default)]
    MissedName of Missed { #[default] Once, Skip, All }
}

body! {
    /// A schedule to make.
    Wanted {
        /// One is made up if it is missing.
        #[schema(max_length = 100)] name: Option<String>,
        /// Once: RFC 3339, or a time of `time_zone` without an offset (`2030-01-31T09:00`, `09:00`, `tomorrow 9:00`).
        #[schema(max_length = 64)] at: Option<String>,
        /// Again and again: a duration such as `30m`, `6h` or `2d`, at least a minute. A day has 24 hours.
        #[schema(max_length = 64)] every: Option<String>,
        /// At the times of a cron pattern: minute, hour, day of the month, month, day of the week.
        #[schema(max_length = 200)] cron: Option<String>,
        /// An IANA name, or `system`; that of `[routing]` if it is missing.
        #[schema(max_length = 100)] time_zone: Option<String>,
        /// The recipients, as in a message.
        #[schema(max_length = 1000)] to: String,
        /// A message that is sent, as Markdown.
        #[schema(max_length = 20_000)] message: Option<String>,
        /// A prompt that is put before the agent, whose answer is sent.
        #[schema(max_length = 20_000)] prompt: Option<String>,
        /// In place of both: what is open, with buttons. For people only: an owner is told of everything, others of their own turns.
        #[serde(default)] digest: bool,
        /// The agent, if not that of the conversation.
        #[schema(max_length = 256)] agent: Option<String>,
        /// Whether the agent owes no answer, and speaks only if it has something to say.
        #[serde(default)] quiet: bool,
        /// Where the agent's words go, if not to the conversation: `nowhere` (recorded only), a place of `[channels.words]` such as
        /// `words.journal`, another conversation, or the name of a person.
        #[schema(max_length = 1000)] words_to: Option<String>,
        /// `copy`: the agent gets a copy of the session, which stays as it is.
        session: Option<SessionName>,
        #[serde(default)] missed: MissedName,
        /// Why, for the audit.
        #[schema(max_length = 1000)] reason: Option<String>,
    }
}

names! {
    /// What a prompt does to the session: what is said is remembered there (`current`), or the agent gets a copy of it (`copy`).
    SessionName of PromptSession { Current, Copy }
}

fn print(every: Duration) -> String {
    SignedDuration::try_from(every).map_or_else(|_| format!("{every:?}"), |every| format!("{every:#}"))
}

fn bad(what: impl Into<String>) -> ApiError {
    ApiError::BadRequest(what.into())
}

impl Wanted {
    fn read(&self, own_zone: &str, now: Timestamp) -> Result<NewSchedule, ApiError> {
        let time_zone: Arc<str> = self.time_zone.as_deref().unwrap_or(own_zone).into();
        let made_up = || {
            let id = TurnId::new(now).to_string();
            id[id.len() - 8..].to_owned()
        };
        Ok(NewSchedule {
            name: self.name.as_deref().map(str::trim).map_or_else(made_up, ToOwned::to_owned),
            when: self.when(&time_zone, now)?,
            to: self.to.parse().map_err(|wrong| bad(format!("`to` {wrong}")))?,
            action: self.action()?,
            missed: self.missed.into(),
            time_zone,
        })
    }

    fn action(&self) -> Result<ScheduledAction, ApiError> {
        let action = match (&self.message, &self.prompt, self.digest) {
            (Some(message), None, false) => ScheduledAction::Message(message.clone()),
            (None, None, true) => ScheduledAction::Digest,
            (None, Some(text), false) => {
                let agent = self.agent.as_deref().map(Into::into);
                let to = self.words_to.as_deref().unwrap_or("chat").parse();
                let to = to.map_err(|wrong: NotAPlaceForWords| bad(format!("`words_to` {wrong}")))?;
                let words = Words { to, session: self.session.map(PromptSession::from).unwrap_or_default() };
                return Ok(ScheduledAction::Prompt { text: text.clone(), agent, quiet: self.quiet, words });
            }
            _ => return Err(bad("give one of `message`, `prompt` and `digest`")),
        };
        if self.agent.is_some() || self.quiet || self.words_to.is_some() || self.session.is_some() {
            return Err(bad("`agent`, `quiet`, `words_to` and `session` are for a `prompt`"));
        }
        Ok(action)
    }

    fn when(&self, time_zone: &str, now: Timestamp) -> Result<When, ApiError> {
        match (&self.at, &self.every, &self.cron) {
            (Some(at), None, None) => {
                let wrong = || bad("`at` must be a time such as 2030-01-31T09:00, 09:00 or tomorrow 9:00");
                let read = read_time(at, time_zone).or_else(|| time_of_day(at, time_zone, now));
                read.map(When::At).ok_or_else(wrong)
            }
            (None, Some(every), None) => {
                let wrong = || bad("`every` must be a duration such as 30m, 6h or 2d");
                duration(every).map(When::Every).ok_or_else(wrong)
            }
            (None, None, Some(cron)) => Ok(When::Cron(cron.clone())),
            _ => Err(bad("give one of `at`, `every` and `cron`")),
        }
    }
}

/// Lists the schedules, in the order of their names, each with what became of its last time.
#[utoipa::path(get, path = "/schedules", operation_id = "list_schedules",
    responses((status = 200, description = "The schedules", body = ScheduleList)))]
pub(super) async fn list(State(app): Shared, caller: Caller) -> Answer<ScheduleList> {
    let name = app.names(caller.channels.as_deref());
    let mut items = Vec::new();
    for schedule in app.engine.calendar().seen_by(caller.channels.as_deref()) {
        let last = app.engine.calendar().last_run(&schedule).await?.map(|run| ScheduleRunItem::of(run, name));
        items.push(ListedSchedule { schedule: ScheduleItem::of(&schedule), last });
    }
    Ok(Json(items.into_iter().collect()))
}

/// Shows a schedule, and what became of its times.
#[utoipa::path(get, path = "/schedules/{name}", operation_id = "show_schedule",
    params(("name" = String, Path, description = "The schedule's name or id")),
    responses((status = 200, description = "The schedule", body = ScheduleDetail)))]
pub(super) async fn show(State(app): Shared, caller: Caller, name: Segment) -> Answer<ScheduleDetail> {
    let by = Actor { name: caller.name.clone(), reason: None, channels: caller.channels.clone(), answer: None };
    let (schedule, runs) = app.engine.calendar().with_runs(&named(name)?, &by).await?;
    let name = app.names(caller.channels.as_deref());
    let runs = runs.into_iter().map(|run| ScheduleRunItem::of(run, name)).collect();
    Ok(Json(ScheduleDetail { schedule: ScheduleItem::of(&schedule), runs }))
}

/// Makes a schedule.
#[utoipa::path(post, path = "/schedules", operation_id = "add_schedule", params(IdempotencyKey),
    request_body(content = Wanted), responses((status = 201, description = "It is made", body = ScheduleItem)))]
pub(super) async fn add(State(app): Shared, operation: Operation<Wanted>) -> Answered<ScheduleItem> {
    let now = app.clock.now();
    let new = operation.body.read(&app.engine.time_zone(), now)?;
    new.check(now).map_err(|wrong| bad(wrong.to_string()))?;
    let stored = |done: Done<'_>| match done {
        Done::Scheduled(schedule) => serde_json::to_string(&ScheduleItem::of(schedule)).ok(),
        Done::AsAsked | Done::Begun(_) => None,
    };
    let by = operation.actor_answering(operation.body.reason.as_deref(), StatusCode::CREATED, stored)?;
    let schedule = app.engine.schedules().add(new, &by).await?;
    Ok((StatusCode::CREATED, Json(ScheduleItem::of(&schedule))))
}

/// Begins what a schedule begins, now and beside its times.
#[utoipa::path(post, path = "/schedules/{name}/run", operation_id = "run_schedule",
    params(("name" = String, Path, description = "The schedule's name or id"), IdempotencyKey),
    request_body(content = Option<Reason>),
    responses((status = 202, description = "It is begun", body = SentMessages)))]
pub(super) async fn run(State(app): Shared, name: Segment, operation: Operation<Reason>) -> Answered<SentMessages> {
    let reason = operation.body.reason.as_deref();
    let by = operation.actor_answering(reason, StatusCode::ACCEPTED, SentMessages::stored)?;
    let key = operation.name(app.clock.now());
    let reached = app.engine.schedules().run_now(&named(name)?, &key, &by).await?;
    let name = app.names(by.channels.as_deref());
    Ok((StatusCode::ACCEPTED, Json(SentMessages::of(&reached, name)?)))
}

/// Pauses a schedule: it begins nothing until it is resumed.
#[utoipa::path(post, path = "/schedules/{name}/pause", operation_id = "pause_schedule",
    params(("name" = String, Path, description = "The schedule's name or id")), request_body(content = Option<Reason>),
    responses((status = 200, description = "It is paused", body = ScheduleItem)))]
pub(super) async fn pause(State(app): Shared, name: Segment, operation: Operation<Reason>) -> Answer<ScheduleItem> {
    let schedule = app.engine.calendar().pause(&named(name)?, true, &actor(&operation)?).await?;
    Ok(Json(ScheduleItem::of(&schedule)))
}

/// Resumes a schedule. Times that passed meanwhile are not made up for.
#[utoipa::path(post, path = "/schedules/{name}/resume", operation_id = "resume_schedule",
    params(("name" = String, Path, description = "The schedule's name or id")), request_body(content = Option<Reason>),
    responses((status = 200, description = "It goes on", body = ScheduleItem)))]
pub(super) async fn resume(State(app): Shared, name: Segment, operation: Operation<Reason>) -> Answer<ScheduleItem> {
    let schedule = app.engine.calendar().pause(&named(name)?, false, &actor(&operation)?).await?;
    Ok(Json(ScheduleItem::of(&schedule)))
}

/// Removes a schedule, with its history. What it has begun goes on.
#[utoipa::path(delete, path = "/schedules/{name}", operation_id = "remove_schedule",
    params(("name" = String, Path, description = "The schedule's name or id")), request_body(content = Option<Reason>),
    responses((status = 204, description = "It is removed")))]
pub(super) async fn remove(State(app): Shared, name: Segment, operation: Operation<Reason>) -> Empty {
    app.engine.calendar().remove(&named(name)?, &actor(&operation)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Who does it. What is paused, resumed or removed twice is an error, so no answer is stored.
fn actor(operation: &Operation<Reason>) -> Result<Actor, ApiError> {
    let by = operation.actor(operation.body.reason.as_deref(), StatusCode::OK, &())?;
    Ok(Actor { answer: None, ..by })
}

fn named(name: Segment) -> Result<String, ApiError> {
    parsed(name, "there is no schedule with this name")
}
