//! The versions of what is decided on.

use rejoinder_core::{
    StoreError,
    store::{Noun, Version},
};
use sqlx::SqlitePool;

use crate::sqlite::error::store_error;

pub(in crate::sqlite) async fn version(readers: &SqlitePool, noun: Noun) -> Result<Version, StoreError> {
    let query = sqlx::query_scalar("select version from versions where noun = ?").bind(noun.as_str());
    query.fetch_one(readers).await.map_err(store_error)
}
