//! The operators' tokens.

use rejoinder_core::{
    ChannelId, StoreError,
    store::{SignInRecord, TokenRecord},
};
use sqlx::{SqlitePool, sqlite::SqliteRow};

use super::columns::Columns;
use crate::sqlite::error::store_error;

pub(in crate::sqlite) async fn tokens(pool: &SqlitePool) -> Result<Vec<TokenRecord>, StoreError> {
    let query = sqlx::query("select * from tokens order by created_at, id");
    query.fetch_all(pool).await.map_err(store_error)?.iter().map(token).collect()
}

pub(in crate::sqlite) async fn sign_ins(pool: &SqlitePool) -> Result<Vec<SignInRecord>, StoreError> {
    let query = sqlx::query("select * from sign_ins order by opened_at, id");
    query.fetch_all(pool).await.map_err(store_error)?.iter().map(sign_in).collect()
}

fn sign_in(row: &SqliteRow) -> Result<SignInRecord, StoreError> {
    let hash: Vec<u8> = row.value("hash")?;
    Ok(SignInRecord {
        id: row.value("id")?,
        hash: hash.try_into().map_err(|_| StoreError::Corrupt("a session's hash".to_owned()))?,
        token: row.value("token")?,
        browser: row.value("browser")?,
        opened_at: row.at("opened_at")?,
        expires_at: row.at("expires_at")?,
    })
}

fn token(row: &SqliteRow) -> Result<TokenRecord, StoreError> {
    let hash: Vec<u8> = row.value("hash")?;
    Ok(TokenRecord {
        id: row.value("id")?,
        name: row.value("name")?,
        hash: hash.try_into().map_err(|_| StoreError::Corrupt("a token's hash".to_owned()))?,
        role: row.name("role")?,
        channels: row.json_maybe::<Vec<ChannelId>>("channels")?,
        created_at: row.at("created_at")?,
        created_by: row.value("created_by")?,
        expires_at: row.at_maybe("expires_at")?,
        revoked_at: row.at_maybe("revoked_at")?,
    })
}
