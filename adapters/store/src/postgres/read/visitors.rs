//! What people sign in to a chat page with.

use async_trait::async_trait;
use rejoinder_core::{
    Identity, StoreError,
    store::{Invitation, Passkey, Visit, VisitorStore},
};

use crate::{
    postgres::{
        store::PostgresStore,
        values::{Bytes, statement},
    },
    records::visitor,
};

macro_rules! select_passkeys {
    () => {
        "select id, channel, account, party, algorithm, key, counter, browser, added_at, used_at from passkeys "
    };
}

macro_rules! select_visits {
    () => {
        "select id, hash, channel, account, challenge, browser, opened_at, expires_at from visits "
    };
}

#[async_trait]
impl VisitorStore for PostgresStore {
    async fn passkey(&self, id: &[u8]) -> Result<Option<Passkey>, StoreError> {
        self.readers.one(statement!(concat!(select_passkeys!(), "where id = $1"), Bytes(id)), visitor::passkey).await
    }

    async fn passkeys(&self, of: &Identity) -> Result<Vec<Passkey>, StoreError> {
        let sql = concat!(select_passkeys!(), "where channel = $1 and account = $2 order by added_at, id");
        self.readers.all(statement!(sql, of.channel, of.id), visitor::passkey).await
    }

    async fn visit(&self, hash: &[u8; 32]) -> Result<Option<Visit>, StoreError> {
        self.readers.one(statement!(concat!(select_visits!(), "where hash = $1"), hash), visitor::visit).await
    }

    async fn visits(&self, of: &Identity) -> Result<Vec<Visit>, StoreError> {
        let sql = concat!(select_visits!(), "where channel = $1 and account = $2 order by opened_at, id");
        self.readers.all(statement!(sql, of.channel, of.id), visitor::visit).await
    }

    async fn invitation(&self, code: &[u8; 32]) -> Result<Option<Invitation>, StoreError> {
        let sql = "select code, channel, account, expires_at from invitations where code = $1";
        self.readers.one(statement!(sql, code), visitor::invitation).await
    }
}
