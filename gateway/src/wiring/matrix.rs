//! Accounts on Matrix homeservers.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use rejoinder_config::{
    AutoJoin as Joined, Matrix as Configured, MatrixPace, MatrixStreaming, ReadReceipts as Receipts,
};
use rejoinder_core::{ChannelAdapter, ChannelId};
use rejoinder_matrix::{
    AccountProfile, AutoJoin, CheckError, Login, Matrix, MatrixOptions, ReadReceipts, Streaming, check as ask,
    discover as find, standing as stand,
};
use reqwest::Client;
use secrecy::SecretString;
use url::Url;

use super::{BotCheckError, Bots, MatrixAccount, MatrixLogin, MatrixStanding, Wiring, WiringError};

/// How long asking whether an account works may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn accounts(wiring: &Wiring<'_>, http: &Client) -> Result<Bots, WiringError> {
    let mut channels: Vec<Arc<dyn ChannelAdapter>> = Vec::new();
    for (name, account) in &wiring.config.channels.matrix {
        let channel = ChannelId::new("matrix", name);
        let options = options(account, &folder(wiring.data_dir, name));
        let account = Matrix::new(channel.clone(), options, Arc::clone(wiring.clock), http.clone())
            .map_err(|error| WiringError::Bot { channel, reason: error.to_string() })?;
        channels.push(Arc::new(account));
    }
    // Everything comes in by asking for it.
    Ok(Bots { channels, routes: Router::new() })
}

/// Where what belongs to the device of the account `name` is kept.
fn folder(data_dir: &Path, name: &str) -> PathBuf {
    data_dir.join(format!("matrix-{name}"))
}

fn options(account: &Configured, folder: &Path) -> MatrixOptions {
    let defaults = MatrixOptions::default();
    MatrixOptions {
        homeserver: account.homeserver.clone(),
        user: account.user.clone(),
        login: match (&account.password, &account.access_token) {
            (_, Some(token)) => Login::AccessToken(token.get().clone()),
            (password, None) => {
                Login::Password(password.as_ref().map_or_else(SecretString::default, |password| password.get().clone()))
            }
        },
        device_name: account.device_name.clone(),
        folder: folder.to_owned(),
        recovery_key: account.recovery_key.as_ref().map(|key| key.get().clone()),
        auto_join: match account.auto_join {
            Joined::Allowlist => AutoJoin::Allowlist,
            Joined::Always => AutoJoin::Always,
            Joined::Never => AutoJoin::Never,
        },
        invites_from: account.inviters().map(str::to_owned).collect(),
        streaming: match account.streaming {
            MatrixStreaming::Edit => Streaming::Edit,
            MatrixStreaming::Off => Streaming::Off,
        },
        read_receipts: match account.read_receipts {
            Receipts::Immediate => ReadReceipts::Immediate,
            Receipts::OnAnswer => ReadReceipts::OnAnswer,
            Receipts::Off => ReadReceipts::Off,
        },
        decrypt_patience: account.decrypt_patience,
        sync_timeout: account.sync_timeout,
        max_upload: account.max_upload.bytes(),
        max_download: account.max_attachment.bytes(),
        draft_rate: match account.pace {
            MatrixPace::Synapse => defaults.draft_rate,
            MatrixPace::Server => None,
        },
        ..defaults
    }
}

pub(super) async fn check(
    http: &Client,
    homeserver: &Url,
    user: &str,
    login: &MatrixLogin,
) -> Result<MatrixAccount, BotCheckError> {
    let login = match login {
        MatrixLogin::Password(password) => Login::Password(password.clone()),
        MatrixLogin::AccessToken(token) => Login::AccessToken(token.clone()),
    };
    in_time(Box::pin(ask(http, homeserver, user, &login))).await.map(MatrixAccount::from)
}

pub(super) async fn standing(
    http: &Client,
    data_dir: &Path,
    name: &str,
    account: &Configured,
) -> Result<MatrixStanding, BotCheckError> {
    let stands = in_time(Box::pin(stand(http, &options(account, &folder(data_dir, name))))).await?;
    Ok(MatrixStanding { account: stands.account.into(), is_signed: stands.is_signed })
}

async fn in_time<T>(asked: impl Future<Output = Result<T, CheckError>>) -> Result<T, BotCheckError> {
    let Ok(asked) = tokio::time::timeout(CHECK_TIMEOUT, asked).await else {
        return Err(BotCheckError::Unreachable("the homeserver cannot be reached: it does not answer".to_owned()));
    };
    asked.map_err(|error| match error {
        CheckError::Unreachable(_) => BotCheckError::Unreachable(error.to_string()),
        CheckError::Refused(_) | CheckError::Lost(_) => BotCheckError::Wrong(error.to_string()),
    })
}

impl From<AccountProfile> for MatrixAccount {
    fn from(account: AccountProfile) -> Self {
        Self { user: account.user, display_name: account.display_name, device: account.device }
    }
}

pub(super) async fn discover(http: &Client, server: &str) -> Option<Url> {
    find(http, server).await
}

#[cfg(test)]
mod tests {
    use rejoinder_config::{Environment, Options};
    use secrecy::ExposeSecret;

    use super::*;

    const ACCOUNT: &str = "homeserver = \"https://matrix.example.org\"\nuser = \"@agent:example.org\"\n";

    /// What the adapter is given where the section has `keys`, besides its account.
    fn options_of(keys: &str) -> MatrixOptions {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejoinder.toml");
        std::fs::write(&path, format!("[channels.matrix.main]\n{ACCOUNT}{keys}")).unwrap();
        let (working_dir, environment) = (folder.path().to_owned(), Environment::default());
        let config = rejoinder_config::load(&Options { path: Some(path), working_dir, environment }).unwrap().config;
        options(&config.channels.matrix["main"], Path::new("data/matrix-main"))
    }

    fn expected() -> MatrixOptions {
        MatrixOptions {
            homeserver: "https://matrix.example.org".parse().unwrap(),
            user: "@agent:example.org".to_owned(),
            login: Login::Password("sesame".into()),
            folder: "data/matrix-main".into(),
            ..MatrixOptions::default()
        }
    }

    fn same(options: &MatrixOptions, expected: &MatrixOptions) {
        assert_eq!(options.check(), Ok(()));
        assert_eq!(format!("{options:?}"), format!("{expected:?}"));
        let proof = |options: &MatrixOptions| match &options.login {
            Login::Password(secret) | Login::AccessToken(secret) => secret.expose_secret().to_owned(),
        };
        assert_eq!(proof(options), proof(expected));
    }

    /// The configuration knows no adapter, and has the defaults once more.
    #[test]
    fn what_is_not_configured_is_as_the_adapter_has_it() {
        same(&options_of("password = \"sesame\""), &expected());
    }

    #[test]
    fn what_is_configured_reaches_the_adapter() {
        let chosen = options_of(
            r#"
            access_token = "syt_sesame"
            recovery_key = "key"
            device_name = "gateway"
            auto_join = "always"
            allow_from = ["@ada:example.org"]
            group_allow_from = ["@bo:example.org", "!room:example.org"]
            streaming = "off"
            read_receipts = "on_answer"
            decrypt_patience = "5s"
            sync_timeout = "10s"
            max_attachment = "1 MiB"
            max_upload = "2 MiB"
            pace = "server"
            "#,
        );

        let expected = MatrixOptions {
            login: Login::AccessToken("syt_sesame".into()),
            recovery_key: Some("key".into()),
            device_name: "gateway".to_owned(),
            auto_join: AutoJoin::Always,
            invites_from: vec!["@ada:example.org".to_owned(), "@bo:example.org".to_owned()],
            streaming: Streaming::Off,
            read_receipts: ReadReceipts::OnAnswer,
            decrypt_patience: Duration::from_secs(5),
            sync_timeout: Duration::from_secs(10),
            max_download: 1 << 20,
            max_upload: 2 << 20,
            draft_rate: None,
            ..expected()
        };
        same(&chosen, &expected);
        assert_eq!(options_of("password = \"p\"\nauto_join = \"never\"").auto_join, AutoJoin::Never);
        assert_eq!(options_of("password = \"p\"\ndm_policy = \"open\"").invites_from, ["*"]);
    }
}
