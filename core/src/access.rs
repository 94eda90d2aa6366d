//! Who may talk to the agent: decided once, here, for every channel.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::{ChatKind, Directed, InboundEvent, Sender};

/// Who may write in direct chats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DirectPolicy {
    /// Those on the list. Where the list is empty, whoever writes is told that they are not on it.
    #[default]
    Allowlist,
    /// Everyone.
    Open,
    /// Nobody.
    Disabled,
}

/// What is put before the agent in groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupPolicy {
    /// What is directed at the agent: a mention, a reply to it, a command.
    #[default]
    Mention,
    /// Everything; what is not directed at the agent is owed no answer.
    All,
    /// Nothing.
    Disabled,
}

/// Senders by the platform's id or unique name, and groups by their id. `*` stands for everyone, `*:server` for
/// everyone whose id ends so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(HashSet<String>);

impl<T: AsRef<str>> FromIterator<T> for AllowList {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Self(entries.into_iter().map(|entry| key(entry.as_ref())).collect())
    }
}

impl AllowList {
    /// Whether nobody is on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn names(&self, sender: &Sender) -> bool {
        let has = |entry: &str| self.0.contains(&key(entry));
        let server = sender.id.split_once(':').map(|(_, server)| format!("*:{server}"));
        self.0.contains("*")
            || has(&sender.id)
            || sender.username.as_deref().is_some_and(has)
            || server.is_some_and(|server| has(&server))
    }

    fn names_chat(&self, chat: &str) -> bool {
        self.0.contains(&key(chat))
    }
}

/// Names are compared without the sign before them and in lower case.
fn key(entry: &str) -> String {
    entry.trim().trim_start_matches('@').to_lowercase()
}

/// Who may talk to the agent on one channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Who may write in direct chats.
    pub direct: DirectPolicy,
    /// The list for direct chats.
    pub allow: AllowList,
    /// What is put before the agent in groups.
    pub group: GroupPolicy,
    /// Who may write in groups, and which groups may as a whole. Where it is empty, those who may write in
    /// direct chats.
    pub group_allow: AllowList,
}

/// Whether an event is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    Granted,
    /// Its sender is told that they may not.
    Told,
    Denied,
}

impl Access {
    /// Everyone, everywhere: for channels that know who calls by other means.
    #[must_use]
    pub fn open() -> Self {
        Self { direct: DirectPolicy::Open, group: GroupPolicy::All, ..Self::default() }
    }

    pub(crate) fn permit(&self, event: &InboundEvent) -> Permit {
        match event.chat {
            ChatKind::Direct => match self.direct {
                DirectPolicy::Open => Permit::Granted,
                DirectPolicy::Allowlist if self.allow.names(&event.sender) => Permit::Granted,
                DirectPolicy::Allowlist if self.allow.is_empty() => Permit::Told,
                DirectPolicy::Allowlist | DirectPolicy::Disabled => Permit::Denied,
            },
            ChatKind::Group => {
                let is_let_in = if self.group_allow.is_empty() {
                    self.direct == DirectPolicy::Open || self.allow.names(&event.sender)
                } else {
                    self.group_allow.names(&event.sender) || self.group_allow.names_chat(&event.conversation.chat)
                };
                let is_heard = match self.group {
                    GroupPolicy::Mention => event.directed != Directed::Ambient,
                    GroupPolicy::All => true,
                    GroupPolicy::Disabled => false,
                };
                if is_let_in && is_heard { Permit::Granted } else { Permit::Denied }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChannelId, ConversationRef, SenderKind, Timestamp};

    fn event(chat: ChatKind, directed: Directed) -> InboundEvent {
        InboundEvent {
            directed,
            text: "hello".to_owned(),
            ..InboundEvent::new(
                ConversationRef::new(ChannelId::new("test", "main"), "-100"),
                chat,
                "1".to_owned(),
                Sender {
                    id: "42".to_owned(),
                    name: None,
                    username: Some("Ada_L".to_owned()),
                    kind: SenderKind::Person,
                },
                Timestamp::from_millis(0),
            )
        }
    }

    fn direct(access: &Access) -> Permit {
        access.permit(&event(ChatKind::Direct, Directed::DirectChat))
    }

    fn in_group(access: &Access, directed: Directed) -> Permit {
        access.permit(&event(ChatKind::Group, directed))
    }

    /// N1.
    #[test]
    fn an_empty_list_lets_nobody_in_and_says_so() {
        assert_eq!(direct(&Access::default()), Permit::Told);
        assert_eq!(in_group(&Access::default(), Directed::Mention), Permit::Denied);
    }

    #[test]
    fn a_sender_is_listed_by_id_or_by_name() {
        for entry in ["42", "ada_l", "@Ada_L", "*"] {
            let access = Access { allow: [entry].into_iter().collect(), ..Access::default() };
            assert_eq!(direct(&access), Permit::Granted, "{entry}");
            assert_eq!(in_group(&access, Directed::Mention), Permit::Granted, "{entry}");
        }
        let another = Access { allow: ["7"].into_iter().collect(), ..Access::default() };
        assert_eq!(direct(&another), Permit::Denied);
    }

    #[test]
    fn everybody_of_a_server_can_be_listed_at_once() {
        let access = Access { allow: ["*:Example.org"].into_iter().collect(), ..Access::default() };
        let said_by = |id: &str| {
            let said = event(ChatKind::Direct, Directed::DirectChat);
            let sender = Sender { id: id.to_owned(), username: None, ..said.sender };
            access.permit(&InboundEvent { sender, ..said })
        };

        assert_eq!(said_by("@ada:example.org"), Permit::Granted);
        assert_eq!(said_by("@eve:example.org.evil.org"), Permit::Denied);
        assert_eq!(said_by("@eve:evil.org:example.org"), Permit::Denied);
        assert_eq!(said_by("example.org"), Permit::Denied);
    }

    #[test]
    fn a_group_is_heard_as_its_policy_says() {
        let with = |group| Access { direct: DirectPolicy::Open, group, ..Access::default() };

        assert_eq!(in_group(&with(GroupPolicy::Mention), Directed::ReplyToUs), Permit::Granted);
        assert_eq!(in_group(&with(GroupPolicy::Mention), Directed::Ambient), Permit::Denied);
        assert_eq!(in_group(&with(GroupPolicy::All), Directed::Ambient), Permit::Granted);
        assert_eq!(in_group(&with(GroupPolicy::Disabled), Directed::Mention), Permit::Denied);
    }

    #[test]
    fn the_groups_own_list_takes_the_place_of_the_other() {
        let with = |entry: &str| Access {
            allow: ["42"].into_iter().collect(),
            group_allow: [entry].into_iter().collect(),
            ..Access::default()
        };

        assert_eq!(in_group(&with("-100"), Directed::Mention), Permit::Granted);
        assert_eq!(in_group(&with("42"), Directed::Mention), Permit::Granted);
        assert_eq!(in_group(&with("7"), Directed::Mention), Permit::Denied);
    }

    #[test]
    fn a_closed_direct_chat_is_closed_to_those_on_the_list_as_well() {
        let access =
            Access { direct: DirectPolicy::Disabled, allow: ["42"].into_iter().collect(), ..Access::default() };

        assert_eq!(direct(&access), Permit::Denied);
    }
}
