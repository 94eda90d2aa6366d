//! Which server a channel is in, which channel a thread belongs to, and which roles are ours.
//!
//! Filled from Gateway events. A message does not carry these facts, and a resumed session does not repeat them, so
//! missing ones are fetched over REST.

use std::collections::{HashMap, HashSet};

use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::{
    payload::{Channel, Guild, Member, Role},
    snowflake::Snowflake,
};

/// The types of channels
/// (<https://discord.com/developers/docs/resources/channel#channel-object-channel-types>).
mod kind {
    pub(super) const TEXT: u64 = 0;
    pub(super) const ANNOUNCEMENT: u64 = 5;
    pub(super) const DIRECT: [u64; 2] = [1, 3];
    pub(super) const THREADS: [u64; 3] = [10, 11, 12];
    /// Categories, directories, forums and media channels.
    pub(super) const WITHOUT_MESSAGES: [u64; 4] = [4, 14, 15, 16];
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChannelInfo {
    kind: u64,
    pub(crate) guild: Option<Snowflake>,
    parent: Option<Snowflake>,
    /// Who created it, if it is a thread.
    pub(crate) owner: Option<Snowflake>,
    name: Option<String>,
}

impl ChannelInfo {
    pub(crate) fn thread_of(&self) -> Option<Snowflake> {
        self.parent.filter(|_| kind::THREADS.contains(&self.kind))
    }

    /// Whether it is a direct chat, with one person or several.
    pub(crate) fn is_direct(&self) -> bool {
        kind::DIRECT.contains(&self.kind)
    }

    /// Whether a thread can be started from a message in it.
    pub(crate) const fn can_have_threads(&self) -> bool {
        matches!(self.kind, kind::TEXT | kind::ANNOUNCEMENT)
    }

    pub(crate) fn has_messages(&self) -> bool {
        !kind::WITHOUT_MESSAGES.contains(&self.kind)
    }
}

impl From<&Channel> for ChannelInfo {
    fn from(channel: &Channel) -> Self {
        Self {
            kind: channel.kind,
            guild: channel.guild_id,
            parent: channel.parent_id,
            owner: channel.owner_id,
            name: channel.name.clone(),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Directory(RwLock<DirectoryState>);

#[derive(Debug, Default)]
struct DirectoryState {
    channels: HashMap<Snowflake, ChannelInfo>,
    roles: HashMap<Snowflake, String>,
    /// The application's own roles. One has the same name as its bot, so people mention it by mistake.
    application_roles: HashSet<Snowflake>,
    /// The roles that we were given, by server; a server is absent while they are unknown.
    ours: HashMap<Snowflake, HashSet<Snowflake>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LatestMessage {
    pub(crate) channel: Snowflake,
    /// `None`: Discord did not say.
    pub(crate) message: Option<Snowflake>,
}

impl Directory {
    pub(crate) fn channel(&self, channel: Snowflake) -> Option<ChannelInfo> {
        self.0.read().channels.get(&channel).cloned()
    }

    pub(crate) fn channel_name(&self, channel: Snowflake) -> Option<String> {
        self.0.read().channels.get(&channel)?.name.clone()
    }

    pub(crate) fn role_name(&self, role: Snowflake) -> Option<String> {
        self.0.read().roles.get(&role).cloned()
    }

    /// Whether a server's role is ours; `None` if our roles there are unknown.
    pub(crate) fn is_our_role(&self, guild: Snowflake, role: Snowflake) -> Option<bool> {
        let state = self.0.read();
        if state.application_roles.contains(&role) {
            return Some(true);
        }
        Some(state.ours.get(&guild)?.contains(&role))
    }

    /// Adds a channel or a thread. `guild` is its server if the channel does not name it.
    pub(crate) fn learn(&self, channel: &Channel, guild: Option<Snowflake>) {
        let info = ChannelInfo { guild: channel.guild_id.or(guild), ..ChannelInfo::from(channel) };
        self.0.write().channels.insert(channel.id, info);
    }

    pub(crate) fn learn_direct(&self, channel: Snowflake) {
        let direct = || ChannelInfo { kind: kind::DIRECT[0], guild: None, parent: None, owner: None, name: None };
        self.0.write().channels.entry(channel).or_insert_with(direct);
    }

    pub(crate) fn forget(&self, channel: Snowflake) {
        self.0.write().channels.remove(&channel);
    }

    pub(crate) fn learn_guild(&self, guild: &Guild<'_>, us: Snowflake) -> Vec<LatestMessage> {
        let channels = readable::<Channel>(&guild.channels).chain(readable(&guild.threads));
        let mut latest = Vec::new();
        for channel in channels {
            self.learn(&channel, Some(guild.id));
            if ChannelInfo::from(&channel).has_messages() {
                latest.push(LatestMessage { channel: channel.id, message: channel.last_message_id });
            }
        }
        let is_us = |member: &Member| member.user.as_ref().is_some_and(|user| user.id == us);
        if let Some(member) = readable::<Member>(&guild.members).find(is_us) {
            self.learn_our_roles(guild.id, member.roles);
        }
        for role in readable::<Role>(&guild.roles) {
            self.learn_role(role, us);
        }
        latest
    }

    pub(crate) fn learn_our_roles(&self, guild: Snowflake, roles: Vec<Snowflake>) {
        self.0.write().ours.insert(guild, roles.into_iter().collect());
    }

    pub(crate) fn learn_role(&self, role: Role, us: Snowflake) {
        let mut state = self.0.write();
        if role.tags.bot_id == Some(us) {
            state.application_roles.insert(role.id);
        }
        state.roles.insert(role.id, role.name);
    }
}

/// Parses each item and skips the invalid ones.
fn readable<'a, T: DeserializeOwned>(raw: &'a [&'a RawValue]) -> impl Iterator<Item = T> + 'a {
    raw.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Snowflake {
        Snowflake::parse(text).expect("an id")
    }

    #[test]
    fn a_server_says_what_is_in_it() {
        let directory = Directory::default();
        let guild = r#"{"id": "1", "channels": [
                {"id": "10", "type": 0, "name": "general", "last_message_id": "99"},
                {"id": "11", "type": 15, "name": "forum", "last_message_id": "12"},
                {"id": "broken"}
            ],
            "threads": [{"id": "12", "type": 11, "parent_id": "11", "last_message_id": null}],
            "roles": [{"id": "20", "name": "Agent", "tags": {"bot_id": "7"}}, {"id": "21", "name": "Helpers"}],
            "members": [{"user": {"id": "8"}, "roles": ["22"]}, {"user": {"id": "7"}, "roles": ["21"]}]}"#;

        let latest = directory.learn_guild(&serde_json::from_str(guild).expect("a server"), id("7"));

        let expected = [
            LatestMessage { channel: id("10"), message: Some(id("99")) },
            LatestMessage { channel: id("12"), message: None },
        ];
        assert_eq!(latest, expected);
        assert_eq!(directory.channel(id("12")).and_then(|info| info.thread_of()), Some(id("11")));
        assert_eq!(directory.channel(id("10")).and_then(|info| info.guild), Some(id("1")));
        let is_ours = |role| directory.is_our_role(id("1"), id(role));
        assert_eq!([is_ours("20"), is_ours("21"), is_ours("22")], [Some(true), Some(true), Some(false)]);
        assert_eq!(directory.is_our_role(id("2"), id("23")), None);
    }

    /// A server may come without its members.
    #[test]
    fn roles_that_nobody_named_are_unknown() {
        let directory = Directory::default();
        let guild = r#"{"id": "1", "roles": [{"id": "20", "tags": {"bot_id": "7"}}, {"id": "21"}]}"#;

        directory.learn_guild(&serde_json::from_str(guild).expect("a server"), id("7"));

        let is_ours = |role| directory.is_our_role(id("1"), id(role));
        assert_eq!([is_ours("20"), is_ours("21")], [Some(true), None]);
    }
}
