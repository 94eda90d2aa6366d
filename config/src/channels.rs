//! `[channels.<platform>.<name>]`: where people reach the agent.
//!
//! A platform's section is a [`ChannelSection`] in the crate of its adapter; [`load`](crate::load) gets the list of
//! platforms that are built in. The gateway reads [`Common`] of every channel; only the platform reads the rest, which it
//! gets with [`Channel::section`].

use std::{collections::BTreeMap, fmt};

use rejoinder_core::{ChannelId, Language, OnUnknown, QueueMode, VoiceMode};
use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};

use crate::{
    Groups, Size,
    boxed::Boxed,
    check::{Checks, Section},
    foreign::{self, KeysOf},
    key::Key,
    names::{list, nearest},
    node::Node,
    people::People,
    read::{Reader, entries, keys},
    text,
};

pub trait ChannelSection: Section + DeserializeOwned + Serialize + Send + Sync + 'static {
    /// The platform's name in the configuration.
    const PLATFORM: &'static str;

    /// The platform's part of the manual: TOML with a comment above each key. Lines without a `#` before them are defaults,
    /// and may belong to other sections.
    const MANUAL: &'static str;

    /// Names that no channel of the platform may have.
    const RESERVED_NAMES: &'static [&'static str] = &[];

    /// The settings that the gateway reads.
    fn common(&self) -> Common;

    /// The channel's account, if two channels must not share one.
    fn account(&self) -> Option<Account<'_>> {
        None
    }
}

/// The settings of a channel that the gateway reads, on every platform.
#[derive(Clone, Debug, Default)]
pub struct Common {
    pub keys: ChannelKeys,
    /// Who may talk to the agent. `None`: everyone whom the channel itself has authenticated.
    pub people: Option<People>,
    /// Whether the agent is notified of reactions to its messages.
    pub notify_reactions: bool,
    /// The largest file that is accepted from a person, if the channel accepts files.
    pub max_attachment: Option<Size>,
    /// Overrides `guard.on_unknown`.
    pub on_unknown: Option<OnUnknown>,
    /// Whether only what agents say is sent there: nobody waits for anything.
    pub only_agents_words: bool,
}

/// The keys of every channel with direct chats and groups: the field `#[serde(rename = "..common")] common` of its section.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ChannelKeys {
    /// What happens to a message of a direct chat that comes while a turn runs. Overrides `queue.mode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueMode>,
    /// The same in groups. Overrides `queue.group_mode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_queue: Option<QueueMode>,
    /// Which answers are spoken as well. `None`: those to voice notes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<VoiceMode>,
    /// The agent that answers. Overrides the default agent.
    #[serde(deserialize_with = "text::filled_option")]
    pub agent: Option<String>,
    /// The language of people whose own is not known, if not `guard.language`.
    #[serde(deserialize_with = "text::language_option")]
    pub language: Option<Language>,
    /// What differs in single groups.
    #[serde(skip_serializing_if = "Groups::is_empty")]
    pub groups: Groups,
}

impl ChannelKeys {
    /// What the gateway reads of a channel with these keys.
    pub fn common(&self, people: &People) -> Common {
        Common { keys: self.clone(), people: Some(people.clone()), ..Common::default() }
    }
}

/// As [`ChannelKeys`], for a channel without groups.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct DirectKeys {
    /// What happens to a message that comes while a turn of its conversation runs. Overrides `queue.mode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueMode>,
    /// The agent that answers. Overrides the default agent.
    #[serde(deserialize_with = "text::filled_option")]
    pub agent: Option<String>,
    /// The language of people whose own is not known, if not `guard.language`.
    #[serde(deserialize_with = "text::language_option")]
    pub language: Option<Language>,
}

impl DirectKeys {
    /// What the gateway reads of a channel with these keys.
    pub fn common(&self) -> Common {
        let Self { queue, agent, language } = self.clone();
        Common { keys: ChannelKeys { queue, agent, language, ..ChannelKeys::default() }, ..Common::default() }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// The key of the section that names the account.
    pub key: &'static str,
    /// Identifies the account. Never a secret.
    pub id: &'a str,
    /// Explains in the error why two channels cannot share the account.
    pub rule: &'static str,
}

/// A platform that a configuration may name.
#[derive(Clone, Copy, Debug)]
pub struct PlatformSection {
    /// The platform's name in the configuration.
    pub name: &'static str,
    /// [`ChannelSection::MANUAL`].
    pub manual: &'static str,
    /// `None`: the platform was left out of the build.
    read: Option<ReadChannels>,
    /// The keys of a channel.
    keys: KeysOf,
}

type ReadChannels = fn(&Node, &Key, &mut Reader<'_>) -> BTreeMap<String, Channel>;

impl PlatformSection {
    pub const fn of<T: ChannelSection>() -> Self {
        Self { name: T::PLATFORM, manual: T::MANUAL, read: Some(read::<T>), keys: keys::<T> }
    }

    /// A platform that was left out of the build. A configuration with a channel of it is rejected.
    pub const fn left_out(name: &'static str) -> Self {
        Self { name, manual: "", read: None, keys: |_| None }
    }

    /// Whether this build includes the platform.
    pub const fn is_built(&self) -> bool {
        self.read.is_some()
    }
}

/// One configured channel.
#[derive(Clone)]
pub struct Channel {
    pub common: Common,
    section: Boxed,
}

impl Channel {
    fn new<T: ChannelSection>(section: T) -> Self {
        Self { common: section.common(), section: Boxed::new(section) }
    }

    /// The section. `None` if `T` belongs to another platform.
    pub fn section<T: ChannelSection>(&self) -> Option<&T> {
        self.section.get()
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.section.fmt(f)
    }
}

impl Serialize for Channel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.section.serialize(serializer)
    }
}

/// Every configured channel, by platform and name.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Channels(BTreeMap<&'static str, BTreeMap<String, Channel>>);

impl Channels {
    /// Every channel, ordered by id.
    pub fn iter(&self) -> impl Iterator<Item = (ChannelId, &Channel)> {
        self.0.iter().flat_map(|(platform, channels)| {
            channels.iter().map(|(name, channel)| (ChannelId::new(platform, name), channel))
        })
    }

    /// The channels of one platform, by name.
    pub fn of<T: ChannelSection>(&self) -> impl Iterator<Item = (&str, &T)> {
        let channels = self.0.get(T::PLATFORM).into_iter().flatten();
        channels.filter_map(|(name, channel)| Some((name.as_str(), channel.section()?)))
    }

    pub(crate) fn read(node: &Node, key: &Key, reader: &mut Reader<'_>, platforms: &[PlatformSection]) -> Self {
        let mut channels = BTreeMap::new();
        let all: Vec<_> = platforms.iter().map(|platform| (platform.name, platform.keys)).collect();
        entries(node, key, reader, |name, node, key, reader| {
            let platform = platforms.iter().find(|platform| platform.name == name);
            match platform.map(|platform| (platform.name, platform.read)) {
                Some((name, Some(read))) => {
                    let mut node = node.clone();
                    for (channel, node) in node.table_mut().into_iter().flatten() {
                        foreign::remove(node, &key.name(channel), reader, ("platform", name), &all);
                    }
                    let of_platform = read(&node, key, reader);
                    if !of_platform.is_empty() {
                        channels.insert(name, of_platform);
                    }
                }
                Some((name, None)) => {
                    let what = format!(
                        "names a platform that this build does not have: remove it, or build with the feature `{name}`"
                    );
                    reader.problem(key.clone(), &node.origin, what);
                }
                None => reader.problem(key.clone(), &node.origin, unknown(name, platforms)),
            }
        });
        Self(channels)
    }
}

fn unknown(name: &str, platforms: &[PlatformSection]) -> String {
    let names = sorted_names(platforms);
    let hint = nearest(name, names.iter().copied())
        .map_or_else(String::new, |nearest| format!(" (did you mean `{nearest}`?)"));
    format!("names a platform that this build does not have: it has {}{hint}", list(names.into_iter(), "and"))
}

pub(crate) fn sorted_names(platforms: &[PlatformSection]) -> Vec<&'static str> {
    let mut names: Vec<_> =
        platforms.iter().filter(|platform| platform.is_built()).map(|platform| platform.name).collect();
    names.sort_unstable();
    names
}

fn read<T: ChannelSection>(node: &Node, key: &Key, reader: &mut Reader<'_>) -> BTreeMap<String, Channel> {
    let mut found = Vec::new();
    entries(node, key, reader, |name, node, key, reader| {
        if T::RESERVED_NAMES.contains(&name) {
            reader.problem(key.clone(), &node.origin, "has a reserved name: choose another");
        } else if let Some(section) = reader.read_and::<T>(node, key, check_common) {
            found.push((name.to_owned(), section));
        }
    });
    check_unique_accounts(&found, node, key, reader);
    found.into_iter().map(|(name, section)| (name, Channel::new(section))).collect()
}

fn check_common<T: ChannelSection>(section: &T, checks: &mut Checks<'_>) {
    let ChannelKeys { agent, language, .. } = section.common().keys;
    checks.refers_to_agent(&checks.key(&["agent"]), agent);
    checks.knows_language(checks.key(&["language"]), language.as_ref().map(Language::as_str));
}

/// Reports each channel that uses the account of another one. Two channels that fetch the same bot's updates would take them
/// from each other, or both answer them.
fn check_unique_accounts<T: ChannelSection>(channels: &[(String, T)], node: &Node, key: &Key, reader: &mut Reader<'_>) {
    let mut seen = BTreeMap::new();
    for (name, section) in channels {
        let Some(Account { key: proof, id, rule }) = section.account() else { continue };
        let Some(first) = seen.insert(id, name) else { continue };
        let (at, table) = (key.names(&[name, proof]), node.get(name).unwrap_or(node));
        let what = format!("is the {proof} of {} too: {rule}", key.name(first));
        reader.problem(at, table.get(proof).map_or(&table.origin, |value| &value.origin), what);
    }
}
