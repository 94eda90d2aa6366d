//! Real processes: shell scripts that speak a little ACP.

use std::{fs, path::Path, sync::Arc, time::Duration};

use rejoinder_core::{AgentError, Outcome, conformance::runtime::turn};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::double::run;
use crate::{Acp, AcpSection, probe};

/// Answers `initialize` and `session/new`.
const BEGIN: &str = r#"
read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"sh","version":"1"}}}'
read -r line; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
read -r line
"#;

fn section(folder: &Path, script: &str) -> AcpSection {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    AcpSection { command, cwd: Some(folder.display().to_string()), ..AcpSection::default() }
}

pub(super) fn start(section: AcpSection, stop: &CancellationToken) -> Arc<Acp> {
    let acp = Arc::new(Acp::new("main".into(), section));
    let (runs, stop) = (Arc::clone(&acp), stop.clone());
    tokio::spawn(async move { runs.keep_running(stop).await });
    acp
}

async fn outcome_of(script: &str) -> Result<Outcome, AgentError> {
    let folder = tempfile::tempdir().expect("a folder");
    let stop = CancellationToken::new();
    let acp = start(section(folder.path(), script), &stop);
    let (outcome, _) = run(&acp, turn("Hi")).await;
    stop.cancel();
    outcome
}

#[tokio::test]
async fn the_operator_reads_what_a_process_said_last() {
    let outcome = outcome_of(&format!("{BEGIN} echo 'out of memory' >&2; exit 3")).await;

    let Err(AgentError::Broken(why)) = outcome else { panic!("{outcome:?}") };
    assert!(why.contains("exit status: 3") && why.contains("out of memory"), "{why}");
}

/// The error of an agent that cannot be reached is logged.
#[tokio::test]
async fn a_process_that_does_not_start_says_why_without_what_it_wrote() {
    let outcome = outcome_of("echo 'node: not found' >&2; exit 127").await;

    let Err(error @ AgentError::Unreachable(_)) = outcome else { panic!("{outcome:?}") };
    let why = error.summary();
    assert!(why.contains("exit status: 127") && why.contains("rejoinder doctor"), "{why}");
    assert!(!why.contains("node: not found"), "{why}");
}

#[tokio::test]
async fn what_a_process_wrote_is_told_without_its_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let secret = "sk-0123456789";
    let with_key = |script: &str| AcpSection {
        env: [("KEY".to_owned(), secret.into())].into(),
        inherit: vec!["CARGO_PKG_NAME".to_owned()],
        ..section(folder.path(), script)
    };

    let found = probe(&with_key("echo \"node: no $CARGO_PKG_NAME for $KEY\" >&2; exit 127")).await;
    let why = found.expect_err("it is no agent");
    assert!(why.contains("node: no •••• for ••••"), "{why}");

    let says =
        r#"read -r line; echo "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"message\":\"no $KEY\"}}"; read -r line"#;
    let stop = CancellationToken::new();
    let (outcome, _) = run(&start(with_key(says), &stop), turn("Hi")).await;
    stop.cancel();
    assert!(matches!(&outcome, Err(AgentError::Unreachable(why)) if why.contains("no ••••")), "{outcome:?}");
}

#[tokio::test]
async fn a_process_is_started_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let says = r#"echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'; read -r line"#;
    let script = format!("{BEGIN} if [ -e second ]; then {says}; else touch second; kill -9 $$; fi");
    let stop = CancellationToken::new();
    let acp = start(section(folder.path(), &script), &stop);

    let (first, _) = run(&acp, turn("Hi")).await;
    let (second, _) = run(&acp, turn("Hi")).await;

    assert!(matches!(&first, Err(AgentError::Broken(why)) if why.contains("signal: 9")), "{first:?}");
    assert!(matches!(second, Ok(Outcome::Reply(_))), "{second:?}");
}

/// Whether the process lives.
fn lives(pid: &str) -> bool {
    // A process that has ended and was not waited for is a zombie.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn a_process_ends_with_the_gateway_and_with_all_that_it_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!("trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > child; sleep 600' & {BEGIN} sleep 600");
    let stop = CancellationToken::new();
    let acp = start(section(folder.path(), &script), &stop);
    let runs = Arc::clone(&acp);
    let running = tokio::spawn(async move { run(&runs, turn("Hi")).await.0 });
    let child = async {
        loop {
            match fs::read_to_string(folder.path().join("child")) {
                Ok(child) if child.ends_with('\n') => break child.trim().to_owned(),
                _ => sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let child = timeout(Duration::from_secs(10), child).await.expect("it starts a child");
    assert!(lives(&child));

    stop.cancel();

    let outcome = timeout(Duration::from_secs(10), running).await.expect("the run ends").expect("it does not panic");
    assert!(outcome.is_err(), "{outcome:?}");
    let dies = async {
        while lives(&child) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(10), dies).await.expect("the child ends");
}

#[tokio::test]
async fn the_environment_holds_only_what_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let section = AcpSection {
        env: [("OWN".to_owned(), "secret".into())].into(),
        inherit: vec!["CARGO_MANIFEST_DIR".to_owned()],
        ..section(folder.path(), "env > env; exit 1")
    };

    probe(&section).await.expect_err("it is no agent");

    let env = fs::read_to_string(folder.path().join("env")).expect("it was started");
    let has = |name: &str| env.lines().any(|line| line.starts_with(&format!("{name}=")));
    assert!(has("OWN") && has("PATH") && has("CARGO_MANIFEST_DIR") && !has("CARGO_PKG_NAME"), "{env}");
}

#[tokio::test]
async fn a_probe_says_what_answers_or_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");

    let found = probe(&section(folder.path(), BEGIN)).await.expect("it answers");
    assert_eq!(found.name.as_deref(), Some("sh 1"));

    let command = vec!["no-such-agent".to_owned()];
    let missing = probe(&AcpSection { command, ..section(folder.path(), "") }).await.expect_err("it is not there");
    assert_eq!(missing, "there is no program no-such-agent in the folders of PATH (`command`)");

    let cwd = Some("/no/such/folder".to_owned());
    let nowhere = probe(&AcpSection { cwd, ..section(folder.path(), "") }).await.expect_err("it is not there");
    assert_eq!(nowhere, "there is no folder /no/such/folder (`cwd`)");

    let old = r#"read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2}}'; read -r line"#;
    let other = probe(&section(folder.path(), old)).await.expect_err("it speaks another version");
    assert_eq!(other, "it speaks version 2 of ACP, and the gateway version 1");
}
