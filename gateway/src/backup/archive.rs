//! The archive of a backup: its manifest and its entries, written and read.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use flate2::{Compression, bufread::GzDecoder, write::GzEncoder};
use rejoinder_store::schema_version;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tar::{Archive, Builder, Entries, EntryType, Header};

use crate::wiring::CONFIG_PATH_FILE;

/// The version of the layout.
pub(super) const FORMAT: u32 = 1;

pub(super) const MANIFEST: &str = "manifest.json";

/// The largest manifest, in bytes.
const MAX_MANIFEST: u64 = 16 << 20;

pub(super) const DATABASE: &str = "database";

/// What the files of a running gateway are that another one must not find: where it listens, which configuration it has, locks,
/// logs of databases, unfinished files.
const PASSING: [&str; 9] =
    ["address", "data/node", CONFIG_PATH_FILE, ".lock", "-wal", "-shm", "-journal", ".new", ".part"];

/// How the names of the entries of words begin. The operator names their files.
pub(super) const WORDS: &str = "data/words/";

/// The paths of a gateway's database and data directory.
#[derive(Debug)]
pub(crate) struct DataPaths {
    pub(crate) database: PathBuf,
    pub(crate) data_dir: PathBuf,
}

impl DataPaths {
    /// The folder of the database.
    pub(super) fn beside(&self) -> &Path {
        self.database.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}

/// What a backup holds.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Manifest {
    pub(super) format: u32,
    /// The version of the program that made it.
    pub(crate) version: String,
    /// The version of the database's schema.
    pub(super) schema: i64,
    /// When it was made, in RFC 3339.
    pub(crate) created_at: String,
    pub(super) files: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Entry {
    bytes: u64,
    sha256: String,
}

impl Manifest {
    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    /// The size of all files, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.values().map(|entry| entry.bytes).sum()
    }
}

/// A reader that also writes everything read from it.
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

/// Where an entry belongs.
pub(super) fn path_of(paths: &DataPaths, name: &str) -> Result<PathBuf> {
    let inside = |folder: &Path, rest: &str| {
        let rest = Path::new(rest);
        let is_safe = rest.components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(is_safe && rest.file_name().is_some(), "`{name}` is no name of a file");
        Ok(folder.join(rest))
    };
    match (name, name.split_once('/')) {
        (DATABASE, _) => Ok(paths.database.clone()),
        (_, Some(("data", rest))) => inside(&paths.data_dir, rest),
        (_, Some(("beside", rest))) => inside(paths.beside(), rest),
        _ => Err(anyhow!("`{name}` is no part of a backup")),
    }
}

/// Whether an entry is a file of a running gateway that another one must not find.
pub(super) fn is_passing(entry: &str) -> bool {
    !entry.starts_with(WORDS) && PASSING.iter().any(|end| entry.ends_with(end))
}

/// The size and the digest of a file.
pub(super) fn entry(mut from: impl Read) -> io::Result<Entry> {
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

pub(super) fn pack(to: &Path, manifest: &Manifest, sources: &BTreeMap<String, PathBuf>) -> Result<()> {
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

pub(super) fn archive(file: File) -> Archive<GzDecoder<BufReader<File>>> {
    Archive::new(GzDecoder::new(BufReader::new(file)))
}

/// The first entry of a backup.
pub(super) fn manifest(entries: &mut Entries<'_, impl Read>) -> Result<Manifest> {
    let not_ours = || anyhow!("it is no backup of Rejoinder");
    let first = entries.next().ok_or_else(not_ours)?.map_err(|_| not_ours())?;
    ensure!(first.path()?.as_os_str() == MANIFEST && first.size() <= MAX_MANIFEST, not_ours());
    serde_json::from_reader(first.take(MAX_MANIFEST)).map_err(|_| not_ours())
}

/// Reads a backup: has `begin` decide by its manifest, writes each file to what `open` returns for its entry, and checks it.
pub(super) fn unpack(
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
