//! The operators' tokens.

use async_trait::async_trait;
use rejoinder_core::{
    StoreError,
    store::{IdempotentAnswer, LinkRecord, SignInRecord, TokenRecord, TokenStore},
};

use crate::{
    postgres::{store::PostgresStore, values::statement},
    records::token,
};

#[async_trait]
impl TokenStore for PostgresStore {
    async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        let sql = "
            select id, name, hash, role, channels, created_at, created_by, expires_at, revoked_at
            from tokens order by created_at, id";
        self.operator.all(statement!(sql), token::record).await
    }

    async fn sign_ins(&self) -> Result<Vec<SignInRecord>, StoreError> {
        let sql = "select id, hash, token, browser, opened_at, expires_at from sign_ins order by opened_at, id";
        self.operator.all(statement!(sql), token::sign_in).await
    }

    async fn links(&self) -> Result<Vec<LinkRecord>, StoreError> {
        let sql = "select code, token, session, expires_at from sign_in_links order by expires_at, code";
        self.operator.all(statement!(sql), token::link).await
    }

    async fn answer(&self, by: &str, key: &str) -> Result<Option<IdempotentAnswer>, StoreError> {
        let sql = "select by, key, request, status, body from answers where by = $1 and key = $2";
        self.operator.one(statement!(sql, by, key), token::answer).await
    }
}
