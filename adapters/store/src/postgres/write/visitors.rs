//! What people sign in to a chat page with.

use rejoinder_core::{
    Identity, StoreError,
    store::{Invitation, Passkey, Visit, VisitorChange},
};

use super::rows::{self, Transaction};
use crate::{
    postgres::values::{Bytes, Statement, insert_into, statement},
    shared::bounds::CHALLENGES_KEPT,
};

/// Whether a transition's changes fit what is stored: an invitation that it uses is there, a counter is as expected, and a challenge is
/// new. A row is locked for that, which all such transitions lock: of two that use the same invitation, counter or challenge, the other
/// waits, and does not fit any more.
pub(super) async fn fit(transaction: &mut Transaction<'_>, changes: &[VisitorChange]) -> Result<bool, StoreError> {
    if changes.is_empty() {
        return Ok(true);
    }
    rows::change(transaction, statement!(LOCK)).await?;
    for change in changes {
        let fits = match change {
            VisitorChange::Register { passkey: Passkey { id, channel, account, added_at, .. }, invitation } => {
                is_there(transaction, statement!(SELECT_INVITATION, invitation, channel, account, added_at)).await?
                    && !is_there(transaction, statement!(SELECT_PASSKEY, Bytes(id))).await?
            }
            VisitorChange::Sign { passkey, from, .. } => {
                is_there(transaction, statement!(SELECT_COUNTER, Bytes(passkey), from)).await?
            }
            VisitorChange::Open(Visit { challenge, .. }) => {
                !is_there(transaction, statement!(SELECT_CHALLENGE, challenge)).await?
            }
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

async fn is_there(transaction: &mut Transaction<'_>, statement: Statement<'_>) -> Result<bool, StoreError> {
    rows::one(transaction, statement, |_| Ok(())).await.map(|found| found.is_some())
}

pub(super) async fn change(transaction: &mut Transaction<'_>, change: &VisitorChange) -> Result<(), StoreError> {
    match change {
        VisitorChange::Invite(Invitation { code, channel, account, expires_at }) => {
            rows::change(transaction, statement!(DELETE_INVITATIONS, channel, account)).await?;
            let insert = insert_into!(invitations { code, channel, account, expires_at });
            rows::change(transaction, insert).await.map(drop)
        }
        VisitorChange::Register { passkey, invitation } => {
            // Whoever makes somebody unknown locks nothing else: if that came first, the invitation is gone.
            rows::change_one(transaction, "invitations", statement!(DELETE_INVITATION, invitation)).await?;
            let Passkey { id, channel, account, party, algorithm, key, counter, browser, added_at, used_at } = passkey;
            let (id, key) = (Bytes(id), Bytes(key));
            let insert = insert_into!(passkeys {
                id,
                channel,
                account,
                party,
                algorithm,
                key,
                counter,
                browser,
                added_at,
                used_at
            });
            rows::change(transaction, insert).await.map(drop)
        }
        VisitorChange::Sign { passkey, to, at, .. } => {
            rows::change_one(transaction, "passkeys", statement!(SIGN, Bytes(passkey), to, at)).await
        }
        VisitorChange::Open(visit) => {
            let Visit { id, hash, channel, account, challenge, browser, opened_at, expires_at } = visit;
            let ended = opened_at.as_millis() - CHALLENGES_KEPT;
            rows::change(transaction, statement!("delete from visits where expires_at <= $1", ended)).await?;
            rows::change(transaction, statement!("delete from invitations where expires_at <= $1", opened_at)).await?;
            let insert = insert_into!(visits { id, hash, channel, account, challenge, browser, opened_at, expires_at });
            rows::change(transaction, insert).await.map(drop)
        }
        VisitorChange::End { id, at } => rows::change(transaction, statement!(END, id, at)).await.map(drop),
        VisitorChange::EndAll { of, at } => {
            for sql in [DELETE_INVITATIONS, DELETE_SUBSCRIPTIONS] {
                rows::change(transaction, statement!(sql, of.channel, of.id)).await?;
            }
            rows::change(transaction, statement!(END_ALL, of.channel, of.id, at)).await.map(drop)
        }
        VisitorChange::RemovePasskeys(of) => {
            rows::change(transaction, statement!(DELETE_PASSKEYS, of.channel, of.id)).await.map(drop)
        }
    }
}

/// Removes all that somebody signs in with, and what tells their browsers of answers.
pub(super) async fn forget(transaction: &mut Transaction<'_>, identity: &Identity) -> Result<(), StoreError> {
    for sql in [DELETE_INVITATIONS, DELETE_PASSKEYS, DELETE_VISITS, DELETE_SUBSCRIPTIONS] {
        rows::change(transaction, statement!(sql, identity.channel, identity.id)).await?;
    }
    Ok(())
}

const LOCK: &str = "select version from versions where noun = 'tokens' for no key update";

const SELECT_INVITATION: &str =
    "select code from invitations where code = $1 and channel = $2 and account = $3 and expires_at > $4";

const SELECT_PASSKEY: &str = "select id from passkeys where id = $1";

const SELECT_COUNTER: &str = "select id from passkeys where id = $1 and counter = $2";

const SELECT_CHALLENGE: &str = "select id from visits where challenge = $1";

const DELETE_INVITATION: &str = "delete from invitations where code = $1";

const DELETE_INVITATIONS: &str = "delete from invitations where channel = $1 and account = $2";

/// The conversations of one who signs in are threads of one chat. Without a thread, one belongs to who has its secret id.
const DELETE_SUBSCRIPTIONS: &str = "delete from push_subscriptions where channel = $1 and chat = $2 and thread <> ''";

const DELETE_PASSKEYS: &str = "delete from passkeys where channel = $1 and account = $2";

const DELETE_VISITS: &str = "delete from visits where channel = $1 and account = $2";

const SIGN: &str = "update passkeys set counter = $2, used_at = $3 where id = $1";

/// The row stays for a while, so that its challenge is not used again.
const END: &str = "update visits set expires_at = least(expires_at, $2) where id = $1";

const END_ALL: &str = "update visits set expires_at = least(expires_at, $3) where channel = $1 and account = $2";
