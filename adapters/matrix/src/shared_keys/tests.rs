//! The SDK's own tests of a store of keys, and what is ours. The keyring is in memory: that of a database has the checks of the store's
//! conformance suite.

use std::{
    iter,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use matrix_sdk::{
    SqliteCryptoStore,
    ruma::{RoomId, device_id, room_id, serde::Raw, user_id},
};
use matrix_sdk_base::crypto::{DecryptionSettings, EncryptionSettings, OlmMachine, TrustRequirement};
use rejoinder_core::{
    ChannelId, Keyring,
    store::{Fence, KeyringStore, KeyringUse, LeaseName},
};
use serde_json::{Value, json};

use super::*;

/// A keyring of one channel, of which only the values and the latest use are kept.
#[derive(Default)]
struct MemoryKeyring {
    values: SyncMutex<BTreeMap<KeyName, Vec<u8>>>,
    by: SyncMutex<Option<KeyringUse>>,
    is_away: AtomicBool,
}

#[async_trait]
impl KeyringStore for MemoryKeyring {
    async fn use_keyring(&self, by: &KeyringUse, anew: bool) -> Result<(), StoreError> {
        *self.by.lock() = Some(by.clone());
        if anew {
            self.values.lock().clear();
        }
        Ok(())
    }

    async fn change_keys(&self, by: &KeyringUse, changes: KeyChanges) -> Result<(), StoreError> {
        if self.is_away.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable("it is away".to_owned()));
        }
        if self.by.lock().as_ref() != Some(by) {
            return Err(StoreError::NotOwner);
        }
        let mut values = self.values.lock();
        for (name, value) in changes {
            match value {
                Some(value) => values.insert(name, value),
                None => values.remove(&name),
            };
        }
        Ok(())
    }

    async fn keys(&self, _: &ChannelId, names: &[KeyName]) -> Result<Vec<Vec<u8>>, StoreError> {
        let values = self.values.lock();
        Ok(values.iter().filter(|(name, _)| names.contains(name)).map(|(_, value)| value.clone()).collect())
    }

    async fn keys_in(&self, _: &ChannelId, range: &KeyRange) -> Result<Vec<Vec<u8>>, StoreError> {
        let is_in = |name: &KeyName| {
            name.kind == range.kind
                && range.owner.as_ref().is_none_or(|owner| name.owner == *owner)
                && range.after.as_ref().is_none_or(|after| name.id > *after)
        };
        let limit = range.limit.map_or(usize::MAX, |limit| limit as usize);
        let values = self.values.lock();
        Ok(values.iter().filter(|(name, _)| is_in(name)).map(|(_, value)| value.clone()).take(limit).collect())
    }

    async fn count_keys(&self, _: &ChannelId, kind: &str) -> Result<u64, StoreError> {
        Ok(self.values.lock().keys().filter(|name| name.kind == kind).count() as u64)
    }
}

async fn opened(store: &Arc<MemoryKeyring>, anew: bool) -> SharedKeys {
    let channel = ChannelId::new("matrix", "main");
    let lease = (LeaseName::Channel(channel.clone()), Fence(1));
    let keyring = Keyring::new(Arc::clone(store) as Arc<dyn KeyringStore>, channel, lease);
    SharedKeys::new(keyring.open(anew).await.expect("it opens"))
}

async fn machine(store: impl matrix_sdk_base::crypto::store::IntoCryptoStore) -> OlmMachine {
    let (user, device) = (user_id!("@agent:example.org"), device_id!("DEVICE"));
    OlmMachine::with_store(user, device, store, None).await.expect("it opens")
}

/// A message in a room, encrypted.
async fn encrypted(machine: &OlmMachine, room: &RoomId, text: &str) -> Value {
    let content = Raw::from_json_string(json!({ "msgtype": "m.text", "body": text }).to_string()).expect("it is JSON");
    let encrypted = machine.encrypt_room_event_raw(room, "m.room.message", &content).await.expect("it is encrypted");
    let content: Value = serde_json::from_str(encrypted.content.json().get()).expect("it is JSON");
    json!({
        "type": "m.room.encrypted",
        "event_id": "$1",
        "sender": "@agent:example.org",
        "origin_server_ts": 1,
        "content": content,
    })
}

async fn decrypted(machine: &OlmMachine, room: &RoomId, event: &Value) -> String {
    let event = Raw::from_json_string(event.to_string()).expect("it is JSON");
    let settings = DecryptionSettings { sender_device_trust_requirement: TrustRequirement::Untrusted };
    let event = machine.decrypt_room_event(&event, room, &settings).await.expect("it is decrypted").event;
    let event: Value = serde_json::from_str(event.json().get()).expect("it is JSON");
    event["content"]["body"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_device_goes_on_with_the_keys_of_its_folder() {
    let (folder, room, ada) =
        (tempfile::tempdir().expect("a folder"), room_id!("!room:example.org"), user_id!("@ada:example.org"));
    let old = Arc::new(SqliteCryptoStore::open(folder.path(), None).await.expect("it opens"));
    let before = machine(Arc::clone(&old)).await;
    before.bootstrap_cross_signing(false).await.expect("it is signed");
    before.update_tracked_users([ada]).await.expect("it is stored");
    before.share_room_key(room, iter::empty(), EncryptionSettings::default()).await.expect("it is made");
    let first = encrypted(&before, room, "first").await;

    let keys = opened(&Arc::default(), false).await;
    keys.copy_from(&*old).await.expect("they are copied");
    let after = machine(keys).await;
    let second = encrypted(&after, room, "second").await;

    assert_eq!(after.identity_keys().curve25519, before.identity_keys().curve25519);
    assert!(after.cross_signing_status().await.is_complete());
    assert!(after.tracked_users().await.expect("they are read").contains(ada));
    assert_eq!(first["content"]["session_id"], second["content"]["session_id"]);
    assert_eq!(decrypted(&after, room, &first).await, "first");
    assert_eq!(decrypted(&after, room, &second).await, "second");
}

#[tokio::test]
async fn the_next_use_has_what_the_one_before_has_written() {
    let (store, room) = (Arc::default(), room_id!("!room:example.org"));
    let here = machine(opened(&store, false).await).await;
    here.share_room_key(room, iter::empty(), EncryptionSettings::default()).await.expect("it is made");
    let first = encrypted(&here, room, "first").await;

    let there = machine(opened(&store, false).await).await;
    let second = encrypted(&there, room, "second").await;

    let content = Raw::from_json_string(json!({ "body": "late" }).to_string()).expect("it is JSON");
    here.encrypt_room_event_raw(room, "m.room.message", &content).await.expect_err("the other one has the keys now");
    assert_eq!(decrypted(&there, room, &first).await, "first");
    assert_eq!(decrypted(&there, room, &second).await, "second");
}

/// The SDK may believe that it was written.
#[tokio::test]
async fn after_a_change_that_was_not_written_nothing_is_read_or_written() {
    let store = Arc::default();
    let keys = opened(&store, false).await;
    keys.set_custom_value("name", b"one".to_vec()).await.expect("it is written");
    store.is_away.store(true, Ordering::Relaxed);
    keys.set_custom_value("name", b"two".to_vec()).await.expect_err("the store is away");
    store.is_away.store(false, Ordering::Relaxed);

    let failure = tokio::time::timeout(Duration::from_secs(5), keys.failure()).await.expect("it is told");
    assert!(matches!(failure, StoreError::Unavailable(_)), "{failure:?}");
    keys.set_custom_value("name", b"three".to_vec()).await.expect_err("it has ended");
    keys.get_custom_value("name").await.expect_err("it has ended");
    let next = opened(&store, false).await;
    assert_eq!(next.get_custom_value("name").await.expect("it is read"), Some(b"one".to_vec()));
}

#[tokio::test]
async fn the_devices_of_all_are_asked_for_after_a_gap() {
    let keys = opened(&Arc::default(), false).await;
    keys.save_tracked_users(&[(user_id!("@ada:example.org"), false)]).await.expect("it is stored");
    let are_outdated = async || {
        let users = keys.load_tracked_users().await.expect("they are read");
        users.iter().map(|user| user.dirty).collect::<Vec<_>>()
    };

    assert_eq!(are_outdated().await, [false]);
    keys.expect_outdated_devices().await.expect("it is stored");
    assert_eq!(are_outdated().await, [true]);
}

#[allow(warnings, clippy::all, clippy::pedantic, reason = "it is the SDK's code")]
mod of_the_sdk {
    use std::{
        collections::HashMap,
        sync::{Arc, Mutex, OnceLock},
    };

    use super::{MemoryKeyring, SharedKeys, opened};

    async fn get_store(name: &str, _passphrase: Option<&str>, clear_data: bool) -> SharedKeys {
        static STORES: OnceLock<Mutex<HashMap<String, Arc<MemoryKeyring>>>> = OnceLock::new();
        let store = {
            let mut stores = STORES.get_or_init(Mutex::default).lock().expect("no test has panicked here");
            Arc::clone(stores.entry(name.to_owned()).or_default())
        };
        opened(&store, clear_data).await
    }

    matrix_sdk_crypto::cryptostore_integration_tests!();
    matrix_sdk_crypto::cryptostore_integration_tests_time!();
}
