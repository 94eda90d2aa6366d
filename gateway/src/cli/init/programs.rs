//! Coding agents on this machine that speak the Agent Client Protocol (<https://agentclientprotocol.com>).

use std::{ffi::OsStr, fmt::Write as _, path::PathBuf};

use rejoinder_agents::is_executable;

use crate::{
    agents,
    console::{
        failure::Failure,
        toml::{toml_list, toml_text},
    },
};

/// The kind of agent that runs such a program.
const KIND: &str = "acp";

/// A program, and what it needs to speak the protocol.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// The file that shows that it is installed.
    file: &'static str,
    /// Starts it so that it speaks the protocol.
    pub(super) command: &'static [&'static str],
    /// How to install the adapter that the command starts, for programs that do not speak the protocol themselves.
    adapter: Option<&'static str>,
    /// The variable with its key, if it is not logged in otherwise.
    key: Option<&'static str>,
    /// The mode in which it asks for permissions, if its own default does not.
    mode: Option<&'static str>,
    /// A variable that has it ask for permissions, and its value, if it has no such mode.
    asks: Option<(&'static str, &'static str)>,
}

/// Sources: <https://opencode.ai/docs/acp/>, <https://block.github.io/goose/docs/guides/acp-clients>, google-gemini/gemini-cli,
/// agentclientprotocol/claude-agent-acp, agentclientprotocol/codex-acp.
static PROGRAMS: &[Program] = &[
    Program {
        adapter: Some("npm install -g @agentclientprotocol/claude-agent-acp"),
        key: Some("ANTHROPIC_API_KEY"),
        mode: Some("default"),
        ..Program::new("Claude Code", "claude", &["claude-agent-acp"])
    },
    Program {
        adapter: Some("npm install -g @agentclientprotocol/codex-acp"),
        key: Some("OPENAI_API_KEY"),
        mode: Some("read-only"),
        ..Program::new("Codex", "codex", &["codex-acp"])
    },
    Program {
        key: Some("GEMINI_API_KEY"),
        ..Program::new("Gemini CLI", "gemini", &["gemini", "--acp", "-m", "gemini-2.5-flash"])
    },
    Program {
        key: Some("OPENAI_API_KEY"),
        mode: Some("default"),
        ..Program::new("Qwen Code", "qwen", &["qwen", "--acp"])
    },
    Program {
        asks: Some(("OPENCODE_PERMISSION", r#"{"bash":"ask","edit":"ask"}"#)),
        ..Program::new("OpenCode", "opencode", &["opencode", "acp"])
    },
    Program { mode: Some("approve"), ..Program::new("goose", "goose", &["goose", "acp"]) },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundProgram {
    pub(super) program: &'static Program,
    /// What must be installed as well: a command.
    pub(super) missing: Option<&'static str>,
}

impl FoundProgram {
    /// How the question offers it.
    pub(super) fn description(&self) -> String {
        let mut text = format!("{} on this machine", self.program.name);
        let _ = match self.missing {
            None => write!(text, ", `{}`", self.program.command.join(" ")),
            Some(install) => write!(text, ", once you have run `{install}`"),
        };
        text
    }
}

impl Program {
    const fn new(name: &'static str, file: &'static str, command: &'static [&'static str]) -> Self {
        Self { name, file, command, adapter: None, key: None, mode: None, asks: None }
    }

    /// The section of the agent, as TOML.
    pub(super) fn section(&self) -> Result<String, Failure> {
        let mut text = format!("[agents.main]\nkind = \"{KIND}\"\ncommand = {}\n", toml_list(self.command)?);
        if let Some(key) = self.key {
            let _ = writeln!(text, "inherit = {}", toml_list(&[key])?);
        }
        if let Some(mode) = self.mode {
            let _ = writeln!(text, "mode = {}", toml_text(mode)?);
        }
        if let Some((name, value)) = self.asks {
            let _ = writeln!(text, "env = {{ {name} = {} }}", toml_text(value)?);
        }
        Ok(text)
    }
}

/// The programs that are installed, if this build can run them.
pub(super) fn find() -> Vec<FoundProgram> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_known = agents::sections().iter().any(|kind| kind.name == KIND);
    if is_known { installed(|file| is_in(&path, file)) } else { Vec::new() }
}

/// The programs of which `has` finds the file. One whose adapter is installed as well comes with nothing missing.
pub(super) fn installed(has: impl Fn(&str) -> bool) -> Vec<FoundProgram> {
    let is_ready = |program: &Program| program.command.first().is_some_and(|file| has(file));
    let programs = PROGRAMS.iter().filter(|program| has(program.file) || is_ready(program));
    programs.map(|program| FoundProgram { program, missing: program.adapter.filter(|_| !is_ready(program)) }).collect()
}

/// Whether a folder of `path`, as in `$PATH`, has an executable file of this name.
fn is_in(path: &OsStr, file: &str) -> bool {
    // Relative folders depend on where the gateway is started.
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder: PathBuf| folder.join(file)).any(|file| is_executable(&file))
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt as _, path::Path};

    use super::*;

    fn found(files: &[&str]) -> Vec<(String, Option<&'static str>)> {
        let found = installed(|file| files.contains(&file));
        found.into_iter().map(|found| (found.program.command.join(" "), found.missing)).collect()
    }

    #[test]
    fn each_program_has_its_command() {
        let all = ["goose", "opencode", "qwen", "gemini", "claude", "claude-agent-acp", "codex", "codex-acp"];

        let commands: Vec<_> = found(&all).into_iter().map(|(command, missing)| (command, missing.is_some())).collect();

        let ready = [
            "claude-agent-acp",
            "codex-acp",
            "gemini --acp -m gemini-2.5-flash",
            "qwen --acp",
            "opencode acp",
            "goose acp",
        ];
        assert_eq!(commands, ready.map(|command| (command.to_owned(), false)));
        assert_eq!(found(&["vim"]), []);
    }

    #[test]
    fn what_an_adapter_needs_is_said() {
        let install = "npm install -g @agentclientprotocol/codex-acp";

        assert_eq!(found(&["codex"]), [("codex-acp".to_owned(), Some(install))]);
        assert_eq!(found(&["codex-acp"]), [("codex-acp".to_owned(), None)]);
        let [found] = installed(|file| file == "codex")[..] else { panic!() };
        assert!(found.description().contains(install), "{}", found.description());
    }

    #[test]
    fn a_program_is_an_executable_file_of_an_absolute_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("goose");
        std::fs::write(&file, "").unwrap();
        std::fs::create_dir(folder.path().join("codex")).unwrap();
        let path = std::env::join_paths([Path::new("/nowhere"), folder.path()]).unwrap();

        assert!(!is_in(&path, "goose") && !is_in(&path, "codex"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(is_in(&path, "goose") && !is_in(OsStr::new("."), "goose"));
    }

    /// Gemini CLI does so without being told.
    #[test]
    fn each_program_asks_for_permissions() {
        for program in PROGRAMS.iter().filter(|program| program.file != "gemini") {
            let section = program.section().unwrap();
            assert!(section.contains("mode = ") || section.contains("PERMISSION = "), "{section}");
        }
    }

    #[test]
    fn programs_are_offered_only_by_a_build_that_runs_them() {
        let is_known = agents::sections().iter().any(|kind| kind.name == KIND);
        assert!(is_known || find().is_empty());
        for program in PROGRAMS {
            let section = program.section().unwrap();
            let loaded = crate::wiring::tests::load(&section, rejoinder_config::Environment::default());
            assert_eq!(loaded.is_ok(), is_known, "{section}: {loaded:?}");
        }
        let claude = PROGRAMS[0].section().unwrap();
        assert!(claude.ends_with("inherit = [\"ANTHROPIC_API_KEY\"]\nmode = \"default\"\n"), "{claude}");
    }
}
