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

    async fn file_part(&self, digest: FileDigest, from: usize, most: usize) -> Result<Option<Vec<u8>>, StoreError> {
        // The column is stored so that the server reads no more of it either.
        let select = statement!(
            "select substring(content from ($2 + 1)::int for $3::int) as part from files where digest = $1",
            digest.as_bytes(),
            from,
            most,
        );
        self.readers.one(select, |row| row.value("part")).await
    }
}
