//! Decides who may talk to the agent, for every channel.

use crate::model::{
    Access, AllowList, Author, ChannelId, ChatKind, ConversationRef, DirectPolicy, Directed, GroupPolicy, InboundEvent,
    KnownPeople, SenderKind,
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
    /// Denied, and the sender gets a code to be let in with.
    DeniedWithCode,
    Denied,
}

impl Access {
    pub(crate) fn permit(&self, event: &InboundEvent, known: &KnownPeople) -> Permit {
        let (sender, address) = (&event.sender, &event.conversation);
        let is_let_in = self.lets_in(&sender.id, sender.username.as_deref(), event.chat, address, known);
        match event.chat {
            ChatKind::Direct => match self.direct {
                DirectPolicy::Open => Permit::Granted,
                DirectPolicy::Pairing | DirectPolicy::Allowlist if is_let_in => Permit::Granted,
                DirectPolicy::Pairing => Permit::DeniedWithCode,
                DirectPolicy::Allowlist if self.allow.is_empty() => Permit::DeniedWithNotice,
                DirectPolicy::Allowlist | DirectPolicy::Disabled => Permit::Denied,
            },
            ChatKind::Group => {
                let is_heard = match self.groups.get(&address.chat).copied().unwrap_or(self.group) {
                    GroupPolicy::Mention => event.directed != Directed::Ambient,
                    GroupPolicy::All => true,
                    GroupPolicy::Disabled => false,
                };
                if is_let_in && is_heard { Permit::Granted } else { Permit::Denied }
            }
        }
    }

    /// Whether a stranger who proves that they are known elsewhere may be known here.
    pub(crate) const fn admits_links(&self) -> bool {
        matches!(self.direct, DirectPolicy::Pairing | DirectPolicy::Allowlist)
    }

    /// Whether the author of a message that is quoted or forwarded in `event` could have written it to the agent themselves.
    /// The event's sender may.
    pub(crate) fn lets_in_author(&self, author: &Author, event: &InboundEvent, known: &KnownPeople) -> bool {
        // An unknown id is on no list, and no group has an empty one.
        let (id, username) = (author.id.as_deref().unwrap_or_default(), author.username.as_deref());
        let address = &event.conversation;
        let elsewhere = ConversationRef::new(address.channel.clone(), "");
        author.kind == SenderKind::Ourselves
            || author.id.as_ref() == Some(&event.sender.id)
            || self.lets_in(id, username, event.chat, if author.is_elsewhere { &elsewhere } else { address }, known)
    }

    /// Whether the writer with this id and unique name is known or on the list for `kind` of chats, or everybody in the group
    /// at `address` is.
    pub(crate) fn lets_in(
        &self,
        id: &str,
        username: Option<&str>,
        kind: ChatKind,
        address: &ConversationRef,
        known: &KnownPeople,
    ) -> bool {
        if kind == ChatKind::Direct || self.group_allow.is_empty() {
            self.direct == DirectPolicy::Open || self.allow.names(id, username) || known.has(&address.channel, id)
        } else {
            self.group_allow.names(id, username) || self.group_allow.has_group(&address.chat)
        }
    }

    /// Whether the operator has let in the person with this id and unique name, and not everyone in some group.
    pub(crate) fn knows(&self, id: &str, username: Option<&str>) -> bool {
        let has_entry = |list: &AllowList| list.has_entry_of(id, username);
        self.direct == DirectPolicy::Open || has_entry(&self.allow) || has_entry(&self.group_allow)
    }

    /// Whether the writer with this id may bring the agent into a chat.
    pub(crate) fn may_invite(&self, id: &str, channel: &ChannelId, known: &KnownPeople) -> bool {
        self.direct == DirectPolicy::Open
            || self.allow.has_sender(id)
            || self.group_allow.has_sender(id)
            || known.has(channel, id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Identity, KnownIdentity, PersonId, PersonRecord, PersonRole, Sender};
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
        access.permit(&event(ChatKind::Direct, Directed::DirectChat), &KnownPeople::default())
    }

    fn in_group(access: &Access, directed: Directed) -> Permit {
        access.permit(&event(ChatKind::Group, directed), &KnownPeople::default())
    }

    /// N1.
    #[test]
    fn an_empty_list_lets_nobody_in_and_says_so() {
        let listed = Access { direct: DirectPolicy::Allowlist, ..Access::default() };

        assert_eq!(direct(&Access::default()), Permit::DeniedWithCode);
        assert_eq!(direct(&listed), Permit::DeniedWithNotice);
        for access in [Access::default(), listed] {
            assert_eq!(in_group(&access, Directed::Mention), Permit::Denied);
        }
    }

    /// B3.
    #[test]
    fn who_is_known_needs_no_list() {
        let identity = Identity { channel: ChannelId::new("test", "main"), id: "42".to_owned() };
        let known = |identity: Identity| {
            let identity =
                KnownIdentity { identity, added_at: Timestamp::from_millis(0), added_by: "grace".to_owned() };
            KnownPeople::of(&[PersonRecord {
                id: PersonId::new(Timestamp::from_millis(0)),
                name: "Ada".to_owned(),
                role: PersonRole::Member,
                created_at: Timestamp::from_millis(0),
                identities: vec![identity],
            }])
        };
        let permits = |access: &Access, known: &KnownPeople| {
            let permit = |chat, directed| access.permit(&event(chat, directed), known);
            (permit(ChatKind::Direct, Directed::DirectChat), permit(ChatKind::Group, Directed::Mention))
        };
        let elsewhere = Identity { channel: ChannelId::new("test", "other"), ..identity.clone() };
        let with = |direct| Access { direct, ..Access::default() };

        for direct in [DirectPolicy::Pairing, DirectPolicy::Allowlist] {
            assert_eq!(permits(&with(direct), &known(identity.clone())), (Permit::Granted, Permit::Granted));
            assert_ne!(permits(&with(direct), &known(elsewhere.clone())).0, Permit::Granted);
        }
        assert_eq!(permits(&with(DirectPolicy::Disabled), &known(identity.clone())).0, Permit::Denied);
        let listed = Access { group_allow: ["7"].into_iter().collect(), ..Access::default() };
        assert_eq!(permits(&listed, &known(identity)), (Permit::Granted, Permit::Denied));
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
            assert_eq!(direct(&access), Permit::DeniedWithCode, "{entry}");
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
                access.permit(&InboundEvent { sender, ..said }, &KnownPeople::default())
            };
            assert_eq!(called(event(ChatKind::Direct, Directed::DirectChat)), Permit::DeniedWithCode, "{name}");
            assert_eq!(called(event(ChatKind::Group, Directed::Mention)), Permit::Denied, "{name}");
        }
    }

    #[test]
    fn ids_that_differ_in_case_are_two() {
        let access = Access { allow: ["@Ada:example.org"].into_iter().collect(), ..Access::default() };
        let said = event(ChatKind::Direct, Directed::DirectChat);
        let sender = Sender { id: "@ada:example.org".to_owned(), username: None, ..said.sender.clone() };

        assert_eq!(access.permit(&InboundEvent { sender, ..said }, &KnownPeople::default()), Permit::DeniedWithCode);
    }

    #[test]
    fn everybody_of_a_server_can_be_listed_at_once() {
        let access = Access { allow: ["*:Example.org"].into_iter().collect(), ..Access::default() };
        let said_by = |id: &str| {
            let said = event(ChatKind::Direct, Directed::DirectChat);
            let sender = Sender { id: id.to_owned(), username: None, ..said.sender };
            access.permit(&InboundEvent { sender, ..said }, &KnownPeople::default())
        };

        assert_eq!(said_by("@ada:example.org"), Permit::Granted);
        assert_eq!(said_by("@eve:example.org.evil.org"), Permit::DeniedWithCode);
        assert_eq!(said_by("@eve:evil.org:example.org"), Permit::DeniedWithCode);
        assert_eq!(said_by("example.org"), Permit::DeniedWithCode);
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
    fn whoever_may_write_may_invite() {
        let nobody = KnownPeople::default();
        let may = |access: &Access, id: &str| access.may_invite(id, &ChannelId::new("test", "main"), &nobody);
        let with = |direct, allow: &[&str], group_allow: &[&str]| Access {
            direct,
            allow: allow.iter().collect(),
            group_allow: group_allow.iter().collect(),
            ..Access::default()
        };

        assert!(!may(&Access::default(), "@ada:example.org"));
        assert!(may(&with(DirectPolicy::Open, &[], &[]), "@ada:example.org"));
        for entry in ["@ada:example.org", "*:example.org", "*"] {
            assert!(may(&with(DirectPolicy::Pairing, &[entry], &[]), "@ada:example.org"), "{entry}");
            assert!(may(&with(DirectPolicy::Pairing, &[], &[entry]), "@ada:example.org"), "{entry}");
        }
        for entry in ["@Ada:example.org", "@bo:example.org", "*:example.com", "!abc:example.org"] {
            assert!(!may(&with(DirectPolicy::Pairing, &[entry], &[entry]), "@ada:example.org"), "{entry}");
        }
    }

    #[test]
    fn a_closed_direct_chat_is_closed_to_those_on_the_list_as_well() {
        let access =
            Access { direct: DirectPolicy::Disabled, allow: ["42"].into_iter().collect(), ..Access::default() };

        assert_eq!(direct(&access), Permit::Denied);
    }
}
