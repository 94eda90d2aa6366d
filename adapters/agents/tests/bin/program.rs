//! What the tests of `command` agents start: the supervisor, as the gateway's binary has one, and a double of a program.

use std::{
    fs,
    io::{self, Read, Write},
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
    let folder = std::env::args().nth(1).expect("the folder of the double");
    perform(Path::new(&folder)).expect("the double works")
}

/// Does in this run what `conduct-<attempt>` says.
fn perform(folder: &Path) -> io::Result<ExitCode> {
    let id = std::process::id();
    fs::write(folder.join(format!("process-{id}")), "")?;
    let mut turn = String::new();
    io::stdin().read_to_string(&mut turn)?;
    fs::write(folder.join(format!("given-{id}")), &turn)?;
    let turn: Value = serde_json::from_str(&turn)?;
    let conduct: Value =
        serde_json::from_str(&fs::read_to_string(folder.join(format!("conduct-{}", turn["attempt"])))?)?;
    for piece in conduct["says"].as_array().into_iter().flatten() {
        say(&json!({ "text": piece }))?;
    }
    match conduct["then"].as_str() {
        Some("hang") => sleep(Duration::from_mins(10)),
        Some("break") => return Ok(ExitCode::from(3)),
        Some("send") => say(&json!({ "send": conduct["sends"] }))?,
        _ => {}
    }
    say(&json!({ "end": true }))?;
    Ok(ExitCode::SUCCESS)
}

fn say(object: &Value) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{object}")?;
    stdout.flush()
}
