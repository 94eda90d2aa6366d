//! The operators' tokens.

use rejoinder_core::{
    StoreError, Timestamp,
    store::{LinkRecord, SignInChange, SignInRecord, TokenChange, TokenRecord},
};
use rusqlite::params;

use super::rows::{self, Transaction, insert_into};
use crate::shared::stored::json;

pub(super) fn change(transaction: &Transaction<'_>, change: &TokenChange) -> Result<(), StoreError> {
    match change {
        TokenChange::Create(token) => {
            let TokenRecord { id, name, hash, role, channels, created_at, created_by, expires_at, revoked_at } = token;
            insert_into!(
                transaction,
                tokens {
                    id,
                    name,
                    hash,
                    role: role.as_str(),
                    channels: channels.as_ref().map(json),
                    created_at: created_at.as_millis(),
                    created_by,
                    expires_at: expires_at.map(Timestamp::as_millis),
                    revoked_at: revoked_at.map(Timestamp::as_millis),
                }
            )
        }
        TokenChange::Revoke { id, at } => {
            rows::change_one(transaction, "tokens", REVOKE, params![id, at.as_millis()])?;
            rows::change(transaction, "delete from sign_ins where token = ?", params![id]).map(drop)
        }
    }
}

pub(super) fn change_sign_in(transaction: &Transaction<'_>, change: &SignInChange) -> Result<(), StoreError> {
    match change {
        SignInChange::Open(SignInRecord { id, hash, token, browser, opened_at, expires_at }) => {
            rows::change(transaction, END_LINKS, params![opened_at.as_millis()])?;
            let (opened_at, expires_at) = (opened_at.as_millis(), expires_at.as_millis());
            insert_into!(transaction, sign_ins { id, hash, token, browser, opened_at, expires_at })
        }
        // Two may end it at once.
        SignInChange::End(id) => rows::change(transaction, "delete from sign_ins where id = ?", params![id]).map(drop),
        SignInChange::MakeLink(LinkRecord { code, token, session, expires_at }) => {
            insert_into!(transaction, sign_in_links { code, token, session, expires_at: expires_at.as_millis() })
        }
        SignInChange::UseLink(code) | SignInChange::EndLink(code) => {
            rows::change(transaction, "delete from sign_in_links where code = ?", params![code]).map(drop)
        }
    }
}

/// Whether all links are there that a transition uses.
pub(super) fn has_links(transaction: &Transaction<'_>, changes: &[SignInChange]) -> Result<bool, StoreError> {
    for change in changes {
        if let SignInChange::UseLink(code) = change
            && rows::one(transaction, SELECT_LINK, params![code], |_| Ok(()))?.is_none()
        {
            return Ok(false);
        }
    }
    Ok(true)
}

const SELECT_LINK: &str = "select 1 from sign_in_links where code = ?";

/// Links that are over.
const END_LINKS: &str = "delete from sign_in_links where expires_at <= ?";

const REVOKE: &str = "update tokens set revoked_at = ?2 where id = ?1 and revoked_at is null";
