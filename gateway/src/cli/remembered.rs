//! The configuration that a data directory was last used with. A start in another folder uses the same gateway.

use std::{
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rejoinder_config::{ConfigSource, Remembered};

use crate::{exposure::Exposure, wiring::CONFIG_PATH_FILE};

/// The configuration to follow if no other is named or found. It need not exist any more. Who can write what leads to it would decide
/// which files the caller reads, and what the caller does.
pub(super) fn followed(data_dir: &Path) -> Option<Remembered> {
    let path = read(data_dir)?;
    let parts = [data_dir, &data_dir.join(CONFIG_PATH_FILE), &path];
    let distrust = parts.into_iter().find_map(Exposure::changeable_by_others).map(|changeable| {
        format!(
            "{} can be changed by another user of this machine: name the configuration with --config",
            changeable.display()
        )
    });
    Some(Remembered { path, distrust })
}

/// The path of the configuration, if there was one. It need not exist any more.
pub(super) fn read(data_dir: &Path) -> Option<PathBuf> {
    let path = std::fs::read(data_dir.join(CONFIG_PATH_FILE)).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(&path))).filter(|path| path.is_absolute())
}

/// # Errors
/// When it cannot be written.
pub(super) fn write(data_dir: &Path, source: &ConfigSource) -> io::Result<()> {
    let file = data_dir.join(CONFIG_PATH_FILE);
    match source.file() {
        Some(path) => std::fs::write(file, std::path::absolute(path)?.as_os_str().as_bytes()),
        None => match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
    }
}

/// The configuration that the data directory was last used with, if `source` is another one.
pub(super) fn other(data_dir: &Path, source: &ConfigSource) -> Option<PathBuf> {
    let is_same = |path: &PathBuf| source.file().is_some_and(|file| same_file(path, file));
    read(data_dir).filter(|path| !is_same(path))
}

fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    real(one) == real(other)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{Permissions, set_permissions},
        os::unix::fs::PermissionsExt,
    };

    use super::*;

    #[test]
    fn a_configuration_that_others_can_write_is_not_followed() {
        let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap();
        let (data, file) = (folder.path().join("data"), folder.path().join("rejoinder.toml"));
        std::fs::create_dir(&data).unwrap();
        std::fs::write(&file, "").unwrap();
        write(&data, &ConfigSource::File(file.clone())).unwrap();
        let distrust = |path: &Path, mode| {
            set_permissions(path, Permissions::from_mode(mode)).unwrap();
            followed(&data).and_then(|it| it.distrust)
        };

        assert_eq!((distrust(&data, 0o755), distrust(&file, 0o644)), (None, None));
        for (path, closed, open) in [
            (&file, 0o644, 0o646),
            (&data.join(CONFIG_PATH_FILE), 0o644, 0o646),
            (&data, 0o755, 0o757),
            (&folder.path().to_owned(), 0o755, 0o757),
        ] {
            let why = distrust(path, open);
            assert!(why.is_some_and(|why| why.contains("--config")), "{}", path.display());
            assert_eq!(distrust(path, closed), None);
        }
    }
}
