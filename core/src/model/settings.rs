//! The operator's settings, as the core needs them. The gateway builds them from the configuration.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};
use jiff::tz::TimeZone;
use rejoinder_guard::{Cause, Ladder, Policy, Rung, is_blank};
use serde::{Deserialize, Deserializer, Serialize, de::Error};

use crate::model::{
    access::Access,
    agent::{AgentName, BudgetLeft},
    approvers::ApprovalSettings,
    command::OwnCommand,
    conversation::{ChannelId, ChatKind},
    conversation_trigger::ConversationTrigger,
    event::{EventKind, InboundEvent},
    file_budget::FileLimits,
    finding::folded,
    language::Language,
    masker::Masker,
    people::{KnownPeople, PersonRole, SeedPerson},
    queue::{QueueMode, Queues},
    routing::{Hours, PolicyChange, Rule},
    run::{Cost, Currency, Price},
    schedule::{ScheduleLimits, ScheduleSettings},
    session::SessionSettings,
    turn::TurnRecord,
    voice::VoiceMode,
};

/// A guided question: the `clarify` rung of the ladder.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The question; not blank.
    #[serde(rename = "question", deserialize_with = "filled")]
    pub text: String,
    pub choices: Vec<String>,
    /// Whether everyone in a group may pick, not only the person who was asked.
    #[serde(default)]
    pub anyone: bool,
}

fn filled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if is_blank(&text) { Err(D::Error::custom("is empty")) } else { Ok(text) }
}

/// How many turns one person may open; `None`: as many as they like. Commands do not count.
#[derive(Clone, Copy, Debug, Default)]
pub struct PersonLimits {
    pub turns_per_minute: Option<u32>,
    pub turns_per_day: Option<u32>,
    /// How many tokens agents may use for them on a calendar day. A turn that begins below it may run over it.
    pub tokens_per_day: Option<u32>,
    /// What agents may cost for them on a calendar day, in millionths of the currency of the agents' prices. A turn that begins
    /// below it may run over it.
    pub cost_per_day: Option<u64>,
    /// That wait for a run at once.
    pub waiting_turns: Option<u32>,
}

impl PersonLimits {
    /// Whether what agents use for them on a day is limited.
    pub(crate) const fn has_use(&self) -> bool {
        self.tokens_per_day.is_some() || self.cost_per_day.is_some()
    }

    pub(crate) const fn has_daily(&self) -> bool {
        self.turns_per_day.is_some() || self.has_use()
    }
}

/// What an agent may use of a calendar day; `None`: as much as it likes. A run that begins below it may run over it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Tokens of both kinds.
    pub tokens: Option<u64>,
    /// Money, in millionths of the currency of the agent's price.
    pub micros: Option<u64>,
}

impl Budget {
    /// People are told once this part of a budget is used, in percent.
    pub(crate) const MOST: u64 = 80;

    /// How much of it is used, in percent and rounded down: the larger of tokens and money.
    pub(crate) fn percent(self, tokens: u64, micros: u64) -> u64 {
        let share = |used: u64, most: Option<u64>| most.map(|most| used.saturating_mul(100) / most.max(1));
        share(tokens, self.tokens).max(share(micros, self.micros)).unwrap_or(0)
    }

    /// What is left of it. Money only if its currency is known.
    pub(crate) fn left(self, tokens: u64, micros: u64, currency: Option<Currency>) -> BudgetLeft {
        let money = self.micros.zip(currency);
        BudgetLeft {
            tokens: self.tokens.map(|most| most.saturating_sub(tokens)),
            cost: money.map(|(most, currency)| Cost { micros: most.saturating_sub(micros), currency }),
        }
    }
}

/// The limits of people who are known, where they differ from everybody's.
#[derive(Clone, Debug, Default)]
pub struct SpecialLimits {
    /// Those of people with a role.
    pub roles: BTreeMap<PersonRole, PersonLimits>,
    /// Those of single people, by name. They come before those of roles.
    pub people: BTreeMap<String, PersonLimits>,
}

/// All settings of the core.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The agent of every channel without an entry in `channel_agents`.
    pub default_agent: AgentName,
    /// The agents of channels that do not use the default.
    pub channel_agents: HashMap<ChannelId, AgentName>,
    /// The rules of routing: the first that an event meets holds for it.
    pub rules: Vec<Rule>,
    /// The access rules by channel. A channel without an entry accepts everyone whose events its adapter passes on.
    pub access: HashMap<ChannelId, Access>,
    /// The channels whose agents get a turn for a reaction to their messages.
    pub reaction_channels: HashSet<ChannelId>,
    /// The maximum size in bytes of an attachment that an agent gets; of a larger one it gets the name only.
    pub max_attachment: usize,
    /// The limits of files.
    pub files: FileLimits,
    /// Deadlines, bounds and ladders.
    pub policies: Policies,
    /// Templates and questions for people.
    pub templates: Templates,
    /// The number of turns that run at once on this node; the others wait as rows.
    pub max_concurrent_turns: usize,
    /// How many turns of each agent run at once, on all nodes. An agent without an entry has no bound of its own.
    pub agent_turns: HashMap<AgentName, usize>,
    /// What the tokens of agents cost, as far as that is known. What people may cost is in the currency of the first one.
    pub prices: BTreeMap<AgentName, Price>,
    /// What agents may use of a day. One without an entry may use as much as it likes.
    pub budgets: BTreeMap<AgentName, Budget>,
    /// The operator's secrets, which no record of a run may contain.
    pub masker: Masker,
    /// The operator's own commands, by name without the slash.
    pub commands: BTreeMap<String, OwnCommand>,
    /// The people whom the configuration names.
    pub people: Vec<SeedPerson>,
    /// Whether people get answers that could not be delivered on another channel where they are known.
    pub elsewhere: bool,
    /// Whether owners are told who asks to be let in.
    pub notify_owners: bool,
    /// The approvers.
    pub approvals: ApprovalSettings,
    /// What happens to messages that come while a turn of their conversation runs.
    pub queues: Queues,
    /// Which answers are spoken on channels that do not use the default.
    pub voices: HashMap<ChannelId, VoiceMode>,
    /// What may be chosen for sessions, and when they end by themselves.
    pub sessions: SessionSettings,
    /// What is scheduled by the configuration, and when schedules are given up.
    pub schedules: ScheduleSettings,
    /// What agents may schedule. One without an entry may schedule nothing.
    pub agent_schedules: HashMap<AgentName, ScheduleLimits>,
    /// The agents whose drafts show what they are doing.
    pub shown_activities: HashSet<AgentName>,
    /// The triggers of conversations.
    pub triggers: Vec<ConversationTrigger>,
    /// The quiet hours of people, by name: messages that the gateway begins on its own wait for their end.
    pub quiet_hours: BTreeMap<String, Hours>,
    /// Where days begin at midnight.
    pub time_zone: TimeZone,
    /// What one person may do.
    pub limits: PersonLimits,
    /// The same for some people who are known.
    pub special_limits: SpecialLimits,
    /// The minimum age at which a failing delivery becomes a dead letter; it also needs `min_attempts`.
    pub delivery_lifetime: Duration,
    /// The minimum number of attempts before a failing delivery becomes a dead letter.
    pub min_attempts: u32,
    /// The maximum number of messages that an answer is split into; a longer one follows as a file, or is cut.
    pub max_parts: usize,
    /// How long rows are kept.
    pub lifetimes: Lifetimes,
    /// Whether the traces of turns are recorded, so that agents get a trace also without one of the caller.
    pub is_traced: bool,
}

/// How long rows are kept; `None`: forever. What is owed or in work is never removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetimes {
    /// A turn with everything about it, after its end.
    pub turns: Option<Duration>,
    /// The same for a turn that is a dead letter or has one; at least as long as `turns`.
    pub dead_letters: Option<Duration>,
    /// The payload of an event after it was received, and the content of a run after its end.
    pub payloads: Option<Duration>,
    /// A line of the gateway's own log.
    pub lines: Option<Duration>,
    /// The recording of a voice note, and the sound of an answer that was spoken. The turn stays.
    pub voice: Option<Duration>,
}

/// The settings that hold now. Cheap to clone; all clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct LiveSettings(Arc<ArcSwap<Settings>>);

impl LiveSettings {
    pub(crate) fn new(settings: Settings) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(settings)))
    }

    pub(crate) fn get(&self) -> Arc<Settings> {
        self.0.load_full()
    }

    /// The same, to be read at once and not while something is awaited. It counts no reference, which all threads share.
    pub(crate) fn read(&self) -> Guard<Arc<Settings>> {
        self.0.load()
    }

    /// Replaces the settings, as [`Settings::changed_to`].
    pub(crate) fn change(&self, new: Settings) {
        self.0.store(Arc::new(self.get().changed_to(new)));
    }
}

impl Settings {
    /// The settings after `new` were read: those that parts were built with stay, and so does how long rows are kept, as what a
    /// mistake removes is gone.
    #[must_use]
    pub fn changed_to(&self, new: Self) -> Self {
        // A channel that is no longer configured is there until the next start, and without a rule it would let everyone in.
        let mut access = self.access.clone();
        access.extend(new.access);
        Self {
            access,
            default_agent: self.default_agent.clone(),
            channel_agents: self.channel_agents.clone(),
            reaction_channels: self.reaction_channels.clone(),
            max_attachment: self.max_attachment,
            files: self.files,
            max_concurrent_turns: self.max_concurrent_turns,
            agent_turns: self.agent_turns.clone(),
            masker: self.masker.clone(),
            lifetimes: self.lifetimes,
            is_traced: self.is_traced,
            ..new
        }
    }

    /// The currency of what people may cost, and of what an agent without a price may say that it cost.
    pub(crate) fn currency(&self) -> Currency {
        self.prices.values().next().map_or(Currency::USD, |price| price.currency)
    }

    /// Whether the sender of an event is a guest of a group, or a stranger who may write there: they may not
    /// change what belongs to the group.
    pub(crate) fn is_guest_of_group(&self, event: &InboundEvent, known: &KnownPeople) -> bool {
        let channel = &event.conversation.channel;
        if event.chat != ChatKind::Group {
            return false;
        }
        if let Some((role, _)) = known.get(channel, event.person()) {
            return role == PersonRole::Guest;
        }
        let access = self.access.get(channel);
        access.is_some_and(|access| !access.knows(event.person(), event.sender.username.as_deref()))
    }

    /// The policy for a turn. A command or a notice of the gateway's own is handed to no agent.
    pub(crate) fn policy(&self, turn: &TurnRecord) -> Cow<'_, Policy> {
        let policy = self.policy_for(&turn.event, turn.rule.as_deref());
        if !turn.handler.is_gateway() {
            return policy;
        }
        let ladder = Cause::ALL.into_iter().fold(Ladder::empty(), |ladder, cause| {
            let rungs = policy.ladder.rungs(cause).iter().filter(|rung| !matches!(rung, Rung::Handoff(_)));
            ladder.with(cause, rungs.cloned().collect())
        });
        Cow::Owned(Policy { ladder, ..policy.into_owned() })
    }

    /// The policy for turns of an event for which a rule holds. Without the rule, or if it is gone: the channel's.
    pub(crate) fn policy_for(&self, event: &InboundEvent, rule: Option<&str>) -> Cow<'_, Policy> {
        let policy = self.policies.of(&event.conversation.channel, event.chat);
        let policy = match self.rule(rule) {
            Some(rule) if rule.policy != PolicyChange::default() => Cow::Owned(rule.policy.apply(policy)),
            _ => Cow::Borrowed(policy),
        };
        match event.kind {
            // Nobody waits for it.
            EventKind::Prompt { .. } => Cow::Owned(Policy { soft_deadline: None, ..policy.into_owned() }),
            _ => policy,
        }
    }

    pub(crate) fn limits(&self, event: &InboundEvent, known: &KnownPeople) -> PersonLimits {
        let SpecialLimits { roles, people } = &self.special_limits;
        let special = event.known_as(known);
        let special = special.and_then(|(role, name)| people.get(name).or_else(|| roles.get(&role)));
        special.copied().unwrap_or(self.limits)
    }

    /// Whether there is somebody whose turns of a minute are limited.
    pub(crate) fn limits_minutes(&self) -> bool {
        let SpecialLimits { roles, people } = &self.special_limits;
        let mut all = std::iter::once(&self.limits).chain(roles.values()).chain(people.values());
        all.any(|limits| limits.turns_per_minute.is_some())
    }

    /// Whether a limit or a rule is for the person with this name.
    pub(crate) fn names_person(&self, name: &str) -> bool {
        let name = folded(name);
        let is_meant = |rule: &Rule| rule.people().any(|person| folded(person) == name);
        self.special_limits.people.keys().any(|person| folded(person) == name) || self.rules.iter().any(is_meant)
    }

    pub(crate) fn agent_for(&self, event: &InboundEvent, rule: Option<&str>) -> &AgentName {
        let of_rule = self.rule(rule).and_then(|rule| rule.agent.as_ref());
        of_rule.unwrap_or_else(|| self.agent(&event.conversation.channel))
    }

    /// What happens to a message that comes while a turn runs, if nobody has chosen it.
    pub(crate) fn queue_mode(&self, event: &InboundEvent, rule: Option<&str>) -> QueueMode {
        let of_rule = self.rule(rule).and_then(|rule| rule.queue);
        of_rule.unwrap_or_else(|| self.queues.mode(&event.conversation.channel, event.chat))
    }

    /// Which answers are spoken on a channel, if nobody has chosen it.
    pub(crate) fn voice_mode(&self, channel: &ChannelId) -> VoiceMode {
        self.voices.get(channel).copied().unwrap_or_default()
    }

    pub(crate) fn rule(&self, name: Option<&str>) -> Option<&Rule> {
        let name = name?;
        self.rules.iter().find(|rule| *rule.name == *name)
    }

    /// The agent that a channel's turns are routed to.
    pub fn agent(&self, channel: &ChannelId) -> &AgentName {
        self.channel_agents.get(channel).unwrap_or(&self.default_agent)
    }

    /// The agents that turns are routed to, and that may be chosen; some come more than once.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &AgentName> {
        let of_rules = self.rules.iter().filter_map(|rule| rule.agent.as_ref());
        self.channel_agents.values().chain(of_rules).chain(&self.sessions.agents).chain([&self.default_agent])
    }

    pub(crate) fn agent_turns(&self, agent: &AgentName) -> usize {
        self.agent_turns.get(agent).copied().unwrap_or(self.max_concurrent_turns)
    }
}

impl Lifetimes {
    /// How long the key of an event is kept at least: longer than any platform sends an event again, and longer than any
    /// channel reads back.
    pub const KEYS: Duration = Duration::from_hours(31 * 24);
}

/// The guard's policies by channel and kind of chat: the channel's own, else its platform's, else the default.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    default: Policy,
    by_name: HashMap<String, HashMap<ChatKind, Policy>>,
}

impl Policies {
    /// Policies that are `default` everywhere.
    pub fn new(default: Policy) -> Self {
        Self { default, by_name: HashMap::new() }
    }

    /// Adds `policy` for `chat` on `name`: a channel (`webhook.siri`) or a platform (`webhook`).
    #[must_use]
    pub fn with(mut self, name: &str, chat: ChatKind, policy: Policy) -> Self {
        self.by_name.entry(name.to_owned()).or_default().insert(chat, policy);
        self
    }

    /// The most specific policy for `chat` on `channel`.
    pub fn of(&self, channel: &ChannelId, chat: ChatKind) -> &Policy {
        let find = |name: &str| self.by_name.get(name)?.get(&chat);
        find(channel.as_str()).or_else(|| find(channel.platform())).unwrap_or(&self.default)
    }
}

/// Templates and guided questions by name, in several languages. A channel's own template comes before its platform's, and
/// that before the general one.
#[derive(Clone, Debug, Default)]
pub struct Templates {
    texts: HashMap<(Option<Language>, String, String), String>,
    questions: HashMap<(Option<Language>, String), Question>,
    languages: BTreeSet<Language>,
    default_languages: HashMap<String, Language>,
}

impl Templates {
    /// Adds `text` as the template `name` on `scope`: a channel, a platform, or `""` for all. It holds for languages without
    /// a text of their own.
    #[must_use]
    pub fn with_template(self, scope: &str, name: &str, text: &str) -> Self {
        self.with(None, scope, name, text)
    }

    /// Like [`with_template`](Self::with_template), for one language.
    #[must_use]
    pub fn with_template_in(mut self, language: Language, scope: &str, name: &str, text: &str) -> Self {
        self.languages.insert(language);
        self.with(Some(language), scope, name, text)
    }

    fn with(mut self, language: Option<Language>, scope: &str, name: &str, text: &str) -> Self {
        self.texts.insert((language, scope.to_owned(), name.to_owned()), text.to_owned());
        self
    }

    /// Adds the question `name`, for languages without a wording of their own.
    #[must_use]
    pub fn with_question(mut self, name: &str, question: Question) -> Self {
        self.questions.insert((None, name.to_owned()), question);
        self
    }

    /// Adds the question `name` in a language.
    #[must_use]
    pub fn with_question_in(mut self, language: Language, name: &str, question: Question) -> Self {
        self.questions.insert((Some(language), name.to_owned()), question);
        self
    }

    /// Sets the language of people on `scope` whose language has no texts or is not known.
    #[must_use]
    pub fn with_default_language(mut self, scope: &str, language: Language) -> Self {
        self.default_languages.insert(scope.to_owned(), language);
        self
    }

    /// The languages that have texts.
    pub const fn languages(&self) -> &BTreeSet<Language> {
        &self.languages
    }

    /// The language of the texts for a person on `channel` whose language is `language`.
    pub fn language(&self, channel: &ChannelId, language: Option<Language>) -> Option<Language> {
        let known = language.filter(|language| self.languages.contains(language));
        let default = || scopes(channel).into_iter().find_map(|scope| self.default_languages.get(scope)).copied();
        known.or_else(default)
    }

    /// The text of the template `name` on `channel`, for a person with this language; `None` if there is no such template.
    pub fn text(&self, channel: &ChannelId, language: Option<Language>, name: &str) -> Option<&str> {
        let language = self.language(channel, language);
        let find = |language: Option<Language>| {
            let key = |scope: &str| (language, scope.to_owned(), name.to_owned());
            scopes(channel).into_iter().find_map(|scope| self.texts.get(&key(scope)))
        };
        find(language).or_else(|| find(None)).map(String::as_str)
    }

    /// The text of the template `name` on `channel`, for a person with this language.
    ///
    /// For an unknown name it is a plain apology, so that the person gets an answer nevertheless.
    pub fn template(&self, channel: &ChannelId, language: Option<Language>, name: &str) -> &str {
        self.text(channel, language, name).unwrap_or("Sorry, I have no answer to that.")
    }

    /// The guided question `name`, as a person with this language gets it, if the operator configured it.
    pub fn question(&self, channel: &ChannelId, language: Option<Language>, name: &str) -> Option<&Question> {
        let find = |language| self.questions.get(&(language, name.to_owned()));
        find(self.language(channel, language)).or_else(|| find(None))
    }
}

/// Where the texts of a channel are looked up, the narrowest first.
fn scopes(channel: &ChannelId) -> [&str; 3] {
    [channel.as_str(), channel.platform(), ""]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(tag: &str) -> Language {
        Language::of(tag).expect("it is a language")
    }

    #[test]
    fn a_text_is_that_of_the_persons_language_or_of_the_channels_default() {
        let (german, spanish) = (language("de"), language("es"));
        let (main, other) = (ChannelId::new("telegram", "main"), ChannelId::new("telegram", "other"));
        let templates = Templates::default()
            .with_template("", "late", "late")
            .with_template_in(german, "", "late", "zu spät")
            .with_template_in(german, "telegram", "late", "zu spät auf Telegram")
            .with_template_in(spanish, "", "late", "tarde")
            .with_template_in(spanish, "telegram.main", "late", "tarde en main")
            .with_default_language("", spanish)
            .with_default_language("telegram.other", german);

        assert_eq!(templates.template(&main, Some(german), "late"), "zu spät auf Telegram");
        assert_eq!(templates.template(&main, None, "late"), "tarde en main");
        assert_eq!(templates.template(&other, None, "late"), "zu spät auf Telegram");
        assert_eq!(templates.template(&other, Some(language("fr")), "late"), "zu spät auf Telegram");
        assert_eq!(templates.template(&other, Some(spanish), "late"), "tarde");
        assert_eq!(templates.template(&ChannelId::new("webchat", "main"), Some(german), "late"), "zu spät");
        assert_eq!(templates.text(&main, Some(german), "unheard"), None);
        assert_eq!(templates.languages().iter().map(Language::as_str).collect::<Vec<_>>(), ["de", "es"]);
    }
}
