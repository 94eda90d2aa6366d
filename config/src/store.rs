//! `[store]`: where rows are stored.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::text;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    pub url: StoreUrl,
}

/// The URL of a database, such as `sqlite:rejoinder.db`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// An SQLite file. A relative path starts at the data directory.
    Sqlite(PathBuf),
}

impl StoreUrl {
    /// The path of the file, resolved against `data_dir`.
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
                    "names a PostgreSQL database, but this build supports only SQLite: write \"sqlite:rejoinder.db\"",
                );
            }
            _ => return Err(Self::EXPECTED),
        }
        let path = rest.strip_prefix("//").unwrap_or(rest);
        if path == ":memory:" {
            return Err(
                "names a database in memory, which would lose all owed answers when the gateway stops: name a file",
            );
        }
        if path.contains('?') {
            return Err("has options after a `?`: remove them, because the gateway sets SQLite's options itself");
        }
        if path.is_empty() || path.ends_with('/') { Err(Self::EXPECTED) } else { Ok(Self::Sqlite(path.into())) }
    }

    // The value is not quoted, because the URL of a database may contain a password.
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
