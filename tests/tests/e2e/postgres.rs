//! The store is a PostgreSQL database. Without a server the tests say so, and pass.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Output,
    time::{Duration, Instant},
};

use rejoinder_store::TestServer;
use rejoinder_tests::{Gate, Gateway, GatewayBuilder, Pager, Script, ScriptedAgent, eventually};
use reqwest::StatusCode;
use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::copy_bidirectional,
    net::{UnixListener, UnixStream},
    task::{JoinHandle, JoinSet},
};

use crate::{TOKEN, hook};

#[path = "../../../adapters/store/tests/postgres/server.rs"]
pub(crate) mod server;

/// How long at least the leases of a process last that has just been killed.
const LEASES: Duration = Duration::from_secs(10);

/// The file of a server's Unix socket, in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

const PASSWORD: &str = "sesame-4f1c-sesame-4f1c";

/// A URL with this user and password in place of its own.
fn with_credentials(url: &str, credentials: &str) -> String {
    let (scheme, rest) = url.split_once("://").expect("it is a URL");
    let host = rest.split_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}://{credentials}@{host}")
}

/// The URL with a password, if its server asks for none.
fn with_password(url: &str) -> String {
    let (_, rest) = url.split_once("://").expect("it is a URL");
    match rest.split_once('@') {
        Some((user, _)) if !user.contains(':') => with_credentials(url, &format!("{user}:{PASSWORD}")),
        _ => url.to_owned(),
    }
}

/// The URL with a user whose password is asked for, and is another one.
fn of_another_user(url: &str) -> String {
    with_credentials(url, &format!("{}:{PASSWORD}", server::WITH_PASSWORD))
}

/// A gateway with a hook `test` on this database.
pub(crate) fn on(url: &str) -> GatewayBuilder {
    Gateway::builder().config(&format!("[store]\nurl = \"{url}\"")).config(&hook(""))
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// D1: and the process after it does not wait until the leases of the killed one end.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_turn_that_was_accepted_is_answered_once_after_a_crash() {
    let Some(server) = server::get() else { return };
    let database = server.create(TestServer::EMPTY).await;
    let release = Gate::default();
    let agent = ScriptedAgent::start(move |_, number| match number {
        0 => Script::replies("the first run").waiting(&release),
        _ => Script::replies("the second run"),
    })
    .await;
    let mut gateway = on(&database.url()).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);

    let accepted = hook.send("hello").await;
    eventually("the agent runs", async || (agent.calls().len() == 1).then_some(())).await;
    gateway.kill();
    let killed = Instant::now();
    gateway.restart().await;
    let result = hook.until_settled(&accepted.turn()).await;

    assert_eq!(result.text(), "the second run");
    assert!(killed.elapsed() < LEASES, "it was answered after {:?}", killed.elapsed());
    assert_eq!(agent.calls().len(), 2);
    assert_eq!(gateway.turns("settled").len(), 1);
    assert!(!gateway.data().join("rejoinder.db").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn commands_read_the_database_while_no_gateway_runs_and_show_no_password() {
    let Some(server) = server::get() else { return };
    let database = server.database().await;
    let agent = ScriptedAgent::replying("done").await;
    let mut gateway = on(&with_password(&database.url())).config(&agent.section()).start().await;
    let answered = gateway.hook("test", TOKEN).ask("hello").await;
    let used = gateway.run(&["run"]);
    assert!(gateway.stop().await.success());

    let listed = gateway.turns("settled");
    let doctor = gateway.run(&["doctor", "--json"]);
    let backup = gateway.run(&["backup", "all.tar.gz"]);
    let others = [
        gateway.run(&["store", "stats"]),
        gateway.run(&["store", "vacuum"]),
        gateway.run(&["restore", "all.tar.gz"]),
        gateway.run(&["status"]),
        gateway.run(&["config", "show"]),
    ];

    assert_eq!(listed[0]["turn_id"].as_str(), Some(&*answered.turn()));
    let findings: Value = serde_json::from_slice(&doctor.stdout).expect("it is JSON");
    let findings = findings["findings"].as_array().expect("it is a list");
    let of_database = findings.iter().find(|finding| finding["about"] == "database").expect("it is checked");
    assert_eq!(of_database["verdict"], "ok", "{of_database}");
    assert!(of_database["what"].to_string().contains("no gateway with this data directory uses it"), "{of_database}");
    assert!(!backup.status.success() && said(&backup).contains("pg_dump --format=custom --file=all.tar.gz "));
    let [sizes, vacuum, restore, status, config] = others.each_ref().map(said);
    assert!(sizes.contains("turns") && vacuum.contains("autovacuum"), "{sizes}{vacuum}");
    assert!(restore.contains("pg_restore ") && status.contains("Owed: 0 turns"), "{restore}{status}");
    assert!(config.contains("postgres://"), "{config}");
    assert!(!used.status.success());
    for output in [said(&used), said(&doctor), said(&backup), sizes, vacuum, restore, status, config, gateway.log()] {
        assert!(!output.contains(PASSWORD), "{output}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_data_directory_is_used_by_one_process() {
    let Some(server) = server::get() else { return };
    let database = server.database().await;
    let gateway = on(&database.url()).start().await;

    for url in [&*database.url(), "sqlite:other.db"] {
        let listen = ("REJOINDER__SERVER__LISTEN", "127.0.0.1:0");
        let second = gateway.command(&["run"]).envs([listen, ("REJOINDER__STORE__URL", url)]).output();
        let second = second.expect("it runs");

        assert!(!second.status.success());
        assert!(said(&second).contains("is in use by another gateway"), "{}", said(&second));
    }
}

/// What `store copy` prints when it is started in `folder`.
fn copied(gateway: &Gateway, folder: &Path, from: &str, to: &str) -> String {
    let output = gateway.command(&["store", "copy", from, to]).current_dir(folder).output().expect("it runs");
    assert!(output.status.success(), "{}", said(&output));
    said(&output)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_store_moves_to_postgresql_and_back() {
    const FINISHED: &str = "each row was read back";
    let Some(server) = server::get() else { return };
    let (database, other) = (server.create(TestServer::EMPTY).await, server.create(TestServer::EMPTY).await);
    let url = database.url();
    // The file to copy from is not here, but in the data directory.
    let elsewhere = tempfile::tempdir().expect("a folder");
    let agent = ScriptedAgent::start(|call, _| Script::replies(&format!("echo {}", call.said()))).await;
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);
    let mut turns = vec![hook.ask("one").await.turn()];

    let begun = copied(&gateway, elsewhere.path(), "sqlite:rejoinder.db", &url);
    turns.push(hook.ask("two").await.turn());
    assert!(gateway.stop().await.success());
    let done = copied(&gateway, elsewhere.path(), "sqlite:rejoinder.db", &url);
    assert!(begun.contains("Not finished") && done.contains(FINISHED), "{begun}{done}");

    gateway.reconfigure(|text| format!("{text}\n[store]\nurl = \"{url}\"\n"));
    gateway.restart().await;
    turns.push(hook.ask("three").await.turn());
    assert!(gateway.stop().await.success());
    let back = copied(&gateway, elsewhere.path(), &url, "sqlite:moved.db");
    let moved = elsewhere.path().join("moved.db");
    assert!(back.contains(FINISHED) && moved.exists(), "{back}");

    gateway.reconfigure(|text| text.replace(&url, &format!("sqlite:{}", moved.display())));
    gateway.restart().await;
    let mut answers = Vec::new();
    for turn in &turns {
        answers.push(hook.result(turn, 0).await.text().to_owned());
    }
    assert_eq!(answers, ["echo one", "echo two", "echo three"]);
    assert_eq!(hook.ask("four").await.text(), "echo four");
    assert_eq!(gateway.turns("settled").len(), 4);
    assert!(gateway.stop().await.success());
    // Now it is in the current directory.
    let again = copied(&gateway, elsewhere.path(), "sqlite:moved.db", &other.url());
    assert!(again.contains(FINISHED), "{again}");
}

#[rstest]
#[case::a_wrong_password(of_another_user, "refuses this user")]
#[case::an_unknown_host(|_: &str| "postgres://ann@no..such.host/chats".to_owned(), "cannot use the database chats")]
#[case::no_such_database(|url: &str| url.replacen('?', "_gone?", 1), "there is no database rejoinder_test_")]
#[case::read_only(|url: &str| format!("{url}&options=-c%20default_transaction_read_only%3Don"), "it is read-only")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn why_a_database_cannot_be_used_is_said_at_once(#[case] change: fn(&str) -> String, #[case] why: &str) {
    let Some(server) = server::get() else { return };
    let database = server.database().await;
    let gateway = on(&change(&database.url())).allow_open_turns().prepare();

    let started = Instant::now();
    let ended = gateway.run(&["run"]);

    assert!(!ended.status.success());
    assert!(said(&ended).contains(why) && !said(&ended).contains(PASSWORD), "{}", said(&ended));
    // A server that is away is waited for.
    assert!(started.elapsed() < Duration::from_secs(25));
}

/// The URL without the folder of the server's socket, and the folder; `None` if it has none: the test is not run.
fn socket_of(url: &str) -> Option<(&str, &str)> {
    let parts = url.split_once("?host=");
    if parts.is_none() {
        server::not_run("the PostgreSQL server has no Unix socket");
    }
    parts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_start_waits_for_a_database_that_is_away() {
    let Some(server) = server::get() else { return };
    let database = server.database().await;
    let url = database.url();
    let Some((before, folder)) = socket_of(&url) else { return };
    let away = tempfile::tempdir().expect("a folder");
    let mut gateway = on(&format!("{before}?host={}", away.path().display())).prepare();

    gateway.spawn(&[]);
    eventually("it waits", async || gateway.log().contains("the database is away").then_some(())).await;
    symlink(Path::new(folder).join(SOCKET), away.path().join(SOCKET)).expect("the socket is there");
    gateway.until_ready().await;
}

/// Passes connections to a Unix socket on to another one, until the task ends.
fn relay(at: &Path, to: PathBuf) -> JoinHandle<()> {
    let listener = UnixListener::bind(at).expect("it listens");
    tokio::spawn(async move {
        let mut relayed = JoinSet::new();
        while let Ok((mut client, _)) = listener.accept().await {
            let to = to.clone();
            relayed.spawn(async move {
                let mut server = UnixStream::connect(to).await?;
                copy_bidirectional(&mut client, &mut server).await
            });
        }
    })
}

/// A way to a database that can be cut. Dropped after the gateways that use it.
pub(crate) struct Relay {
    folder: TempDir,
    socket: PathBuf,
    url: String,
    passing: JoinHandle<()>,
}

impl Relay {
    /// A way to the database at `url`. `None` if its server has no Unix socket: the test is not run.
    pub(crate) fn start(url: &str) -> Option<Self> {
        let (before, folder) = socket_of(url)?;
        let (relayed, socket) = (tempfile::tempdir().expect("a folder"), Path::new(folder).join(SOCKET));
        let url = format!("{before}?host={}", relayed.path().display());
        let passing = relay(&relayed.path().join(SOCKET), socket.clone());
        Some(Self { folder: relayed, socket, url, passing })
    }

    /// The URL of the database by this way.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Ends all connections, and lets none begin.
    pub(crate) fn cut(&self) {
        self.passing.abort();
    }

    /// Lets connections begin again.
    pub(crate) fn restore(&mut self) {
        let at = self.folder.path().join(SOCKET);
        std::fs::remove_file(&at).expect("the socket is there");
        self.passing = relay(&at, self.socket.clone());
    }
}

/// While the database is away no node is the housekeeper: its lease ends sooner than this outage is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn that_the_database_is_away_is_told_once_and_that_it_is_back() {
    let Some(server) = server::get() else { return };
    let database = server.database().await;
    let Some(mut relay) = Relay::start(&database.url()) else { return };
    let pager = Pager::new();
    let alerts = format!("[alerts]\nto = [\"{}\"]\nafter = \"13s\"\n", pager.path().display());
    let mut gateway = on(relay.url()).config(&alerts).start().await;

    relay.cut();
    gateway.until_not_ready("\"writes\":false").await;
    let refused = gateway.hook("test", TOKEN).message("hello").send().await.expect("it answers");
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let alert = eventually("somebody is told", async || pager.told("store").pop()).await;
    relay.restore();
    let is_over = || pager.alerts().iter().any(|alert| alert["data"]["ended"][0]["kind"] == "store");
    eventually("somebody is told that it is over", async || is_over().then_some(())).await;

    let text = alert["text"].as_str().expect("a text");
    assert!(text.starts_with("The store cannot write at the node "), "{text}");
    assert_eq!(pager.told("store").len(), 1, "{:#?}", pager.alerts());
    gateway.until_ready().await;
}
