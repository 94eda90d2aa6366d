//! Options that several commands take.

use std::path::PathBuf;

use clap::Args;
use rejoinder_core::Store;
use rejoinder_store::SqliteStore;
use serde::Serialize;
use serde_json::Value;

use super::{global::Global, running::RunningGateway};
use crate::console::{failure::Failure, output};

#[derive(Debug, Args)]
pub(super) struct Printing {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Printing {
    /// Prints a result as JSON, or as `text`.
    pub(super) fn print<T: Serialize>(&self, result: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        if self.json { output::print_json(result) } else { output::print(text(result)) }
    }

    /// Prints what the running gateway has at `path`.
    pub(super) async fn print_from(
        &self,
        gateway: &RunningGateway,
        path: &str,
        text: fn(&Value) -> String,
    ) -> Result<(), Failure> {
        self.print(&gateway.get(path).await?, text)
    }
}

#[derive(Debug, Args, Serialize)]
pub(super) struct Reason {
    /// Why, for the audit
    #[arg(long)]
    pub(super) reason: Option<String>,
}

/// What commands take that only read.
#[derive(Debug, Args)]
pub(super) struct Reading {
    #[command(flatten)]
    pub(super) printing: Printing,
    #[command(flatten)]
    pub(super) database: Database,
}

#[derive(Debug, Default, Args)]
pub(super) struct Database {
    /// Use this database instead of the configured one; needs no configuration
    #[arg(long, value_name = "FILE")]
    database: Option<PathBuf>,
}

impl Database {
    /// Whether a file is named, which no running gateway need have.
    pub(super) const fn is_named(&self) -> bool {
        self.database.is_some()
    }

    pub(super) fn path(&self, global: &Global) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.database {
            return Ok(path.clone());
        }
        // Reads only the store's section: the caller may not have the gateway's secrets.
        let store = rejoinder_config::load_store(&global.options()?).inspect_err(|_| {
            output::remark("hint: --database FILE uses a database without the configuration");
        })?;
        Ok(store.url.path(&global.data_dir()?))
    }

    pub(super) async fn open(&self, global: &Global) -> Result<Box<dyn Store>, Failure> {
        Ok(Box::new(SqliteStore::open_read_only(self.path(global)?).await.map_err(anyhow::Error::new)?))
    }
}
