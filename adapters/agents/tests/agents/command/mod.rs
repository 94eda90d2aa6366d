//! Programs that answer.

mod double;
mod processes;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use rejoinder_agents::{Command, CommandSection, Memory, Supervisor};
use rejoinder_core::{AgentError, AgentRuntime, Outcome, Reply, Usage};
use rstest::rstest;

pub(crate) use self::double::agent;
use crate::double::{FinishedRun, notice, run, turn};

/// A section whose program is a script for the shell.
fn script(script: &str) -> CommandSection {
    CommandSection { command: ["sh", "-c", script].map(ToOwned::to_owned).to_vec(), ..CommandSection::default() }
}

async fn run_script(text: &str) -> FinishedRun {
    run(&agent(script(text)), turn("Hi")).await
}

#[tokio::test]
async fn text_is_the_reply() {
    let run = run_script("cat > /dev/null; echo Good; echo day.").await;
    assert_eq!(run.drafts.trim_end(), "Good\nday.");
    assert_eq!(run.reply(), "Good\nday.\n");
}

#[tokio::test]
async fn json_lines_are_an_answer_in_pieces() {
    let run = run_script(
        r#"echo '{"text": "Sun"}'; echo '{"tool": {"name": "weather", "result": "sunny"}}'
        echo '{"usage": {"input_tokens": 7, "output_tokens": 3}}'; echo '{"text": "ny."}'; printf '{"end": true}'"#,
    )
    .await;
    assert_eq!((run.drafts.as_str(), &run.tools[..]), ("Sunny.", &["weather".to_owned()][..]));
    assert_eq!(run.usage, Some(Usage { input_tokens: 7, output_tokens: 3 }));
    assert_eq!(run.reply(), "Sunny.");
}

#[tokio::test]
async fn the_program_gets_the_turn_and_the_operator_sees_it() {
    let run = run_script("printf 'It is '; cat").await;
    let shown = run.shown.clone().expect("the input").messages;
    let reply = run.reply();
    assert!(reply.starts_with("It is {\"turn_id\":\"") && reply.contains("\"text\":\"Hi\""), "{reply}");
    assert!(shown.contains("\"text\":\"Hi\""), "{shown}");
}

#[tokio::test]
async fn a_change_of_a_session_is_done_when_the_program_ends_with_0() {
    let (notice, folder) = (notice(), tempfile::tempdir().expect("a folder"));
    let told = async |script: String| {
        agent(CommandSection { sessions: true, ..self::script(&script) }).session_changed(notice.clone()).await
    };
    let file = folder.path().join("told");

    assert_eq!(told(format!("cat > {}; echo of no use", file.display())).await, Ok(()));

    let read: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).expect("a file")).expect("JSON");
    assert_eq!(read["session_changed"]["session_id"], notice.session.to_string());
    assert_eq!(read["session_changed"]["change"], "turn_removed");
    let failed = told("cat > /dev/null; echo no such session >&2; exit 3".to_owned()).await;
    let Err(AgentError::Failed(why)) = failed else { panic!("{failed:?}") };
    assert!(why.contains('3') && why.contains("no such session"), "{why}");
}

#[tokio::test]
async fn nothing_is_a_reply_without_text() {
    assert_eq!(run_script("true").await.outcome, Ok(Outcome::Reply(Reply::text(""))));
}

#[rstest]
#[case::text("echo Half; echo 'no credit' >&2; exit 3", "it ended with exit code 3; it wrote: no credit")]
#[case::objects("echo '{\"text\": \"Half\"}'; exit 3", "it ended with exit code 3")]
#[case::killed("echo Half; kill -9 $$", "it ended with exit code 137 (signal 9)")]
#[case::its_own_word("echo '{\"error\": \"no credit\"}'", "no credit")]
#[tokio::test]
async fn a_program_that_fails_gives_no_answer(#[case] script: &str, #[case] why: &str) {
    assert_eq!(run_script(script).await.outcome, Err(AgentError::Failed(why.to_owned())));
}

#[tokio::test]
async fn what_a_program_wrote_is_told_without_its_secrets() {
    let env = [("KEY".to_owned(), "sk-0123456789".into())].into_iter().collect();
    let section = CommandSection { env, ..script("echo \"bad key $KEY\" >&2; exit 3") };
    let outcome = run(&agent(section), turn("Hi")).await.outcome;
    let why = "it ended with exit code 3; it wrote: bad key ••••";
    assert_eq!(outcome, Err(AgentError::Failed(why.to_owned())));
}

#[rstest]
#[case::no_end("echo '{\"text\": \"Half\"}'", "it ended after 4 characters without an object")]
#[case::half_a_line("echo '{\"text\": \"Half\"}'; printf '{\"text\": \"an'", "it is cut off")]
#[case::no_object("echo '{\"text\": \"Half\"}'; echo oops", "it is not JSON")]
#[case::another_key("echo '{\"text\": \"Half\"}'; echo '{\"answer\": 1}'", "an object has none of the keys")]
#[tokio::test]
async fn an_answer_that_is_not_as_described_is_broken(#[case] script: &str, #[case] why: &str) {
    let Err(AgentError::Broken(said)) = run_script(script).await.outcome else { panic!("it is not broken") };
    assert!(said.contains(why), "{said}");
}

/// An agent below another supervisor than the real one, which runs a script in place of the program.
fn below(supervisor: &str) -> Command {
    let arguments = ["-c", supervisor].map(Into::into).to_vec();
    let supervisor = Supervisor { program: "/bin/sh".into(), arguments };
    Command::new("main".into(), script("true"), supervisor).expect("the program is there")
}

#[rstest]
#[case::it_is_slow_to_end("echo Half; exec >&- 2>&-; sleep 2; exit 3")]
#[case::its_errors_stay_open("echo Half; sleep 3 >/dev/null & exit 3")]
#[tokio::test]
async fn a_failure_counts_although_it_comes_late_or_the_errors_do_not_end(#[case] supervisor: &str) {
    let outcome = run(&below(supervisor), turn("Hi")).await.outcome;
    assert_eq!(outcome, Err(AgentError::Failed("it ended with exit code 3".to_owned())));
}

#[tokio::test]
async fn a_program_that_closes_its_output_answers_when_it_ends() {
    let began = Instant::now();
    assert_eq!(run_script("echo Done.; exec >&- 2>&-; sleep 2").await.reply(), "Done.\n");
    assert!(began.elapsed() >= Duration::from_secs(2));
    let outcome = run_script("echo Done.; exec >&- 2>&-; sleep 2; exit 3").await.outcome;
    assert_eq!(outcome, Err(AgentError::Failed("it ended with exit code 3".to_owned())));
}

#[tokio::test]
async fn an_outcome_counts_whatever_the_exit_code_is() {
    assert_eq!(run_script("echo '{\"reply\": \"Done.\"}'; exit 3").await.reply(), "Done.");
}

#[tokio::test]
async fn a_flood_of_text_is_cut_off_and_its_program_ends() {
    let run = run_script("head -c 104857600 /dev/zero | tr '\\0' x").await;
    let reply = run.reply();
    assert!(reply.ends_with("\n\nThe rest is missing.") && reply.len() < 1024 * 1024 + 100, "{} bytes", reply.len());
}

#[tokio::test]
async fn a_flood_of_objects_ends_at_the_limit() {
    let section = script("while true; do echo '{\"usage\": {\"input_tokens\": 1, \"output_tokens\": 1}}'; done");
    let section = CommandSection { max_output: rejoinder_config::Size::of_bytes(4096), ..section };
    let outcome = run(&agent(section), turn("Hi")).await.outcome;
    let why = "it has written more than 4096 bytes (`max_output`)";
    assert_eq!(outcome, Err(AgentError::Broken(why.to_owned())));
}

#[tokio::test]
async fn a_program_that_reads_nothing_of_a_large_turn_can_answer() {
    let outcome = run(&agent(script("exec 0<&-; echo Done.")), turn(&"x".repeat(1 << 20))).await;
    assert_eq!(outcome.reply(), "Done.\n");
}

#[tokio::test]
async fn the_time_is_limited() {
    let section = CommandSection { timeout: Some(Duration::from_millis(300)), ..script("echo Half; sleep 600") };
    let outcome = run(&agent(section), turn("Hi")).await.outcome;
    assert_eq!(outcome, Err(AgentError::Stalled("it has not ended within 300ms".to_owned())));
}

#[tokio::test]
async fn the_memory_is_limited() {
    let memory: Memory = serde_json::from_str("\"64 MiB\"").expect("a size");
    let section = CommandSection { max_memory: Some(memory), ..script("ulimit -v; ulimit -c") };
    assert_eq!(run(&agent(section), turn("Hi")).await.reply(), "65536\n0\n");
}

#[tokio::test]
async fn the_environment_is_that_of_the_section_and_little_else() {
    let env = [("GREETING".to_owned(), "Good day.".into())].into_iter().collect();
    let inherit = vec!["CARGO_PKG_NAME".to_owned()];
    let section = CommandSection { env, inherit, cwd: Some("/".into()), ..script("env; pwd") };
    let reply = run(&agent(section), turn("Hi")).await.reply();

    let names: Vec<_> = reply.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert!(names.contains(&"GREETING") && names.contains(&"PATH") && names.contains(&"CARGO_PKG_NAME"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("CARGO_MANIFEST")), "{names:?}");
    assert!(reply.ends_with("\n/\n") || reply.contains("\n/\n"), "{reply}");
}

#[tokio::test]
async fn a_program_that_is_gone_fails_with_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    std::os::unix::fs::symlink("/bin/true", &program).expect("a link");
    let command = vec![program.to_str().expect("a path").to_owned()];
    let agent = agent(CommandSection { command, ..CommandSection::default() });
    remove(&program);

    let Err(AgentError::Failed(why)) = run(&agent, turn("Hi")).await.outcome else { panic!("it has run") };
    assert!(why.starts_with("it ended with exit code 127; it wrote: rejoinder: cannot run "), "{why}");
}

fn remove(program: &Path) {
    std::fs::remove_file(program).expect("it is there");
}
