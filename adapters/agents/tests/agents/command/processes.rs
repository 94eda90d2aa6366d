//! No process of a program is left, however its run ends.

use std::{path::Path, time::Duration};

use rejoinder_agents::CommandSection;
use rejoinder_core::{AgentRuntime, Outcome, RunEvents};
use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    double::{agent, is_alive},
    script,
};
use crate::double::{run, turn};

const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a process that leaves its parent, its group and its session, and ignores that it is told to end. Its id is in `hidden`.
const HIDE: &str = r#"sh -c 'setsid sh -c "trap \"\" TERM HUP; echo \$\$ > hidden; while true; do sleep 600; done" > /dev/null 2>&1 &'
    while [ ! -s hidden ]; do sleep 0.01; done; "#;

fn hiding(folder: &TempDir, then: &str) -> CommandSection {
    CommandSection { cwd: Some(folder.path().into()), ..script(&(HIDE.to_owned() + then)) }
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(PATIENCE, waiting).await.is_ok(), "waited in vain: {what}");
}

fn written(folder: &TempDir, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(folder.path().join(name)).ok()?;
    (text.ends_with('\n')).then(|| text.trim().to_owned())
}

async fn hidden(folder: &TempDir) -> String {
    until("the process is there", || written(folder, "hidden").is_some()).await;
    written(folder, "hidden").expect("its id")
}

#[rstest]
#[case::it_ends("echo Done.")]
#[case::it_fails("exit 3")]
#[case::it_goes_on("echo '{\"reply\": \"Done.\"}'; sleep 600")]
#[case::it_floods("head -c 104857600 /dev/zero | tr '\\0' x")]
#[tokio::test]
async fn what_a_program_started_ends_with_the_run(#[case] then: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    run(&agent(hiding(&folder, then)), turn("Hi")).await;

    let process = hidden(&folder).await;
    until("the process ends", || !is_alive(&process)).await;
}

#[rstest]
#[tokio::test]
async fn what_a_program_started_ends_when_the_run_is_stopped(#[values(true, false)] is_cancelled: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let (events, _reported) = RunEvents::channel();
    let (agent, cancel) = (agent(hiding(&folder, "sleep 600")), CancellationToken::new());
    let process = {
        let mut running = agent.run(turn("Hi"), events, cancel.clone());
        let process = tokio::select! {
            process = hidden(&folder) => process,
            end = &mut running => panic!("it ended: {end:?}"),
        };
        if is_cancelled {
            cancel.cancel();
            assert!(timeout(Duration::from_secs(2), running).await.expect("it ends in time").is_err());
        }
        process
    };

    until("the process ends", || !is_alive(&process)).await;
}

#[tokio::test]
async fn a_program_is_told_to_end_before_it_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let told =
        "exec 2> /dev/null; trap 'echo told > told; exit 0' TERM; echo here > here; while true; do sleep 0.01; done";
    let section = CommandSection { cwd: Some(folder.path().into()), ..script(told) };
    let (events, _reported) = RunEvents::channel();
    let agent = agent(section);
    tokio::select! {
        () = until("it runs", || written(&folder, "here").is_some()) => {}
        end = agent.run(turn("Hi"), events, CancellationToken::new()) => panic!("it ended: {end:?}"),
    }

    until("it is told", || written(&folder, "told").is_some()).await;
}

/// The supervisor of a program, which is its parent.
fn parent(process: &str) -> Option<Pid> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(process).join("stat")).ok()?;
    Pid::from_raw(stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?)
}

#[tokio::test]
async fn a_program_ends_with_its_supervisor_and_the_run_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "sleep 600 & echo $! > child; echo $$ > main; sleep 600";
    let section = CommandSection { cwd: Some(folder.path().into()), ..script(text) };
    let agent = agent(section);
    let killing = async {
        until("it runs", || written(&folder, "main").is_some()).await;
        let (main, child) = (written(&folder, "main").expect("its id"), written(&folder, "child").expect("its id"));
        kill_process(parent(&main).expect("its parent"), Signal::KILL).expect("it is ours");
        [main, child]
    };
    let (run, processes) = tokio::join!(run(&agent, turn("Hi")), killing);

    assert!(!matches!(run.outcome, Ok(Outcome::Reply(_))), "{:?}", run.outcome);
    until("its processes end", || processes.iter().all(|process| !is_alive(process))).await;
}

/// The folder of [`a_run_of_another_process`].
const FOLDER: &str = "REJOINDER_TEST_FOLDER";

#[tokio::test]
#[ignore = "it is a part of the test below, in a process that is killed"]
async fn a_run_of_another_process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let section = CommandSection { cwd: Some(folder.into()), ..script(&(HIDE.to_owned() + "sleep 600")) };
    run(&agent(section), turn("Hi")).await;
}

#[tokio::test]
async fn what_a_program_started_ends_with_a_gateway_that_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut gateway = tokio::process::Command::new(std::env::current_exe().expect("this test"));
    gateway.args(["--ignored", "--exact", "command::processes::a_run_of_another_process"]);
    let mut gateway =
        gateway.env(FOLDER, folder.path()).stdout(std::process::Stdio::null()).spawn().expect("it starts");
    let process = hidden(&folder).await;

    gateway.kill().await.expect("it is ours");

    until("the process ends", || !is_alive(&process)).await;
}
