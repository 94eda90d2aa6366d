//! A real agent, which `.ci/acp` installs and connects to a model that is scripted.

use std::{env, sync::atomic::AtomicU32};

use rejoinder_acp::{AcpSection, probe};
use rejoinder_core::{Outcome, RunEvent, conformance::runtime::turn};
use tokio_util::sync::CancellationToken;

use super::{run, start, supervisor};

/// The command line, separated by spaces, and the names of the variables that the agent gets.
fn section(cwd: &str) -> AcpSection {
    let words = |name: &str| -> Vec<String> {
        let value = env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run .ci/acp"));
        value.split_whitespace().map(str::to_owned).collect()
    };
    let mode = env::var("REJOINDER_ACP_MODE").ok();
    let (command, inherit) = (words("REJOINDER_ACP_AGENT"), words("REJOINDER_ACP_INHERIT"));
    AcpSection { command, inherit, mode, cwd: Some(cwd.to_owned()), ..AcpSection::default() }
}

/// The model answers every message with this text.
const ANSWER: &str = "The zebra is made of quartz.";

#[tokio::test]
#[ignore = "needs a real agent: run .ci/acp"]
async fn a_real_agent_answers_in_a_session_and_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let section = section(folder.path().to_str().expect("UTF-8"));
    let found = probe(&section, supervisor()).await.expect("it answers");
    println!("{} answers after {:?}", found.name.as_deref().unwrap_or("it"), found.took);
    let first = turn("zebra-quartz please");

    let runs = AtomicU32::new(0);
    for process in 1..=2 {
        let stop = CancellationToken::new();
        let acp = start(section.clone(), &stop);
        for _ in 0..2 {
            let attempt = runs.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            let (outcome, events) = run(&acp, first.clone().with(|turn| turn.attempt = attempt)).await;

            let Ok(Outcome::Reply(reply)) = outcome else { panic!("process {process}: {outcome:?}") };
            assert_eq!(reply.text, ANSWER, "{events:?}");
            for event in events {
                if let RunEvent::Title(title) = event {
                    println!("run {attempt} of process {process} titles the session: {title}");
                }
            }
        }
        stop.cancel();
    }
}
