//! The database in which OpenClaw keeps its jobs since its version 2026.6.1.
//!
//! Sources: the package `openclaw` on npm, versions 2026.6.1 and 2026.9.6, there `CREATE TABLE IF NOT EXISTS cron_jobs` and
//! `bindCronJobRow`; a database that the gateway 2026.9.6 made. `job_json` is a job as it stood in `cron/jobs.json`, and
//! `store_key` the absolute path that this file had.

use std::path::Path;

use rejoinder_store::{ForeignRow, read_foreign};
use serde_json::Value;

use crate::cli::import::{
    notes::{Notes, SCHEDULES},
    source,
    table::Table,
};

/// Where it is below OpenClaw's folder.
pub(super) const FILE: &str = "state/openclaw.sqlite";

/// The `user_version` of OpenClaw 2026.9.6.
const KNOWN_VERSION: u64 = 18;

/// As many bytes as a file may have.
const MAX_BYTES: usize = 4 * 1024 * 1024;

const VERSION: &str = "select user_version from pragma_user_version";

/// The store, the rank and the text of each job; a text of more than 256 KiB is left out. SQLite does not sort them: it would keep
/// all of them at once.
const JOBS: &str = "select case when octet_length(store_key) <= 4096 then store_key end,
        cast(sort_order as integer),
        case when octet_length(job_json) <= 262144 then job_json end
    from cron_jobs";

/// The jobs in the database at `path`; `None` if it cannot be read, which is noted. `store` is the path of `cron/jobs.json`.
pub(super) fn jobs(path: &Path, store: &Path, notes: &mut Notes) -> Option<Vec<Table>> {
    let read = read_foreign(path, VERSION, MAX_BYTES);
    let (version, rows) = match read.and_then(|version| Ok((version, read_foreign(path, JOBS, MAX_BYTES)?))) {
        Ok(read) => read,
        Err(error) => {
            let instead = "`openclaw cron list` shows the jobs in it: write them into [schedules] (docs/schedules.md)";
            notes.add(FILE, format!("could not be read: {:#}", anyhow::Error::new(error)), instead);
            return None;
        }
    };
    let version = version.into_iter().flatten().flatten().next().and_then(|version| version.parse().ok());
    if version.is_none_or(|version: u64| version > KNOWN_VERSION) {
        let why = "is from a newer OpenClaw than this program knows";
        notes.add(FILE, why, "compare [schedules] in the file with `openclaw cron list`");
    }
    let texts = of_store(rows, store, notes).into_iter().enumerate();
    Some(texts.filter_map(|(index, job)| table(index, job.as_deref(), notes)).collect())
}

/// The texts of the jobs of one store, in their order: of `store`, or of the only one if the folder was moved here.
fn of_store(mut rows: Vec<ForeignRow>, store: &Path, notes: &mut Notes) -> Vec<Option<String>> {
    rows.sort_by_key(|row| row.get(1).cloned().flatten().and_then(|rank| rank.parse::<i64>().ok()));
    let key = |row: &ForeignRow| row.first().cloned().flatten();
    let own = store.to_str().filter(|store| rows.iter().any(|row| key(row).as_deref() == Some(*store)));
    let chosen = own.map(str::to_owned).or(rows.first().and_then(key));
    if rows.iter().any(|row| key(row) != chosen) {
        let chosen = chosen.as_deref().unwrap_or("the first");
        notes.add(FILE, format!("has jobs of several stores, of which only those of {chosen} were read"), SCHEDULES);
    }
    rows.retain(|row| key(row) == chosen);
    rows.into_iter().map(|mut row| row.pop().flatten()).collect()
}

/// A job as a table, unless it is none, which is noted.
fn table(index: usize, job: Option<&str>, notes: &mut Notes) -> Option<Table> {
    let path = format!("{FILE}.cron_jobs[{index}]");
    let Some(Value::Object(job)) = job.and_then(source::json5_value) else {
        notes.add(&path, "is no job that can be read, or is larger than 256 KiB", SCHEDULES);
        return None;
    };
    Some(Table::new(&path, job))
}
