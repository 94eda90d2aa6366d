//! Real processes: shell scripts that speak a little ACP.

use std::{fs, path::Path, time::Duration};

use rejoinder_acp::{Acp, AcpSection, probe};
use rejoinder_core::{
    AgentError, ApprovalRequest, Choices, Outcome, PersonAnswer, as_stored, conformance::runtime::turn,
};
use rstest::rstest;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{run, start, supervisor};

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

async fn outcome_of(script: &str) -> Result<Outcome, AgentError> {
    let folder = tempfile::tempdir().expect("a folder");
    let stop = CancellationToken::new();
    let acp = start(section(folder.path(), script), &stop);
    let (outcome, _) = run(&acp, turn("Hi")).await;
    stop.cancel();
    outcome
}

/// The prompt that asks goes on. An option without a name cannot be chosen.
#[rstest]
#[case::plain("", "once")]
#[case::chosen(r#","name":"Always""#, "ever")]
#[tokio::test]
async fn a_process_that_asks_for_permission_gets_the_decision(#[case] name: &str, #[case] option: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(
        r#"{BEGIN}
echo '{{"jsonrpc":"2.0","id":"ask","method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{"toolCallId":"t","title":"rm -r build"}},"options":[{{"optionId":"ever","kind":"allow_always"{name}}},{{"optionId":"once","kind":"allow_once"}}]}}}}'
read -r line
case $line in *'"id":"ask"'*'"optionId":"{option}"'*) text=Done.;; *) text=No.;; esac
echo "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"update\":{{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"$text\"}}}}}}}}"
echo '{{"jsonrpc":"2.0","id":3,"result":{{"stopReason":"end_turn"}}}}'; read -r line"#
    );
    let stop = CancellationToken::new();
    let acp = start(section(folder.path(), &script), &stop);

    let (outcome, _) = run(&acp, turn("Tidy up").with(|turn| turn.rights.may_ask_approval = true)).await;

    stop.cancel();
    assert!(matches!(&outcome, Ok(Outcome::Reply(reply)) if reply.text == "Done."), "{outcome:?}");
}

/// In the middle of the run, or in one after a crash, which knows the answer.
#[rstest]
#[case::picks_the_first(None, "Gone.")]
#[case::has_answered_before(Some("No"), "Stayed.")]
#[tokio::test]
async fn a_process_that_asks_the_person_gets_the_answer(#[case] before: Option<&str>, #[case] said: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(
        r#"{BEGIN}
echo '{{"jsonrpc":"2.0","id":"ask","method":"elicitation/create","params":{{"mode":"form","sessionId":"s","message":"Go on?","requestedSchema":{{"type":"object","properties":{{"go":{{"type":"boolean"}}}},"required":["go"]}}}}}}'
read -r line
case $line in *'"action":"accept"'*'"go":true'*) text=Gone.;; *'"go":false'*) text=Stayed.;; *) text=$line;; esac
echo "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"update\":{{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"$text\"}}}}}}}}"
echo '{{"jsonrpc":"2.0","id":3,"result":{{"stopReason":"end_turn"}}}}'; read -r line"#
    );
    let options = ["Yes", "No", "Decline"].map(str::to_owned).to_vec();
    let question = ApprovalRequest::question("Go on?\n\ngo", Choices { options, free_text: false, expires: None });
    let answer = |words: &str| PersonAnswer { question: as_stored(&question), answer: Some(words.to_owned()) };
    let answers = before.map(answer).into_iter().collect();
    let stop = CancellationToken::new();
    let acp = start(section(folder.path(), &script), &stop);

    let (outcome, _) = run(
        &acp,
        turn("A trip").with(|turn| {
            turn.rights.may_ask_person = true;
            turn.past.answers = answers;
        }),
    )
    .await;

    stop.cancel();
    assert!(matches!(&outcome, Ok(Outcome::Reply(reply)) if reply.text == said), "{outcome:?}");
}

#[tokio::test]
async fn the_operator_reads_what_a_process_said_last() {
    let outcome = outcome_of(&format!("{BEGIN} echo 'out of memory' >&2; exit 3")).await;

    let Err(AgentError::Broken(why)) = outcome else { panic!("{outcome:?}") };
    assert!(why.contains("exit code 3") && why.contains("out of memory"), "{why}");
}

/// The error of an agent that cannot be reached is logged.
#[tokio::test]
async fn a_process_that_does_not_start_says_why_without_what_it_wrote() {
    let outcome = outcome_of("echo 'node: not found' >&2; exit 127").await;

    let Err(error @ AgentError::Unreachable(_)) = outcome else { panic!("{outcome:?}") };
    let why = error.summary();
    assert!(why.contains("exit code 127") && why.contains("rejoinder doctor"), "{why}");
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

    let found = probe(&with_key("echo \"node: no $CARGO_PKG_NAME for $KEY\" >&2; exit 127"), supervisor()).await;
    let why = found.expect_err("it is no agent");
    assert!(why.contains("node: no •••• for ••••"), "{why}");

    let says =
        r#"read -r line; echo "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"message\":\"no $KEY\"}}"; read -r line"#;
    let stop = CancellationToken::new();
    let (outcome, _) = run(&start(with_key(says), &stop), turn("Hi")).await;
    stop.cancel();
    assert!(matches!(&outcome, Err(AgentError::Unreachable(why)) if why.contains("no ••••")), "{outcome:?}");
}

#[rstest]
#[case::login(-32_000)]
#[case::refusal(-32_603)]
#[tokio::test]
async fn an_error_of_an_agent_is_told_without_its_secrets_and_cut(#[case] code: i64) {
    let folder = tempfile::tempdir().expect("a folder");
    let (initialize, _) = BEGIN.trim_start().split_once('\n').expect("lines");
    let script = format!(
        r#"{initialize}
read -r line; long=$(printf '%03000d' 0)
echo "{{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{{\"code\":{code},\"message\":\"no $KEY\",\"data\":[\"$KEY\",\"$long\"]}}}}"
read -r line"#
    );
    let env = [("KEY".to_owned(), "sk-0123456789".into())].into();
    let stop = CancellationToken::new();

    let (outcome, _) = run(&start(AcpSection { env, ..section(folder.path(), &script) }, &stop), turn("Hi")).await;

    stop.cancel();
    let why = outcome.expect_err("it is refused").to_string();
    let has_data = why.contains("no ••••: [\"••••\"");
    // An error of an agent that cannot be reached is logged: without the data.
    assert_eq!(has_data, code != -32_000, "{why}");
    assert!(why.contains("no ••••") && !why.contains("sk-"), "{why}");
    assert!(why.chars().count() < 1_300, "{} characters", why.chars().count());
}

#[tokio::test]
async fn a_process_that_does_not_begin_has_ended_before_the_next_one_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = r#"touch works; read -r line; echo '{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}'
cat > /dev/null; sleep 0.3; rm works"#;
    let acp = Acp::new("main".into(), section(folder.path(), script), supervisor());
    let stop = CancellationToken::new();
    let fails = async {
        let (outcome, _) = run(&acp, turn("Hi")).await;
        stop.cancel();
        outcome
    };

    let (outcome, ()) = tokio::join!(fails, acp.keep_running(stop.clone()));

    assert!(matches!(&outcome, Err(AgentError::Unreachable(_))), "{outcome:?}");
    assert!(!folder.path().join("works").exists(), "it goes on");
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

    assert!(matches!(&first, Err(AgentError::Broken(why)) if why.contains("signal 9")), "{first:?}");
    assert!(matches!(second, Ok(Outcome::Reply(_))), "{second:?}");
}

/// Whether the process lives.
fn lives(pid: &str) -> bool {
    // A process that has ended and was not waited for is a zombie.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Starts a process that leaves its parent, its group and its session, and ignores that it is told to end. Its id is in `hidden`.
const HIDE: &str = r#"sh -c 'setsid sh -c "trap \"\" TERM HUP; echo \$\$ > hidden; while true; do sleep 600; done" > /dev/null 2>&1 &'"#;

fn hiding(folder: &Path) -> AcpSection {
    section(folder, &format!("trap '' TERM; {HIDE}; {BEGIN} sleep 600"))
}

async fn until<T>(what: &str, found: impl Fn() -> Option<T>) -> T {
    let waiting = async {
        loop {
            match found() {
                Some(found) => break found,
                None => sleep(Duration::from_millis(10)).await,
            }
        }
    };
    timeout(Duration::from_secs(20), waiting).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

async fn hidden(folder: &Path) -> String {
    let written = || fs::read_to_string(folder.join("hidden")).ok().filter(|id| id.ends_with('\n'));
    until("the process is there", written).await.trim().to_owned()
}

async fn ends(process: &str) {
    until("the process ends", || (!lives(process)).then_some(())).await;
}

#[tokio::test]
async fn a_process_ends_with_the_gateway_and_with_all_that_it_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let stop = CancellationToken::new();
    let acp = start(hiding(folder.path()), &stop);
    let running = tokio::spawn(async move { run(&acp, turn("Hi")).await.0 });
    let process = hidden(folder.path()).await;
    assert!(lives(&process));

    stop.cancel();

    let outcome = timeout(Duration::from_secs(10), running).await.expect("the run ends").expect("it does not panic");
    assert!(outcome.is_err(), "{outcome:?}");
    ends(&process).await;
}

/// The folder of [`a_run_of_another_process`].
const FOLDER: &str = "REJOINDER_TEST_FOLDER";

#[tokio::test]
#[ignore = "it is a part of the test below, in a process that is killed"]
async fn a_run_of_another_process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let acp = start(hiding(Path::new(&folder)), &CancellationToken::new());
    let _ = run(&acp, turn("Hi")).await;
}

#[tokio::test]
async fn what_an_agent_started_ends_with_a_gateway_that_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut gateway = tokio::process::Command::new(std::env::current_exe().expect("this test"));
    gateway.args(["--ignored", "--exact", "scripts::a_run_of_another_process"]);
    let mut gateway =
        gateway.env(FOLDER, folder.path()).stdout(std::process::Stdio::null()).spawn().expect("it starts");
    let process = hidden(folder.path()).await;

    gateway.kill().await.expect("it is ours");

    ends(&process).await;
}

/// An agent gets all that is written, and has a moment when its input ends.
#[tokio::test]
async fn an_agent_reads_its_input_to_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let stop = CancellationToken::new();
    let script = format!("{BEGIN} echo \"$line\" > prompt; cat > /dev/null; sleep 0.1; echo here > end");
    let acp = start(section(folder.path(), &script), &stop);
    let running = tokio::spawn(async move { run(&acp, turn(&"x".repeat(1 << 20))).await.0 });
    let written = |name: &str| fs::read_to_string(folder.path().join(name)).ok().filter(|text| text.ends_with('\n'));
    let prompt = until("it has read the prompt", || written("prompt")).await;

    stop.cancel();

    assert!(prompt.len() > 1 << 20, "{} bytes", prompt.len());
    assert_eq!(until("it ends by itself", || written("end")).await, "here\n");
    running.await.expect("it does not panic").expect_err("its process has ended");
}

#[tokio::test]
async fn the_environment_holds_only_what_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let section = AcpSection {
        env: [("OWN".to_owned(), "secret".into())].into(),
        inherit: vec!["CARGO_MANIFEST_DIR".to_owned()],
        ..section(folder.path(), "env > env; exit 1")
    };

    probe(&section, supervisor()).await.expect_err("it is no agent");

    let env = fs::read_to_string(folder.path().join("env")).expect("it was started");
    let has = |name: &str| env.lines().any(|line| line.starts_with(&format!("{name}=")));
    assert!(has("OWN") && has("PATH") && has("CARGO_MANIFEST_DIR") && !has("CARGO_PKG_NAME"), "{env}");
}

#[tokio::test]
async fn a_probe_says_what_answers_or_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");

    let found = probe(&section(folder.path(), BEGIN), supervisor()).await.expect("it answers");
    assert_eq!(found.name.as_deref(), Some("sh 1"));

    let command = vec!["no-such-agent".to_owned()];
    let missing =
        probe(&AcpSection { command, ..section(folder.path(), "") }, supervisor()).await.expect_err("it is not there");
    assert_eq!(missing, "there is no program no-such-agent in the folders of PATH (`command`)");

    let cwd = Some("/no/such/folder".to_owned());
    let nowhere =
        probe(&AcpSection { cwd, ..section(folder.path(), "") }, supervisor()).await.expect_err("it is not there");
    assert_eq!(nowhere, "there is no folder /no/such/folder (`cwd`)");

    let old = r#"read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2}}'; read -r line"#;
    let other = probe(&section(folder.path(), old), supervisor()).await.expect_err("it speaks another version");
    assert_eq!(other, "it speaks version 2 of ACP, and the gateway version 1");
}
