//! The CPU time of a process, from Linux's `/proc`.

use std::{fs, time::Duration};

use anyhow::{Context, Result};

/// The unit of times in `/proc/PID/stat` (`USER_HZ`): 100 to a second on all common architectures.
const TICK: Duration = Duration::from_millis(10);

/// The CPU time that all threads of a process have used, in user and kernel mode.
///
/// # Errors
///
/// When it has exited, or this is not Linux.
pub(crate) fn time_of(process: u32) -> Result<Duration> {
    Ok(read(process)?.0)
}

/// The CPU time of the processes that a process has started and waited for, and of theirs.
///
/// # Errors
///
/// As [`time_of`].
pub(crate) fn time_of_children(process: u32) -> Result<Duration> {
    Ok(read(process)?.1)
}

fn read(process: u32) -> Result<(Duration, Duration)> {
    let path = format!("/proc/{process}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let (own, children) = parse(&stat).with_context(|| format!("{path} does not contain the CPU time"))?;
    Ok((TICK * own, TICK * children))
}

/// The sums of `utime` and `stime`, and of `cutime` and `cstime`: fields 14 to 17. The second field, the program's name in
/// parentheses, may contain spaces and parentheses.
fn parse(stat: &str) -> Option<(u32, u32)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11);
    let mut ticks = || times.next()?.parse::<u32>().ok();
    Some((ticks()?.checked_add(ticks()?)?, ticks()?.checked_add(ticks()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_kernel_time_are_summed() {
        let stat = "4242 (a (strange) name) S 1 4242 4242 0 -1 4194304 900 0 3 0 250 17 5 6 20 0 12 0 88 1000 200";
        assert_eq!(parse(stat), Some((267, 11)));
        assert_eq!(parse("4242 (cut off) S 1"), None);
    }
}
