//! Options that several commands take.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use rejoinder_core::Store;
use serde::Serialize;
use serde_json::Value;

use super::{global::Global, running::RunningGateway};
use crate::{
    console::{failure::Failure, output},
    location::StoreLocation,
};

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

    pub(super) fn location(&self, global: &Global) -> Result<StoreLocation, Failure> {
        if let Some(path) = &self.database {
            return Ok(StoreLocation::File(path.clone()));
        }
        // Reads only the store's section: the caller may not have the gateway's other secrets.
        let store = rejoinder_config::load_store(&global.options()?).inspect_err(|_| {
            output::remark("hint: --database FILE uses a database without the configuration");
        })?;
        Ok(StoreLocation::of(&store, &global.data_dir()?))
    }

    pub(super) async fn open(&self, global: &Global) -> Result<Arc<dyn Store>, Failure> {
        Ok(self.location(global)?.open_read_only().await?)
    }
}
