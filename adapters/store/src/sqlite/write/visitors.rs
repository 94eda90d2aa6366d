//! What people sign in to a chat page with.

use rejoinder_core::{
    Identity, StoreError, Timestamp,
    store::{Invitation, Passkey, Visit, VisitorChange},
};
use rusqlite::{Params, params};

use super::rows::{self, Transaction, insert_into};
use crate::shared::bounds::CHALLENGES_KEPT;

/// Whether a transition's changes fit what is stored: an invitation that it uses is there, a counter is as expected, and a challenge is
/// new.
pub(super) fn fit(transaction: &Transaction<'_>, changes: &[VisitorChange]) -> Result<bool, StoreError> {
    for change in changes {
        let fits = match change {
            VisitorChange::Register { passkey, invitation } => {
                let is_open =
                    params![invitation, passkey.channel.as_str(), passkey.account, passkey.added_at.as_millis()];
                is_there(transaction, SELECT_INVITATION, is_open)?
                    && !is_there(transaction, SELECT_PASSKEY, params![passkey.id])?
            }
            VisitorChange::Sign { passkey, from, .. } => is_there(transaction, SELECT_COUNTER, params![passkey, from])?,
            VisitorChange::Open(visit) => !is_there(transaction, SELECT_CHALLENGE, params![visit.challenge])?,
            VisitorChange::Invite(_)
            | VisitorChange::End { .. }
            | VisitorChange::EndAll { .. }
            | VisitorChange::RemovePasskeys(_) => true,
        };
        if !fits {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_there(transaction: &Transaction<'_>, sql: &'static str, values: impl Params) -> Result<bool, StoreError> {
    rows::one(transaction, sql, values, |_| Ok(())).map(|found| found.is_some())
}

pub(super) fn change(transaction: &Transaction<'_>, change: &VisitorChange) -> Result<(), StoreError> {
    match change {
        VisitorChange::Invite(Invitation { code, channel, account, expires_at }) => {
            rows::change(transaction, DELETE_INVITATIONS, params![channel.as_str(), account])?;
            let (channel, expires_at) = (channel.as_str(), expires_at.as_millis());
            insert_into!(transaction, invitations { code, channel, account, expires_at })
        }
        VisitorChange::Register { passkey, invitation } => {
            rows::change_one(transaction, "invitations", DELETE_INVITATION, params![invitation])?;
            let Passkey { id, channel, account, party, algorithm, key, counter, browser, added_at, used_at } = passkey;
            let (channel, added_at) = (channel.as_str(), added_at.as_millis());
            let used_at = used_at.map(Timestamp::as_millis);
            insert_into!(
                transaction,
                passkeys { id, channel, account, party, algorithm, key, counter, browser, added_at, used_at }
            )
        }
        VisitorChange::Sign { passkey, to, at, .. } => {
            rows::change_one(transaction, "passkeys", SIGN, params![passkey, to, at.as_millis()])
        }
        VisitorChange::Open(visit) => {
            let Visit { id, hash, channel, account, challenge, browser, opened_at, expires_at } = visit;
            let (channel, opened_at, expires_at) = (channel.as_str(), opened_at.as_millis(), expires_at.as_millis());
            rows::change(transaction, DELETE_ENDED, params![opened_at - CHALLENGES_KEPT])?;
            rows::change(transaction, "delete from invitations where expires_at <= ?", params![opened_at])?;
            insert_into!(transaction, visits { id, hash, channel, account, challenge, browser, opened_at, expires_at })
        }
        VisitorChange::End { id, at } => rows::change(transaction, END, params![id, at.as_millis()]).map(drop),
        VisitorChange::EndAll { of, at } => {
            for sql in [DELETE_INVITATIONS, DELETE_SUBSCRIPTIONS] {
                rows::change(transaction, sql, params![of.channel.as_str(), of.id])?;
            }
            rows::change(transaction, END_ALL, params![of.channel.as_str(), of.id, at.as_millis()]).map(drop)
        }
        VisitorChange::RemovePasskeys(of) => {
            rows::change(transaction, DELETE_PASSKEYS, params![of.channel.as_str(), of.id]).map(drop)
        }
    }
}

/// Removes all that somebody signs in with, and what tells their browsers of answers.
pub(super) fn forget(transaction: &Transaction<'_>, identity: &Identity) -> Result<(), StoreError> {
    for sql in [DELETE_INVITATIONS, DELETE_PASSKEYS, DELETE_VISITS, DELETE_SUBSCRIPTIONS] {
        rows::change(transaction, sql, params![identity.channel.as_str(), identity.id])?;
    }
    Ok(())
}

const SELECT_INVITATION: &str =
    "select 1 from invitations where code = ? and channel = ? and account = ? and expires_at > ?";

const SELECT_PASSKEY: &str = "select 1 from passkeys where id = ?";

const SELECT_COUNTER: &str = "select 1 from passkeys where id = ? and counter = ?";

const SELECT_CHALLENGE: &str = "select 1 from visits where challenge = ?";

const DELETE_INVITATION: &str = "delete from invitations where code = ?";

const DELETE_INVITATIONS: &str = "delete from invitations where channel = ? and account = ?";

/// The conversations of one who signs in are threads of one chat. Without a thread, one belongs to who has its secret id.
const DELETE_SUBSCRIPTIONS: &str = "delete from push_subscriptions where channel = ? and chat = ? and thread <> ''";

const DELETE_PASSKEYS: &str = "delete from passkeys where channel = ? and account = ?";

const DELETE_VISITS: &str = "delete from visits where channel = ? and account = ?";

const SIGN: &str = "update passkeys set counter = ?2, used_at = ?3 where id = ?1";

const DELETE_ENDED: &str = "delete from visits where expires_at <= ?";

/// The row stays for a while, so that its challenge is not used again.
const END: &str = "update visits set expires_at = min(expires_at, ?2) where id = ?1";

const END_ALL: &str = "update visits set expires_at = min(expires_at, ?3) where channel = ?1 and account = ?2";
