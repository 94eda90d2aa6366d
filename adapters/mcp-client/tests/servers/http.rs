//! Doubles of servers over HTTP.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rejoinder_agents::{McpServerSection, ToolSource as _};
use rejoinder_mcp_client::{McpServers, probe};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinSet,
    time::{Instant, timeout},
};

use crate::{PATIENCE, supervisor};

/// How a double behaves.
#[derive(Clone, Copy)]
enum Conduct {
    /// Each stream that is opened with GET ends at once, and is asked for again without a pause.
    EndsStreams,
    /// It wants a token.
    WantsToken,
    /// It speaks this version of the protocol only.
    Speaks(&'static str),
}

struct Http {
    section: McpServerSection,
    /// When each stream was asked for.
    streams: Arc<Mutex<Vec<Instant>>>,
    asked: Arc<Notify>,
    _serves: JoinSet<()>,
}

impl Http {
    async fn start(conduct: Conduct) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let (streams, asked) = (Arc::<Mutex<Vec<Instant>>>::default(), Arc::<Notify>::default());
        let (noted, notify) = (Arc::clone(&streams), Arc::clone(&asked));
        let serves = async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let (noted, notify) = (Arc::clone(&noted), Arc::clone(&notify));
                connections.spawn(async move {
                    let Some((method, body)) = request(stream, conduct).await else { return };
                    if method == "GET" && body.is_null() {
                        noted.lock().push(Instant::now());
                        notify.notify_one();
                    }
                });
            }
        };
        let section = McpServerSection {
            url: Some(url.parse().expect("a URL")),
            timeout: Duration::from_secs(5),
            ..McpServerSection::default()
        };
        Self { section, streams, asked, _serves: JoinSet::from_iter([serves]) }
    }

    async fn tried(&self) -> Result<Vec<String>, String> {
        let found = probe("files", &self.section, &reqwest::Client::default(), &supervisor()).await?;
        Ok(found.tools.into_iter().map(|tool| tool.name).collect())
    }

    fn servers(&self) -> McpServers {
        let sections = BTreeMap::from([("files".to_owned(), self.section.clone())]);
        McpServers::new(&"main".into(), &sections, &reqwest::Client::default(), &supervisor())
    }
}

/// Reads a request and answers it. Returns its method and its body.
async fn request(mut stream: TcpStream, conduct: Conduct) -> Option<(String, Value)> {
    let mut read = Vec::new();
    let head = loop {
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
        if let Some(end) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break String::from_utf8_lossy(&read.drain(..end + 4).collect::<Vec<_>>()).to_lowercase();
        }
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    while read.len() < length {
        stream.read_buf(&mut read).await.ok()?;
    }
    let method = head.split(' ').next().unwrap_or_default().to_uppercase();
    let body: Value = serde_json::from_slice(&read).unwrap_or_default();
    let (status, more, answer) = match (&*method, conduct) {
        ("POST", Conduct::WantsToken) => ("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", String::new()),
        ("GET", Conduct::EndsStreams) => {
            ("200 OK", "Content-Type: text/event-stream\r\n", "id: 1\nretry: 0\ndata:\n\n".to_owned())
        }
        ("POST", _) => match said(&body, conduct) {
            Value::Null => ("202 Accepted", "", String::new()),
            answer => ("200 OK", "Content-Type: application/json\r\nMcp-Session-Id: 1\r\n", answer.to_string()),
        },
        _ => ("405 Method Not Allowed", "", String::new()),
    };
    let length = answer.len();
    let answer = format!("HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n{answer}");
    stream.write_all(answer.as_bytes()).await.ok()?;
    Some((method, body))
}

fn said(message: &Value, conduct: Conduct) -> Value {
    let id = &message["id"];
    let result = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
    match (message["method"].as_str().unwrap_or_default(), conduct) {
        ("server/discover", Conduct::Speaks("2026-07-28")) => result(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
            "ttlMs": 0, "cacheScope": "private",
        })),
        ("initialize" | "server/discover", Conduct::Speaks(version)) => json!({ "jsonrpc": "2.0", "id": id, "error": {
            "code": -32022, "message": "Unsupported protocol version", "data": { "supported": [version], "requested": "" },
        } }),
        ("initialize", _) => result(json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": { "name": "double", "version": "1" },
        })),
        ("tools/list", _) => result(json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "tools": [{ "name": "read", "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true } }],
        })),
        ("tools/call", _) => {
            result(json!({ "resultType": "complete", "content": [{ "type": "text", "text": "read" }] }))
        }
        _ => Value::Null,
    }
}

#[tokio::test]
async fn a_stream_that_ends_at_once_is_asked_for_again_after_pauses_that_grow() {
    let http = Http::start(Conduct::EndsStreams).await;
    let servers = http.servers();
    assert_eq!(servers.tools().await.len(), 1);

    let three = async {
        while http.streams.lock().len() < 3 {
            http.asked.notified().await;
        }
    };
    timeout(PATIENCE, three).await.expect("it is asked for again");

    let streams = http.streams.lock().clone();
    let pauses: Vec<_> = streams.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(pauses[0] >= Duration::from_millis(950) && pauses[1] >= Duration::from_millis(1950), "{pauses:?}");
}

#[tokio::test]
async fn a_server_without_the_handshake_is_spoken_to() {
    let http = Http::start(Conduct::Speaks("2026-07-28")).await;
    assert_eq!(http.tried().await, Ok(vec!["files_read".to_owned()]));

    let servers = http.servers();
    let tools = servers.tools().await;
    let answer = tools[0].call(serde_json::Map::new()).await;

    assert_eq!((&*answer.text, answer.is_error), ("read", false));
}

#[tokio::test]
async fn the_versions_of_a_server_that_speaks_no_known_one_are_named() {
    let why = Http::start(Conduct::Speaks("2027-01-01")).await.tried().await.expect_err("it speaks another one");

    let told = "it speaks other versions of the protocol (2027-01-01); the gateway speaks 2024-11-05, 2025-03-26, \
                2025-06-18, 2025-11-25, 2026-07-28";
    assert!(why.ends_with(told), "{why}");
}

#[tokio::test]
async fn a_server_that_wants_a_token_says_where_it_is_set() {
    let why = Http::start(Conduct::WantsToken).await.tried().await.expect_err("it wants a token");

    assert!(why.contains("401") && why.contains("`[agents.NAME.mcp.SERVER.headers]`"), "{why}");
}
