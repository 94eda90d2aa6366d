//! The file `node` in the data directory. The process that uses the folder has locked it, whatever its database is. Its id and the name
//! of its store are in it. So the next process knows which one is over, and ends its leases at once, and it notices another store.

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

/// How the line with the name of the store begins.
const STORE: &str = "store ";

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

    /// Writes down the id of this process and the name of its store, and ends in the store the processes that used the folder before.
    /// Returns the name of the former store, if it was another one.
    pub(crate) async fn take_over(&self, node: NodeId, store: &dyn NodeStore, name: &str) -> Option<String> {
        let mark = mark(&self.path);
        let own = mark.as_ref().map_or_else(String::new, |mark| format!("{node} {mark}\n"));
        let lines = format!("{own}{STORE}{name}\n");
        // Beside the ids before it, until these are ended.
        let text = match fs::read_to_string(&self.path).and_then(|text| self.add(&lines).map(|()| text)) {
            Ok(text) => text,
            Err(error) => {
                let path = self.path.display();
                warn!(%path, %error, "cannot write down the id of this process: the next one waits for its leases");
                return None;
            }
        };
        let other = text.lines().rev().find_map(|line| line.strip_prefix(STORE)).filter(|other| *other != name);
        let other = other.map(str::to_owned);
        for former in mark.iter().flat_map(|mark| former(&text, mark)) {
            if let Err(error) = store.leave(former).await {
                warn!(%former, %error, "cannot end the process before this one: its leases end by themselves");
                return other;
            }
            info!(%former, "the process that used the data directory before is over");
        }
        // If this fails, more is ended in vain at the next start.
        let _ = fs::write(&self.path, lines);
        other
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
        file.take_over(node, store, "one").await;
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
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    }

    #[tokio::test]
    async fn another_store_than_the_last_one_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let file = NodeFile::lock(&folder.path().join(NAME)).await.unwrap();
        let store = LeaseTable::new(Arc::new(SystemClock));

        for (number, (name, other)) in
            (1..).zip([("a b", None), ("a b", None), ("c", Some("a b")), ("c", None), ("a b", Some("c"))])
        {
            assert_eq!(file.take_over(id(number), &*store, name).await.as_deref(), other);
        }
    }

    #[tokio::test]
    async fn who_cannot_end_the_one_before_leaves_that_to_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let store = LeaseTable::new(Arc::new(SystemClock));
        follow(&path, id(1), &store).await;

        store.set_away(true);
        NodeFile::lock(&path).await.unwrap().take_over(id(2), &*store, "one").await;
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
