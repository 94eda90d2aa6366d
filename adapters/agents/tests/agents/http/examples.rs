//! The examples of the documentation, as services that run.

use std::{
    ffi::OsString,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rejoinder_agents::{CommandSection, HttpSection};
use rejoinder_core::{AgentError, Clock as _, SystemClock};
use rstest::rstest;

use super::{SECRET, agent};
use crate::{
    command,
    double::{run, turn},
};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name)
}

fn python() -> OsString {
    std::env::var_os("REJOINDER_PYTHON").unwrap_or_else(|| "python3".into())
}

/// Node.js, which reads TypeScript by the package `tsx` of the counterparts: it does so itself from 22.18 on only.
fn node() -> Vec<OsString> {
    let installed = std::env::var_os("REJOINDER_COUNTERPARTS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/counterparts"), PathBuf::from);
    let loader = installed.join("node_modules/tsx/dist/loader.mjs");
    vec!["node".into(), "--import".into(), loader.into()]
}

/// A service that ends with the test.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts an example at a free port. Returns its address, too.
fn start(interpreter: &[OsString], name: &str) -> (Service, String) {
    let mut command = Command::new(&interpreter[0]);
    command.args(&interpreter[1..]).arg(example(name)).arg("0").env("SERVICE_SECRET", SECRET);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let child = child.unwrap_or_else(|error| panic!("{} does not start: {error}", interpreter[0].display()));
    let mut service = Service(child);
    let mut port = String::new();
    BufReader::new(service.0.stdout.take().expect("a pipe")).read_line(&mut port).expect("its port");
    (service, format!("http://127.0.0.1:{}/", port.trim()))
}

#[rstest]
#[case::python(vec![python()], "agent.py")]
#[case::node(node(), "agent.ts")]
#[tokio::test]
async fn an_example_answers_what_is_signed_and_nothing_else(#[case] interpreter: Vec<OsString>, #[case] name: &str) {
    let (_service, url) = start(&interpreter, name);
    let section = |secret: &str| HttpSection {
        url: url.parse().expect("a URL"),
        secret: Some(secret.into()),
        ..HttpSection::default()
    };
    let now = SystemClock.now();

    let good = run(&agent(section(SECRET)), turn("good day").with(|turn| turn.now = now)).await;
    let forged = SECRET.replace("dGhl", "bm90");
    let forged = run(&agent(section(&forged)), turn("good day").with(|turn| turn.now = now)).await;
    let old = run(&agent(section(SECRET)), turn("good day")).await;

    assert_eq!(good.drafts.trim_end(), "You said: good day");
    assert_eq!(good.reply().trim_end(), "You said: good day");
    for refused in [forged, old] {
        let Err(AgentError::Refused { status, .. }) = refused.outcome else { panic!("{:?}", refused.outcome) };
        assert_eq!(status, "401 Unauthorized");
    }
}

#[tokio::test]
async fn an_example_answers_as_a_program() {
    let words = [python(), example("agent-command.py").into()];
    let command = words.map(|word| word.into_string().expect("a path")).to_vec();
    let section = CommandSection { command, ..CommandSection::default() };

    assert_eq!(run(&command::agent(section), turn("good day")).await.reply(), "You said: good day");
}
