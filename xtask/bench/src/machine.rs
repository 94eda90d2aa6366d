//! The machine that measures.

use std::{fmt, fs};

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// The number of cores that all processes share.
    cores: usize,
    /// The model of the CPU, as Linux names it.
    cpu: String,
    memory_gib: f64,
}

impl Machine {
    /// This machine, of which so many cores are used.
    pub(crate) fn this(cores: usize) -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let cpu = value(&read("/proc/cpuinfo"), "model name").unwrap_or("unknown CPU").to_owned();
        let kib = value(&read("/proc/meminfo"), "MemTotal").and_then(|value| value.strip_suffix(" kB")?.parse().ok());
        Self { cores, cpu, memory_gib: kib.unwrap_or(0.0) / f64::from(1 << 20) }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} cores used, {:.0} GiB of memory", self.cpu, self.cores, self.memory_gib)
    }
}

/// The value of the first line `key : value`.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find_map(|(name, value)| (name.trim() == key).then(|| value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_key() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC 9999: fast\nmodel name\t: another\n";
        assert_eq!(value(text, "model name"), Some("AMD EPYC 9999: fast"));
        assert_eq!(value("MemTotal:       16384 kB\n", "MemTotal"), Some("16384 kB"));
        assert_eq!(value("", "MemTotal"), None);
    }
}
