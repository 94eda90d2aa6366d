//! What other users of this machine can do with a file or folder.

use std::{
    fs::Metadata,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// The bits of a folder's mode of which others need one to reach what is in it.
const WAY_THROUGH: u32 = 0o011;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposure {
    Closed,
    /// Others can read it, or only look into it.
    Readable,
    Writable,
}

impl Exposure {
    /// `Closed` if it does not exist, or cannot be examined.
    pub(crate) fn of(path: &Path) -> Self {
        Self::examine(path, 0o777)
    }

    /// Of `path` and the folders above it, one that a user other than this process's and root can change or replace.
    pub(crate) fn changeable_by_others(path: &Path) -> Option<PathBuf> {
        let real = path.ancestors().find_map(|path| path.canonicalize().ok())?;
        let caller = rustix::process::geteuid().as_raw();
        let is_own = |path: &&Path| path.metadata().is_ok_and(|metadata| [0, caller].contains(&metadata.uid()));
        let of_others = real.ancestors().find(|path| !is_own(path)).map(Path::to_owned);
        let is_writable = Self::of(&real) == Self::Writable;
        of_others.or_else(|| is_writable.then(|| real.clone())).or_else(|| writable_above(&real))
    }

    /// Considers only these bits of its mode.
    fn examine(path: &Path, bits: u32) -> Self {
        let found = || Some((path.metadata().ok()?, path.canonicalize().ok()?));
        let Some((metadata, path)) = found() else { return Self::Closed };
        let above = path.ancestors().skip(1).map(|above| above.metadata().map_or(0, |metadata| mode(&metadata)));
        let is_own_group = metadata.gid() == rustix::process::getegid().as_raw();
        Self::of_modes(mode(&metadata) & bits, is_own_group, above)
    }

    /// `above` are the modes of the folders above it. Where each user has a group of their own, folders are often writable for
    /// it: to be writable for the group of this process is not more than to be readable.
    fn of_modes(mode: u32, is_own_group: bool, mut above: impl Iterator<Item = u32>) -> Self {
        const OTHERS: u32 = 0o077;
        if mode & OTHERS == 0 || !above.all(|mode| mode & WAY_THROUGH != 0) {
            Self::Closed
        } else if mode & writers(is_own_group) == 0 {
            Self::Readable
        } else {
            Self::Writable
        }
    }
}

/// The folder above `path` that others can write to, if there is one: they could replace what is in it. With the sticky bit, as
/// in `/tmp`, they cannot.
pub(crate) fn writable_above(path: &Path) -> Option<PathBuf> {
    const STICKY: u32 = 0o1000;
    let path = path.canonicalize().ok()?;
    let own_group = rustix::process::getegid().as_raw();
    let mut above: Vec<_> = path.ancestors().skip(1).collect();
    // Nobody comes to what is below a closed folder.
    above.reverse();
    let reached = above.into_iter().map_while(|folder| {
        let metadata = folder.metadata().ok()?;
        (mode(&metadata) & WAY_THROUGH != 0).then_some((folder, metadata))
    });
    let mut writable = reached.filter(|(_, metadata)| {
        // The group 0 is root's.
        let is_trusted_group = metadata.gid() == own_group || metadata.gid() == 0;
        mode(metadata) & STICKY == 0 && mode(metadata) & writers(is_trusted_group) != 0
    });
    writable.next().map(|(folder, _)| folder.to_owned())
}

/// The remark on a data directory that is [`Exposure::Readable`].
pub(crate) fn readable_folder(path: &Path) -> String {
    format!("{} is open to other users of this machine, and it holds conversations and tokens", path.display())
}

/// Those of these files with secrets that every user can read. That a group can is often meant.
pub(crate) fn readable_files<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> impl Iterator<Item = &'a PathBuf> {
    files.into_iter().filter(|file| Exposure::examine(file, 0o707) != Exposure::Closed)
}

/// The remark on a file with a secret that every user can read.
pub(crate) fn readable_secret(file: &Path) -> String {
    format!("every user of this machine can read the secret in {}", file.display())
}

/// Remarks on [`readable_files`], with what to do.
pub(crate) fn readable_secrets<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> impl Iterator<Item = String> {
    readable_files(files).map(|file| format!("{}. Run chmod o= {}.", readable_secret(file), file.display()))
}

/// The bits of a mode that let others write.
const fn writers(is_own_group: bool) -> u32 {
    if is_own_group { 0o002 } else { 0o022 }
}

fn mode(metadata: &Metadata) -> u32 {
    metadata.permissions().mode()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_closed_where_nobody_else_comes_to_it() {
        let of = |mode, above: [u32; 2]| Exposure::of_modes(mode, false, above.into_iter());

        assert_eq!(of(0o40_700, [0o40_755, 0o40_755]), Exposure::Closed);
        assert_eq!(of(0o40_777, [0o40_700, 0o40_755]), Exposure::Closed);
        assert_eq!(of(0o40_755, [0o40_755, 0o40_755]), Exposure::Readable);
        assert_eq!(of(0o40_750, [0o41_777, 0o40_755]), Exposure::Readable);
        assert_eq!(of(0o40_757, [0o40_755, 0o40_755]), Exposure::Writable);
        assert_eq!(of(0o41_777, [0o40_755, 0o40_755]), Exposure::Writable);
    }

    #[test]
    fn a_folder_can_be_replaced_where_others_write_above_it() {
        let folder = tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o755)).tempdir().unwrap();
        let (shared, data) = (folder.path().join("shared"), folder.path().join("shared/own/data"));
        std::fs::create_dir_all(&data).unwrap();
        let found = |mode| {
            std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(mode)).unwrap();
            writable_above(&data)
        };

        assert_eq!(found(0o777), Some(shared.canonicalize().unwrap()));
        assert_eq!(found(0o1777), None);
        assert_eq!(found(0o755), None);
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(found(0o777), None, "nobody else comes to it");
    }

    #[test]
    fn a_secret_that_every_user_can_read_is_remarked_on() {
        let private = std::fs::Permissions::from_mode(0o755);
        let folder = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let file = |name: &str, mode| {
            let path = folder.path().join(name);
            std::fs::write(&path, "s3cret").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path
        };

        let files = [file("own", 0o600), file("groups", 0o640), file("everybodys", 0o644)];
        let remarks: Vec<_> = readable_secrets(&files).collect();

        assert_eq!(remarks.len(), 1, "{remarks:?}");
        assert!(remarks[0].contains("everybodys") && !remarks[0].contains("s3cret"), "{remarks:?}");
    }

    #[test]
    fn only_another_group_counts_as_others_who_write() {
        let of = |mode, is_own_group| Exposure::of_modes(mode, is_own_group, [0o40_755].into_iter());

        assert_eq!(of(0o40_775, true), Exposure::Readable);
        assert_eq!(of(0o40_775, false), Exposure::Writable);
        assert_eq!(of(0o40_777, true), Exposure::Writable);
    }
}
