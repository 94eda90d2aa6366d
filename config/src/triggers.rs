//! `[triggers.<name>]`: turns that the gateway begins in conversations because of messages there.

use std::{collections::BTreeMap, time::Duration};

use rejoinder_core::{AgentName, ChatKind, Condition, ConversationTrigger, PromptSession, Words, WordsTo};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    check::{Checks, Section},
    duration::{self, DAY, MINUTE},
    number,
    one_or_more::OneOrMore,
    routing::Address,
    text,
};

/// How many messages a trigger counts at most.
const MOST_MESSAGES: u32 = 500;

/// Triggers, by name.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Triggers(BTreeMap<String, Trigger>);

#[skip_serializing_none]
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Trigger {
    #[serde(default, skip_serializing_if = "OneOrMore::is_empty")]
    channel: OneOrMore<String>,
    #[serde(default, skip_serializing_if = "OneOrMore::is_empty")]
    conversation: OneOrMore<Address>,
    #[serde(default, skip_serializing_if = "OneOrMore::is_empty")]
    chat: OneOrMore<ChatKind>,
    after_messages: Option<Messages>,
    idle: Option<Pause>,
    #[serde(default)]
    cooldown: Pause,
    #[serde(deserialize_with = "text::filled")]
    prompt: String,
    #[serde(default, deserialize_with = "text::filled_option")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    quiet: bool,
    words_to: Option<WordsTo>,
    session: Option<PromptSession>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(transparent)]
struct Messages(#[serde(deserialize_with = "number::between::<_, 1, { MOST_MESSAGES }>")] u32);

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(transparent)]
struct Pause(
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, MINUTE, { 366 * DAY }>")]
    Duration,
);

impl Default for Pause {
    fn default() -> Self {
        Self(Duration::from_hours(1))
    }
}

impl Triggers {
    /// The triggers in the form that the core uses.
    pub fn triggers(&self) -> Vec<ConversationTrigger> {
        self.0.iter().map(|(name, trigger)| trigger.trigger(name)).collect()
    }
}

impl Trigger {
    fn trigger(&self, name: &str) -> ConversationTrigger {
        let conditions = [
            self.channel.then(Condition::Channel),
            self.conversation
                .then(|addresses| Condition::Conversation(addresses.into_iter().map(|Address(it)| it).collect())),
            self.chat.then(Condition::Chat),
        ];
        ConversationTrigger {
            name: name.into(),
            conditions: conditions.into_iter().flatten().collect(),
            after_messages: self.after_messages.map(|Messages(count)| count),
            idle: self.idle.map(|Pause(idle)| idle),
            cooldown: self.cooldown.0,
            prompt: self.prompt.as_str().into(),
            agent: self.agent.as_deref().map(AgentName::from),
            quiet: self.quiet || !self.is_for_words(),
            words: Words { to: self.words_to.clone().unwrap_or_default(), session: self.session.unwrap_or_default() },
        }
    }

    /// Whether its words go to a place where nobody is disturbed by them.
    const fn is_for_words(&self) -> bool {
        matches!(self.words_to, Some(WordsTo::Channel(_)))
    }
}

impl Section for Triggers {
    fn check(&self, checks: &mut Checks<'_>) {
        for (name, trigger) in &self.0 {
            let key = checks.key(&[name]);
            checks.has_name(key.clone(), name);
            if trigger.after_messages.is_none() && trigger.idle.is_none() {
                checks.wrong(key.clone(), "must have `after_messages` or `idle`: when does it begin?");
            }
            checks.refers_to_scope(&key.name("channel"), trigger.channel.iter());
            let addresses = trigger.conversation.iter().map(|Address(address)| &address.channel);
            checks.refers_to_channel(&key.name("conversation"), addresses);
            checks.refers_to_agent(&key.name("agent"), &trigger.agent);
            checks.refers_to_channel(&key.name("words_to"), trigger.words_to.as_ref().and_then(WordsTo::channel));
            if trigger.quiet && !trigger.is_for_words() {
                let what = "is only for words that go to a file, to a URL or nowhere: in a chat the agent always may be silent";
                checks.wrong(key.name("quiet"), what);
            }
        }
    }
}
