//! `rejoinder backup` and `rejoinder restore`.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use rejoinder_core::{
    Clock, SystemClock,
    store::{OperatorStore, PeopleStore, TokenRecord, TokenStore},
};
use rejoinder_store::SqliteStore;

use super::{
    global::Global,
    options::Printing,
    store::{file_size, size},
};
use crate::{
    backup::{self, DataPaths},
    console::{command::shell_quoted, failure::Failure, output},
    time::rfc3339,
};

#[derive(Debug, Args)]
pub(super) struct Backup {
    /// The file to write; it must not exist
    file: PathBuf,
    #[command(flatten)]
    printing: Printing,
}

#[derive(Debug, Args)]
pub(super) struct Restore {
    /// The backup
    file: PathBuf,
}

pub(super) const BACKUP_HELP: &str = "\
For an SQLite database; of one of PostgreSQL it names pg_dump. The gateway may run. The backup is the database as it is at one
moment, the tokens in the data directory, the keys of Matrix accounts and the files of words (words_to), in one compressed tar
archive that only you can read; it is as secret as they are. The configuration file is not part of it. It is read once after it
was written, to check it. While it is made, the folder needs room for a copy of the database as well.

Examples:
  rejoinder backup /var/backups/rejoinder-$(date +%F).tar.gz
  rejoinder restore /var/backups/rejoinder-2026-11-23.tar.gz --data /var/lib/rejoinder";

pub(super) const RESTORE_HELP: &str = "\
Restores into a data directory in which no gateway has stored anything; the gateway must not run. Everything is checked before the
first file is put into place; if it is interrupted, nothing is changed, or the next start completes it. Turns that were open when the backup was made are owed again: at the start they are answered, also if
they had been answered after the backup. It says how many tokens and people it lets in, also those that were revoked after the backup;
nobody is signed in to the operator's page.";

/// `instead` says what to do with a PostgreSQL database of this URL.
fn paths(global: &Global, instead: impl FnOnce(&str) -> String) -> Result<DataPaths, Failure> {
    let (store, data_dir) = (rejoinder_config::load_store(&global.options()?)?, global.data_dir()?);
    if let Some(database) = store.url.file(&data_dir) {
        return Ok(DataPaths { database, data_dir });
    }
    let url = shell_quoted(Path::new(&store.url.to_string()));
    Err(anyhow!("this is for SQLite, and the database is of PostgreSQL: {}", instead(&url)).into())
}

impl Backup {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let file = shell_quoted(&self.file);
        let paths = paths(global, |url| {
            format!(
                "save it with pg_dump --format=custom --file={file} --dbname={url}, and save the data directory as well, which \
                 has tokens"
            )
        })?;
        if self.file.symlink_metadata().is_ok() {
            return Err(anyhow!("{} exists: name a new file", self.file.display()).into());
        }
        let manifest = backup::write(&paths, &self.file, rfc3339(SystemClock.now())).await?;
        self.printing.print(&manifest, |manifest| {
            let (count, bytes) = (manifest.count(), size(manifest.bytes()));
            let compressed = size(file_size(&self.file));
            format!("{}: {count} files with {bytes}, {compressed} compressed; checked.", self.file.display())
        })
    }
}

impl Restore {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let file = shell_quoted(&self.file);
        let paths = paths(global, |url| {
            format!("stop its gateways, and restore it with pg_restore --clean --if-exists --dbname={url} {file}")
        })?;
        let manifest = backup::restore(&self.file, &paths).await?;
        let restored = format!(
            "Restored {} files of {}, made by version {}, into {}.",
            manifest.count(),
            manifest.created_at,
            manifest.version,
            paths.data_dir.display()
        );
        output::print(format!(
            "{restored}\n{}\nNext: rejoinder doctor, then rejoinder run.",
            open(&paths.database).await?
        ))
    }
}

/// The people that a restored database lets in, and how to repeat revocations since the backup.
fn let_in(tokens: usize, people: usize) -> String {
    let number = |count, one: &str, many: &str| match count {
        0 => format!("no {many}"),
        1 => format!("one {one}"),
        count => format!("{count} {many}"),
    };
    let (tokens, people) = (number(tokens, "token", "tokens"), number(people, "person", "people"));
    format!(
        "It lets in {tokens} (rejoinder tokens list) and {people} (rejoinder people list), also those that were revoked after \
         the backup: revoke them again. Nobody is signed in to the operator's page."
    )
}

/// The owed turns of a database, and the people that it lets in.
async fn open(database: &Path) -> Result<String, Failure> {
    let store = match SqliteStore::open_read_only(database).await {
        Ok(store) => store,
        Err(rejoinder_store::OpenError::Older { .. }) => {
            return Ok("It is of an older version: the first start brings it up to date.".to_owned());
        }
        Err(error) => return Err(anyhow::Error::new(error).into()),
    };
    let open = match store.backlog().await.context("cannot read the turns")?.open {
        0 => "Nothing is owed.".to_owned(),
        1 => "One turn was open: it is answered at the start.".to_owned(),
        open => format!("{open} turns were open: they are answered at the start."),
    };
    let (tokens, people) = (store.tokens().await, store.people().await);
    let (tokens, people) = (tokens.context("cannot read the tokens")?, people.context("cannot read the people")?);
    let now = SystemClock.now();
    let is_valid = |token: &&TokenRecord| token.revoked_at.is_none() && token.expires_at.is_none_or(|at| at > now);
    Ok(format!("{open}\n{}", let_in(tokens.iter().filter(is_valid).count(), people.len())))
}
