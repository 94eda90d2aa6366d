//! What a configuration depends on besides its file: environment variables and folders.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
};

use secrecy::SecretString;

use crate::problem::Origin;

/// The name of the file, both in the working directory and in the user's configuration directory.
pub(crate) const FILE_NAME: &str = "rejoinder.toml";

/// Environment variables. `Debug` prints only their names.
#[derive(Clone, Default)]
pub struct Environment(pub(crate) BTreeMap<String, OsString>);

impl Environment {
    /// The variables of this process.
    pub fn of_process() -> Self {
        std::env::vars_os().collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str)
    }

    /// The value of `name`, unless it is empty.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// The user's configuration directory: `$XDG_CONFIG_HOME` or `~/.config`. `None` if neither is known.
    pub fn user_config_dir(&self) -> Option<PathBuf> {
        let dir = self.path("XDG_CONFIG_HOME").filter(|dir| dir.is_absolute());
        dir.or_else(|| Some(self.path("HOME")?.join(".config")))
    }

    /// The user's own configuration file: `rejoinder/rejoinder.toml` in the configuration directory.
    pub fn user_config_file(&self) -> Option<PathBuf> {
        Some(self.user_config_dir()?.join("rejoinder").join(FILE_NAME))
    }
}

/// Skips names that are not UTF-8: no setting has such a name.
impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let variables = variables.into_iter();
        Self(variables.filter_map(|(name, value)| Some((name.into().into_string().ok()?, value.into()))).collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What is needed to resolve secrets and relative paths.
pub(crate) struct ResolveContext<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) working_dir: &'a Path,
    pub(crate) config_dir: &'a Path,
    /// Collects the files that secrets were read from.
    pub(crate) secret_files: RefCell<BTreeSet<PathBuf>>,
    pub(crate) secrets: RefCell<Vec<SecretString>>,
}

impl ResolveContext<'_> {
    /// The file at a path of the configuration. A relative path starts at the folder of the config file. If an environment
    /// variable names it, it starts at the working directory.
    pub(crate) fn path(&self, path: &Path, origin: &Origin) -> PathBuf {
        match origin {
            Origin::File { .. } => self.config_dir.join(path),
            Origin::Variable(_) | Origin::Default => self.working_dir.join(path),
        }
    }
}
