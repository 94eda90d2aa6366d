//! `kind = "acp"`: the configuration of an agent with the Agent Client Protocol.

use std::{collections::BTreeMap, path::Path, time::Duration};

use rejoinder_agents::PriceSection;
use rejoinder_config::{
    AgentSection, Checks, Secret, Section,
    duration::{self, HOUR},
    number, text,
};
use rejoinder_core::Price;
use serde::{Deserialize, Serialize};

/// A program that speaks the Agent Client Protocol on its standard input and output.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AcpSection {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The absolute path of the folder in which it works. `None`: one of its own below the data directory.
    #[serde(deserialize_with = "text::filled_option")]
    pub cwd: Option<String>,
    /// Its environment variables.
    pub env: BTreeMap<String, Secret>,
    /// The names of the gateway's own variables that it gets as well.
    pub inherit: Vec<String>,
    /// The mode of its sessions. `None`: its own.
    #[serde(deserialize_with = "text::filled_option")]
    pub mode: Option<String>,
    /// The instructions at the beginning of each session.
    #[serde(deserialize_with = "text::filled")]
    pub system_prompt: String,
    /// The most earlier messages that a new session is told.
    #[serde(deserialize_with = "number::between::<_, 0, 10_000>")]
    pub history_messages: u32,
    /// How many turns the agent works on at once; the others wait.
    #[serde(deserialize_with = "number::between::<_, 1, 4096>")]
    pub max_concurrent: u32,
    /// Whether drafts show what it does.
    pub show_activity: bool,
    /// What its tokens cost. `None`: unknown.
    pub price: Option<PriceSection>,
    /// How long it may take to start, and to begin a session.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 10, HOUR>")]
    pub start_timeout: Duration,
    /// How long it may say nothing during a turn.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 10, HOUR>")]
    pub idle_timeout: Duration,
    /// Whether it may call the tools of its runs over the Model Context Protocol.
    pub mcp: bool,
}

impl Default for AcpSection {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            cwd: None,
            env: BTreeMap::new(),
            inherit: Vec::new(),
            mode: None,
            system_prompt: "You answer messages in a chat. Answer briefly, in the language of the person.".to_owned(),
            history_messages: 40,
            max_concurrent: 8,
            show_activity: false,
            price: None,
            start_timeout: Duration::from_mins(1),
            idle_timeout: Duration::from_mins(10),
            mcp: false,
        }
    }
}

impl Section for AcpSection {
    const REQUIRED: &'static [&'static str] = &["command"];

    fn check(&self, checks: &mut Checks<'_>) {
        if self.command.first().is_none_or(|program| program.trim().is_empty()) {
            checks.wrong(checks.key(&["command"]), "must begin with a program, such as [\"opencode\", \"acp\"]");
        }
        if self.command.iter().any(|argument| argument.contains('\0')) {
            checks.wrong(checks.key(&["command"]), "contains a zero byte");
        }
        if self.cwd.as_ref().is_some_and(|folder| !folder.starts_with('/')) {
            checks.wrong(checks.key(&["cwd"]), "must be an absolute path, such as \"/srv/agent\"");
        }
        for (name, value) in &self.env {
            if !is_variable(name) {
                checks.wrong(checks.key(&["env", name]), "is not the name of an environment variable");
            } else if value.expose().contains('\0') {
                checks.wrong(checks.key(&["env", name]), "contains a zero byte");
            }
        }
        for (index, name) in self.inherit.iter().enumerate() {
            if !is_variable(name) {
                checks.wrong(checks.key(&["inherit"]).index(index), "is not the name of an environment variable");
            }
        }
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

impl AcpSection {
    /// The same for an agent that works in `folder`, if the configuration names none.
    #[must_use]
    pub fn in_folder(self, folder: &Path) -> Self {
        let cwd = self.cwd.unwrap_or_else(|| folder.display().to_string());
        Self { cwd: Some(cwd), ..self }
    }

    /// The folder in which it works.
    pub(crate) fn folder(&self) -> &str {
        self.cwd.as_deref().unwrap_or("/")
    }
}

impl AgentSection for AcpSection {
    const KIND: &'static str = "acp";
    const MANUAL: &'static str = include_str!("../acp.toml");

    fn max_concurrent(&self) -> Option<u32> {
        Some(self.max_concurrent)
    }

    fn shows_activity(&self) -> bool {
        self.show_activity
    }

    fn price(&self) -> Option<Price> {
        self.price.map(Price::from)
    }

    fn keeps_sessions(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_config::testing::{Machine, check_agent_manual};
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_manual_holds() {
        check_agent_manual::<AcpSection>(&[("ANTHROPIC_API_KEY", "sk-example")], &["cwd", "env", "mode", "price"]);
    }

    #[rstest]
    #[case::no_command("cwd = \"/srv\"", "agents.main.command` must be set (rejoinder.toml:1)")]
    #[case::no_program(
        "command = []\ncwd = \"/srv\"",
        "agents.main.command` must begin with a program, such as [\"opencode\", \"acp\"] (rejoinder.toml:3)"
    )]
    #[case::a_relative_folder(
        "command = [\"x\"]\ncwd = \"work\"",
        "agents.main.cwd` must be an absolute path, such as \"/srv/agent\" (rejoinder.toml:4)"
    )]
    #[case::no_variable(
        "command = [\"x\"]\ncwd = \"/srv\"\nenv = { \"A=B\" = \"c\" }",
        "agents.main.env.\"A=B\"` is not the name of an environment variable (rejoinder.toml:5)"
    )]
    #[case::no_inherited_variable(
        "command = [\"x\"]\ncwd = \"/srv\"\ninherit = [\"\"]",
        "agents.main.inherit[0]` is not the name of an environment variable (rejoinder.toml:5)"
    )]
    fn a_mistake_is_named(#[case] keys: &str, #[case] said: &str) {
        let machine = Machine::with_agent::<AcpSection>(&format!("[agents.main]\nkind = \"acp\"\n{keys}"));

        assert_eq!(machine.errors(), format!("config key `{said}"));
    }
}
