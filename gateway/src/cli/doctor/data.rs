//! Checks of the data directory and its database.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use anyhow::Error;
use rejoinder_core::store::Backlog;
use rejoinder_store::beside;

use rustix::fs::{Access, access};

use super::fix::{Fixer, OTHERS, Remedy};
use crate::{
    backup,
    console::finding::Finding,
    disk::Room,
    exposure::{Exposure, readable_folder, writable_above},
    gateway::ADDRESS_FILE,
    location::{StoreLocation, Unopened},
};

const ABOUT: &str = "data";
const ABOUT_DATABASE: &str = "database";

/// How the names of generated secrets end, and of what else is for one person.
const SECRETS: [&str; 4] = ["-token", "-key", "-conversation", "-history"];

/// How much disk space should be free, in bytes.
const MIN_FREE_SPACE: u64 = 256 << 20;

pub(super) struct Database {
    location: StoreLocation,
    /// Whether a gateway with this data directory uses it.
    is_held: io::Result<bool>,
}

impl Database {
    pub(super) fn of(location: StoreLocation) -> Self {
        Self { is_held: location.is_in_use(), location }
    }

    /// Whether a gateway uses it; `false` when that is unknown.
    pub(super) fn is_held(&self) -> bool {
        self.is_held.as_ref().is_ok_and(|is_held| *is_held)
    }
}

pub(super) async fn check(data_dir: &Path, database: &Database, fixer: Fixer) -> Vec<Finding> {
    let mut findings = check_directory(data_dir, fixer);
    let file = database.location.file();
    if let Some(folder) = file.and_then(Path::parent).filter(|folder| *folder != data_dir) {
        findings.extend(check_directory(folder, fixer));
    }
    findings.extend(check_files(data_dir, database.location.locked_file(), fixer));
    findings.extend(check_address(data_dir, database, fixer));
    findings.extend(check_database(data_dir, database).await);
    findings
}

/// One finding; if it was fixed, also what is found then.
fn check_directory(path: &Path, fixer: Fixer) -> Vec<Finding> {
    let finding = examine_directory(path, fixer);
    let again = finding.fixed.then(|| examine_directory(path, fixer));
    std::iter::once(finding).chain(again).collect()
}

fn examine_directory(path: &Path, fixer: Fixer) -> Finding {
    let shown = path.display();
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return check_missing_directory(path),
        Err(error) => return Finding::wrong(ABOUT, format!("{shown} cannot be read: {error}")).with_advice(ELSEWHERE),
    };
    if !metadata.is_dir() {
        return Finding::wrong(ABOUT, format!("{shown} is not a directory")).with_advice(ELSEWHERE);
    }
    if let Err(error) = access(path, Access::WRITE_OK | Access::EXEC_OK) {
        let what = format!("{shown} is not writable: {}", io::Error::from(error));
        return Finding::wrong(ABOUT, what)
            .with_advice("Give the gateway's user write access, or run this as that user.");
    }
    if let Some(above) = writable_above(path) {
        let above = above.display();
        let what = format!(
            "other users of this machine can write to {above}, so they could replace {shown}, and the gateway does not start"
        );
        return Finding::wrong(ABOUT, what).with_advice(format!("Run chmod go-w {above}."));
    }
    let treat = |finding: Finding| {
        let finding = finding.with_advice(format!("Run chmod 700 {shown}."));
        fixer.treat(finding, Remedy::Close { path, bits: OTHERS })
    };
    match Exposure::of(path) {
        Exposure::Writable => {
            let what =
                format!("other users of this machine can write to {shown}, so the gateway does not start with it");
            return treat(Finding::wrong(ABOUT, what));
        }
        Exposure::Readable => return treat(Finding::warning(ABOUT, readable_folder(path))),
        Exposure::Closed => {}
    }
    match Room::of(path).map(|room| room.free) {
        Ok(room) if room < MIN_FREE_SPACE => low_disk_space(path, room),
        _ => Finding::ok(ABOUT, shown.to_string()),
    }
}

const ELSEWHERE: &str = "Choose another directory with --data or REJOINDER_DATA, or repair this one.";

/// Whether a missing directory could be created.
fn check_missing_directory(path: &Path) -> Finding {
    let shown = path.display();
    let parent = path.ancestors().skip(1).find(|folder| folder.exists());
    match parent.map(|parent| (parent, access(parent, Access::WRITE_OK | Access::EXEC_OK))) {
        Some((parent, Ok(()))) if parent.is_dir() => {
            Finding::ok(ABOUT, format!("{shown} does not exist yet: the gateway creates it at its first start"))
        }
        _ => Finding::wrong(ABOUT, format!("{shown} does not exist, and this user cannot create it"))
            .with_advice(ELSEWHERE),
    }
}

fn low_disk_space(path: &Path, room: u64) -> Finding {
    let what = format!("{} has {} MiB left on its disk", path.display(), room >> 20);
    Finding::warning(ABOUT, what).with_advice("Free some disk space: a gateway that cannot write accepts no messages.")
}

/// Files with conversations and tokens that other users can open. In a folder that is closed they cannot.
fn check_files(data_dir: &Path, database: &Path, fixer: Fixer) -> Vec<Finding> {
    let of_database = ["", "-wal", "-shm"].map(|ending| beside(database, ending));
    let in_data_dir = data_dir.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let is_secret = |path: &PathBuf| SECRETS.iter().any(|ending| path.to_string_lossy().ends_with(ending));
    let secrets: BTreeSet<_> = in_data_dir.filter(is_secret).collect();
    let treat = |path: PathBuf| {
        let finding = file_finding(&path)?;
        Some(fixer.treat(finding, Remedy::Close { path: &path, bits: OTHERS }))
    };
    of_database.into_iter().chain(secrets).filter(|path| path.is_file()).filter_map(treat).collect()
}

fn file_finding(path: &Path) -> Option<Finding> {
    let shown = path.display();
    let finding = match Exposure::of(path) {
        Exposure::Closed => return None,
        Exposure::Readable => Finding::warning(ABOUT, format!("other users of this machine can open {shown}")),
        Exposure::Writable => Finding::wrong(ABOUT, format!("other users of this machine can write to {shown}")),
    };
    Some(finding.with_advice(format!("Run chmod 600 {shown}.")))
}

/// The address of a killed gateway: its readers take any program that listens there now for the gateway.
fn check_address(data_dir: &Path, database: &Database, fixer: Fixer) -> Option<Finding> {
    let path = data_dir.join(ADDRESS_FILE);
    if !path.exists() || !matches!(database.is_held, Ok(false)) {
        return None;
    }
    let shown = path.display();
    let what = format!("no gateway runs, but the address of one is in {shown}");
    let finding = Finding::warning(ABOUT, what).with_advice(format!("Run rm {shown}."));
    Some(fixer.treat(finding, Remedy::RemoveAddress { path: &path, database: database.location.locked_file() }))
}

async fn check_database(data_dir: &Path, database: &Database) -> Vec<Finding> {
    let location = &database.location;
    let holder = match (&database.is_held, location.file()) {
        (Ok(true), Some(_)) => "a gateway uses it",
        (Ok(false), Some(_)) => "no gateway uses it",
        (Ok(true), None) => "a gateway with this data directory uses it",
        (Ok(false), None) => "no gateway with this data directory uses it",
        (Err(error), _) => {
            let what = format!("cannot tell whether a gateway uses {location}: {error}");
            return vec![Finding::wrong(ABOUT_DATABASE, what).with_advice("Run this as the gateway's user.")];
        }
    };
    if location.file().is_some() && backup::is_being_restored(data_dir) {
        let what = format!("a restore into {} was interrupted", data_dir.display());
        let advice = "The next start completes it, and so does rejoinder restore with the same backup.";
        return vec![Finding::warning(ABOUT_DATABASE, what).with_advice(advice)];
    }
    let store = match location.open_read_only().await {
        Ok(store) => store,
        Err(error) => return vec![unopened(&error, database)],
    };
    let counted = store.backlog().await;
    store.close().await;
    match counted {
        Ok(counts) => {
            let schema = location.schema_version();
            let open = counts.open;
            let what = format!("{location}, schema version {schema}; {holder}; {} owed an answer", turns(open));
            let mut findings = vec![Finding::ok(ABOUT_DATABASE, what)];
            findings.extend(remarks(&counts, database.is_held()));
            findings
        }
        Err(error) => {
            let what = format!("{location} cannot be read: {error}");
            let advice = match location.file() {
                Some(_) => "Check the disk. If it is fine, restore a backup.",
                None => "Check the database's server: its log may say more.",
            };
            vec![Finding::wrong(ABOUT_DATABASE, what).with_advice(advice)]
        }
    }
}

/// What a database that cannot be opened means.
fn unopened(error: &Error, database: &Database) -> Finding {
    let (location, what) = (&database.location, format!("{error:#}"));
    match (Unopened::of(error), location.file()) {
        (Unopened::Missing, Some(_)) => {
            Finding::ok(ABOUT_DATABASE, format!("{location} does not exist yet: the gateway creates it"))
        }
        (Unopened::Missing, None) => Finding::ok(ABOUT_DATABASE, what),
        (Unopened::Older, _) if !database.is_held() => Finding::ok(ABOUT_DATABASE, what),
        (Unopened::Older, _) => Finding::warning(ABOUT_DATABASE, what)
            .with_advice("An older gateway uses it: restart that gateway with this version."),
        (Unopened::AsItSays, _) => Finding::wrong(ABOUT_DATABASE, what),
        (Unopened::User, _) => {
            Finding::wrong(ABOUT_DATABASE, what).with_advice("Check the user in store.url, and store.password.")
        }
        (Unopened::Otherwise, Some(_)) => Finding::wrong(ABOUT_DATABASE, what)
            .with_advice("Run this as the gateway's user, and check the disk. If both are fine, restore a backup."),
        (Unopened::Otherwise, None) => Finding::wrong(ABOUT_DATABASE, what)
            .with_advice("Check store.url, that the database's server runs, and that this machine reaches it."),
    }
}

fn remarks(backlog: &Backlog, is_held: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    match backlog.overdue {
        0 => {}
        overdue if is_held => {
            let advice = "See rejoinder turns list --state overdue, and the gateway's log.";
            findings.push(Finding::wrong(ABOUT_DATABASE, format!("{} overdue", turns(overdue))).with_advice(advice));
        }
        overdue => {
            let advice = "The gateway continues them when it starts. See rejoinder turns list --state overdue.";
            findings.push(Finding::warning(ABOUT_DATABASE, format!("{} overdue", turns(overdue))).with_advice(advice));
        }
    }
    if backlog.absent > 0 {
        let what = format!("{} waiting for a channel that is not configured", turns(backlog.absent));
        let advice = "Configure the channel again to have them answered. See rejoinder turns list --state absent.";
        findings.push(Finding::warning(ABOUT_DATABASE, what).with_advice(advice));
    }
    if backlog.undeliverable > 0 {
        let what = format!("{} undeliverable: every way of answering failed", turns(backlog.undeliverable));
        let advice = "See rejoinder dead-letters list; retry, redirect or discard them.";
        findings.push(Finding::wrong(ABOUT_DATABASE, what).with_advice(advice));
    }
    if backlog.dead_copies > 0 {
        let what = format!("callbacks of hooks were given up: {}", backlog.dead_copies);
        let advice = "See rejoinder dead-letters list; rejoinder dead-letters retry ID sends one again.";
        findings.push(Finding::warning(ABOUT_DATABASE, what).with_advice(advice));
    }
    findings
}

fn turns(count: u64) -> String {
    match count {
        0 => "no turn is".to_owned(),
        1 => "one turn is".to_owned(),
        _ => format!("{count} turns are"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::finding::Verdict;

    #[test]
    fn late_turns_are_wrong_only_while_a_gateway_runs() {
        let verdicts = |backlog: Backlog, is_held| {
            remarks(&backlog, is_held).into_iter().map(|finding| finding.verdict).collect::<Vec<_>>()
        };
        let overdue = Backlog { overdue: 1, ..Backlog::default() };

        assert_eq!(verdicts(Backlog::default(), true), []);
        assert_eq!(verdicts(overdue, true), [Verdict::Wrong]);
        assert_eq!(verdicts(overdue, false), [Verdict::Warning]);
        assert_eq!(verdicts(Backlog { undeliverable: 1, ..Backlog::default() }, true), [Verdict::Wrong]);
        assert_eq!(verdicts(Backlog { absent: 1, ..Backlog::default() }, true), [Verdict::Warning]);
        assert_eq!(verdicts(Backlog { dead_copies: 1, ..Backlog::default() }, true), [Verdict::Warning]);
    }

    #[test]
    fn a_full_disk_is_seen_before_it_is_full() {
        let finding = low_disk_space(Path::new("/data"), 3 << 20);

        assert_eq!((finding.verdict, finding.what.as_str()), (Verdict::Warning, "/data has 3 MiB left on its disk"));
    }
}
