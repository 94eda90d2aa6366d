//! `run`: measures, prints the figures and writes them to a file.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use tokio::sync::OnceCell;

use crate::{
    bench::Bench, figures::Figures, gateway::DIFFERENCES, machine::Machine, measure::Measurement, open_files, peer,
    recorded::Recorded,
};

/// Measure, print a table and write the results to a file.
#[derive(clap::Args)]
pub(crate) struct Run {
    /// What to measure; everything if not given.
    measurement: Option<Measurement>,
    /// Path of the binary to measure.
    #[arg(long)]
    rejoinder: PathBuf,
    /// Folder for results, logs and databases; must be on a disk, because commits in memory cost nothing.
    #[arg(long)]
    folder: PathBuf,
    /// Measure only hooks with 16 and 64 callers, beside the proxy, memory, and what is written to the disk.
    #[arg(long, conflicts_with_all = ["measurement", "peer"])]
    quick: bool,
    /// Compare with the results in this file, and fail if a ratio, memory or written bytes are worse than 0.9 of
    /// the medians.
    #[arg(long, value_name = "FILE", requires = "quick")]
    recorded: Option<PathBuf>,
    /// Print the machine and the table as Markdown.
    #[arg(long)]
    markdown: bool,
    /// Number of rounds; the median counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Number of cores that all processes share.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) cores: u32,
    /// Duration of each load in seconds.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Number of turns that wait in the store.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(2000..=10_000_000))]
    waiting: u64,
    /// Number of settled turns in the store.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    settled: u64,
    /// Number of open turns in the backlog on PostgreSQL.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    backlog_open: u64,
    /// Number of settled turns beside them.
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    backlog_settled: u64,
    /// Number of conversations of the waiting and the settled turns. At most 300 may wait in each (`queue.cap`).
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    conversations: u32,
    #[command(flatten)]
    peer: peer::Arguments,
}

/// Runs all rounds on so many cores.
///
/// # Errors
///
/// When something cannot be measured, or is worse than recorded.
pub(crate) async fn run(run: &Run, cores: usize) -> Result<()> {
    open_files::raise()?;
    let bench = run.bench()?;
    let machine = Machine::this(cores);
    std::fs::create_dir_all(&bench.folder)?;
    if let Some(recorded) = &run.recorded {
        return Recorded::read(recorded)?
            .check(async || run.measure(&bench, &machine, &[Measurement::Quick]).await)
            .await;
    }
    let mut measurements = match run.measurement {
        _ if run.quick => vec![Measurement::Quick],
        chosen => Measurement::chosen(chosen),
    };
    let mut not_run = Vec::new();
    if run.measurement.is_none() {
        let lacks = |measurement: &Measurement| Some(format!("`{measurement}` is not run: {}", measurement.lacks()?));
        not_run.extend(measurements.iter().filter_map(lacks));
        measurements.retain(|measurement| measurement.lacks().is_none());
    }
    run.measure(&bench, &machine, &measurements).await?;
    for line in not_run {
        println!("{line}");
    }
    Ok(())
}

impl Run {
    fn bench(&self) -> Result<Bench> {
        let peer = self.peer.endpoint()?;
        if peer.is_some() && !Measurement::chosen(self.measurement).contains(&Measurement::Hooks) {
            bail!("a peer is measured beside the hooks: leave the measurement out, or choose `hooks`");
        }
        let rejoinder = &self.rejoinder;
        Ok(Bench {
            rejoinder: rejoinder.canonicalize().with_context(|| format!("no binary at {}", rejoinder.display()))?,
            folder: self.folder.clone(),
            length: Duration::from_secs(self.seconds),
            waiting: self.waiting,
            settled: self.settled,
            backlog_open: self.backlog_open,
            backlog_settled: self.backlog_settled,
            conversations: self.conversations,
            peer,
            agent_port: self.peer.agent_port,
            settled_store: OnceCell::new(),
            backlog: OnceCell::new(),
        })
    }

    /// Measures all rounds, prints the medians and writes everything to a file.
    async fn measure(&self, bench: &Bench, machine: &Machine, measurements: &[Measurement]) -> Result<Figures> {
        let mut figures = Figures::default();
        for round in 1..=self.rounds {
            for measurement in measurements {
                let started = Instant::now();
                let samples =
                    measurement.round(bench).await.with_context(|| format!("cannot measure `{measurement}`"))?;
                figures.add(samples);
                eprintln!("round {round}/{}: {measurement} took {:.0} s", self.rounds, started.elapsed().as_secs_f64());
            }
        }
        let results = self.results(measurements);
        std::fs::write(&results, serde_json::to_vec_pretty(&figures.report(machine))?)?;
        if self.markdown {
            println!("{}", figures.markdown(machine, self.rounds));
        } else {
            println!("\nmedians; rounds: {}; {machine}\n\n{}", self.rounds, figures.table());
        }
        println!("differs from the defaults: {DIFFERENCES}");
        eprintln!("every round: {}", results.display());
        Ok(figures)
    }

    /// The file for the results.
    fn results(&self, measurements: &[Measurement]) -> PathBuf {
        let name = match measurements {
            [one] => one.to_string(),
            _ => "all".to_owned(),
        };
        self.folder.join(name).with_extension("json")
    }
}
