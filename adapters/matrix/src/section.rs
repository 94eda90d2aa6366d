//! `[channels.matrix.<name>]`: an account on a Matrix homeserver, as the operator configured it.

use std::time::Duration;

use rejoinder_config::{
    Account, AllowList, ChannelSection, Checks, Common, Looks, People, Secret, Section, Size,
    duration::{self, HOUR, SECOND},
    text,
};
use rejoinder_core::{DirectPolicy, GroupPolicy, Rate};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use url::Url;

/// One account.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct MatrixSection {
    /// Where the homeserver's client API is, without `/_matrix`.
    #[serde(deserialize_with = "text::http_url")]
    pub homeserver: Url,
    /// The account: `@agent:example.org`.
    #[serde(deserialize_with = "text::filled")]
    pub user: String,
    /// The account's password. There where `access_token` is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// The access token of a device that was made for the gateway. There where `password` is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_token: Option<Secret>,
    /// The key or the passphrase of the account's recovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_key: Option<Secret>,
    /// What the gateway's device is called.
    #[serde(deserialize_with = "text::filled")]
    pub device_name: String,
    /// Which invitations are accepted.
    pub auto_join: AutoJoin,
    /// Who may write in direct chats.
    pub dm_policy: DirectPolicy,
    /// Who may write in direct chats where that is a list.
    pub allow_from: AllowList,
    /// What is put before the agent in rooms.
    pub group_policy: GroupPolicy,
    /// Who may write in rooms, and which rooms; where it is empty, those of `allow_from`.
    pub group_allow_from: AllowList,
    /// How an answer is shown while it is being written.
    pub streaming: Streaming,
    /// When what was said is marked as read.
    pub read_receipts: ReadReceipts,
    /// Whether the agent is told when somebody reacts to one of its messages.
    pub tell_reactions: bool,
    /// How long what cannot be decrypted may wait for its key before the person is told.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, SECOND, { 24 * HOUR }>")]
    pub decrypt_patience: Duration,
    /// How long one sync waits for something to come.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, SECOND, { 300 * SECOND }>")]
    pub sync_timeout: Duration,
    /// The largest file that is taken from a person.
    pub max_attachment: Size,
    /// The largest file that is sent.
    pub max_upload: Size,
    /// How fast what can be left out is sent.
    pub pace: Pace,
    /// Who answers, where it is not the default agent.
    #[serde(deserialize_with = "text::filled_option")]
    pub agent: Option<String>,
}

/// Which invitations are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AutoJoin {
    /// Those of people who may write.
    #[default]
    Allowlist,
    /// All.
    Always,
    /// None.
    Never,
}

/// How an answer is shown while it is being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Streaming {
    /// As a message that is edited until it is the answer.
    #[default]
    Edit,
    /// Not at all.
    Off,
}

/// When what was said is marked as read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadReceipts {
    /// Once it is stored.
    #[default]
    Immediate,
    /// Once it is answered.
    OnAnswer,
    /// Never.
    Off,
}

/// How fast drafts are sent. What the homeserver limits it says itself, and is kept to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// So that they never use up what an answer needs, by the limits that Synapse has by itself.
    #[default]
    Synapse,
    /// As fast as the homeserver takes them.
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
            dm_policy: DirectPolicy::default(),
            allow_from: AllowList::default(),
            group_policy: GroupPolicy::default(),
            group_allow_from: AllowList::default(),
            streaming: Streaming::default(),
            read_receipts: ReadReceipts::default(),
            tell_reactions: false,
            decrypt_patience: Duration::from_mins(1),
            sync_timeout: Duration::from_secs(30),
            max_attachment: Size::mib(50),
            max_upload: Size::mib(50),
            pace: Pace::default(),
            agent: None,
        }
    }
}

impl Pace {
    /// How fast the account may send drafts; `None`: as fast as the homeserver takes them.
    pub(crate) const fn of_drafts(self) -> Option<Rate> {
        match self {
            // Synapse's own limit is one message in 5 seconds after 10 at once (`rc_message`): this is half of it.
            Self::Synapse => Some(Rate { per: Duration::from_secs(10), burst: 5 }),
            Self::Server => None,
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

impl MatrixSection {
    /// How the account is proved.
    #[must_use]
    pub fn login(&self) -> Login {
        match (&self.password, &self.access_token) {
            (_, Some(token)) => Login::AccessToken(token.get().clone()),
            (password, None) => Login::Password(password.clone().unwrap_or_default().into()),
        }
    }

    /// The same, proved in this way.
    #[must_use]
    pub fn with_login(mut self, login: Login) -> Self {
        (self.password, self.access_token) = match login {
            Login::Password(password) => (Some(password.into()), None),
            Login::AccessToken(token) => (None, Some(token.into())),
        };
        self
    }

    fn people(&self) -> People {
        People {
            dm_policy: self.dm_policy,
            allow_from: self.allow_from.clone(),
            group_policy: self.group_policy,
            group_allow_from: self.group_allow_from.clone(),
        }
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
        self.inviters().any(|entry| is_meant(entry, user))
    }

    /// Whose invitations are accepted where that is a list: those of everybody who may write.
    fn inviters(&self) -> impl Iterator<Item = &str> {
        let everyone = (self.dm_policy == DirectPolicy::Open).then_some("*");
        let people = self.allow_from.iter().chain(self.group_allow_from.iter());
        everyone.into_iter().chain(people.filter(|entry| LOOKS.may_be_person(entry)))
    }

    /// Whether a text is a whole user id.
    #[must_use]
    pub fn is_user(text: &str) -> bool {
        text.starts_with('@') && is_user(text)
    }
}

impl Section for MatrixSection {
    const REQUIRED: &'static [&'static str] = &["homeserver", "user"];

    fn check(&self, checks: &mut Checks<'_>) {
        if self.homeserver.query().is_some() || self.homeserver.fragment().is_some() {
            let what = "must end with the path: take out what follows the `?` or `#`";
            checks.wrong(checks.key(&["homeserver"]), what);
        }
        if !Self::is_user(&self.user) {
            let what = format!("must be a whole user id such as \"@agent:example.org\", not {:?}", self.user);
            checks.wrong(checks.key(&["user"]), what);
        }
        match (&self.password, &self.access_token) {
            (None, None) => {
                let what = "must be set, or access_token: the homeserver has to know that the account is yours";
                checks.wrong(checks.key(&["password"]), what);
            }
            (Some(_), Some(_)) => {
                let what = "is not used beside password: take one of the two out";
                checks.wrong(checks.key(&["access_token"]), what);
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
        self.people().check(&LOOKS, checks);
    }
}

impl ChannelSection for MatrixSection {
    const PLATFORM: &'static str = "matrix";
    const MANUAL: &'static str = include_str!("../section.toml");

    fn common(&self) -> Common {
        Common {
            agent: self.agent.clone(),
            people: Some(self.people()),
            tells_reactions: self.tell_reactions,
            max_attachment: Some(self.max_attachment),
            on_unknown: None,
        }
    }

    fn account(&self) -> Option<Account<'_>> {
        Some(Account { key: "user", id: &self.user, rule: "an account can be one channel only" })
    }
}

/// How ids and names look on Matrix.
pub const LOOKS: Looks = Looks {
    is_person: |entry| is_user(entry) || entry.strip_prefix("*:").is_some_and(is_server),
    is_group: |entry| {
        // Since version 12 of rooms there is no server in their ids.
        entry.strip_prefix('!').is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
    },
    person: "a user id such as \"@ada:example.org\", \"*:example.org\" for all of a server, or \"*\"",
    group: "a room's id such as \"!abc:example.org\"",
};

/// A user id, with or without the sign before it
/// (<https://spec.matrix.org/latest/appendices/#user-identifiers>; old ones have any character that is seen).
fn is_user(text: &str) -> bool {
    let name = text.strip_prefix('@').unwrap_or(text);
    let is_char = |character: char| character.is_ascii_graphic() && !matches!(character, '!' | '#' | '*' | '@');
    text.len() <= 255
        && name
            .split_once(':')
            .is_some_and(|(name, server)| !name.is_empty() && name.chars().all(is_char) && is_server(server))
}

/// A server's name: a host, and a port where it has one.
fn is_server(text: &str) -> bool {
    let is_char =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | ':' | '[' | ']');
    !text.is_empty() && text.chars().all(is_char)
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
mod tests;
