//! Our device: its session and keys, which survive restarts.
//!
//! Transaction ids and keys belong to the device. All its data is in one folder: `session.json`, and the SDK's stores
//! beside it. If one of them is missing, the other is useless: this is reported, and never repaired by silently
//! creating a new device.
//!
//! If several nodes may have the channel, session and keys are in its keyring. The SDK's store of rooms is in the folder of each node:
//! what it does not know it hears with the next sync. A folder from before is taken over once.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use matrix_sdk::{
    Client, ClientBuildError, STATE_STORE_DATABASE_NAME, SessionMeta, SessionTokens, SqliteCryptoStore,
    SqliteStateStore,
    authentication::matrix::MatrixSession,
    config::{RequestConfig, StoreConfig},
    cross_process_lock::CrossProcessLockConfig,
    encryption::{BackupDownloadStrategy, EncryptionSettings},
    ruma::{DeviceId, OwnedDeviceId, OwnedUserId, UserId},
    store::{StateStoreDataKey, StateStoreDataValue},
};
use matrix_sdk_base::crypto::store::{CryptoStore, CryptoStoreError};
use rejoinder_core::{Keyring, StoreError};
use rejoinder_kit::{make_private, make_private_folder, private_file};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use crate::{
    errors::{self, Failure},
    section::{Login, MatrixSection},
    shared_keys::{self, SharedKeys},
};

/// The SDK's database of our keys.
const KEYS: &str = "matrix-sdk-crypto.sqlite3";

const SESSION: &str = "session.json";

/// Says of which device the SDK's store of rooms is, in a folder without its keys.
const DEVICE_FILE: &str = "device";

/// The ending of files that are not used any more: their content is in the keyring.
const MOVED: &str = ".moved";

/// The operator creates this file to give up the old device.
const NEW_DEVICE_FILE: &str = "start-anew";

/// Timeout of a request, in addition to the time that it asks the homeserver to wait.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Where our device's session and keys are.
#[derive(Clone, Debug)]
pub(crate) enum Device {
    Folder(PathBuf),
    /// In the keyring. Only the store of rooms is in the folder.
    Shared(SharedKeys, PathBuf),
}

#[derive(Serialize, Deserialize)]
struct StoredSession {
    user: String,
    device: String,
    /// `None` before the first login, after a soft logout, and if the configuration contains the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    access_token: Option<String>,
    #[serde(default)]
    has_keys: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// The keys of our device are missing, or belong to another device.
    #[error("{0}")]
    Lost(String),
    /// The homeserver rejects the password or token, or the token is unsuitable.
    #[error("{0}")]
    Unauthorized(String),
    /// Transient: the homeserver cannot be reached, or failed.
    #[error("{detail}")]
    Unreachable {
        detail: String,
        /// The pause that the homeserver asks for.
        retry_after: Option<Duration>,
    },
    /// A local problem.
    #[error("{0}")]
    Failed(String),
}

impl From<CryptoStoreError> for SessionError {
    fn from(error: CryptoStoreError) -> Self {
        Self::Failed(format!("the device's session and keys cannot be read or stored: {error}"))
    }
}

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        CryptoStoreError::backend(error).into()
    }
}

impl From<Failure> for SessionError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unauthorized { detail, .. } | Failure::Refused(detail) => Self::Unauthorized(detail),
            Failure::Limited { retry_after, detail } => Self::Unreachable { detail, retry_after: Some(retry_after) },
            Failure::NotSent(detail) | Failure::Unknown(detail) | Failure::Duplicate(detail) => {
                Self::Unreachable { detail, retry_after: None }
            }
        }
    }
}

impl Device {
    /// The device in the keyring. If it is not there yet, that of the folder is taken over.
    pub(crate) async fn shared(keyring: &Keyring, folder: &Path) -> Result<Self, SessionError> {
        make_private_folder(folder).map_err(|error| failed(folder, &error))?;
        let new_device_file = folder.join(NEW_DEVICE_FILE);
        let is_given_up = new_device_file.exists();
        let keys = SharedKeys::new(keyring.open(is_given_up).await?);
        if is_given_up {
            keys.store(shared_keys::ANEW, &(), None).await?;
            set_aside(folder)?;
            fs::remove_file(&new_device_file).map_err(|error| failed(&new_device_file, &error))?;
        }
        let device = Self::Shared(keys.clone(), folder.to_owned());
        if device.read().await?.is_none()
            && !device.may_be_new().await?
            && let Some(stored) = read(folder)?
            && folder.join(KEYS).exists()
        {
            take_over(&keys, folder, &stored).await?;
        }
        Ok(device)
    }

    fn folder(&self) -> &Path {
        match self {
            Self::Folder(folder) | Self::Shared(_, folder) => folder,
        }
    }

    /// Waits until the device's keys cannot be used any more, and returns why. Those in a folder always can.
    pub(crate) async fn failure(&self) -> StoreError {
        match self {
            Self::Folder(_) => std::future::pending().await,
            Self::Shared(keys, _) => keys.failure().await,
        }
    }

    async fn read(&self) -> Result<Option<StoredSession>, SessionError> {
        match self {
            Self::Folder(folder) => read(folder),
            Self::Shared(keys, _) => Ok(keys.find(shared_keys::SESSION).await?),
        }
    }

    async fn write(&self, stored: &StoredSession) -> Result<(), SessionError> {
        match self {
            Self::Folder(folder) => write(folder, stored),
            // From now on keys that are missing are an error again.
            Self::Shared(keys, _) => {
                Ok(keys.store(shared_keys::SESSION, stored, stored.has_keys.then_some(shared_keys::ANEW)).await?)
            }
        }
    }

    async fn has_keys(&self) -> Result<bool, SessionError> {
        match self {
            Self::Folder(folder) => Ok(folder.join(KEYS).exists()),
            Self::Shared(keys, _) => Ok(keys.has_account().await?),
        }
    }

    /// Whether the operator has given the old device up.
    async fn may_be_new(&self) -> Result<bool, SessionError> {
        match self {
            Self::Folder(folder) => Ok(folder.join(NEW_DEVICE_FILE).exists()),
            Self::Shared(keys, _) => Ok(keys.find::<()>(shared_keys::ANEW).await?.is_some()),
        }
    }

    /// The error if there are keys without a session.
    fn session_lost(&self) -> SessionError {
        let folder = self.folder().display();
        SessionError::Lost(match self {
            Self::Folder(_) => format!(
                "{folder}/{SESSION} is missing, and the keys beside it are useless without it: restore it, or empty \
                 {folder} and create the file {folder}/{NEW_DEVICE_FILE} to continue as a new device"
            ),
            Self::Shared(..) => format!(
                "the database has keys of a device without its session: create the file {folder}/{NEW_DEVICE_FILE} to \
                 continue as a new device"
            ),
        })
    }

    /// The error if the keys of this device are missing.
    fn keys_lost(&self, device: &str) -> SessionError {
        let folder = self.folder().display();
        SessionError::Lost(match self {
            Self::Folder(_) => format!(
                "the keys of device {device} are gone from {folder}: restore the folder, or empty it and create the \
                 file {folder}/{NEW_DEVICE_FILE} to continue as a new device, which cannot read earlier messages"
            ),
            Self::Shared(..) => format!(
                "the database does not have the keys of device {device}: start the node first that has them in its \
                 folder {folder}, or create the file {folder}/{NEW_DEVICE_FILE} to continue as a new device, which \
                 cannot read earlier messages"
            ),
        })
    }

    /// The error if the token belongs to another device than ours.
    fn other_device(&self, device: &str, ours: &str) -> SessionError {
        match self {
            Self::Folder(folder) => other_device(folder, device, ours),
            Self::Shared(..) => SessionError::Lost(format!(
                "the access token belongs to device {device}, but the database has the keys of {ours}: use the token \
                 of {ours}"
            )),
        }
    }
}

/// Moves the device of a folder into the keyring. If that is interrupted, it is begun again: the session comes last.
async fn take_over(keys: &SharedKeys, folder: &Path, stored: &StoredSession) -> Result<(), SessionError> {
    let old = SqliteCryptoStore::open(folder, None).await;
    let old = old.map_err(|error| SessionError::Failed(format!("{}: {error}", folder.display())))?;
    Box::pin(keys.copy_from(&old)).await?;
    let closed: Result<(), CryptoStoreError> = old.close().await.map_err(Into::into);
    closed?;
    fs::write(folder.join(DEVICE_FILE), device_of(&stored.user, &stored.device))
        .map_err(|error| failed(folder, &error))?;
    keys.store(shared_keys::SESSION, stored, None).await?;
    tracing::info!(folder = %folder.display(), device = stored.device, "the device is in the database from now on");
    set_aside(folder)
}

/// Renames the session and the keys in a folder: they are not used any more.
fn set_aside(folder: &Path) -> Result<(), SessionError> {
    for name in [SESSION, KEYS] {
        let path = folder.join(name);
        match fs::rename(&path, folder.join(format!("{name}{MOVED}"))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&path, &error)),
            _ => {}
        }
    }
    Ok(())
}

fn device_of(user: &str, device: &str) -> String {
    format!("{user} {device}\n")
}

/// Opens the store of rooms in a folder. That of another device is removed.
async fn state_store(folder: &Path, user: &str, device: &str) -> Result<SqliteStateStore, SessionError> {
    let (path, expected) = (folder.join(DEVICE_FILE), device_of(user, device));
    if fs::read_to_string(&path).ok().is_none_or(|found| found != expected) {
        for entry in fs::read_dir(folder).map_err(|error| failed(folder, &error))?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(STATE_STORE_DATABASE_NAME) {
                fs::remove_file(entry.path()).map_err(|error| failed(&entry.path(), &error))?;
            }
        }
        fs::write(&path, expected).map_err(|error| failed(&path, &error))?;
    }
    let store = SqliteStateStore::open(folder, None).await;
    store.map_err(|error| SessionError::Failed(format!("{}: {error}", folder.display())))
}

async fn client(
    options: &MatrixSection,
    device: &Device,
    id: &str,
    http: &reqwest::Client,
) -> Result<Client, SessionError> {
    let settings = EncryptionSettings {
        auto_enable_cross_signing: true,
        backup_download_strategy: BackupDownloadStrategy::AfterDecryptionFailure,
        // Without a recovery key nobody could open a backup; with one, enabling recovery creates it.
        auto_enable_backups: false,
    };
    let builder = builder(&options.homeserver, http).with_encryption_settings(settings);
    let builder = match device {
        Device::Folder(folder) => builder.sqlite_store(folder, None),
        Device::Shared(keys, folder) => {
            let rooms = state_store(folder, &options.user, id).await?;
            // The lease has this process alone here.
            let stores = StoreConfig::new(CrossProcessLockConfig::SingleProcess);
            builder.store_config(stores.state_store(rooms).crypto_store(keys.clone()))
        }
    };
    let client = builder.build().await.map_err(|error| build_error(&error))?;
    if let Device::Shared(keys, _) = device {
        // With the token up to which keys were received, the next sync tells of all devices that have changed since.
        let reached = client.state_store().get_kv_data(StateStoreDataKey::SyncToken).await.ok().flatten();
        if reached.and_then(StateStoreDataValue::into_sync_token) != keys.next_batch_token().await? {
            keys.expect_outdated_devices().await?;
        }
    }
    // Only the outbox stores and resends.
    client.send_queue().set_enabled(false).await;
    Ok(client)
}

fn build_error(error: &ClientBuildError) -> SessionError {
    match error {
        ClientBuildError::Http(error) => errors::http(error).into(),
        other => SessionError::Failed(format!("cannot create the client: {other}")),
    }
}

/// A client that never retries by itself: the gateway decides about retries.
pub(crate) fn builder(homeserver: &Url, http: &reqwest::Client) -> matrix_sdk::ClientBuilder {
    Client::builder()
        .homeserver_url(homeserver)
        .http_client(http.clone())
        .respect_login_well_known(false)
        .request_config(RequestConfig::new().timeout(REQUEST_TIMEOUT).disable_retry())
}

/// Opens the session of our device. Creates the device if there never was one. `before` is the id of the device that
/// the gateway's store remembers.
pub(crate) async fn open(
    options: &MatrixSection,
    device: &Device,
    http: &reqwest::Client,
    before: Option<&str>,
) -> Result<Client, SessionError> {
    let folder = device.folder();
    make_private_folder(folder).map_err(|error| failed(folder, &error))?;
    make_folder_private(folder);
    let stored = device.read().await?;
    check_keys(device, stored.as_ref(), before, device.has_keys().await?, device.may_be_new().await?)?;
    if let Some(StoredSession { user, .. }) = stored.as_ref().filter(|stored| stored.user != options.user) {
        return Err(SessionError::Failed(match device {
            Device::Folder(_) => format!("{} belongs to {user}: use another folder", folder.display()),
            Device::Shared(..) => {
                format!("the keys of this channel in the database belong to {user}: use another channel")
            }
        }));
    }
    let user = UserId::parse(&options.user).map_err(|error| SessionError::Failed(format!("user: {error}")))?;
    let client = match &options.login() {
        Login::Password(password) => with_password(options, device, http, user, password, stored).await?,
        Login::AccessToken(token) => with_token(options, device, http, user, token, stored).await?,
    };
    // The client's files have the mode that the umask gives.
    make_folder_private(folder);
    // From now on a missing folder is an error again.
    match fs::remove_file(folder.join(NEW_DEVICE_FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(folder, &error)),
        _ => Ok(client),
    }
}

async fn with_password(
    options: &MatrixSection,
    device: &Device,
    http: &reqwest::Client,
    user: OwnedUserId,
    password: &SecretString,
    stored: Option<StoredSession>,
) -> Result<Client, SessionError> {
    let mut stored = stored.unwrap_or_else(|| {
        let id = DeviceId::new().to_string();
        StoredSession { user: user.to_string(), device: id, access_token: None, has_keys: false }
    });
    let client = client(options, device, &stored.device, http).await?;
    if let Some(access_token) = stored.access_token.clone() {
        let meta = SessionMeta { user_id: user, device_id: stored.device.as_str().into() };
        restore(&client, meta, access_token).await?;
        return Ok(client);
    }
    // The id is stored before the login: if the response is lost, the next login uses the same device.
    device.write(&stored).await?;
    let login = client
        .matrix_auth()
        .login_username(&user, password.expose_secret())
        .device_id(&stored.device)
        .initial_device_display_name(&options.device_name)
        .send()
        .await
        .map_err(|error| SessionError::from(errors::sdk(&error)))?;
    (stored.access_token, stored.has_keys) = (Some(login.access_token), true);
    device.write(&stored).await?;
    Ok(client)
}

async fn with_token(
    options: &MatrixSection,
    device: &Device,
    http: &reqwest::Client,
    user: OwnedUserId,
    token: &SecretString,
    stored: Option<StoredSession>,
) -> Result<Client, SessionError> {
    let probe = builder(&options.homeserver, http).build().await.map_err(|error| build_error(&error))?;
    let me = who_am_i(&probe, token).await?;
    if me.user_id != user {
        return Err(SessionError::Unauthorized(format!("the access token belongs to {}", me.user_id)));
    }
    let id = me.device_id.ok_or_else(|| {
        SessionError::Unauthorized("the access token belongs to no device: use the token of a device".to_owned())
    })?;
    match &stored {
        Some(stored) if stored.device != id.as_str() => return Err(device.other_device(id.as_str(), &stored.device)),
        None if !device.may_be_new().await? && has_keys(&probe, token, &me.user_id, id.as_str()).await? => {
            return Err(device.keys_lost(id.as_str()));
        }
        _ => {}
    }
    let has_keys = stored.is_some_and(|stored| stored.has_keys);
    let mut stored = StoredSession { user: user.to_string(), device: id.to_string(), access_token: None, has_keys };
    device.write(&stored).await?;
    let client = client(options, device, id.as_str(), http).await?;
    let meta = SessionMeta { user_id: me.user_id, device_id: id };
    restore(&client, meta, token.expose_secret().to_owned()).await?;
    if !stored.has_keys {
        stored.has_keys = true;
        device.write(&stored).await?;
    }
    Ok(client)
}

/// The error if the token and the folder belong to different devices.
pub(crate) fn other_device(folder: &Path, device: &str, ours: &str) -> SessionError {
    SessionError::Lost(format!(
        "the access token belongs to device {device}, but {} has the keys of {ours}: use the token of {ours}, or \
         another folder",
        folder.display()
    ))
}

/// The stored device, for readers that do not open a session.
pub(crate) struct StoredDevice {
    pub(crate) device: String,
    /// `None` before the first login, after a soft logout, and if the configuration contains the token.
    pub(crate) token: Option<SecretString>,
}

/// Reads the stored device without changing anything. `None`: it was never created.
pub(crate) fn stored_device(folder: &Path) -> Result<Option<StoredDevice>, SessionError> {
    let stored = read(folder)?;
    let (has_keys, may_be_new) = (folder.join(KEYS).exists(), folder.join(NEW_DEVICE_FILE).exists());
    check_keys(&Device::Folder(folder.to_owned()), stored.as_ref(), None, has_keys, may_be_new)?;
    Ok(stored.map(|stored| StoredDevice { device: stored.device, token: stored.access_token.map(SecretString::from) }))
}

async fn restore(client: &Client, meta: SessionMeta, access_token: String) -> Result<(), SessionError> {
    let tokens = SessionTokens { access_token, refresh_token: None };
    client.restore_session(MatrixSession { meta, tokens }).await.map_err(|error| match error {
        matrix_sdk::Error::Http(error) => errors::http(&error).into(),
        other => SessionError::Failed(format!("cannot restore the session: {other}")),
    })
}

/// Deletes the stored token after a soft logout, so that the next login uses the same device.
pub(crate) async fn forget_token(device: &Device) -> Result<(), SessionError> {
    match device.read().await? {
        Some(stored) => device.write(&StoredSession { access_token: None, ..stored }).await,
        None => Ok(()),
    }
}

/// Fails if the keys or the session of our device are missing.
fn check_keys(
    device: &Device,
    stored: Option<&StoredSession>,
    before: Option<&str>,
    has_keys: bool,
    may_be_new: bool,
) -> Result<(), SessionError> {
    match stored {
        Some(stored) if stored.has_keys && !has_keys => Err(device.keys_lost(&stored.device)),
        None if has_keys => Err(device.session_lost()),
        None => match before {
            Some(id) if !may_be_new => Err(device.keys_lost(id)),
            _ => Ok(()),
        },
        Some(_) => Ok(()),
    }
}

/// The account and the device that a token belongs to.
#[derive(Deserialize)]
pub(crate) struct Whoami {
    pub(crate) user_id: OwnedUserId,
    pub(crate) device_id: Option<OwnedDeviceId>,
}

pub(crate) async fn who_am_i(client: &Client, token: &SecretString) -> Result<Whoami, SessionError> {
    let url = endpoint(client, "_matrix/client/v3/account/whoami");
    ask(client.http_client().get(url), token).await
}

async fn has_keys(client: &Client, token: &SecretString, user: &UserId, device: &str) -> Result<bool, SessionError> {
    let keys = published(client, token, user, device).await?;
    Ok(keys["device_keys"][user.as_str()][device].is_object())
}

/// The cross-signing state of a device, according to the homeserver.
pub(crate) struct Signing {
    pub(crate) has_keys: bool,
    /// Whether the account has signed the device; `None`: the homeserver knows no keys of the device.
    pub(crate) is_signed: Option<bool>,
}

/// Asks the homeserver for the cross-signing state of a device.
pub(crate) async fn signing(
    client: &Client,
    token: &SecretString,
    user: &UserId,
    device: &str,
) -> Result<Signing, SessionError> {
    let keys = published(client, token, user, device).await?;
    let ours = &keys["device_keys"][user.as_str()][device];
    let signing = keys["self_signing_keys"][user.as_str()]["keys"].as_object();
    let signatures = &ours["signatures"][user.as_str()];
    let is_signed = signing.is_some_and(|keys| keys.keys().any(|key| signatures[key].is_string()));
    Ok(Signing {
        has_keys: keys["master_keys"][user.as_str()].is_object(),
        is_signed: ours.is_object().then_some(is_signed),
    })
}

/// The keys of a device and its account that the homeserver publishes.
async fn published(client: &Client, token: &SecretString, user: &UserId, device: &str) -> Result<Value, SessionError> {
    let url = endpoint(client, "_matrix/client/v3/keys/query");
    let body = json!({ "device_keys": { user.as_str(): [device] } });
    ask(client.http_client().post(url).body(body.to_string()), token).await
}

fn endpoint(client: &Client, path: &str) -> String {
    format!("{}/{path}", client.homeserver().as_str().trim_end_matches('/'))
}

async fn ask<T: for<'de> Deserialize<'de>>(
    request: reqwest::RequestBuilder,
    token: &SecretString,
) -> Result<T, SessionError> {
    let unreachable = |detail: String, retry_after: Option<Duration>| SessionError::Unreachable { detail, retry_after };
    let sent = request.bearer_auth(token.expose_secret()).timeout(REQUEST_TIMEOUT).send().await;
    let response = sent.map_err(|error| unreachable(errors::transport(&error), None))?;
    let status = response.status();
    if status.is_success() {
        let body = response.bytes().await.map_err(|error| unreachable(errors::transport(&error), None))?;
        return serde_json::from_slice(&body).map_err(|error| unreachable(error.to_string(), None));
    }
    let body = response.bytes().await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (code, message) = (body["errcode"].as_str().unwrap_or_default(), body["error"].as_str().unwrap_or_default());
    let detail = format!("{status} {code} {message}").trim_end().to_owned();
    if matches!(status.as_u16(), 401 | 403) && !code.is_empty() {
        return Err(SessionError::Unauthorized(detail));
    }
    let retry_after = body["retry_after_ms"].as_u64().map(Duration::from_millis);
    Err(unreachable(detail, retry_after))
}

fn failed(folder: &Path, error: &io::Error) -> SessionError {
    SessionError::Failed(format!("{}: {error}", folder.display()))
}

fn read(folder: &Path) -> Result<Option<StoredSession>, SessionError> {
    match fs::read(folder.join(SESSION)) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| SessionError::Failed(format!("{}: {error}", folder.join(SESSION).display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(&folder.join(SESSION), &error)),
    }
}

/// Writes a new file and renames it: a crash leaves the old or the new one.
fn write(folder: &Path, stored: &StoredSession) -> Result<(), SessionError> {
    let (path, beside) = (folder.join(SESSION), folder.join("session.json.new"));
    let write = || {
        let bytes = serde_json::to_vec_pretty(stored)?;
        let mut file = private_file().write(true).create(true).truncate(true).open(&beside)?;
        io::Write::write_all(&mut file, &bytes)?;
        file.sync_all()?;
        fs::rename(&beside, &path)
    };
    write().map_err(|error| failed(&path, &error))
}

/// Takes the access of other users to the folder and its files away.
fn make_folder_private(folder: &Path) {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in std::iter::once(folder.to_owned()).chain(files) {
        make_private(&path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(has_keys: bool) -> StoredSession {
        let (user, device) = ("@agent:example.org".to_owned(), "DEVICE".to_owned());
        StoredSession { user, device, access_token: Some("syt_secret".to_owned()), has_keys }
    }

    fn is_lost(result: &Result<(), SessionError>) -> bool {
        matches!(result, Err(SessionError::Lost(_)))
    }

    #[tokio::test]
    async fn a_session_is_read_back_and_nobody_else_reads_it() {
        let folder = tempfile::tempdir().expect("a folder");

        write(folder.path(), &stored(true)).expect("it is written");
        forget_token(&Device::Folder(folder.path().to_owned())).await.expect("it is written again");

        let read = read(folder.path()).expect("it can be read").expect("it is there");
        assert_eq!((&*read.device, read.access_token, read.has_keys), ("DEVICE", None, true));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(folder.path().join(SESSION)).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_and_files_that_others_could_read_are_taken_from_them() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let (inside, file) = (folder.path().join("matrix-main"), folder.path().join("matrix-main/keys.sqlite3-wal"));
        fs::create_dir(&inside).expect("a folder");
        fs::write(&file, "keys").expect("a file");
        for (path, mode) in [(&inside, 0o755), (&file, 0o644)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is made readable");
        }

        make_folder_private(&inside);

        let mode = |path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&inside), mode(&file)), (0o700, 0o600));
        assert_eq!(fs::read(&file).expect("its owner reads it"), b"keys");
    }

    #[test]
    fn keys_that_are_gone_are_missed() {
        let folder = tempfile::tempdir().expect("a folder");
        let device = Device::Folder(folder.path().to_owned());
        let check = |stored: Option<&StoredSession>, before| {
            let (has_keys, may_be_new) =
                (folder.path().join(KEYS).exists(), folder.path().join(NEW_DEVICE_FILE).exists());
            check_keys(&device, stored, before, has_keys, may_be_new)
        };

        assert!(check(None, None).is_ok(), "a new device");
        assert!(check(Some(&stored(false)), None).is_ok(), "a login that was interrupted");
        assert!(is_lost(&check(Some(&stored(true)), Some("DEVICE"))), "the keys are gone");
        assert!(is_lost(&check(None, Some("DEVICE"))), "the folder is gone");
        fs::write(folder.path().join(NEW_DEVICE_FILE), "").expect("a file");
        assert!(check(None, Some("DEVICE")).is_ok(), "the operator gave the device up");
        fs::write(folder.path().join(KEYS), "").expect("a file");
        assert!(check(Some(&stored(true)), Some("DEVICE")).is_ok(), "nothing is missing");
        assert!(is_lost(&check(None, None)), "the session is gone");
    }
}
