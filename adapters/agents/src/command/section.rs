//! `kind = "command"`: the configuration of a program that answers.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fmt, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use rejoinder_config::{AgentSection, Checks, Secret, Section, Size, number, text};
use rejoinder_core::Price;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{section::PriceSection, timeout};

/// The variables that every program gets.
const INHERITED: [&str; 7] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// A program that is started for each turn.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommandSection {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder in which it runs; `None`: that of the gateway.
    pub cwd: Option<PathBuf>,
    /// Variables of its environment.
    pub env: BTreeMap<String, Secret>,
    /// Variables of the gateway that it gets as well.
    pub inherit: Vec<String>,
    /// How long it may run; `None`: as long as the gateway lets any agent.
    #[serde(serialize_with = "timeout::write", deserialize_with = "timeout::read")]
    pub timeout: Option<Duration>,
    /// The address space of each of its processes; `None`: unlimited.
    pub max_memory: Option<Memory>,
    /// How much it may write to its standard output.
    pub max_output: Size,
    /// The most earlier messages that it gets.
    #[serde(deserialize_with = "number::between::<_, 0, 10_000>")]
    pub history_messages: u32,
    /// How many turns it works on at once; the others wait.
    #[serde(deserialize_with = "number::between::<_, 1, 4096>")]
    pub max_concurrent: u32,
    /// Whether drafts show what it does.
    pub show_activity: bool,
    /// What its tokens cost. `None`: unknown.
    pub price: Option<PriceSection>,
    /// Whether it keeps sessions in a memory of its own, and is told what happens to them.
    pub sessions: bool,
    /// Whether it may call the tools of its runs over the Model Context Protocol.
    pub mcp: bool,
}

impl Default for CommandSection {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            cwd: None,
            env: BTreeMap::new(),
            inherit: Vec::new(),
            timeout: None,
            max_memory: None,
            max_output: Size::mib(16),
            history_messages: 40,
            max_concurrent: 8,
            show_activity: false,
            price: None,
            sessions: false,
            mcp: false,
        }
    }
}

impl Section for CommandSection {
    const REQUIRED: &'static [&'static str] = &["command"];

    fn check(&self, checks: &mut Checks<'_>) {
        if self.command.first().is_none_or(|program| program.trim().is_empty()) {
            checks.wrong(
                checks.key(&["command"]),
                "must name a program, as in [\"/usr/local/bin/answer\", \"--briefly\"]",
            );
        }
        let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
        if !self.env.keys().all(|name| is_name(name)) {
            checks.wrong(checks.key(&["env"]), "has a name that is none of a variable");
        }
        if !self.inherit.iter().all(|name| is_name(name)) {
            checks.wrong(checks.key(&["inherit"]), "must be names of variables");
        }
    }
}

impl AgentSection for CommandSection {
    const KIND: &'static str = "command";
    const MANUAL: &'static str = include_str!("../../command.toml");

    fn max_concurrent(&self) -> Option<u32> {
        Some(self.max_concurrent)
    }

    fn keeps_sessions(&self) -> bool {
        self.sessions
    }

    fn shows_activity(&self) -> bool {
        self.show_activity
    }

    fn price(&self) -> Option<Price> {
        self.price.map(Price::from)
    }
}

/// Why the program of a section cannot be run, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    #[error("there is no folder {}", .0.display())]
    NoFolder(PathBuf),
    #[error("there is no program `{0}` in PATH (install it, or give its whole path)")]
    NotInPath(String),
    #[error("there is no program {} (correct its path)", .0.display())]
    Missing(PathBuf),
    #[error("{} is no program that the gateway may run (make it executable: chmod +x)", .0.display())]
    NotExecutable(PathBuf),
}

impl ProgramError {
    /// The key of the section that is wrong.
    pub const fn key(&self) -> &'static str {
        match self {
            Self::NoFolder(_) => "cwd",
            Self::NotInPath(_) | Self::Missing(_) | Self::NotExecutable(_) => "command",
        }
    }
}

impl CommandSection {
    /// The path of its program.
    ///
    /// # Errors
    /// When it is not there or not executable, and when its folder is not there.
    pub fn find_program(&self) -> Result<PathBuf, ProgramError> {
        if let Some(folder) = self.cwd.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(ProgramError::NoFolder(folder.clone()));
        }
        let name = self.command.first().map_or("", String::as_str);
        if !name.contains('/') {
            let paths = self.variable("PATH").unwrap_or_default();
            let found = env::split_paths(&paths).map(|folder| folder.join(name)).find(|path| is_executable(path));
            return found.ok_or_else(|| ProgramError::NotInPath(name.to_owned()));
        }
        let path = self.cwd.as_deref().unwrap_or(Path::new("")).join(name);
        match path.metadata() {
            Err(_) => Err(ProgramError::Missing(path)),
            Ok(_) if !is_executable(&path) => Err(ProgramError::NotExecutable(path)),
            Ok(_) => Ok(path),
        }
    }

    /// Starts the program without a turn and ends it at once.
    ///
    /// # Errors
    /// When the system cannot run it: a script's interpreter is not there, for example.
    pub fn try_program(&self) -> io::Result<()> {
        let mut command = std::process::Command::new(&self.command[0]);
        let null = std::process::Stdio::null;
        command.args(&self.command[1..]).env_clear().envs(self.variables());
        command.stdin(null()).stdout(null()).stderr(null());
        if let Some(folder) = &self.cwd {
            command.current_dir(folder);
        }
        let mut child = command.spawn()?;
        child.kill()?;
        child.wait().map(|_| ())
    }

    /// The environment of the program.
    pub(super) fn variables(&self) -> BTreeMap<OsString, OsString> {
        let inherited = INHERITED.iter().copied().chain(self.inherit.iter().map(String::as_str));
        let inherited = inherited.filter_map(|name| Some((name.into(), env::var_os(name)?)));
        let own = self.env.iter().map(|(name, value)| (name.into(), value.expose().into()));
        inherited.chain(own).collect()
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        self.env.get(name).map(|value| value.expose().into()).or_else(|| env::var_os(name))
    }
}

/// Whether somebody may execute the file.
#[must_use]
pub fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// An amount of memory: `512 MiB`, `2 GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    mib: u64,
}

impl Memory {
    const UNITS: [(&str, u64); 2] = [("GiB", 1024), ("MiB", 1)];

    /// From 16 MiB to 1024 GiB.
    fn parse(text: &str) -> Option<Self> {
        let (number, factor) =
            Self::UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?.trim(), factor)))?;
        let mib = number.parse::<u64>().ok()?.checked_mul(*factor)?;
        (16..=1024 * 1024).contains(&mib).then_some(Self { mib })
    }

    pub const fn bytes(self) -> u64 {
        self.mib << 20
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = Self::UNITS[usize::from(!self.mib.is_multiple_of(1024))];
        write!(f, "{} {unit}", self.mib / factor)
    }
}

impl Serialize for Memory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Memory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text::parsed(deserializer, "a size from \"16 MiB\" to \"1024 GiB\"", Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_config::testing::{Machine, check_agent_manual};
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_manual_holds() {
        check_agent_manual::<CommandSection>(
            &[("ANSWER_KEY", "a secret")],
            &["command", "cwd", "env", "timeout", "max_memory", "price"],
        );
    }

    #[rstest]
    #[case::no_program(
        "command = []",
        "agents.main.command` must name a program, as in [\"/usr/local/bin/answer\", \"--briefly\"]"
    )]
    #[case::too_little(
        "command = [\"a\"]\nmax_memory = \"1 MiB\"",
        "agents.main.max_memory` must be a size from \"16 MiB\" to \"1024 GiB\""
    )]
    #[case::no_variable("command = [\"a\"]\ninherit = [\"A=B\"]", "agents.main.inherit` must be names of variables")]
    fn a_mistake_is_named(#[case] keys: &str, #[case] said: &str) {
        let machine = Machine::with_agent::<CommandSection>(&format!("[agents.main]\nkind = \"command\"\n{keys}"));

        let errors = machine.errors();
        assert!(errors.starts_with(&format!("config key `{said}")), "{errors}");
    }

    #[test]
    fn a_secret_of_the_environment_is_not_shown() {
        let agent = "[agents.main]\nkind = \"command\"\ncommand = [\"a\"]\nenv = { KEY = \"a secret of mine\" }";
        let config = Machine::with_agent::<CommandSection>(agent).config();

        assert!(!config.to_toml_redacted().contains("a secret of mine"), "{}", config.to_toml_redacted());
        assert!(!format!("{config:?}").contains("a secret of mine"));
    }

    #[test]
    fn a_program_is_found_or_the_error_says_what_to_do() {
        let find = |command: &str, cwd: Option<&str>| {
            let section =
                CommandSection { command: vec![command.into()], cwd: cwd.map(Into::into), ..CommandSection::default() };
            section.find_program()
        };
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("data");
        std::fs::write(&file, "").expect("a file");
        let folder = folder.path().to_str();

        assert!(find("sh", None).is_ok_and(|path| path.is_absolute()));
        assert_eq!(find("no-such-program", None), Err(ProgramError::NotInPath("no-such-program".into())));
        assert_eq!(find("/no/such", None), Err(ProgramError::Missing("/no/such".into())));
        assert_eq!(find("./data", folder), Err(ProgramError::NotExecutable(file.parent().unwrap().join("./data"))));
        assert_eq!(find("sh", Some("/no/such")), Err(ProgramError::NoFolder("/no/such".into())));
    }

    #[test]
    fn a_script_without_its_interpreter_does_not_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/no/such/interpreter\n").expect("a file");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).expect("it is ours");
        let section = |program: &Path| CommandSection {
            command: vec![program.to_str().unwrap().into()],
            ..CommandSection::default()
        };

        assert!(section(&script).find_program().is_ok());
        assert!(section(&script).try_program().is_err());
        assert!(section(Path::new("/bin/sh")).try_program().is_ok());
    }
}
