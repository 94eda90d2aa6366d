//! The operators' tokens, sessions and links, and the answers to their repeated requests.

use rejoinder_core::store::{IdempotentAnswer, LinkRecord, SignInRecord, TokenRecord};

use super::columns::records;

records! {
    pub(crate) fn record(row) -> TokenRecord {
        id, name, hash, role, channels, created_at, created_by, expires_at, revoked_at
    }

    pub(crate) fn sign_in(row) -> SignInRecord { id, hash, token, browser, opened_at, expires_at }

    pub(crate) fn link(row) -> LinkRecord { code, token, session, expires_at }

    pub(crate) fn answer(row) -> IdempotentAnswer { by, key, request, status, body }
}
