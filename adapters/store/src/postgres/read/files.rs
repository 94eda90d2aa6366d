//! Files.

use async_trait::async_trait;
use rejoinder_core::{FileDigest, StoreError, store::FileStore};

use crate::{
    postgres::{store::PostgresStore, values::statement},
    records::columns::Columns,
};

#[async_trait]
impl FileStore for PostgresStore {
    async fn file(&self, digest: FileDigest) -> Result<Option<Vec<u8>>, StoreError> {
        let select = statement!("select content from files where digest = $1", digest.as_bytes());
        self.readers.one(select, |row| row.value("content")).await
    }
}
