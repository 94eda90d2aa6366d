//! `[store]`: where rows are kept.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::{check::Section, text};

/// Where rows are kept.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// The database.
    pub url: StoreUrl,
}

impl Section for Store {}

/// A database, `sqlite:rejoinder.db`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// One SQLite file. A relative path starts at the data directory.
    Sqlite(PathBuf),
}

impl StoreUrl {
    /// The file, seen from `data_dir`.
    #[must_use]
    pub fn path(&self, data_dir: &Path) -> PathBuf {
        match self {
            Self::Sqlite(path) => data_dir.join(path),
        }
    }

    fn parse(url: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = url.split_once(':').ok_or(Self::EXPECTED)?;
        match scheme {
            "sqlite" => {}
            "postgres" | "postgresql" => {
                return Err(
                    "names a PostgreSQL database: this build stores in SQLite only, write \"sqlite:rejoinder.db\"",
                );
            }
            _ => return Err(Self::EXPECTED),
        }
        let path = rest.strip_prefix("//").unwrap_or(rest);
        if path == ":memory:" {
            return Err(
                "names a database in memory, which would lose what is owed when the gateway stops: name a file",
            );
        }
        if path.contains('?') {
            return Err("has options after a `?`: the gateway sets SQLite's options itself, name the file alone");
        }
        if path.is_empty() || path.ends_with('/') { Err(Self::EXPECTED) } else { Ok(Self::Sqlite(path.into())) }
    }

    // The value is not repeated: the URL of a database may hold a password.
    const EXPECTED: &str = "must be \"sqlite:\" and the path of a file, such as \"sqlite:rejoinder.db\"";
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
        }
    }
}

impl Serialize for StoreUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StoreUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text::parsed(deserializer, "text", |url| Some(Self::parse(url)))?.map_err(D::Error::custom)
    }
}
