//! The disk of a file.

use std::{io, path::Path};

use rustix::fs::statvfs;

/// How many bytes may still be written to the disk of a file or folder.
///
/// # Errors
/// When there is no such file, or the system does not tell.
pub(crate) fn free_space(path: &Path) -> io::Result<u64> {
    let disk = statvfs(path)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}
