//! The tool with which a model schedules something. No I/O.

use std::{sync::LazyLock, time::Duration};

use rejoinder_core::{
    ScheduleCall, ScheduledAction, Timestamp, When, Words, is_blank, read_time, store::Schedule, zone,
};
use serde::{Deserialize, Serialize};

use super::number::Number;

/// The time zone of a model that names none.
const UTC: &str = "UTC";

/// How many characters of a text become the name of a schedule that has none.
const NAME: usize = 40;

/// What a model can do with schedules.
pub(crate) static ACTIONS: LazyLock<[String; 3]> = LazyLock::new(|| ["add", "list", "remove"].map(ToOwned::to_owned));

#[derive(Deserialize)]
pub(crate) struct Arguments {
    action: String,
    name: Option<String>,
    message: Option<String>,
    task: Option<String>,
    quiet: Option<bool>,
    in_minutes: Option<Number>,
    at: Option<String>,
    every_minutes: Option<Number>,
    cron: Option<String>,
    time_zone: Option<String>,
}

impl Arguments {
    /// The call. The error is the text to return to the model.
    pub(crate) fn call(self, now: Timestamp) -> Result<ScheduleCall, String> {
        match self.action.trim() {
            "list" => Ok(ScheduleCall::List),
            "remove" => Ok(ScheduleCall::Remove { name: filled(self.name).ok_or("error: `name` is empty")? }),
            "add" => self.added(now),
            _ => Err("error: `action` must be add, list or remove".to_owned()),
        }
    }

    fn added(self, now: Timestamp) -> Result<ScheduleCall, String> {
        let time_zone = filled(self.time_zone).unwrap_or_else(|| UTC.to_owned());
        if zone(&time_zone).is_none() {
            return Err(format!("error: there is no time zone `{time_zone}`: use one such as Europe/Vienna"));
        }
        let action = match (filled(self.message), filled(self.task)) {
            (Some(message), None) => ScheduledAction::Message(message),
            (None, Some(text)) => {
                let quiet = self.quiet.unwrap_or_default();
                ScheduledAction::Prompt { text, agent: None, quiet, words: Words::default() }
            }
            _ => return Err("error: give either `message` or `task`".to_owned()),
        };
        let minutes = |number: Option<Number>| {
            let minutes = number.map(|number| number.value().filter(|minutes| *minutes > 0.0));
            let after = minutes.map(|minutes| Duration::try_from_secs_f64(minutes? * 60.0).ok());
            after.map(|after| after.ok_or("error: the minutes must be a number above 0")).transpose()
        };
        let not_a_time = "error: `at` is not a time such as 2030-01-31T09:00:00Z";
        let at = filled(self.at).map(|at| read_time(&at, &time_zone).ok_or(not_a_time)).transpose()?;
        let when = match (minutes(self.in_minutes)?, at, minutes(self.every_minutes)?, filled(self.cron)) {
            (Some(after), None, None, None) => When::At(now + after),
            (None, Some(at), None, None) => When::At(at),
            (None, None, Some(every), None) => When::Every(every),
            (None, None, None, Some(cron)) => When::Cron(cron),
            _ => return Err("error: say when with one of `in_minutes`, `at`, `every_minutes` and `cron`".to_owned()),
        };
        let name = filled(self.name).unwrap_or_else(|| name_of(action.text().unwrap_or_default()));
        Ok(ScheduleCall::Add { name, when, time_zone: time_zone.into(), action })
    }
}

/// A text that shows something.
fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !is_blank(text)).map(|text| text.trim().to_owned())
}

/// A name made of a text.
fn name_of(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|character| !character.is_control()).take(NAME).collect()
}

/// A schedule, as a model sees it.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    state: &'static str,
    text: &'a str,
}

/// What a model is told of a call.
pub(crate) fn told(done: Result<Vec<Schedule>, String>) -> String {
    let schedules = match done {
        Ok(schedules) => schedules,
        Err(why) => return format!("error: {why}"),
    };
    let shown = schedules.iter().map(|schedule| {
        let next = schedule.next_at.and_then(|at| jiff::Timestamp::from_millisecond(at.as_millis()).ok());
        Shown {
            name: &schedule.new.name,
            next: next.map(|at| at.to_string()),
            state: schedule.state.as_str(),
            text: schedule.new.action.text().unwrap_or_default(),
        }
    });
    serde_json::to_string(&shown.collect::<Vec<_>>()).expect("texts serialise to JSON")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    /// 2023-11-14T22:13:20Z.
    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn call(arguments: &Value) -> Result<ScheduleCall, String> {
        serde_json::from_value::<Arguments>(arguments.clone()).expect("arguments").call(NOW)
    }

    fn when(arguments: &Value) -> Result<When, String> {
        let mut all = json!({"action": "add", "message": "Tea!"});
        all.as_object_mut().expect("an object").extend(arguments.as_object().expect("an object").clone());
        call(&all).map(|call| match call {
            ScheduleCall::Add { when, .. } => when,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn a_model_says_when() {
        let in_minutes = |minutes| When::At(NOW + Duration::from_mins(minutes));
        assert_eq!(when(&json!({"in_minutes": "5"})), Ok(in_minutes(5)));
        assert_eq!(when(&json!({"at": "2023-11-14T22:20:20Z"})), Ok(in_minutes(7)));
        assert_eq!(when(&json!({"at": "2023-11-14T23:20:20", "time_zone": "Europe/Vienna"})), Ok(in_minutes(7)));
        assert_eq!(when(&json!({"every_minutes": 90})), Ok(When::Every(Duration::from_mins(90))));
        assert_eq!(when(&json!({"cron": "0 8 * * *"})), Ok(When::Cron("0 8 * * *".to_owned())));
    }

    #[test]
    fn a_task_is_named_after_its_text() {
        let task = json!({"action": "add", "task": "Say what\nis new.", "in_minutes": 1, "quiet": true});
        let ScheduleCall::Add { name, action, .. } = call(&task).expect("a call") else { panic!() };
        assert_eq!(name, "Say what is new.");
        assert_eq!(
            action,
            ScheduledAction::Prompt {
                text: "Say what\nis new.".to_owned(),
                agent: None,
                quiet: true,
                words: Words::default()
            }
        );
    }

    #[rstest]
    #[case(json!({"action": "change"}))]
    #[case(json!({"action": "remove"}))]
    #[case(json!({"action": "add", "in_minutes": 5}))]
    #[case(json!({"action": "add", "in_minutes": 5, "message": "a", "task": "b"}))]
    #[case(json!({"action": "add", "message": "a"}))]
    #[case(json!({"action": "add", "message": "a", "in_minutes": 5, "cron": "0 8 * * *"}))]
    #[case(json!({"action": "add", "message": "a", "in_minutes": -5}))]
    #[case(json!({"action": "add", "message": "a", "in_minutes": 1e300}))]
    #[case(json!({"action": "add", "message": "a", "at": "tomorrow"}))]
    #[case(json!({"action": "add", "message": "a", "at": "2030-01-01T08:00", "time_zone": "Vienna"}))]
    fn what_is_not_understood_is_told_to_the_model(#[case] arguments: Value) {
        assert!(call(&arguments).is_err_and(|told| told.starts_with("error: ")));
    }
}
