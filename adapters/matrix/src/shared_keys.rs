//! Our device's keys in the keyring of the channel, for whichever node has the channel.
//!
//! Each value is JSON. Changes are written one after the other, each in one transaction under the channel's lease. If one is not
//! written, or that is not known, the SDK's memory may be ahead of what is stored. Then nothing more is read or written, the run of the
//! channel ends, and the next one begins with what is stored.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, OnceLock},
};

use async_trait::async_trait;
use matrix_sdk::ruma::{
    DeviceId, OwnedDeviceId, OwnedRoomId, OwnedUserId, RoomId, TransactionId, UserId,
    events::secret::request::SecretName,
};
use matrix_sdk_base::{
    cross_process_lock::{
        CrossProcessLockGeneration,
        memory_store_helper::{Lease, try_take_leased_lock},
    },
    crypto::{
        Account, DeviceData, GossipRequest, SecretInfo, Session, TrackedUser, UserIdentityData,
        olm::{
            Curve25519PublicKey, InboundGroupSession, OlmMessageHash, OutboundGroupSession, PickledAccount,
            PickledCrossSigningIdentity, PickledInboundGroupSession, PickledOutboundGroupSession, PickledSession,
            PrivateCrossSigningIdentity, SenderDataType, StaticAccountData,
        },
        store::{
            CryptoStore, CryptoStoreError, Result,
            types::{
                BackupKeys, Changes, DehydratedDeviceKey, DeviceChanges, IdentityChanges, PendingChanges,
                RoomKeyCounts, RoomKeyWithheldEntry, RoomPendingKeyBundleDetails, RoomSettings, SecretsInboxItem,
                StoredRoomKeyBundleData,
            },
        },
    },
};
use parking_lot::Mutex as SyncMutex;
use rejoinder_core::{
    OpenKeyring, StoreError,
    store::{KeyChanges, KeyName, KeyRange},
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

/// Kinds of keys, with what their owners and ids are.
mod kind {
    /// What there is one of: no owner, and its name.
    pub(super) const SINGLE: &str = "single";
    /// Olm sessions: the sender's key, the session.
    pub(super) const SESSION: &str = "session";
    /// Keys of messages: the room, the session.
    pub(super) const ROOM_KEY: &str = "room_key";
    /// Where they are: the sender's key with what is known of the sender, the session.
    pub(super) const ROOM_KEY_OF: &str = "room_key_of";
    /// Where those are that are not in the backup: the room, the session.
    pub(super) const NOT_BACKED_UP: &str = "not_backed_up";
    /// Those of our messages: no owner, the room.
    pub(super) const OWN_ROOM_KEY: &str = "own_room_key";
    /// The user, the device.
    pub(super) const DEVICE: &str = "device";
    /// The public keys of a user: no owner, the user.
    pub(super) const IDENTITY: &str = "identity";
    /// Users whose devices are followed: no owner, the user.
    pub(super) const TRACKED: &str = "tracked";
    /// Olm messages that were read: the sender's key, the digest.
    pub(super) const READ: &str = "read";
    /// Requests for keys that were not sent yet, and that were: no owner, the request.
    pub(super) const UNSENT: &str = "unsent_request";
    pub(super) const SENT: &str = "sent_request";
    /// Their ids: no owner, what is requested.
    pub(super) const REQUEST_FOR: &str = "request_for";
    /// Keys that were withheld from us: the room, the session.
    pub(super) const WITHHELD: &str = "withheld";
    /// No owner, the room.
    pub(super) const ROOM_SETTINGS: &str = "room_settings";
    /// No owner, the name.
    pub(super) const SECRETS: &str = "secrets";
    /// The room, the user.
    pub(super) const BUNDLE: &str = "bundle";
    /// Rooms of which all keys were loaded from the backup: no owner, the room.
    pub(super) const LOADED: &str = "loaded";
    /// No owner, the room.
    pub(super) const PENDING_BUNDLE: &str = "pending_bundle";
    /// No owner, a name of the SDK. The value is its own.
    pub(super) const CUSTOM: &str = "custom";
}

/// The session of our device, as [`session`](crate::session) stores it.
pub(crate) const SESSION: &str = "session";

/// Is there while the operator has given the old device up and there is no new one.
pub(crate) const ANEW: &str = "anew";

const ACCOUNT: &str = "account";

const IDENTITY: &str = "identity";

const SYNC_TOKEN: &str = "sync_token";

const BACKUP_KEY: &str = "backup_key";

const BACKUP_VERSION: &str = "backup_version";

const DEHYDRATED_KEY: &str = "dehydrated_key";

/// All that may be known of a sender.
const SENDERS: [SenderDataType; 5] = [
    SenderDataType::UnknownDevice,
    SenderDataType::DeviceInfo,
    SenderDataType::VerificationViolation,
    SenderDataType::SenderUnverified,
    SenderDataType::SenderVerified,
];

/// How many keys of messages are written at once where many are.
const AT_ONCE: usize = 200;

/// Our device's keys. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SharedKeys(Arc<Inner>);

struct Inner {
    keyring: OpenKeyring,
    /// Held while changes are made and written.
    writing: Arc<Mutex<()>>,
    /// What does not change of the account, once it is known.
    account: SyncMutex<Option<StaticAccountData>>,
    /// Why a change was not written, or may not have been.
    failure: OnceLock<StoreError>,
    failed: CancellationToken,
    /// The SDK's locks against other processes. There are none: the lease has this one alone here.
    locks: SyncMutex<HashMap<String, Lease>>,
}

impl fmt::Debug for SharedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKeys").finish_non_exhaustive()
    }
}

/// What there is one of.
fn single(name: &str) -> KeyName {
    KeyName::new(kind::SINGLE, "", name)
}

/// The owner of the places of keys whose sender has this key, and of whom that is known.
fn sender(key: &Curve25519PublicKey, known: SenderDataType) -> String {
    format!("{} {}", known as u8, key.to_base64())
}

/// The error of another store as ours.
fn of<T, E: Into<CryptoStoreError>>(result: Result<T, E>) -> Result<T> {
    result.map_err(Into::into)
}

fn parsed<T: DeserializeOwned>(value: &[u8]) -> Result<T> {
    serde_json::from_slice(value).map_err(CryptoStoreError::from)
}

impl SharedKeys {
    pub(crate) fn new(keyring: OpenKeyring) -> Self {
        Self(Arc::new(Inner {
            keyring,
            writing: Arc::default(),
            account: SyncMutex::default(),
            failure: OnceLock::new(),
            failed: CancellationToken::new(),
            locks: SyncMutex::default(),
        }))
    }

    /// Waits until a change is not written, or may not have been, and returns why.
    pub(crate) async fn failure(&self) -> StoreError {
        self.0.failed.cancelled().await;
        self.0.failure.get().cloned().unwrap_or(StoreError::NotOwner)
    }

    /// The next sync does not tell of all devices that have changed: those of all users whose devices are followed are asked for.
    /// It is stored: the SDK keeps it in memory until it has asked.
    pub(crate) async fn expect_outdated_devices(&self) -> Result<()> {
        let users = self.load_tracked_users().await?;
        let users: Vec<(&UserId, bool)> = users.iter().map(|user| (&*user.user_id, true)).collect();
        self.save_tracked_users(&users).await
    }

    /// Whether there are keys.
    pub(crate) async fn has_account(&self) -> Result<bool> {
        self.has(single(ACCOUNT)).await
    }

    /// What there is one of, by its name.
    pub(crate) async fn find<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        self.get(single(name)).await
    }

    /// Stores what there is one of, and removes what is called `instead_of`.
    pub(crate) async fn store<T: Serialize + Sync>(
        &self,
        name: &str,
        value: &T,
        instead_of: Option<&str>,
    ) -> Result<()> {
        let guard = self.begin().await;
        let mut rows = Rows::default();
        rows.put(single(name), value)?;
        if let Some(other) = instead_of {
            rows.remove(single(other));
        }
        self.write(guard, rows).await
    }

    /// Copies what a device needs from another store of keys, which is not used any more from now on.
    pub(crate) async fn copy_from(&self, old: &impl CryptoStore) -> Result<()> {
        let account = of(old.load_account().await)?.ok_or(CryptoStoreError::AccountUnset)?;
        let me = account.user_id().to_owned();
        let BackupKeys { decryption_key, backup_version } = of(old.load_backup_keys().await)?;
        let mut changes = Changes {
            private_identity: of(old.load_identity().await)?,
            backup_decryption_key: decryption_key,
            backup_version,
            next_batch_token: of(old.next_batch_token().await)?,
            ..Changes::default()
        };
        let tracked = of(old.load_tracked_users().await)?;
        let users: BTreeSet<OwnedUserId> = tracked.iter().map(|user| user.user_id.clone()).chain([me]).collect();
        for user in &users {
            changes.identities.new.extend(of(old.get_user_identity(user).await)?);
            changes.devices.new.extend(of(old.get_user_devices(user).await)?.into_values());
        }
        for device in &changes.devices.new {
            if let Some(key) = device.curve25519_key() {
                changes.sessions.extend(of(old.get_sessions(&key.to_base64()).await)?.unwrap_or_default());
            }
        }
        let room_keys = of(old.get_inbound_group_sessions().await)?;
        let rooms: BTreeSet<OwnedRoomId> = room_keys.iter().map(|key| key.room_id().to_owned()).collect();
        for room in &rooms {
            changes.outbound_group_sessions.extend(of(old.get_outbound_group_session(room).await)?);
            changes
                .room_settings
                .extend(of(old.get_room_settings(room).await)?.map(|settings| (room.clone(), settings)));
            if of(old.has_downloaded_all_room_keys(room).await)? {
                changes.room_key_backups_fully_downloaded.insert(room.clone());
            }
        }
        self.save_pending_changes(PendingChanges { account: Some(account) }).await?;
        self.save_changes(changes).await?;
        let tracked: Vec<(&UserId, bool)> = tracked.iter().map(|user| (&*user.user_id, user.dirty)).collect();
        self.save_tracked_users(&tracked).await?;
        for some in room_keys.chunks(AT_ONCE) {
            self.save_inbound_group_sessions(some.to_vec(), None).await?;
        }
        Ok(())
    }

    fn get_static_account(&self) -> Option<StaticAccountData> {
        self.0.account.lock().clone()
    }

    fn account(&self) -> Result<StaticAccountData> {
        self.get_static_account().ok_or(CryptoStoreError::AccountUnset)
    }

    /// Whether all changes so far were written.
    fn check(&self) -> Result<()> {
        match self.0.failure.get() {
            Some(error) => Err(CryptoStoreError::backend(error.clone())),
            None => Ok(()),
        }
    }

    async fn values(&self, names: &[KeyName]) -> Result<Vec<Vec<u8>>> {
        self.check()?;
        self.0.keyring.values(names).await.map_err(CryptoStoreError::backend)
    }

    async fn has(&self, name: KeyName) -> Result<bool> {
        Ok(!self.values(&[name]).await?.is_empty())
    }

    async fn get<T: DeserializeOwned>(&self, name: KeyName) -> Result<Option<T>> {
        self.values(&[name]).await?.first().map(|value| parsed(value)).transpose()
    }

    async fn list<T: DeserializeOwned>(&self, range: &KeyRange) -> Result<Vec<T>> {
        self.check()?;
        let values = self.0.keyring.values_in(range).await.map_err(CryptoStoreError::backend)?;
        values.iter().map(|value| parsed(value)).collect()
    }

    async fn count(&self, kind: &'static str) -> Result<usize> {
        let count = self.0.keyring.count(kind).await.map_err(CryptoStoreError::backend)?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// The keys of messages whose places these are.
    async fn room_keys_at(&self, places: &[(String, String)]) -> Result<Vec<InboundGroupSession>> {
        let names: Vec<_> = places.iter().map(|(room, session)| KeyName::new(kind::ROOM_KEY, room, session)).collect();
        let values = self.values(&names).await?;
        values.iter().map(|value| Ok(InboundGroupSession::from_pickle(parsed(value)?)?)).collect()
    }

    async fn room_keys(&self, range: &KeyRange) -> Result<Vec<InboundGroupSession>> {
        let pickles: Vec<PickledInboundGroupSession> = self.list(range).await?;
        pickles.into_iter().map(|pickle| Ok(InboundGroupSession::from_pickle(pickle)?)).collect()
    }

    async fn request(&self, id: &str) -> Result<Option<GossipRequest>> {
        let names = [kind::SENT, kind::UNSENT].map(|kind| KeyName::new(kind, "", id));
        self.values(&names).await?.first().map(|value| parsed(value)).transpose()
    }

    /// The secrets that were received, by their names, with these.
    async fn secrets_with(&self, new: Vec<SecretsInboxItem>) -> Result<BTreeMap<String, Vec<String>>> {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for SecretsInboxItem { secret_name, secret } in new {
            let name = secret_name.to_string();
            let mut secrets: Vec<String> = match all.remove(&name) {
                Some(secrets) => secrets,
                None => self.get(KeyName::new(kind::SECRETS, "", &name)).await?.unwrap_or_default(),
            };
            if !secrets.contains(&secret) {
                secrets.push((*secret).clone());
            }
            all.insert(name, secrets);
        }
        Ok(all)
    }

    /// Waits until no other change is made.
    async fn begin(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.0.writing).lock_owned().await
    }

    /// Writes changes, also if the caller goes meanwhile.
    async fn write(&self, guard: OwnedMutexGuard<()>, Rows(changes): Rows) -> Result<()> {
        self.check()?;
        if changes.is_empty() {
            return Ok(());
        }
        let keys = self.clone();
        let writing = tokio::spawn(async move {
            let written = keys.0.keyring.change(changes).await;
            if let Err(error) = &written {
                // Another one cannot have been there before: the changes before were written.
                let _ = keys.0.failure.set(error.clone());
                keys.0.failed.cancel();
            }
            drop(guard);
            written
        });
        writing.await.map_err(CryptoStoreError::backend)?.map_err(CryptoStoreError::backend)
    }
}

/// Changes that are written at once.
#[derive(Default)]
struct Rows(KeyChanges);

impl Rows {
    fn put<T: Serialize + ?Sized>(&mut self, name: KeyName, value: &T) -> Result<()> {
        self.0.insert(name, Some(serde_json::to_vec(value)?));
        Ok(())
    }

    fn remove(&mut self, name: KeyName) {
        self.0.insert(name, None);
    }

    /// Stores what there is one of, if it has changed.
    fn put_single<T: Serialize>(&mut self, name: &str, value: Option<&T>) -> Result<()> {
        value.map_or(Ok(()), |value| self.put(single(name), value))
    }

    async fn put_room_key(&mut self, key: &InboundGroupSession) -> Result<()> {
        let (room, session) = (key.room_id().as_str(), key.session_id());
        let pickle = key.pickle().await;
        let known = pickle.sender_data.to_type();
        for one in SENDERS {
            let name = KeyName::new(kind::ROOM_KEY_OF, &sender(&pickle.sender_key, one), session);
            if one == known {
                self.put(name, &(room, session))?;
            } else {
                self.remove(name);
            }
        }
        let name = KeyName::new(kind::NOT_BACKED_UP, room, session);
        if pickle.backed_up {
            self.remove(name);
        } else {
            self.put(name, &(room, session))?;
        }
        self.put(KeyName::new(kind::ROOM_KEY, room, session), &pickle)
    }

    fn put_people(&mut self, identities: &IdentityChanges, devices: &DeviceChanges) -> Result<()> {
        let device =
            |device: &DeviceData| KeyName::new(kind::DEVICE, device.user_id().as_str(), device.device_id().as_str());
        for changed in devices.new.iter().chain(&devices.changed) {
            self.put(device(changed), changed)?;
        }
        for deleted in &devices.deleted {
            self.remove(device(deleted));
        }
        for identity in identities.changed.iter().chain(&identities.new) {
            self.put(KeyName::new(kind::IDENTITY, "", identity.user_id().as_str()), identity)?;
        }
        Ok(())
    }

    fn put_request(&mut self, request: &GossipRequest) -> Result<()> {
        let id = request.request_id.as_str();
        let (now, before) = if request.sent_out { (kind::SENT, kind::UNSENT) } else { (kind::UNSENT, kind::SENT) };
        self.remove(KeyName::new(before, "", id));
        self.put(KeyName::new(now, "", id), request)?;
        self.put(KeyName::new(kind::REQUEST_FOR, "", &request.info.as_key()), id)
    }
}

#[async_trait]
impl CryptoStore for SharedKeys {
    type Error = CryptoStoreError;

    async fn load_account(&self) -> Result<Option<Account>> {
        let Some(pickle) = self.find::<PickledAccount>(ACCOUNT).await? else { return Ok(None) };
        let account = Account::from_pickle(pickle)?;
        *self.0.account.lock() = Some(account.static_data().clone());
        Ok(Some(account))
    }

    async fn load_identity(&self) -> Result<Option<PrivateCrossSigningIdentity>> {
        let Some(pickle) = self.find::<PickledCrossSigningIdentity>(IDENTITY).await? else { return Ok(None) };
        PrivateCrossSigningIdentity::from_pickle(pickle).map(Some).map_err(|_| CryptoStoreError::UnpicklingError)
    }

    async fn save_changes(&self, changes: Changes) -> Result<()> {
        let guard = self.begin().await;
        let mut rows = Rows::default();
        if let Some(identity) = &changes.private_identity {
            rows.put(single(IDENTITY), &identity.pickle().await)?;
        }
        rows.put_single(BACKUP_VERSION, changes.backup_version.as_ref())?;
        rows.put_single(BACKUP_KEY, changes.backup_decryption_key.as_ref())?;
        rows.put_single(DEHYDRATED_KEY, changes.dehydrated_device_pickle_key.as_ref())?;
        rows.put_single(SYNC_TOKEN, changes.next_batch_token.as_ref())?;
        for session in &changes.sessions {
            let sender = session.sender_key().to_base64();
            rows.put(KeyName::new(kind::SESSION, &sender, session.session_id()), &session.pickle().await)?;
        }
        for OlmMessageHash { sender_key, hash } in &changes.message_hashes {
            rows.put(KeyName::new(kind::READ, sender_key, hash), &())?;
        }
        for key in &changes.inbound_group_sessions {
            rows.put_room_key(key).await?;
        }
        for key in &changes.outbound_group_sessions {
            rows.put(KeyName::new(kind::OWN_ROOM_KEY, "", key.room_id().as_str()), &key.pickle().await)?;
        }
        for request in &changes.key_requests {
            rows.put_request(request)?;
        }
        rows.put_people(&changes.identities, &changes.devices)?;
        for (room, sessions) in &changes.withheld_session_info {
            for (session, entry) in sessions {
                rows.put(KeyName::new(kind::WITHHELD, room.as_str(), session), entry)?;
            }
        }
        for (room, settings) in &changes.room_settings {
            rows.put(KeyName::new(kind::ROOM_SETTINGS, "", room.as_str()), settings)?;
        }
        for (name, secrets) in self.secrets_with(changes.secrets).await? {
            rows.put(KeyName::new(kind::SECRETS, "", &name), &secrets)?;
        }
        for bundle in &changes.received_room_key_bundles {
            let (room, user) = (bundle.bundle_data.room_id.as_str(), bundle.sender_user.as_str());
            rows.put(KeyName::new(kind::BUNDLE, room, user), bundle)?;
        }
        for room in &changes.room_key_backups_fully_downloaded {
            rows.put(KeyName::new(kind::LOADED, "", room.as_str()), &())?;
        }
        for (room, details) in &changes.rooms_pending_key_bundle {
            let name = KeyName::new(kind::PENDING_BUNDLE, "", room.as_str());
            match details {
                Some(details) => rows.put(name, details)?,
                None => rows.remove(name),
            }
        }
        self.write(guard, rows).await
    }

    async fn save_pending_changes(&self, changes: PendingChanges) -> Result<()> {
        let guard = self.begin().await;
        let mut rows = Rows::default();
        if let Some(account) = changes.account {
            *self.0.account.lock() = Some(account.static_data().clone());
            rows.put(single(ACCOUNT), &account.pickle())?;
        }
        self.write(guard, rows).await
    }

    async fn save_inbound_group_sessions(
        &self,
        sessions: Vec<InboundGroupSession>,
        _backed_up_to_version: Option<&str>,
    ) -> Result<()> {
        // Each says itself whether it is in the backup, of which there is one.
        self.save_changes(Changes { inbound_group_sessions: sessions, ..Changes::default() }).await
    }

    async fn get_sessions(&self, sender_key: &str) -> Result<Option<Vec<Session>>> {
        let device_keys = self.get_own_device().await?.as_device_keys().clone();
        let pickles: Vec<PickledSession> = self.list(&KeyRange::of(kind::SESSION, sender_key)).await?;
        let session =
            |pickle| Session::from_pickle(device_keys.clone(), pickle).map_err(|_| CryptoStoreError::AccountUnset);
        let sessions = pickles.into_iter().map(session).collect::<Result<Vec<_>>>()?;
        Ok((!sessions.is_empty()).then_some(sessions))
    }

    async fn get_inbound_group_session(
        &self,
        room_id: &RoomId,
        session_id: &str,
    ) -> Result<Option<InboundGroupSession>> {
        let place = (room_id.to_string(), session_id.to_owned());
        Ok(self.room_keys_at(&[place]).await?.pop())
    }

    async fn get_withheld_info(&self, room_id: &RoomId, session_id: &str) -> Result<Option<RoomKeyWithheldEntry>> {
        self.get(KeyName::new(kind::WITHHELD, room_id.as_str(), session_id)).await
    }

    async fn get_withheld_sessions_by_room_id(&self, room_id: &RoomId) -> Result<Vec<RoomKeyWithheldEntry>> {
        self.list(&KeyRange::of(kind::WITHHELD, room_id.as_str())).await
    }

    async fn get_inbound_group_sessions(&self) -> Result<Vec<InboundGroupSession>> {
        self.room_keys(&KeyRange::all(kind::ROOM_KEY)).await
    }

    async fn inbound_group_session_counts(&self, _backup_version: Option<&str>) -> Result<RoomKeyCounts> {
        let total = self.count(kind::ROOM_KEY).await?;
        Ok(RoomKeyCounts { total, backed_up: total.saturating_sub(self.count(kind::NOT_BACKED_UP).await?) })
    }

    async fn get_inbound_group_sessions_by_room_id(&self, room_id: &RoomId) -> Result<Vec<InboundGroupSession>> {
        self.room_keys(&KeyRange::of(kind::ROOM_KEY, room_id.as_str())).await
    }

    async fn get_inbound_group_sessions_for_device_batch(
        &self,
        curve_key: Curve25519PublicKey,
        sender_data_type: SenderDataType,
        after_session_id: Option<String>,
        limit: usize,
    ) -> Result<Vec<InboundGroupSession>> {
        let mut range = KeyRange::of(kind::ROOM_KEY_OF, &sender(&curve_key, sender_data_type)).limit(limit);
        if let Some(after) = after_session_id {
            range = range.after(&after);
        }
        let places: Vec<(String, String)> = self.list(&range).await?;
        let mut keys = self.room_keys_at(&places).await?;
        // The next range begins after the last one.
        keys.sort_by_cached_key(|key| KeyName::new(kind::ROOM_KEY_OF, "", key.session_id()));
        Ok(keys)
    }

    async fn inbound_group_sessions_for_backup(
        &self,
        _backup_version: &str,
        limit: usize,
    ) -> Result<Vec<InboundGroupSession>> {
        let places: Vec<(String, String)> = self.list(&KeyRange::all(kind::NOT_BACKED_UP).limit(limit)).await?;
        self.room_keys_at(&places).await
    }

    async fn mark_inbound_group_sessions_as_backed_up(
        &self,
        _backup_version: &str,
        room_and_session_ids: &[(&RoomId, &str)],
    ) -> Result<()> {
        let guard = self.begin().await;
        let mut rows = Rows::default();
        for (room, session) in room_and_session_ids {
            let name = KeyName::new(kind::ROOM_KEY, room.as_str(), session);
            let Some(mut pickle) = self.get::<PickledInboundGroupSession>(name.clone()).await? else { continue };
            pickle.backed_up = true;
            rows.put(name, &pickle)?;
            rows.remove(KeyName::new(kind::NOT_BACKED_UP, room.as_str(), session));
        }
        self.write(guard, rows).await
    }

    async fn reset_backup_state(&self) -> Result<()> {
        let keys = self.get_inbound_group_sessions().await?;
        let backed_up: Vec<_> = keys.into_iter().filter(InboundGroupSession::backed_up).collect();
        for some in backed_up.chunks(AT_ONCE) {
            let guard = self.begin().await;
            let mut rows = Rows::default();
            for key in some {
                key.reset_backup_state();
                rows.put_room_key(key).await?;
            }
            self.write(guard, rows).await?;
        }
        Ok(())
    }

    async fn load_backup_keys(&self) -> Result<BackupKeys> {
        let backup_version = self.find(BACKUP_VERSION).await?;
        Ok(BackupKeys { decryption_key: self.find(BACKUP_KEY).await?, backup_version })
    }

    async fn load_dehydrated_device_pickle_key(&self) -> Result<Option<DehydratedDeviceKey>> {
        self.find(DEHYDRATED_KEY).await
    }

    async fn delete_dehydrated_device_pickle_key(&self) -> Result<()> {
        self.write(self.begin().await, Rows(KeyChanges::from([(single(DEHYDRATED_KEY), None)]))).await
    }

    async fn get_outbound_group_session(&self, room_id: &RoomId) -> Result<Option<OutboundGroupSession>> {
        let name = KeyName::new(kind::OWN_ROOM_KEY, "", room_id.as_str());
        let Some(pickle) = self.get::<PickledOutboundGroupSession>(name).await? else { return Ok(None) };
        let StaticAccountData { device_id, identity_keys, .. } = self.account()?;
        Ok(Some(OutboundGroupSession::from_pickle(device_id, identity_keys, pickle)?))
    }

    async fn load_tracked_users(&self) -> Result<Vec<TrackedUser>> {
        self.list(&KeyRange::all(kind::TRACKED)).await
    }

    async fn save_tracked_users(&self, users: &[(&UserId, bool)]) -> Result<()> {
        let guard = self.begin().await;
        let mut rows = Rows::default();
        for &(user, dirty) in users {
            let name = KeyName::new(kind::TRACKED, "", user.as_str());
            rows.put(name, &TrackedUser { user_id: user.to_owned(), dirty })?;
        }
        self.write(guard, rows).await
    }

    async fn get_device(&self, user_id: &UserId, device_id: &DeviceId) -> Result<Option<DeviceData>> {
        self.get(KeyName::new(kind::DEVICE, user_id.as_str(), device_id.as_str())).await
    }

    async fn get_user_devices(&self, user_id: &UserId) -> Result<HashMap<OwnedDeviceId, DeviceData>> {
        let devices: Vec<DeviceData> = self.list(&KeyRange::of(kind::DEVICE, user_id.as_str())).await?;
        Ok(devices.into_iter().map(|device| (device.device_id().to_owned(), device)).collect())
    }

    async fn get_own_device(&self) -> Result<DeviceData> {
        let StaticAccountData { user_id, device_id, .. } = self.account()?;
        self.get_device(&user_id, &device_id).await?.ok_or(CryptoStoreError::AccountUnset)
    }

    async fn get_user_identity(&self, user_id: &UserId) -> Result<Option<UserIdentityData>> {
        self.get(KeyName::new(kind::IDENTITY, "", user_id.as_str())).await
    }

    async fn is_message_known(&self, message_hash: &OlmMessageHash) -> Result<bool> {
        self.has(KeyName::new(kind::READ, &message_hash.sender_key, &message_hash.hash)).await
    }

    async fn get_outgoing_secret_requests(&self, request_id: &TransactionId) -> Result<Option<GossipRequest>> {
        self.request(request_id.as_str()).await
    }

    async fn get_secret_request_by_info(&self, secret_info: &SecretInfo) -> Result<Option<GossipRequest>> {
        let name = KeyName::new(kind::REQUEST_FOR, "", &secret_info.as_key());
        match self.get::<String>(name).await? {
            Some(id) => self.request(&id).await,
            None => Ok(None),
        }
    }

    async fn get_unsent_secret_requests(&self) -> Result<Vec<GossipRequest>> {
        self.list(&KeyRange::all(kind::UNSENT)).await
    }

    async fn delete_outgoing_secret_requests(&self, request_id: &TransactionId) -> Result<()> {
        let guard = self.begin().await;
        let mut rows = Rows::default();
        if let Some(request) = self.request(request_id.as_str()).await? {
            rows.remove(KeyName::new(kind::SENT, "", request_id.as_str()));
            rows.remove(KeyName::new(kind::UNSENT, "", request_id.as_str()));
            rows.remove(KeyName::new(kind::REQUEST_FOR, "", &request.info.as_key()));
        }
        self.write(guard, rows).await
    }

    async fn get_secrets_from_inbox(&self, secret_name: &SecretName) -> Result<Vec<Zeroizing<String>>> {
        let name = KeyName::new(kind::SECRETS, "", secret_name.as_ref());
        let secrets: Vec<String> = self.get(name).await?.unwrap_or_default();
        Ok(secrets.into_iter().map(Zeroizing::new).collect())
    }

    async fn delete_secrets_from_inbox(&self, secret_name: &SecretName) -> Result<()> {
        let name = KeyName::new(kind::SECRETS, "", secret_name.as_ref());
        self.write(self.begin().await, Rows(KeyChanges::from([(name, None)]))).await
    }

    async fn get_room_settings(&self, room_id: &RoomId) -> Result<Option<RoomSettings>> {
        self.get(KeyName::new(kind::ROOM_SETTINGS, "", room_id.as_str())).await
    }

    async fn get_received_room_key_bundle_data(
        &self,
        room_id: &RoomId,
        user_id: &UserId,
    ) -> Result<Option<StoredRoomKeyBundleData>> {
        self.get(KeyName::new(kind::BUNDLE, room_id.as_str(), user_id.as_str())).await
    }

    async fn get_pending_key_bundle_details_for_room(
        &self,
        room_id: &RoomId,
    ) -> Result<Option<RoomPendingKeyBundleDetails>> {
        self.get(KeyName::new(kind::PENDING_BUNDLE, "", room_id.as_str())).await
    }

    async fn get_all_rooms_pending_key_bundles(&self) -> Result<Vec<RoomPendingKeyBundleDetails>> {
        self.list(&KeyRange::all(kind::PENDING_BUNDLE)).await
    }

    async fn has_downloaded_all_room_keys(&self, room_id: &RoomId) -> Result<bool> {
        self.has(KeyName::new(kind::LOADED, "", room_id.as_str())).await
    }

    async fn get_custom_value(&self, key: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.values(&[KeyName::new(kind::CUSTOM, "", key)]).await?.pop())
    }

    async fn set_custom_value(&self, key: &str, value: Vec<u8>) -> Result<()> {
        let name = KeyName::new(kind::CUSTOM, "", key);
        self.write(self.begin().await, Rows(KeyChanges::from([(name, Some(value))]))).await
    }

    async fn remove_custom_value(&self, key: &str) -> Result<()> {
        let name = KeyName::new(kind::CUSTOM, "", key);
        self.write(self.begin().await, Rows(KeyChanges::from([(name, None)]))).await
    }

    async fn try_take_leased_lock(
        &self,
        lease_duration_ms: u32,
        key: &str,
        holder: &str,
    ) -> Result<Option<CrossProcessLockGeneration>> {
        Ok(try_take_leased_lock(&mut self.0.locks.lock(), lease_duration_ms, key, holder))
    }

    async fn next_batch_token(&self) -> Result<Option<String>> {
        self.find(SYNC_TOKEN).await
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }

    async fn reopen(&self) -> Result<()> {
        Ok(())
    }

    async fn get_size(&self) -> Result<Option<usize>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
