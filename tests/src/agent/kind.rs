//! The kinds of agents that a scripted agent can be for the gateway.

use std::path::{Path, PathBuf};

use crate::{Gateway, Process};

/// The token of the workers of a [`Pull`](AgentKind::Pull) agent.
const TOKEN: &str = "token-of-the-workers";

/// What a scripted agent is for the gateway: the `kind` of its section, and what stands between the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentKind {
    /// A server with Chat Completions.
    #[default]
    Openai,
    /// A server with the Responses API.
    Responses,
    /// A server with the Messages API.
    Anthropic,
    /// A service that gets the turn as JSON.
    Http,
    /// A program that passes the turn to it; see [`Call::processes`](crate::Call::processes).
    Command,
    /// A program with the Agent Client Protocol that passes prompts to it; see [`Call::processes`](crate::Call::processes).
    Acp,
    /// A server with the Agent2Agent protocol, whose tasks go on without the gateway.
    A2a,
    /// A [worker](crate::ScriptedAgent::worker) that fetches turns for it.
    Pull,
    /// A cascade: the first member refuses every request, the second is the agent with Chat Completions.
    Cascade,
}

impl AgentKind {
    /// The configuration of an agent `main` of this kind that uses the server at this port, with additional keys.
    pub(crate) fn sections(self, port: u16, keys: &str) -> String {
        let url = format!("http://127.0.0.1:{port}");
        let program = |role: &str| {
            let words = [python(), program().display().to_string(), role.to_owned(), format!("{url}/turns")];
            format!("kind = \"{role}\"\ncommand = {words:?}")
        };
        let model =
            |kind: &str, base: &str| format!("kind = \"{kind}\"\nbase_url = \"{base}\"\nmodel = \"test-model\"");
        let completions = model("openai", &format!("{url}/v1"));
        let main = match self {
            Self::Openai => completions,
            Self::Responses => format!("{completions}\napi = \"responses\""),
            Self::Anthropic => model("anthropic", &url),
            Self::Http => format!("kind = \"http\"\nurl = \"{url}/turns\""),
            Self::Command => program("command"),
            Self::Acp => program("acp"),
            Self::A2a => format!("kind = \"a2a\"\nurl = \"{url}\""),
            Self::Pull => format!("kind = \"pull\"\ntoken = \"{TOKEN}\""),
            Self::Cascade => {
                let refusing = model("openai", &format!("{url}/refusing/v1"));
                return format!(
                    "[agents.first]\n{refusing}\n[agents.second]\n{completions}\n{keys}\n[agents.main]\nkind = \"cascade\"\n\
                     members = [\"first\", \"second\"]\n[routing]\ndefault_agent = \"main\"\n"
                );
            }
        };
        format!("[agents.main]\n{main}\n{keys}\n")
    }

    /// A worker between the gateway and the script at this port, if this kind has workers.
    pub(super) fn worker(self, port: u16, gateway: &Gateway) -> Option<Process> {
        (self == Self::Pull).then(|| {
            let (turns, fleet) = (format!("http://127.0.0.1:{port}/turns"), format!("{}/agents/main", gateway.url()));
            Process::python(&program(), &["pull", &turns, &fleet, TOKEN], &[])
        })
    }
}

/// What passes turns to the script.
fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/agent.py")
}

/// The Python that the tests run.
pub(crate) fn python() -> String {
    std::env::var("REJOINDER_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}
