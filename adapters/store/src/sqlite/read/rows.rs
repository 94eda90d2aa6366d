//! Reads the rows of queries.

use rejoinder_core::StoreError;
use sqlx::{
    Row, Sqlite, SqliteExecutor, ValueRef,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};
use uuid::Uuid;

use crate::{records::columns::Columns, sqlite::error::store_error};

impl Columns for SqliteRow {
    fn is_null(&self, column: &str) -> Result<bool, StoreError> {
        Ok(self.try_get_raw(column).map_err(store_error)?.is_null())
    }

    fn flag(&self, column: &str) -> Result<bool, StoreError> {
        self.try_get(column).map_err(store_error)
    }

    fn number(&self, column: &str) -> Result<i64, StoreError> {
        self.try_get(column).map_err(store_error)
    }

    fn text(&self, column: &str) -> Result<String, StoreError> {
        self.try_get(column).map_err(store_error)
    }

    fn json(&self, column: &str) -> Result<String, StoreError> {
        self.try_get(column).map_err(store_error)
    }

    fn bytes(&self, column: &str) -> Result<Vec<u8>, StoreError> {
        self.try_get(column).map_err(store_error)
    }

    fn uuid(&self, column: &str) -> Result<Uuid, StoreError> {
        self.try_get(column).map_err(store_error)
    }
}

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
        let sql = "select 65536 as large, 'text' as text, null as nothing";
        let row = sqlx::query(sql).fetch_one(&mut connection).await.expect("there is a row");

        assert!(matches!(row.value::<u32>("large"), Ok(65_536)));
        assert!(matches!(row.value::<u16>("large"), Err(StoreError::Corrupt(_))));
        assert!(matches!(row.value::<i64>("text"), Err(StoreError::Corrupt(_))));
        assert!(matches!(row.value::<Option<i64>>("nothing"), Ok(None)));
    }
}
