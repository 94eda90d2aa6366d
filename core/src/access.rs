//! Decides who may talk to the agent, for every channel.

use crate::model::{
    access::{Access, AllowList, DirectPolicy, GroupPolicy},
    conversation::ChatKind,
    event::{Author, Directed, InboundEvent, SenderKind},
};

impl AllowList {
    fn names(&self, id: &str, username: Option<&str>) -> bool {
        self.has_sender(id) || username.is_some_and(|name| self.has_name(name))
    }
}

/// The result of checking an event's sender and chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    Granted,
    /// Denied, and the sender gets a notice.
    DeniedWithNotice,
    Denied,
}

impl Access {
    pub(crate) fn permit(&self, event: &InboundEvent) -> Permit {
        let sender = &event.sender;
        let is_let_in = self.lets_in(&sender.id, sender.username.as_deref(), event.chat, &event.conversation.chat);
        match event.chat {
            ChatKind::Direct => match self.direct {
                DirectPolicy::Open => Permit::Granted,
                DirectPolicy::Allowlist if is_let_in => Permit::Granted,
                DirectPolicy::Allowlist if self.allow.is_empty() => Permit::DeniedWithNotice,
                DirectPolicy::Allowlist | DirectPolicy::Disabled => Permit::Denied,
            },
            ChatKind::Group => {
                let is_heard = match self.group {
                    GroupPolicy::Mention => event.directed != Directed::Ambient,
                    GroupPolicy::All => true,
                    GroupPolicy::Disabled => false,
                };
                if is_let_in && is_heard { Permit::Granted } else { Permit::Denied }
            }
        }
    }

    /// Whether the author of a message that is quoted or forwarded in `event` could have written it to the agent themselves.
    /// The event's sender may.
    pub(crate) fn lets_in_author(&self, author: &Author, event: &InboundEvent) -> bool {
        // An unknown id is on no list, and no group has an empty one.
        let (id, username) = (author.id.as_deref().unwrap_or_default(), author.username.as_deref());
        let chat = if author.is_elsewhere { "" } else { &*event.conversation.chat };
        author.kind == SenderKind::Ourselves
            || author.id.as_ref() == Some(&event.sender.id)
            || self.lets_in(id, username, event.chat, chat)
    }

    /// Whether the writer with this id and unique name is on the list for `kind` of chats, or everybody in the group with
    /// the id `chat` is. Adapters ask before they spend much on an event that will not be heard.
    #[must_use]
    pub fn lets_in(&self, id: &str, username: Option<&str>, kind: ChatKind, chat: &str) -> bool {
        if kind == ChatKind::Direct || self.group_allow.is_empty() {
            self.direct == DirectPolicy::Open || self.allow.names(id, username)
        } else {
            self.group_allow.names(id, username) || self.group_allow.has_group(chat)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        conversation::{ChannelId, ConversationRef},
        event::{Sender, SenderKind},
    };
    use rejoinder_guard::Timestamp;

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
        assert_eq!(direct(&Access::default()), Permit::DeniedWithNotice);
        assert_eq!(in_group(&Access::default(), Directed::Mention), Permit::Denied);
    }

    #[test]
    fn a_sender_is_listed_by_id_or_by_name() {
        for entry in ["42", "@ada_l", "@Ada_L", "*"] {
            let access = Access { allow: [entry].into_iter().collect(), ..Access::default() };
            assert_eq!(direct(&access), Permit::Granted, "{entry}");
            assert_eq!(in_group(&access, Directed::Mention), Permit::Granted, "{entry}");
        }
        for entry in ["7", "ada_l", "@42"] {
            let access = Access { allow: [entry].into_iter().collect(), ..Access::default() };
            assert_eq!(direct(&access), Permit::Denied, "{entry}");
        }
    }

    /// On Discord, a name may consist of digits.
    #[test]
    fn a_name_that_is_somebody_elses_id_opens_nothing() {
        let access = Access {
            allow: ["7"].into_iter().collect(),
            group_allow: ["-100200"].into_iter().collect(),
            ..Access::default()
        };
        for name in ["7", "-100200", "@7"] {
            let called = |said: InboundEvent| {
                let sender = Sender { username: Some(name.to_owned()), ..said.sender.clone() };
                access.permit(&InboundEvent { sender, ..said })
            };
            assert_eq!(called(event(ChatKind::Direct, Directed::DirectChat)), Permit::Denied, "{name}");
            assert_eq!(called(event(ChatKind::Group, Directed::Mention)), Permit::Denied, "{name}");
        }
    }

    #[test]
    fn ids_that_differ_in_case_are_two() {
        let access = Access { allow: ["@Ada:example.org"].into_iter().collect(), ..Access::default() };
        let said = event(ChatKind::Direct, Directed::DirectChat);
        let sender = Sender { id: "@ada:example.org".to_owned(), username: None, ..said.sender.clone() };

        assert_eq!(access.permit(&InboundEvent { sender, ..said }), Permit::Denied);
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
