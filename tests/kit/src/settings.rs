//! The settings of the gateway in an adapter's test.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use rejoinder_core::{
    ApprovalSettings, Cause, ChannelId, ChatKind, FileLimits, Ladder, Lifetimes, Masker, PersonLimits, Policies,
    Policy, Question, Queues, Rung, ScheduleSettings, SessionSettings, Settings, SpecialLimits, Templates,
};

/// The text sent when the agent is silent in a direct chat. In a group a question with choices is sent.
pub const SILENT: &str = "I have nothing to say to that.";
/// The text sent when the agent fails, or the platform refuses its answer.
pub const FAILED: &str = "Sorry.";
/// The text sent when a message cannot be read.
pub const CANNOT_READ: &str = "I could not read that.";
/// The label before an answer after a draft or a deferral that may have arrived.
pub const REPLACES: &str = "(This replaces what may stand above.)";
/// The label before a message that may be a second copy.
pub const LABEL: &str = "(This may be a second copy.)";
/// The answer to `/help`.
pub const HELP: &str = "Ask me.";

/// Settings of a gateway with an agent `main` and one channel, which is open to everyone and reports reactions. The
/// policies are `policy` with a ladder.
#[must_use]
pub fn settings(channel: &ChannelId, policy: &Policy) -> Settings {
    let with_ladder = |silent: Rung| {
        let say = |name: &str| vec![Rung::Say(name.to_owned())];
        let ladder = Ladder::empty()
            .with(Cause::Silent, vec![silent])
            .with(Cause::Unreadable, say("unreadable"))
            .with(Cause::Unheard, say("unheard"))
            .with(Cause::Budget, say("budget"))
            .with(Cause::Error, say("failed"))
            .with(Cause::Refused, say("failed"));
        Policy { ladder, ..policy.clone() }
    };
    let direct = with_ladder(Rung::Say("silent".to_owned()));
    let group = with_ladder(Rung::Clarify("what_next".to_owned()));
    let templates = [
        ("silent", SILENT),
        ("failed", FAILED),
        ("unreadable", CANNOT_READ),
        ("unheard", "I heard nothing."),
        ("budget", "Used up."),
        ("resent", LABEL),
        ("replaces", REPLACES),
        ("file_not_sent", "({name} is not sent.)"),
        ("file_link", "({name}: {url})"),
        ("nothing_to_cancel", "Nothing to stop."),
        ("cancelled", "Stopped."),
        ("help", HELP),
    ]
    .into_iter()
    .fold(Templates::default(), |templates, (name, text)| templates.with_template("", name, text));
    let question = Question {
        text: "Which of these?".to_owned(),
        choices: vec!["say more".to_owned(), "say less".to_owned()],
        anyone: false,
    };
    Settings {
        default_agent: "main".into(),
        channel_agents: HashMap::new(),
        rules: Vec::new(),
        access: HashMap::new(),
        commands: BTreeMap::new(),
        people: Vec::new(),
        elsewhere: true,
        notify_owners: true,
        approvals: ApprovalSettings::default(),
        reaction_channels: HashSet::from([channel.clone()]),
        max_attachment: 1 << 20,
        files: FileLimits::default(),
        policies: Policies::new(direct).with(channel.platform(), ChatKind::Group, group),
        templates: templates.with_question("what_next", question),
        max_concurrent_turns: 64,
        agent_turns: HashMap::new(),
        prices: BTreeMap::new(),
        budgets: BTreeMap::new(),
        masker: Masker::default(),
        queues: Queues { cap: 100_000, ..Queues::default() },
        voices: HashMap::new(),
        sessions: SessionSettings::default(),
        schedules: ScheduleSettings::default(),
        agent_schedules: HashMap::new(),
        shown_activities: HashSet::new(),
        triggers: Vec::new(),
        quiet_hours: BTreeMap::new(),
        time_zone: jiff::tz::TimeZone::UTC,
        limits: PersonLimits::default(),
        special_limits: SpecialLimits::default(),
        delivery_lifetime: Duration::from_hours(1),
        min_attempts: 3,
        max_parts: 8,
        lifetimes: Lifetimes::default(),
        is_traced: false,
    }
}
