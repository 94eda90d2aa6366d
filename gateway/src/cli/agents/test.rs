//! `rejoinder agents test`: one run of an agent, with its events as they come.

use std::{sync::Arc, time::Duration};

use anyhow::anyhow;
use clap::Args;
use futures_util::FutureExt as _;
use rejoinder_core::{
    Activity, ActivityState, AgentError, AgentName, AgentRuntime, AgentTurn, Clock as _, Cost, Masker, MemberReport,
    ModelInput, Outcome, RunEvent, RunEvents, SendResult, SystemClock, ToolUse, Usage,
};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{
    built::{Askable, build_to_ask, find},
    turn,
};
use crate::{
    built_agent::{AgentLoops, BuiltAgent},
    cli::{global::Global, options::Printing},
    console::{failure::Failure, output},
    view::CostDetail,
};

pub(super) const HELP: &str = "\
Nothing is stored, and no gateway need run. Of tools of the gateway that begin something (deferring, scheduling, asking for
approval) the agent is offered none. A cascade asks its members. An agent whose turns workers fetch cannot be tested, as they
fetch them from a running gateway only; as a member of a cascade it fails.

Exit code: 0 if the agent answered or chose to stay silent, 1 if not.

Examples:
  rejoinder agents test main
  rejoinder agents test main \"What can you do?\" --timeout 30
  rejoinder agents test main --input
  rejoinder agents test main --json | jq .first_word_ms";

/// What the agent is asked, unless something else is.
const QUESTION: &str = "Hello! Who are you? Answer in one sentence.";

/// How many characters of a tool call are shown.
const MOST_SHOWN: usize = 200;

/// How long a cancelled run may take to end.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// The agent, as in [agents.main]
    name: String,
    /// What it is asked
    #[arg(default_value = QUESTION)]
    question: String,
    /// After how many seconds it is stopped
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Print what the agent is given as well: instructions, tools and messages
    #[arg(long)]
    input: bool,
    #[command(flatten)]
    printing: Printing,
}

/// What came of a test.
#[derive(Debug, Default, Serialize)]
struct Tested {
    agent: String,
    /// Whether it ended with an outcome that shows something, or in chosen silence.
    ok: bool,
    /// `reply`, `reaction`, `silent`, `deferral`, `approval` or `failed`.
    outcome: &'static str,
    /// The answer, the emoji, the reason for silence, the note, the action or the error.
    text: String,
    /// The member that answered, if it has members.
    answered_by: Option<String>,
    /// What it was given, as its kind of agent sends it: `settings` and `messages`.
    inputs: Vec<Input>,
    tools: Vec<ToolUse>,
    /// Its MCP servers, as they were at the end of the test.
    mcp_servers: Vec<TestedServer>,
    usage: Option<Usage>,
    /// What it says that the run cost, or what its members say together: one in each currency.
    costs: Vec<CostDetail>,
    first_word_ms: Option<u64>,
    total_ms: u64,
}

/// What an agent was given in one request.
#[derive(Debug, Serialize)]
struct Input {
    settings: Value,
    messages: Value,
}

impl Input {
    fn of(input: &ModelInput, masker: &Masker) -> Self {
        let read = |json: &str| {
            let json = masker.text(json.to_owned());
            serde_json::from_str(&json).unwrap_or(Value::String(json))
        };
        Self { settings: read(&input.settings), messages: read(&input.messages) }
    }
}

/// An MCP server of the agent.
#[derive(Debug, Serialize)]
struct TestedServer {
    name: String,
    /// How many tools it offers; `None` if it is down.
    tools: Option<usize>,
    /// Why it is down.
    error: Option<String>,
}

impl TestedServer {
    fn of((name, offers): (String, Result<usize, String>)) -> Self {
        let (tools, error) = match offers {
            Ok(tools) => (Some(tools), None),
            Err(why) => (None, Some(why)),
        };
        Self { name, tools, error }
    }

    fn line(&self) -> String {
        let Self { name, tools, error } = self;
        match (tools, error) {
            (Some(tools), _) => format!("MCP server {name}: connected, {tools} tools"),
            (None, why) => format!("MCP server {name}: down: {}", output::one_line(why.as_deref().unwrap_or_default())),
        }
    }
}

impl Test {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let config = global.load()?.config;
        let agent = find(&config, &self.name)?;
        let askable = build_to_ask(&config, &global.data_dir()?, &self.name, agent)?;
        let masker = Masker::new(config.secrets.iter().map(ExposeSecret::expose_secret));
        let time = Duration::from_secs(self.timeout);
        let asked = turn::asking(&self.question, SystemClock.now(), time);
        let loops = AgentLoops::start(askable.loops(&self.name));
        let runtime = &askable.agent.runtime;
        if !self.printing.json {
            output::print(format!("{}\n\n> {}\n", runtime.describe(), self.question))?;
        }
        let prints = Prints { events: !self.printing.json, input: !self.printing.json && self.input };
        let tested = run(runtime, asked, time, prints, &masker).await;
        loops.stop().await;
        let mcp_servers = servers(&askable).collect();
        let tested = Tested { agent: self.name.clone(), mcp_servers, ..tested? };
        self.printing.print(&tested, summary)?;
        if tested.ok { Ok(()) } else { Err(anyhow!("{}", tested.text).into()) }
    }
}

/// The MCP servers of an agent, and those of its members after their names.
fn servers(askable: &Askable) -> impl Iterator<Item = TestedServer> {
    let of = |built: &BuiltAgent| built.tools.iter().flat_map(|tools| tools.servers()).collect::<Vec<_>>();
    let of_members = askable.members.iter().flat_map(move |(member, built)| {
        of(built).into_iter().map(move |(server, offers)| (format!("{member}.{server}"), offers))
    });
    of(&askable.agent).into_iter().chain(of_members).map(TestedServer::of)
}

/// What is printed while the agent runs.
#[derive(Clone, Copy)]
struct Prints {
    events: bool,
    input: bool,
}

/// Runs the agent once, and prints its events.
async fn run(
    runtime: &Arc<dyn AgentRuntime>,
    asked: AgentTurn,
    time: Duration,
    prints: Prints,
    masker: &Masker,
) -> Result<Tested, Failure> {
    let (events, mut reported) = RunEvents::channel();
    let cancel = CancellationToken::new();
    let (began, runtime, token) = (Instant::now(), Arc::clone(runtime), cancel.clone());
    let mut running = tokio::spawn(async move { runtime.run(asked, events, token).await });
    let mut watched = Watched::new(began, prints, masker);
    let result = loop {
        tokio::select! {
            biased;
            Some(event) = reported.recv() => watched.on(event)?,
            result = &mut running => break result.unwrap_or_else(|error| {
                Err(AgentError::Failed(format!("its runtime ended without an outcome: {error}")))
            }),
            () = tokio::time::sleep_until(began + time) => {
                cancel.cancel();
                // What it says now comes too late.
                reported.close();
                let _ = timeout_at(began + time + GRACE, &mut running).await;
                running.abort();
                break Err(AgentError::Stalled(format!("it gave no answer in {} s", time.as_secs())));
            }
        }
    };
    while let Some(Some(event)) = reported.recv().now_or_never() {
        watched.on(event)?;
    }
    watched.end(result)
}

struct Watched<'a> {
    began: Instant,
    prints: Prints,
    masker: &'a Masker,
    /// Whether the last line that was printed has no end yet.
    is_open: bool,
    /// Whether any of the answer was printed.
    has_shown: bool,
    /// What it sent during its run, which is the answer.
    sent: Option<String>,
    /// The member that was asked last.
    member: Option<AgentName>,
    /// What the run cost until that one was asked, one in each currency, and since.
    costs: Vec<Cost>,
    cost: Option<Cost>,
    tested: Tested,
}

impl<'a> Watched<'a> {
    fn new(began: Instant, prints: Prints, masker: &'a Masker) -> Self {
        Self {
            began,
            prints,
            masker,
            is_open: false,
            has_shown: false,
            sent: None,
            member: None,
            costs: Vec::new(),
            cost: None,
            tested: Tested::default(),
        }
    }

    fn on(&mut self, event: RunEvent) -> Result<(), Failure> {
        match event {
            RunEvent::Text(text) => self.word(&text, false),
            RunEvent::Rewrite(text) => self.word(&text, true),
            RunEvent::Tool(call) => {
                let mask = |text| self.masker.text(text);
                let ToolUse { name, arguments, result, duration_ms } = call;
                let call = ToolUse { name: mask(name), arguments: mask(arguments), result: mask(result), duration_ms };
                let short = |text: &str| output::excerpt(text, MOST_SHOWN);
                let took = duration_ms.map_or_else(String::new, |millis| format!(" after {millis} ms"));
                self.line(&format!("[tool {} {}{took}: {}]", call.name, short(&call.arguments), short(&call.result)))?;
                self.tested.tools.push(call);
                Ok(())
            }
            RunEvent::Activity(Activity { title, state: ActivityState::Working }) => {
                self.line(&format!("[{}]", output::excerpt(&title, MOST_SHOWN)))
            }
            RunEvent::Activity(_) | RunEvent::Thought(_) => Ok(()),
            RunEvent::Member(MemberReport::Answered) => {
                self.tested.answered_by = self.member.as_ref().map(ToString::to_string);
                Ok(())
            }
            RunEvent::Member(MemberReport::Failed(error)) => {
                self.line(&format!("[it failed: {}]", self.masker.text(error.to_string())))
            }
            RunEvent::Shown(input) => {
                let input = Input::of(&input, self.masker);
                if self.prints.input {
                    let json = serde_json::to_string_pretty(&input).unwrap_or_default();
                    self.line(&format!("[the agent is given {json}]"))?;
                }
                self.tested.inputs.push(input);
                Ok(())
            }
            RunEvent::Member(MemberReport::Asked(name)) => {
                self.line(&format!("[{name} is asked]"))?;
                self.member = Some(name);
                self.count_cost();
                Ok(())
            }
            RunEvent::Title(title) => self.line(&format!("[title {}]", output::excerpt(&title, MOST_SHOWN))),
            RunEvent::Usage(usage) => {
                self.tested.usage = Some(usage);
                Ok(())
            }
            RunEvent::Cost(cost, _) => {
                self.cost = Some(cost);
                Ok(())
            }
            RunEvent::Send(reply, answer) => {
                let is_claimed = self.sent.is_none() && !reply.text.trim().is_empty();
                if is_claimed {
                    self.note_first();
                    self.sent = Some(reply.text);
                }
                let _ = answer.send(if is_claimed { SendResult::Claimed } else { SendResult::Suppressed });
                Ok(())
            }
            RunEvent::Ask(_, _, answer) => {
                let _ = answer.send(Err("nobody can be asked: this is a test".to_owned()));
                Ok(())
            }
            RunEvent::Ends(answer) => {
                let _ = answer.send(true);
                Ok(())
            }
            RunEvent::Remember(_, answer) | RunEvent::HandOut(_, answer) => {
                let _ = answer.send(Ok(()));
                Ok(())
            }
            RunEvent::Schedule(_, answer) => {
                let _ = answer.send(Err("nothing can be scheduled here: this is a test".to_owned()));
                Ok(())
            }
            RunEvent::Search(_, answer) => {
                let _ = answer.send(Ok(Vec::new()));
                Ok(())
            }
            RunEvent::Listen(answer) => {
                let _ = answer.send(Vec::new());
                Ok(())
            }
        }
    }

    /// Adds what was said last that it cost to what was said before in the same currency.
    fn count_cost(&mut self) {
        let Some(cost) = self.cost.take() else { return };
        match self.costs.iter_mut().find(|known| known.currency == cost.currency) {
            Some(known) => known.micros = known.micros.saturating_add(cost.micros),
            None => self.costs.push(cost),
        }
    }

    fn note_first(&mut self) {
        let elapsed = millis(self.began.elapsed());
        self.tested.first_word_ms.get_or_insert(elapsed);
    }

    /// Prints more of the answer, or all of it again.
    fn word(&mut self, text: &str, is_again: bool) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.note_first();
        if !self.prints.events {
            return Ok(());
        }
        if is_again {
            self.close_line()?;
        }
        (self.is_open, self.has_shown) = (!text.ends_with('\n'), true);
        output::print_piece(text)
    }

    fn line(&mut self, line: &str) -> Result<(), Failure> {
        if !self.prints.events {
            return Ok(());
        }
        self.close_line()?;
        output::print(line)
    }

    fn close_line(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_open) { output::print("") } else { Ok(()) }
    }

    fn end(mut self, result: Result<Outcome, AgentError>) -> Result<Tested, Failure> {
        let (outcome, text, ok) = match (self.sent.take(), result) {
            (Some(sent), _) => ("reply", sent, true),
            (None, Ok(Outcome::Reply(reply))) if reply.text.trim().is_empty() && reply.attachments.is_empty() => {
                ("failed", "the answer is empty".to_owned(), false)
            }
            (None, Ok(Outcome::Reply(reply))) => ("reply", reply.text, true),
            (None, Ok(Outcome::React(emoji))) => ("reaction", emoji, true),
            (None, Ok(Outcome::Silent(reason))) => ("silent", reason, true),
            (None, Ok(Outcome::Defer { note, .. })) => ("deferral", note.unwrap_or_default(), true),
            (None, Ok(Outcome::Approval(request))) => ("approval", request.action, true),
            (None, Err(error)) => ("failed", self.masker.text(error.to_string()), false),
        };
        if ok {
            self.note_first();
        }
        self.close_line()?;
        if self.prints.events && ok && !(self.has_shown && outcome == "reply") && !text.is_empty() {
            output::print(&text)?;
        }
        self.count_cost();
        let costs = self.costs.into_iter().map(CostDetail::of).collect();
        Ok(Tested { ok, outcome, text, costs, total_ms: millis(self.began.elapsed()), ..self.tested })
    }
}

/// The last lines.
fn summary(tested: &Tested) -> String {
    let Tested { outcome, answered_by, usage, costs, first_word_ms, total_ms, .. } = tested;
    let seconds = |millis: u64| format!("{}.{:03} s", millis / 1000, millis % 1000);
    let by = answered_by.as_ref().map_or_else(String::new, |member| format!(", by {member}"));
    let mut lines = vec![format!("\nOutcome: {outcome}{by}")];
    lines.extend(tested.mcp_servers.iter().map(TestedServer::line));
    let first =
        first_word_ms.map_or_else(|| "no word".to_owned(), |first| format!("the first word after {}", seconds(first)));
    lines.push(format!("Time: {first}, {} in all", seconds(*total_ms)));
    if let Some(Usage { input_tokens, output_tokens }) = usage {
        lines.push(format!("Tokens: it read {input_tokens} and wrote {output_tokens}"));
    }
    lines.extend(costs.iter().map(|cost| format!("Cost: {cost}, as it says")));
    lines.join("\n")
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
