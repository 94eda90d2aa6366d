//! Runs the real binary under trouble, and judges from outside what people saw.
//!
//! People write on several platforms at once to agents that answer, stall, fail, defer and stay silent. The platforms
//! respond with 429 and 5xx, hang, and lose responses. The process is killed again and again; once there is a flood, and
//! once the disk is full. At the end all failures are lifted, and when nothing is owed any more, every message is judged:
//! see [`judge`].
//!
//! With `--nodes`, several processes on one PostgreSQL are put to the test instead: see [`chaos`].
//!
//! Run by `cargo xtask soak` and `cargo xtask chaos`. The seed decides what is said and what fails; when the process reacts is up to
//! the machine, so a run with the same seed is similar, not equal.

mod agent;
mod alerts;
mod channel;
mod chaos;
mod crowd;
mod evidence;
mod judge;
mod machine;
mod process;
mod rest;
mod scene;
mod table;
mod words;

use std::{
    collections::HashSet,
    fs,
    hash::{BuildHasher as _, RandomState},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use rand::{SeedableRng as _, rngs::StdRng};
use rejoinder_postgres_server::Servers;
use rejoinder_tests::{Gateway, Pager, ScriptedAgent, free_port};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    alerts::Watch,
    channel::Platform,
    crowd::Crowd,
    evidence::{Evidence, collect},
    machine::Machine,
    process::Process,
    rest::settle,
    scene::Scene,
    table::{Faults, Summary},
};

/// How often the progress is reported.
const PROGRESS: Duration = Duration::from_secs(5);

/// Run the real binary under trouble, and judge from outside what people saw
#[derive(Parser)]
#[command(bin_name = "rejoinder-soak")]
struct Arguments {
    /// How long people write
    #[arg(long, default_value_t = 60.0)]
    minutes: f64,
    /// Decides what is said and what fails; random if not given
    #[arg(long)]
    seed: Option<u64>,
    /// The platforms that take part
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [
        Platform::Telegram, Platform::Discord, Platform::Webhook, Platform::Webchat, Platform::Example,
    ])]
    channels: Vec<Platform>,
    /// About how many seconds the process lives before it is killed; 0: it is not killed
    #[arg(long, default_value_t = 20)]
    kill_every: u64,
    /// Write the result to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Folder for the database and the log of a run that fails
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    #[command(flatten)]
    chaos: chaos::Arguments,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let soaked = tokio::runtime::Runtime::new().map_err(Into::into).and_then(|runtime| {
        let seed = arguments.seed.unwrap_or_else(|| RandomState::new().hash_one(()) % 1_000_000);
        let length = Duration::from_secs_f64(arguments.minutes * 60.0);
        if arguments.chaos.nodes.is_none() {
            return runtime.block_on(soak(&arguments, seed, length));
        }
        let (json, keep) = (arguments.json.as_deref(), arguments.keep.as_deref());
        let run = chaos::Run { seed, length, platforms: &arguments.channels, json, keep };
        runtime.block_on(async {
            tokio::select! {
                done = chaos::run(&arguments.chaos, &run) => done,
                // So that the servers of the database are stopped.
                _ = tokio::signal::ctrl_c() => bail!("interrupted"),
            }
        })
    });
    match soaked {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            // What cannot be tested here differs from what fails.
            let is_possible = arguments.chaos.nodes.is_none() || Servers::are_installed();
            if is_possible { ExitCode::FAILURE } else { ExitCode::from(2) }
        }
    }
}

/// Performs the run; returns whether its result is good.
async fn soak(arguments: &Arguments, seed: u64, length: Duration) -> Result<bool> {
    eprintln!("{:.1} minutes with seed {seed}", arguments.minutes);

    let port = free_port();
    let url = format!("http://127.0.0.1:{port}");
    let scene = Scene::start(&arguments.channels, &url).await?;
    let channels = &scene.channels;
    let pager = Pager::new();
    let told = format!("[alerts]\nto = [\"{}\"]\n{}", pager.path().display(), alerts::SETTINGS);
    let mut builder = Gateway::builder().port(port).allow_open_turns().config(&scene.settings()).config(&told);
    for channel in channels {
        builder = builder.config(&channel.section());
    }

    let life = (arguments.kill_every > 0).then(|| Duration::from_secs(arguments.kill_every));
    let mut process = Process::start(builder.prepare(), seed, life).await;
    let watch = Watch::start(&process.gateway);
    let begun = Instant::now();
    let end = begun + length;
    let crowd = Crowd::new(channels.clone(), seed, 0);
    let mut writing = crowd.start();
    crowd.flood(&mut writing, begun + length / 4);
    let faults = Arc::new(Mutex::new(Faults::new()));
    let mut troubles = JoinSet::new();
    for (number, channel) in channels.iter().enumerate() {
        let (faults, platform) = (Arc::clone(&faults), channel.platform().name());
        let random = StdRng::seed_from_u64(seed ^ (number as u64 + 1) << 48);
        troubles.spawn(crowd::trouble(Arc::clone(channel), random, end, move |what| {
            let mut faults = faults.lock().unwrap_or_else(PoisonError::into_inner);
            *faults.entry(platform).or_default().entry(what).or_default() += 1;
        }));
    }
    let progress = tokio::spawn(report_progress(Arc::clone(&crowd), Arc::clone(&scene.agent), begun, end));
    process.treat(begun + length / 2, end).await;
    crowd.end();
    while troubles.join_next().await.is_some() {}
    progress.abort();
    eprintln!("all failures are lifted; waiting until nothing is owed");
    for channel in channels {
        channel.heal().await;
    }
    let mut known = HashSet::new();
    let settled_after = settle(&mut process, &crowd, channels, &mut writing, &known).await;
    process.measure();
    let alerts = watch.end(&pager, &process.treatment.in_doubt).await;

    eprintln!("collecting {} messages", crowd.said_count());
    let evidence: Evidence = collect(&process.gateway, channels, crowd.said(), &mut known).await;
    let verdict = judge::judge(&evidence);
    let faults = faults.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let summary = Summary {
        machine: Machine::look(),
        minutes: arguments.minutes,
        seed,
        flood: crowd::FLOOD,
        settled_after: settled_after.map(|time| time.as_secs_f64()),
        not_accepted: crowd.trying_count(),
        faults,
        treatment: process.treatment.clone(),
        alerts,
        verdict,
    };
    if let Some(file) = &arguments.json {
        fs::write(file, serde_json::to_vec_pretty(&summary)?)
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    println!("{}", summary.markdown());
    rest::explain_leftovers(&summary.verdict, &process.gateway);
    if !summary.is_good() {
        explain(&summary, &process.gateway);
        if let Some(folder) = &arguments.keep {
            keep(&process.gateway, folder)?;
        }
    }
    Ok(summary.is_good())
}

async fn report_progress(crowd: Arc<Crowd>, agent: Arc<ScriptedAgent>, begun: Instant, end: Instant) {
    loop {
        sleep(PROGRESS).await;
        let left = end.saturating_duration_since(Instant::now()).as_secs();
        // Each holds a whole conversation.
        agent.forget_calls();
        eprintln!(
            "{:>4} s, {left} s left: {} messages accepted, {} not yet",
            begun.elapsed().as_secs(),
            crowd.said_count(),
            crowd.trying_count()
        );
    }
}

fn explain(summary: &Summary, gateway: &Gateway) {
    for problem in summary.alerts.problems.iter().take(rest::EXPLAINED) {
        eprintln!("\nan alert: {problem}");
    }
    rest::explain_problems(&summary.verdict, gateway);
}

/// Copies the database and the log.
fn keep(gateway: &Gateway, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for file in ["rejoinder.db", "rejoinder.db-wal"] {
        let from = gateway.data().join(file);
        if from.exists() {
            fs::copy(from, folder.join(file))?;
        }
    }
    fs::write(folder.join("log"), gateway.log())?;
    eprintln!("the database and the log are in {}", folder.display());
    Ok(())
}
