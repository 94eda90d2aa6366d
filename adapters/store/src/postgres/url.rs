//! The URL of a database: `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?PARAMETERS`. It is read here, and not by SQLx, because
//! that knows one host only, and drops parameters that it does not know.

use percent_encoding::percent_decode_str;
use sqlx::{
    ConnectOptions as _,
    postgres::{PgConnectOptions, PgSslMode},
};
use url::{Url, form_urlencoded};

use super::tls::TlsFiles;

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

const PORT: u16 = 5432;

/// How many statements of a connection stay prepared: more than there are.
const STATEMENTS: usize = 500;

/// A database, and the servers that may have it.
pub(super) struct DatabaseUrl {
    /// The database, as errors name it: without the password.
    pub(super) name: String,
    /// In the order of the URL. There is at least one.
    pub(super) hosts: Vec<HostAddress>,
    /// Whether only a server on which can be written is used.
    pub(super) must_be_writable: bool,
    pub(super) ssl_mode: PgSslMode,
    pub(super) files: TlsFiles,
}

/// Where a server is.
pub(super) struct HostAddress {
    /// A name or an IP address, or the folder of a Unix socket.
    pub(super) host: String,
    pub(super) port: u16,
    /// For a connection without TLS.
    pub(super) options: PgConnectOptions,
}

impl DatabaseUrl {
    /// The error is a sentence without any secret.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let rest = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme));
        let rest = rest.ok_or("it does not begin with postgres://")?;
        let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = base.find('/').map_or((base, ""), |at| base.split_at(at));
        // Otherwise a part of the password would be taken for a host, and shown.
        if rest.contains('#') || path.contains('@') || (!authority.contains('@') && query.contains('@')) {
            let rule = "in its user and password, `/`, `?`, `#` and `@` are written as %2F, %3F, %23 and %40";
            return Err(rule.to_owned());
        }
        let (user, list) = authority.rfind('@').map_or(("", authority), |at| authority.split_at(at + 1));
        let mut hosts = list.split(',').map(host_and_port).collect::<Result<Vec<_>, _>>()?;
        let (mut passed, mut files) = (Vec::new(), TlsFiles::default());
        let (mut ports, mut must_be_writable) = (None, true);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "host" => hosts = value.split(',').map(|host| (host.to_owned(), None)).collect(),
                "port" => ports = Some(value.split(',').map(port).collect::<Result<Vec<_>, _>>()?),
                "target_session_attrs" => must_be_writable = is_read_write(&value)?,
                "sslrootcert" => files.roots = Some(value.into_owned()),
                "sslcert" => files.certificate = Some(value.into_owned()),
                "sslkey" => files.key = Some(value.into_owned()),
                "sslmode" | "user" | "password" | "dbname" | "options" => passed.push((name, value)),
                _ if name.starts_with("options[") => passed.push((name, value)),
                _ => return Err(format!("its parameter `{name}` is not known: remove it")),
            }
        }
        if let Some(ports) = ports {
            if ports.len() != 1 && ports.len() != hosts.len() {
                return Err("it has neither one port nor one for each host".to_owned());
            }
            for ((_, port), given) in hosts.iter_mut().zip(ports.iter().cycle()) {
                *port = Some(*given);
            }
        }
        let address = |(host, port): (String, Option<u16>)| {
            if host.is_empty() {
                return Err("the name of a host is missing".to_owned());
            }
            let port = port.unwrap_or(PORT);
            // Those of a Unix socket have no TLS, and those over TCP get it elsewhere.
            let options = options(user, path, &passed, &host, port)?;
            Ok((options.get_ssl_mode(), HostAddress { host, port, options: options.ssl_mode(PgSslMode::Disable) }))
        };
        let found = hosts.into_iter().map(address).collect::<Result<Vec<_>, String>>()?;
        let ssl_mode = found.first().map(|(mode, _)| *mode).unwrap_or_default();
        let hosts: Vec<_> = found.into_iter().map(|(_, host)| host).collect();
        Ok(Self { name: name(&hosts), hosts, must_be_writable, ssl_mode, files })
    }
}

/// What SQLx makes of a URL with one host, and of `~/.pgpass` for that host.
fn options<N: AsRef<str>, V: AsRef<str>>(
    user: &str,
    path: &str,
    parameters: &[(N, V)],
    host: &str,
    port: u16,
) -> Result<PgConnectOptions, String> {
    let mut url = Url::parse(&format!("postgres://{user}localhost{path}")).map_err(|error| error.to_string())?;
    let mut query = url.query_pairs_mut();
    // The last one counts. Without this, `PGSSLMODE` would, but none of the other variables for TLS.
    query.append_pair("sslmode", "prefer");
    for (name, value) in parameters {
        query.append_pair(name.as_ref(), value.as_ref());
    }
    query.append_pair("host", host).append_pair("port", &port.to_string());
    drop(query);
    let options: PgConnectOptions = url.as_str().parse().map_err(|error: sqlx::Error| error.to_string())?;
    // Poolers refuse a connection that begins with `extra_float_digits`, which is the server's own value.
    Ok(options.extra_float_digits(None).statement_cache_capacity(STATEMENTS).disable_statement_logging())
}

/// The port is that of the URL, if it has one for this host.
fn host_and_port(text: &str) -> Result<(String, Option<u16>), String> {
    // An IPv6 address has colons, and is in brackets.
    let end = text.rfind(']').map_or(0, |at| at + 1);
    let (host, after) = match text[end..].split_once(':') {
        Some((name, after)) => (&text[..end + name.len()], Some(after)),
        None => (text, None),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let host = percent_decode_str(host).decode_utf8().map_err(|_| "the name of a host is no text")?;
    Ok((host.into_owned(), after.map(port).transpose()?))
}

// The text is not shown: it may be a part of a password.
fn port(text: &str) -> Result<u16, String> {
    text.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(|| "a port is no number from 1 to 65535".to_owned())
}

fn is_read_write(value: &str) -> Result<bool, String> {
    match value {
        "read-write" => Ok(true),
        "any" => Ok(false),
        _ => Err("its parameter `target_session_attrs` is neither `read-write` nor `any`".to_owned()),
    }
}

fn name(hosts: &[HostAddress]) -> String {
    let database = hosts
        .first()
        .map(|HostAddress { options, .. }| options.get_database().unwrap_or_else(|| options.get_username()));
    let hosts: Vec<_> = hosts.iter().map(HostAddress::name).collect();
    format!("{} at {}", database.unwrap_or_default(), hosts.join(", "))
}

impl HostAddress {
    pub(super) fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> DatabaseUrl {
        DatabaseUrl::parse(url).expect("it is a URL")
    }

    fn error(url: &str) -> String {
        DatabaseUrl::parse(url).err().expect("it is no URL that can be used")
    }

    #[test]
    fn each_host_has_its_port_and_all_else_is_the_same() {
        let url = parse("postgresql://ann:s%40crèt@db-1:6000,[::1],10.0.0.2:7000/chats?sslmode=require");
        assert_eq!(url.name, "chats at db-1:6000, ::1:5432, 10.0.0.2:7000");
        assert!(url.must_be_writable);
        assert!(matches!(url.ssl_mode, PgSslMode::Require));
        for HostAddress { host, port, options } in &url.hosts {
            assert_eq!((options.get_host(), options.get_port()), (&**host, *port));
            assert_eq!((options.get_username(), options.get_database()), ("ann", Some("chats")));
            assert!(matches!(options.get_ssl_mode(), PgSslMode::Disable));
        }
    }

    #[test]
    fn hosts_can_be_parameters() {
        let url = parse("postgres://ann@x:1/chats?host=db-1,/run/pg&port=6000,6001&target_session_attrs=any");
        assert_eq!(url.name, "chats at db-1:6000, /run/pg:6001");
        assert!(!url.must_be_writable);
        assert!(url.hosts[1].options.get_socket().is_some_and(|folder| folder.ends_with("run/pg")));
        // The last one counts, as for other programs.
        let url = parse("postgres://ann@x/chats?host=/one&host=/other&port=6000");
        assert_eq!(url.name, "chats at /other:6000");
        let url = parse("postgres://ann@%2Frun%2Fpg/chats?");
        assert_eq!(url.name, "chats at /run/pg:5432");
    }

    #[test]
    fn an_error_says_what_is_wrong_and_nothing_of_the_password() {
        let unknown = error("postgres://ann:secret@db/chats?sslmode=require&channel_binding=require");
        assert_eq!(unknown, "its parameter `channel_binding` is not known: remove it");
        for url in [
            "mysql://ann:secret@db/chats",
            "postgres://ann:secret@/chats",
            "postgres://ann:secret@db,,db/chats",
            "postgres://ann:secret@db:x/chats",
            "postgres://ann:secret@db:0/chats",
            "postgres://ann:12/secret@db/chats",
            "postgres://ann:12?secret@db/chats",
            "postgres://ann:12#secret@db/chats",
            "postgres://ann:secret@db,db,db/chats?port=1,2",
            "postgres://ann:secret@db/chats?target_session_attrs=standby",
            "postgres://ann:secret@db/chats?sslmode=always",
        ] {
            let error = error(url);
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
