//! Tokens that the gateway keeps in its data directory: those that it makes itself, and those that it was told.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use rand::TryRngCore;
use secrecy::{ExposeSecret, SecretString};

/// How many random bytes a token has.
const BYTES: usize = 32;

/// A token, and where it is kept.
#[derive(Clone, Debug)]
pub(crate) struct MadeToken {
    pub(crate) token: SecretString,
    pub(crate) path: PathBuf,
    /// Whether it was made just now.
    pub(crate) is_new: bool,
}

/// The token in `file` of `data_dir`; made and kept there, with mode 600, when there is none.
///
/// # Errors
/// When the file can be neither read nor written.
pub(crate) fn kept_or_made(data_dir: &Path, file: &str) -> io::Result<MadeToken> {
    let path = data_dir.join(file);
    match fs::read_to_string(&path) {
        // A process that ended while it wrote leaves no file, but somebody may have emptied it.
        Ok(text) if !text.trim().is_empty() => {
            Ok(MadeToken { token: text.trim().to_owned().into(), path, is_new: false })
        }
        Ok(_) => make(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path),
        Err(error) => Err(error),
    }
}

/// The token in `file` of `data_dir`, as [`kept_or_made`] has it, and an empty one where it would be made.
///
/// # Errors
/// When the file is there and cannot be read.
pub(crate) fn kept_or_to_make(data_dir: &Path, file: &str) -> io::Result<MadeToken> {
    let path = data_dir.join(file);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let token = text.trim();
    Ok(MadeToken { token: token.to_owned().into(), is_new: token.is_empty(), path })
}

fn make(path: PathBuf) -> io::Result<MadeToken> {
    let mut bytes = [0; BYTES];
    rand::rngs::OsRng.try_fill_bytes(&mut bytes).map_err(io::Error::other)?;
    let token = SecretString::from(BASE64_URL_SAFE_NO_PAD.encode(bytes));
    keep(&path, &token)?;
    Ok(MadeToken { token, path, is_new: true })
}

/// Writes `token` to `path`, with mode 600, in place of what is there.
///
/// # Errors
/// When that fails; what was there is there still.
pub(crate) fn keep(path: &Path, token: &SecretString) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    let mut file = create_private(&unfinished)?;
    writeln!(file, "{}", token.expose_secret())?;
    file.sync_all()?;
    fs::rename(&unfinished, path)
}

fn create_private(path: &Path) -> io::Result<File> {
    // One that an earlier process left may have another mode.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_kept_to_its_owner() {
        let folder = tempfile::tempdir().unwrap();

        let made = kept_or_made(folder.path(), "hook-default-token").unwrap();
        let kept = kept_or_made(folder.path(), "hook-default-token").unwrap();

        assert!(made.is_new && !kept.is_new);
        assert_eq!(made.token.expose_secret(), kept.token.expose_secret());
        assert_eq!(made.token.expose_secret().len(), 43);
        assert!(!format!("{made:?}").contains(made.token.expose_secret()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(made.path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn an_emptied_file_gets_a_new_token() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("admin-token"), "\n").unwrap();

        assert!(kept_or_made(folder.path(), "admin-token").unwrap().is_new);
    }

    #[test]
    fn whoever_looks_makes_nothing() {
        let folder = tempfile::tempdir().unwrap();

        let to_make = kept_or_to_make(folder.path(), "admin-token").unwrap();
        let is_there = to_make.path.exists();
        let made = kept_or_made(folder.path(), "admin-token").unwrap();
        let kept = kept_or_to_make(folder.path(), "admin-token").unwrap();

        assert!(to_make.is_new && !is_there);
        assert_eq!(kept.token.expose_secret(), made.token.expose_secret());
    }

    #[test]
    fn two_tokens_are_two() {
        let folder = tempfile::tempdir().unwrap();

        let one = kept_or_made(folder.path(), "one").unwrap();
        let other = kept_or_made(folder.path(), "other").unwrap();

        assert_ne!(one.token.expose_secret(), other.token.expose_secret());
    }
}
