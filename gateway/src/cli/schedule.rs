//! `rejoinder schedule`: the schedules of the running gateway.

use clap::{ArgGroup, Args, Subcommand};
use rejoinder_core::{Clock, SystemClock};
use serde_json::{Value, json};

use super::{
    global::Global,
    listing::{items, table, text},
    options::{Printing, Reason},
    running::{RunningGateway, path_part},
    send::not_reached,
};
use crate::{
    console::{failure::Failure, output},
    time::{local, parse, parse_or_ago, rfc3339},
};

#[derive(Debug, Subcommand)]
pub(super) enum ScheduleCommand {
    /// Make a schedule: a message, a prompt for the agent, or a digest, at given times
    #[command(after_help = ADD_HELP)]
    Add(Box<Add>),
    /// List the schedules, with their next times
    List(Printing),
    /// Show a schedule, and what became of its last times
    Show(Show),
    /// Begin now what a schedule begins, beside its times
    Run(Named),
    /// Pause a schedule: it begins nothing until it is resumed
    Pause(Named),
    /// Resume a schedule; times that passed meanwhile are not made up for
    Resume(Named),
    /// Remove a schedule, with its history
    Remove(Named),
}

const ADD_HELP: &str = "\
TARGET is a conversation (CHANNEL/CHAT), the name of somebody who is known, or everybody with a role (role:owner).

Examples:
  rejoinder schedule add --at 2030-01-31T09:00:00+01:00 --to telegram.main/42 --message \"Happy birthday!\"
  rejoinder schedule add --in 20m --to ada --message \"The pasta.\"
  rejoinder schedule add --cron \"0 8 * * MON-FRI\" --time-zone Europe/Vienna --to ada --prompt \"What is on today?\"
  rejoinder schedule add --every 6h --to role:owner --prompt \"Has anything failed?\" --quiet --name watch
  rejoinder schedule add --cron \"0 8 * * *\" --to ada --digest --name digest";

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("when").required(true)), group(ArgGroup::new("what").required(true)))]
pub(super) struct Add {
    /// Once: RFC 3339, or a time of the time zone: 2030-01-31T09:00, 09:00, "tomorrow 9:00"
    #[arg(long, value_name = "TIME", group = "when")]
    at: Option<String>,
    /// Once, after so long: 20m, 1h30m, 2d
    #[arg(long = "in", value_name = "DURATION", group = "when")]
    after: Option<String>,
    /// Again and again, in this distance: 30m, 6h
    #[arg(long, value_name = "DURATION", group = "when")]
    every: Option<String>,
    /// At the times of a cron pattern: minute, hour, day of the month, month, day of the week
    #[arg(long, value_name = "PATTERN", group = "when")]
    cron: Option<String>,
    /// The time zone: its IANA name, or system; if not given: routing.time_zone
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// For whom
    #[arg(long, value_name = "TARGET")]
    to: String,
    /// A message that is sent, as Markdown
    #[arg(long, value_name = "TEXT", group = "what")]
    message: Option<String>,
    /// A prompt that is put before the agent, whose answer is sent
    #[arg(long, value_name = "TEXT", group = "what")]
    prompt: Option<String>,
    /// What is open (owed, asked, failed), with buttons: for a person their own, for an owner everything
    #[arg(long, group = "what")]
    digest: bool,
    /// The agent, if not that of the conversation
    #[arg(long, conflicts_with_all = ["message", "digest"])]
    agent: Option<String>,
    /// The agent owes no answer, and speaks only if it has something to say
    #[arg(long, conflicts_with_all = ["message", "digest"])]
    quiet: bool,
    /// Where the agent's words go, if not to the conversation: nowhere (recorded only), a place of [channels.words] such as
    /// words.journal, another conversation, or the name of a person
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["message", "digest"])]
    words_to: Option<String>,
    /// The agent gets a copy of the session, which stays as it is
    #[arg(long, conflicts_with_all = ["message", "digest"])]
    on_copy: bool,
    /// The name of the schedule; if not given, one is made up
    #[arg(long)]
    name: Option<String>,
    /// What happens to times that pass while the gateway is down: one run makes up for all, none does, or each is made up for
    #[arg(long, value_parser = ["once", "skip", "all"], default_value = "once")]
    missed: String,
    #[command(flatten)]
    why: Reason,
    #[command(flatten)]
    printing: Printing,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The name or the id of the schedule
    schedule: String,
    #[command(flatten)]
    printing: Printing,
}

#[derive(Debug, Args)]
pub(super) struct Named {
    /// The name or the id of the schedule
    schedule: String,
    #[command(flatten)]
    why: Reason,
}

impl ScheduleCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let gateway = RunningGateway::find(global)?;
        match self {
            Self::Add(add) => {
                let schedule = gateway.post("schedules", &add.body()?).await?;
                if add.printing.json {
                    return output::print_json(&schedule);
                }
                output::print(format!(
                    "Schedule {} for {}: next at {}.",
                    text(&schedule["name"]),
                    text(&schedule["to"]),
                    time(&schedule["next_at"])
                ))
            }
            Self::List(printing) => printing.print_from(&gateway, "schedules", lines).await,
            Self::Show(Show { schedule, printing }) => {
                printing.print_from(&gateway, &format!("schedules/{}", path_part(schedule)), detail).await
            }
            Self::Run(named) => {
                let begun = gateway.act("schedules", &named.schedule, "run", &named.why).await?;
                let turn = |one: &Value| format!("{} (turn {})", text(&one["to"]), text(&one["id"]));
                let turns: Vec<_> = items(&begun["messages"]).map(turn).collect();
                output::print(format!("Begun: {}", turns.join(", ")))?;
                items(&begun["not_reached"]).try_for_each(|one| output::print(not_reached(one)))
            }
            Self::Pause(named) => {
                gateway.act("schedules", &named.schedule, "pause", &named.why).await?;
                output::print(format!("{} is paused.", named.schedule))
            }
            Self::Resume(named) => {
                let schedule = gateway.act("schedules", &named.schedule, "resume", &named.why).await?;
                let next = time(&schedule["next_at"]);
                output::print(format!("{} goes on: next at {next}.", named.schedule))
            }
            Self::Remove(Named { schedule, why }) => {
                gateway.remove("schedules", schedule, why).await?;
                output::print(format!("{schedule} is removed."))
            }
        }
    }
}

impl Add {
    fn body(&self) -> Result<Value, Failure> {
        let at = match &self.after {
            Some(after) => {
                let wrong = || Failure::Usage(format!("--in must be a duration such as 20m or 2d, not {after}"));
                let now = SystemClock.now();
                // The same distance, in the other direction.
                let before = parse_or_ago(after, now).filter(|_| parse(after).is_none()).ok_or_else(wrong)?;
                Some(rfc3339(now + now.since(before)))
            }
            None => self.at.clone(),
        };
        Ok(json!({
            "name": self.name, "at": at, "every": self.every, "cron": self.cron, "time_zone": self.time_zone, "to": self.to,
            "message": self.message, "prompt": self.prompt, "digest": self.digest, "agent": self.agent,
            "quiet": self.quiet, "words_to": self.words_to, "session": self.on_copy.then_some("copy"),
            "missed": self.missed, "reason": self.why.reason,
        }))
    }
}

/// A time on this machine's clock.
fn time(value: &Value) -> String {
    value.as_str().and_then(parse).map_or_else(|| "-".to_owned(), local)
}

/// When it begins something.
fn when(schedule: &Value) -> String {
    match (schedule["at"].as_str(), schedule["every"].as_str(), schedule["cron"].as_str()) {
        (Some(_), ..) => format!("at {}", time(&schedule["at"])),
        (_, Some(every), _) => format!("every {every}"),
        (.., cron) => format!("{} ({})", cron.unwrap_or_default(), text(&schedule["time_zone"])),
    }
}

/// What it begins.
fn what(schedule: &Value) -> String {
    match (schedule["message"].as_str(), schedule["prompt"].as_str()) {
        _ if schedule["digest"] == true => "digest".to_owned(),
        (Some(message), _) => format!("message: {}", output::excerpt(message, 40)),
        (_, prompt) => {
            let to = schedule["words_to"].as_str().map(|to| format!(" (words to {to})")).unwrap_or_default();
            format!("prompt: {}{to}", output::excerpt(prompt.unwrap_or_default(), 40))
        }
    }
}

fn lines(schedules: &Value) -> String {
    let row = |schedule: &Value| {
        let next = if schedule["state"] == "active" { time(&schedule["next_at"]) } else { text(&schedule["state"]) };
        [text(&schedule["name"]), when(schedule), next, text(&schedule["to"]), what(schedule)]
    };
    let nothing = "There are no schedules. To make one: rejoinder schedule add --help";
    table(schedules, (nothing, ""), ["NAME", "WHEN", "NEXT", "TO", "WHAT"], row)
}

fn detail(schedule: &Value) -> String {
    let mut lines = vec![
        format!("{}: {}, for {}", text(&schedule["name"]), when(schedule), text(&schedule["to"])),
        what(schedule),
        format!("made by {} ({})", text(&schedule["by"]), text(&schedule["origin"])),
        match (&*text(&schedule["state"]), schedule["why"].as_str()) {
            ("active", _) => format!("next at {}", time(&schedule["next_at"])),
            (state, Some(why)) => format!("{state}: {why}"),
            (state, None) => state.to_owned(),
        },
    ];
    let row = |run: &Value| {
        let turns = items(&run["turns"]).map(text).collect::<Vec<_>>().join(" ");
        let missed = |one: &Value| format!("not reached: {} ({})", text(&one["who"]), text(&one["why"]));
        let missed = items(&run["not_reached"]).map(missed).collect::<Vec<_>>().join(", ");
        let became = [turns, text(&run["problem"]), missed];
        let became: Vec<_> = became.into_iter().filter(|it| !it.is_empty()).collect();
        [time(&run["due"]), time(&run["at"]), became.join(" ")]
    };
    let rows: Vec<_> = items(&schedule["runs"]).map(row).collect();
    if !rows.is_empty() {
        lines.push(format!("\n{}", output::table(["DUE", "ACTED ON", "TURNS"], &rows)));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule() -> Value {
        json!({
            "name": "morning", "cron": "0 8 * * *", "time_zone": "Europe/Vienna", "to": "ada", "prompt": "What is on?",
            "state": "paused", "why": "it failed 5 times in a row: gone", "next_at": null, "by": "grace", "origin": "operator",
            "runs": [{ "due": "x", "at": "x", "turns": [], "problem": "nobody is there" }],
        })
    }

    #[test]
    fn schedules_are_listed_with_their_next_times() {
        assert_eq!(
            lines(&json!({ "items": [schedule()] })),
            "NAME     WHEN                       NEXT    TO   WHAT\n\
             morning  0 8 * * * (Europe/Vienna)  paused  ada  prompt: What is on?"
        );
        assert!(lines(&json!({ "items": [] })).starts_with("There are no schedules."));
    }

    #[test]
    fn one_is_shown_with_what_became_of_its_times() {
        assert_eq!(
            detail(&schedule()),
            "morning: 0 8 * * * (Europe/Vienna), for ada\nprompt: What is on?\nmade by grace (operator)\n\
             paused: it failed 5 times in a row: gone\n\nDUE  ACTED ON  TURNS\n-    -         nobody is there"
        );
    }
}
