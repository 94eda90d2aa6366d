//! `[channels.matrix.<name>]`: an account on a Matrix homeserver.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use super::access::{AllowList, DmPolicy, GroupPolicy, Looks, People};
use crate::{
    Secret, Size,
    check::{Checks, Section},
    duration::{self, HOUR, SECOND},
    text,
};

/// One account.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// Where the homeserver's client API is, without `/_matrix`.
    #[serde(deserialize_with = "text::http_url")]
    pub homeserver: Url,
    /// The account: `@agent:example.org`.
    #[serde(deserialize_with = "text::filled")]
    pub user: String,
    /// The account's password. There where `access_token` is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// The access token of a device that was made for the gateway. There where `password` is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_token: Option<Secret>,
    /// The key or the passphrase of the account's recovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_key: Option<Secret>,
    /// What the gateway's device is called.
    #[serde(default = "default_device_name", deserialize_with = "text::filled")]
    pub device_name: String,
    /// Which invitations are accepted.
    #[serde(default)]
    pub auto_join: AutoJoin,
    /// Who may write in direct chats.
    #[serde(default)]
    pub dm_policy: DmPolicy,
    /// Who may write in direct chats where that is a list.
    #[serde(default)]
    pub allow_from: AllowList,
    /// What is put before the agent in rooms.
    #[serde(default)]
    pub group_policy: GroupPolicy,
    /// Who may write in rooms, and which rooms; where it is empty, those of `allow_from`.
    #[serde(default)]
    pub group_allow_from: AllowList,
    /// How an answer is shown while it is being written.
    #[serde(default)]
    pub streaming: MatrixStreaming,
    /// When what was said is marked as read.
    #[serde(default)]
    pub read_receipts: ReadReceipts,
    /// Whether the agent is told when somebody reacts to one of its messages.
    #[serde(default)]
    pub tell_reactions: bool,
    /// How long what cannot be decrypted may wait for its key before the person is told.
    #[serde(
        default = "default_decrypt_patience",
        serialize_with = "duration::write",
        deserialize_with = "duration::between::<_, SECOND, { 24 * HOUR }>"
    )]
    pub decrypt_patience: Duration,
    /// How long one sync waits for something to come.
    #[serde(
        default = "default_sync_timeout",
        serialize_with = "duration::write",
        deserialize_with = "duration::between::<_, SECOND, { 300 * SECOND }>"
    )]
    pub sync_timeout: Duration,
    /// The largest file that is taken from a person.
    #[serde(default = "default_max_file")]
    pub max_attachment: Size,
    /// The largest file that is sent.
    #[serde(default = "default_max_file")]
    pub max_upload: Size,
    /// How fast what can be left out is sent.
    #[serde(default)]
    pub pace: MatrixPace,
    /// Who answers, where it is not the default agent.
    #[serde(default, deserialize_with = "text::filled_option")]
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
pub enum MatrixStreaming {
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
pub enum MatrixPace {
    /// So that they never use up what an answer needs, by the limits that Synapse has by itself.
    #[default]
    Synapse,
    /// As fast as the homeserver takes them.
    Server,
}

fn default_device_name() -> String {
    "Rejoinder".to_owned()
}

fn default_decrypt_patience() -> Duration {
    Duration::from_millis(60 * SECOND)
}

fn default_sync_timeout() -> Duration {
    Duration::from_millis(30 * SECOND)
}

const fn default_max_file() -> Size {
    Size::mib(50)
}

impl Matrix {
    /// Who may talk to the agent.
    #[must_use]
    pub const fn people(&self) -> People<'_> {
        People {
            dm_policy: self.dm_policy,
            allow_from: &self.allow_from,
            group_policy: self.group_policy,
            group_allow_from: &self.group_allow_from,
        }
    }

    /// Whose invitations are accepted where that is a list: those of everybody who may write.
    pub fn inviters(&self) -> impl Iterator<Item = &str> {
        let everyone = (self.dm_policy == DmPolicy::Open).then_some("*");
        let people = self.allow_from.iter().chain(self.group_allow_from.iter());
        everyone.into_iter().chain(people.filter(|entry| Self::may_be_person(entry)))
    }

    /// Whether an entry of `allow_from` may stand for somebody: an id, everybody of a server, or `*`.
    #[must_use]
    pub fn may_be_person(entry: &str) -> bool {
        entry == "*" || (LOOKS.is_person)(entry)
    }

    /// Whether a text is a whole user id.
    #[must_use]
    pub fn is_user(text: &str) -> bool {
        text.starts_with('@') && is_user(text)
    }

    /// The account, as servers compare it.
    pub(super) fn account(&self) -> &str {
        &self.user
    }
}

impl Section for Matrix {
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
        if let Some(agent) = &self.agent {
            checks.refers(checks.key(&["agent"]), "agent", agent, &checks.names.agents);
        }
    }
}

const LOOKS: Looks = Looks {
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
