//! The lock that admits one writing process to a database, whatever name each uses for it. Without an SQLite database, a file of the data
//! directory is locked in the same way.

use std::{
    collections::BTreeSet,
    fs::{self, File, Metadata, Permissions, TryLockError},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tracing::{info, warn};

use super::error::OpenError;

/// The mode of the files. SQLite gives the log the mode of the database.
const PRIVATE: u32 = 0o600;

/// How long to wait before the second try: [`is_in_use`] in another process holds the lock for a moment.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Whether the database file itself is locked. Elsewhere than on Linux this lock (`flock`) and SQLite's own (`fcntl`)
/// exclude each other, even in one process: there a file beside the database is locked.
const LOCKS_DATABASE: bool = cfg!(target_os = "linux");

/// The databases that this process has locked. It must not open such a file a second time: closing any descriptor of a
/// file releases SQLite's locks on it, which belong to the process.
static HELD: Mutex<BTreeSet<FileId>> = Mutex::new(BTreeSet::new());

fn held() -> MutexGuard<'static, BTreeSet<FileId>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The identity of a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// The lock on a database. It is taken before SQLite opens the file, and released after SQLite has closed it.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    id: FileId,
    _file: File,
}

impl Lock {
    /// Locks the file at `path`, and creates an empty one if there is none.
    ///
    /// # Errors
    /// When another process has locked it, or it cannot be opened.
    pub async fn acquire(path: &Path) -> Result<Self, OpenError> {
        match Self::take(path) {
            Err(OpenError::InUse { .. }) => {
                tokio::time::sleep(RETRY_PAUSE).await;
                Self::take(path)
            }
            result => result,
        }
    }

    /// The same at once. [`is_in_use`] in another process may be in the way.
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
        let in_use = || OpenError::InUse { path: path.to_owned() };
        let cannot_lock = |source| OpenError::Lock { path: path.to_owned(), source };
        let mut held = held();
        if path.metadata().is_ok_and(|metadata| held.contains(&FileId::of(&metadata))) {
            return Err(in_use());
        }
        let database = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(PRIVATE)
            .open(path)
            .map_err(cannot_lock)?;
        let metadata = database.metadata().map_err(cannot_lock)?;
        // SQLite finds the log by the name of the database: every process must use the same name.
        let resolved = path.canonicalize().map_err(cannot_lock)?;
        let file = if LOCKS_DATABASE {
            database
        } else {
            let beside = beside(&resolved, ".lock");
            File::options().create(true).truncate(false).write(true).mode(PRIVATE).open(beside).map_err(cannot_lock)?
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use()),
            Err(TryLockError::Error(source)) => return Err(cannot_lock(source)),
        }
        if metadata.nlink() > 1 {
            return Err(OpenError::HardLinked { path: resolved, names: metadata.nlink() });
        }
        if is_mounted(&resolved) {
            return Err(OpenError::Mounted { path: resolved });
        }
        for ending in ["", "-wal", "-shm", ".lock"] {
            make_private(&self::beside(&resolved, ending));
        }
        let id = FileId::of(&metadata);
        held.insert(id);
        Ok(Self { path: resolved, id, _file: file })
    }

    /// The database's path, without symbolic links.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path still leads to the locked file. If not, the file was deleted, moved or replaced: what is written to
    /// it is lost when it is closed.
    pub(super) fn is_in_place(&self) -> bool {
        self.path.metadata().is_ok_and(|metadata| FileId::of(&metadata) == self.id)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        held().remove(&self.id);
    }
}

/// Takes the access of other users to an existing file away. Opens no file: see [`HELD`].
fn make_private(path: &Path) {
    let Ok(mode) = path.metadata().map(|metadata| metadata.permissions().mode() & 0o777) else { return };
    if mode & !PRIVATE == 0 {
        return;
    }
    let (shown, was) = (path.display(), format!("{mode:o}"));
    match fs::set_permissions(path, Permissions::from_mode(mode & PRIVATE)) {
        Ok(()) => info!(path = %shown, was, "other users of this machine had access; now only its owner has"),
        Err(error) => warn!(path = %shown, mode = was, %error, "other users of this machine have access"),
    }
}

/// Whether something is mounted at exactly this file, as with `docker run -v ./rejoinder.db:/data/rejoinder.db`.
#[cfg(target_os = "linux")]
fn is_mounted(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

    // A system that does not know it says no.
    statx(CWD, path, AtFlags::empty(), StatxFlags::empty())
        .is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(not(target_os = "linux"))]
const fn is_mounted(_path: &Path) -> bool {
    false
}

/// Whether a process has the database open for writing. It creates and changes no file.
///
/// # Errors
/// When its lock cannot be checked.
pub fn is_in_use(path: &Path) -> io::Result<bool> {
    match is_locked(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        result => result,
    }
}

fn is_locked(path: &Path) -> io::Result<bool> {
    let held = held();
    let path = path.canonicalize()?;
    if held.contains(&FileId::of(&path.metadata()?)) {
        return Ok(true);
    }
    let file = File::open(if LOCKS_DATABASE { path } else { beside(&path, ".lock") })?;
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// A database's path with `ending` appended to its file name: where SQLite keeps its log (`-wal`), for example.
#[must_use]
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    PathBuf::from(path)
}
