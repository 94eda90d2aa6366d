//! Reads the rows of queries.

use rejoinder_core::StoreError;
use sqlx::{
    Sqlite, SqliteExecutor,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};

use crate::{records::columns::columns_of, sqlite::error::store_error};

columns_of!(SqliteRow, store_error, sqlx::Row::try_get);

/// Reads the rows that a query finds.
pub(super) async fn all<T>(
    reader: impl SqliteExecutor<'_>,
    query: Query<'_, Sqlite, SqliteArguments>,
    read: impl Fn(&SqliteRow) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    query.fetch_all(reader).await.map_err(store_error)?.iter().map(read).collect()
}

/// Reads the first row that a query finds, if there is one.
pub(super) async fn one<T>(
    reader: impl SqliteExecutor<'_>,
    query: Query<'_, Sqlite, SqliteArguments>,
    read: impl FnOnce(&SqliteRow) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    query.fetch_optional(reader).await.map_err(store_error)?.as_ref().map(read).transpose()
}

#[cfg(test)]
mod tests {
    use rejoinder_core::StoreError;
    use sqlx::{Connection, SqliteConnection};

    use crate::records::columns::Columns;

    #[tokio::test]
    async fn a_value_that_does_not_fit_its_type_is_corrupt() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.expect("it opens");
        let sql = "select 65536 as large, x'01' as short, 'text' as text, null as missing";
        let row = sqlx::query(sql).fetch_one(&mut connection).await.expect("there is a row");

        assert!(matches!(row.value::<u32>("large"), Ok(65_536)));
        assert!(matches!(row.value::<u16>("large"), Err(StoreError::Corrupt(_))));
        assert!(matches!(row.value::<[u8; 32]>("short"), Err(StoreError::Corrupt(_))));
        assert!(matches!(row.value::<i64>("text"), Err(StoreError::Corrupt(_))));
        assert!(matches!(row.value::<Option<i64>>("missing"), Ok(None)));
    }
}
