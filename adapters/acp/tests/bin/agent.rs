//! An agent that calls the tools of the MCP server that its sessions were told.

use std::{
    collections::HashMap,
    io::{Read, Write, stdin},
    net::TcpStream,
};

use serde_json::{Value, json};

/// Answers until the input ends. It has MCP servers over HTTP unless its second argument is `bare`. Of a prompt, the last word is done:
/// `react` calls that tool, `token` says the token, `servers` how many there are, `die` ends the process.
pub(crate) fn serve() {
    let has_http = std::env::args().nth(2).as_deref() != Some("bare");
    let mut sessions = HashMap::<String, Value>::new();
    for line in stdin().lines() {
        let message: Value = serde_json::from_str(&line.expect("text")).expect("JSON");
        let (id, params) = (&message["id"], &message["params"]);
        let session = params["sessionId"].as_str().unwrap_or("s1").to_owned();
        match message["method"].as_str() {
            Some("initialize") => {
                let can = json!({ "loadSession": true, "mcpCapabilities": { "http": has_http } });
                answer(id, &json!({ "protocolVersion": 1, "agentCapabilities": can }));
            }
            Some("session/new" | "session/load") => {
                sessions.insert(session.clone(), params["mcpServers"].clone());
                answer(id, &json!({ "sessionId": session }));
            }
            Some("session/prompt") => {
                let text = params["prompt"].as_array().and_then(|blocks| blocks.last()?["text"].as_str());
                let servers = &sessions[&session];
                let said = match text.and_then(|text| text.split_whitespace().last()) {
                    Some("react") => call(&servers[0], "react", &json!({ "emoji": "👍" })),
                    Some("token") => token(&servers[0]).to_owned(),
                    Some("die") => return,
                    _ => servers.as_array().expect("a list").len().to_string(),
                };
                let update =
                    json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": said } });
                let params = json!({ "sessionId": session, "update": update });
                write(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
                answer(id, &json!({ "stopReason": "end_turn" }));
            }
            _ => {}
        }
    }
}

fn answer(id: &Value, result: &Value) {
    write(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn write(message: &Value) {
    println!("{message}");
}

fn token(server: &Value) -> &str {
    assert_eq!((&server["type"], &server["headers"][0]["name"]), (&"http".into(), &"Authorization".into()));
    let value = server["headers"][0]["value"].as_str().expect("a header");
    value.strip_prefix("Bearer ").expect("a bearer token")
}

/// Calls a tool. Returns the response.
fn call(server: &Value, tool: &str, arguments: &Value) -> String {
    let url = server["url"].as_str().and_then(|url| url.strip_prefix("http://")).expect("a URL");
    let (host, path) = url.split_once('/').expect("a path");
    let params = json!({ "name": tool, "arguments": arguments });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let mut connection = TcpStream::connect(host).expect("the gateway listens");
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        token(server),
        body.len()
    );
    connection.write_all(request.as_bytes()).expect("it reads");
    let mut response = String::new();
    connection.read_to_string(&mut response).expect("text");
    response
}
