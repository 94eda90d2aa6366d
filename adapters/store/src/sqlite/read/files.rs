//! Files.

use async_trait::async_trait;
use rejoinder_core::{FileDigest, StoreError, store::FileStore};

use crate::sqlite::{error::store_error, store::SqliteStore};

#[async_trait]
impl FileStore for SqliteStore {
    async fn file(&self, digest: FileDigest) -> Result<Option<Vec<u8>>, StoreError> {
        let query = sqlx::query_scalar("select content from files where digest = ?").bind(digest.as_bytes().to_vec());
        query.fetch_optional(&self.readers).await.map_err(store_error)
    }
}
