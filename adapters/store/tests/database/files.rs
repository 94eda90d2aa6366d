//! The files of a database: who may open them, under which name, of which version, and what closing leaves.

use std::{
    fs::{DirEntry, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
    sync::Arc,
    time::Duration,
};

use rejoinder_core::{
    StoreError,
    store::{InboxStore, OperatorStore, StoreState},
};
use rejoinder_store::{OpenError, OpenOptions, SqliteStore, is_in_use};
use sqlx::Connection;

use crate::common::{Database, accept, elsewhere};

#[tokio::test]
async fn a_second_process_is_kept_out_until_the_first_has_closed() {
    let database = Database::new().await;
    let error = SqliteStore::open(OpenOptions::new(&database.path)).await.expect_err("it is in use");
    assert!(matches!(error, OpenError::InUse { .. }));
    assert!(error.to_string().contains(&database.path.display().to_string()), "{error}");

    database.store.close().await;
    let store = SqliteStore::open(OpenOptions::new(&database.path)).await.expect("it is free again");
    store.probe().await.expect("it writes");
}

/// The modes of the files in a folder, by name.
fn modes(folder: &Path) -> Vec<(String, u32)> {
    let entries = folder.read_dir().expect("the folder is read").flatten();
    let mode = |entry: &DirEntry| entry.metadata().expect("it is there").permissions().mode() & 0o777;
    let mut modes: Vec<_> =
        entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), mode(&entry))).collect();
    modes.sort();
    modes
}

#[tokio::test]
async fn only_their_owner_reads_the_files_of_a_new_database() {
    rustix::process::umask(rustix::fs::Mode::empty());
    let folder = tempfile::tempdir().expect("a directory is made");
    let path = folder.path().join("new/rejoinder.db");

    let store = SqliteStore::open(OpenOptions::new(&path)).await.expect("it opens");
    store.probe().await.expect("it writes");

    let private = ["rejoinder.db", "rejoinder.db-shm", "rejoinder.db-wal"].map(|name| (name.to_owned(), 0o600));
    assert_eq!(modes(&folder.path().join("new")), private);
    assert_eq!(modes(folder.path()), [("new".to_owned(), 0o700)]);
}

#[tokio::test]
async fn files_that_others_could_read_are_taken_from_them() {
    let database = Database::new().await;
    database.store.probe().await.expect("it writes");
    let folder = database.path.parent().expect("it is in a folder");
    let copy = tempfile::tempdir().expect("a directory is made");
    // As after a crash: with its log.
    for (name, _) in modes(folder) {
        let to = copy.path().join(&name);
        std::fs::copy(folder.join(&name), &to).expect("it is copied");
        std::fs::set_permissions(&to, Permissions::from_mode(0o664)).expect("it is made readable");
    }

    let store = SqliteStore::open(OpenOptions::new(copy.path().join("rejoinder.db"))).await.expect("it opens");
    store.probe().await.expect("it writes");

    let modes = modes(copy.path());
    assert!(modes.len() == 3 && modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");
}

/// Set in the child processes of the next test: the name under which the database is opened.
const OTHER_NAME: &str = "REJOINDER_TEST_OTHER_NAME";

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_second_process_is_kept_out_under_any_name_of_the_file() {
    if let Some(path) = std::env::var_os(OTHER_NAME) {
        let opened = SqliteStore::open(OpenOptions::new(path)).await;
        assert!(matches!(opened, Err(OpenError::InUse { .. })), "{opened:?}");
        return;
    }
    let database = Database::new().await;
    let folder = database.path.parent().expect("it is in a folder");
    let elsewhere = tempfile::tempdir_in(folder).expect("a directory is made");
    let other = |name| elsewhere.path().join(name);
    std::os::unix::fs::symlink(&database.path, other("link.db")).expect("a link is made");
    std::os::unix::fs::symlink(folder, other("folder")).expect("a link is made");
    std::fs::hard_link(&database.path, other("hard.db")).expect("a link is made");
    // A person who tidies up.
    for file in folder.read_dir().expect("it is read").flatten().map(|file| file.path()) {
        if file.extension().is_some_and(|extension| extension == "lock") {
            std::fs::remove_file(file).expect("it is removed");
        }
    }

    for path in [database.path.clone(), other("link.db"), other("folder/rejoinder.db"), other("hard.db")] {
        let child = Command::new(std::env::current_exe().expect("a test knows its file"))
            .args(["--exact", "files::a_second_process_is_kept_out_under_any_name_of_the_file", "--nocapture"])
            .env(OTHER_NAME, &path)
            .output()
            .expect("the test starts");
        assert!(child.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&child.stderr));
        assert!(is_in_use(&path).expect("it is seen"), "{}", path.display());
        database.store.probe().await.expect("it writes");
    }
}

#[tokio::test]
async fn a_database_with_two_names_is_refused() {
    let database = Database::new().await;
    database.store.close().await;
    let other = database.path.with_extension("other");
    std::fs::hard_link(&database.path, &other).expect("a link is made");

    let error = SqliteStore::open(OpenOptions::new(&database.path)).await.expect_err("it has two names");
    std::fs::remove_file(&other).expect("it is removed");
    let opened = SqliteStore::open(OpenOptions::new(&database.path)).await;

    assert!(matches!(error, OpenError::HardLinked { names: 2, .. }), "{error:?}");
    opened.expect("it has one name again");
}

/// Set in the child process of the next test: the mounted file.
const MOUNTED: &str = "REJOINDER_TEST_MOUNTED";

/// As with `docker run -v ./rejoinder.db:/data/rejoinder.db`: the log would be lost with the container.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_database_that_is_mounted_as_a_single_file_is_refused() {
    if let Some(path) = std::env::var_os(MOUNTED) {
        let opened = SqliteStore::open(OpenOptions::new(path)).await;
        assert!(matches!(opened, Err(OpenError::Mounted { .. })), "{opened:?}");
        return;
    }
    let may_mount = Command::new("unshare").args(["-Urm", "true"]).status().is_ok_and(|status| status.success());
    if !may_mount {
        return eprintln!("skipped: this system lets nobody mount in a namespace of their own");
    }
    let database = Database::new().await;
    database.store.close().await;
    let mounted = database.path.with_extension("mounted");
    std::fs::write(&mounted, "").expect("it is written");
    let child = Command::new("unshare")
        .args(["-Urm", "sh", "-c", "mount --bind \"$1\" \"$REJOINDER_TEST_MOUNTED\" && shift && exec \"$@\"", "sh"])
        .arg(&database.path)
        .arg(std::env::current_exe().expect("a test knows its file"))
        .args(["--exact", "files::a_database_that_is_mounted_as_a_single_file_is_refused", "--nocapture"])
        .env(MOUNTED, &mounted)
        .output()
        .expect("the shell starts");
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
}

#[tokio::test]
async fn whoever_looks_sees_whether_it_is_held_and_leaves_nothing_behind() {
    let database = Database::new().await;
    let folder = database.path.parent().expect("it is in a folder");
    let files = || {
        let mut files: Vec<_> = folder.read_dir().expect("it is read").flatten().map(|file| file.file_name()).collect();
        files.sort();
        files
    };
    let looked = async || SqliteStore::open_read_only(&database.path).await.expect("it opens").close().await;

    let is_held = is_in_use(&database.path).expect("it is seen");
    looked().await;
    database.store.close().await;
    let before = files();
    let is_held_later = is_in_use(&database.path).expect("it is seen");
    looked().await;

    assert!(is_held && !is_held_later);
    assert_eq!(files(), before);
    assert!(!is_in_use(&folder.join("none.db")).expect("it is seen"));
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let database = Database::new().await;
    database.store.close().await;
    database.store.close().await;
    assert!(matches!(database.store.probe().await, Err(StoreError::Unavailable(_))));
    assert!(matches!(database.store.backlog().await, Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn closing_leaves_no_log_behind() {
    let database = Database::new().await;
    accept(&database.store, "a", "1", "hello".to_owned()).await.expect("it is accepted");
    database.store.close().await;
    let log = format!("{}-wal", database.path.display());
    assert!(!Path::new(&log).exists());
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let database = Database::new().await;
    database.store.close().await;
    let mut connection = elsewhere(&database.path).await;
    sqlx::query(
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
        values (9999, 'later', 1, x'00', 0)",
    )
    .execute(&mut connection)
    .await
    .expect("the version is written");
    connection.close().await.expect("it closes");

    for error in [
        SqliteStore::open(OpenOptions::new(&database.path)).await.expect_err("it is newer"),
        SqliteStore::open_read_only(&database.path).await.expect_err("it is newer"),
    ] {
        assert!(matches!(error, OpenError::Newer { found: 9999, .. }), "{error:?}");
        assert!(error.to_string().contains("schema version 9999"), "{error}");
    }
}

#[tokio::test]
async fn what_is_no_database_is_refused() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let path = directory.path().join("notes.txt");
    std::fs::write(&path, "dear diary, ".repeat(1000)).expect("the file is written");
    let error = SqliteStore::open(OpenOptions::new(&path)).await.expect_err("it is no database");
    assert!(matches!(error, OpenError::Unreadable { .. }), "{error:?}");
    assert!(error.to_string().contains("notes.txt"), "{error}");
    let error = SqliteStore::open_read_only(&path).await.expect_err("it is no database");
    assert!(matches!(error, OpenError::Unreadable { .. }), "{error:?}");
    assert_eq!(std::fs::read_to_string(&path).expect("the file is read").len(), 12_000);
}

#[tokio::test]
async fn a_reader_sees_what_a_running_gateway_writes_and_writes_nothing() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let missing = directory.path().join("none.db");
    let error = SqliteStore::open_read_only(&missing).await.expect_err("there is none");
    assert!(matches!(error, OpenError::Missing { .. }), "{error:?}");
    assert!(!missing.exists());

    let database = Database::new().await;
    let reader = SqliteStore::open_read_only(&database.path).await.expect("it opens beside the gateway");
    assert_eq!(reader.backlog().await.expect("the backlog is read").open, 0);
    accept(&database.store, "a", "1", "hello".to_owned()).await.expect("it is accepted");
    assert_eq!(reader.backlog().await.expect("the backlog is read").open, 1);
    assert!(matches!(accept(&reader, "a", "2", String::new()).await, Err(StoreError::Failed(_))));
    reader.probe().await.expect_err("it only reads");

    database.store.close().await;
    reader.close().await;
    let reader = SqliteStore::open_read_only(&database.path).await.expect("it opens after the gateway, too");
    assert_eq!(reader.backlog().await.expect("the backlog is read").open, 1);
}

#[tokio::test]
async fn what_is_dropped_without_being_closed_is_kept() {
    let mut database = Database::new().await;
    accept(&database.store, "a", "1", "hello".to_owned()).await.expect("it is accepted");
    let path = database.path.clone();
    let spare = tempfile::tempdir().expect("a directory is made");
    let other = SqliteStore::open(OpenOptions::new(spare.path().join("x.db"))).await.expect("it opens");
    drop(std::mem::replace(&mut database.store, Arc::new(other)));

    // The writer's thread releases the lock a moment later.
    let store = loop {
        match SqliteStore::open(OpenOptions::new(&path)).await {
            Ok(store) => break store,
            Err(OpenError::InUse { .. }) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(store.backlog().await.expect("the backlog is read").open, 1);
}
