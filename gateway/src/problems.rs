//! The gateway's problems: for the overview and for alerts.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use arc_swap::ArcSwap;
use jiff::tz::TimeZone;
use rejoinder_config::AlertKind;
use rejoinder_core::{
    ChannelId, Down, Engine, Handler, LoopKind, NodeId, Part, Sender, StoreError, Timestamp,
    store::{
        Backlog, ErrorFilter, ErrorRecord, LeaseName, LineStore, LostNode, NodeSummary, OperatorStore, OverdueTurn,
        ParkedDelivery, Pause, Schedule, StoreState, Stuck, TurnSummary,
    },
};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::{
    disk::Room,
    location::StoreLocation,
    time::{rfc3339, since},
};

/// Below how many free bytes a disk is nearly full, unless a twentieth of it is less.
const ROOM: u64 = 1 << 30;

/// How many late turns, parked deliveries and dead letters are looked at one by one.
const MOST: u32 = 2_000;

/// For how long an error is news, unless an operator acknowledges it, in milliseconds.
const NEWS: i64 = 24 * 60 * 60 * 1000;

/// How many new errors are told one by one.
const MOST_ERRORS: u32 = 20;

/// What people are told of, and what they read when it is over. There, `{}` stands for the subject.
const ALERTS: [(&str, AlertKind, &str); 17] = [
    ("store", AlertKind::Store, "The store can write again{}"),
    ("disk", AlertKind::Disk, "There is room on the disk again"),
    ("channel", AlertKind::Channel, "{} works again"),
    ("holder", AlertKind::Channel, "A node has {} again"),
    ("node", AlertKind::Channel, "The node {} lives again, or its loss was an hour ago"),
    ("paused", AlertKind::Overdue, "Nobody waits for {}, which was paused, any more"),
    ("agent", AlertKind::Agent, "The agent {} answers again"),
    ("overdue", AlertKind::Overdue, "No turn is late any more"),
    ("parked", AlertKind::Parked, "No message on {} is stuck any more"),
    ("parked_alerts", AlertKind::Parked, "No alert on {} is stuck any more"),
    ("undeliverable", AlertKind::Undeliverable, "No unanswered dead letter is left"),
    ("undelivered_alerts", AlertKind::Undeliverable, "No undelivered alert is left"),
    ("undelivered", AlertKind::Undeliverable, "No undelivered message is left"),
    ("callbacks", AlertKind::Callbacks, "No callback that was given up is left"),
    ("schedule", AlertKind::Schedule, "The schedule {} was resumed or removed"),
    ("configuration", AlertKind::Error, "The node {} has the latest configuration, or has ended"),
    ("error", AlertKind::Error, "Acknowledged, or not repeated for a day: {}"),
];

/// Something that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// `store`, `disk`, `channel`, `holder` (no node has a channel), `node` (one was lost with channels), `paused`, `agent`, `overdue`,
    /// `parked`, `parked_alerts`, `undeliverable` (turns), `undelivered` (messages that nobody asked for), `undelivered_alerts`,
    /// `callbacks`, `absent`, `pairing`, `schedule`, `configuration` (that of a node is not the latest), `approval` or `error`.
    pub(crate) kind: &'static str,
    /// What is wrong, since when and why, in one sentence. The time is in the zone of `[alerts]`.
    pub(crate) text: String,
    /// What is wrong, without the time and the reason.
    pub(crate) what: String,
    /// The reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// Since when; of several, when the first began.
    #[serde(serialize_with = "maybe_rfc3339", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime, required = false)]
    pub(crate) since: Option<Timestamp>,
    /// The channel, the agent, the schedule or the machine of the node that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<String>,
    /// How many turns or deliveries it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<u64>,
    /// How many people wait because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) people: Option<u64>,
    /// How many messages that nobody asked for, or answers that are not late yet, wait because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<u64>,
    /// Where the operator's page shows more, if `server.public_url` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
    /// The turns or deliveries that it is about, if they are known one by one.
    #[serde(skip)]
    pub(crate) ids: BTreeSet<i64>,
    /// The channels of the `messages`.
    #[serde(skip)]
    pub(crate) channels: BTreeSet<String>,
    /// Who may see it.
    #[serde(skip)]
    pub(crate) audience: Audience,
}

/// Who may see a problem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Only who is limited to no channels.
    #[default]
    Unlimited,
    /// Who may see this channel.
    Channel(ChannelId),
    /// Who may see this schedule.
    Schedule(String),
    /// Everybody: it is of the gateway as a whole, or a number.
    All,
}

#[expect(clippy::ref_option, reason = "serde hands a reference to the field")]
fn maybe_rfc3339<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(rfc3339).serialize(serializer)
}

impl Problem {
    /// A problem without a subject.
    pub(crate) fn new(kind: &'static str, what: String) -> Self {
        Self { kind, what, ..Self::default() }
    }

    /// The same, for everybody.
    fn of_all(kind: &'static str, what: String) -> Self {
        Self { audience: Audience::All, ..Self::new(kind, what) }
    }

    /// Whether a reader with these channels (`None`: all) and these schedules may see it.
    pub(crate) fn is_seen_by(&self, channels: Option<&[ChannelId]>, schedules: &[Schedule]) -> bool {
        match &self.audience {
            Audience::All => true,
            Audience::Unlimited => channels.is_none(),
            Audience::Channel(channel) => channels.is_none_or(|channels| channels.contains(channel)),
            Audience::Schedule(name) => schedules.iter().any(|schedule| schedule.new.name == *name),
        }
    }

    /// How alerts call it, and the lateness that it explains; empty if nobody is told of it.
    pub(crate) fn alerts(&self) -> BTreeSet<AlertKind> {
        let own = Self::alert_of(self.kind).filter(|_| self.kind != "paused" || self.people.is_some());
        let overdue = own.and(self.people).map(|_| AlertKind::Overdue);
        let unsent = own.and(self.messages).map(|_| AlertKind::Parked);
        own.into_iter().chain(overdue).chain(unsent).collect()
    }

    /// How alerts call a kind of problem; `None` if nobody is told of it.
    pub(crate) fn alert_of(kind: &str) -> Option<AlertKind> {
        ALERTS.iter().find_map(|(name, alert, _)| (*name == kind).then_some(*alert))
    }

    /// The problem that people were told of as a `kind`; `None` if there is no such kind.
    pub(crate) fn told(kind: &str, text: String) -> Option<Self> {
        let kind = ALERTS.iter().find(|(name, ..)| *name == kind)?.0;
        Some(Self { kind, text, ..Self::default() })
    }

    /// That it is over.
    pub(crate) fn over(&self) -> String {
        let words = ALERTS.iter().find_map(|(kind, _, over)| (*kind == self.kind).then_some(*over)).unwrap_or_default();
        let subject = self.subject.as_deref().unwrap_or_default();
        match self.kind {
            "error" => words.replace("{}", &self.what),
            "store" => words.replace("{}", &at_node(self.subject.as_deref())),
            _ => words.replace("{}", subject),
        }
    }

    /// The page that shows more.
    fn path(&self) -> String {
        let subject = self.subject.as_deref().unwrap_or_default();
        let encoded = || url::form_urlencoded::byte_serialize(subject.as_bytes()).collect::<String>();
        match self.kind {
            "channel" | "paused" => format!("/admin/channels?channel={}", encoded()),
            "agent" => "/admin/channels#agents".to_owned(),
            "holder" | "node" | "configuration" => "/admin/channels#nodes".to_owned(),
            "overdue" | "absent" => format!("/admin/turns?state={}", self.kind),
            "parked" | "parked_alerts" => format!("/admin/deliveries?state=parked&channel={}", encoded()),
            "undeliverable" | "undelivered" | "undelivered_alerts" | "callbacks" => "/admin/dead-letters".to_owned(),
            "error" => "/admin/logs".to_owned(),
            "approval" => "/admin/approvals".to_owned(),
            "pairing" => "/admin/people".to_owned(),
            "schedule" => format!("/admin/schedules/{}", encoded()),
            _ => "/admin".to_owned(),
        }
    }

    fn sentence(&self, now: Timestamp, zone: &TimeZone) -> String {
        let first = if self.count.is_some_and(|count| count > 1) { ", the first" } else { "" };
        let word = if matches!(self.kind, "undeliverable" | "undelivered" | "undelivered_alerts" | "error" | "node") {
            "at"
        } else {
            "since"
        };
        let since = self.since.map(|at| format!("{first} {word} {}", since(at, now, zone))).unwrap_or_default();
        let why = self.why.as_ref().map(|why| format!(": {}", why.trim_end_matches('.'))).unwrap_or_default();
        format!("{}{since}{why}.", self.what)
    }
}

/// Where the problems of one gateway are looked for.
#[derive(Clone)]
pub(crate) struct Problems {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn StoreState>,
    pub(crate) lists: Arc<dyn OperatorStore>,
    pub(crate) lines: Arc<dyn LineStore>,
    pub(crate) database: StoreLocation,
    /// The operator's time zone, which may change.
    pub(crate) zone: Arc<ArcSwap<TimeZone>>,
    /// The public address of the operator's page, if it is configured.
    pub(crate) page: Option<String>,
}

/// What the store says of what waits, and of new errors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    pub(crate) backlog: Backlog,
    pub(crate) stuck: Stuck,
    pub(crate) errors: Vec<ErrorRecord>,
    /// The nodes that live.
    pub(crate) nodes: Vec<NodeSummary>,
    /// The nodes that were lost.
    pub(crate) lost: Vec<LostNode>,
}

impl Waits {
    /// Whether there may be more new errors than are listed.
    pub(crate) const fn has_more_errors(&self) -> bool {
        self.errors.len() >= MOST_ERRORS as usize
    }
}

impl Problems {
    /// Reads what waits, and the new errors.
    pub(crate) async fn waits(&self, now: Timestamp) -> Result<Waits, StoreError> {
        let backlog = self.lists.backlog().await?;
        let is_stuck = backlog.overdue + backlog.parked_deliveries + backlog.undeliverable > 0;
        let stuck = if is_stuck { self.lists.stuck(MOST).await? } else { Stuck::default() };
        let news_since = Some(Timestamp::from_millis(now.as_millis() - NEWS));
        let errors =
            self.lines.errors(&ErrorFilter { news_since, limit: MOST_ERRORS, ..ErrorFilter::default() }).await?;
        let (nodes, lost) = (self.engine.nodes().await?, self.engine.lost_nodes().await?);
        Ok(Waits { backlog, stuck, errors, nodes, lost })
    }

    /// What is wrong now, the worst first. `store` is why the store cannot write, and `waits` what waits, if that is known.
    pub(crate) fn find(&self, store: Option<String>, waits: Option<&Waits>, now: Timestamp) -> Vec<Problem> {
        let paused = self.engine.channels().into_iter();
        let paused = paused.filter_map(|(channel, _)| self.engine.paused(&channel).map(|pause| (channel, pause)));
        let channels = self.engine.channels().into_iter().map(|(channel, _)| channel);
        let nodes = waits.map(|waits| &*waits.nodes).unwrap_or_default();
        let facts = Facts {
            channels: channels.collect(),
            store: store.map(|error| (error, self.store.unwritable_since())),
            room: self.database.room(),
            node: self.engine.node_name().map(ToOwned::to_owned),
            behind: self.engine.behind_since().map(|_| self.engine.node()),
            down: everywhere(self.engine.down(), nodes, self.engine.node()),
            paused: paused.collect(),
            turning_away: self.engine.people().turning_away(),
            schedules: self.engine.calendar().seen_by(None),
            waits: waits.cloned().unwrap_or_default(),
        };
        let database = self.database.to_string();
        facts.problems(&database).into_iter().map(|problem| self.complete(problem, now)).collect()
    }

    /// That agents wait for approval, since these times, and nobody who is known may give it.
    pub(crate) fn of_approvals(&self, asked_at: impl Iterator<Item = Timestamp>, now: Timestamp) -> Option<Problem> {
        let words = ["action waits for approval", "actions wait for approval"];
        let problem = several("approval", (0..).zip(asked_at), words)?;
        let why = Some("nobody who is known may give it, except on the page".to_owned());
        Some(self.complete(Problem { why, ..problem }, now))
    }

    /// With its sentence and its link.
    fn complete(&self, problem: Problem, now: Timestamp) -> Problem {
        let text = problem.sentence(now, &self.zone.load());
        let link = self.page.as_ref().map(|page| format!("{page}{}", problem.path()));
        Problem { text, link, ..problem }
    }
}

/// What is wrong that turns may wait for, by the sentence's words.
pub(crate) struct Causes {
    does_store_write: bool,
    channels: HashMap<String, String>,
    agents: HashMap<String, String>,
}

impl Problems {
    /// What turns may wait for now.
    pub(crate) async fn causes(&self, is_store_down: bool) -> Causes {
        let (mut channels, mut agents) = (HashMap::new(), HashMap::new());
        for (channel, _) in self.engine.channels() {
            if let Some(Pause { by, .. }) = self.engine.paused(&channel) {
                channels.insert(channel.to_string(), format!("{channel} is paused by {by}"));
            }
        }
        let others =
            if self.engine.has_neighbours() { self.engine.nodes().await.unwrap_or_default() } else { Vec::new() };
        for (part, down) in everywhere(self.engine.down(), &others, self.engine.node()) {
            let words = said_down(&part, &down);
            match part {
                Part::Channel(channel) => channels.insert(channel.to_string(), words),
                Part::Agent(agent) => agents.insert(agent, words),
            };
        }
        Causes { does_store_write: !is_store_down, channels, agents }
    }
}

impl Causes {
    /// Why a turn is late, as [`Facts::problems`] says it.
    pub(crate) fn of(&self, kind: LoopKind, turn: &TurnSummary) -> Option<String> {
        if kind != LoopKind::Overdue {
            return None;
        }
        if !self.does_store_write {
            return Some(STORE.to_owned());
        }
        match (&turn.handler, &*turn.state) {
            (_, "claimed") => self.channels.get(turn.conversation.channel.as_str()).cloned(),
            (Handler::Agent(agent), _) => self.agents.get(&**agent).cloned(),
            (Handler::Gateway(_), _) => None,
        }
    }
}

/// What is down at a node, with what is down only at others.
fn everywhere(mut down: HashMap<Part, Down>, nodes: &[NodeSummary], this: NodeId) -> HashMap<Part, Down> {
    for NodeSummary { name, downs, .. } in nodes.iter().filter(|node| node.node != this) {
        for (part, there) in downs {
            let problem = || format!("{}{}", there.problem, at_node(Some(name)));
            down.entry(part.clone()).or_insert_with(|| Down { problem: problem(), ..there.clone() });
        }
    }
    down
}

/// What is down, in the words after "because".
fn said_down(part: &Part, down: &Down) -> String {
    match part {
        Part::Channel(channel) if down.is_mute => format!("{channel} cannot send"),
        Part::Channel(channel) => format!("{channel} is down"),
        Part::Agent(agent) => format!("the agent {agent} fails"),
    }
}

const STORE: &str = "the store cannot write";

/// Where something is so, if it is not so for all nodes.
fn at_node(name: Option<&str>) -> String {
    name.map(|name| format!(" at the node {name}")).unwrap_or_default()
}

/// What the parts of a gateway say of themselves.
#[derive(Default)]
pub(crate) struct Facts {
    /// Why the store cannot write, and since when.
    pub(crate) store: Option<(String, Option<Timestamp>)>,
    /// The name of this node's machine, if there may be other nodes.
    pub(crate) node: Option<String>,
    /// This node, if its configuration is not the latest.
    pub(crate) behind: Option<NodeId>,
    pub(crate) room: Option<Room>,
    /// Those that are configured.
    pub(crate) channels: Vec<ChannelId>,
    pub(crate) down: HashMap<Part, Down>,
    pub(crate) paused: Vec<(ChannelId, Pause)>,
    /// The channels on which strangers are turned away.
    pub(crate) turning_away: Vec<ChannelId>,
    pub(crate) schedules: Vec<Schedule>,
    pub(crate) waits: Waits,
}

impl Facts {
    /// What is wrong, the worst first. What waits because of something else that is wrong is said there, and only there.
    pub(crate) fn problems(self, database: &str) -> Vec<Problem> {
        let Waits { backlog, stuck, errors, nodes, lost } = self.waits;
        let mut waiting = Waiting { overdue: stuck.overdue, parked: stuck.parked };
        let unlisted = backlog.overdue.saturating_sub(waiting.overdue.len() as u64);
        let unlisted = if waiting.overdue.len() < MOST as usize { 0 } else { unlisted };
        let mut problems = Vec::new();
        if let Some((error, since)) = self.store {
            let why = error.strip_prefix("the store cannot write: ").unwrap_or(&error).to_owned();
            let what = format!("{STORE}{}", at_node(self.node.as_deref()));
            let cause = Problem { why: Some(why), since, subject: self.node, ..Problem::of_all("store", what) };
            problems.push(waiting.because_of(cause, |_| true, |_| true));
        }
        if let Some(Room { free, size }) = self.room.filter(|room| room.free < ROOM.min(room.size / 20)) {
            let why = Some(format!("{} MiB of {} GiB are free", free >> 20, size >> 30));
            let what = format!("The disk of {database} is nearly full");
            problems.push(Problem { why, ..Problem::of_all("disk", what) });
        }
        for channel in unheld(self.channels, &nodes) {
            let what = format!("no node has {channel}");
            let why = nodes.iter().all(|node| node.draining).then(|| "all nodes drain".to_owned());
            let (subject, audience) = (Some(channel.to_string()), Audience::Channel(channel.clone()));
            let cause = Problem { why, subject, audience, ..Problem::new("holder", what) };
            problems.push(waiting.of_channel(cause, &channel));
        }
        problems.extend(of_lost(&lost));
        problems.extend(behind(&nodes, self.behind));
        let mut down: Vec<_> = self.down.into_iter().collect();
        down.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut agents = Vec::new();
        for (part, down) in down {
            let (kind, subject, audience) = match &part {
                Part::Channel(channel) => ("channel", channel.to_string(), Audience::Channel(channel.clone())),
                Part::Agent(agent) => ("agent", agent.clone(), Audience::All),
            };
            let (what, since) = (said_down(&part, &down), down.since);
            let (why, subject) = (Some(down.problem), Some(subject));
            let cause = Problem { why, since, subject, audience, ..Problem::new(kind, what) };
            match &part {
                Part::Channel(channel) => problems.push(waiting.of_channel(cause, channel)),
                Part::Agent(agent) => {
                    let is_its = |turn: &OverdueTurn| !turn.is_claimed && *turn.agent == **agent;
                    agents.push(waiting.because_of(cause, is_its, |_| false));
                }
            }
        }
        for (channel, Pause { since, by, reason }) in self.paused {
            let what = format!("{channel} is paused by {by}");
            let (subject, since, audience) =
                (Some(channel.to_string()), Some(since), Audience::Channel(channel.clone()));
            let cause = Problem { why: reason, since, subject, audience, ..Problem::new("paused", what) };
            problems.push(waiting.of_channel(cause, &channel));
        }
        problems.extend(agents);
        problems.extend(waiting.unexplained(unlisted));
        let (alerts, dead): (Vec<_>, Vec<_>) =
            stuck.dead.into_iter().partition(|turn| !turn.owed && is_alert(&turn.person));
        problems.extend(of_alerts("undelivered_alerts", None, alerts.iter().map(|turn| (turn.seq, turn.since))));
        let dead = |owed| dead.iter().filter(move |turn| turn.owed == owed).map(|turn| (turn.seq, turn.since));
        problems.extend(several(
            "undeliverable",
            dead(true),
            ["turn could not be answered", "turns could not be answered"],
        ));
        let words = ["message could not be delivered", "messages could not be delivered"];
        problems.extend(several("undelivered", dead(false), words));
        let words = ["callback of a hook was given up", "callbacks of hooks were given up"];
        problems.extend(counted("callbacks", backlog.dead_copies, words));
        let words =
            ["turn waits for a channel that is not configured", "turns wait for a channel that is not configured"];
        problems.extend(counted("absent", backlog.absent, words));
        problems.extend(self.turning_away.iter().map(of_crowd));
        problems.extend(self.schedules.iter().filter(|it| it.has_paused_itself()).map(of_schedule));
        // The others are told by what they are about.
        problems.extend(errors.iter().filter(|error| !error.fields.contains_key("alert")).map(of_error));
        problems
    }
}

/// What waits, and is not explained yet.
struct Waiting {
    overdue: Vec<OverdueTurn>,
    parked: Vec<ParkedDelivery>,
}

impl Waiting {
    /// The problem `cause`, with what waits because of it.
    fn because_of(
        &mut self,
        cause: Problem,
        is_overdue: impl Fn(&OverdueTurn) -> bool,
        is_parked: impl Fn(&ParkedDelivery) -> bool,
    ) -> Problem {
        let overdue: Vec<_> = self.overdue.extract_if(.., |turn| is_overdue(turn)).collect();
        let parked: Vec<_> = self.parked.extract_if(.., |delivery| is_parked(delivery)).collect();
        let (messages, channels) = (parked.len(), parked.iter().map(|it| it.channel.to_string()).collect());
        let people = overdue.iter().map(|turn| (&turn.channel, &*turn.person)).collect::<BTreeSet<_>>().len();
        let who = match (people, messages) {
            (0, 0) => None,
            (0, 1) => Some(format!("{} waits", said_parked(&parked))),
            (0, _) => Some(format!("{} wait", said_parked(&parked))),
            (people, 0) => Some(number(people, ["person waits", "people wait"])),
            (people, _) => {
                let messages = said_parked(&parked).to_lowercase();
                Some(format!("{} and {messages} wait", number(people, ["person", "people"])))
            }
        };
        let what = match who {
            Some(who) => format!("{who} because {}", cause.what),
            None => capitalised(&cause.what, cause.subject.as_deref()),
        };
        let some = |count: usize| (count > 0).then_some(count as u64);
        Problem { what, people: some(people), messages: some(messages), channels, ..cause }
    }

    /// The same of a channel that sends nothing: its deliveries wait for it.
    fn of_channel(&mut self, cause: Problem, channel: &ChannelId) -> Problem {
        let is_overdue = |turn: &OverdueTurn| turn.is_claimed && turn.channel == *channel;
        self.because_of(cause, is_overdue, |delivery| delivery.channel == *channel)
    }

    /// What waits although nothing else is wrong.
    fn unexplained(self, unlisted: u64) -> Vec<Problem> {
        let overdue = several(
            "overdue",
            self.overdue.iter().map(|turn| (turn.seq, turn.since)),
            ["turn is late", "turns are late"],
        );
        let overdue = overdue.map(|overdue| {
            let count = overdue.count.map(|count| count + unlisted);
            let seen = if count == Some(1) { "the person has" } else { "these people have" };
            Problem { count, why: Some(format!("{seen} seen no answer in time")), ..overdue }
        });
        let (mut parked, mut alerts) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        for delivery in &self.parked {
            let list = if is_alert(&delivery.person) { &mut alerts } else { &mut parked };
            list.entry(&delivery.channel).or_default().push(delivery);
        }
        let alerts = alerts.into_iter().filter_map(|(channel, deliveries)| {
            let ids = deliveries.iter().map(|delivery| (delivery.seq, delivery.since));
            of_alerts("parked_alerts", Some(channel), ids)
        });
        let parked = parked.into_iter().filter_map(|(channel, deliveries)| {
            let ids = deliveries.iter().map(|delivery| (delivery.seq, delivery.since));
            let problem = several("parked", ids, ["message", "messages"])?;
            let get = if deliveries.len() == 1 { "gets" } else { "get" };
            let what = format!("{} {get} nowhere on {channel}", said_parked(deliveries.iter().copied()));
            let why = deliveries.iter().find_map(|delivery| delivery.error.clone());
            let audience = Audience::Channel(channel.clone());
            Some(Problem { what, why, subject: Some(channel.to_string()), audience, ..problem })
        });
        overdue.into_iter().chain(parked).chain(alerts).collect()
    }
}

/// Says how many messages these are, and how many of them are answers.
fn said_parked<'a>(parked: impl IntoIterator<Item = &'a ParkedDelivery>) -> String {
    let (owed, other): (Vec<_>, Vec<_>) = parked.into_iter().partition(|delivery| delivery.owed);
    let messages = || number(owed.len() + other.len(), ["message", "messages"]);
    match (owed.len(), other.len()) {
        (0, _) => messages(),
        (answers, 0) => number(answers, ["answer", "answers"]),
        (1, _) => format!("{} (one of them an answer)", messages()),
        (answers, _) => format!("{} ({answers} of them answers)", messages()),
    }
}

/// A problem of several turns or deliveries that are known one by one.
fn several(kind: &'static str, of: impl Iterator<Item = (i64, Timestamp)>, words: [&str; 2]) -> Option<Problem> {
    let of: BTreeMap<i64, Timestamp> = of.collect();
    let problem = counted(kind, of.len() as u64, words)?;
    Some(Problem { since: of.values().min().copied(), ids: of.into_keys().collect(), ..problem })
}

/// Whether alerts began what is stored as being of this person.
fn is_alert(person: &str) -> bool {
    person == Sender::ALERTER
}

/// That alerts do not arrive. It does not grow: each alert about it would be one more of them.
fn of_alerts(
    kind: &'static str,
    channel: Option<&ChannelId>,
    of: impl Iterator<Item = (i64, Timestamp)>,
) -> Option<Problem> {
    let words = match channel {
        Some(_) => ["alert gets nowhere", "alerts get nowhere"],
        None => ["alert could not be delivered", "alerts could not be delivered"],
    };
    let problem = several(kind, of, words)?;
    let on = channel.map(|channel| format!(" on {channel}")).unwrap_or_default();
    let (what, subject) = (format!("{}{on}", problem.what), channel.map(ToString::to_string));
    let audience = channel.cloned().map_or(Audience::All, Audience::Channel);
    Some(Problem { what, subject, audience, count: None, ids: BTreeSet::new(), ..problem })
}

fn counted(kind: &'static str, count: u64, words: [&str; 2]) -> Option<Problem> {
    let what = number(usize::try_from(count).unwrap_or(usize::MAX), words);
    (count > 0).then(|| Problem { count: Some(count), ..Problem::of_all(kind, what) })
}

fn number(count: usize, [one, many]: [&str; 2]) -> String {
    if count == 1 { format!("One {one}") } else { format!("{count} {many}") }
}

/// A sentence begins with a capital, except with a name.
fn capitalised(text: &str, name: Option<&str>) -> String {
    match text.split_at_checked(1) {
        Some((first, rest)) if !name.is_some_and(|name| text.starts_with(name)) => first.to_uppercase() + rest,
        _ => text.to_owned(),
    }
}

/// An error of a kind that no operator has seen, or a panic.
fn of_error(error: &ErrorRecord) -> Problem {
    let field = |name: &str| error.fields.get(name)?.as_str();
    let about = error.channel.as_ref().map(|channel| format!(" on {channel}")).unwrap_or_default();
    let why: Vec<_> = ["error", "reason", "problem", "what", "location"].into_iter().filter_map(field).collect();
    Problem {
        why: (!why.is_empty()).then(|| why.join(", at ")),
        since: Some(error.first_at),
        subject: Some(error.id.to_string()),
        audience: error.channel.clone().map_or(Audience::Unlimited, Audience::Channel),
        ..Problem::new("error", format!("A new error{about}, \u{201c}{}\u{201d}", error.message))
    }
}

/// A channel on which strangers are turned away.
fn of_crowd(channel: &ChannelId) -> Problem {
    let why = "as many requests to be let in wait as may (`rejoinder pairing list`)".to_owned();
    let what = format!("Newcomers are turned away on {channel}");
    let audience = Audience::Channel(channel.clone());
    Problem { subject: Some(channel.to_string()), why: Some(why), audience, ..Problem::new("pairing", what) }
}

/// The nodes whose configuration is not the latest. That of this one may have been replaced at nodes that have ended.
fn behind(nodes: &[NodeSummary], this: Option<NodeId>) -> impl Iterator<Item = Problem> {
    let latest = nodes.iter().map(|node| node.revision).max().flatten();
    let is_behind =
        move |node: &&NodeSummary| Some(node.node) == this || (node.revision.is_some() && node.revision < latest);
    nodes.iter().filter(is_behind).map(|node| {
        let what = format!("The node {} has an earlier configuration than the latest", node.name);
        let why = "start it again with the latest, or make its own the latest (`rejoinder config reload` there)";
        let subject = Some(node.name.clone());
        Problem { subject, why: Some(why.to_owned()), ..Problem::of_all("configuration", what) }
    })
}

/// The channels that no node has. When the nodes are not known, all have one.
fn unheld(mut channels: Vec<ChannelId>, nodes: &[NodeSummary]) -> Vec<ChannelId> {
    let held: BTreeSet<_> = nodes.iter().flat_map(|node| &node.leases).map(|(name, _)| name).collect();
    channels.retain(|channel| !nodes.is_empty() && !held.contains(&LeaseName::Channel(channel.clone())));
    channels
}

/// The nodes that were lost while they had channels, by machine. Others have these by now, or it is said that none has.
fn of_lost(lost: &[LostNode]) -> impl Iterator<Item = Problem> {
    let mut machines = BTreeMap::<&str, Vec<&LostNode>>::new();
    for node in lost {
        machines.entry(&node.name).or_default().push(node);
    }
    machines.into_iter().map(|(name, nodes)| {
        let names = nodes.iter().flat_map(|node| &node.leases).filter_map(|name| match name {
            LeaseName::Channel(channel) => Some(channel.as_str()),
            LeaseName::Housekeeper => None,
        });
        let channels: Vec<_> = names.collect::<BTreeSet<_>>().into_iter().collect();
        let why = (!channels.is_empty()).then(|| format!("it had {}", channels.join(", ")));
        let (what, count) = match nodes.len() {
            1 => (format!("The node {name} was lost"), None),
            more => (format!("The node {name} was lost {more} times"), Some(more as u64)),
        };
        // Another loss of it is more of the same.
        let ids = nodes.iter().map(|node| node.at.as_millis()).collect();
        let since = nodes.iter().map(|node| node.at).min();
        Problem { why, since, count, ids, subject: Some(name.to_owned()), ..Problem::new("node", what) }
    })
}

/// A schedule that has paused itself.
fn of_schedule(schedule: &Schedule) -> Problem {
    let name = &schedule.new.name;
    let why = schedule.why.as_deref().unwrap_or("it failed too often").to_owned();
    let what = format!("The schedule {name} is paused");
    let audience = Audience::Schedule(name.clone());
    Problem { subject: Some(name.clone()), why: Some(why), audience, ..Problem::new("schedule", what) }
}

#[cfg(test)]
mod tests;
