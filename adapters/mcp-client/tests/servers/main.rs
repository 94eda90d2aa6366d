//! The client with real processes, and with servers over HTTP.

mod http;

use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};

use rejoinder_agents::{ForeignAnswer, ForeignTool, McpServerSection, Supervisor, ToolSource as _};
use rejoinder_mcp_client::{McpServers, probe, share};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

/// For what may take long on a machine under load.
const PATIENCE: Duration = Duration::from_secs(30);

fn supervisor() -> Supervisor {
    Supervisor {
        program: env!("CARGO_BIN_EXE_rejoinder-mcp-client-program").into(),
        arguments: vec!["supervise".into()],
    }
}

fn section(folder: &Path, conduct: &str) -> McpServerSection {
    let program = env!("CARGO_BIN_EXE_rejoinder-mcp-client-program").to_owned();
    let command = vec![program, folder.display().to_string(), conduct.to_owned()];
    McpServerSection { command: Some(command), timeout: Duration::from_secs(5), ..McpServerSection::default() }
}

struct Double {
    folder: TempDir,
    servers: McpServers,
}

impl Double {
    fn with(change: impl FnOnce(McpServerSection) -> McpServerSection) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let sections = BTreeMap::from([("files".to_owned(), change(section(folder.path(), "")))]);
        let servers = McpServers::new(&"main".into(), &sections, &reqwest::Client::default(), &supervisor());
        Self { folder, servers }
    }

    fn start() -> Self {
        Self::with(|section| section)
    }

    async fn tool(&self, name: &str) -> Arc<dyn ForeignTool> {
        let tools = self.servers.tools().await;
        tools.into_iter().find(|tool| tool.definition().name == name).unwrap_or_else(|| panic!("there is no {name}"))
    }

    async fn call(&self, name: &str, text: &str) -> ForeignAnswer {
        let arguments = json!({ "text": text }).as_object().expect("an object").clone();
        self.tool(name).await.call(arguments).await
    }

    fn noted(&self, what: &str) -> usize {
        let notes = fs::read_to_string(self.folder.path().join("notes")).unwrap_or_default();
        notes.lines().filter(|line| *line == what).count()
    }

    async fn until(&self, what: &str, is_so: impl AsyncFn(&Self) -> bool) {
        let waits = async {
            while !is_so(self).await {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, waits).await.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"));
    }
}

#[tokio::test]
async fn tools_are_offered_and_called() {
    let double = Double::start();

    let tools = double.servers.tools().await;

    let named: Vec<_> = tools.iter().map(|tool| (&*tool.definition().name, tool.approved_as())).collect();
    assert_eq!(named[..2], [("files_echo", None), ("files_secret", Some("mcp.files.secret"))]);
    let answer = double.call("files_echo", "hello").await;
    assert_eq!(answer, ForeignAnswer { text: "hello".to_owned(), ..ForeignAnswer::default() });
    assert_eq!(double.noted("starts"), 1, "it is not started per call");
}

#[tokio::test]
async fn changed_tools_are_offered() {
    let double = Double::start();
    double.call("files_change", "").await;

    let has_new =
        async |double: &Double| double.servers.tools().await.iter().any(|tool| tool.definition().name == "files_new");
    double.until("the new tool is offered", has_new).await;
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_started_again() {
    let double = Double::start();

    let answer = double.call("files_die", "").await;

    assert!(answer.is_error && answer.text.contains("went away"), "{answer:?}");
    double.until("it is started again", async |double| double.noted("starts") == 2).await;
    double.until("it is back", async |double| !double.servers.tools().await.is_empty()).await;
    assert_eq!(double.call("files_echo", "again").await.text, "again");
    assert_eq!(double.noted("starts"), 2);
}

#[tokio::test]
async fn a_flood_ends_the_server_and_not_the_gateway() {
    let double = Double::start();

    let began = Instant::now();
    let answer = double.call("files_flood", "").await;

    assert!(answer.is_error && answer.text.len() < 1_000, "{answer:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "it is found at once, not at the end of the time");
    double.until("it is back", async |double| !double.servers.tools().await.is_empty()).await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled() {
    let double = Double::with(|section| McpServerSection { timeout: Duration::from_secs(1), ..section });

    let answer = double.call("files_hang", "").await;

    assert_eq!(answer.text, "error: no result within 1 s: the call was cancelled");
    double.until("the server is told", async |double| double.noted("cancelled") == 1).await;
    assert_eq!(double.call("files_echo", "hello").await.text, "hello", "the server goes on");
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled() {
    let double = Double::start();
    let hangs = double.tool("files_hang").await;

    let dropped = timeout(Duration::from_millis(200), hangs.call(serde_json::Map::new())).await;

    assert!(dropped.is_err());
    double.until("the server is told", async |double| double.noted("cancelled") == 1).await;
}

#[tokio::test]
async fn a_server_ends_with_its_agent() {
    let Double { folder, servers } = Double::start();
    assert!(!servers.tools().await.is_empty());
    let process = fs::read_to_string(folder.path().join("process")).expect("its id");

    drop(servers);

    let is_there = || Path::new("/proc").join(&process).exists();
    let gone = async {
        while is_there() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, gone).await.expect("the process ends");
}

#[tokio::test]
async fn a_server_that_hangs_at_its_start_costs_its_tools_and_not_the_turn() {
    let double = Double::with(|section| {
        let command = section.command.clone().map(|mut command| {
            command[2] = "hang".to_owned();
            command
        });
        McpServerSection { command, timeout: Duration::from_secs(1), ..section }
    });

    let tools = timeout(Duration::from_secs(10), double.servers.tools()).await.expect("the turn goes on");

    assert!(tools.is_empty());
}

#[tokio::test]
async fn a_try_says_why_a_server_does_not_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let tried = async |section: &McpServerSection| {
        probe("files", section, &reqwest::Client::default(), &supervisor()).await.map_err(|why| why.replace('\n', " "))
    };
    let broken = tried(&section(folder.path(), "break")).await.expect_err("it ends");
    assert!(broken.contains("exit code 3; it wrote: the disk is full"), "{broken}");
    let missing = McpServerSection { command: Some(vec!["no-such-server".to_owned()]), ..McpServerSection::default() };
    let missing = tried(&missing).await.expect_err("there is none");
    assert_eq!(missing, "no-such-server: there is no program no-such-server in the folders of PATH (`command`)");

    let works = tried(&section(folder.path(), "")).await.expect("it works");
    assert_eq!((works.name.as_deref(), works.tools.len()), (Some("double 1"), 6));
}

/// The definitions of the first server are larger than the room for all.
#[tokio::test]
async fn a_server_with_large_definitions_leaves_room_for_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let sections = BTreeMap::from(["large", "small"].map(|name| {
        let conduct = if name == "large" { "large" } else { "" };
        (name.to_owned(), section(folder.path(), conduct))
    }));
    let servers = McpServers::new(&"main".into(), &sections, &reqwest::Client::default(), &supervisor());

    let tools = servers.tools().await;

    let count = |server: &str| tools.iter().filter(|tool| tool.definition().name.starts_with(server)).count();
    assert_eq!(count("small_"), 6);
    assert!((30..100).contains(&count("large_")), "{}", count("large_"));
    let offers: Vec<_> = servers.servers().into_iter().map(|(_, offers)| offers).collect();
    assert_eq!(offers, [Ok(100), Ok(6)]);

    let tried = async |name: &str| probe(name, &sections[name], &reqwest::Client::default(), &supervisor()).await;
    let (mut large, mut small) = (tried("large").await.expect("it works"), tried("small").await.expect("it works"));
    share(&mut [&mut large, &mut small]);
    assert_eq!((large.tools.len(), small.tools.len()), (count("large_"), 6));
    assert!(large.left_out[0].contains("have no room") && small.left_out.is_empty(), "{:?}", large.left_out);
}
