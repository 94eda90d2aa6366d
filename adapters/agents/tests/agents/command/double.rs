//! A program that follows the suite.

use std::{fs, path::Path, sync::Arc};

use rejoinder_agents::{Command, CommandSection, Supervisor};
use rejoinder_core::{
    AgentRuntime,
    conformance::runtime::{AgentDouble, Conduct},
};
use serde_json::json;
use tempfile::TempDir;

/// The program of `tests/bin`.
pub(super) const PROGRAM: &str = env!("CARGO_BIN_EXE_rejoinder-agents-program");

pub(crate) fn agent(section: CommandSection) -> Command {
    let supervisor = Supervisor { program: PROGRAM.into(), arguments: vec!["supervise".into()] };
    Command::new("main".into(), section, supervisor).expect("the program is there")
}

/// Whether a process lives.
pub(super) fn is_alive(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

struct Double {
    folder: TempDir,
    agent: Arc<Command>,
}

fn double() -> Double {
    let folder = tempfile::tempdir().expect("a folder");
    let command = vec![PROGRAM.to_owned(), folder.path().to_str().expect("a path").to_owned()];
    Double { agent: Arc::new(agent(CommandSection { command, ..CommandSection::default() })), folder }
}

/// What the names of the files in the folder say after this word.
fn named<'a>(folder: &'a Path, word: &'a str) -> impl Iterator<Item = String> + 'a {
    let names = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").file_name());
    names.filter_map(move |name| Some(name.to_str()?.strip_prefix(word)?.to_owned()))
}

impl AgentDouble for Double {
    fn runtime(&self) -> Arc<dyn AgentRuntime> {
        Arc::clone(&self.agent) as Arc<dyn AgentRuntime>
    }

    fn conduct(&self, attempt: u32, conduct: Conduct) -> bool {
        let conduct = match conduct {
            Conduct::Says(pieces) => json!({ "says": pieces }),
            Conduct::Sends(text) => json!({ "sends": text, "then": "send" }),
            Conduct::Listens(first, _) => json!({ "says": [first] }),
            Conduct::Hangs(text) => json!({ "says": [text], "then": "hang" }),
            Conduct::Breaks(text) => json!({ "says": [text], "then": "break" }),
            Conduct::Panics => return false,
        };
        fs::write(self.folder.path().join(format!("conduct-{attempt}")), conduct.to_string()).expect("a file");
        true
    }

    fn at_work(&self) -> usize {
        named(self.folder.path(), "process-").filter(|process| is_alive(process)).count()
    }

    fn given(&self) -> Vec<String> {
        let files =
            named(self.folder.path(), "given-").map(|process| self.folder.path().join(format!("given-{process}")));
        files.map(|file| fs::read_to_string(file).expect("a file")).collect()
    }
}

rejoinder_core::runtime_conformance!(std::future::ready(double()));
