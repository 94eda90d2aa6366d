//! Our device: its session and keys, which survive restarts.
//!
//! Transaction ids and keys belong to the device. All its data is in one folder: `session.json`, and the SDK's stores
//! beside it. If one of them is missing, the other is useless: this is reported, and never repaired by silently
//! creating a new device.

use std::{fs, io, path::Path, time::Duration};

use matrix_sdk::{
    Client, ClientBuildError, SessionMeta, SessionTokens,
    authentication::matrix::MatrixSession,
    config::RequestConfig,
    encryption::{BackupDownloadStrategy, EncryptionSettings},
    ruma::{DeviceId, OwnedDeviceId, OwnedUserId, UserId},
};
use rejoinder_kit::{make_private, make_private_folder, private_file};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use crate::{
    errors::{self, Failure},
    section::{Login, MatrixSection},
};

/// The SDK's database of our keys.
const KEYS: &str = "matrix-sdk-crypto.sqlite3";

const SESSION: &str = "session.json";

/// The operator creates this file to give up the old device.
const NEW_DEVICE_FILE: &str = "start-anew";

/// Timeout of a request, in addition to the time that it asks the homeserver to wait.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

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

async fn client(options: &MatrixSection, folder: &Path, http: &reqwest::Client) -> Result<Client, SessionError> {
    let settings = EncryptionSettings {
        auto_enable_cross_signing: true,
        backup_download_strategy: BackupDownloadStrategy::AfterDecryptionFailure,
        // Without a recovery key nobody could open a backup; with one, enabling recovery creates it.
        auto_enable_backups: false,
    };
    let client = builder(&options.homeserver, http)
        .sqlite_store(folder, None)
        .with_encryption_settings(settings)
        .build()
        .await
        .map_err(|error| build_error(&error))?;
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
    folder: &Path,
    http: &reqwest::Client,
    before: Option<&str>,
) -> Result<Client, SessionError> {
    make_private_folder(folder).map_err(|error| failed(folder, &error))?;
    make_folder_private(folder);
    let stored = read(folder)?;
    check_keys(folder, stored.as_ref(), before)?;
    if let Some(stored) = stored.as_ref().filter(|stored| stored.user != options.user) {
        let StoredSession { user, .. } = stored;
        return Err(SessionError::Failed(format!("{} belongs to {user}: use another folder", folder.display())));
    }
    let user = UserId::parse(&options.user).map_err(|error| SessionError::Failed(format!("user: {error}")))?;
    let client = match &options.login() {
        Login::Password(password) => with_password(options, folder, http, user, password, stored).await?,
        Login::AccessToken(token) => with_token(options, folder, http, user, token, stored).await?,
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
    folder: &Path,
    http: &reqwest::Client,
    user: OwnedUserId,
    password: &SecretString,
    stored: Option<StoredSession>,
) -> Result<Client, SessionError> {
    let client = client(options, folder, http).await?;
    if let Some(StoredSession { device, access_token: Some(access_token), .. }) = &stored {
        let meta = SessionMeta { user_id: user, device_id: device.as_str().into() };
        restore(&client, meta, access_token.clone()).await?;
        return Ok(client);
    }
    let has_keys = stored.as_ref().is_some_and(|stored| stored.has_keys);
    // The id is stored before the login: if the response is lost, the next login uses the same device.
    let device = stored.map_or_else(|| DeviceId::new().to_string(), |stored| stored.device);
    let mut stored = StoredSession { user: user.to_string(), device, access_token: None, has_keys };
    write(folder, &stored)?;
    let login = client
        .matrix_auth()
        .login_username(&user, password.expose_secret())
        .device_id(&stored.device)
        .initial_device_display_name(&options.device_name)
        .send()
        .await
        .map_err(|error| SessionError::from(errors::sdk(&error)))?;
    (stored.access_token, stored.has_keys) = (Some(login.access_token), true);
    write(folder, &stored)?;
    Ok(client)
}

async fn with_token(
    options: &MatrixSection,
    folder: &Path,
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
    let device = me.device_id.ok_or_else(|| {
        SessionError::Unauthorized("the access token belongs to no device: use the token of a device".to_owned())
    })?;
    match &stored {
        Some(stored) if stored.device != device.as_str() => {
            return Err(other_device(folder, device.as_str(), &stored.device));
        }
        None if !folder.join(NEW_DEVICE_FILE).exists()
            && has_keys(&probe, token, &me.user_id, device.as_str()).await? =>
        {
            return Err(keys_lost(folder, device.as_str()));
        }
        _ => {}
    }
    write(
        folder,
        &StoredSession { user: user.to_string(), device: device.to_string(), access_token: None, has_keys: true },
    )?;
    let client = client(options, folder, http).await?;
    let meta = SessionMeta { user_id: me.user_id, device_id: device };
    restore(&client, meta, token.expose_secret().to_owned()).await?;
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
    check_keys(folder, stored.as_ref(), None)?;
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
pub(crate) fn forget_token(folder: &Path) -> Result<(), SessionError> {
    match read(folder)? {
        Some(stored) => write(folder, &StoredSession { access_token: None, ..stored }),
        None => Ok(()),
    }
}

/// Fails if the keys or the session of our device are missing.
fn check_keys(folder: &Path, stored: Option<&StoredSession>, before: Option<&str>) -> Result<(), SessionError> {
    let (has_keys, is_new_device_allowed) = (folder.join(KEYS).exists(), folder.join(NEW_DEVICE_FILE).exists());
    match stored {
        Some(stored) if stored.has_keys && !has_keys => Err(keys_lost(folder, &stored.device)),
        None if has_keys => Err(SessionError::Lost(format!(
            "{0}/{SESSION} is missing, and the keys beside it are useless without it: restore it, or empty {0} and \
             create the file {0}/{NEW_DEVICE_FILE} to continue as a new device",
            folder.display()
        ))),
        None => match before {
            Some(device) if !is_new_device_allowed => Err(keys_lost(folder, device)),
            _ => Ok(()),
        },
        Some(_) => Ok(()),
    }
}

fn keys_lost(folder: &Path, device: &str) -> SessionError {
    SessionError::Lost(format!(
        "the keys of device {device} are gone from {0}: restore the folder, or empty it and create the file \
         {0}/{NEW_DEVICE_FILE} to continue as a new device, which cannot read earlier messages",
        folder.display()
    ))
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

    #[test]
    fn a_session_is_read_back_and_nobody_else_reads_it() {
        let folder = tempfile::tempdir().expect("a folder");

        write(folder.path(), &stored(true)).expect("it is written");
        forget_token(folder.path()).expect("it is written again");

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
        let check = |stored: Option<&StoredSession>, before| check_keys(folder.path(), stored, before);

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
