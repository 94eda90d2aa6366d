//! Several nodes on one PostgreSQL under trouble, judged as one process is.
//!
//! People write on all platforms while one trouble after the other is made: to a node, to its ways, or to the database. Platforms work.
//! Besides what people see, it is judged how long channels stand still, that no node ends by itself, and that a node sends nothing when
//! it cannot have a lease.

mod database;
mod front;
mod link;
mod nodes;
mod probes;
mod signal;
mod table;
mod trouble;

use std::{
    collections::{BTreeSet, HashSet},
    fs, iter,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum as _};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use rejoinder_tests::{Gateway, free_port};
use tokio::task::JoinSet;

use self::{
    database::Database,
    link::{Link, Processes},
    nodes::Nodes,
    probes::Probes,
    table::{Occurrence, Part, Summary},
    trouble::{Stage, Trouble},
};
use crate::{
    channel::{Channel, Platform},
    crowd::Crowd,
    evidence::collect,
    judge::judge,
    machine::Machine,
    rest::{self, Subject as _, settle},
    scene::Scene,
};

/// How long people write before a trouble, and after it.
const CALM: Duration = Duration::from_secs(4);
/// How much longer than allowed an answer is waited for, so that it is known how late it is.
const LONGER: Duration = Duration::from_secs(20);
const HOST: &str = "127.0.0.1:";

#[derive(Args)]
#[group(id = "chaos")]
pub(crate) struct Arguments {
    /// Run several nodes on one PostgreSQL, and make trouble for them instead
    #[arg(long, value_parser = clap::value_parser!(u8).range(2..=9))]
    pub(crate) nodes: Option<u8>,
    /// The troubles; all if none is given
    #[arg(long = "trouble", value_name = "TROUBLE", value_enum, value_delimiter = ',', requires = "nodes")]
    troubles: Vec<Trouble>,
    /// Make each trouble once, and judge after each; otherwise they come at random for as long as people write
    #[arg(long, requires = "nodes")]
    each: bool,
    /// With --each: how often each trouble is made
    #[arg(long, requires = "each", default_value_t = 1)]
    rounds: usize,
    /// Run three PostgreSQL servers under Patroni, or a primary and a synchronous standby if Patroni is not installed
    #[arg(long, requires = "nodes")]
    patroni: bool,
    /// The binary of a later version, with which rolling-upgrade starts nodes
    #[arg(long, requires = "nodes", value_name = "BINARY")]
    upgrade_to: Option<PathBuf>,
}

impl Arguments {
    /// How many nodes there are.
    fn count(&self) -> usize {
        self.nodes.map_or(1, usize::from)
    }
}

/// What a run is told beside its [`Arguments`].
pub(crate) struct Run<'a> {
    pub(crate) seed: u64,
    /// How long troubles come at random.
    pub(crate) length: Duration,
    pub(crate) platforms: &'a [Platform],
    /// Where a JSON file is written.
    pub(crate) json: Option<&'a Path>,
    /// Where the database and the logs of a run that fails are kept.
    pub(crate) keep: Option<&'a Path>,
}

/// Performs the run; returns whether its result is good.
pub(crate) async fn run(arguments: &Arguments, run: &Run<'_>) -> Result<bool> {
    let database = Database::start(arguments.patroni).await?;
    eprintln!("{}, seed {}", database.description(), run.seed);
    let mut troubles: BTreeSet<_> = arguments.troubles.iter().copied().collect();
    if troubles.is_empty() {
        troubles.extend(Trouble::value_variants());
    }
    let lacks = |trouble: &Trouble| Some((trouble.name(), Stage::lacks(&database, *trouble)?));
    let not_run: Vec<_> = troubles.iter().filter_map(lacks).collect();
    for (trouble, why) in &not_run {
        eprintln!("{trouble} is not run: {why}");
    }
    troubles.retain(|trouble| Stage::lacks(&database, *trouble).is_none());
    if troubles.is_empty() {
        bail!("none of the troubles can be made here");
    }

    if arguments.upgrade_to.is_some() && !troubles.contains(&Trouble::RollingUpgrade) {
        bail!("--upgrade-to is for {}, which is not among the troubles", Trouble::RollingUpgrade.name());
    }

    let has_clock = troubles.contains(&Trouble::Clock);
    let mut chaos = Chaos::start(database, arguments, has_clock, run).await?;
    let performed = chaos.perform(&troubles, arguments, run).await;
    let stage = &chaos.stage;
    let summary = Summary {
        machine: Machine::look(),
        seed: run.seed,
        nodes: arguments.count(),
        database: stage.database.description(),
        upgraded_to: arguments.upgrade_to.clone(),
        platforms: run.platforms.iter().map(|platform| platform.name()).collect(),
        not_run,
        parts: chaos.parts,
    };
    if let Some(file) = run.json {
        fs::write(file, serde_json::to_vec_pretty(&summary)?)
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    println!("{}", summary.markdown());
    let is_good = performed.is_ok() && summary.is_good();
    if !is_good && let Some(folder) = run.keep {
        keep(stage, folder).await?;
    }
    for part in &summary.parts {
        rest::explain_leftovers(&part.verdict, stage.nodes.gateway(0));
        rest::explain_problems(&part.verdict, stage.nodes.gateway(0));
        for problem in part.problems() {
            eprintln!("{}: {problem}", part.name);
        }
    }
    performed.map(|()| is_good)
}

struct Chaos {
    stage: Stage,
    scene: Scene,
    seed: u64,
    /// The turns that were judged.
    known: HashSet<String>,
    /// The number of the next token.
    token: usize,
    parts: Vec<Part>,
}

impl Chaos {
    /// Starts the platforms and the nodes. The last one has a wall clock of its own if `has_clock`.
    async fn start(database: Database, arguments: &Arguments, has_clock: bool, run: &Run<'_>) -> Result<Self> {
        let count = arguments.count();
        let ports: Vec<_> = (0..count).map(|_| free_port()).collect();
        let front = front::start(&ports).await?;
        let scene = Scene::start(run.platforms, &format!("http://{HOST}{front}")).await?;
        let processes = nodes::processes(count);
        let (mut to_database, mut to_platforms) = (Vec::new(), Vec::new());
        for port in database.ports() {
            to_database.push(Link::start(port, &processes, Arc::new(|_: &str| false)).await?);
        }
        let servers: Vec<_> = to_database.iter().map(|link| link.port).collect();
        let mut config = format!("{}[store]\nurl = \"{}\"\n", scene.settings(), Database::url(&servers));
        for channel in &scene.channels {
            config.push_str(&linked(channel, &processes, &mut to_platforms).await?);
        }
        let prepared = ports.iter().enumerate().map(|(node, port)| {
            let builder = Gateway::builder().port(*port).allow_open_turns().config(&config);
            let has_own_clock = has_clock && node + 1 == count;
            let builder = if has_own_clock { builder.own_calendar() } else { builder };
            builder.prepare()
        });
        let nodes = Nodes::start(prepared.collect(), processes).await;
        let random = StdRng::seed_from_u64(run.seed);
        let upgrade_to = arguments.upgrade_to.clone();
        let stage = Stage { nodes, database, to_database, to_platforms, random, upgrade_to, made: BTreeSet::new() };
        Ok(Self { stage, scene, seed: run.seed, known: HashSet::new(), token: 0, parts: Vec::new() })
    }

    async fn perform(&mut self, troubles: &BTreeSet<Trouble>, arguments: &Arguments, run: &Run<'_>) -> Result<()> {
        if arguments.each {
            for trouble in troubles {
                self.part(&trouble.name(), iter::repeat_n(*trouble, arguments.rounds)).await?;
            }
            return Ok(());
        }
        let troubles: Vec<_> = troubles.iter().copied().collect();
        let (end, mut random) = (Instant::now() + run.length, StdRng::seed_from_u64(!run.seed));
        let drawn =
            iter::from_fn(move || (Instant::now() < end).then(|| troubles[random.random_range(0..troubles.len())]));
        self.part("random", drawn).await
    }

    /// Makes these troubles while people write, and judges once nothing is owed.
    async fn part(&mut self, name: &str, troubles: impl Iterator<Item = Trouble>) -> Result<()> {
        let crowd = Crowd::new(self.scene.channels.clone(), self.seed ^ (self.parts.len() as u64) << 16, self.token);
        let mut writing = crowd.start();
        let ended_before = self.ended_wrongly();
        self.stage.nodes.live(CALM).await;
        let mut occurrences = Vec::new();
        for trouble in troubles {
            eprintln!("{}: {} messages accepted, {} not yet", trouble.name(), crowd.said_count(), crowd.trying_count());
            let occurrence = self.suffer(trouble, &crowd, &mut writing).await?;
            occurrence.problems.iter().for_each(|problem| eprintln!("  {problem}"));
            occurrences.push(occurrence);
            // Each holds a whole conversation.
            self.scene.agent.forget_calls();
            self.stage.nodes.live(CALM).await;
        }
        crowd.end();
        eprintln!("  waiting until nothing is owed");
        let channels = &self.scene.channels;
        let settled_after = settle(&mut self.stage.nodes, &crowd, channels, &mut writing, &self.known).await;
        let gateway = self.stage.nodes.gateway(0);
        if settled_after.is_none() && !rest::is_ready(gateway).await {
            bail!("after {name}, the first node does not become ready");
        }
        let evidence = collect(gateway, channels, crowd.said(), &mut self.known).await;
        self.token = crowd.next_token();
        let ended_wrongly = self.ended_wrongly() - ended_before;
        self.parts.push(Part {
            name: name.to_owned(),
            settled_after: settled_after.map(|time| time.as_secs_f64()),
            not_accepted: crowd.trying_count(),
            ended_wrongly,
            verdict: judge(&evidence),
            occurrences,
        });
        Ok(())
    }

    /// Makes a trouble, and waits until all channels go on.
    async fn suffer(&mut self, trouble: Trouble, crowd: &Arc<Crowd>, writing: &mut JoinSet<()>) -> Result<Occurrence> {
        let probes = Probes::start(crowd, &self.scene.channels);
        let began = Instant::now();
        let done = self.stage.perform(trouble, crowd, writing).await?;
        let (ended, patience) = (Instant::now(), trouble.limit() + LONGER);
        let nodes = &mut self.stage.nodes;
        let mut ready = None;
        while ended.elapsed() < patience && !(ready.is_some() && probes.all_answer_since(ended)) {
            if ready.is_none() && nodes.are_ready().await {
                ready = Some(ended.elapsed());
            }
            nodes.live(Duration::from_millis(200)).await;
        }
        let (probes, last) = (probes.end(), Instant::now());
        while last.elapsed() < patience && !probes.are_over() {
            nodes.live(Duration::from_millis(200)).await;
        }
        let platforms: Vec<_> = self.scene.channels.iter().map(|channel| channel.platform()).collect();
        Ok(Occurrence::judge(trouble, (began, ended), &done, ready, &platforms, &probes.all()))
    }

    /// How often a node ended without being asked, or did not end when it was asked.
    fn ended_wrongly(&self) -> u32 {
        self.stage.nodes.crashes + self.stage.nodes.stuck
    }
}

/// The section of a channel, with links in place of its servers.
async fn linked(channel: &Arc<dyn Channel>, processes: &Processes, links: &mut Vec<Link>) -> Result<String> {
    let mut section = channel.section();
    let digits = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().and_then(|port| port.parse().ok());
    let ports: BTreeSet<u16> = section.split(HOST).skip(1).filter_map(digits).collect();
    for port in ports {
        let sender = Arc::clone(channel);
        let link = Link::start(port, processes, Arc::new(move |line: &str| sender.is_send(line))).await?;
        section = section.replace(&format!("{HOST}{port}"), &format!("{HOST}{}", link.port));
        links.push(link);
    }
    Ok(section)
}

/// Writes the database and the logs of the nodes and the servers to a folder.
async fn keep(stage: &Stage, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (number, gateway) in stage.nodes.gateways().iter().enumerate() {
        fs::write(folder.join(format!("node-{}.log", number + 1)), gateway.log())?;
    }
    // The database may be what is broken.
    if let Err(error) = stage.database.keep(folder).await {
        eprintln!("the database cannot be dumped: {error:#}");
    }
    eprintln!("the database and the logs are in {}", folder.display());
    Ok(())
}
