//! A turn by each kind of agent, compared with the same agent asked directly. One caller: what the gateway adds is not hidden by
//! others that wait.

use std::{
    process::{self, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::{io::AsyncWriteExt, process::Command};

use super::plan::{WARM_UP, plan};
use crate::{
    acp,
    bench::Bench,
    client::{Endpoint, TOKEN},
    cpu,
    figures::{
        Sample,
        Unit::{Milliseconds, Ratio},
    },
    gateway::{Gateway, Home},
    helper::{Helper, load},
    load::{Report, histogram, report},
    serve::{Server, agent::ANSWER},
};

/// A kind of agent, as the configuration names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Openai,
    Anthropic,
    Http,
    A2a,
    Pull,
    Cascade,
    Command,
    Acp,
}

const KINDS: [Kind; 8] =
    [Kind::Openai, Kind::Anthropic, Kind::Http, Kind::A2a, Kind::Pull, Kind::Cascade, Kind::Command, Kind::Acp];

/// One way to get answers.
struct Way {
    report: Report,
    /// The CPU time per answer: of the gateway, or of the agent that is asked directly.
    cpu_time: Duration,
    /// The CPU time per answer of programs that the gateway starts for a turn.
    programs: Duration,
}

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    let agent = Helper::start(&Server::Agent { stall: false }).await?;
    let mut samples = Vec::new();
    for kind in KINDS {
        let bare =
            kind.ask_directly(bench, &agent).await.with_context(|| format!("`{}` asked directly", kind.name()))?;
        let gateway = kind.ask_gateway(bench, &agent).await.with_context(|| format!("`{}`", kind.name()))?;
        samples.extend(kind.samples(&bare, &gateway));
    }
    Ok(samples)
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Http => "http",
            Self::A2a => "a2a",
            Self::Pull => "pull",
            Self::Cascade => "cascade",
            Self::Command => "command",
            Self::Acp => "acp",
        }
    }

    fn samples(self, bare: &Way, gateway: &Way) -> Vec<Sample> {
        let name = |what: &str| format!("{}, {what}", self.name());
        let (asked, turns) = (&bare.report, &gateway.report);
        let mut samples = vec![
            Sample::untargeted(name("median beside the agent's own"), turns.median_ms / asked.median_ms, Ratio),
            Sample::untargeted(name("95 of 100 beside the agent's own"), turns.p95_ms / asked.p95_ms, Ratio),
        ];
        if !bare.cpu_time.is_zero() {
            let share = gateway.cpu_time.as_secs_f64() / bare.cpu_time.as_secs_f64();
            samples.push(Sample::untargeted(name("CPU time of the gateway beside the agent's own"), share, Ratio));
        }
        for (who, way) in [("agent", bare), ("gateway", gateway)] {
            let name = |what: &str| format!("{}, {who}, {what}", self.name());
            samples.extend([
                Sample::untargeted(name("median"), way.report.median_ms, Milliseconds),
                Sample::untargeted(name("95 of 100"), way.report.p95_ms, Milliseconds),
                Sample::untargeted(name("CPU time of an answer"), way.cpu_time.as_secs_f64() * 1000.0, Milliseconds),
            ]);
        }
        if !gateway.programs.is_zero() {
            let programs = gateway.programs.as_secs_f64() * 1000.0;
            samples.push(Sample::untargeted(name("gateway, CPU time of a turn's programs"), programs, Milliseconds));
        }
        samples
    }

    /// Asks the agent without the gateway. Workers and cascades cannot be asked: in their place the service and the model are.
    async fn ask_directly(self, bench: &Bench, agent: &Helper) -> Result<Way> {
        match self {
            Self::Openai | Self::Cascade => {
                let message = json!([{ "role": "user", "content": "{text}" }]);
                let body = json!({ "model": "bench", "stream": true, "messages": message });
                ask_server(bench, agent, "v1/chat/completions", &body).await
            }
            Self::Anthropic => {
                let message = json!([{ "role": "user", "content": "{text}" }]);
                let body = json!({ "model": "bench", "stream": true, "max_tokens": 8192, "messages": message });
                ask_server(bench, agent, "v1/messages", &body).await
            }
            Self::Http | Self::Pull => ask_server(bench, agent, "turns", &json!({ "text": "{text}" })).await,
            Self::A2a => {
                let message = json!({ "messageId": "m1", "role": "ROLE_USER", "parts": [{ "text": "{text}" }] });
                let params = json!({ "message": message });
                let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params });
                ask_server(bench, agent, "a2a", &body).await
            }
            Self::Command => {
                let used = || cpu::time_of_children(process::id());
                ask(bench, used, async || run_program().await).await
            }
            Self::Acp => {
                let mut client = acp::Client::start().await?;
                let id = client.id()?;
                ask(bench, || cpu::time_of(id), async || client.ask("ping").await).await
            }
        }
    }

    /// Asks a gateway whose agent is of this kind.
    async fn ask_gateway(self, bench: &Bench, agent: &Helper) -> Result<Way> {
        let home = Home::new(bench)?;
        let mut gateway = home.start_with(bench, &self.section(agent)?, "")?;
        gateway.ready().await?;
        let _worker = match self {
            Self::Pull => Some(Helper::start(&worker(&gateway)).await?),
            _ => None,
        };
        let (own, programs) = (gateway.cpu_time()?, gateway.cpu_time_of_programs()?);
        let report = load(&plan(bench, &Endpoint::hook(gateway.address)?, 1)).await?;
        let answers = u32::try_from(report.requests)?;
        let cpu_time = gateway.cpu_time()?.saturating_sub(own) / answers;
        let programs = gateway.cpu_time_of_programs()?.saturating_sub(programs) / answers;
        Ok(Way { report, cpu_time, programs })
    }

    /// The configuration of the agent `bench`.
    fn section(self, agent: &Helper) -> Result<String> {
        let address = agent.address;
        let model = |name: &str| {
            format!("[agents.{name}]\nkind = \"openai\"\nbase_url = \"http://{address}/v1\"\nmodel = \"bench\"\n")
        };
        let keys = match self {
            Self::Openai => return Ok(model("bench")),
            Self::Cascade => {
                let members = model("first") + &model("second");
                return Ok(members + "[agents.bench]\nkind = \"cascade\"\nmembers = [\"first\", \"second\"]\n");
            }
            Self::Anthropic => format!("base_url = \"http://{address}\"\nmodel = \"bench\""),
            Self::Http => format!("url = \"http://{address}/turns\""),
            Self::A2a => format!("url = \"http://{address}\""),
            Self::Pull => format!("token = \"{TOKEN}\""),
            Self::Command => format!("command = {:?}", program()),
            Self::Acp => format!("command = {:?}", [std::env::current_exe()?.display().to_string(), "acp".to_owned()]),
        };
        Ok(format!("[agents.bench]\nkind = \"{}\"\n{keys}\n", self.name()))
    }
}

fn worker(gateway: &Gateway) -> Server {
    Server::Worker { agent: format!("http://{}/agents/bench", gateway.address), token: TOKEN.to_owned() }
}

async fn ask_server(bench: &Bench, agent: &Helper, path: &str, body: &serde_json::Value) -> Result<Way> {
    let url = format!("http://{}/{path}", agent.address).parse()?;
    let endpoint = Endpoint { url, headers: Vec::new(), template: Some(body.to_string()) };
    let before = agent.cpu_time()?;
    let report = load(&plan(bench, &endpoint, 1)).await?;
    let cpu_time = agent.cpu_time()?.saturating_sub(before) / u32::try_from(report.requests)?;
    Ok(Way { report, cpu_time, programs: Duration::ZERO })
}

/// Asks again and again for as long as a load takes. `used` returns the CPU time of the agent so far.
async fn ask(
    bench: &Bench,
    used: impl Fn() -> Result<Duration>,
    mut ask: impl AsyncFnMut() -> Result<()>,
) -> Result<Way> {
    let mut times = histogram()?;
    let (before, measured_from) = (used()?, Instant::now() + WARM_UP);
    let (until, mut answers) = (measured_from + bench.length, 0);
    loop {
        let asked_at = Instant::now();
        if asked_at >= until {
            break;
        }
        ask().await?;
        answers += 1;
        if asked_at >= measured_from {
            times.saturating_record(u64::try_from(asked_at.elapsed().as_micros())?);
        }
    }
    let report = report(&times, bench.length.as_secs_f64(), b"")?;
    Ok(Way { report, cpu_time: used()?.saturating_sub(before) / answers, programs: Duration::ZERO })
}

/// A program that reads a turn and answers at once.
fn program() -> [String; 3] {
    ["sh".to_owned(), "-c".to_owned(), format!("cat > /dev/null; echo '{ANSWER}'")]
}

/// Runs the program as the gateway does, without what the gateway does beside it.
async fn run_program() -> Result<()> {
    let [name, arguments @ ..] = program();
    let mut program = Command::new(name);
    program.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut program = program.spawn().context("cannot start the program")?;
    let mut input = program.stdin.take().context("the program has no input")?;
    input.write_all(br#"{"text":"ping"}"#).await?;
    drop(input);
    let output = program.wait_with_output().await?;
    ensure!(output.status.success() && output.stdout.starts_with(ANSWER.as_bytes()), "the program answered {output:?}");
    Ok(())
}
