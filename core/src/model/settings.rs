//! What the operator chose, as the core needs it. The gateway makes it of the configuration.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use rejoinder_guard::Policy;
use serde::{Deserialize, Deserializer, Serialize, de::Error};

use crate::model::{
    access::Access,
    agent::AgentName,
    conversation::{ChannelId, ChatKind},
};

/// A guided question.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The question.
    #[serde(rename = "question", deserialize_with = "filled")]
    pub text: String,
    /// What the person may pick from.
    pub choices: Vec<String>,
    /// Whether anyone in a group may pick, and not only who was asked.
    #[serde(default)]
    pub anyone: bool,
}

fn filled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.trim().is_empty() { Err(D::Error::custom("is empty")) } else { Ok(text) }
}

/// Everything the operator chose.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The agent of every channel that names no other.
    pub default_agent: AgentName,
    /// The agents of single channels.
    pub channel_agents: HashMap<ChannelId, AgentName>,
    /// Who may talk to the agent, by channel. On a channel that is not here, everyone that it lets in.
    pub access: HashMap<ChannelId, Access>,
    /// The channels whose agents are told of reactions to their messages.
    pub tells_reactions: HashSet<ChannelId>,
    /// The most bytes of one attachment that an agent is given; larger ones are only named.
    pub max_attachment: usize,
    /// Deadlines, bounds and ladders.
    pub policies: Policies,
    /// Words for people.
    pub words: Words,
    /// How many turns run at once; the rest wait as rows.
    pub max_concurrent_turns: usize,
    /// How long a delivery is tried before it becomes a dead letter.
    pub delivery_lifetime: Duration,
    /// How many attempts a delivery gets at least, whatever its age.
    pub min_attempts: u32,
}

impl Settings {
    /// The agent that a channel's turns are routed to.
    #[must_use]
    pub fn agent(&self, channel: &ChannelId) -> &AgentName {
        self.channel_agents.get(channel).unwrap_or(&self.default_agent)
    }
}

/// The policy of every channel and kind of chat: the channel's own, else its platform's, else the default.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    default: Policy,
    by_name: HashMap<(String, ChatKind), Policy>,
}

impl Policies {
    /// `default` everywhere.
    #[must_use]
    pub fn new(default: Policy) -> Self {
        Self { default, by_name: HashMap::new() }
    }

    /// The same, with `policy` for `chat` on `name`: a channel (`webhook.siri`) or a platform (`webhook`).
    #[must_use]
    pub fn with(mut self, name: &str, chat: ChatKind, policy: Policy) -> Self {
        self.by_name.insert((name.to_owned(), chat), policy);
        self
    }

    /// The policy for `chat` on `channel`.
    #[must_use]
    pub fn of(&self, channel: &ChannelId, chat: ChatKind) -> &Policy {
        let find = |name: &str| self.by_name.get(&(name.to_owned(), chat));
        find(channel.as_str()).or_else(|| find(channel.platform())).unwrap_or(&self.default)
    }
}

/// Words for people: templates and guided questions, by name; a channel's or a platform's own before the
/// general ones.
#[derive(Clone, Debug, Default)]
pub struct Words {
    templates: HashMap<(String, String), String>,
    questions: HashMap<String, Question>,
}

impl Words {
    /// The same words, with `text` for the template `name` on `scope`: a channel, a platform, or `""` for all.
    #[must_use]
    pub fn with_template(mut self, scope: &str, name: &str, text: &str) -> Self {
        self.templates.insert((scope.to_owned(), name.to_owned()), text.to_owned());
        self
    }

    /// The same words, with the question `name`.
    #[must_use]
    pub fn with_question(mut self, name: &str, question: Question) -> Self {
        self.questions.insert(name.to_owned(), question);
        self
    }

    /// The words of the template `name` on `channel`.
    ///
    /// An unknown name reads as a plain apology, so that a person is answered all the same.
    #[must_use]
    pub fn say(&self, channel: &ChannelId, name: &str) -> &str {
        [channel.as_str(), channel.platform(), ""]
            .into_iter()
            .find_map(|scope| self.templates.get(&(scope.to_owned(), name.to_owned())))
            .map_or("Sorry, I have no answer to that.", String::as_str)
    }

    /// The guided question `name`.
    #[must_use]
    pub fn question(&self, name: &str) -> Option<&Question> {
        self.questions.get(name)
    }
}
