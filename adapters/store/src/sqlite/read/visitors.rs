//! What people sign in to a chat page with.

use async_trait::async_trait;
use rejoinder_core::{
    Identity, StoreError,
    store::{Invitation, Passkey, Visit, VisitorStore},
};

use super::rows::{all, one};
use crate::{records::visitor, sqlite::store::SqliteStore};

#[async_trait]
impl VisitorStore for SqliteStore {
    async fn passkey(&self, id: &[u8]) -> Result<Option<Passkey>, StoreError> {
        let query = sqlx::query("select * from passkeys where id = ?").bind(id.to_vec());
        one(&self.readers, query, visitor::passkey).await
    }

    async fn passkeys(&self, of: &Identity) -> Result<Vec<Passkey>, StoreError> {
        let sql = "select * from passkeys where channel = ? and account = ? order by added_at, id";
        let query = sqlx::query(sql).bind(of.channel.as_str()).bind(&*of.id);
        all(&self.readers, query, visitor::passkey).await
    }

    async fn visit(&self, hash: &[u8; 32]) -> Result<Option<Visit>, StoreError> {
        let query = sqlx::query("select * from visits where hash = ?").bind(hash.to_vec());
        one(&self.readers, query, visitor::visit).await
    }

    async fn visits(&self, of: &Identity) -> Result<Vec<Visit>, StoreError> {
        let sql = "select * from visits where channel = ? and account = ? order by opened_at, id";
        let query = sqlx::query(sql).bind(of.channel.as_str()).bind(&*of.id);
        all(&self.readers, query, visitor::visit).await
    }

    async fn invitation(&self, code: &[u8; 32]) -> Result<Option<Invitation>, StoreError> {
        let query = sqlx::query("select * from invitations where code = ?").bind(code.to_vec());
        one(&self.readers, query, visitor::invitation).await
    }
}
