//! `[agents.<name>.mcp.<server>]`: a server of the Model Context Protocol whose tools a model is offered.

use std::{collections::BTreeMap, time::Duration};

use rejoinder_config::{
    Checks, Secret,
    duration::{self, HOUR, SECOND},
    headers, text,
};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use url::Url;

use crate::serving::ServingProgram;

/// The most servers of an agent.
const MOST_SERVERS: usize = 16;

/// The longest name of a server, in bytes: the names that the model reads begin with it.
const MAX_NAME: usize = 24;

/// The headers of every request over HTTP.
const OWN_HEADERS: [(&str, Option<&str>); 4] =
    [("accept", None), ("last-event-id", None), ("mcp-protocol-version", None), ("mcp-session-id", None)];

/// A server: a program that speaks the protocol on its standard input and output, or a URL.
#[skip_serializing_none]
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpServerSection {
    /// The program and its arguments.
    pub command: Option<Vec<String>>,
    /// The absolute path of the folder in which it works. `None`: `/`.
    #[serde(deserialize_with = "text::filled_option")]
    pub cwd: Option<String>,
    /// Its environment variables.
    pub env: BTreeMap<String, Secret>,
    /// The names of the gateway's own variables that it gets as well.
    pub inherit: Vec<String>,
    /// Where it is reached over HTTP.
    #[serde(deserialize_with = "http_url")]
    pub url: Option<Url>,
    /// Sent with every request over HTTP. The values are secrets.
    pub headers: BTreeMap<String, Secret>,
    /// The tools that may be offered; with `*` at the end, all that begin so. `None`: all.
    pub tools: Option<Vec<String>>,
    /// The tools of which each call needs an approval, written alike. `None`: those that do not say that they only read.
    pub ask: Option<Vec<String>>,
    /// How long a call may take, and the start.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, SECOND, HOUR>")]
    pub timeout: Duration,
}

impl Default for McpServerSection {
    fn default() -> Self {
        Self {
            command: None,
            cwd: None,
            env: BTreeMap::new(),
            inherit: Vec::new(),
            url: None,
            headers: BTreeMap::new(),
            tools: None,
            ask: None,
            timeout: Duration::from_mins(1),
        }
    }
}

impl McpServerSection {
    /// Whether the tool may be offered.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|patterns| fits(patterns, tool))
    }

    /// Its program; `None` if it is at a URL.
    #[must_use]
    pub fn program(&self) -> Option<ServingProgram<'_>> {
        Some(ServingProgram {
            command: self.command.as_deref()?,
            folder: self.cwd.as_deref().unwrap_or("/"),
            env: &self.env,
            inherit: &self.inherit,
        })
    }

    /// Whether each call of the tool needs an approval. `only_reads`: what the server says of it.
    #[must_use]
    pub fn asks(&self, tool: &str, only_reads: bool) -> bool {
        self.ask.as_ref().map_or(!only_reads, |patterns| fits(patterns, tool))
    }
}

fn fits(patterns: &[String], tool: &str) -> bool {
    patterns.iter().any(|pattern| pattern.strip_suffix('*').map_or(tool == pattern, |begins| tool.starts_with(begins)))
}

fn http_url<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
    text::http_url(deserializer).map(Some)
}

/// Checks the key `mcp` of an agent.
pub(crate) fn check(servers: &BTreeMap<String, McpServerSection>, checks: &mut Checks<'_>) {
    if servers.len() > MOST_SERVERS {
        checks
            .wrong(checks.key(&["mcp"]), format!("has {} servers: an agent has at most {MOST_SERVERS}", servers.len()));
    }
    for (name, server) in servers {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_name) {
            let what = format!("has an invalid name: use letters, digits, `_` and `-`, at most {MAX_NAME} characters");
            checks.wrong(checks.key(&["mcp", name]), what);
        }
        if let Some(other) =
            servers.keys().find(|other| name.strip_prefix(&***other).is_some_and(|rest| rest.starts_with('_')))
        {
            let what =
                format!("begins with the name of the server `{other}` and `_`: their tools could have the same names");
            checks.wrong(checks.key(&["mcp", name]), what);
        }
        server.check(name, checks);
    }
}

impl McpServerSection {
    fn check(&self, name: &str, checks: &mut Checks<'_>) {
        let key = |names: &[&str], checks: &Checks<'_>| checks.key(&[&["mcp", name], names].concat());
        match (&self.command, &self.url) {
            (Some(_), Some(_)) => {
                let what = "is set beside `command`: a server is either a program or at a URL; remove one";
                checks.wrong(key(&["url"], checks), what);
            }
            (None, None) => {
                let what = "needs `command` (a program, such as [\"npx\", \"a-server\"]) or `url`";
                checks.wrong(key(&[], checks), what);
            }
            (Some(command), None) => {
                if command.first().is_none_or(|program| program.trim().is_empty()) {
                    checks
                        .wrong(key(&["command"], checks), "must begin with a program, such as [\"npx\", \"a-server\"]");
                } else if command.iter().any(|argument| argument.contains('\0')) {
                    checks.wrong(key(&["command"], checks), "contains a zero byte");
                }
                if !self.headers.is_empty() {
                    checks.wrong(key(&["headers"], checks), "is only for a server at a `url`: use `env` for a program");
                }
            }
            (None, Some(_)) => {
                let program_only =
                    [("cwd", self.cwd.is_some()), ("env", !self.env.is_empty()), ("inherit", !self.inherit.is_empty())];
                for (name, _) in program_only.into_iter().filter(|(_, is_set)| *is_set) {
                    checks.wrong(key(&[name], checks), "is only for a server that is a program (`command`)");
                }
            }
        }
        if self.cwd.as_ref().is_some_and(|folder| !folder.starts_with('/')) {
            checks.wrong(key(&["cwd"], checks), "must be an absolute path, such as \"/srv/files\"");
        }
        for (variable, value) in &self.env {
            if !is_variable(variable) {
                checks.wrong(key(&["env", variable], checks), "is not the name of an environment variable");
            } else if value.expose().contains('\0') {
                checks.wrong(key(&["env", variable], checks), "contains a zero byte");
            }
        }
        for (index, _) in self.inherit.iter().enumerate().filter(|(_, variable)| !is_variable(variable)) {
            checks.wrong(key(&["inherit"], checks).index(index), "is not the name of an environment variable");
        }
        headers::check(&self.headers, &key(&["headers"], checks), &OWN_HEADERS, checks);
        for (list, patterns) in [("tools", &self.tools), ("ask", &self.ask)] {
            for (index, pattern) in patterns.iter().flatten().enumerate() {
                if pattern.trim_end_matches('*').contains('*') || pattern.is_empty() {
                    let what = "must be the name of a tool, or the beginning of names with `*` at the end";
                    checks.wrong(key(&[list], checks).index(index), what);
                }
            }
        }
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

#[cfg(test)]
mod tests {
    use rejoinder_config::testing::Machine;
    use rstest::rstest;

    use super::*;
    use crate::OpenAiSection;

    const AGENT: &str = "[agents.main]\nkind = \"openai\"\nbase_url = \"http://x\"\nmodel = \"m\"\n";

    #[rstest]
    #[case::nothing("[agents.main.mcp.files]", "agents.main.mcp.files` needs `command`")]
    #[case::both(
        "[agents.main.mcp.files]\ncommand = [\"x\"]\nurl = \"http://y\"",
        "agents.main.mcp.files.url` is set beside `command`: a server is either a program or at a URL; remove one \
         (rejoinder.toml:7)"
    )]
    #[case::no_program(
        "[agents.main.mcp.files]\ncommand = []",
        "agents.main.mcp.files.command` must begin with a program"
    )]
    #[case::headers_of_a_program(
        "[agents.main.mcp.files]\ncommand = [\"x\"]\nheaders = { a = \"b\" }",
        "agents.main.mcp.files.headers` is only for a server at a `url`"
    )]
    #[case::variables_of_a_url(
        "[agents.main.mcp.files]\nurl = \"http://y\"\nenv = { A = \"b\" }",
        "agents.main.mcp.files.env` is only for a server that is a program (`command`) (rejoinder.toml:7)"
    )]
    #[case::a_header_of_the_protocol(
        "[agents.main.mcp.files]\nurl = \"http://y\"\nheaders = { Mcp-Session-Id = \"b\" }",
        "agents.main.mcp.files.headers.Mcp-Session-Id` is set by the gateway itself"
    )]
    #[case::unknown(
        "[agents.main.mcp.files]\ncomand = [\"x\"]",
        "agents.main.mcp.files.comand` is unknown: did you mean `command`?"
    )]
    #[case::a_name("[agents.main.mcp.\"my files\"]\ncommand = [\"x\"]", "has an invalid name: use letters, digits")]
    #[case::a_pattern(
        "[agents.main.mcp.files]\ncommand = [\"x\"]\nask = [\"*_file\"]",
        "agents.main.mcp.files.ask[0]` must be the name of a tool"
    )]
    #[case::a_folder(
        "[agents.main.mcp.files]\ncommand = [\"x\"]\ncwd = \"work\"",
        "agents.main.mcp.files.cwd` must be an absolute path"
    )]
    #[case::a_moment(
        "[agents.main.mcp.files]\ncommand = [\"x\"]\ntimeout = \"10ms\"",
        "agents.main.mcp.files.timeout` must be from 1s to 1h, not 10ms"
    )]
    fn a_mistake_is_named(#[case] keys: &str, #[case] said: &str) {
        let errors = Machine::with_agent::<OpenAiSection>(&format!("{AGENT}{keys}")).errors();

        assert!(errors.contains(said), "{errors}");
    }

    #[test]
    fn an_agent_has_a_bounded_number_of_servers() {
        let servers: Vec<_> =
            (0..17).map(|number| format!("[agents.main.mcp.s{number}]\ncommand = [\"x\"]\n")).collect();
        let errors = Machine::with_agent::<OpenAiSection>(&format!("{AGENT}{}", servers.concat())).errors();

        assert!(errors.contains("agents.main.mcp` has 17 servers: an agent has at most 16"), "{errors}");
    }

    #[test]
    fn what_does_not_say_that_it_only_reads_asks_unless_rules_are_set() {
        let rules = |ask: Option<&[&str]>| McpServerSection {
            ask: ask.map(|patterns| patterns.iter().map(|&pattern| pattern.to_owned()).collect()),
            ..McpServerSection::default()
        };
        let asks = |ask: Option<&[&str]>| {
            [("read", true), ("write_file", false)].map(|(tool, only_reads)| rules(ask).asks(tool, only_reads))
        };
        assert_eq!(asks(None), [false, true]);
        assert_eq!(asks(Some(&[])), [false, false]);
        assert_eq!(asks(Some(&["*"])), [true, true]);
        assert_eq!(asks(Some(&["write_*"])), [false, true]);
        assert_eq!(asks(Some(&["read"])), [true, false]);
    }

    #[test]
    fn the_values_of_variables_and_headers_are_secrets() {
        let keys = "[agents.main.mcp.files]\ncommand = [\"x\"]\nenv = { KEY = \"env-secret\" }\n\
                    [agents.main.mcp.far]\nurl = \"http://y\"\nheaders = { x-key = \"header-secret\" }";
        let config = Machine::with_agent::<OpenAiSection>(&format!("{AGENT}{keys}")).config();

        let section = config.agents["main"].section::<OpenAiSection>().expect("it is of this kind");
        assert_eq!(section.mcp["far"].headers["x-key"].expose(), "header-secret");
        let printed = format!("{}{section:?}", config.to_toml_redacted());
        assert!(!printed.contains("env-secret") && !printed.contains("header-secret"), "{printed}");
    }
}
