//! `rejoinder turns`: shows turns, and has the running gateway act on one.

mod runs;
mod stats;
mod text;

use std::{collections::HashSet, time::Duration};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use rejoinder_core::{
    Clock, ConversationId, Heard, SystemClock, Timestamp, TurnId,
    explain::{Entry, Explanation},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use self::text::{indented, parse_time};
use super::{
    global::Global,
    ids::turn_id,
    options::{Database, Reading, Reason},
    records::{Page, Parameter, named},
    running::RunningGateway,
};
use crate::{
    console::{
        failure::Failure,
        output::{self, one_line},
    },
    http::StateFilter,
    time::{self, rfc3339},
    view::{DeliveryDetail, FileDetail, TimelineEntry, TurnDetail, TurnExplanation, TurnItem, VoiceDetail},
};

#[derive(Debug, Subcommand)]
pub(super) enum TurnsCommand {
    /// List turns, newest first
    #[command(after_help = LIST_EXAMPLES)]
    List(List),
    /// Show everything about a turn: message, runs with their tool calls and cost, deliveries, attempts
    Show(Show),
    /// Explain in plain words what was owed, what was tried, how the platform responded and what happens next
    #[command(after_help = "Example:\n  rejoinder turns explain 0199a1c2-7d3e-7aaa-8bbb-0123456789ab")]
    Explain(One),
    /// Show what became of the turns that were owed an answer, and how long people waited
    #[command(after_help = stats::EXAMPLES)]
    Stats(stats::Stats),
    /// Give a turn up that has not ended; a dead letter is retried, redirected or discarded instead
    Cancel(Cancel),
    /// Try now what waits to be sent; send a dead letter again, or, if there was nothing to send, run the agent again
    Retry(Change),
    /// Let no run and no attempt of a turn begin until it is resumed
    Hold(Change),
    /// Let a turn that is held go on
    Resume(Change),
}

/// Something that the running gateway does with a turn.
#[derive(Debug, Args)]
pub(super) struct Change {
    /// The turn's id, or its first twelve or so characters
    id: String,
    #[command(flatten)]
    why: Reason,
}

/// Gives a turn up.
#[derive(Debug, Args)]
pub(super) struct Cancel {
    #[command(flatten)]
    change: Change,
    /// What the person is told, instead of the template given_up
    #[arg(long, value_name = "TEXT")]
    say: Option<String>,
    /// Tell the person nothing, and remove the message that promised an answer
    #[arg(long, conflicts_with = "say")]
    silently: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  rejoinder turns list --late
  rejoinder turns list --person Ada --fallback --since 1d
  rejoinder turns list --channel webhook.siri --since 2h
  rejoinder turns list --since 2026-05-01T00:00:00Z --json";

#[expect(clippy::struct_excessive_bools, reason = "options of the command line")]
#[derive(Debug, Args)]
pub(super) struct List {
    /// Only turns in this state
    #[arg(long, value_enum)]
    state: Option<StateFilter>,
    /// Only turns of this channel, for example webhook.siri
    #[arg(long)]
    channel: Option<String>,
    /// Only turns of the conversation with this id
    #[arg(long, value_name = "ID")]
    conversation: Option<ConversationId>,
    /// Only turns that were routed to this agent
    #[arg(long)]
    agent: Option<String>,
    /// Only turns of this person, and what others sent them: CHANNEL/ID, the id, or a part of a name in any case
    #[arg(long)]
    person: Option<String>,
    /// Only turns with this text in their message
    #[arg(long)]
    text: Option<String>,
    /// Only turns that are late, as --state overdue
    #[arg(long, conflicts_with_all = ["state", "failed"])]
    late: bool,
    /// Only turns that could not be answered, as --state undeliverable
    #[arg(long, conflicts_with = "state")]
    failed: bool,
    /// Only turns that the ladder answered
    #[arg(long)]
    fallback: bool,
    /// Show the list again every two seconds
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Only turns accepted since this time: RFC 3339, or how long ago (2h)
    #[arg(long, value_name = "TIME", value_parser = checked_time)]
    since: Option<String>,
    /// Only turns accepted before this time
    #[arg(long, value_name = "TIME", value_parser = checked_time)]
    until: Option<String>,
    /// Only turns older than this one: the "next" of --json
    #[arg(long, value_name = "ID")]
    before: Option<TurnId>,
    /// Largest number of turns to list
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    reading: Reading,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    #[command(flatten)]
    one: One,
    /// Also show what the model of each run was shown: its settings and all messages (--json has them anyway)
    #[arg(long)]
    shown: bool,
}

#[derive(Debug, Args)]
pub(super) struct One {
    /// The turn's id, or its first twelve or so characters
    id: String,
    #[command(flatten)]
    reading: Reading,
}

/// How many characters of ids a list shows: the first number with which they all differ. The first 18 are the time to the
/// millisecond and a random number.
const SHORT_IDS: [usize; 3] = [18, 23, 36];

/// The pause before the list is shown again.
const WATCH_PAUSE: Duration = Duration::from_secs(2);

/// A time as it was typed: how long ago counts anew each time the list is shown.
fn checked_time(text: &str) -> Result<String, String> {
    parse_time(text).map(|_| text.to_owned())
}

impl TurnsCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        match self {
            Self::List(list) => list.perform(global).await,
            Self::Stats(stats) => stats.perform(global).await,
            Self::Cancel(cancel) => cancel.perform(global).await,
            Self::Retry(change) => change.perform(global, "retry", "It is sent now.").await,
            Self::Hold(change) => change.perform(global, "hold", "It is held.").await,
            Self::Resume(change) => change.perform(global, "resume", "It goes on.").await,
            Self::Show(Show { one, shown }) => {
                let turn: TurnDetail = one.read(global, "").await?;
                one.reading.printing.print(&turn, |turn| detail(turn, *shown))
            }
            Self::Explain(one) => {
                let explanation: TurnExplanation = one.read(global, "/explain").await?;
                if one.reading.printing.json {
                    return output::print_json(&explanation);
                }
                output::print(explained(explanation)?)
            }
        }
    }
}

impl Change {
    async fn perform(&self, global: &Global, what: &str, done: &str) -> Result<(), Failure> {
        self.post(global, what, &self.why).await?;
        output::print(done)
    }

    async fn post(&self, global: &Global, what: &str, body: &impl Serialize) -> Result<Value, Failure> {
        let gateway = RunningGateway::find(global)?;
        let id = turn_id(&Database::default().records(global).await?, &self.id).await?;
        gateway.act("turns", &id, what, body).await
    }
}

impl Cancel {
    async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let Self { change, say, silently } = self;
        let body = json!({ "reason": change.why.reason, "say": say, "silently": silently });
        change.post(global, "cancel", &body).await?;
        output::print(if *silently { "It is given up." } else { "It is given up, and the person is told." })
    }
}

impl List {
    async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let records = self.reading.database.records(global).await?;
        loop {
            let before = self.before.map(|id| id.to_string());
            let list = records.list("turns", &self.filter(), before, self.limit).await?;
            if self.reading.printing.json {
                return output::print_json(&list);
            }
            let now = SystemClock.now();
            if !self.watch {
                return output::print(lines(&list, now));
            }
            // Clears the terminal.
            output::print_as_is(&format!("\u{1b}[2J\u{1b}[H{}", output::printable(&lines(&list, now))))?;
            tokio::time::sleep(WATCH_PAUSE).await;
        }
    }

    fn filter(&self) -> [Parameter; 9] {
        let now = SystemClock.now();
        let time = |text: Option<&String>| text.and_then(|text| time::parse_or_ago(text, now)).map(rfc3339);
        let state = match self.state {
            _ if self.late => Some(StateFilter::Overdue),
            _ if self.failed => Some(StateFilter::Undeliverable),
            state => state,
        };
        [
            ("state", named(state)),
            ("channel", self.channel.clone()),
            ("conversation", self.conversation.map(|id| id.to_string())),
            ("agent", self.agent.clone()),
            ("person", self.person.clone()),
            ("text", self.text.clone()),
            ("fallback", self.fallback.then(|| "true".to_owned())),
            ("since", time(self.since.as_ref())),
            ("until", time(self.until.as_ref())),
        ]
    }
}

fn lines(list: &Page<TurnItem>, now: Timestamp) -> String {
    let short_id = short_id(&list.items);
    let row = |turn: &TurnItem| {
        let how = match (&turn.fallback, &turn.signal) {
            (Some(fallback), _) => format!("{} ({})", fallback.rung, fallback.cause),
            (None, Some(signal)) => signal.clone(),
            (None, None) => String::new(),
        };
        let status = || Some(serde_json::to_value(turn.status).ok()?.as_str()?.to_owned());
        let who = turn.sender_name.as_ref().or(turn.sender_id.as_ref()).map(|who| output::excerpt(who, 16));
        let accepted = time::parse(&turn.accepted_at).unwrap_or(now);
        [
            turn.turn_id.get(..short_id).unwrap_or(&turn.turn_id).to_owned(),
            time::local(accepted),
            time::age(now.since(accepted)),
            who.unwrap_or_default(),
            output::excerpt(&turn.text, 24),
            turn.address.channel.clone(),
            turn.handler.to_string(),
            if turn.unreadable { "unreadable".to_owned() } else { status().unwrap_or_default() },
            turn.why.as_ref().map_or(how, |why| output::excerpt(why, 60)),
        ]
    };
    let heads = ["TURN", "ACCEPTED", "AGE", "WHO", "WHAT", "CHANNEL", "AGENT", "STATUS", "HOW, OR WHY NOT"];
    list.text("No turns found.", "More turns", |turns| output::table(heads, &turns.iter().map(row).collect::<Vec<_>>()))
}

/// How many characters of these ids to show.
fn short_id(turns: &[TurnItem]) -> usize {
    let differ = |length: &usize| {
        let mut seen = HashSet::new();
        turns.iter().all(|turn| seen.insert(turn.turn_id.get(..*length).unwrap_or(&turn.turn_id)))
    };
    SHORT_IDS.into_iter().find(differ).unwrap_or(SHORT_IDS[SHORT_IDS.len() - 1])
}

impl One {
    /// Reads the turn, or what the route `below` it tells.
    async fn read<T: DeserializeOwned>(&self, global: &Global, below: &str) -> Result<T, Failure> {
        let records = self.reading.database.records(global).await?;
        let id = turn_id(&records, &self.id).await?;
        records.get(&format!("turns/{id}{below}")).await
    }
}

fn explained(explanation: TurnExplanation) -> Result<String, Failure> {
    let TurnExplanation { turn_id, headline, owed, timeline, next } = explanation;
    let entry = |TimelineEntry { at, text }| Some(Entry { at: time::parse(&at)?, text });
    let timeline = timeline.into_iter().filter_map(entry).collect();
    let turn = turn_id.parse::<TurnId>().context("the turn has no id")?;
    let explanation = Explanation { turn, headline, owed, timeline, next };
    Ok(format!("Turn {turn_id}\n{explanation}"))
}

/// The name, the type and the size of a file, and where its bytes are.
fn file_line(file: &FileDetail) -> String {
    let FileDetail { name, media_type, url, size, digest, removed } = file;
    let size = size.map(|size| format!(", {size} bytes")).unwrap_or_default();
    let nowhere = if *removed { "not kept any more" } else { "in the message" };
    let at = digest.as_deref().or(url.as_deref()).unwrap_or(nowhere);
    format!("{name} ({media_type}{size}): {at}")
}

/// How long a message was spoken, and what became of the words.
fn voice_line(voice: &VoiceDetail) -> String {
    let VoiceDetail { seconds, heard, why, model } = voice;
    let length = seconds.map(|seconds| format!(" of {seconds} s")).unwrap_or_default();
    let what = match (heard, why, model) {
        (Heard::Awaited, ..) => "being written down".to_owned(),
        (Heard::Words, _, Some(model)) => format!("written down by {model}"),
        (Heard::Words, ..) => "written down".to_owned(),
        (Heard::Failed, Some(why), _) => format!("not written down: {why}"),
        (Heard::NotTried | Heard::Failed, ..) => "not written down".to_owned(),
    };
    format!("a voice note{length}, {what}")
}

fn detail(turn: &TurnDetail, with_shown: bool) -> String {
    let mut lines = vec![format!("Turn {}", turn.turn_id)];
    let agent = turn.handler.to_string();
    let fields = [
        ("channel", Some(&*turn.address.channel)),
        ("chat", Some(&*turn.address.chat)),
        ("thread", turn.address.thread.as_deref()),
        ("conversation", Some(&*turn.address.conversation_id)),
        ("session", Some(&*turn.session_id)),
        ("agent", Some(&*agent)),
        ("rule", turn.rule.as_deref()),
        ("accepted", Some(&*turn.accepted_at)),
        ("ended", Some(turn.ended_at.as_deref().unwrap_or("-"))),
        ("owed", Some(if turn.owed { "an answer" } else { "nothing" })),
        ("state", Some(&*turn.state)),
        ("reason", turn.reason.as_deref()),
        ("next action", turn.wake_at.as_deref()),
    ];
    let known = fields.into_iter().filter_map(|(name, value)| Some((name, one_line(value?))));
    lines.extend(known.map(|(name, value)| format!("  {name:<14}{value}")));
    let sender = turn.event.sender_name.as_deref().unwrap_or(&turn.event.sender_id);
    lines.push(format!("\nMessage from {}:", one_line(sender)));
    lines.push(indented(&turn.event.text));
    lines.extend(turn.event.voice.iter().map(|voice| format!("  {}", one_line(&voice_line(voice)))));
    lines.extend(turn.event.attachments.iter().map(|file| format!("  with {}", one_line(&file_line(file)))));
    lines.push("\nRuns:".to_owned());
    lines.extend(turn.runs.iter().flat_map(|run| runs::lines(run, with_shown)));
    lines.push("\nDeliveries:".to_owned());
    for delivery in &turn.deliveries {
        delivery_lines(delivery, &mut lines);
    }
    if !turn.remarks.is_empty() {
        lines.push("\nRemarks:".to_owned());
        lines.extend(
            turn.remarks.iter().map(|remark| format!("  {}  {}: {}", remark.at, remark.kind, one_line(&remark.detail))),
        );
    }
    lines.join("\n")
}

fn delivery_lines(delivery: &DeliveryDetail, lines: &mut Vec<String>) {
    let copy = if delivery.is_copy { "a copy of the " } else { "" };
    let part =
        if delivery.parts > 1 { format!(", part {} of {}", delivery.part, delivery.parts) } else { String::new() };
    lines.push(format!(
        "  {}. {copy}{} by {}{part}, cleared {}: {}",
        delivery.claim, delivery.signal, delivery.via, delivery.created_at, delivery.state
    ));
    lines.push(indented(&delivery.text));
    lines.extend(delivery.spoken.iter().map(|words| format!("  aloud: {}", one_line(words))));
    lines.extend(delivery.choices.iter().map(|choice| format!("  | [{}]", one_line(choice))));
    lines.extend(delivery.attachments.iter().map(|file| format!("  with {}", one_line(&file_line(file)))));
    for attempt in &delivery.attempts {
        let result = attempt.result.as_deref().unwrap_or("in progress");
        let detail = attempt.detail.as_ref().map_or_else(String::new, |detail| format!(": {}", one_line(detail)));
        let (number, at) = (attempt.number, &attempt.started_at);
        lines.push(match attempt.alike {
            0 => format!("     attempt {number} at {at}: {result}{detail}"),
            alike => format!("     attempts {} to {number}, the last at {at}: {result}{detail}", number - alike),
        });
    }
    if let Some(next) = &delivery.next_attempt_at {
        lines.push(format!("     next attempt at {next}"));
    }
    if let Some(error) = delivery.error.as_ref().filter(|_| delivery.attempts.is_empty()) {
        lines.push(format!("     {}", one_line(error)));
    }
    if let Some(fetched_at) = &delivery.fetched_at {
        lines.push(format!("     first read by the client at {fetched_at}"));
    }
}
