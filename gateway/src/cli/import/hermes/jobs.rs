//! Cron jobs.
//!
//! Sources, in the repository NousResearch/hermes-agent: `cron/jobs.py` (`parse_schedule`),
//! `website/docs/developer-guide/cron-internals.md`, `website/docs/user-guide/features/cron.md` ("Delivery options").

use std::path::Path;

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Map, Value};

use super::channels::Homes;
use crate::cli::import::{
    draft::{Draft, Names},
    jobs::{Job, When, conversation, time},
    notes::Notes,
    shared::words,
    source,
    table::Table,
};

/// Adds a section for each job in `cron/jobs.json`. `zone` is that of the configuration.
pub(super) fn read(
    folder: &Path,
    homes: &Homes,
    zone: Option<&str>,
    now: Timestamp,
    draft: &mut Draft,
    notes: &mut Notes,
) -> anyhow::Result<()> {
    let file = folder.join("cron/jobs.json");
    let content = match source::json5(&file)? {
        None => return Ok(()),
        Some(Value::Object(content)) => content,
        Some(Value::Array(jobs)) => Map::from_iter([("jobs".to_owned(), Value::Array(jobs))]),
        Some(_) => anyhow::bail!("{}: the file is neither a table nor a list", file.display()),
    };
    let zone = zone.and_then(|zone| TimeZone::get(zone).ok()).unwrap_or_else(TimeZone::system);
    let (mut content, mut names) = (Table::new("cron/jobs.json", content), Names::default());
    for (_, mut table) in content.tables("jobs") {
        let job = job(&mut table, homes, &zone, draft, notes);
        let block = job.block(&mut names, now, notes);
        draft.blocks.push(block);
    }
    Ok(())
}

fn job(table: &mut Table, homes: &Homes, zone: &TimeZone, draft: &Draft, notes: &mut Notes) -> Job {
    let key = table.path("").trim_end_matches('.').to_owned();
    let id = table.text("id").unwrap_or_default();
    let is_script = table.flag("no_agent") == Some(true) || table.text("script").is_some();
    let state = table.text("state");
    let off = match state.as_deref() {
        _ if is_script => Some("it runs a script, and the agent behind Rejoinder must do that".to_owned()),
        Some("paused" | "completed" | "error") => Some("it does not run there, either".to_owned()),
        _ => (table.flag("enabled") == Some(false)).then(|| "it is switched off there".to_owned()),
    };
    let is_used = |value: Option<Value>| match value {
        Some(Value::Array(values)) => !values.is_empty(),
        Some(Value::String(text)) => !text.is_empty(),
        _ => false,
    };
    if is_used(table.take("skills")) || is_used(table.take("skill")) {
        notes.add(&key, "loads skills", "say in its prompt what the agent is to use");
    }
    if is_used(table.take("model")) {
        notes.add(&key, "names a model", "another agent for the schedule: `agent`");
    }
    let is_recurring =
        table.rest().get("schedule").and_then(|schedule| schedule.get("kind")).is_some_and(|kind| kind != "once");
    if is_recurring && table.enter("repeat").and_then(|repeat| repeat.number("times")).is_some() {
        notes.add(&key, "ends after a number of runs", "remove it in time with `rejoinder schedule`");
    }
    let (to, is_mute) = target(table, &key, homes, draft, notes);
    let (when, prompt) = (when(table, zone), table.text("prompt"));
    Job { key, name: table.text("name").unwrap_or(id), when, time_zone: None, to, is_mute, prompt, off }
}

fn when(table: &mut Table, zone: &TimeZone) -> Result<When, String> {
    let when = table.enter("schedule").and_then(|schedule| match schedule.text("kind").as_deref() {
        Some("once") => schedule.text("run_at").and_then(|at| time(&at, zone)).map(When::At),
        Some("interval") => schedule.number("minutes").map(|minutes| When::Every(minutes.saturating_mul(60))),
        Some("cron") => schedule.text("expr").map(When::Cron),
        _ => None,
    });
    when.ok_or_else(|| "its time cannot be read".to_owned())
}

/// The first conversation that it is delivered to, and whether it is delivered nowhere.
fn target(
    table: &mut Table,
    key: &str,
    homes: &Homes,
    draft: &Draft,
    notes: &mut Notes,
) -> (Result<String, String>, bool) {
    let origin = table.enter("origin").and_then(|origin| {
        let (platform, chat, thread) = (origin.text("platform")?, origin.text("chat_id")?, origin.text("thread_id"));
        Some((platform, thread.map_or_else(|| chat.clone(), |thread| format!("{chat}:{thread}"))))
    });
    let targets: Vec<_> = table.list("deliver").unwrap_or_default().iter().flat_map(|target| words(target)).collect();
    if targets.len() > 1 {
        notes.add(
            key,
            "is delivered to several chats",
            "a schedule for each, or one for a role: `to = \"role:owner\"`",
        );
    }
    let target = targets.first().map_or("origin", String::as_str);
    let unknown = || Err("it does not say which chat it is for".to_owned());
    match target {
        "local" => {
            (Err("its answer is only kept in a file: name a place of [channels.words] in words_to".to_owned()), true)
        }
        "origin" => {
            (origin.map_or_else(unknown, |(platform, chat)| conversation(draft, &platform, "main", &chat)), false)
        }
        target => {
            let (platform, chat) = target.split_once(':').unwrap_or((target, ""));
            let home = homes.get(platform).map(String::as_str);
            let chat = Some(chat).filter(|chat| !chat.is_empty()).or(home);
            (chat.map_or_else(unknown, |chat| conversation(draft, platform, "main", chat)), false)
        }
    }
}
