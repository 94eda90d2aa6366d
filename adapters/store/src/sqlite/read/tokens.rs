//! The operators' tokens.

use async_trait::async_trait;
use rejoinder_core::{
    StoreError,
    store::{IdempotentAnswer, LinkRecord, SignInRecord, TokenRecord, TokenStore},
};
use sqlx::sqlite::SqliteRow;

use super::rows::all;
use crate::{
    records::columns::{Columns, record},
    sqlite::{error::store_error, store::SqliteStore},
};

fn link(row: &SqliteRow) -> Result<LinkRecord, StoreError> {
    let code: Vec<u8> = row.value("code")?;
    Ok(record!(row => LinkRecord {
        token, session, expires_at;
        code: code.try_into().map_err(|_| StoreError::Corrupt("the digest of a link".to_owned()))?,
    }))
}

fn sign_in(row: &SqliteRow) -> Result<SignInRecord, StoreError> {
    let hash: Vec<u8> = row.value("hash")?;
    Ok(record!(row => SignInRecord {
        id, token, browser, opened_at, expires_at;
        hash: hash.try_into().map_err(|_| StoreError::Corrupt("a session's hash".to_owned()))?,
    }))
}

fn token(row: &SqliteRow) -> Result<TokenRecord, StoreError> {
    let hash: Vec<u8> = row.value("hash")?;
    Ok(record!(row => TokenRecord {
        id, name, role, channels, created_at, created_by, expires_at, revoked_at;
        hash: hash.try_into().map_err(|_| StoreError::Corrupt("a token's hash".to_owned()))?,
    }))
}

#[async_trait]
impl TokenStore for SqliteStore {
    async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        let query = sqlx::query("select * from tokens order by created_at, id");
        all(&self.operator, query, token).await
    }

    async fn sign_ins(&self) -> Result<Vec<SignInRecord>, StoreError> {
        let query = sqlx::query("select * from sign_ins order by opened_at, id");
        all(&self.operator, query, sign_in).await
    }

    async fn links(&self) -> Result<Vec<LinkRecord>, StoreError> {
        let query = sqlx::query("select * from sign_in_links order by expires_at, code");
        all(&self.operator, query, link).await
    }

    async fn answer(&self, by: &str, key: &str) -> Result<Option<IdempotentAnswer>, StoreError> {
        let query = sqlx::query("select * from answers where by = ? and key = ?").bind(by).bind(key);
        let row = query.fetch_optional(&self.operator).await.map_err(store_error)?;
        let read = |row: SqliteRow| Ok(record!(row => IdempotentAnswer { by, key, request, status, body }));
        row.map(read).transpose()
    }
}
