//! Folders of unfinished files. What a killed process leaves is removed by the next one.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::symlink,
    path::{Path, PathBuf, absolute},
};

use tempfile::TempDir;
use tracing::{debug, warn};

/// How the names of the folders begin; six letters and digits follow.
pub(super) const OF_BACKUPS: &str = ".rejoinder-backup-";
pub(super) const OF_RESTORES: &str = ".rejoinder-restore-";

/// A folder for unfinished files, removed on drop. It is locked, so that no other process removes it.
pub(super) struct Staging {
    folder: TempDir,
    lock: File,
    /// A link to it from a folder that the gateway sweeps.
    link: Option<Link>,
}

struct Link(PathBuf);

impl Drop for Link {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Staging {
    pub(super) fn new(parent: &Path, prefix: &str) -> io::Result<Self> {
        loop {
            let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(parent)?;
            // Another process may sweep between the two.
            if let Some(lock) = lock(folder.path())? {
                return Ok(Self { folder, lock, link: None });
            }
        }
    }

    /// Links to it from `folder`, so that a sweep there finds it.
    pub(super) fn link_from(&mut self, folder: &Path) {
        let (Ok(path), Some(name)) = (absolute(self.path()), self.path().file_name()) else { return };
        let link = folder.join(name);
        match symlink(path, &link) {
            Ok(()) => self.link = Some(Link(link)),
            // It is in that folder itself, or the folder cannot be written.
            Err(error) => debug!(%error, link = %link.display(), "the unfinished backup is linked from nowhere"),
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Gives it a name under which it stays. Returns its lock.
    pub(super) fn keep_as(self, path: &Path) -> io::Result<File> {
        fs::rename(self.folder.path(), path)?;
        // Its old name is gone.
        let _ = self.folder.keep();
        Ok(self.lock)
    }
}

/// Locks a folder; `None` if another process holds or has removed it.
pub(super) fn lock(folder: &Path) -> io::Result<Option<File>> {
    let opened = match File::open(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    match opened.try_lock() {
        Ok(()) => Ok(folder.exists().then_some(opened)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes what killed processes have left in `folder`, and what links there lead to.
pub(crate) fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if is_ours(&path)
            && let Err(error) = sweep_one(&path)
        {
            warn!(path = %path.display(), %error, "cannot remove the unfinished files of a backup or a restore");
        }
    }
}

fn is_ours(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let id = name.strip_prefix(OF_BACKUPS).or_else(|| name.strip_prefix(OF_RESTORES));
    id.is_some_and(|id| id.len() == 6 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn sweep_one(path: &Path) -> io::Result<()> {
    let Ok(elsewhere) = fs::read_link(path) else { return remove_abandoned(path) };
    if is_ours(&elsewhere) {
        remove_abandoned(&elsewhere)?;
    }
    if elsewhere.exists() { Ok(()) } else { fs::remove_file(path) }
}

/// Removes a folder that no process holds.
pub(super) fn remove_abandoned(folder: &Path) -> io::Result<()> {
    if !folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Ok(());
    }
    match lock(folder)? {
        Some(_lock) => fs::remove_dir_all(folder),
        None => Ok(()),
    }
}
