//! When and where a run took place.

use std::fs;

use rejoinder_core::{Clock as _, SystemClock};
use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// `2026-05-01`.
    pub(crate) date: String,
    pub(crate) cores: usize,
    #[serde(rename = "machine_memory_gib")]
    pub(crate) memory_gib: f64,
}

impl Machine {
    /// Today, on this machine.
    pub(crate) fn look() -> Self {
        let date = jiff::Timestamp::from_millisecond(SystemClock.now().as_millis())
            .map(|now| now.strftime("%F").to_string())
            .unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(1, Into::into);
        Self { date, cores, memory_gib: memory_gib() }
    }
}

fn memory_gib() -> f64 {
    let information = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = information.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<f64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    kib.unwrap_or_default() / 1024.0 / 1024.0
}
