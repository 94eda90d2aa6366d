//! The operators' tokens.

use rejoinder_core::{
    StoreError,
    store::{LinkRecord, SignInChange, SignInRecord, TokenChange, TokenRecord},
};

use super::rows::{self, Transaction};
use crate::{
    postgres::values::{insert_into, statement},
    shared::stored::json,
};

pub(super) async fn change(transaction: &mut Transaction<'_>, change: &TokenChange) -> Result<(), StoreError> {
    match change {
        TokenChange::Create(token) => {
            let TokenRecord { id, name, hash, role, channels, created_at, created_by, expires_at, revoked_at } = token;
            let (role, channels) = (role.as_str(), channels.as_ref().map(json));
            let statement =
                insert_into!(tokens { id, name, hash, role, channels, created_at, created_by, expires_at, revoked_at });
            rows::change(transaction, statement).await.map(drop)
        }
        TokenChange::Revoke { id, at } => {
            rows::change_one(transaction, "tokens", statement!(REVOKE, id, at)).await?;
            rows::change(transaction, statement!("delete from sign_ins where token = $1", id)).await.map(drop)
        }
    }
}

pub(super) async fn change_sign_in(transaction: &mut Transaction<'_>, change: &SignInChange) -> Result<(), StoreError> {
    let statement = match change {
        SignInChange::Open(SignInRecord { id, hash, token, browser, opened_at, expires_at }) => {
            rows::change(transaction, statement!(END_LINKS, opened_at)).await?;
            insert_into!(sign_ins { id, hash, token, browser, opened_at, expires_at })
        }
        // Two may end it at once.
        SignInChange::End(id) => statement!("delete from sign_ins where id = $1", id),
        SignInChange::MakeLink(LinkRecord { code, token, session, expires_at }) => {
            insert_into!(sign_in_links { code, token, session, expires_at })
        }
        SignInChange::UseLink(code) | SignInChange::EndLink(code) => {
            statement!("delete from sign_in_links where code = $1", code)
        }
    };
    rows::change(transaction, statement).await.map(drop)
}

/// Whether all links are there that a transition uses. The version of the tokens is locked, which each change of a link counts: of two
/// that use the same link, the other waits, and does not find it any more.
pub(super) async fn has_links(transaction: &mut Transaction<'_>, changes: &[SignInChange]) -> Result<bool, StoreError> {
    for change in changes {
        if let SignInChange::UseLink(code) = change {
            rows::change(transaction, statement!(LOCK_VERSION)).await?;
            if rows::one(transaction, statement!(SELECT_LINK, code), |_| Ok(())).await?.is_none() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

const LOCK_VERSION: &str = "select version from versions where noun = 'tokens' for no key update";

const SELECT_LINK: &str = "select code from sign_in_links where code = $1";

/// Links that are over.
const END_LINKS: &str = "delete from sign_in_links where expires_at <= $1";

const REVOKE: &str = "update tokens set revoked_at = $2 where id = $1 and revoked_at is null";
