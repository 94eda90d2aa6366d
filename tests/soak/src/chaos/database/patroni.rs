//! Three servers under Patroni, which agree by etcd who is the primary.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rejoinder_postgres_server::Servers;
use rejoinder_tests::free_port;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::time::sleep;

/// How many servers there are.
pub(super) const SERVERS: usize = 3;
/// The first version in which a leader that stood still does not overwrite the lock of the next one (`_update_leader` in `dcs/etcd3.py`).
const KEEPS_LOCKS: [u32; 3] = [3, 0, 3];
/// How long a request may take: a restart and a switch-over are done when it is answered.
const ANSWER: Duration = Duration::from_mins(1);
/// How long it may take until a standby is synchronous: some 10 s after a restart of the primary.
const SYNCHRONOUS: Duration = Duration::from_mins(2);

pub(super) struct Patroni {
    etcd: Child,
    /// One for each server.
    processes: Vec<Child>,
    /// The port of the HTTP API of each.
    apis: Vec<u16>,
    http: Client,
}

impl Patroni {
    pub(super) fn is_installed() -> bool {
        ["patroni", "etcd"].iter().all(|program| Command::new(program).arg("--version").output().is_ok())
    }

    /// Whether a leader that stood still may go on.
    pub(super) fn keeps_locks() -> Result<bool> {
        let output = Command::new("patroni").arg("--version").output().context("cannot start Patroni")?;
        let version = String::from_utf8(output.stdout)?;
        let numbers: Vec<u32> =
            version.split(|it: char| !it.is_ascii_digit()).filter_map(|it| it.parse().ok()).collect();
        Ok(numbers.as_slice() >= KEEPS_LOCKS.as_slice())
    }

    /// Starts it for servers that have no data.
    pub(super) fn start(servers: &Servers, connections: u32) -> Result<Self> {
        let folder = servers.folder();
        let (client, peer) = (free_port(), free_port());
        let [client_url, peer_url] = [client, peer].map(|port| format!("http://127.0.0.1:{port}"));
        let mut etcd = servers.command(Path::new("etcd"));
        etcd.arg("--data-dir").arg(folder.join("etcd")).args(["--log-level=error", "--initial-cluster"]);
        etcd.arg(format!("default={peer_url}")).args(["--initial-advertise-peer-urls", &peer_url]);
        etcd.args(["--listen-peer-urls", &peer_url, "--listen-client-urls", &client_url]);
        let etcd = etcd.args(["--advertise-client-urls", &client_url]).spawn().context("cannot start etcd")?;
        let http = Client::builder().no_proxy().timeout(ANSWER).build()?;
        let mut patroni = Self { etcd, processes: Vec::new(), apis: Vec::new(), http };
        for number in 0..servers.count() {
            let api = free_port();
            let settings = settings(servers, number, client, api, connections);
            // JSON is YAML.
            fs::write(file(servers, number, "yml"), settings.to_string())?;
            patroni.processes.push(launch(servers, number)?);
            patroni.apis.push(api);
        }
        Ok(patroni)
    }

    /// The process beside a server.
    pub(super) fn process(&self, server: usize) -> u32 {
        self.processes[server].id()
    }

    /// Ends the process beside a server, as `kill -9` does.
    pub(super) fn kill(&mut self, server: usize) -> Result<()> {
        self.processes[server].kill()?;
        self.processes[server].wait()?;
        Ok(())
    }

    /// Starts the process beside a server again.
    pub(super) fn start_again(&mut self, servers: &Servers, server: usize) -> Result<()> {
        self.processes[server] = launch(servers, server)?;
        Ok(())
    }

    /// Waits until a standby is synchronous. Until then Patroni makes no other server the primary, and refuses a switch-over.
    pub(super) async fn until_synchronous(&self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < SYNCHRONOUS {
            for api in &self.apis {
                let asked = self.http.get(format!("http://127.0.0.1:{api}/cluster")).timeout(Duration::from_secs(2));
                let Ok(answer) = asked.send().await else { continue };
                let cluster: Value = answer.json().await.unwrap_or_default();
                let mut members = cluster["members"].as_array().into_iter().flatten();
                if members.any(|member| member["role"] == "sync_standby") {
                    return Ok(());
                }
            }
            sleep(Duration::from_millis(500)).await;
        }
        bail!("no standby is synchronous after {SYNCHRONOUS:?}")
    }

    pub(super) async fn restart(&self, server: usize) -> Result<()> {
        self.ask(server, "restart", &json!({})).await
    }

    pub(super) async fn switch_over(&self, primary: usize) -> Result<()> {
        self.ask(primary, "switchover", &json!({ "leader": name(primary) })).await
    }

    async fn ask(&self, server: usize, what: &str, body: &Value) -> Result<()> {
        let response =
            self.http.post(format!("http://127.0.0.1:{}/{what}", self.apis[server])).json(body).send().await?;
        let status = response.status();
        ensure!(status.is_success(), "Patroni does not do the {what}: {status} {}", response.text().await?);
        Ok(())
    }
}

impl Drop for Patroni {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().chain([&mut self.etcd]) {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn name(server: usize) -> String {
    format!("server-{}", server + 1)
}

/// A file of the process beside a server.
fn file(servers: &Servers, server: usize, extension: &str) -> PathBuf {
    servers.folder().join(format!("patroni-{}.{extension}", server + 1))
}

fn launch(servers: &Servers, server: usize) -> Result<Child> {
    let log = fs::File::options().create(true).append(true).open(file(servers, server, "log"))?;
    let mut process = servers.command(Path::new("patroni"));
    let process = process.arg(file(servers, server, "yml")).stdout(log.try_clone()?).stderr(log).spawn();
    process.context("cannot start Patroni")
}

/// The configuration of one server.
fn settings(servers: &Servers, number: usize, etcd: u16, api: u16, connections: u32) -> Value {
    let [api, address] = [api, servers.port(number)].map(|port| format!("127.0.0.1:{port}"));
    let data = servers.data(number);
    let passwords = PathBuf::from(format!("{}.pgpass", data.display()));
    json!({
        "scope": "chaos",
        "name": name(number),
        "restapi": { "listen": api, "connect_address": api },
        "etcd3": { "host": format!("127.0.0.1:{etcd}") },
        "bootstrap": {
            "dcs": {
                "ttl": 20,
                "loop_wait": 5,
                "retry_timeout": 5,
                "synchronous_mode": true,
                "postgresql": {
                    "use_pg_rewind": true,
                    "parameters": { "max_connections": connections, "wal_log_hints": "on" },
                },
            },
            "initdb": [{ "encoding": "UTF8" }, { "locale": "C" }, { "auth": "trust" }],
        },
        "postgresql": {
            "listen": address,
            "connect_address": address,
            "data_dir": data,
            "bin_dir": servers.programs(),
            "pgpass": passwords,
            "remove_data_directory_on_rewind_failure": true,
            "remove_data_directory_on_diverged_timelines": true,
            "authentication": {
                "superuser": { "username": "postgres" },
                "replication": { "username": "postgres" },
                "rewind": { "username": "postgres" },
            },
            "pg_hba": ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust", "local all all trust"],
            "parameters": { "unix_socket_directories": "" },
        },
    })
}
