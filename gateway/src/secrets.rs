//! Secrets in the data directory: those that the gateway generates, and those typed in during `rejoinder init`.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use rand::TryRngCore;
use rejoinder_config::MIN_TOKEN;
use rejoinder_kit::make_private;
use secrecy::{ExposeSecret, SecretString};

/// The number of random bytes of a token.
const BYTES: usize = 32;

/// A generated token, and the file that keeps it.
#[derive(Clone, Debug)]
pub(crate) struct GeneratedToken {
    pub(crate) token: SecretString,
    pub(crate) path: PathBuf,
    /// Whether it was generated just now.
    pub(crate) is_new: bool,
}

/// The token in `file` of `data_dir`. If there is none, generates one and stores it there with mode 600.
///
/// # Errors
/// When the file can be neither read nor written, or somebody has put a short token into it.
pub(crate) fn read_or_create(data_dir: &Path, file: &str) -> io::Result<GeneratedToken> {
    let path = data_dir.join(file);
    make_private(&path);
    if let Some(token) = read_token(&path)? {
        return Ok(GeneratedToken { token, path, is_new: false });
    }
    let token = new_token()?;
    write(&path, &token)?;
    Ok(GeneratedToken { token, path, is_new: true })
}

/// The token in `file` of `data_dir`. If there is none, generates one and stores it nowhere.
pub(crate) fn read_or_throwaway(data_dir: &Path, file: &str) -> io::Result<GeneratedToken> {
    let path = data_dir.join(file);
    match read_token(&path)? {
        Some(token) => Ok(GeneratedToken { token, path, is_new: false }),
        None => Ok(GeneratedToken { token: new_token()?, path, is_new: true }),
    }
}

/// The token in `file` of `data_dir`, if there is one.
pub(crate) fn read(data_dir: &Path, file: &str) -> io::Result<Option<SecretString>> {
    read_token(&data_dir.join(file))
}

/// The stored token. An empty file counts as none: a crash leaves no partial file, but someone may have emptied it.
fn read_token(path: &Path) -> io::Result<Option<SecretString>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let token = text.trim();
    if !token.is_empty() && token.chars().count() < MIN_TOKEN {
        let what = format!("the token has fewer than {MIN_TOKEN} characters: delete the file, and a new one is made");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    Ok((!token.is_empty()).then(|| SecretString::from(token)))
}

pub(crate) fn new_token() -> io::Result<SecretString> {
    let mut bytes = [0; BYTES];
    rand::rngs::OsRng.try_fill_bytes(&mut bytes).map_err(io::Error::other)?;
    Ok(SecretString::from(BASE64_URL_SAFE_NO_PAD.encode(bytes)))
}

/// Writes `token` to `path` with mode 600, replacing an existing file.
///
/// # Errors
/// When that fails; an existing file is then unchanged.
pub(crate) fn write(path: &Path, token: &SecretString) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    let mut file = create_private(&unfinished)?;
    writeln!(file, "{}", token.expose_secret())?;
    file.sync_all()?;
    fs::rename(&unfinished, path)
}

fn create_private(path: &Path) -> io::Result<File> {
    // A leftover of an earlier process may have another mode.
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

/// Creates the directory with mode 700 if it does not exist.
pub(crate) fn make_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_kept_to_its_owner() {
        let folder = tempfile::tempdir().unwrap();

        let made = read_or_create(folder.path(), "hook-default-token").unwrap();
        let kept = read_or_create(folder.path(), "hook-default-token").unwrap();

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

    #[cfg(unix)]
    #[test]
    fn an_older_file_is_closed_to_others() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = read_or_create(folder.path(), "admin-token").unwrap().path;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();

        read_or_create(folder.path(), "admin-token").unwrap();

        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_short_token_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("admin-token"), "1234\n").unwrap();

        let error = read_or_create(folder.path(), "admin-token").unwrap_err().to_string();

        assert!(error.contains("fewer than 20 characters") && !error.contains("1234"), "{error}");
    }

    #[test]
    fn an_emptied_file_gets_a_new_token() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("admin-token"), "\n").unwrap();

        assert!(read_or_create(folder.path(), "admin-token").unwrap().is_new);
    }

    #[test]
    fn whoever_looks_makes_nothing() {
        let folder = tempfile::tempdir().unwrap();

        let none = read_or_throwaway(folder.path(), "admin-token").unwrap();
        let is_there = none.path.exists();
        let made = read_or_create(folder.path(), "admin-token").unwrap();
        let kept = read_or_throwaway(folder.path(), "admin-token").unwrap();

        assert!(none.is_new && !none.token.expose_secret().is_empty() && !is_there);
        assert_eq!(kept.token.expose_secret(), made.token.expose_secret());
    }

    #[test]
    fn two_tokens_are_two() {
        let folder = tempfile::tempdir().unwrap();

        let one = read_or_create(folder.path(), "one").unwrap();
        let other = read_or_create(folder.path(), "other").unwrap();

        assert_ne!(one.token.expose_secret(), other.token.expose_secret());
    }
}
