//! The disk of a file.

use std::{io, path::Path};

use rustix::fs::statvfs;

/// The room on a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// How many bytes may still be written.
    pub(crate) free: u64,
    /// How many bytes it holds.
    pub(crate) size: u64,
}

impl Room {
    /// The room on the disk of a file or folder.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let disk = statvfs(path)?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Ok(Self { free: bytes(disk.f_bavail), size: bytes(disk.f_blocks) })
    }
}
