//! Helpers for testing sections (feature `testing`).

use std::{collections::BTreeSet, marker::PhantomData, path::Path};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use toml_edit::{DocumentMut, Item, TableLike};

use crate::{
    AgentKind, AgentSection, Build, ChannelSection, Config, ConfigErrors, Environment, Loaded, Options,
    PlatformSection, Section, load,
};

/// An operator's machine: a working directory and an environment.
#[derive(Debug)]
pub struct Machine {
    dir: TempDir,
    build: Build,
    /// The options for [`load`].
    pub options: Options,
}

impl Machine {
    /// A machine without a file, for a gateway with the platforms and agents of `build`.
    ///
    /// # Panics
    /// When no temporary directory can be made.
    pub fn of(build: Build) -> Self {
        let dir = TempDir::new().expect("a temporary directory can be made");
        let working_dir = dir.path().to_owned();
        Self {
            dir,
            build,
            options: Options { path: None, working_dir, environment: Environment::default(), remembered: None },
        }
    }

    /// A machine with this `./rejoinder.toml`, for a gateway with one platform and a front desk.
    pub fn with_channel<T: ChannelSection>(toml: &str) -> Self {
        Self::of(platform::<T>()).with_file("rejoinder.toml", toml)
    }

    /// A machine with this `./rejoinder.toml`, for a gateway with one kind of agent and a front desk.
    pub fn with_agent<T: AgentSection>(toml: &str) -> Self {
        Self::of(agent::<T>()).with_file("rejoinder.toml", toml)
    }

    /// Adds a file.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn with_file(self, name: &str, content: &str) -> Self {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("the directory can be made");
        std::fs::write(path, content).expect("a file can be written");
        self
    }

    /// Replaces the environment.
    #[must_use]
    pub fn with_environment(mut self, variables: &[(&str, &str)]) -> Self {
        self.options.environment = variables.iter().copied().collect();
        self
    }

    /// The working directory.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// # Errors
    /// When the configuration is invalid.
    pub fn load(&self) -> Result<Loaded, ConfigErrors> {
        load(&self.options, &self.build)
    }

    /// # Panics
    /// When the configuration is invalid.
    pub fn config(&self) -> Config {
        self.load().expect("the configuration is valid").config
    }

    /// The errors as the operator reads them, with `…` for this machine's directory.
    ///
    /// # Panics
    /// When the configuration is valid.
    pub fn errors(&self) -> String {
        let errors = self.load().expect_err("the configuration is invalid").to_string();
        errors.replace(&*self.dir.path().to_string_lossy(), "…")
    }
}

/// A gateway with one platform and a front desk.
pub const fn platform<T: ChannelSection>() -> Build {
    Build { platforms: Only::<T>::PLATFORM, agents: FRONT_DESK, postgres: |_| Ok(()) }
}

/// A gateway with one kind of agent, a front desk and no platform.
pub const fn agent<T: AgentSection>() -> Build {
    Build { platforms: &[], agents: Only::<T>::AGENT, postgres: |_| Ok(()) }
}

const FRONT_DESK: &[AgentKind] = &[AgentKind::of::<FrontDesk>()];

struct Only<T>(PhantomData<T>);

impl<T: ChannelSection> Only<T> {
    const PLATFORM: &'static [PlatformSection] = &[PlatformSection::of::<T>()];
}

impl<T: AgentSection> Only<T> {
    const AGENT: &'static [AgentKind] = &[AgentKind::of::<FrontDesk>(), AgentKind::of::<T>()];
}

/// The agent that answers if none is configured. It has no settings.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FrontDesk {}

impl Section for FrontDesk {}

impl AgentSection for FrontDesk {
    const KIND: &'static str = "front-desk";
    const MANUAL: &'static str = "# Built in.\n[agents.front-desk]\n# The kind: {kinds}.\nkind = \"front-desk\"\n";
}

/// Checks a platform's part of the manual: each key has a comment above it, the examples load with `variables` set, all
/// keys are listed and no others, and the listed defaults are the real ones. `examples` are the keys whose listed value
/// is not a default.
///
/// # Panics
/// When a check fails.
pub fn check_channel_manual<T: ChannelSection>(variables: &[(&str, &str)], examples: &[&str]) {
    let manual = Manual { build: platform::<T>(), text: T::MANUAL, variables, examples, kind: None, beside: "" };
    let channels = |document: &mut DocumentMut| document["channels"][T::PLATFORM].clone();
    manual.check(&format!("channels.{}", T::PLATFORM), T::REQUIRED, channels, |config| {
        config.channels.iter().map(|(id, channel)| (id.name().to_owned(), format!("{channel:?}"))).collect()
    });
}

/// As [`check_channel_manual`], for a kind of agent.
///
/// # Panics
/// When a check fails.
pub fn check_agent_manual<T: AgentSection>(variables: &[(&str, &str)], examples: &[&str]) {
    check_agent_manual_beside::<T>("", variables, examples);
}

/// The same for a kind whose agents name others, which are configured by the TOML `beside` the manual.
///
/// # Panics
/// When a check fails.
pub fn check_agent_manual_beside<T: AgentSection>(beside: &str, variables: &[(&str, &str)], examples: &[&str]) {
    let manual = Manual { build: agent::<T>(), text: T::MANUAL, variables, examples, kind: Some(T::KIND), beside };
    let agents = |document: &mut DocumentMut| document["agents"].clone();
    manual.check("agents", T::REQUIRED, agents, |config| {
        let agents = config.agents.iter().filter(|(_, agent)| agent.section::<T>().is_some());
        agents.map(|(name, agent)| (name.clone(), format!("{agent:?}"))).collect()
    });
}

/// A part of the manual.
struct Manual<'a> {
    build: Build,
    text: &'static str,
    variables: &'a [(&'a str, &'a str)],
    examples: &'a [&'a str],
    /// The value of `kind`, if the section has that key.
    kind: Option<&'static str>,
    /// What is configured besides.
    beside: &'a str,
}

impl Manual<'_> {
    fn check(
        &self,
        header: &str,
        required: &[&str],
        sections: impl Fn(&mut DocumentMut) -> Item,
        shown: impl Fn(&Config) -> Vec<(String, String)>,
    ) {
        every_key_has_a_comment(self.text);
        let text = uncommented(self.text);
        let mut document: DocumentMut = text.parse().expect("the manual is TOML");
        let sections = sections(&mut document);
        let sections = sections.as_table().expect("the manual has a section");
        let by_manual = self.machine(&text).config();

        let named: BTreeSet<String> = sections.iter().flat_map(|(_, section)| keys(section)).collect();
        let known: BTreeSet<String> =
            self.known_at(header).into_iter().chain(self.kind.map(|_| "kind".to_owned())).collect();
        assert_eq!(named, known, "the manual names every key and no other");

        let mut bare = DocumentMut::new();
        for (name, section) in sections {
            let mut kept = toml_edit::Table::new();
            for (key, value) in section.as_table_like().into_iter().flat_map(TableLike::iter) {
                if required.contains(&key) || self.examples.contains(&key) || key == "kind" {
                    kept.insert(key, value.clone());
                }
            }
            let at = header.split('.').fold(bare.as_item_mut(), |item, step| item[step].or_insert(toml_edit::table()));
            at[name] = Item::Table(kept);
        }
        let bare = self.machine(&bare.to_string()).config();
        assert_eq!(shown(&bare), shown(&by_manual), "the manual names the defaults");
    }

    fn machine(&self, toml: &str) -> Machine {
        let agent = self.text.split_once("[agents.").and_then(|(_, rest)| rest.split(']').next());
        let default = agent.map_or_else(String::new, |agent| format!("[routing]\ndefault_agent = \"{agent}\"\n"));
        let toml = format!("{toml}\n{default}{}", self.beside);
        Machine::of(self.build).with_file("rejoinder.toml", &toml).with_environment(self.variables)
    }

    /// The keys that the section accepts, taken from the error for an unknown key.
    fn known_at(&self, header: &str) -> BTreeSet<String> {
        let kind = self.kind.map_or_else(String::new, |kind| format!("kind = \"{kind}\"\n"));
        let errors = self.machine(&format!("[{header}.x]\n{kind}not-a-key-at-all = 1")).errors();
        known_in(&errors, &format!("{header}.x.not-a-key-at-all"))
    }
}

/// The known keys that `errors` list for the unknown `key`.
///
/// # Panics
/// When `errors` contain no such list.
pub fn known_in(errors: &str, key: &str) -> BTreeSet<String> {
    let unknown = format!("`{key}` is unknown");
    let line = errors.lines().find(|line| line.contains(&unknown)).unwrap_or_else(|| panic!("{errors}"));
    let (_, known) = line.split_once("known here: ").unwrap_or_else(|| panic!("{line}"));
    known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The manual with all settings switched on: `#key = value` is a setting, `# prose` is not.
pub fn uncommented(manual: &str) -> String {
    let setting = |line: &str| {
        line.strip_prefix('#').filter(|rest| !rest.is_empty() && !rest.starts_with([' ', '#'])).map(str::to_owned)
    };
    manual.lines().map(|line| setting(line).unwrap_or_else(|| line.to_owned())).collect::<Vec<_>>().join("\n")
}

/// Checks that each key and table of a manual has a comment above it.
///
/// # Panics
/// When one has none.
pub fn every_key_has_a_comment(manual: &str) {
    let mut above = "";
    for line in manual.lines() {
        let is_setting = !line.is_empty() && !line.starts_with("# ") && line != "#";
        if is_setting {
            let is_first_of_example = above.starts_with("#[");
            assert!(above.starts_with("# ") || is_first_of_example, "no comment above {line:?}");
        }
        above = line;
    }
}

/// The keys of a table.
///
/// # Panics
/// When `item` is not a table.
pub fn keys(item: &Item) -> BTreeSet<String> {
    item.as_table_like().expect("a table").iter().map(|(key, _)| key.to_owned()).collect()
}
