//! Synapse as a process.

use std::{
    fs,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    time::Instant,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::{Human, PATIENCE, Person, Proxy, client, free_port, person, python};

/// The configuration of a homeserver.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The sustained rate of messages per account and second.
    pub messages_per_second: f64,
    /// How many messages an account may send in a burst.
    pub burst: u32,
}

impl Default for Settings {
    /// Practically no limits.
    fn default() -> Self {
        Self { messages_per_second: 10_000.0, burst: 10_000 }
    }
}

impl Settings {
    /// Synapse's default limits.
    #[must_use]
    pub const fn synapse_defaults() -> Self {
        Self { messages_per_second: 0.2, burst: 10 }
    }
}

#[derive(Clone, Debug)]
pub struct Account {
    pub user: String,
    pub password: String,
}

/// A homeserver. Dropping it stops it.
#[derive(Debug)]
pub struct Homeserver {
    url: String,
    started: Option<Started>,
}

/// The resources of a homeserver that this process has started.
#[derive(Debug)]
struct Started {
    folder: TempDir,
    process: Option<(Child, ChildStdin)>,
}

impl Homeserver {
    /// The homeserver that tests share: the one at `REJOINDER_HOMESERVER`, which `cargo xtask test` starts for all test
    /// processes; without that variable, one that this process starts and that ends with it.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Homeserver> = OnceCell::const_new();
        let find = async || match std::env::var("REJOINDER_HOMESERVER") {
            Ok(url) => Self { url, started: None },
            Err(_) => Self::start(Settings::default()).await,
        };
        SHARED.get_or_init(find).await
    }

    /// Starts a homeserver on a free port.
    ///
    /// # Panics
    /// If Python or its packages are missing: run the tests with `cargo xtask test`.
    pub async fn start(settings: Settings) -> Self {
        let folder = tempfile::tempdir().expect("a folder is created");
        let port = free_port();
        write_configuration(folder.path(), port, settings);
        let started = Some(Started { folder, process: None });
        let mut homeserver = Self { url: format!("http://127.0.0.1:{port}"), started };
        homeserver.restart().await;
        homeserver
    }

    /// Starts it again after [`stop`](Self::stop), with its data.
    ///
    /// # Panics
    /// If it does not start, or was started by another process.
    pub async fn restart(&mut self) {
        let Started { folder, process: running } = self.started.as_mut().expect("this process has started it");
        let folder = folder.path();
        let output = fs::File::create(folder.join("output.log")).expect("the log is created");
        let mut process = Command::new(python())
            .args(["-B", "-m", "server.synapse", "-c"])
            .arg(folder.join("homeserver.yaml"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdin(Stdio::piped())
            .stdout(output.try_clone().expect("the file handle is duplicated"))
            .stderr(output)
            .spawn()
            .unwrap_or_else(|error| panic!("Python does not start: {error}: run `cargo xtask test`"));
        let input = process.stdin.take().expect("the process has an input");
        let (process, _) = running.insert((process, input));
        let (started, client) = (Instant::now(), client());
        while client.get(format!("{}/_matrix/client/versions", self.url)).send().await.is_err() {
            let ended = process.try_wait().ok().flatten();
            assert!(
                ended.is_none() && started.elapsed() < PATIENCE,
                "Synapse did not start: {}",
                fs::read_to_string(folder.join("output.log")).unwrap_or_default()
            );
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
    }

    /// Stops it without a shutdown, as a crash would.
    ///
    /// # Panics
    /// If it does not end, or was started by another process.
    pub fn stop(&mut self) {
        let started = self.started.as_mut().expect("this process has started it");
        if let Some((mut process, input)) = started.process.take() {
            drop(input);
            process.wait().expect("the process is waited for");
        }
    }

    /// The base URL of the client API.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Registers a new account whose name begins with `name`.
    ///
    /// # Panics
    /// If the registration fails.
    pub async fn account(&self, name: &str) -> Account {
        let (account, _) = self.register(name).await;
        account
    }

    /// Registers a new account with a device; returns the account and the device's access token.
    pub async fn account_with_token(&self, name: &str) -> (Account, String) {
        self.register(name).await
    }

    /// Logs in another client of an account.
    ///
    /// # Panics
    /// If the login fails.
    pub async fn log_in(&self, account: &Account) -> Person {
        let identifier = json!({ "type": "m.id.user", "user": account.user });
        let body = json!({ "type": "m.login.password", "identifier": identifier, "password": account.password });
        let url = format!("{}/_matrix/client/v3/login", self.url);
        let answer = person::call(&client(), "POST", &url, None, Some(&body)).await;
        let token = answer["access_token"].as_str().expect("a login returns a token").to_owned();
        Person::new(&self.url, account.user.clone(), token)
    }

    /// Joins a room that the account of `token` was invited to.
    pub async fn join(&self, token: &str, room: &str) {
        let url = format!("{}/_matrix/client/v3/rooms/{room}/join", self.url);
        person::call(&client(), "POST", &url, Some(token), Some(&json!({}))).await;
    }

    /// Registers a new person without encryption.
    pub async fn person(&self, name: &str) -> Person {
        let (account, token) = self.register(name).await;
        Person::new(&self.url, account.user, token)
    }

    /// Registers a new person whose client encrypts.
    pub async fn human(&self, name: &str) -> Human {
        self.human_by(name, &self.url).await
    }

    /// Logs in another client of an account, with encryption.
    pub async fn human_of(&self, account: &Account) -> Human {
        Human::start(&self.url, account.clone()).await
    }

    /// As [`human`](Self::human), through a proxy.
    pub async fn human_through(&self, name: &str, proxy: &Proxy) -> Human {
        self.human_by(name, proxy.url()).await
    }

    async fn human_by(&self, name: &str, url: &str) -> Human {
        let (account, _) = self.register(name).await;
        Human::start(url, account).await
    }

    /// Starts a proxy to it, which can fail.
    pub async fn proxy(&self) -> Proxy {
        Proxy::start(&self.url).await
    }

    async fn register(&self, name: &str) -> (Account, String) {
        let suffix = uuid::Uuid::now_v7().simple().to_string();
        let (name, password) = (format!("{name}-{}", &suffix[20..]), "not a secret".to_owned());
        let auth = json!({ "type": "m.login.dummy" });
        let body =
            json!({ "username": name, "password": password, "auth": auth, "initial_device_display_name": "test" });
        let path = "/_matrix/client/v3/register";
        let answer: Value = person::call(&client(), "POST", &format!("{}{path}", self.url), None, Some(&body)).await;
        let field = |key: &str| answer[key].as_str().expect("the registration returns it").to_owned();
        (Account { user: field("user_id"), password }, field("access_token"))
    }
}

impl Drop for Homeserver {
    fn drop(&mut self) {
        if let Some((mut process, _)) = self.started.as_mut().and_then(|started| started.process.take()) {
            // The process may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn write_configuration(folder: &Path, port: u16, settings: Settings) {
    let none = json!({ "per_second": 10_000, "burst_count": 10_000 });
    let path = |name: &str| folder.join(name).display().to_string();
    let configuration = json!({
        "server_name": "localhost",
        "public_baseurl": format!("http://127.0.0.1:{port}/"),
        "pid_file": path("homeserver.pid"),
        "listeners": [{
            "port": port, "type": "http", "bind_addresses": ["127.0.0.1"],
            "resources": [{ "names": ["client", "media"], "compress": false }],
        }],
        "database": { "name": "sqlite3", "args": { "database": path("homeserver.db") } },
        "log_config": path("log.yaml"),
        "media_store_path": path("media"),
        "signing_key_path": path("signing.key"),
        "macaroon_secret_key": "of-no-worth",
        "form_secret": "of-no-worth",
        "bcrypt_rounds": 4,
        "report_stats": false,
        "enable_registration": true,
        "enable_registration_without_verification": true,
        "trusted_key_servers": [],
        "suppress_key_server_warning": true,
        "url_preview_enabled": false,
        "presence": { "enabled": false },
        // No cached responses: a repeated sync must return new events.
        "caches": { "sync_response_cache_duration": "0s" },
        "rc_message": { "per_second": settings.messages_per_second, "burst_count": settings.burst },
        "rc_registration": none,
        "rc_login": { "address": none, "account": none, "failed_attempts": none },
        "rc_joins": { "local": none, "remote": none },
        "rc_joins_per_room": none,
        "rc_invites": { "per_room": none, "per_user": none, "per_issuer": none },
        "rc_room_creation": none,
    });
    let log = json!({
        "version": 1,
        "formatters": { "plain": { "format": "%(asctime)s %(levelname)s %(name)s %(message)s" } },
        "handlers": { "file": { "class": "logging.FileHandler", "formatter": "plain", "filename": path("synapse.log") } },
        "root": { "level": "WARNING", "handlers": ["file"] },
        "disable_existing_loggers": false,
    });
    let write = |name: &str, text: String| fs::write(folder.join(name), text).expect("the file is written");
    // JSON is YAML.
    write("homeserver.yaml", configuration.to_string());
    write("log.yaml", log.to_string());
    // Any seed of 32 bytes, in base64 without padding.
    write("signing.key", format!("ed25519 a_test {}\n", "A".repeat(43)));
}
