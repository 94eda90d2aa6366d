//! Cron jobs.
//!
//! Sources, in the repository openclaw/openclaw: `src/cron/types.ts`, `docs/automation/cron-jobs.md`.

use std::{collections::BTreeSet, path::Path};

use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

use super::{database, secrets::Secrets};
use crate::cli::import::{
    draft::{Draft, Names},
    jobs::{Job, When, conversation, time},
    notes::{Notes, SCHEDULES},
    source,
    table::{Table, as_table},
};

/// Where jobs were before OpenClaw 2026.6.1.
const FILE: &str = "cron/jobs.json";

/// How the keys of the jobs begin that OpenClaw 2026.9.6 makes for itself.
const OWN: &[&str] = &["heartbeat:", "memory-core:", "openclaw-backup-", "skill-collection-review:"];

/// Adds a section for each job: in the database, and in `cron/jobs.json` if it is not in the database.
pub(super) fn read(
    root: &mut Table,
    secrets: &Secrets<'_>,
    now: Timestamp,
    draft: &mut Draft,
    notes: &mut Notes,
) -> anyhow::Result<()> {
    let (mut store, mut is_enabled) = (None, true);
    if let Some(cron) = root.enter("cron") {
        store = cron.text("store");
        is_enabled = cron.flag("enabled") != Some(false);
    }
    let (file, database) = (secrets.path(store.as_deref().unwrap_or(FILE)), secrets.folder.join(database::FILE));
    let has_database = database.is_file();
    let mut tables =
        if has_database { database::jobs(&database, &file, notes).unwrap_or_default() } else { Vec::new() };
    let known: BTreeSet<_> = tables.iter().filter_map(id).collect();
    let current = tables.len();
    let left_over = in_file(&file)?;
    if has_database && !left_over.is_empty() {
        let why = format!("is left over: since 2026.6.1 OpenClaw keeps its jobs in {}", database::FILE);
        notes.add(FILE, why, "nothing: jobs that are in it alone are comments in the file");
    }
    tables.extend(left_over.into_iter().filter(|job| id(job).is_none_or(|id| !known.contains(&id))));
    let mut names = Names::default();
    for (index, mut table) in tables.into_iter().enumerate() {
        if is_own(&table) {
            notes.add("cron", "has jobs of OpenClaw itself, such as its heartbeat", SCHEDULES);
            continue;
        }
        let mut job = self::job(&mut table, draft, notes);
        if !is_enabled {
            job.off.get_or_insert_with(|| "jobs are switched off there".to_owned());
        }
        if has_database && index >= current {
            job.off.get_or_insert_with(|| "it is from before OpenClaw kept jobs in a database".to_owned());
        }
        let block = job.block(&mut names, now, notes);
        draft.blocks.push(block);
    }
    Ok(())
}

/// The jobs in `cron/jobs.json`; none if there is no such file.
fn in_file(file: &Path) -> anyhow::Result<Vec<Table>> {
    let Some(value) = source::json5(file)? else { return Ok(Vec::new()) };
    let Value::Object(content) = value else { anyhow::bail!("{}: the file is not a table", file.display()) };
    Ok(Table::new(FILE, content).tables("jobs").into_iter().map(|(_, job)| job).collect())
}

fn id(table: &Table) -> Option<String> {
    table.rest().get("id").and_then(Value::as_str).map(str::to_owned)
}

fn is_own(table: &Table) -> bool {
    let key = table.rest().get("declarationKey").and_then(Value::as_str);
    key.is_some_and(|key| OWN.iter().any(|own| key.starts_with(own)))
}

fn job(table: &mut Table, draft: &Draft, notes: &mut Notes) -> Job {
    let id = table.text("id").unwrap_or_default();
    let key = table.path("");
    let key = key.trim_end_matches('.').to_owned();
    let mut payload = table.take("payload").map(|payload| Table::new(&table.path("payload"), as_table(payload)));
    let prompt = payload.as_mut().and_then(|payload| payload.text("message").or_else(|| payload.text("text")));
    let overridden = payload
        .as_ref()
        .is_some_and(|payload| ["model", "thinking", "timeoutSeconds"].iter().any(|name| payload.has(name)));
    if overridden {
        notes.add(
            &format!("{key}.payload"),
            "names a model or its settings",
            "another agent for the schedule: `agent`",
        );
    }
    let (when, time_zone) = when(table);
    let (to, is_mute) = target(table, payload.as_mut(), draft);
    let kind = payload.as_mut().and_then(|payload| payload.text("kind"));
    let off = if table.flag("enabled") == Some(false) {
        Some("it is switched off there")
    } else if table.has("trigger") {
        Some("it runs only when a script there says so")
    } else if matches!(kind.as_deref(), Some("command" | "script")) {
        Some("it runs a program, not an agent")
    } else {
        None
    };
    Job {
        key,
        name: table.text("name").unwrap_or(id),
        when,
        time_zone,
        to,
        is_mute,
        prompt,
        off: off.map(str::to_owned),
    }
}

fn when(table: &mut Table) -> (Result<When, String>, Option<String>) {
    let unknown = || Err("its time cannot be read".to_owned());
    let Some(schedule) = table.enter("schedule") else { return (unknown(), None) };
    let time_zone = schedule.text("tz");
    let when = match schedule.text("kind").as_deref() {
        // A time without a zone is in UTC there.
        Some("at") => schedule.text("at").and_then(|at| time(&at, &TimeZone::UTC)).map(When::At),
        Some("every") => schedule.number("everyMs").map(|milliseconds| When::Every(milliseconds / 1000)),
        Some("cron") => schedule.text("expr").map(When::Cron),
        _ => None,
    };
    (when.map_or_else(unknown, Ok), time_zone)
}

/// The conversation, and whether nothing is to be said in it.
fn target(table: &mut Table, payload: Option<&mut Table>, draft: &Draft) -> (Result<String, String>, bool) {
    let delivery = match table.enter("delivery") {
        Some(delivery) => Some(delivery),
        // Where it stood in older files.
        None => payload,
    };
    let Some(delivery) = delivery else { return (Err("it does not say which chat it is for".to_owned()), false) };
    let mode = delivery.text("mode");
    let (channel, to, account) = (delivery.text("channel"), delivery.text("to"), delivery.text("accountId"));
    // A topic on Telegram (`openclaw cron add --thread-id`).
    let to = match (to, delivery.text("threadId")) {
        (Some(to), Some(thread)) if channel.as_deref() == Some("telegram") && !to.contains(":topic:") => {
            Some(format!("{to}:topic:{thread}"))
        }
        (to, _) => to,
    };
    let is_mute = mode.as_deref() == Some("none");
    if mode.as_deref() == Some("webhook") {
        return (Err("its answer goes to a URL: name a place of [channels.words] in words_to".to_owned()), false);
    }
    let to = match (channel, to) {
        (Some(channel), Some(to)) if channel != "last" => {
            conversation(draft, &channel, &draft.account(&channel, &account.unwrap_or_default()), &to)
        }
        _ => Err("it does not say which chat it is for".to_owned()),
    };
    (to, is_mute)
}
