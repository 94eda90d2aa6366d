//! What a process has written to the disk, from Linux's `/proc`.

use std::fs;

use anyhow::{Context, Result};

/// The bytes that a process has caused to be written to the disk so far (`write_bytes`), with what the kernel has not flushed
/// yet. A page counts again when it is changed after a flush. Nothing counts on a file system in memory.
///
/// # Errors
///
/// When it has exited, or this is not Linux.
pub(crate) fn bytes_of(process: u32) -> Result<u64> {
    let path = format!("/proc/{process}/io");
    let io = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    parse(&io).with_context(|| format!("{path} does not contain the written bytes"))
}

fn parse(io: &str) -> Option<u64> {
    io.lines().find_map(|line| line.strip_prefix("write_bytes:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_reaches_the_disk_counts() {
        let io = "rchar: 10\nwchar: 20\nread_bytes: 30\nwrite_bytes: 40960\ncancelled_write_bytes: 50\n";
        assert_eq!(parse(io), Some(40_960));
        assert_eq!(parse("rchar: 10\nwchar: 20\ncancelled_write_bytes: 50\n"), None);
    }
}
