//! The keyrings of channels. A change locks the row of its use, so that a later use begins when all changes of the earlier ones
//! are committed or refused.

use rejoinder_core::{
    StoreError,
    store::{KeyChanges, KeyName, KeyringUse},
};

use super::{
    leases,
    rows::{self, Transaction},
};
use crate::{
    postgres::values::{List, statement},
    shared::request::KeyringWrite,
};

pub(super) async fn write(
    transaction: &mut Transaction<'_>,
    by: &KeyringUse,
    write: &KeyringWrite,
) -> Result<(), StoreError> {
    if !leases::is_held(transaction, &by.lease).await? {
        return Err(StoreError::NotOwner);
    }
    match write {
        KeyringWrite::Use { anew } => {
            rows::change(transaction, statement!(USE, by.channel, by.id)).await?;
            if *anew {
                rows::change(transaction, statement!(EMPTY, by.channel)).await?;
            }
            Ok(())
        }
        KeyringWrite::Change(changes) => {
            let lock = statement!(LOCK_USE, by.channel, by.id);
            if rows::one(transaction, lock, |_| Ok(())).await?.is_none() {
                return Err(StoreError::NotOwner);
            }
            change(transaction, by, changes).await
        }
    }
}

async fn change(transaction: &mut Transaction<'_>, by: &KeyringUse, changes: &KeyChanges) -> Result<(), StoreError> {
    let (mut put, mut values, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    for (name, value) in changes {
        match value {
            Some(value) => {
                put.push(name);
                values.push(value.clone());
            }
            None => removed.push(name),
        }
    }
    if !removed.is_empty() {
        let (kinds, owners, ids) = columns(&removed);
        rows::change(transaction, statement!(REMOVE, by.channel, kinds, owners, ids)).await?;
    }
    if !put.is_empty() {
        let (kinds, owners, ids) = columns(&put);
        rows::change(transaction, statement!(PUT, by.channel, kinds, owners, ids, List(values))).await?;
    }
    Ok(())
}

/// The parts of names, as arrays.
fn columns(names: &[&KeyName]) -> (List<String>, List<Vec<u8>>, List<Vec<u8>>) {
    let kinds = names.iter().map(|name| name.kind.to_owned()).collect();
    let owners = names.iter().map(|name| name.owner.clone()).collect();
    (List(kinds), List(owners), List(names.iter().map(|name| name.id.clone()).collect()))
}

/// It waits for changes that are being made.
const USE: &str = "
    insert into keyring_uses (channel, id) values ($1, $2)
    on conflict (channel) do update set id = excluded.id";

const EMPTY: &str = "delete from keyring where channel = $1";

const LOCK_USE: &str = "select 1 from keyring_uses where channel = $1 and id = $2 for share";

const REMOVE: &str = "
    delete from keyring as k using unnest($2::text[], $3::bytea[], $4::bytea[]) as r (kind, owner, id)
    where k.channel = $1 and k.kind = r.kind and k.owner = r.owner and k.id = r.id";

const PUT: &str = "
    insert into keyring (channel, kind, owner, id, value)
    select $1, p.* from unnest($2::text[], $3::bytea[], $4::bytea[], $5::bytea[]) as p
    on conflict (channel, kind, owner, id) do update set value = excluded.value";
