//! The operators' tokens.

use async_trait::async_trait;
use rejoinder_core::{
    StoreError,
    store::{IdempotentAnswer, LinkRecord, SignInRecord, TokenRecord, TokenStore},
};

use super::rows::{all, one};
use crate::{records::token, sqlite::store::SqliteStore};

#[async_trait]
impl TokenStore for SqliteStore {
    async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        let query = sqlx::query("select * from tokens order by created_at, id");
        all(&self.operator, query, token::record).await
    }

    async fn sign_ins(&self) -> Result<Vec<SignInRecord>, StoreError> {
        let query = sqlx::query("select * from sign_ins order by opened_at, id");
        all(&self.operator, query, token::sign_in).await
    }

    async fn links(&self) -> Result<Vec<LinkRecord>, StoreError> {
        let query = sqlx::query("select * from sign_in_links order by expires_at, code");
        all(&self.operator, query, token::link).await
    }

    async fn answer(&self, by: &str, key: &str) -> Result<Option<IdempotentAnswer>, StoreError> {
        let query = sqlx::query("select * from answers where by = ? and key = ?").bind(by).bind(key);
        one(&self.operator, query, token::answer).await
    }
}
