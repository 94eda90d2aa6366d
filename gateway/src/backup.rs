//! Backups: one file with everything that a gateway stores.
//!
//! A backup is a compressed tar archive. Its first entry, `manifest.json`, lists the others with their sizes and SHA-256
//! digests. `database` is the database; what is below `data/` belongs into the data directory, also the files of words, and what is
//! below `beside/` into the folder of the database, where that is another one: the keys of Matrix accounts. SQLite databases are
//! copied as they are at one moment, while the gateway writes to them. The configuration is not part of it.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File},
    io::{self, BufReader, BufWriter, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use flate2::{Compression, bufread::GzDecoder, write::GzEncoder};
use rejoinder_store::{copy, faults, schema_version, schema_version_of};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tar::{Archive, Builder, Entries, EntryType, Header};

use crate::wiring::CONFIG_PATH_FILE;

mod restore;
mod staging;

pub(crate) use self::restore::{is_being_restored, restore};
use self::{
    restore::begin_after,
    staging::{OF_BACKUPS, Staging, sweep},
};

/// The version of the layout.
const FORMAT: u32 = 1;

const MANIFEST: &str = "manifest.json";

/// The largest manifest, in bytes.
const MAX_MANIFEST: u64 = 16 << 20;

/// The entry of the database.
const DATABASE: &str = "database";

/// How a SQLite database begins.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// What the files of a running gateway are that another one must not find: where it listens, which configuration it has, locks,
/// logs of databases, unfinished files.
const PASSING: [&str; 8] = ["address", CONFIG_PATH_FILE, ".lock", "-wal", "-shm", "-journal", ".new", ".part"];

/// How the names of the entries of words begin. The operator names their files.
const WORDS: &str = "data/words/";

/// Where a gateway keeps what it stores.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) database: PathBuf,
    pub(crate) data_dir: PathBuf,
}

impl Places {
    /// The folder of the database.
    fn beside(&self) -> &Path {
        self.database.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}

/// What a backup holds.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Manifest {
    format: u32,
    /// The version of the program that made it.
    pub(crate) version: String,
    /// The version of the database's schema.
    schema: i64,
    /// When it was made, in RFC 3339.
    pub(crate) created_at: String,
    files: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Entry {
    bytes: u64,
    sha256: String,
}

impl Manifest {
    /// The number of files.
    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    /// The size of all files, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.values().map(|entry| entry.bytes).sum()
    }
}

/// Completes a restore that was interrupted, and removes what killed backups and restores have left.
///
/// # Errors
/// When a file cannot be moved, or a restore is running.
pub(crate) fn recover(data_dir: &Path, database: &Path) -> Result<()> {
    let places = Places { database: database.to_owned(), data_dir: data_dir.to_owned() };
    begin_after(&places)?;
    sweep(data_dir);
    sweep(places.beside());
    Ok(())
}

/// Writes a backup to the new file `to`, and reads it once to check it.
///
/// # Errors
/// When something cannot be read or written, or the database is damaged. There is no file `to` then.
pub(crate) async fn write(places: &Places, to: &Path, created_at: String) -> Result<Manifest> {
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sweep(folder);
    sweep(&places.data_dir);
    let staging = Staging::new(folder, OF_BACKUPS);
    let mut staging = staging.with_context(|| format!("cannot write in {}", folder.display()))?;
    staging.link_from(&places.data_dir);
    let mut sources = BTreeMap::new();
    let cannot_copy = |path: &Path| format!("cannot copy {}", path.display());
    let mut found = found(places)?;
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
            found = words(places)?;
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

/// Where an entry belongs.
fn path_of(places: &Places, name: &str) -> Result<PathBuf> {
    let inside = |folder: &Path, rest: &str| {
        let rest = Path::new(rest);
        let is_safe = rest.components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(is_safe && rest.file_name().is_some(), "`{name}` is no name of a file");
        Ok(folder.join(rest))
    };
    match (name, name.split_once('/')) {
        (DATABASE, _) => Ok(places.database.clone()),
        (_, Some(("data", rest))) => inside(&places.data_dir, rest),
        (_, Some(("beside", rest))) => inside(places.beside(), rest),
        _ => Err(anyhow!("`{name}` is no part of a backup")),
    }
}

/// The files of words, by the names of their entries.
fn words(places: &Places) -> Result<BTreeMap<String, PathBuf>> {
    let mut all = BTreeMap::new();
    walk(&places.data_dir.join("words"), WORDS.trim_end_matches('/'), &places.database.canonicalize()?, &mut all)?;
    Ok(all)
}

/// The other files to back up, by the names of their entries.
fn found(places: &Places) -> Result<BTreeMap<String, PathBuf>> {
    let database = places.database.canonicalize();
    let database = database.with_context(|| format!("there is no database {}", places.database.display()))?;
    let mut all = BTreeMap::from([(DATABASE.to_owned(), database.clone())]);
    walk(&places.data_dir, "data", &database, &mut all)?;
    all.retain(|name, _| !name.starts_with(WORDS));
    let beside = places.beside();
    if beside.canonicalize()? != places.data_dir.canonicalize()? {
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

/// Whether an entry is a file of a running gateway that another one must not find.
fn is_passing(entry: &str) -> bool {
    !entry.starts_with(WORDS) && PASSING.iter().any(|end| entry.ends_with(end))
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

/// The size and the digest of what is read.
fn entry(mut from: impl Read) -> io::Result<Entry> {
    let (mut digest, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            let mut sha256 = String::with_capacity(64);
            for byte in digest.finalize() {
                let _ = write!(sha256, "{byte:02x}");
            }
            return Ok(Entry { bytes, sha256 });
        }
        digest.update(&buffer[..count]);
        bytes += count as u64;
    }
}

fn pack(to: &Path, manifest: &Manifest, sources: &BTreeMap<String, PathBuf>) -> Result<()> {
    let file = File::options().write(true).create_new(true).mode(0o600).open(to)?;
    let mut archive = Builder::new(GzEncoder::new(BufWriter::new(file), Compression::fast()));
    let text = serde_json::to_vec_pretty(manifest)?;
    append(&mut archive, MANIFEST, text.len() as u64, text.as_slice())?;
    for (name, path) in sources {
        append(&mut archive, name, manifest.files[name].bytes, File::open(path)?)?;
    }
    let mut buffered = archive.into_inner()?.finish()?;
    buffered.flush()?;
    buffered.get_ref().sync_all()?;
    Ok(())
}

fn append(archive: &mut Builder<impl Write>, name: &str, bytes: u64, content: impl Read) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(bytes);
    header.set_mode(0o600);
    header.set_cksum();
    archive.append_data(&mut header, name, content)
}

fn archive(file: File) -> Archive<GzDecoder<BufReader<File>>> {
    Archive::new(GzDecoder::new(BufReader::new(file)))
}

/// The first entry of a backup.
fn manifest(entries: &mut Entries<'_, impl Read>) -> Result<Manifest> {
    let not_ours = || anyhow!("it is no backup of Rejoinder");
    let first = entries.next().ok_or_else(not_ours)?.map_err(|_| not_ours())?;
    ensure!(first.path()?.as_os_str() == MANIFEST && first.size() <= MAX_MANIFEST, not_ours());
    serde_json::from_reader(first.take(MAX_MANIFEST)).map_err(|_| not_ours())
}

/// Reads a backup: has `begin` decide by its manifest, writes each file to what `open` returns for its entry, and checks it.
fn unpack(
    from: &Path,
    begin: impl FnOnce(&Manifest) -> Result<()>,
    mut open: impl FnMut(&str) -> Result<Box<dyn Write>>,
) -> Result<Manifest> {
    let mut archive = archive(File::open(from)?);
    let mut entries = archive.entries()?;
    let mut manifest = manifest(&mut entries)?;
    ensure!(
        manifest.format == FORMAT && manifest.schema <= schema_version(),
        "it was made by the newer version {}: restore it with that one",
        manifest.version
    );
    let mut missing = manifest.files.clone();
    // Earlier versions packed what is left out now.
    manifest.files.retain(|name, _| !is_passing(name));
    begin(&manifest)?;
    ensure!(manifest.files.contains_key(DATABASE), "it has no database");
    for found in entries {
        let found = found.context("it is damaged or incomplete")?;
        let name = found.path()?.to_string_lossy().into_owned();
        let Some(expected) = missing.remove(&name) else { bail!("`{name}` is not in its manifest") };
        ensure!(found.size() == expected.bytes, "`{name}` has another size than its manifest says");
        let to = if manifest.files.contains_key(&name) { open(&name)? } else { Box::new(io::sink()) };
        let read = entry(Both { from: found, to }).context("it is damaged or incomplete")?;
        ensure!(read == expected, "`{name}` is damaged: its digest differs from that in the manifest");
    }
    ensure!(missing.is_empty(), "it is incomplete: {} files are missing", missing.len());
    Ok(manifest)
}

/// Writes what is read from it.
struct Both<R, W> {
    from: R,
    to: W,
}

impl<R: Read, W: Write> Read for Both<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.to.write_all(&buffer[..count])?;
        if count == 0 {
            self.to.flush()?;
        }
        Ok(count)
    }
}

/// Ends the process as `kill -9` does, if a test wants it here.
#[cfg(feature = "crash-points")]
fn crash_point(name: &str) {
    if rejoinder_core::crash_point_is_reached(name) {
        std::process::abort();
    }
}

#[cfg(not(feature = "crash-points"))]
const fn crash_point(_name: &str) {}

#[cfg(test)]
mod tests {
    use rejoinder_core::store::StoreState as _;
    use rejoinder_store::{OpenOptions, SqliteStore};

    use super::*;

    /// Also those with names that a gateway's passing files have.
    #[tokio::test]
    async fn the_files_of_words_are_restored() {
        let folder = tempfile::tempdir().unwrap();
        let places = |name: &str| {
            let data_dir = folder.path().join(name);
            Places { database: data_dir.join("rejoinder.db"), data_dir }
        };
        let (from, to, archive) = (places("from"), places("to"), folder.path().join("archive"));
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
