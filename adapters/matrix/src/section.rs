//! `[channels.matrix.<name>]`: the configuration of an account on a Matrix homeserver.

use std::time::Duration;

use rejoinder_config::{
    Account, ChannelKeys, ChannelSection, Checks, Common, IdFormat, People, Secret, Section, Size,
    duration::{self, HOUR, SECOND},
    text,
};
use rejoinder_core::Rate;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use url::Url;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct MatrixSection {
    /// The base URL of the homeserver's client API, without `/_matrix`.
    #[serde(deserialize_with = "text::http_url")]
    pub homeserver: Url,
    /// The account's user id: `@agent:example.org`.
    #[serde(deserialize_with = "text::filled")]
    pub user: String,
    /// Set exactly where `access_token` is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// The access token of a device that was created for the gateway. Set exactly where `password` is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_token: Option<Secret>,
    /// The account's recovery key, or the passphrase for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_key: Option<Secret>,
    /// The display name of the gateway's device.
    #[serde(deserialize_with = "text::filled")]
    pub device_name: String,
    pub auto_join: AutoJoin,
    #[serde(rename = "..people")]
    pub people: People,
    pub streaming: Streaming,
    pub read_receipts: ReadReceipts,
    /// Whether reactions to the agent's messages are passed to the agent.
    pub tell_reactions: bool,
    /// How long an event may wait for its decryption key before the sender is informed.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, SECOND, { 24 * HOUR }>")]
    pub decrypt_patience: Duration,
    /// How long one sync request waits for new events.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, SECOND, { 300 * SECOND }>")]
    pub sync_timeout: Duration,
    /// The largest inbound file.
    pub max_attachment: Size,
    /// The largest outbound file.
    pub max_upload: Size,
    pub pace: Pace,
    #[serde(rename = "..common")]
    pub common: ChannelKeys,
}

/// Which invitations are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AutoJoin {
    /// Invitations from people who may write.
    #[default]
    Allowlist,
    Always,
    Never,
}

/// How an answer is shown while it is being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Streaming {
    /// As a message that is edited until it is the answer.
    #[default]
    Edit,
    Off,
}

/// When a message is marked as read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadReceipts {
    /// Once it is stored.
    #[default]
    Immediate,
    /// Once it is answered.
    OnAnswer,
    Off,
}

/// The rate limit that drafts leave room in. Rate limits of the homeserver are honoured in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// Synapse's default one.
    #[default]
    Synapse,
    /// As fast as the homeserver accepts them.
    Server,
}

impl Default for MatrixSection {
    fn default() -> Self {
        Self {
            homeserver: "https://matrix.org".parse().expect("a constant address"),
            user: String::new(),
            password: None,
            access_token: None,
            recovery_key: None,
            device_name: "Rejoinder".to_owned(),
            auto_join: AutoJoin::default(),
            people: People::default(),
            streaming: Streaming::default(),
            read_receipts: ReadReceipts::default(),
            tell_reactions: false,
            decrypt_patience: Duration::from_mins(1),
            sync_timeout: Duration::from_secs(30),
            max_attachment: Size::mib(50),
            max_upload: Size::mib(50),
            pace: Pace::default(),
            common: ChannelKeys::default(),
        }
    }
}

impl Pace {
    /// The rate limit of the account, if it has one.
    pub(crate) const fn limit(self) -> Option<Rate> {
        match self {
            // `rc_message` of Synapse's configuration manual: by default 0.2 messages a second after a burst of 10.
            Self::Synapse => Some(Rate { per: Duration::from_secs(5), burst: 10 }),
            Self::Server => None,
        }
    }
}

/// How the gateway authenticates as the account.
#[derive(Clone, Debug)]
pub enum Login {
    /// With the password, once; afterwards the stored session is used.
    Password(SecretString),
    /// With the access token of a device that was created for this gateway.
    AccessToken(SecretString),
}

impl MatrixSection {
    /// The configured login. The access token takes precedence over the password.
    #[must_use]
    pub fn login(&self) -> Login {
        match (&self.password, &self.access_token) {
            (_, Some(token)) => Login::AccessToken(token.get().clone()),
            (password, None) => Login::Password(password.clone().unwrap_or_default().into()),
        }
    }

    /// The same section with `login` in place of its password or access token.
    #[must_use]
    pub fn with_login(mut self, login: Login) -> Self {
        (self.password, self.access_token) = match login {
            Login::Password(password) => (Some(password.into()), None),
            Login::AccessToken(token) => (None, Some(token.into())),
        };
        self
    }

    /// Whether a text is a full user id, with `@` and server
    /// (<https://spec.matrix.org/latest/appendices/#user-identifiers>; historical ids may contain any printable character).
    #[must_use]
    pub fn is_user(text: &str) -> bool {
        let Some(name) = text.strip_prefix('@') else { return false };
        let is_char = |character: char| character.is_ascii_graphic() && !matches!(character, '!' | '#' | '*' | '@');
        text.len() <= 255
            && name
                .split_once(':')
                .is_some_and(|(name, server)| !name.is_empty() && name.chars().all(is_char) && is_server(server))
    }
}

impl Section for MatrixSection {
    const REQUIRED: &'static [&'static str] = &["homeserver", "user"];

    fn check(&self, checks: &mut Checks<'_>) {
        if self.homeserver.query().is_some() || self.homeserver.fragment().is_some() {
            let what = "must end with the path: remove the part from the `?` or `#` on";
            checks.wrong(checks.key(&["homeserver"]), what);
        }
        if !Self::is_user(&self.user) {
            let what = format!("must be a full user id such as \"@agent:example.org\", not {:?}", self.user);
            checks.wrong(checks.key(&["user"]), what);
        }
        match (&self.password, &self.access_token) {
            (None, None) => {
                let what = "must be set, or access_token: the gateway needs one of the two to log in";
                checks.wrong(checks.key(&["password"]), what);
            }
            (Some(_), Some(_)) => {
                let what = "cannot be set with password: remove one of the two";
                checks.wrong(checks.key(&["access_token"]), what);
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
        self.people.check(&ID_FORMAT, checks);
        self.common.groups.check(&ID_FORMAT, checks);
    }
}

impl ChannelSection for MatrixSection {
    const PLATFORM: &'static str = "matrix";
    const MANUAL: &'static str = include_str!("../section.toml");

    fn common(&self) -> Common {
        Common {
            notify_reactions: self.tell_reactions,
            max_attachment: Some(self.max_attachment),
            ..self.common.common(&self.people)
        }
    }

    fn account(&self) -> Option<Account<'_>> {
        Some(Account { key: "user", id: &self.user, rule: "an account can be used by one channel only" })
    }
}

/// The formats of ids on Matrix.
pub const ID_FORMAT: IdFormat = IdFormat {
    is_person: |entry| MatrixSection::is_user(entry) || entry.strip_prefix("*:").is_some_and(is_server),
    is_group: |entry| {
        // Since room version 12, room ids contain no server name.
        entry.strip_prefix('!').is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
    },
    is_agent: MatrixSection::is_user,
    agent: "a user id such as \"@robot:example.org\"",
    person: "a user id such as \"@ada:example.org\", \"*:example.org\" for a whole server, or \"*\"",
    group: "a room's id such as \"!abc:example.org\"",
};

/// Whether a text is a server name: a host, optionally with a port.
fn is_server(text: &str) -> bool {
    let is_char =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | ':' | '[' | ']');
    !text.is_empty() && text.chars().all(is_char)
}

#[cfg(test)]
mod tests;
