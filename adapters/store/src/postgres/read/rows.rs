//! Rows as values of the core.

use sqlx::{
    Row as _,
    error::BoxDynError,
    postgres::{PgRow, PgValueFormat},
};

use crate::{postgres::error::store_error, records::columns::columns_of};

columns_of!(PgRow, store_error, json);

/// JSON as text, of a column with the type `jsonb` or `text`.
fn json(row: &PgRow, column: &str) -> Result<String, sqlx::Error> {
    /// The first byte of binary `jsonb`, <https://www.postgresql.org/docs/15/datatype-json.html>: the version of the format.
    const VERSION: u8 = 1;
    let value = row.try_get_raw(column)?;
    let decoded = |source: BoxDynError| sqlx::Error::ColumnDecode { index: format!("{column:?}"), source };
    let is_binary = value.format() == PgValueFormat::Binary;
    let bytes = value.as_bytes().map_err(decoded)?;
    let text = if is_binary { bytes.strip_prefix(&[VERSION]).unwrap_or(bytes) } else { bytes };
    Ok(std::str::from_utf8(text).map_err(|error| decoded(error.into()))?.to_owned())
}
