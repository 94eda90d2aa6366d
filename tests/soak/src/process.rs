//! The gateway's process: killed again and again, once on a full disk, and measured.

use std::{
    fs,
    ops::Range,
    path::Path,
    process::Command,
    slice,
    time::{Duration, Instant},
};

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use rejoinder_core::{Clock as _, SystemClock};
use rejoinder_tests::Gateway;
use serde::Serialize;
use tokio::time::{sleep, timeout};

use crate::rest::Subject;

/// How often memory and files are measured.
const SAMPLES: Duration = Duration::from_secs(10);
/// How long the disk is full.
const FULL: Duration = Duration::from_secs(5);
/// How long the process may take to end after `SIGTERM`. Shorter than the patience of the tests, which panic.
const SHUTDOWN: Duration = Duration::from_secs(20);
/// How long, in milliseconds, it may take until what was told is noted.
const NOTING: i64 = 2_000;
/// How likely the process is asked to end, and not killed, in percent.
const ASKED: u32 = 15;

/// Memory of the process and size of its files at one moment.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Sample {
    /// Seconds since the start of the run.
    pub(crate) at: u64,
    /// Seconds since the start of the process.
    pub(crate) age: u64,
    pub(crate) memory_mib: f64,
    /// The database.
    pub(crate) database_mib: f64,
    /// The database's write-ahead log.
    pub(crate) wal_mib: f64,
}

/// What was done to the process.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Treatment {
    pub(crate) kills: u32,
    /// `SIGTERM`, each followed by a start.
    pub(crate) restarts: u32,
    /// Restarts in which the process did not end by itself.
    pub(crate) stuck: u32,
    /// How often the process ended without being asked.
    pub(crate) crashes: u32,
    /// Whether the disk was full for a while; `None` where that cannot be arranged.
    pub(crate) full_disk: Option<bool>,
    pub(crate) samples: Vec<Sample>,
    /// When it may have told something that it had not noted when it was killed or asked to end, in milliseconds since 1970.
    #[serde(skip)]
    pub(crate) in_doubt: Vec<Range<i64>>,
}

/// The process and what was done to it.
pub(crate) struct Process {
    pub(crate) gateway: Gateway,
    pub(crate) treatment: Treatment,
    random: StdRng,
    /// About how long it lives; `None`: as long as the run.
    life: Option<Duration>,
    /// When the disk was full, in milliseconds since 1970: nothing can be noted then.
    full: Range<i64>,
    begun: Instant,
    born: Instant,
}

impl Process {
    /// Starts it and waits until it is ready, while everything around it still works.
    pub(crate) async fn start(mut gateway: Gateway, seed: u64, life: Option<Duration>) -> Self {
        gateway.restart().await;
        let now = Instant::now();
        let treatment = Treatment { full_disk: can_fill_disk().then_some(false), ..Treatment::default() };
        Self { gateway, treatment, random: StdRng::seed_from_u64(seed), life, full: 0..0, begun: now, born: now }
    }

    /// Kills, restarts and measures it until `end`. The disk is full for a while from `full`.
    pub(crate) async fn treat(&mut self, full: Instant, end: Instant) {
        let (mut death, mut sample) = (self.next_death(), Instant::now() + SAMPLES);
        let mut freed = None;
        while Instant::now() < end {
            sleep(Duration::from_millis(100)).await;
            self.revive();
            let now = Instant::now();
            if now >= sample {
                sample += SAMPLES;
                self.measure();
            }
            match freed {
                None if self.treatment.full_disk == Some(false) && now >= full => {
                    self.gateway.fill_disk();
                    self.full = SystemClock.now().as_millis()..i64::MAX;
                    self.treatment.full_disk = Some(true);
                    freed = Some(now + FULL);
                }
                Some(at) if now >= at => {
                    self.gateway.free_disk();
                    self.full.end = SystemClock.now().as_millis();
                    freed = None;
                }
                None if death.is_some_and(|at| now >= at) => {
                    self.end_life().await;
                    death = self.next_death();
                }
                _ => {}
            }
        }
        if freed.is_some() {
            self.gateway.free_disk();
        }
    }

    /// Measures memory and files now.
    pub(crate) fn measure(&mut self) {
        let Some(memory_mib) = self.gateway.process_id().and_then(resident_mib) else { return };
        let data = self.gateway.data();
        self.treatment.samples.push(Sample {
            at: self.begun.elapsed().as_secs(),
            age: self.born.elapsed().as_secs(),
            memory_mib,
            database_mib: size_mib(&data.join("rejoinder.db")),
            wal_mib: size_mib(&data.join("rejoinder.db-wal")),
        });
    }

    fn next_death(&mut self) -> Option<Instant> {
        let life = self.life?;
        Some(Instant::now() + life.mul_f64(self.random.random_range(0.75..1.25)))
    }

    async fn end_life(&mut self) {
        let now = SystemClock.now().as_millis();
        let since = if self.full.contains(&(now - NOTING)) { self.full.start } else { now };
        self.treatment.in_doubt.push(since - NOTING..now + 1);
        if self.random.random_range(0..100) < ASKED {
            self.treatment.restarts += 1;
            if timeout(SHUTDOWN, self.gateway.stop()).await.is_err() {
                eprintln!("the gateway did not end within {SHUTDOWN:?}");
                self.treatment.stuck += 1;
                self.gateway.kill();
            }
        } else {
            self.treatment.kills += 1;
            self.gateway.kill();
        }
        self.spawn();
    }

    fn spawn(&mut self) {
        self.gateway.spawn(&[]);
        self.born = Instant::now();
    }
}

impl Subject for Process {
    fn revive(&mut self) {
        if let Some(status) = self.gateway.has_ended() {
            eprintln!("the gateway ended by itself, with {status}");
            self.treatment.crashes += 1;
            self.spawn();
        }
    }

    fn gateways(&self) -> &[Gateway] {
        slice::from_ref(&self.gateway)
    }
}

/// Whether the machine has the program that limits a running process.
fn can_fill_disk() -> bool {
    Command::new("prlimit").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The resident memory of a process, from Linux's `/proc`.
fn resident_mib(process: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib / 1024.0)
}

#[expect(clippy::cast_precision_loss, reason = "files are smaller than 2^52 bytes")]
fn size_mib(file: &Path) -> f64 {
    fs::metadata(file).map_or(0.0, |file| file.len() as f64 / 1024.0 / 1024.0)
}
