//! An agent gets the tools of MCP servers.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rejoinder_tests::{Gateway, ToolModel, eventually};
use serde_json::json;
use tokio::process::{Child, Command};

use crate::{TOKEN, hook};

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/server.mjs")
}

fn counterparts() -> String {
    std::env::var("REJOINDER_COUNTERPARTS").expect("REJOINDER_COUNTERPARTS is not set: run `cargo xtask test`")
}

/// The section of a server that is a program, with more keys.
fn program(keys: &str) -> String {
    let command = json!(["node", script()]);
    let counterparts = counterparts();
    format!(
        "[agents.main.mcp.files]\ncommand = {command}\nenv = {{ REJOINDER_COUNTERPARTS = \"{counterparts}\" }}\n{keys}\n"
    )
}

async fn with(model: &ToolModel, server: &str) -> Gateway {
    Gateway::builder().config(&hook("")).config(&model.section()).config(server).start().await
}

/// Asks until the tool is there: the server may still start.
async fn offered(gateway: &Gateway, model: &ToolModel, tool: &str) {
    eventually("the tool is offered", async || {
        gateway.hook("test", TOKEN).ask("hello").await;
        model.offered().iter().any(|name| name == tool).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_tool_of_a_program_is_called_and_recorded() {
    let model = ToolModel::start().await;
    let gateway = with(&model, &program("")).await;
    offered(&gateway, &model, "files_echo").await;
    assert!(!model.offered().iter().any(|name| name == "files_write"), "nobody could approve it");

    let reply = gateway.hook("test", TOKEN).ask(r#"call files_echo {"text":"zebra"}"#).await;

    assert_eq!(reply.text(), "The tool said: heard zebra");
    let shown = gateway.output_of(&["turns", "show", &reply.turn(), "--shown"]);
    assert!(shown.contains("files_echo") && shown.contains("heard zebra"), "{shown}");
    let agent = gateway.output_of(&["agents", "show", "main"]);
    assert!(agent.contains("files_write (asks for approval): Writes it down."), "{agent}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_test_of_an_agent_tells_what_its_servers_did() {
    let model = ToolModel::start().await;
    let servers = format!("{}[agents.main.mcp.gone]\ncommand = [\"false\"]\n", program(""));
    let gateway = with(&model, &servers).await;

    let said = gateway.output_of(&["agents", "test", "main", r#"call files_echo {"text":"zebra"}"#]);

    let (_, call) = said.split_once(r#"[tool files_echo {"text":"zebra"} after "#).expect("the call");
    assert!(call.contains(" ms: heard zebra]") && call.contains("\nMCP server files: connected, "), "{said}");
    assert!(call.contains("\nMCP server gone: down: it ended before it answered"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_picture_of_a_tool_is_in_the_answer() {
    let model = ToolModel::start().await;
    let gateway = with(&model, &program("")).await;
    offered(&gateway, &model, "files_draw").await;

    let reply = gateway.hook("test", TOKEN).ask("call files_draw {}").await;

    let file = &reply.body["files"][0];
    assert_eq!((&file["name"], &file["type"]), (&json!("picture.gif"), &json!("image/gif")));
    assert!(reply.text().contains("noted: picture.gif goes with your answer"), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_dies_in_a_call_is_told_to_the_model_and_comes_back() {
    let model = ToolModel::start().await;
    let gateway = with(&model, &program("")).await;
    offered(&gateway, &model, "files_die").await;

    let reply = gateway.hook("test", TOKEN).ask("call files_die {}").await;

    assert!(reply.text().contains("went away"), "{reply:?}");
    offered(&gateway, &model, "files_echo").await;
}

/// A server over HTTP that was started.
struct HttpServer {
    port: u16,
    _process: Child,
}

impl HttpServer {
    async fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let mut command = Command::new("node");
        command.arg(script()).arg(port.to_string()).env("REJOINDER_COUNTERPARTS", counterparts()).kill_on_drop(true);
        let process = command.spawn().expect("the server starts");
        eventually("the server listens", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok().map(drop)
        })
        .await;
        Self { port, _process: process }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_tool_is_called_over_http() {
    let (model, server) = (ToolModel::start().await, HttpServer::start().await);
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let keys = "headers = { x-key = \"key-of-these-tests\" }";
    let gateway = with(&model, &format!("[agents.main.mcp.far]\nurl = \"{url}\"\n{keys}\n")).await;
    offered(&gateway, &model, "far_echo").await;

    let reply = gateway.hook("test", TOKEN).ask(r#"call far_echo {"text":"zebra"}"#).await;

    assert_eq!(reply.text(), "The tool said: heard zebra");
    assert!(!gateway.log().contains("key-of-these-tests"), "{}", gateway.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_is_down_costs_its_tools_and_not_the_turn() {
    let model = ToolModel::start().await;
    let gateway = with(&model, "[agents.main.mcp.files]\ncommand = [\"false\"]\n").await;

    let reply = gateway.hook("test", TOKEN).ask("hello").await;

    assert_eq!(reply.text(), "Hello.");
    assert!(gateway.log().contains("an MCP server is down: its tools are not offered"), "{}", gateway.log());
    let doctor = gateway.run(&["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(said.contains("agents.main.mcp.files") && said.contains("it ended before it answered"), "{said}");
}

/// D1. `kill -9` of the gateway.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_server_outlives_the_gateway() {
    let model = ToolModel::start().await;
    let mark = format!("mark-{}", std::process::id());
    let command = json!(["node", script(), "", mark]);
    let counterparts = counterparts();
    let section = format!(
        "[agents.main.mcp.files]\ncommand = {command}\nenv = {{ REJOINDER_COUNTERPARTS = \"{counterparts}\" }}\n"
    );
    let mut gateway = with(&model, &section).await;
    offered(&gateway, &model, "files_echo").await;
    assert!(running(&mark) > 0);

    gateway.kill();

    eventually("the server ends", async || (running(&mark) == 0).then_some(())).await;
    gateway.restart().await;
    tokio::time::timeout(Duration::from_mins(1), offered(&gateway, &model, "files_echo")).await.expect("it is back");
}

/// How many processes have this argument.
fn running(mark: &str) -> usize {
    let folders = std::fs::read_dir("/proc").expect("processes").flatten();
    let lines = folders.filter_map(|folder| std::fs::read(folder.path().join("cmdline")).ok());
    lines.filter(|line| line.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes())).count()
}
