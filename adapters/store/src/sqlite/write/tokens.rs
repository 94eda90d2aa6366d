//! The operators' tokens.

use rejoinder_core::{
    StoreError, Timestamp,
    store::{TokenChange, TokenRecord},
};
use rusqlite::params;

use super::rows::{self, Transaction, json};

pub(super) fn change(transaction: &Transaction<'_>, change: &TokenChange) -> Result<(), StoreError> {
    match change {
        TokenChange::Create(token) => {
            let TokenRecord { id, name, hash, role, channels, created_at, created_by, expires_at, revoked_at } = token;
            let values = params![
                id,
                name,
                hash,
                role.as_str(),
                channels.as_ref().map(json),
                created_at.as_millis(),
                created_by,
                expires_at.map(Timestamp::as_millis),
                revoked_at.map(Timestamp::as_millis),
            ];
            rows::change_one(transaction, "tokens", CREATE, values)
        }
        TokenChange::Revoke { id, at } => rows::change_one(transaction, "tokens", REVOKE, params![id, at.as_millis()]),
    }
}

const CREATE: &str = "
    insert into tokens (id, name, hash, role, channels, created_at, created_by, expires_at, revoked_at)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?)";

const REVOKE: &str = "update tokens set revoked_at = ?2 where id = ?1 and revoked_at is null";
