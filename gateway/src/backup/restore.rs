//! Restores a backup. If the process ends in between, all files are old or all are new.
//!
//! The files are written into hidden folders beside their places and checked there. One rename decides that they count; from then
//! on, the restore or the next start moves them into place.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, BufReader},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rejoinder_core::store::StoreState as _;
use rejoinder_store::{OpenError, SqliteStore, beside, end_sign_ins, faults};

use super::{
    archive::{DATABASE, DataPaths, MANIFEST, Manifest, path_of, unpack},
    crash_point::crash_point,
    staging::{OF_RESTORES, Staging, lock, remove_abandoned, sweep},
};
use crate::{console::command::shell_quoted, secrets::make_private_dir};

/// The folder of the checked files, in the data directory. While it exists, they are being moved into place.
const CHECKED: &str = ".rejoinder-restored";

/// The same in the folder of the database.
const CHECKED_DATABASE: &str = ".rejoinder-restored-database";

/// The manifest of a restore whose files are all in place, in the data directory. The next start removes it.
const IN_PLACE: &str = ".rejoinder-restored-manifest";

/// What SQLite keeps beside a database: it would apply them to another one of the same name.
const LOGS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Where files are between their check and their place.
struct Checked {
    data: PathBuf,
    database: PathBuf,
}

impl Checked {
    fn of(paths: &DataPaths) -> Self {
        Self { data: paths.data_dir.join(CHECKED), database: paths.beside().join(CHECKED_DATABASE) }
    }

    fn file(&self, name: &str) -> PathBuf {
        in_one_of(name, &self.data, &self.database)
    }
}

/// The file of an entry in the folder for the data directory or the one for the database.
fn in_one_of(name: &str, data: &Path, database: &Path) -> PathBuf {
    if name.starts_with("data/") { data.join(name) } else { database.join(name) }
}

/// Whether a restore has checked its files, and has not moved them all into place.
pub(crate) fn is_being_restored(data_dir: &Path) -> bool {
    data_dir.join(CHECKED).exists()
}

/// Restores a backup into places where nothing is stored yet.
///
/// # Errors
/// When the backup is damaged, was made by a newer version, or something is stored already. Nothing is changed then.
pub(crate) async fn restore(from: &Path, paths: &DataPaths) -> Result<Manifest> {
    for folder in [&paths.data_dir, paths.beside()] {
        make_private_dir(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        sweep(folder);
    }
    let interrupted = finish(paths)?.filter(|manifest| is_in_place(manifest, paths));
    // A file is moved within its file system.
    let of_data = Staging::new(&paths.data_dir, OF_RESTORES)?;
    let of_database = Staging::new(paths.beside(), OF_RESTORES)?;
    let staged = |name: &str| in_one_of(name, of_data.path(), of_database.path());
    let is_interrupted = |manifest: &Manifest| interrupted.as_ref().is_some_and(|it| it.files == manifest.files);
    let unpacked = unpack(
        from,
        |manifest| if is_interrupted(manifest) { Ok(()) } else { check_free(manifest, paths) },
        |name| {
            path_of(paths, name)?;
            let path = staged(name);
            make_private_dir(path.parent().unwrap_or(&path))?;
            Ok(Box::new(File::options().write(true).create_new(true).mode(0o600).open(path)?))
        },
    );
    let manifest = unpacked.with_context(|| format!("cannot restore {}", from.display()))?;
    if is_interrupted(&manifest) {
        return Ok(manifest);
    }
    crash_point("restoring");
    // Who signed in before the backup may have been signed out since.
    end_sign_ins(&staged(DATABASE)).await.context("the backup's database cannot be read")?;
    check(&staged(DATABASE)).await?;
    fs::write(of_data.path().join(MANIFEST), serde_json::to_vec(&manifest)?)?;
    for file in manifest.files.keys().map(|name| staged(name)).chain([of_data.path().join(MANIFEST)]) {
        sync(&file)?;
        sync(file.parent().unwrap_or(&file))?;
    }
    crash_point("restoring");
    check_free(&manifest, paths)?;
    remove_file(&paths.data_dir.join(IN_PLACE))?;
    let checked = Checked::of(paths);
    let _of_database = of_database.keep_as(&checked.database)?;
    sync(paths.beside())?;
    crash_point("restoring");
    let _of_data = of_data.keep_as(&checked.data)?;
    sync(&paths.data_dir)?;
    crash_point("restoring");
    place(&manifest, paths, &checked)?;
    Ok(manifest)
}

/// Completes a restore that was interrupted after its files were checked, and removes what is left of another one. Returns what
/// it restored, also if no gateway has started since.
pub(crate) fn finish(paths: &DataPaths) -> Result<Option<Manifest>> {
    let (checked, in_place) = (Checked::of(paths), paths.data_dir.join(IN_PLACE));
    if in_place.exists() || !checked.data.exists() {
        remove_abandoned(&checked.data)?;
        remove_abandoned(&checked.database)?;
        return in_place.exists().then(|| read_manifest(&in_place)).transpose();
    }
    let Some(_lock) = lock(&checked.data)? else { bail!("a restore into {} is running", paths.data_dir.display()) };
    let manifest = read_manifest(&checked.data.join(MANIFEST))?;
    place(&manifest, paths, &checked)?;
    Ok(Some(manifest))
}

/// Completes a restore that was interrupted, before a start.
pub(super) fn begin_after(paths: &DataPaths) -> Result<()> {
    finish(paths)?;
    remove_file(&paths.data_dir.join(IN_PLACE))
}

fn read_manifest(path: &Path) -> Result<Manifest> {
    let manifest = File::open(path).context("cannot read the manifest")?;
    Ok(serde_json::from_reader(BufReader::new(manifest))?)
}

/// Whether all files of a restore are still where it has put them.
fn is_in_place(manifest: &Manifest, paths: &DataPaths) -> bool {
    manifest.files.keys().all(|name| path_of(paths, name).is_ok_and(|path| path.exists()))
}

fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Moves the files into place, the database last.
fn place(manifest: &Manifest, paths: &DataPaths, checked: &Checked) -> Result<()> {
    let rest = manifest.files.keys().map(String::as_str).filter(|name| *name != DATABASE);
    for name in rest.chain([DATABASE]) {
        let (from, to) = (checked.file(name), path_of(paths, name)?);
        if from.exists() {
            let folder = to.parent().unwrap_or(&paths.data_dir);
            make_private_dir(folder)?;
            fs::rename(from, &to).with_context(|| format!("cannot write {}", to.display()))?;
            sync(folder)?;
        }
        ensure!(to.exists(), "{} is missing: restore the backup again", to.display());
        crash_point("restoring");
    }
    if checked.database.exists() {
        fs::remove_dir_all(&checked.database)?;
    }
    crash_point("restoring");
    fs::rename(checked.data.join(MANIFEST), paths.data_dir.join(IN_PLACE))?;
    sync(&paths.data_dir)?;
    crash_point("restoring");
    fs::remove_dir_all(&checked.data)?;
    crash_point("restoring");
    Ok(())
}

/// Checks a database as a start opens it.
async fn check(database: &Path) -> Result<()> {
    let faults = faults(database).await.context("the backup's database cannot be read")?;
    ensure!(faults.is_empty(), "the backup's database is damaged: {}", faults.join("; "));
    match SqliteStore::open_read_only(database).await {
        Ok(store) => store.close().await,
        Err(OpenError::Older { .. }) => {}
        Err(error) => return Err(anyhow!(error).context("the backup's database cannot be opened")),
    }
    Ok(())
}

/// Fails if something is stored where the files of the backup belong, or beside them.
fn check_free(manifest: &Manifest, paths: &DataPaths) -> Result<()> {
    let mut found = BTreeSet::new();
    for name in manifest.files.keys() {
        let path = path_of(paths, name)?;
        for path in [""].iter().chain(&LOGS).map(|ending| beside(&path, ending)) {
            if path.symlink_metadata().is_ok() {
                // Of a folder in the data directory, the folder.
                let below = path.strip_prefix(&paths.data_dir).ok().and_then(|below| below.components().next());
                found.insert(below.map_or_else(|| path.clone(), |first| paths.data_dir.join(first)));
            }
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let quoted = |path: &Path| shell_quoted(path);
    let away = (1..u32::MAX)
        .map(|number| paths.data_dir.join(format!(".before-restore-{number}")))
        .find(|path| !path.exists());
    let away = quoted(&away.unwrap_or_default());
    let found: Vec<_> = found.iter().map(|path| quoted(path)).collect();
    bail!(
        "something is stored here already. Name another folder with --data, or stop the gateway and move this away, all of it:\n  \
         mkdir {away} && mv {} {away}",
        found.join(" ")
    )
}

fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|file| file.sync_all()).with_context(|| format!("cannot write {}", path.display()))
}
