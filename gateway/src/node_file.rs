//! The file `node` in the data directory of a gateway whose database is a server. The process that uses the folder has locked it, and
//! its id is in it. So the next process knows which one is over, and ends its leases at once.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rejoinder_core::{NodeId, store::NodeStore};
use rejoinder_store::{Lock, OpenError};
use tracing::{info, warn};

pub(crate) const NAME: &str = "node";

/// The locked file.
#[derive(Debug)]
pub(crate) struct NodeFile {
    path: PathBuf,
    _lock: Lock,
}

impl NodeFile {
    /// # Errors
    /// When another process uses the folder, or it cannot be written.
    pub(crate) async fn lock(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { _lock: Lock::acquire(path).await?, path: path.to_owned() })
    }

    /// Writes down the id of this process, and ends those in the store that used the folder before.
    pub(crate) async fn take_over(&self, node: NodeId, store: &dyn NodeStore) {
        let Some(mark) = mark(&self.path) else { return };
        let line = format!("{node} {mark}\n");
        // Beside the ids before it, until these are ended.
        let former = match fs::read_to_string(&self.path).and_then(|text| self.add(&line).map(|()| text)) {
            Ok(text) => former(&text, &mark),
            Err(error) => {
                let path = self.path.display();
                warn!(%path, %error, "cannot write down the id of this process: the next one waits for its leases");
                return;
            }
        };
        for former in former {
            if let Err(error) = store.leave(former).await {
                warn!(%former, %error, "cannot end the process before this one: its leases end by themselves");
                return;
            }
            info!(%former, "the process that used the data directory before is over");
        }
        // If this fails, more is ended in vain at the next start.
        let _ = fs::write(&self.path, line);
    }

    fn add(&self, line: &str) -> io::Result<()> {
        File::options().append(true).open(&self.path)?.write_all(line.as_bytes())
    }
}

/// The processes that wrote their ids into this very file, on this machine, since it was started. They are over, because the lock is free.
/// Of others that is not certain: the folder may be a copy, or on a disk of several machines.
fn former(text: &str, mark: &str) -> Vec<NodeId> {
    let ids = text.lines().filter_map(|line| line.split_once(' ').filter(|(_, written)| *written == mark));
    ids.filter_map(|(id, _)| id.parse().ok()).collect()
}

/// Names the file and the start of this machine; `None` on systems that do not name theirs.
fn mark(path: &Path) -> Option<String> {
    let start = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let file = path.metadata().ok()?;
    Some(format!("{} {}:{}", start.trim(), file.dev(), file.ino()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::Arc;

    use rejoinder_core::{SystemClock, conformance::leases::LeaseTable, store::LeaseName};

    use super::*;

    fn id(number: u128) -> NodeId {
        uuid::Uuid::from_u128(number).into()
    }

    /// A process takes over the folder, and then leases; returns who has them.
    async fn follow(path: &Path, node: NodeId, store: &LeaseTable) -> Option<NodeId> {
        let file = NodeFile::lock(path).await.unwrap();
        file.take_over(node, store).await;
        store.take_leases(node, &[LeaseName::Housekeeper]).await.unwrap();
        store.holder(&LeaseName::Housekeeper)
    }

    #[tokio::test]
    async fn the_next_process_has_the_leases_at_once_and_that_of_a_copied_folder_has_not() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join(NAME), folder.path().join("copy"));
        let store = LeaseTable::new(Arc::new(SystemClock));

        assert_eq!(follow(&path, id(1), &store).await, Some(id(1)));
        assert_eq!(follow(&path, id(2), &store).await, Some(id(2)));
        fs::copy(&path, &copy).unwrap();
        assert_eq!(follow(&copy, id(3), &store).await, Some(id(2)));
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
    }

    #[tokio::test]
    async fn who_cannot_end_the_one_before_leaves_that_to_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let store = LeaseTable::new(Arc::new(SystemClock));
        follow(&path, id(1), &store).await;

        store.set_away(true);
        NodeFile::lock(&path).await.unwrap().take_over(id(2), &*store).await;
        store.set_away(false);

        assert_eq!(follow(&path, id(3), &store).await, Some(id(3)));
    }

    #[tokio::test]
    async fn a_folder_is_used_by_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let first = NodeFile::lock(&path).await.unwrap();

        let second = NodeFile::lock(&path).await;
        let is_in_use = rejoinder_store::is_in_use(&path).unwrap();
        drop(first);

        assert!(matches!(&second, Err(OpenError::InUse { .. })), "{second:?}");
        assert!(is_in_use && !rejoinder_store::is_in_use(&path).unwrap());
    }
}
