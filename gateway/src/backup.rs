//! Backups: one file with everything that a gateway stores.
//!
//! A backup is a compressed tar archive. Its first entry, `manifest.json`, lists the others with their sizes and SHA-256
//! digests. `database` is the database; what is below `data/` belongs into the data directory, and what is below `beside/` into
//! the folder of the database, where that is another one: the keys of Matrix accounts. SQLite databases are copied as they are
//! at one moment, while the gateway writes to them. The configuration is not part of it.

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
use tar::{Archive, Builder, EntryType, Header};

use crate::secrets::make_private_dir;

/// The version of the layout.
const FORMAT: u32 = 1;

const MANIFEST: &str = "manifest.json";

/// The largest manifest, in bytes.
const MAX_MANIFEST: u64 = 16 << 20;

/// The entry of the database.
const DATABASE: &str = "database";

/// How a SQLite database begins.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// What the files of a running gateway are that another one must not find: where it listens, locks, logs of databases,
/// unfinished files.
const PASSING: [&str; 7] = ["address", ".lock", "-wal", "-shm", "-journal", ".new", ".part"];

/// Where a gateway keeps what it stores.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) database: PathBuf,
    pub(crate) data_dir: PathBuf,
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

/// Writes a backup to the new file `to`, and reads it once to check it.
///
/// # Errors
/// When something cannot be read or written, or the database is damaged. There is no file `to` then.
pub(crate) async fn write(places: &Places, to: &Path, created_at: String) -> Result<Manifest> {
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let staging = tempfile::Builder::new().prefix(".rejoinder-backup-").tempdir_in(folder);
    let staging = staging.with_context(|| format!("cannot write in {}", folder.display()))?;
    let mut sources = BTreeMap::new();
    for (name, path) in found(places)? {
        let copied = staging.path().join(sources.len().to_string());
        if name == DATABASE || is_database(&path)? {
            copy(&path, &copied).await.with_context(|| format!("cannot copy {}", path.display()))?;
        } else if let Err(error) = fs::copy(&path, &copied) {
            // The gateway may have removed it meanwhile.
            ensure!(error.kind() == io::ErrorKind::NotFound, "cannot copy {}: {error}", path.display());
            continue;
        }
        sources.insert(name, copied);
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
    let read = unpack(&unfinished, |_| Ok(Box::new(io::sink()))).context("the backup cannot be read again")?;
    ensure!(read.files == manifest.files, "the backup reads differently than it was written: is the disk damaged?");
    fs::hard_link(&unfinished, to).with_context(|| format!("cannot write {}", to.display()))?;
    File::open(folder)?.sync_all()?;
    Ok(manifest)
}

/// Restores a backup into places where nothing is stored yet. What was checked is moved into place at the end.
///
/// # Errors
/// When the backup is damaged, was made by a newer version, or something is stored already. Nothing is changed then.
pub(crate) async fn restore(from: &Path, places: &Places) -> Result<Manifest> {
    make_private_dir(&places.data_dir).with_context(|| format!("cannot create {}", places.data_dir.display()))?;
    let parent = places.database.parent().unwrap_or(&places.data_dir);
    make_private_dir(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    // A file is moved within its file system.
    let staging = |folder: &Path| tempfile::Builder::new().prefix(".rejoinder-restore-").tempdir_in(folder);
    let (of_data, of_database) = (staging(&places.data_dir)?, staging(parent)?);
    let staged = |name: &str| match name.strip_prefix("data/") {
        Some(_) => of_data.path().join(name),
        None => of_database.path().join(name),
    };
    let manifest = unpack(from, |name| {
        let path = staged(name);
        ensure!(
            !path_of(places, name)?.exists(),
            "{} is there already: restore into an empty folder",
            path_of(places, name)?.display()
        );
        make_private_dir(path.parent().unwrap_or(&path))?;
        Ok(Box::new(File::options().write(true).create_new(true).mode(0o600).open(path)?))
    })
    .with_context(|| format!("cannot restore {}", from.display()))?;
    let database = staged(DATABASE);
    let faults = faults(&database).await.context("the backup's database cannot be read")?;
    ensure!(faults.is_empty(), "the backup's database is damaged: {}", faults.join("; "));
    // The database last: without it nothing counts as restored.
    let rest = manifest.files.keys().filter(|name| *name != DATABASE);
    for name in rest.map(String::as_str).chain([DATABASE]) {
        let (path, to) = (staged(name), path_of(places, name)?);
        File::open(&path)?.sync_all()?;
        make_private_dir(to.parent().unwrap_or(&to))?;
        fs::rename(path, &to).with_context(|| format!("cannot write {}", to.display()))?;
    }
    for folder in [&places.data_dir, parent] {
        File::open(folder)?.sync_all()?;
    }
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
        (_, Some(("beside", rest))) => inside(places.database.parent().unwrap_or(&places.data_dir), rest),
        _ => Err(anyhow!("`{name}` is no part of a backup")),
    }
}

/// The files to back up, by the names of their entries.
fn found(places: &Places) -> Result<BTreeMap<String, PathBuf>> {
    let database = places.database.canonicalize();
    let database = database.with_context(|| format!("there is no database {}", places.database.display()))?;
    let mut all = BTreeMap::from([(DATABASE.to_owned(), database.clone())]);
    walk(&places.data_dir, "data", &database, &mut all)?;
    let beside = places.database.parent().unwrap_or(&places.data_dir);
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
        let kind = entry.file_type()?;
        if kind.is_dir() && !name.starts_with('.') {
            walk(&path, &format!("{prefix}/{name}"), database, all)?;
        } else if kind.is_file()
            && !name.starts_with('.')
            && !PASSING.iter().any(|end| name.ends_with(end))
            && path.canonicalize().is_ok_and(|path| path != database)
        {
            all.insert(format!("{prefix}/{name}"), path);
        }
    }
    Ok(())
}

fn named(entry: &fs::DirEntry) -> (String, PathBuf) {
    (entry.file_name().to_string_lossy().into_owned(), entry.path())
}

fn is_database(path: &Path) -> Result<bool> {
    let mut begin = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    file.take(SQLITE.len() as u64).read_to_end(&mut begin)?;
    Ok(begin == SQLITE)
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

/// Reads a backup: writes each file to what `open` returns for its entry, and checks it against the manifest.
fn unpack(from: &Path, mut open: impl FnMut(&str) -> Result<Box<dyn Write>>) -> Result<Manifest> {
    let file = File::open(from)?;
    let mut archive = Archive::new(GzDecoder::new(BufReader::new(file)));
    let mut entries = archive.entries()?;
    let not_ours = || anyhow!("it is no backup of Rejoinder");
    let first = entries.next().ok_or_else(not_ours)?.map_err(|_| not_ours())?;
    ensure!(first.path()?.as_os_str() == MANIFEST && first.size() <= MAX_MANIFEST, not_ours());
    let manifest: Manifest = serde_json::from_reader(first.take(MAX_MANIFEST)).map_err(|_| not_ours())?;
    ensure!(
        manifest.format == FORMAT && manifest.schema <= schema_version(),
        "it was made by the newer version {}: restore it with that one",
        manifest.version
    );
    ensure!(manifest.files.contains_key(DATABASE), "it has no database");
    let mut missing = manifest.files.clone();
    for found in entries {
        let found = found.context("it is damaged or incomplete")?;
        let name = found.path()?.to_str().map(str::to_owned).ok_or_else(not_ours)?;
        let Some(expected) = missing.remove(&name) else { bail!("`{name}` is not in its manifest") };
        ensure!(found.size() == expected.bytes, "`{name}` has another size than its manifest says");
        let read = entry(Both { from: found, to: open(&name)? }).context("it is damaged or incomplete")?;
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
