//! Copies a store from one database to the other: from SQLite to PostgreSQL, or back.
//!
//! Table by table, the rows of both are read in the order of their keys, a page at a time. What the target lacks, or has otherwise, is
//! written and read back. So a copy that was interrupted goes on, and what has changed in the source meanwhile is copied by the next run:
//! a gateway may use the source during all but the last one. A run in which nobody writes to the source ends the copy. Until then the
//! target cannot be used as a store. As long as no gateway has opened it after that, another run checks and ends the copy once more.
//!
//! To add a table or a column, add it to `tables`. [`Side`] is what each database does.

use std::{collections::BTreeMap, path::PathBuf};

pub use crate::shared::copying::side::CopyError;
#[cfg(feature = "testing")]
use crate::shared::copying::tables::{Column, NOT_COPIED};
use crate::{
    postgres::{PostgresOptions, PostgresSide},
    shared::copying::{
        side::Side,
        tables::{Range, Row, TABLES, Table},
        values::{RowDigest, Value},
    },
    sqlite::SqliteSide,
};

/// A database that is copied, or into which another one is copied.
#[derive(Clone, Debug)]
pub enum CopyEnd {
    /// The path of the file.
    Sqlite(PathBuf),
    Postgres(PostgresOptions),
}

/// A copy of a store that is to be made, or has begun.
#[derive(Clone, Debug)]
pub struct StoreCopy {
    from: CopyEnd,
    to: CopyEnd,
    page: usize,
}

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// The table that is copied.
    pub table: &'static str,
    /// How many of its rows are the same now.
    pub rows: usize,
}

/// What a run has copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyReport {
    /// The databases, without user and password.
    pub from: String,
    pub to: String,
    pub tables: Vec<CopiedTable>,
    /// Whether the copy is done. Otherwise somebody wrote to the source: a later run copies that.
    pub is_finished: bool,
}

/// What a run has copied of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedTable {
    pub name: &'static str,
    /// How many rows the source has, and so the target.
    pub rows: usize,
    /// How many of them the target lacked, or had otherwise.
    pub written: usize,
    /// How many rows the target had besides.
    pub removed: usize,
    /// How many rows of the source were not copied, because PostgreSQL cannot store their key: it contains U+0000.
    pub left_out: usize,
    /// SHA-256 of the rows, the same for both.
    pub digest: [u8; 32],
}

impl StoreCopy {
    /// The copy of a store into an empty database: of PostgreSQL, or a file of SQLite that does not exist.
    #[must_use]
    pub fn new(from: CopyEnd, to: CopyEnd) -> Self {
        Self { from, to, page: usize::MAX }
    }

    /// Has at most so many rows of a table in memory at a time.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn in_pages_of(self, page: usize) -> Self {
        Self { page, ..self }
    }

    /// Copies what the target does not have yet. `progress` is told of each page.
    ///
    /// # Errors
    /// When a database cannot be used, or not for this. The copy goes on with the next run.
    pub async fn run(self, mut progress: impl FnMut(CopyProgress) + Send) -> Result<CopyReport, CopyError> {
        let Self { from, to, page } = self;
        match (from, to) {
            (CopyEnd::Sqlite(from), CopyEnd::Postgres(to)) => {
                let from = SqliteSide::source(&from).await?;
                let to = PostgresSide::target(&to, from.name()).await?;
                copy(from, to, page, &mut progress).await
            }
            (CopyEnd::Postgres(from), CopyEnd::Sqlite(to)) => {
                let from = PostgresSide::source(&from).await?;
                let to = SqliteSide::target(&to, from.name()).await?;
                copy(from, to, page, &mut progress).await
            }
            (CopyEnd::Sqlite(_), CopyEnd::Sqlite(_)) => Err(CopyError::BothSqlite),
            (CopyEnd::Postgres(_), CopyEnd::Postgres(_)) => Err(CopyError::BothPostgres),
        }
    }
}

async fn copy<F: Side, T: Side>(
    mut from: F,
    mut to: T,
    page: usize,
    progress: &mut (dyn FnMut(CopyProgress) + Send),
) -> Result<CopyReport, CopyError> {
    let is_finished = from.hold().await?;
    let (from_name, to_name) = (from.name().to_owned(), to.name().to_owned());
    let mut tables = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        tables.push(copy_table(&mut from, &mut to, table, page.min(table.page), progress).await?);
    }
    if is_finished {
        to.finish(from.last_line().await?).await?;
    } else {
        to.close().await?;
    }
    if let Err(error) = from.close().await {
        tracing::debug!(%error, "the source was not closed");
    }
    Ok(CopyReport { from: from_name, to: to_name, tables, is_finished })
}

async fn copy_table<F: Side, T: Side>(
    from: &mut F,
    to: &mut T,
    table: &'static Table,
    page: usize,
    progress: &mut (dyn FnMut(CopyProgress) + Send),
) -> Result<CopiedTable, CopyError> {
    let mut copied = CopiedTable { name: table.name, rows: 0, written: 0, removed: 0, left_out: 0, digest: [0; 32] };
    let mut digest = RowDigest::default();
    // The last key that was read, and the last one up to which both have the same.
    let (mut read, mut after): (Option<Row>, Option<Row>) = (None, None);
    loop {
        let found = from.rows(table, &Range { after: read.as_deref(), through: None }, page).await?;
        let is_last = found.len() < page;
        let mut rows = Vec::with_capacity(found.len());
        if let Some(last) = found.last() {
            read = Some(table.key(last).to_vec());
        }
        for row in found {
            if table.key(&row).iter().any(Value::has_nul) {
                copied.left_out += 1;
            } else {
                rows.push(settled(from.name(), table, row)?);
            }
        }
        let last = rows.last().map(|row| table.key(row).to_vec());
        // A page whose rows were all left out does not tell how far the target is the same.
        if last.is_some() || is_last {
            let through = if is_last { None } else { last };
            let range = Range { after: after.as_deref(), through: through.as_deref() };
            write_page(to, table, &range, &rows, page, &mut copied).await?;
            for row in &rows {
                digest.add(row);
            }
            copied.rows += rows.len();
            progress(CopyProgress { table: table.name, rows: copied.rows });
            after = through;
        }
        if is_last {
            return Ok(CopiedTable { digest: digest.finish(), ..copied });
        }
    }
}

/// Makes a range of the target the same as the source's, which has these rows there.
async fn write_page<T: Side>(
    to: &mut T,
    table: &'static Table,
    range: &Range<'_>,
    rows: &[Row],
    page: usize,
    copied: &mut CopiedTable,
) -> Result<(), CopyError> {
    let mut missing: BTreeMap<&[Value], &Row> = rows.iter().map(|row| (table.key(row), row)).collect();
    let mut is_changed = false;
    let mut last: Option<Row> = None;
    loop {
        let after = last.as_deref().or(range.after);
        let found = to.rows(table, &Range { after, ..*range }, page).await?;
        let is_last = found.len() < page;
        if let Some(row) = found.last() {
            last = Some(table.key(row).to_vec());
        }
        let mut gone = Vec::new();
        for row in found {
            let row = settled(to.name(), table, row)?;
            match missing.get(table.key(&row)) {
                Some(expected) if **expected == row => {
                    missing.remove(table.key(&row));
                }
                Some(_) => gone.push(row),
                None => {
                    copied.removed += 1;
                    gone.push(row);
                }
            }
        }
        if !gone.is_empty() {
            to.remove(table, &gone).await?;
            is_changed = true;
        }
        if is_last {
            break;
        }
    }
    let missing: Vec<&Row> = missing.into_values().collect();
    if !missing.is_empty() {
        to.insert(table, &missing).await?;
        copied.written += missing.len();
        is_changed = true;
    }
    if !is_changed {
        return Ok(());
    }
    let written = to.rows(table, range, rows.len() + 1).await?;
    let written: Vec<Row> =
        written.into_iter().map(|row| settled(to.name(), table, row)).collect::<Result<_, CopyError>>()?;
    if written == rows { Ok(()) } else { Err(CopyError::Differs { database: to.name().to_owned(), table: table.name }) }
}

/// A row as both databases can store it.
fn settled(database: &str, table: &'static Table, row: Row) -> Result<Row, CopyError> {
    let values = row.into_iter().zip(table.columns).map(|(value, column)| {
        value.settled(column.kind).map_err(|error| {
            let reason = format!("{} is not JSON: {error}", column.name);
            CopyError::Row { database: database.to_owned(), table: table.name, reason }
        })
    });
    values.collect()
}

/// A table that is copied, for a test that compares it with the schemas.
#[cfg(feature = "testing")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOfCopy {
    pub name: &'static str,
    pub keys: usize,
    /// The columns in SQLite, and in PostgreSQL.
    pub sqlite: Vec<&'static str>,
    pub postgres: Vec<&'static str>,
}

/// The tables that are copied.
#[cfg(feature = "testing")]
pub fn copied_tables() -> Vec<TableOfCopy> {
    let of = |table: &Table| TableOfCopy {
        name: table.name,
        keys: table.keys,
        sqlite: table.columns.iter().map(Column::in_sqlite).collect(),
        postgres: table.columns.iter().chain(table.derived()).map(|column| column.name).collect(),
    };
    TABLES.iter().map(of).collect()
}

/// The tables that are not copied.
#[cfg(feature = "testing")]
pub const fn tables_not_copied() -> &'static [&'static str] {
    &NOT_COPIED
}
