//! The resident memory of a process, from Linux's `/proc`.

use std::fs;

use anyhow::{Context, Result};

/// Resident memory in MiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Memory {
    /// The current value (`VmRSS`).
    pub(crate) now: f64,
    /// The maximum since the process started (`VmHWM`).
    pub(crate) peak: f64,
}

impl Memory {
    /// Reads the memory of a process.
    ///
    /// # Errors
    ///
    /// When it has exited, or this is not Linux.
    pub(crate) fn of(process: u32) -> Result<Self> {
        let path = format!("/proc/{process}/status");
        let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        Self::parse(&status).with_context(|| format!("{path} does not contain the resident memory"))
    }

    fn parse(status: &str) -> Option<Self> {
        let mib = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            let kib: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
            Some(kib / 1024.0)
        };
        Some(Self { now: mib("VmRSS:")?, peak: mib("VmHWM:")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_in_mib() {
        let status = "Name:\trejoinder\nVmPeak:\t  9999 kB\nVmHWM:\t    6144 kB\nVmRSS:\t    5120 kB\n";
        assert_eq!(Memory::parse(status), Some(Memory { now: 5.0, peak: 6.0 }));
        assert_eq!(Memory::parse("Name:\tkthreadd\n"), None);
    }
}
