//! The configuration that a data directory was last used with. Whoever starts in another folder gets the same gateway.

use std::{
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rejoinder_config::ConfigSource;

/// The file in the data directory with the absolute path of the configuration.
const FILE: &str = "config-path";

/// The path of the configuration, if there was one. It need not exist any more.
pub(super) fn read(data_dir: &Path) -> Option<PathBuf> {
    let path = std::fs::read(data_dir.join(FILE)).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(&path))).filter(|path| path.is_absolute())
}

/// # Errors
/// When it cannot be written.
pub(super) fn write(data_dir: &Path, source: &ConfigSource) -> io::Result<()> {
    let file = data_dir.join(FILE);
    match source.file() {
        Some(path) => std::fs::write(file, std::path::absolute(path)?.as_os_str().as_bytes()),
        None => match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
    }
}

/// The configuration that the data directory was last used with, if `source` is another one.
pub(super) fn other(data_dir: &Path, source: &ConfigSource) -> Option<PathBuf> {
    let is_same = |path: &PathBuf| source.file().is_some_and(|file| same_file(path, file));
    read(data_dir).filter(|path| !is_same(path))
}

fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    real(one) == real(other)
}
