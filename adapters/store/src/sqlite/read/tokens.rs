//! The operators' tokens.

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, StoreError,
    store::{IdempotentAnswer, LinkRecord, SignInRecord, TokenRecord, TokenStore},
};
use sqlx::sqlite::SqliteRow;

use super::columns::Columns;
use crate::sqlite::{error::store_error, store::SqliteStore};

fn link(row: &SqliteRow) -> Result<LinkRecord, StoreError> {
    let code: Vec<u8> = row.value("code")?;
    Ok(LinkRecord {
        code: code.try_into().map_err(|_| StoreError::Corrupt("the digest of a link".to_owned()))?,
        token: row.value("token")?,
        session: row.value("session")?,
        expires_at: row.at("expires_at")?,
    })
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

#[async_trait]
impl TokenStore for SqliteStore {
    async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        let query = sqlx::query("select * from tokens order by created_at, id");
        query.fetch_all(&self.operator).await.map_err(store_error)?.iter().map(token).collect()
    }

    async fn sign_ins(&self) -> Result<Vec<SignInRecord>, StoreError> {
        let query = sqlx::query("select * from sign_ins order by opened_at, id");
        query.fetch_all(&self.operator).await.map_err(store_error)?.iter().map(sign_in).collect()
    }

    async fn links(&self) -> Result<Vec<LinkRecord>, StoreError> {
        let query = sqlx::query("select * from sign_in_links order by expires_at, code");
        query.fetch_all(&self.operator).await.map_err(store_error)?.iter().map(link).collect()
    }

    async fn answer(&self, by: &str, key: &str) -> Result<Option<IdempotentAnswer>, StoreError> {
        let query = sqlx::query("select * from answers where by = ? and key = ?").bind(by).bind(key);
        let row = query.fetch_optional(&self.operator).await.map_err(store_error)?;
        let read = |row: SqliteRow| {
            Ok(IdempotentAnswer {
                by: row.value("by")?,
                key: row.value("key")?,
                request: row.value("request")?,
                status: row.value("status")?,
                body: row.value("body")?,
            })
        };
        row.map(read).transpose()
    }
}
