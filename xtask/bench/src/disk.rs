//! How long the disk takes to flush: what every commit of a durable store waits for at least once.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

/// The name of the figure.
pub(crate) const FLUSH: &str = "flush of 4 KiB to the disk, median";

/// A page of the store's log.
const PAGE: [u8; 4096] = [0x5a; 4096];

const FLUSHES: usize = 200;

/// The median time of appending 4 KiB to a file in `folder` and flushing it (`fdatasync`).
///
/// # Errors
///
/// When the folder is not writable.
pub(crate) fn flush_time(folder: &Path) -> Result<Duration> {
    let measure = || -> io::Result<_> {
        let mut file = tempfile::tempfile_in(folder)?;
        let mut times = (0..FLUSHES).map(|_| append(&mut file)).collect::<io::Result<Vec<_>>>()?;
        times.sort();
        Ok(times[FLUSHES / 2])
    };
    measure().with_context(|| format!("cannot write to {}", folder.display()))
}

fn append(file: &mut File) -> io::Result<Duration> {
    let started = Instant::now();
    file.write_all(&PAGE)?;
    file.sync_data()?;
    Ok(started.elapsed())
}
