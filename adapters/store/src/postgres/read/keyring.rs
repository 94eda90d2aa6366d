//! The keyrings of channels.

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, StoreError,
    store::{KeyChanges, KeyName, KeyRange, KeyringStore, KeyringUse},
};

use crate::{
    postgres::{
        store::PostgresStore,
        values::{Bytes, List, statement},
    },
    records::columns::Columns,
    shared::request::{KeyringWrite, WriteRequest},
};

#[async_trait]
impl KeyringStore for PostgresStore {
    async fn use_keyring(&self, by: &KeyringUse, anew: bool) -> Result<(), StoreError> {
        let begin = WriteRequest::Keyring(Box::new(by.clone()), KeyringWrite::Use { anew });
        self.write(begin).await.map(drop)
    }

    async fn change_keys(&self, by: &KeyringUse, changes: KeyChanges) -> Result<(), StoreError> {
        let change = WriteRequest::Keyring(Box::new(by.clone()), KeyringWrite::Change(changes));
        self.write(change).await.map(drop)
    }

    async fn keys(&self, channel: &ChannelId, names: &[KeyName]) -> Result<Vec<Vec<u8>>, StoreError> {
        let kinds: Vec<String> = names.iter().map(|name| name.kind.to_owned()).collect();
        let owners: Vec<Vec<u8>> = names.iter().map(|name| name.owner.clone()).collect();
        let ids: Vec<Vec<u8>> = names.iter().map(|name| name.id.clone()).collect();
        let select = statement!(SELECT, channel, List(kinds), List(owners), List(ids));
        self.readers.all(select, |row| row.value("value")).await
    }

    async fn keys_in(&self, channel: &ChannelId, range: &KeyRange) -> Result<Vec<Vec<u8>>, StoreError> {
        let KeyRange { kind, owner, after, limit } = range;
        let after = after.as_deref().map(Bytes);
        match owner {
            Some(owner) => {
                let select = statement!(SELECT_OF, channel, kind, Bytes(owner), after, limit);
                self.readers.all(select, |row| row.value("value")).await
            }
            None => self.readers.all(statement!(SELECT_ALL, channel, kind, limit), |row| row.value("value")).await,
        }
    }

    async fn count_keys(&self, channel: &ChannelId, kind: &str) -> Result<u64, StoreError> {
        let count = self.readers.one(statement!(COUNT, channel, kind), |row| row.value("count")).await?;
        Ok(count.unwrap_or_default())
    }
}

const SELECT: &str = "
    select k.value from unnest($2::text[], $3::bytea[], $4::bytea[]) as n (kind, owner, id)
    join keyring as k on k.channel = $1 and k.kind = n.kind and k.owner = n.owner and k.id = n.id
    order by k.kind, k.owner, k.id";

const SELECT_OF: &str = "
    select value from keyring
    where channel = $1 and kind = $2 and owner = $3 and ($4::bytea is null or id > $4)
    order by id limit $5";

const SELECT_ALL: &str = "
    select value from keyring where channel = $1 and kind = $2 order by owner, id limit $3";

const COUNT: &str = "select count(*) as count from keyring where channel = $1 and kind = $2";
