//! For whom something is that the gateway begins, and in which conversations.

use std::{cmp::Reverse, sync::Arc};

use crate::{
    base::channels::Channels,
    model::{
        Addressees, ChannelId, ChatKind, ConversationRef, Identity, InboundEvent, KnownIdentity, NotReached,
        PersonFilter, PersonId, PersonRole, Receipts, SenderKind, Target, WordsTo, folded, is_hidden,
    },
    operator::error::OperationError,
    people::{People, reach::Unreachable},
    ports::{ChannelStore, OperatorStore, StoreError, TurnFilter, TurnStore},
};

/// To how many people something may be sent at once.
const MOST_PEOPLE: usize = 200;

/// How many of the latest turns of a conversation are looked at to find out whether it is a group.
const LOOKED_AT: u32 = 20;

/// Finds the conversations for targets.
pub(crate) struct Recipients {
    pub(crate) store: Arc<dyn ChannelStore>,
    pub(crate) turns: Arc<dyn TurnStore>,
    pub(crate) lists: Arc<dyn OperatorStore>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) people: Arc<People>,
}

/// A conversation in which something is to begin, and whose it is if a person was named.
pub(super) struct Recipient {
    pub(super) address: ConversationRef,
    pub(super) person: Option<PersonId>,
    /// Whether that person is an owner there.
    pub(super) is_owner: bool,
}

impl Recipients {
    /// Whether something can be for a target, as far as that is known before.
    pub(crate) async fn check(&self, to: &Target, may: impl Fn(&ChannelId) -> bool) -> Result<(), OperationError> {
        let to = &self.known_by_user_name(to).await?;
        match self.of(to, may).await {
            Err(OperationError::Store(error)) => Err(error.into()),
            // They may write later.
            Err(_) if self.people.is_meant(to) => Ok(()),
            result => result.map(drop),
        }
    }

    /// The conversations for a target, and its people without one.
    pub(super) async fn of(
        &self,
        to: &Target,
        may: impl Fn(&ChannelId) -> bool,
    ) -> Result<(Vec<Recipient>, Vec<NotReached>), OperationError> {
        if let Target::Conversation(named) = to {
            let address = self.address(named, may).await?;
            return Ok((vec![Recipient { address, person: None, is_owner: false }], Vec::new()));
        }
        let known = &self.known_by_user_name(to).await?;
        let meant = self.people.whom(known, &self.channels);
        let (mut recipients, mut missed, mut hidden) = (Vec::new(), Vec::new(), 0);
        let meant = meant.map_err(|why| self.unreachable(to, why, &may))?;
        for one in meant {
            let is_unseen = is_hidden(&one.identities, &may);
            let address = match &one.chat {
                Some(chat) => Some(chat.conversation.clone()),
                // A key holder is no owner in the conversation.
                None if one.role == PersonRole::Owner && matches!(to, Target::Role(_)) => None,
                None => self.address_with_key(one.identities).await?,
            };
            let is_owner = one.role == PersonRole::Owner && one.chat.is_some();
            let why = match address {
                Some(address) if may(&address.channel) => {
                    recipients.push(Recipient { address, person: Some(one.person), is_owner });
                    continue;
                }
                _ if is_unseen => {
                    hidden += 1;
                    continue;
                }
                Some(_) => "is reached on none of the token's channels",
                None => "has not written in a direct chat yet",
            };
            missed.push(NotReached { who: Addressees::Person(one.person), why: why.to_owned() });
        }
        if hidden > 0 {
            let why = "known on none of the token's channels".to_owned();
            missed.push(NotReached { who: Addressees::People(hidden), why });
        }
        if recipients.len() > MOST_PEOPLE {
            let why = format!("{to} means {} people, and at most {MOST_PEOPLE} are reached at once", recipients.len());
            return Err(OperationError::Unfit(why));
        }
        if recipients.is_empty() {
            return Err(self.unreachable(to, Unreachable::Silent, &may));
        }
        Ok((recipients, missed))
    }

    /// Names somebody who is known as they are called, if they are named by the unique name that a platform gave them.
    async fn known_by_user_name(&self, to: &Target) -> Result<Target, StoreError> {
        let Target::Person(name) = to else { return Ok(to.clone()) };
        if self.people.is_meant(to) {
            return Ok(to.clone());
        }
        let who =
            PersonFilter { name: Some(name.trim().trim_start_matches('@').to_owned()), ..PersonFilter::default() };
        let filter = TurnFilter { person: Some(who), limit: LOOKED_AT, ..TurnFilter::default() };
        let wrote = self.lists.list_turns(&filter).await?;
        let known = wrote.into_iter().find_map(|turn| {
            let sender = turn.sender.filter(|it| it.username.as_deref().map(folded) == Some(folded(name)))?;
            let id = sender.key_in(&turn.conversation).to_owned();
            self.people.person_of(&Identity { channel: turn.conversation.channel, id })
        });
        Ok(known.map_or_else(|| to.clone(), |person| Target::Person(person.name)))
    }

    fn unreachable(&self, to: &Target, why: Unreachable, may: impl Fn(&ChannelId) -> bool) -> OperationError {
        OperationError::Unfit(match (why, to) {
            (Unreachable::Unknown, Target::Role(role)) => {
                format!("nobody has the role {}: `rejoinder people list` shows who is known", role.as_str())
            }
            (Unreachable::Unknown, _) => {
                let nearest = self.people.nearest(&to.to_string(), |person| !is_hidden(&person.identities, &may));
                let hint = nearest.map(|name| format!("did you mean {name}? ")).unwrap_or_default();
                format!(
                    "nobody who is known is {to}: {hint}`rejoinder people list` shows who is, a conversation is CHANNEL/CHAT"
                )
            }
            (Unreachable::Ambiguous, _) => {
                format!(
                    "several people are called {to}: name a conversation instead, as `rejoinder people list` shows them"
                )
            }
            (Unreachable::Silent, _) => {
                format!("{to} cannot be reached: nobody meant by it has written in a direct chat yet")
            }
        })
    }

    /// The conversation that is meant by an address, if something can be sent there.
    async fn address(
        &self,
        named: &ConversationRef,
        may: impl Fn(&ChannelId) -> bool,
    ) -> Result<ConversationRef, OperationError> {
        let channel = self.channels.get(&named.channel).filter(|_| may(&named.channel));
        let channel =
            channel.ok_or_else(|| OperationError::Unfit(format!("the channel {} is not configured", named.channel)))?;
        let capabilities = channel.capabilities(named);
        if !capabilities.can_write_first {
            let why = "its callers fetch the answers to their own turns";
            return Err(OperationError::Unfit(format!("messages cannot be sent to {}: {why}", named.channel)));
        }
        if capabilities.receipts == Receipts::Platform {
            // Whether it exists, its platform says.
            return Ok(named.clone());
        }
        if self.store.conversation(named).await?.is_some() {
            return Ok(named.clone());
        }
        let why = "nobody has written in it, so nobody would see the message";
        Err(OperationError::Unfit(format!("there is no such conversation on {}: {why}", named.channel)))
    }

    /// The conversation of a key holder without a direct chat: the one that was added last.
    async fn address_with_key(
        &self,
        mut identities: Vec<KnownIdentity>,
    ) -> Result<Option<ConversationRef>, StoreError> {
        identities.sort_by_key(|known| Reverse(known.added_at));
        for KnownIdentity { identity, .. } in identities {
            let named = ConversationRef::new(identity.channel.clone(), &identity.id);
            let capabilities = self.channels.get(&named.channel).map(|channel| channel.capabilities(&named));
            let is_read = capabilities.is_some_and(|it| it.can_write_first && it.receipts != Receipts::Platform);
            // The id of a key holder is the address of the conversation.
            if is_read && self.store.conversation(&named).await?.is_some() {
                return Ok(Some(named));
            }
        }
        Ok(None)
    }

    /// Where the words of a prompt about a conversation go; `None`: to that conversation.
    pub(super) async fn elsewhere(
        &self,
        about: &ConversationRef,
        to: &WordsTo,
    ) -> Result<Option<ConversationRef>, OperationError> {
        match to {
            WordsTo::Chat => Ok(None),
            WordsTo::Channel(channel) => {
                self.require_channel(channel, |_| true)?;
                Ok(Some(WordsTo::address_of(channel, about)))
            }
            WordsTo::Other(target) => {
                let (mut recipients, _) = self.of(target, |_| true).await?;
                Ok(recipients.pop().map(|to| to.address).filter(|address| address != about))
            }
        }
    }

    fn require_channel(&self, channel: &ChannelId, may: impl Fn(&ChannelId) -> bool) -> Result<(), OperationError> {
        if self.channels.get(channel).is_some() && may(channel) {
            return Ok(());
        }
        let why = format!("the channel {channel} is not configured: add [channels.{channel}] to the configuration");
        Err(OperationError::Unfit(why))
    }

    /// Whether the words of prompts can go somewhere, as far as that is known before.
    pub(crate) async fn check_words(
        &self,
        to: &WordsTo,
        may: impl Fn(&ChannelId) -> bool,
    ) -> Result<(), OperationError> {
        match to {
            WordsTo::Chat => Ok(()),
            WordsTo::Channel(channel) => self.require_channel(channel, may),
            WordsTo::Other(target) => self.check(target, may).await,
        }
    }

    /// Whether a conversation is a group, as far as its adapter knows or its latest turns tell.
    pub(super) async fn kind_of(&self, address: &ConversationRef) -> Result<ChatKind, StoreError> {
        if self.channels.get(&address.channel).is_some_and(|channel| channel.is_group(address)) {
            return Ok(ChatKind::Group);
        }
        let Some(conversation) = self.store.conversation(address).await? else { return Ok(ChatKind::Direct) };
        let filter = TurnFilter { conversation: Some(conversation), limit: LOOKED_AT, ..TurnFilter::default() };
        for turn in self.lists.list_turns(&filter).await? {
            // A message of the gateway's own does not know.
            let turn = self.turns.readable_turn(turn.turn_id).await?.filter(|turn| knows_kind(&turn.event));
            if let Some(turn) = turn {
                return Ok(turn.event.chat);
            }
        }
        Ok(ChatKind::Direct)
    }
}

/// Whether an event tells if its conversation is a group.
const fn knows_kind(event: &InboundEvent) -> bool {
    !matches!(event.sender.kind, SenderKind::Operator) || event.is_prompt()
}
