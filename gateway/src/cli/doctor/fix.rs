//! What `rejoinder doctor --fix` does itself: it takes other users' access to the gateway's files away, and removes the address
//! that a killed gateway left. Nothing is lost by either. To have it fix another finding, add a [`Remedy`].

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use crate::{console::finding::Finding, exposure::writable_above};

/// The bits of a mode that give access to everybody but the owner.
pub(super) const OTHERS: u32 = 0o077;

/// The bits of a mode that give access to everybody but the owner and the group.
pub(super) const EVERYBODY: u32 = 0o007;

/// The bits of a mode that can be set.
const MODE: u32 = 0o7777;

/// The bit of the mode of a folder that all users share, such as `/tmp`.
const STICKY: u32 = 0o1000;

/// What can be done about a finding.
#[derive(Clone, Copy, Debug)]
pub(super) enum Remedy<'a> {
    /// Takes these bits from the mode of a file or folder.
    Close { path: &'a Path, bits: u32 },
    /// Removes the file with the address of a gateway that does not run any more. A running one uses `database`.
    RemoveAddress { path: &'a Path, database: &'a Path },
}

impl<'a> Remedy<'a> {
    const fn path(self) -> &'a Path {
        match self {
            Self::Close { path, .. } | Self::RemoveAddress { path, .. } => path,
        }
    }

    /// Returns what was done: a sentence.
    fn apply(self) -> io::Result<String> {
        let mode = |path: &Path| path.metadata().map(|metadata| metadata.mode() & MODE);
        match self {
            Self::Close { path, bits } => {
                let was = mode(path)?;
                fs::set_permissions(path, Permissions::from_mode(was & !bits))?;
                // Some file systems have no modes, and report no error.
                let is = mode(path)?;
                if is & bits != 0 {
                    return Err(io::Error::other(format!("its mode is still {is:o}")));
                }
                Ok(format!("Its mode was {was:o} and is {is:o} now."))
            }
            Self::RemoveAddress { path, database } => {
                // A gateway that has started since the check: it writes its address some time after it has locked the database.
                if rejoinder_store::is_in_use(database)? {
                    return Err(io::Error::other("a gateway has just started"));
                }
                fs::remove_file(path)?;
                Ok("It is removed.".to_owned())
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Fixer {
    is_wanted: bool,
    /// The user of this process.
    user: u32,
    /// The owner of the data directory; `None` if there is none.
    gateway_user: Option<u32>,
}

impl Fixer {
    /// `is_wanted`: `--fix` was given.
    pub(super) fn new(is_wanted: bool, data_dir: &Path) -> Self {
        let user = rustix::process::geteuid().as_raw();
        Self { is_wanted, user, gateway_user: data_dir.metadata().ok().map(|metadata| metadata.uid()) }
    }

    /// With `--fix`, applies `remedy` to the cause of `finding`, or adds why it did not. Without it, adds that `--fix` would
    /// apply it.
    pub(super) fn treat(self, finding: Finding, remedy: Remedy<'_>) -> Finding {
        let applied = match self.permit(remedy) {
            Ok(()) if !self.is_wanted => return finding.with_more_advice("Or run rejoinder doctor --fix."),
            Err(_) if !self.is_wanted => return finding,
            permitted => permitted.and_then(|()| remedy.apply().map_err(|error| error.to_string())),
        };
        match applied {
            Ok(done) => finding.into_fixed(done),
            Err(reason) => finding.with_more_advice(format!("It was not fixed: {reason}.")),
        }
    }

    /// Whether nobody but the gateway needs what `remedy` takes away, and it can only affect the file that is meant; an error
    /// says why not.
    fn permit(self, remedy: Remedy<'_>) -> Result<(), String> {
        let path = remedy.path();
        let metadata = path.symlink_metadata().map_err(|error| error.to_string())?;
        self.permit_owner(metadata.uid())?;
        if metadata.is_symlink() {
            return Err("it is a symbolic link".to_owned());
        }
        if let Some(above) = writable_above(path) {
            return Err(format!("other users can write to {}", above.display()));
        }
        if metadata.is_dir() { permit_folder(path, metadata.mode()) } else { Ok(()) }
    }

    /// Whether a file of `owner` may be changed. Not if the gateway runs as another user: it may need the access itself.
    fn permit_owner(self, owner: u32) -> Result<(), &'static str> {
        match self.gateway_user {
            _ if owner != self.user => Err("it belongs to another user"),
            None => Err("the data directory does not exist yet, so the gateway's user is not known"),
            Some(user) if user != self.user => Err("the data directory belongs to another user"),
            Some(_) => Ok(()),
        }
    }
}

/// Whether a folder may be closed: others may need a folder that also holds files of other programs.
fn permit_folder(path: &Path, mode: u32) -> Result<(), String> {
    if mode & STICKY != 0 {
        return Err("all users share it".to_owned());
    }
    for entry in path.read_dir().map_err(|error| error.to_string())?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !is_ours(&name) {
            return Err(format!("it also holds {name}"));
        }
    }
    Ok(())
}

/// Whether the gateway makes files or folders with this name.
fn is_ours(name: &str) -> bool {
    let is_secret = name.ends_with("-token") || name.ends_with("-key");
    is_secret
        || name == "address"
        || name.contains(".db")
        || name.starts_with("matrix-")
        || name.starts_with(".rejoinder")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rejoinder_core::store::StoreState;
    use rejoinder_store::{OpenOptions, SqliteStore};
    use rstest::rstest;
    use tempfile::TempDir;

    use super::*;
    use crate::console::finding::Verdict;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().mode() & MODE
    }

    /// A folder, and a file in it that every user can read.
    fn readable_file() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("admin-token");
        fs::write(&file, "").unwrap();
        set_mode(&file, 0o644);
        (folder, file)
    }

    fn treat(fixer: Fixer, path: &Path) -> Finding {
        fixer.treat(Finding::wrong("data", "it is open").with_advice("Close it."), Remedy::Close { path, bits: OTHERS })
    }

    #[rstest]
    #[case(7, Some(7), "")]
    #[case(8, Some(7), "it belongs to another user")]
    #[case(8, Some(8), "it belongs to another user")]
    #[case(7, Some(8), "the data directory belongs to another user")]
    #[case(7, None, "the data directory does not exist yet")]
    fn only_the_gateways_user_changes_only_its_own_files(
        #[case] owner: u32,
        #[case] gateway_user: Option<u32>,
        #[case] reason: &str,
    ) {
        let fixer = Fixer { is_wanted: true, user: 7, gateway_user };

        let refused = fixer.permit_owner(owner).err().unwrap_or_default();

        assert!(refused.starts_with(reason) && refused.is_empty() == reason.is_empty(), "{refused}");
    }

    #[test]
    fn without_fix_nothing_changes_and_the_finding_says_how_to_have_it_fixed() {
        let (folder, file) = readable_file();

        let finding = treat(Fixer::new(false, folder.path()), &file);

        assert_eq!((mode(&file), finding.verdict, finding.fixed), (0o644, Verdict::Wrong, false));
        assert_eq!(finding.advice.as_deref(), Some("Close it. Or run rejoinder doctor --fix."));
    }

    #[test]
    fn with_fix_the_access_of_others_is_taken_away() {
        let (folder, file) = readable_file();

        let finding = treat(Fixer::new(true, folder.path()), &file);

        assert_eq!((mode(&file), finding.verdict, finding.fixed), (0o600, Verdict::Ok, true));
        assert_eq!(finding.what, "it is open. Its mode was 644 and is 600 now.");
    }

    #[test]
    fn what_another_user_may_need_stays_as_it_is() {
        let (folder, file) = readable_file();
        let fixer = Fixer::new(true, folder.path());
        let another = Fixer { gateway_user: fixer.gateway_user.map(|user| user + 1), ..fixer };

        let finding = treat(another, &file);

        assert_eq!((mode(&file), finding.verdict, finding.fixed), (0o644, Verdict::Wrong, false));
        let advice = finding.advice.as_deref();
        assert_eq!(advice, Some("Close it. It was not fixed: the data directory belongs to another user."));
    }

    #[test]
    fn no_link_is_followed() {
        let (folder, file) = readable_file();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();

        let finding = treat(Fixer::new(true, folder.path()), &link);

        assert!(!finding.fixed && mode(&file) == 0o644, "{finding:?}");
    }

    #[test]
    fn nothing_is_changed_that_others_could_exchange_meanwhile() {
        let (folder, _) = readable_file();
        let shared = folder.path().join("shared");
        let file = shared.join("admin-token");
        fs::create_dir(&shared).unwrap();
        fs::write(&file, "").unwrap();
        for (path, mode) in [(folder.path(), 0o755), (&*shared, 0o777), (&*file, 0o644)] {
            set_mode(path, mode);
        }

        let finding = treat(Fixer::new(true, folder.path()), &file);

        assert!(!finding.fixed && mode(&file) == 0o644, "{finding:?}");
    }

    #[rstest]
    #[case("matrix-main", 0o755, true)]
    #[case("photos", 0o755, false)]
    #[case("hook-result-key", 0o755, true)]
    #[case("matrix-main", 0o1777, false)]
    fn a_folder_is_closed_if_it_is_the_gateways_alone(#[case] inner: &str, #[case] was: u32, #[case] is_closed: bool) {
        let (folder, _) = readable_file();
        fs::create_dir(folder.path().join(inner)).unwrap();
        set_mode(folder.path(), was);

        let finding = treat(Fixer::new(true, folder.path()), folder.path());

        assert_eq!((finding.fixed, mode(folder.path())), (is_closed, if is_closed { 0o700 } else { was }));
    }

    #[tokio::test]
    async fn the_address_of_a_gateway_that_has_just_started_stays() {
        let (folder, path) = readable_file();
        let database = folder.path().join("rejoinder.db");
        let remedy = Remedy::RemoveAddress { path: &path, database: &database };
        let store = SqliteStore::open(OpenOptions::new(&database)).await.unwrap();

        let refused = remedy.apply();
        let stayed = path.exists();
        store.close().await;
        let removed = remedy.apply();

        assert!(refused.is_err() && stayed, "{refused:?}");
        assert!(removed.is_ok() && !path.exists(), "{removed:?}");
    }
}
