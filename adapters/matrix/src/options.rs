//! What the operator chose for one account.

use std::{path::PathBuf, time::Duration};

use matrix_sdk::ruma::UserId;
use rejoinder_core::Rate;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

/// One account, as the operator configured it.
#[derive(Clone, Debug)]
pub struct MatrixOptions {
    /// The homeserver's client API.
    pub homeserver: Url,
    /// The account: `@agent:example.org`.
    pub user: String,
    /// How the account is proved.
    pub login: Login,
    /// What our device is called in lists of devices.
    pub device_name: String,
    /// The folder with what belongs to our device: its session and its keys, as precious as the database. Made
    /// with mode 700; one for each channel.
    pub folder: PathBuf,
    /// The key or the passphrase of the account's recovery: it signs our device, and opens the backup of keys.
    pub recovery_key: Option<SecretString>,
    /// Which invitations are accepted.
    pub auto_join: AutoJoin,
    /// Who may invite, for [`AutoJoin::Allowlist`]: user ids, `*:example.org` for a whole server, `*` for
    /// everyone.
    pub invites_from: Vec<String>,
    /// How the text of a run that is still going on is shown.
    pub streaming: Streaming,
    /// When what was said is marked as read.
    pub read_receipts: ReadReceipts,
    /// How long an event may wait for its key before the person is told that it cannot be read.
    pub decrypt_patience: Duration,
    /// How long one sync waits for something to come.
    pub sync_timeout: Duration,
    /// The largest file that is sent, in bytes. The homeserver's own limit counts besides.
    pub max_upload: usize,
    /// The largest file that is fetched, in bytes.
    pub max_download: usize,
    /// How fast the account may send what is no draft. What the homeserver limits, it says with 429.
    pub account_rate: Option<Rate>,
    /// How fast the account may send drafts; `None`: as fast as the homeserver takes them.
    pub draft_rate: Option<Rate>,
}

impl Default for MatrixOptions {
    fn default() -> Self {
        Self {
            homeserver: Url::parse("https://matrix.org").expect("a constant address"),
            user: String::new(),
            login: Login::default(),
            device_name: "Rejoinder".to_owned(),
            folder: PathBuf::new(),
            recovery_key: None,
            auto_join: AutoJoin::default(),
            invites_from: Vec::new(),
            streaming: Streaming::default(),
            read_receipts: ReadReceipts::default(),
            decrypt_patience: Duration::from_mins(1),
            sync_timeout: Duration::from_secs(30),
            max_upload: 50 << 20,
            max_download: 50 << 20,
            account_rate: None,
            // Synapse's own limit is one message in 5 seconds after 10 at once (`rc_message`): this is half of it.
            draft_rate: Some(Rate { per: Duration::from_secs(10), burst: 5 }),
        }
    }
}

/// How an account is proved.
#[derive(Clone, Debug)]
pub enum Login {
    /// With its password, once; afterwards the session that was stored is used.
    Password(SecretString),
    /// With the access token of a device that was made for this gateway.
    AccessToken(SecretString),
}

impl Default for Login {
    fn default() -> Self {
        Self::Password(SecretString::default())
    }
}

/// Which invitations are accepted. The others are left as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AutoJoin {
    /// Those of people on the list.
    #[default]
    Allowlist,
    /// All.
    Always,
    /// None.
    Never,
}

/// How the text of a run that is still going on is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streaming {
    /// As a message that is edited as it grows, and becomes the answer.
    #[default]
    Edit,
    /// Not at all.
    Off,
}

/// When what was said is marked as read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadReceipts {
    /// Once it is stored.
    #[default]
    Immediate,
    /// Once it is answered.
    OnAnswer,
    /// Never.
    Off,
}

/// Why an account cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// The address of the homeserver is none.
    #[error("homeserver must be an http or https address without a query")]
    Homeserver,
    /// The account is none.
    #[error("user must be a whole user id, as `@agent:example.org`")]
    User,
    /// The password or token is empty.
    #[error("a password or an access_token is needed")]
    Login,
    /// There is no place for the keys.
    #[error("a folder is needed for the session and its keys")]
    Folder,
    /// The sync would time out at once, or look dead.
    #[error("sync_timeout must be 1 second to 5 minutes")]
    SyncTimeout,
}

impl MatrixOptions {
    /// Checks what configuration could get wrong.
    ///
    /// # Errors
    /// What must be changed.
    pub fn check(&self) -> Result<(), OptionsError> {
        let homeserver = &self.homeserver;
        if !matches!(homeserver.scheme(), "http" | "https") || !homeserver.has_host() || homeserver.query().is_some() {
            return Err(OptionsError::Homeserver);
        }
        if UserId::parse(&self.user).is_err() {
            return Err(OptionsError::User);
        }
        let (Login::Password(secret) | Login::AccessToken(secret)) = &self.login;
        if secret.expose_secret().is_empty() {
            return Err(OptionsError::Login);
        }
        if self.folder.as_os_str().is_empty() {
            return Err(OptionsError::Folder);
        }
        if !(Duration::from_secs(1)..=Duration::from_mins(5)).contains(&self.sync_timeout) {
            return Err(OptionsError::SyncTimeout);
        }
        Ok(())
    }

    /// Whether an invitation of `inviter` is accepted.
    pub(crate) fn accepts_invite_of(&self, inviter: &str) -> bool {
        match self.auto_join {
            AutoJoin::Always => true,
            AutoJoin::Never => false,
            AutoJoin::Allowlist => self.may_invite(inviter),
        }
    }

    /// Whether somebody is on the list of those who may invite.
    pub(crate) fn may_invite(&self, user: &str) -> bool {
        self.invites_from.iter().any(|entry| is_meant(entry, user))
    }
}

/// Whether an entry of a list stands for a user.
fn is_meant(entry: &str, user: &str) -> bool {
    let (entry, user) = (entry.trim().trim_start_matches('@').to_lowercase(), user.to_lowercase());
    let user = user.trim_start_matches('@');
    match entry.strip_prefix('*') {
        Some("") => true,
        Some(server) => server.starts_with(':') && user.split_once(':').is_some_and(|(_, name)| name == &server[1..]),
        None => entry == user,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn options() -> MatrixOptions {
        MatrixOptions {
            user: "@agent:example.org".to_owned(),
            login: Login::Password("hunter2".into()),
            folder: "data".into(),
            ..MatrixOptions::default()
        }
    }

    #[test]
    fn an_account_a_proof_and_a_folder_are_needed() {
        let with = |change: fn(&mut MatrixOptions)| {
            let mut options = options();
            change(&mut options);
            options.check().unwrap_err()
        };

        assert_eq!(options().check(), Ok(()));
        assert_eq!(with(|it| it.user = "agent".to_owned()), OptionsError::User);
        assert_eq!(with(|it| it.login = Login::default()), OptionsError::Login);
        assert_eq!(with(|it| it.folder = PathBuf::new()), OptionsError::Folder);
        assert_eq!(with(|it| it.homeserver = Url::parse("mailto:ada").expect("a url")), OptionsError::Homeserver);
        assert_eq!(with(|it| it.sync_timeout = Duration::ZERO), OptionsError::SyncTimeout);
    }

    #[rstest]
    #[case("@ada:example.org", true)]
    #[case("Ada:example.org", true)]
    #[case("*:example.org", true)]
    #[case("*", true)]
    #[case("@bo:example.org", false)]
    #[case("*:example.com", false)]
    #[case("*example.org", false)]
    fn an_invitation_is_accepted_from_those_on_the_list(#[case] entry: &str, #[case] is_accepted: bool) {
        let options = MatrixOptions { invites_from: vec![entry.to_owned()], ..options() };

        assert_eq!(options.accepts_invite_of("@ada:example.org"), is_accepted);
    }

    #[test]
    fn the_policy_goes_before_the_list() {
        let with = |auto_join| MatrixOptions { auto_join, invites_from: vec!["*".to_owned()], ..options() };

        assert!(!with(AutoJoin::Never).accepts_invite_of("@ada:example.org"));
        assert!(MatrixOptions { invites_from: Vec::new(), ..with(AutoJoin::Always) }.accepts_invite_of("@b:c"));
    }

    #[test]
    fn no_secret_is_ever_shown() {
        let options = MatrixOptions { recovery_key: Some("EsTj 3yST".into()), ..options() };

        let shown = format!("{options:?}");

        assert!(!shown.contains("hunter2") && !shown.contains("EsTj"), "{shown}");
    }
}
