//! The database, as the commands that list rows read it.

use std::path::PathBuf;

use clap::Args;
use rejoinder_core::Store;
use rejoinder_store::SqliteStore;

use super::Global;
use crate::console::failure::Failure;

#[derive(Debug, Args)]
pub(super) struct Database {
    /// Read this database instead of the configured one; needs no configuration
    #[arg(long, value_name = "FILE")]
    database: Option<PathBuf>,
}

impl Database {
    pub(super) async fn open(&self, global: &Global) -> Result<Box<dyn Store>, Failure> {
        let path = if let Some(path) = &self.database {
            path.clone()
        } else {
            // Reads only the store's section: the caller may not have the gateway's secrets.
            let store = rejoinder_config::load_store(&global.options()?).inspect_err(|_| {
                eprintln!("hint: --database FILE reads a database without the configuration");
            })?;
            store.url.path(&global.data_dir()?)
        };
        Ok(Box::new(SqliteStore::open_read_only(path).await.map_err(anyhow::Error::new)?))
    }
}
