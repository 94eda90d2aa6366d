//! Files.

use std::path::Path;

use async_trait::async_trait;
use rejoinder_core::{FileDigest, StoreError, store::FileStore};
use rusqlite::{MAIN_DB, OptionalExtension as _};
use tokio::task::spawn_blocking;

use crate::sqlite::{connections::open_reader, error::store_error, store::SqliteStore};

#[async_trait]
impl FileStore for SqliteStore {
    async fn file(&self, digest: FileDigest) -> Result<Option<Vec<u8>>, StoreError> {
        let query = sqlx::query_scalar("select content from files where digest = ?").bind(digest.as_bytes().to_vec());
        query.fetch_optional(&self.readers).await.map_err(store_error)
    }

    async fn file_part(&self, digest: FileDigest, from: usize, most: usize) -> Result<Option<Vec<u8>>, StoreError> {
        // Bounds how many parts are read at once. The store closes after them.
        let _place = self.readers.acquire().await.map_err(store_error)?;
        let path = self.readers.connect_options().get_filename().to_owned();
        let read = spawn_blocking(move || part(&path, digest, from, most)).await;
        read.map_err(|error| StoreError::Failed(error.to_string()))?.map_err(store_error)
    }
}

/// Reads a part through a handle to the value: a query would read the whole value into memory, and SQLx has no such handles.
fn part(path: &Path, digest: FileDigest, from: usize, most: usize) -> rusqlite::Result<Option<Vec<u8>>> {
    let mut connection = open_reader(path)?;
    let reading = connection.transaction()?;
    let row = reading.query_row("select rowid from files where digest = ?", [digest.as_bytes()], |row| row.get(0));
    let Some(row) = row.optional()? else { return Ok(None) };
    let content = reading.blob_open(MAIN_DB, "files", "content", row, true)?;
    let mut bytes = vec![0; content.len().saturating_sub(from).min(most)];
    content.read_at_exact(&mut bytes, from)?;
    Ok(Some(bytes))
}
