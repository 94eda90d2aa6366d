//! Sections of two platforms and a kind of agent, like those of the adapters.

use std::time::Duration;

use rejoinder_config::{
    AgentSection, AllowList, ChannelSection, Checks, Common, DirectKeys, IdFormat, People, Secret, Section, Size,
    Token,
    duration::{self, MINUTE},
    number, text,
};
use rejoinder_core::{DirectPolicy, GroupPolicy, OnUnknown};
use serde::{Deserialize, Serialize};
use url::Url;

/// A channel that programs call.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Hook {
    pub(crate) token: Option<Token>,
    pub(crate) key: Option<Secret>,
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 0, { 10 * MINUTE }>")]
    pub(crate) wait: Duration,
    #[serde(deserialize_with = "text::http_url_option")]
    pub(crate) callback: Option<Url>,
    #[serde(deserialize_with = "text::filled_option")]
    pub(crate) agent: Option<String>,
}

impl Default for Hook {
    fn default() -> Self {
        Self { token: None, key: None, wait: Duration::from_secs(25), callback: None, agent: None }
    }
}

impl Section for Hook {
    fn check(&self, checks: &mut Checks<'_>) {
        if self.token.is_none() && self.key.is_none() {
            checks.wrong(checks.key(&["token"]), "must be set, or `key`");
        }
        if self.key.as_ref().is_some_and(|key| !key.expose().starts_with("key_")) {
            checks.wrong(checks.key(&["key"]), "must begin with key_");
        }
    }
}

impl ChannelSection for Hook {
    const PLATFORM: &'static str = "hook";
    const MANUAL: &'static str = r#"# A hook.
[channels.hook.default]
# The token that callers send.
token = { generate = true }
# The key that callers sign with.
#key = "key_example"
# How long a caller waits.
wait = "25s"
# The URL that answers are posted to.
#callback = "https://example.org/"
# The agent that answers.
#agent = "front-desk"

# The texts of hooks.
[guard.templates.hook]
# The agent said nothing.
silent = "I have nothing to say to that."
"#;

    fn common(&self) -> Common {
        DirectKeys { agent: self.agent.clone(), ..DirectKeys::default() }.common()
    }
}

/// A channel where people write.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Page {
    #[serde(deserialize_with = "text::filled")]
    pub(crate) title: String,
    pub(crate) dm_policy: DirectPolicy,
    pub(crate) allow_from: AllowList,
    pub(crate) group_policy: GroupPolicy,
    pub(crate) group_allow_from: AllowList,
    pub(crate) tell_reactions: bool,
    pub(crate) max_attachment: Size,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on_unknown: Option<OnUnknown>,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            title: "Rejoinder".to_owned(),
            dm_policy: DirectPolicy::default(),
            allow_from: AllowList::default(),
            group_policy: GroupPolicy::default(),
            group_allow_from: AllowList::default(),
            tell_reactions: false,
            max_attachment: Size::mib(2),
            on_unknown: None,
        }
    }
}

const ID_FORMAT: IdFormat = IdFormat {
    is_person: |entry| entry.trim_start_matches('@').chars().all(char::is_alphanumeric),
    is_group: |entry| entry.starts_with('-'),
    is_agent: |entry| entry.chars().all(char::is_numeric),
    person: "a name",
    agent: "a number",
    group: "a group",
};

impl Page {
    fn people(&self) -> People {
        People {
            dm_policy: self.dm_policy,
            allow_from: self.allow_from.clone(),
            group_policy: self.group_policy,
            group_allow_from: self.group_allow_from.clone(),
            quote_strangers: true,
            allow_bots: AllowList::default(),
        }
    }
}

impl Section for Page {
    fn check(&self, checks: &mut Checks<'_>) {
        self.people().check(&ID_FORMAT, checks);
    }
}

impl ChannelSection for Page {
    const PLATFORM: &'static str = "page";
    const MANUAL: &'static str = r#"# A page.
[channels.page.main]
# Its title.
title = "Rejoinder"
# Who may write in direct chats.
dm_policy = "pairing"
# Those who may.
allow_from = []
# Which messages in groups are read.
group_policy = "mention"
# Those who may write there.
group_allow_from = []
# Whether the agent is notified of reactions.
tell_reactions = false
# The largest file.
max_attachment = "2 MiB"
# What happens to a message that may have arrived.
#on_unknown = "hold"

# On pages, silence becomes a question.
[guard.ladder.page.direct]
# The agent said nothing.
silent = [{ clarify = "what_next" }, { say = "silent" }]
"#;
    const RESERVED_NAMES: &'static [&'static str] = &["ws"];

    fn common(&self) -> Common {
        Common {
            people: Some(self.people()),
            notify_reactions: self.tell_reactions,
            max_attachment: Some(self.max_attachment),
            on_unknown: self.on_unknown,
            ..Common::default()
        }
    }
}

/// An agent on a server.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Robot {
    #[serde(deserialize_with = "text::http_url")]
    pub(crate) base_url: Url,
    #[serde(deserialize_with = "text::filled")]
    pub(crate) model: String,
    pub(crate) api_key: Option<Secret>,
    #[serde(deserialize_with = "number::between_option::<_, 1, 1_000_000>")]
    pub(crate) max_tokens: Option<u32>,
}

impl Default for Robot {
    fn default() -> Self {
        let base_url = "http://127.0.0.1/".parse().expect("a valid constant");
        Self { base_url, model: String::new(), api_key: None, max_tokens: None }
    }
}

impl Section for Robot {
    const REQUIRED: &'static [&'static str] = &["base_url", "model"];
}

impl AgentSection for Robot {
    const KIND: &'static str = "robot";
    const MANUAL: &'static str = r#"# A robot.
#[agents.main]
#kind = "robot"
# Its URL.
#base_url = "http://127.0.0.1:1/"
# Its model.
#model = "r2"
# Its key.
#api_key = { env = "ROBOT_KEY" }
# The most tokens of one answer.
#max_tokens = 10
"#;
}
