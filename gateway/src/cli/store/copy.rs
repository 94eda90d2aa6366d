//! `rejoinder store copy`: moves the store from SQLite to PostgreSQL, or back.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf, absolute},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, bail};
use clap::Args;
use rejoinder_core::SystemClock;
use rejoinder_store::{CopiedTable, CopyEnd, CopyProgress, CopyReport, PostgresOptions, StoreCopy};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use tokio::time::Instant;

use crate::{
    cli::{global::Global, options::Printing},
    console::{failure::Failure, output},
};

/// How often it says how far it is.
const TICK: Duration = Duration::from_secs(5);

pub(super) const HELP: &str = "\
FROM and TO are sqlite:FILE or postgres://USER@HOST/DATABASE. A relative FILE starts at the current directory; FROM is
looked for in the data directory if it is not there. If both have one, write its whole path. The password of PostgreSQL
may be in ~/.pgpass or PGPASSWORD. TO is a file that does not exist, or an empty database.

The gateway may run. Then the copy is not finished: stop the gateway and repeat the command, which copies what has
changed. Each run reads both databases whole: one before the last, while the gateway runs, shows how long that takes. A
copy that was interrupted goes on in the same way. Until it is finished, no gateway can use TO. FROM stays as it is.

Examples:
  rejoinder store copy sqlite:rejoinder.db postgres://rejoinder@db.example.org/rejoinder
  rejoinder store copy postgres://rejoinder@db.example.org/rejoinder sqlite:moved.db";

#[derive(Debug, Args)]
pub(in crate::cli) struct CopyStore {
    /// The store that is copied
    #[arg(value_parser = Url::parse)]
    from: Url,
    /// Where the copy is made
    #[arg(value_parser = Url::parse)]
    to: Url,
    #[command(flatten)]
    printing: Printing,
}

/// The URL of a database. That of PostgreSQL may have a password.
#[derive(Clone, Debug)]
enum Url {
    Sqlite(PathBuf),
    Postgres(SecretString),
}

impl Url {
    fn parse(text: &str) -> Result<Self, &'static str> {
        if ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Ok(Self::Postgres(text.into()));
        }
        let path = text.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path));
        match path {
            Some(path) if !(path.is_empty() || path == ":memory:" || path.ends_with('/') || path.contains('?')) => {
                Ok(Self::Sqlite(path.into()))
            }
            _ => Err("write sqlite:FILE, or postgres://USER@HOST/DATABASE"),
        }
    }

    /// What is copied. A file that is not found from the current directory on is one of the data directory.
    fn source(&self, global: &Global) -> Result<CopyEnd, Failure> {
        match self {
            Self::Sqlite(path) if !path.exists() => Ok(CopyEnd::Sqlite(global.data_dir()?.join(path))),
            Self::Sqlite(path) => {
                if let Ok(folder) = global.data_dir() {
                    check_only(path, &folder.join(path))?;
                }
                self.target()
            }
            Self::Postgres(_) => self.target(),
        }
    }

    /// Where the copy is made.
    fn target(&self) -> Result<CopyEnd, Failure> {
        Ok(match self {
            Self::Sqlite(path) => CopyEnd::Sqlite(absolute(path).context("the working directory is unknown")?),
            Self::Postgres(url) => CopyEnd::Postgres(PostgresOptions::new(url.expose_secret(), Arc::new(SystemClock))),
        })
    }
}

/// Refuses a file of which there is another one in the data directory. A run that is repeated elsewhere would copy the other one, and
/// remove from the copy what that one lacks.
fn check_only(here: &Path, stored: &Path) -> anyhow::Result<()> {
    match (here.canonicalize(), stored.canonicalize()) {
        (Ok(here), Ok(stored)) if here != stored => {
            bail!("{} and {} are there: write the whole path of the one to copy", here.display(), stored.display())
        }
        _ => Ok(()),
    }
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct CopyItem {
    from: String,
    to: String,
    finished: bool,
    tables: Vec<TableItem>,
}

#[derive(Debug, Serialize)]
struct TableItem {
    table: &'static str,
    rows: usize,
    written: usize,
    removed: usize,
    left_out: usize,
    sha256: String,
}

impl CopyStore {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let copy = StoreCopy::new(self.from.source(global)?, self.to.target()?);
        let mut told = Instant::now();
        let tell = |CopyProgress { table, rows }| {
            if told.elapsed() >= TICK {
                told = Instant::now();
                output::remark(format_args!("copying {table}: {rows} rows are there"));
            }
        };
        let report = copy.run(tell).await.map_err(anyhow::Error::new)?;
        self.printing.print(&item(report), text)
    }
}

fn item(report: CopyReport) -> CopyItem {
    let CopyReport { from, to, tables, is_finished } = report;
    let table = |CopiedTable { name, rows, written, removed, left_out, digest }| {
        let sha256 = digest.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        TableItem { table: name, rows, written, removed, left_out, sha256 }
    };
    CopyItem { from, to, finished: is_finished, tables: tables.into_iter().map(table).collect() }
}

fn text(item: &CopyItem) -> String {
    let CopyItem { from, to, finished, tables } = item;
    let row = |table: &TableItem| {
        let TableItem { table, rows, written, removed, sha256, .. } = table;
        [(*table).to_owned(), rows.to_string(), written.to_string(), removed.to_string(), sha256[..16].to_owned()]
    };
    let rows: Vec<_> = tables.iter().map(row).collect();
    let mut text = output::table(["TABLE", "ROWS", "WRITTEN", "REMOVED", "SHA-256"], &rows);
    for TableItem { table, left_out, .. } in tables.iter().filter(|table| table.left_out > 0) {
        let _ = write!(text, "\nNot copied: {left_out} rows of {table}, whose ids contain U+0000.");
    }
    let _ = if *finished {
        write!(
            text,
            "\n\n{to} has all of {from}: each row was read back, and the digests are those of both. Next: set [store] \
             url, and start the gateway. It indexes what was said anew, so that the search finds all after a while."
        )
    } else {
        write!(
            text,
            "\n\nNot finished: a gateway uses {from}. Stop it, and repeat the command. It copies what has changed."
        )
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_file_or_a_server() {
        assert!(matches!(Url::parse("sqlite:a.db"), Ok(Url::Sqlite(path)) if path == Path::new("a.db")));
        assert!(matches!(Url::parse("sqlite:///x/a.db"), Ok(Url::Sqlite(path)) if path == Path::new("/x/a.db")));
        for wrong in ["a.db", "sqlite:", "sqlite::memory:", "sqlite:x/", "sqlite:a.db?mode=ro", "mysql://a/b"] {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
        let url = Url::parse("postgresql://ann:hidden@db/chats").expect("it is one");
        assert!(!format!("{url:?}").contains("hidden"), "{url:?}");
    }

    #[test]
    fn a_file_is_not_copied_if_it_may_be_another_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, other, missing] = ["one.db", "other.db", "missing.db"].map(|name| folder.path().join(name));
        for path in [&one, &other] {
            std::fs::write(path, "").expect("it is written");
        }

        assert!(check_only(&one, &one).is_ok() && check_only(&one, &missing).is_ok());
        let refused = check_only(&one, &other).expect_err("it is refused").to_string();
        assert!(refused.contains("one.db") && refused.contains("other.db"), "{refused}");
    }

    #[test]
    fn a_report_says_what_is_left_to_do() {
        let table = CopiedTable { name: "turns", rows: 3, written: 2, removed: 1, left_out: 0, digest: [0xab; 32] };
        let report = |is_finished, left_out| CopyReport {
            from: "sqlite:/x/a.db".to_owned(),
            to: "chats at db:5432".to_owned(),
            tables: vec![CopiedTable { left_out, ..table.clone() }],
            is_finished,
        };

        let begun = text(&item(report(false, 7)));
        let done = text(&item(report(true, 0)));

        assert!(begun.contains("Not copied: 7 rows of turns") && begun.contains("Stop it"), "{begun}");
        assert!(done.contains("abababababababab") && done.contains("set [store] url"), "{done}");
        assert!(!done.contains("Not copied") && !done.contains("Stop it"), "{done}");
    }
}
