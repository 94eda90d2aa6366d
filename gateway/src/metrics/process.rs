//! What Linux says about this process, by the names that Prometheus' own libraries use.

use procfs::{
    ProcResult, WithCurrentSystemInfo,
    process::{LimitValue, Process},
};

/// The metrics of the process with their values, without those that have no limit or cannot be read.
#[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
pub(super) fn values() -> ProcResult<Vec<(&'static str, f64)>> {
    let process = Process::myself()?;
    let (stat, limits, open) = (process.stat()?, process.limits()?, process.fd_count()?);
    let seconds = |ticks: u64| ticks as f64 / procfs::ticks_per_second() as f64;
    let limit = |limit: LimitValue| match limit {
        LimitValue::Value(most) => Some(most as f64),
        LimitValue::Unlimited => None,
    };
    let values = [
        ("process_cpu_seconds_total", Some(seconds(stat.utime + stat.stime))),
        ("process_open_fds", Some(open as f64)),
        ("process_max_fds", limit(limits.max_open_files.soft_limit)),
        ("process_resident_memory_bytes", Some(stat.rss_bytes().get() as f64)),
        ("process_virtual_memory_bytes", Some(stat.vsize as f64)),
        ("process_virtual_memory_max_bytes", limit(limits.max_address_space.soft_limit)),
        // A service that sees only processes is not told when the machine started.
        ("process_start_time_seconds", procfs::boot_time_secs().ok().map(|boot| boot as f64 + seconds(stat.starttime))),
        ("process_threads", Some(stat.num_threads as f64)),
    ];
    Ok(values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}
