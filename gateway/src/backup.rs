//! Backups: one file with everything that a gateway stores.
//!
//! A backup is a compressed tar archive. Its first entry, `manifest.json`, lists the others with their sizes and
//! SHA-256 digests. `database` is the database. Entries below `data/` belong into the data directory, also the files of
//! words. Entries below `beside/` (the keys of Matrix accounts) belong into the folder of the database if that is
//! another one. SQLite databases are copied as they are at one moment, while the gateway writes to them. The
//! configuration is not part of it.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use rejoinder_store::{copy, faults, schema_version_of};

use self::{
    archive::{DATABASE, FORMAT, WORDS, archive, entry, is_passing, manifest, pack, unpack},
    crash_point::crash_point,
    restore::begin_after,
    staging::{OF_BACKUPS, Staging, sweep},
};

mod archive;
mod crash_point;
mod restore;
mod staging;

pub(crate) use self::{
    archive::{DataPaths, Manifest},
    restore::{is_being_restored, restore},
};

/// How a SQLite database begins.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Completes a restore that was interrupted, and removes what killed backups and restores have left.
pub(crate) fn recover(data_dir: &Path, database: &Path) -> Result<()> {
    let paths = DataPaths { database: database.to_owned(), data_dir: data_dir.to_owned() };
    begin_after(&paths)?;
    sweep(data_dir);
    sweep(paths.beside());
    Ok(())
}

/// Writes a backup to the new file `to`, and reads it once to check it.
///
/// # Errors
/// When something cannot be read or written, or the database is damaged. There is no file `to` then.
pub(crate) async fn write(paths: &DataPaths, to: &Path, created_at: String) -> Result<Manifest> {
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sweep(folder);
    sweep(&paths.data_dir);
    let staging = Staging::new(folder, OF_BACKUPS);
    let mut staging = staging.with_context(|| format!("cannot write in {}", folder.display()))?;
    staging.link_from(&paths.data_dir);
    let mut sources = BTreeMap::new();
    let cannot_copy = |path: &Path| format!("cannot copy {}", path.display());
    let mut found = found(paths)?;
    while let Some((name, path)) = found.pop_first() {
        let copied = staging.path().join(sources.len().to_string());
        let is_database = name == DATABASE || is_database(&path).with_context(|| cannot_copy(&path))?;
        if is_database {
            copy(&path, &copied).await.with_context(|| cannot_copy(&path))?;
        } else if let Err(error) = fs::copy(&path, &copied) {
            // It may have been removed meanwhile.
            ensure!(error.kind() == io::ErrorKind::NotFound, "{}: {error}", cannot_copy(&path));
            continue;
        }
        sources.insert(name, copied);
        // Words are in their file before their delivery is recorded. After the databases, none that is known is missing.
        if found.is_empty() {
            found = words(paths)?;
            found.retain(|name, _| !sources.contains_key(name));
        }
    }
    let database = &sources[DATABASE];
    let faults = faults(database).await?;
    ensure!(faults.is_empty(), "the database is damaged: {}", faults.join("; "));
    let mut files = BTreeMap::new();
    for (name, path) in &sources {
        files.insert(name.clone(), entry(File::open(path)?)?);
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let schema = schema_version_of(database).await?;
    let manifest = Manifest { format: FORMAT, version, schema, created_at, files };

    let unfinished = staging.path().join("archive");
    pack(&unfinished, &manifest, &sources).with_context(|| format!("cannot write {}", to.display()))?;
    let read = unpack(&unfinished, |_| Ok(()), |_| Ok(Box::new(io::sink())));
    let read = read.context("the backup cannot be read again")?;
    ensure!(read.files == manifest.files, "the backup reads differently than it was written: is the disk damaged?");
    crash_point("backed_up");
    fs::hard_link(&unfinished, to).with_context(|| format!("cannot write {}", to.display()))?;
    File::open(folder)?.sync_all()?;
    Ok(manifest)
}

/// The files of words, by the names of their entries.
fn words(paths: &DataPaths) -> Result<BTreeMap<String, PathBuf>> {
    let mut all = BTreeMap::new();
    walk(&paths.data_dir.join("words"), WORDS.trim_end_matches('/'), &paths.database.canonicalize()?, &mut all)?;
    Ok(all)
}

/// The other files to back up, by the names of their entries.
fn found(paths: &DataPaths) -> Result<BTreeMap<String, PathBuf>> {
    let database = paths.database.canonicalize();
    let database = database.with_context(|| format!("there is no database {}", paths.database.display()))?;
    let mut all = BTreeMap::from([(DATABASE.to_owned(), database.clone())]);
    walk(&paths.data_dir, "data", &database, &mut all)?;
    all.retain(|name, _| !name.starts_with(WORDS));
    let beside = paths.beside();
    if beside.canonicalize()? != paths.data_dir.canonicalize()? {
        // Of a folder that others use as well, only what is known.
        for entry in fs::read_dir(beside)? {
            let (name, path) = named(&entry?);
            if path.is_dir() && name.starts_with("matrix-") {
                walk(&path, &format!("beside/{name}"), &database, &mut all)?;
            }
        }
    }
    Ok(all)
}

fn walk(folder: &Path, prefix: &str, database: &Path, all: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| format!("cannot read {}", folder.display()))?,
    };
    for entry in entries {
        let entry = entry?;
        let (name, path) = named(&entry);
        let name = format!("{prefix}/{name}");
        let kind = entry.file_type()?;
        if is_hidden(&name) {
            continue;
        }
        if kind.is_dir() {
            walk(&path, &name, database, all)?;
        } else if kind.is_file()
            && !is_passing(&name)
            && path.canonicalize().is_ok_and(|path| path != database)
            && !is_backup(&path)
        {
            all.insert(name, path);
        }
    }
    Ok(())
}

/// Whether an entry is hidden; among words only the unfinished files of a backup.
fn is_hidden(entry: &str) -> bool {
    let name = entry.rsplit('/').next().unwrap_or(entry);
    name.starts_with(if entry.starts_with(WORDS) { OF_BACKUPS } else { "." })
}

fn named(entry: &fs::DirEntry) -> (String, PathBuf) {
    (entry.file_name().to_string_lossy().into_owned(), entry.path())
}

fn is_database(path: &Path) -> io::Result<bool> {
    let mut begin = Vec::new();
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    file.take(SQLITE.len() as u64).read_to_end(&mut begin)?;
    Ok(begin == SQLITE)
}

/// Whether a file is a backup: it is not part of the next one.
fn is_backup(path: &Path) -> bool {
    let manifest =
        File::open(path).map_err(anyhow::Error::new).and_then(|file| manifest(&mut archive(file).entries()?));
    manifest.is_ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rejoinder_core::store::StoreState as _;
    use rejoinder_store::{OpenOptions, SqliteStore};

    use super::*;

    /// Also those with names that a gateway's passing files have.
    #[tokio::test]
    async fn the_files_of_words_are_restored() {
        let folder = tempfile::tempdir().unwrap();
        let paths = |name: &str| {
            let data_dir = folder.path().join(name);
            DataPaths { database: data_dir.join("rejoinder.db"), data_dir }
        };
        let (from, to, archive) = (paths("from"), paths("to"), folder.path().join("archive"));
        let store = SqliteStore::open(OpenOptions::new(&from.database)).await.unwrap();
        store.close().await;
        // The folder is on another disk.
        let disk = folder.path().join("disk");
        fs::create_dir(&disk).unwrap();
        std::os::unix::fs::symlink(&disk, from.data_dir.join("words")).unwrap();
        let files = ["journal/2026-11-26.md", "my-journal", "notes/address", ".diary/.one.md"];
        for name in files {
            let path = from.data_dir.join("words").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }

        write(&from, &archive, String::new()).await.unwrap();
        restore(&archive, &to).await.unwrap();

        for name in files {
            let restored = fs::read_to_string(to.data_dir.join("words").join(name));
            assert_eq!(restored.ok().as_deref(), Some(name), "{name}");
        }
    }

    /// Earlier versions packed it.
    #[test]
    fn what_belongs_to_another_gateway_is_left_in_the_backup() {
        let folder = tempfile::tempdir().unwrap();
        let (source, archive) = (folder.path().join("source"), folder.path().join("archive"));
        fs::write(&source, "something").unwrap();
        let names = [DATABASE, "data/admin-token", "data/config-path"];
        let sources: BTreeMap<_, _> = names.map(|name| (name.to_owned(), source.clone())).into();
        let files = names.map(|name| (name.to_owned(), entry(&b"something"[..]).unwrap())).into();
        let manifest =
            Manifest { format: FORMAT, version: "0".to_owned(), schema: 1, created_at: String::new(), files };
        pack(&archive, &manifest, &sources).unwrap();

        let mut opened = Vec::new();
        let open = |name: &str| {
            opened.push(name.to_owned());
            Ok(Box::new(io::sink()) as Box<dyn Write>)
        };
        let read = unpack(&archive, |_| Ok(()), open).unwrap();

        assert_eq!(opened, ["data/admin-token", DATABASE]);
        assert_eq!(read.count(), 2);
    }
}
