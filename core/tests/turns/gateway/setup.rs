//! The configuration of a test gateway.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use rejoinder_core::{
    Access, AgentName, ApprovalSettings, Budget, Capabilities, ChannelId, ConversationTrigger, FileLimits, Hours,
    Lifetimes, Masker, NewSchedule, OwnCommand, PersonLimits, Policies, Policy, Price, Queues, Rule, ScheduleLimits,
    SeedPerson, SessionSettings, SharedClock, SpecialLimits, VoiceMode,
    conformance::{
        rejecting::Rejection,
        scripted::{Script, ScriptedAgent, ScriptedSynthesizer, ScriptedTranscriber, capabilities},
    },
    store::LeaseName,
};

use super::{TestGateway, policy, secs};

/// Makes an agent on a clock.
type MakeAgent = Box<dyn Fn(SharedClock) -> ScriptedAgent>;

/// The configuration of a test gateway.
pub(crate) struct GatewaySetup {
    pub(crate) capabilities: Capabilities,
    /// Additional channels on the same platform.
    pub(crate) channels: Vec<(ChannelId, Capabilities)>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) access: HashMap<ChannelId, Access>,
    pub(crate) reaction_channels: HashSet<ChannelId>,
    pub(crate) policies: Policies,
    pub(crate) slots: usize,
    pub(crate) files: FileLimits,
    /// Where everybody reaches the gateway.
    pub(crate) public_url: Option<&'static str>,
    /// The agents of channels that do not use `main`.
    pub(crate) channel_agents: HashMap<ChannelId, AgentName>,
    /// The bounds of single agents.
    pub(crate) agent_slots: HashMap<AgentName, usize>,
    pub(crate) prices: BTreeMap<AgentName, Price>,
    pub(crate) budgets: BTreeMap<AgentName, Budget>,
    pub(crate) masker: Masker,
    pub(crate) commands: BTreeMap<String, OwnCommand>,
    pub(crate) people: Vec<SeedPerson>,
    pub(crate) elsewhere: bool,
    pub(crate) notify_owners: bool,
    pub(crate) approvals: ApprovalSettings,
    pub(crate) sessions: SessionSettings,
    pub(crate) schedules: Vec<NewSchedule>,
    pub(crate) triggers: Vec<ConversationTrigger>,
    pub(crate) quiet_hours: BTreeMap<String, Hours>,
    pub(crate) agent_schedules: HashMap<AgentName, ScheduleLimits>,
    pub(crate) shown_activities: HashSet<AgentName>,
    pub(crate) queues: Queues,
    pub(crate) voices: HashMap<ChannelId, VoiceMode>,
    pub(crate) limits: PersonLimits,
    pub(crate) special_limits: SpecialLimits,
    pub(crate) delivery_lifetime: Duration,
    pub(crate) lifetimes: Lifetimes,
    /// The leases that another node holds at the start; `None` if there can be no other node.
    pub(crate) held_elsewhere: Option<Vec<LeaseName>>,
    /// How the store rejects the first message.
    pub(crate) rejection: Option<Rejection>,
    pub(crate) agents: Vec<(&'static str, MakeAgent)>,
    pub(crate) transcriber: Option<Arc<ScriptedTranscriber>>,
    pub(crate) synthesizer: Option<Arc<ScriptedSynthesizer>>,
}

impl GatewaySetup {
    pub(crate) fn new() -> Self {
        Self {
            capabilities: capabilities(),
            channels: Vec::new(),
            rules: Vec::new(),
            access: HashMap::new(),
            reaction_channels: HashSet::new(),
            policies: Policies::new(policy()),
            slots: 64,
            files: FileLimits::default(),
            public_url: None,
            channel_agents: HashMap::new(),
            agent_slots: HashMap::new(),
            prices: BTreeMap::new(),
            budgets: BTreeMap::new(),
            masker: Masker::default(),
            commands: BTreeMap::new(),
            people: Vec::new(),
            elsewhere: true,
            notify_owners: true,
            approvals: ApprovalSettings { owners: true, ..ApprovalSettings::default() },
            sessions: SessionSettings::default(),
            schedules: Vec::new(),
            triggers: Vec::new(),
            quiet_hours: BTreeMap::new(),
            agent_schedules: HashMap::new(),
            shown_activities: HashSet::new(),
            queues: Queues { cap: 100_000, ..Queues::default() },
            voices: HashMap::new(),
            limits: PersonLimits::default(),
            special_limits: SpecialLimits::default(),
            delivery_lifetime: secs(24 * 3600),
            lifetimes: Lifetimes::default(),
            held_elsewhere: None,
            rejection: None,
            agents: Vec::new(),
            transcriber: None,
            synthesizer: None,
        }
    }

    /// Adds an agent whose script depends on the run.
    pub(crate) fn agent(
        mut self,
        name: &'static str,
        director: impl Fn(&rejoinder_core::AgentTurn) -> Script + Clone + Send + Sync + 'static,
    ) -> Self {
        self.agents.push((name, Box::new(move |clock| ScriptedAgent::new(clock, director.clone()).remembering(50))));
        self
    }

    /// Adds an agent in whose place these members answer, as `script` says.
    pub(crate) fn team(mut self, name: &'static str, members: &'static [&'static str], script: Script) -> Self {
        let make = move |clock| {
            let script = script.clone();
            ScriptedAgent::new(clock, move |_| script.clone()).with_members(members)
        };
        self.agents.push((name, Box::new(make)));
        self
    }

    /// Adds a main agent that follows `script` in every run.
    pub(crate) fn always(self, script: Script) -> Self {
        self.agent("main", move |_| script.clone())
    }

    pub(crate) fn policy(mut self, policy: Policy) -> Self {
        self.policies = Policies::new(policy);
        self
    }

    pub(crate) fn capable(mut self, change: impl FnOnce(&mut Capabilities)) -> Self {
        change(&mut self.capabilities);
        self
    }

    pub(crate) fn slots(mut self, slots: usize) -> Self {
        self.slots = slots;
        self
    }

    pub(crate) async fn start(self) -> TestGateway {
        Box::pin(TestGateway::start(self)).await
    }
}
