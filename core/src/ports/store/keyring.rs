//! Keyrings: what the account of a channel needs wherever the channel runs, such as the keys that decrypt its messages.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{
    error::StoreError,
    nodes::{Fence, LeaseName},
};
use crate::model::ChannelId;

/// How many bytes of an id stand in a name. Others choose some ids, and an index has no room for long ones.
const LONGEST: usize = 200;

store_trait! {
    /// The keyrings of channels' accounts. A store that admits one process keeps none: adapters have their keys in files.
    pub trait KeyringStore {
        /// Begins to use the keyring of a channel, and empties it first if it is to begin `anew`. What an earlier use has not written by
        /// then, it does not write any more. [`StoreError::NotOwner`] if the lease is over.
        write fn use_keyring(by: &KeyringUse, anew: bool) -> ();

        /// Changes keys. [`StoreError::NotOwner`] if the lease is over, or a later use has begun.
        write fn change_keys(by: &KeyringUse, changes: KeyChanges) -> ();

        /// The values of those of these keys that are there, in the order of their names.
        read fn keys(channel: &ChannelId, names: &[KeyName]) -> Vec<Vec<u8>>;

        /// The values of the keys in a range, in the order of their names.
        read fn keys_in(channel: &ChannelId, range: &KeyRange) -> Vec<Vec<u8>>;

        /// How many keys of a kind there are.
        read fn count_keys(channel: &ChannelId, kind: &str) -> u64;
    }
}

/// A use of the keyring of a channel, under the lease of the channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyringUse {
    pub channel: ChannelId,
    pub lease: (LeaseName, Fence),
    /// This use, of all of the channel.
    pub id: Uuid,
}

/// The values that keys have from now on. `None`: the key is removed.
pub type KeyChanges = BTreeMap<KeyName, Option<Vec<u8>>>;

/// The name of a key, of which there is one in a keyring.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyName {
    pub kind: &'static str,
    pub owner: Vec<u8>,
    pub id: Vec<u8>,
}

impl KeyName {
    /// The key of a kind that has this id with its owner. The parts may be any texts.
    #[must_use]
    pub fn new(kind: &'static str, owner: &str, id: &str) -> Self {
        Self { kind, owner: part(owner), id: part(id) }
    }
}

/// The keys of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub kind: &'static str,
    /// Only those of this owner.
    pub owner: Option<Vec<u8>>,
    /// Only those after this id; with an owner.
    pub after: Option<Vec<u8>>,
    /// At most so many.
    pub limit: Option<u32>,
}

impl KeyRange {
    /// All keys of a kind.
    #[must_use]
    pub const fn all(kind: &'static str) -> Self {
        Self { kind, owner: None, after: None, limit: None }
    }

    /// Those of an owner.
    #[must_use]
    pub fn of(kind: &'static str, owner: &str) -> Self {
        Self { owner: Some(part(owner)), ..Self::all(kind) }
    }

    /// Only those after this id.
    #[must_use]
    pub fn after(self, id: &str) -> Self {
        Self { after: Some(part(id)), ..self }
    }

    /// At most so many of them.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit: Some(u32::try_from(limit).unwrap_or(u32::MAX)), ..self }
    }
}

/// A part of a name: the text, or a digest of a long one.
fn part(text: &str) -> Vec<u8> {
    if text.len() <= LONGEST { text.as_bytes().to_vec() } else { Sha256::digest(text).to_vec() }
}
