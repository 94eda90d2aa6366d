//! Files that only their owner may use.

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
};

/// Makes a folder that only its owner may use, unless there is one.
///
/// # Errors
/// When it cannot be made.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Options of a file that only its owner may use, if it is made.
#[must_use]
pub fn private_file() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there are no modes"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Takes the access of other users to a file or folder away, and logs it. Does nothing if it does not exist.
#[cfg(unix)]
pub fn make_private(path: &Path) {
    use std::{
        fs::{Permissions, set_permissions},
        os::unix::fs::PermissionsExt,
    };

    use tracing::{info, warn};

    let Ok(mode) = path.metadata().map(|metadata| metadata.permissions().mode() & 0o777) else { return };
    if mode == mode & 0o700 {
        return;
    }
    let (shown, was) = (path.display(), format!("{mode:o}"));
    match set_permissions(path, Permissions::from_mode(mode & 0o700)) {
        Ok(()) => info!(path = %shown, was, "other users of this machine had access; now only its owner has"),
        Err(error) => warn!(path = %shown, mode = was, %error, "other users of this machine have access"),
    }
}

/// Does nothing.
#[cfg(not(unix))]
pub const fn make_private(_: &Path) {}
