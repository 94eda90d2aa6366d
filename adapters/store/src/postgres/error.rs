//! Maps PostgreSQL's errors to those of the store port.

use rejoinder_core::StoreError;

/// The store error for an error of SQLx. Its kind tells the caller what to do next. The codes:
/// <https://www.postgresql.org/docs/15/errcodes-appendix.html>.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes it by value")]
pub(super) fn store_error(error: sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    let Some(code) = code.as_deref() else {
        return match error {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => StoreError::Corrupt(error.to_string()),
            sqlx::Error::ColumnNotFound(_) | sqlx::Error::Encode(_) => StoreError::Failed(error.to_string()),
            // There is no connection, or it broke.
            _ => StoreError::Unavailable(error.to_string()),
        };
    };
    match code {
        // A statement that took too long.
        "57014" => StoreError::TooSlow,
        // Other transactions were in the way, or the database can only be read now: a standby, or one that starts or ends.
        "40001" | "40P01" | "55P03" | "25006" | "25P03" => StoreError::Unavailable(error.to_string()),
        "XX001" | "XX002" => StoreError::Corrupt(error.to_string()),
        // Connections, resources, the operator, the system.
        _ if ["08", "53", "57", "58"].iter().any(|class| code.starts_with(class)) => {
            StoreError::Unavailable(error.to_string())
        }
        _ => StoreError::Failed(error.to_string()),
    }
}
