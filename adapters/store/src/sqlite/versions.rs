//! The versions of people, schedules, sessions and tokens: a decision is stored only on the version that it was made on.

use rejoinder_core::{
    StoreError,
    store::{Noun, Version},
};
use sqlx::SqlitePool;

use super::error::store_error;

/// What does not exist has version 0.
pub(super) async fn version(readers: &SqlitePool, noun: Noun) -> Result<Version, StoreError> {
    let query = match noun {
        Noun::SessionsIn(conversation) => sqlx::query_scalar(SELECT_IN).bind(conversation.as_uuid()),
        Noun::SessionsOf(person) => sqlx::query_scalar(SELECT_OF).bind(person.as_uuid()),
        Noun::People => sqlx::query_scalar(SELECT).bind("people"),
        Noun::Schedules => sqlx::query_scalar(SELECT).bind("schedules"),
        Noun::Tokens => sqlx::query_scalar(SELECT).bind("tokens"),
    };
    Ok(query.fetch_optional(readers).await.map_err(store_error)?.unwrap_or_default())
}

pub(super) const SELECT: &str = "select version from versions where noun = ?";

pub(super) const SELECT_IN: &str = "select sessions_version from conversations where id = ?";

pub(super) const SELECT_OF: &str = "select sessions_version from people where id = ?";
