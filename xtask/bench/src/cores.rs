//! Restricts all processes to the same few cores.

use std::{env, fs, os::unix::process::CommandExt, process::Command, thread};

use anyhow::{Context, Result, bail};

/// Set in the process that `taskset` starts, so that it does not start `taskset` again.
const RESTARTED: &str = "REJOINDER_BENCH_HELD";

/// Restricts this process and its children to `wanted` cores, by running it again under `taskset` if the machine has
/// more. Returns the number of cores.
///
/// # Errors
///
/// When `taskset` (util-linux) is needed and cannot be started.
pub(crate) fn restrict_to(wanted: u32) -> Result<usize> {
    let available = thread::available_parallelism()?.get();
    let wanted = usize::try_from(wanted)?;
    if available <= wanted {
        return Ok(available);
    }
    if env::var_os(RESTARTED).is_some() {
        bail!("taskset left {available} cores, not {wanted}");
    }
    let status = fs::read_to_string("/proc/self/status").context("cannot read the allowed cores")?;
    let allowed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .and_then(|list| first(list.trim(), wanted))
        .context("/proc/self/status does not list enough allowed cores")?;
    let mut taskset = Command::new("taskset");
    taskset.args(["--cpu-list", &allowed]).arg(env::current_exe()?).args(env::args_os().skip(1)).env(RESTARTED, "1");
    Err(taskset.exec()).context("cannot restrict the bench to fewer cores: starting `taskset` (util-linux) failed")
}

/// The first `wanted` cores of a list: two of `0-3,8` are `0,1`.
fn first(list: &str, wanted: usize) -> Option<String> {
    let mut cores = Vec::new();
    for part in list.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        cores.extend(from.parse::<u32>().ok()?..=to.parse().ok()?);
    }
    let cores: Vec<_> = cores.iter().take(wanted).map(ToString::to_string).collect();
    (cores.len() == wanted).then(|| cores.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cores_of_a_list_are_taken() {
        assert_eq!(first("0-3,8", 2).as_deref(), Some("0,1"));
        assert_eq!(first("1,4-5", 2).as_deref(), Some("1,4"));
        assert_eq!(first("0", 2), None);
        assert_eq!(first("all", 2), None);
    }
}
