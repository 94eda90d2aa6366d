//! What the tests start: the supervisor, as the gateway's binary has one, and a double of a server. Its first argument is a folder,
//! into which it writes what happens; the second one says how it behaves at the start.

use std::{
    env, fs,
    io::{self, BufRead, Write},
    path::Path,
    process::ExitCode,
    thread::sleep,
    time::Duration,
};

use serde_json::{Value, json};

fn main() -> ExitCode {
    if let Some(code) = rejoinder_agents::supervise() {
        return code;
    }
    let folder = env::args().nth(1).expect("the folder of the double");
    let folder = Path::new(&folder);
    note(folder, "starts");
    fs::write(folder.join("process"), std::process::id().to_string()).expect("a note");
    match env::args().nth(2).as_deref() {
        Some("hang") => sleep(Duration::from_mins(10)),
        Some("break") => {
            eprintln!("the disk is full");
            return ExitCode::from(3);
        }
        _ => {}
    }
    let mut is_changed = false;
    for line in io::stdin().lock().lines() {
        let line = line.expect("a line");
        let message: Value = serde_json::from_str(&line).expect("JSON");
        let id = message["id"].clone();
        match message["method"].as_str() {
            Some("initialize") => answer(
                &id,
                &json!({
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "double", "version": "1"},
                }),
            ),
            Some("tools/list") => {
                let mut names = vec!["echo", "secret", "hang", "die", "flood", "change"];
                names.extend(is_changed.then_some("new"));
                let schema = json!({"type": "object"});
                let large: Vec<String> = (0..100).map(|number| format!("large{number}")).collect();
                let (names, schema) = match env::args().nth(2).as_deref() {
                    Some("large") => {
                        let schema = json!({"type": "object", "description": "x".repeat(10_000)});
                        (large.iter().map(String::as_str).collect(), schema)
                    }
                    _ => (names, schema),
                };
                let tools: Vec<_> = names
                    .iter()
                    .map(|name| {
                        json!({"name": name, "inputSchema": schema,
                    "annotations": {"readOnlyHint": *name == "echo"}})
                    })
                    .collect();
                answer(&id, &json!({ "tools": tools }));
            }
            Some("tools/call") => match message["params"]["name"].as_str() {
                Some("hang") => {}
                Some("die") => return ExitCode::from(9),
                Some("flood") => flood(),
                Some("change") => {
                    is_changed = true;
                    answer(&id, &json!({"content": []}));
                    say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                }
                _ => {
                    let said = message["params"]["arguments"]["text"].clone();
                    answer(&id, &json!({"content": [{"type": "text", "text": said}]}));
                }
            },
            Some("notifications/cancelled") => note(folder, "cancelled"),
            _ => {}
        }
    }
    note(folder, "ends");
    ExitCode::SUCCESS
}

/// 100 MB without a line break.
fn flood() {
    let mut stdout = io::stdout().lock();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        if stdout.write_all(&piece).is_err() {
            return;
        }
    }
}

fn answer(id: &Value, result: &Value) {
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn say(message: &Value) {
    let mut stdout = io::stdout().lock();
    // The client may have gone.
    let _ = writeln!(stdout, "{message}").and_then(|()| stdout.flush());
}

fn note(folder: &Path, what: &str) {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(folder.join("notes")).expect("the notes");
    writeln!(file, "{what}").expect("a note");
}
