//! `[store]`: where rows are stored.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use url::form_urlencoded;

use crate::{
    Secret,
    check::{Checks, Section},
    redacted, text,
};

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    pub url: StoreUrl,
    /// The password for the user of a PostgreSQL URL, unless the URL has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
}

impl Store {
    /// The URL of a PostgreSQL database with the password; `None` if the database is a file.
    pub fn postgres(&self) -> Option<SecretString> {
        let StoreUrl::Postgres(url) = &self.url else { return None };
        Some(url.with(self.password.as_ref().map(|password| encoded(password.expose()))))
    }

    /// Checks the URL of a PostgreSQL database as it will be read.
    pub(crate) fn check_with(&self, postgres: fn(&str) -> Result<(), String>, checks: &mut Checks<'_>) {
        if let Some(Err(why)) = self.postgres().map(|url| postgres(url.expose_secret())) {
            checks.wrong(checks.key(&["url"]), format!("cannot be used: {why}"));
        }
    }
}

impl Section for Store {
    fn check(&self, checks: &mut Checks<'_>) {
        if self.password.is_none() {
            return;
        }
        let what = match &self.url {
            StoreUrl::Sqlite(_) => "is for a PostgreSQL database, and `store.url` names an SQLite file",
            StoreUrl::Postgres(PostgresUrl { user: None, .. }) => {
                "needs a user in `store.url`: \"postgres://USER@HOST/DATABASE\""
            }
            StoreUrl::Postgres(PostgresUrl { password: Some(_), .. }) => {
                "is in `store.url` as well: remove one of them"
            }
            StoreUrl::Postgres(_) => return,
        };
        checks.wrong(checks.key(&["password"]), what);
    }
}

/// The URL of a database, such as `sqlite:rejoinder.db` or `postgres://rejoinder@127.0.0.1/rejoinder`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// An SQLite file. A relative path starts at the data directory.
    Sqlite(PathBuf),
    Postgres(PostgresUrl),
}

impl StoreUrl {
    /// The path of an SQLite file, resolved against `data_dir`; `None` if the database is none.
    pub fn file(&self, data_dir: &Path) -> Option<PathBuf> {
        match self {
            Self::Sqlite(path) => Some(data_dir.join(path)),
            Self::Postgres(_) => None,
        }
    }

    fn parse(url: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = url.split_once(':').ok_or(Self::EXPECTED)?;
        match scheme {
            "sqlite" => parse_sqlite(rest).map(Self::Sqlite),
            "postgres" | "postgresql" => PostgresUrl::parse(rest).map(Self::Postgres),
            _ => Err(Self::EXPECTED),
        }
    }

    // The value is not quoted, because the URL of a database may contain a password.
    const EXPECTED: &str = "must be \"sqlite:\" and the path of a file, such as \"sqlite:rejoinder.db\", or the URL of \
                            a PostgreSQL database, such as \"postgres://USER@HOST:5432/DATABASE\"";
}

fn parse_sqlite(rest: &str) -> Result<PathBuf, &'static str> {
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path == ":memory:" {
        return Err(
            "names a database in memory, which would lose all owed answers when the gateway stops: name a file",
        );
    }
    if path.contains('?') {
        return Err("has options after a `?`: remove them, because the gateway sets SQLite's options itself");
    }
    if path.is_empty() || path.ends_with('/') { Err(StoreUrl::EXPECTED) } else { Ok(path.into()) }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => url.fmt(f),
        }
    }
}

impl Serialize for StoreUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Postgres(url) => url.serialize(serializer),
            Self::Sqlite(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for StoreUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text::parsed(deserializer, "text", |url| Some(Self::parse(url)))?.map_err(D::Error::custom)
    }
}

/// The URL of a PostgreSQL database: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETERS`. `Display` leaves the password out, so it
/// can be shown, and given to the programs of PostgreSQL.
#[derive(Clone, Debug)]
pub struct PostgresUrl {
    /// As in the URL, percent-encoded.
    user: Option<String>,
    /// As in the URL, percent-encoded.
    password: Option<Secret>,
    /// From the hosts on.
    rest: String,
}

impl PostgresUrl {
    /// Reads what follows `postgres:`.
    fn parse(rest: &str) -> Result<Self, &'static str> {
        let rest = rest.strip_prefix("//").ok_or(EXPECTED)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (location, after) = rest.split_at(end);
        if after.contains('#') || (after.contains('@') && !location.contains('@')) {
            return Err(
                "has a character in its password that a URL cannot have there: write `/` as %2F, `?` as %3F and \
                        `#` as %23, or set store.password",
            );
        }
        let (credentials, hosts) = match location.rsplit_once('@') {
            Some((credentials, hosts)) => (Some(credentials), hosts),
            None => (None, location),
        };
        let (path, parameters) = after.split_once('?').unwrap_or((after, ""));
        let parameters = || parameters.split('&').filter_map(|parameter| parameter.split_once('='));
        if parameters().any(|(name, _)| matches!(name, "password" | "sslpassword")) {
            return Err("has a password after its `?`: write it before the `@`, or set store.password");
        }
        let is_elsewhere = parameters().any(|(name, host)| name == "host" && !host.is_empty());
        if !(hosts.is_empty() && is_elsewhere) {
            for host in hosts.split(',') {
                check_host(host)?;
            }
        }
        let database = path.strip_prefix('/').unwrap_or_default();
        if database.is_empty() || database.contains('/') {
            return Err("must name one database after the host: \"postgres://USER@HOST:5432/DATABASE\"");
        }
        let (user, password) = match credentials.map(|it| it.split_once(':').unwrap_or((it, ""))) {
            Some(("", _)) => return Err("must name a user before the `@`: \"postgres://USER@HOST:5432/DATABASE\""),
            Some((user, password)) => (Some(user.to_owned()), (!password.is_empty()).then(|| password.into())),
            None => (None, None),
        };
        Ok(Self { user, password, rest: format!("{hosts}{after}") })
    }

    /// The password as it is in the URL, if it is there.
    pub(crate) const fn password(&self) -> Option<&Secret> {
        self.password.as_ref()
    }

    /// The whole URL, with its own password or else this one, percent-encoded.
    fn with(&self, password: Option<String>) -> SecretString {
        let own = || self.password.as_ref().map(|own| own.expose().to_owned());
        self.written(own().or(password).as_deref()).into()
    }

    fn written(&self, password: Option<&str>) -> String {
        let user = self.user.as_deref().map(|user| match password {
            Some(password) => format!("{user}:{password}@"),
            None => format!("{user}@"),
        });
        format!("postgres://{}{}", user.unwrap_or_default(), self.rest)
    }
}

impl PartialEq for PostgresUrl {
    fn eq(&self, other: &Self) -> bool {
        let password = |url: &Self| url.password.as_ref().map(|password| password.expose().to_owned());
        self.user == other.user && self.rest == other.rest && password(self) == password(other)
    }
}

impl Eq for PostgresUrl {}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(None))
    }
}

impl Serialize for PostgresUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.password {
            None => serializer.collect_str(self),
            Some(password) => {
                serializer.serialize_str(&redacted::written(&self.written(Some("***")), password.expose()))
            }
        }
    }
}

const EXPECTED: &str = "must have two slashes after its scheme: \"postgres://USER@HOST:5432/DATABASE\"";

/// Checks one host of a URL, with the port if it has one.
fn check_host(host: &str) -> Result<(), &'static str> {
    let (name, port) = match host.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((address, rest))) => (address, rest),
        Some(None) => return Err("has an IPv6 address that does not end with `]`"),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    if name.is_empty() {
        return Err(
            "must name a host: \"postgres://USER@HOST:5432/DATABASE\", or ?host=FOLDER for that of a Unix socket",
        );
    }
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    match port.strip_prefix(':') {
        Some(port) if is_port(port) => Ok(()),
        None if port.is_empty() => Ok(()),
        _ => Err("has a port that is no number from 1 to 65535, or a `:` or `@` in its password: write these as %3A \
                  and %40, or set store.password"),
    }
}

/// A text as it is written in a URL.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn postgres(url: &str, password: Option<&str>) -> String {
        let store = Store { url: StoreUrl::parse(url).expect("it is a URL"), password: password.map(Secret::from) };
        store.postgres().expect("it is of PostgreSQL").expose_secret().to_owned()
    }

    #[test]
    fn a_password_stands_in_the_url_that_is_opened_and_nowhere_else() {
        let with_its_own = "postgres://ann:s%2Fcret@db.example.org:5433/chats?sslmode=require";

        assert_eq!(postgres(with_its_own, None), with_its_own);
        assert_eq!(
            postgres("postgresql://ann@db/chats", Some("s/c+r e:t@")),
            "postgres://ann:s%2Fc%2Br%20e%3At%40@db/chats"
        );
        assert_eq!(postgres("postgres://db/chats", None), "postgres://db/chats");
        let url = StoreUrl::parse(with_its_own).expect("it is a URL");
        let shown = "postgres://ann@db.example.org:5433/chats?sslmode=require";
        assert_eq!(url.to_string(), shown);
        assert_eq!(serde_json::to_value(&url).expect("JSON"), shown.replace("ann@", "ann:***@"));
        assert!(!format!("{url:?}").contains("cret"), "{url:?}");
    }

    #[test]
    fn a_changed_password_is_a_change_although_it_is_not_shown() {
        let compared = |url: &str| {
            let url = StoreUrl::parse(url).expect("it is a URL");
            redacted::to_compare(|| serde_json::to_string(&url).expect("JSON"))
        };

        assert_ne!(compared("postgres://ann:one@db/chats"), compared("postgres://ann:two@db/chats"));
        assert!(!compared("postgres://ann:secret@db/chats").contains("secret"));
    }

    #[test]
    fn hosts_ports_and_sockets_are_told_from_mistakes() {
        for url in [
            "postgres://ann@127.0.0.1/chats",
            "postgres://ann@[::1]:5432/chats",
            "postgres://ann@one:5432,two/chats?target_session_attrs=read-write",
            "postgres://ann@/chats?host=/run/postgresql",
            "postgres://%2Frun%2Fpostgresql/chats",
        ] {
            assert!(StoreUrl::parse(url).is_ok(), "{url}");
        }
        for (url, about) in [
            ("postgres:ann@db/chats", "two slashes"),
            ("postgres:///chats", "must name a host"),
            ("postgres://ann@one,/chats", "must name a host"),
            ("postgres://ann@:5432/chats", "must name a host"),
            ("postgres://ann@[::1/chats", "IPv6"),
            ("postgres://ann@db:0/chats", "port"),
            ("postgres://ann:se:cret/chats", "port"),
            ("postgres://ann@db", "one database"),
            ("postgres://ann@db/", "one database"),
            ("postgres://ann@db/chats/more", "one database"),
            ("postgres://:secret@db/chats", "must name a user"),
            ("postgres://ann:se/cret@db/chats", "write `/` as %2F"),
            ("postgres://ann:se#cret@db/chats", "`#` as %23"),
            ("postgres://ann@db/chats?password=secret", "after its `?`"),
            ("mysql://ann@db/chats", "must be \"sqlite:\""),
        ] {
            let error = StoreUrl::parse(url).expect_err(url);
            assert!(error.contains(about), "{url}: {error}");
        }
    }
}
