//! `rejoinder init`: connects an agent and bots, and writes the configuration.
//!
//! The questions about a platform's accounts are in `platforms/`.

#[cfg(test)]
mod script;

use std::{
    fmt::Write as _,
    fs::OpenOptions,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::{ArgMatches, Args, FromArgMatches, ValueEnum};
use rejoinder_agents::{FoundServer, Origin, ServerCandidates, find_local};
use secrecy::SecretString;
use url::Url;

#[cfg(test)]
pub(crate) use self::script::{Script, load_section, unused_url};
use super::Global;
use crate::{
    client,
    console::{
        ask::{Ask, Terminal},
        failure::Failure,
        output,
        toml::toml_text,
    },
    platforms::{self, Account, Platform, Setup},
};

/// The variable from which many programs read the API key.
const KEY_VARIABLE: &str = "OPENAI_API_KEY";

#[derive(Debug, Args)]
#[command(after_help = examples())]
pub(super) struct Init {
    /// Kind of agent; if not given, init asks on a terminal
    #[arg(long, value_enum)]
    agent: Option<AgentKindArg>,
    /// The agent's API, including /v1 if the server uses it
    #[arg(long, value_name = "URL", required_if_eq("agent", "openai"))]
    base_url: Option<Url>,
    /// The model that answers
    #[arg(long, required_if_eq("agent", "openai"))]
    model: Option<String>,
    /// Environment variable that holds the server's API key
    #[arg(long, value_name = "NAME")]
    api_key_env: Option<String>,
    #[command(flatten)]
    accounts: AccountArgs,
    /// Ask nothing: use the first agent that is found, or the front desk
    #[arg(long, short)]
    yes: bool,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

fn examples() -> String {
    let mut text = "\
It looks for a server at $OPENAI_BASE_URL and for Ollama on this machine, and offers what it finds. It writes
./rejoinder.toml, or the file that --config names.

Examples:
  rejoinder init
  rejoinder init --yes
  rejoinder init --agent openai --base-url http://127.0.0.1:11434/v1 --model llama3.1
  rejoinder init --agent openai --base-url https://api.openai.com/v1 --model gpt-4.1-mini --api-key-env OPENAI_API_KEY"
        .to_owned();
    for (_, setup) in setups(platforms::all()) {
        let _ = write!(text, "\n  {}", setup.example());
    }
    text
}

/// The platforms that have accounts to connect, each with its [`Setup`].
fn setups(
    platforms: impl Iterator<Item = &'static dyn Platform>,
) -> impl Iterator<Item = (&'static dyn Platform, &'static dyn Setup)> {
    platforms.filter_map(|platform| Some((platform, platform.setup()?)))
}

/// The options of the accounts. The platforms define them.
#[derive(Clone, Debug)]
struct AccountArgs(ArgMatches);

impl FromArgMatches for AccountArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

impl Args for AccountArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        setups(platforms::by_name()).fold(command, |command, (platform, setup)| {
            command.args(setup.options().into_iter().map(|option| option.help_heading(platform.name())))
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AgentKindArg {
    /// Built in: answers by itself, without a model
    FrontDesk,
    /// Any server with the Chat Completions API
    Openai,
}

/// The chosen agent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AgentChoice {
    FrontDesk,
    OpenAi { base_url: Url, model: String, api_key_env: Option<String> },
}

impl Init {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let path = global.config.clone().unwrap_or_else(|| PathBuf::from("rejoinder.toml"));
        if path.exists() && !self.force {
            return Err(already_exists(&path).into());
        }
        let (mut accounts, mut missing) = (Vec::new(), Vec::new());
        for (_, setup) in setups(platforms::all()) {
            match setup.account_from_options(&self.accounts.0).await? {
                Some(account) => accounts.push(account),
                None => missing.push(setup),
            }
        }
        let (choice, chosen) = self.choose(global, &missing).await?;
        accounts.extend(chosen);
        let sections: String = accounts.iter().map(|account| account.section.as_str()).collect();
        let text = configuration(&choice, &sections)?;
        for secret in accounts.iter().flat_map(|account| &account.secrets) {
            secret.write()?;
        }
        write(&path, &text, self.force)?;
        output::print(closing_text(&path, &choice, &accounts))
    }

    /// The agent and, when it may ask on a terminal, accounts of the `missing` platforms: those for which the command line
    /// names none.
    async fn choose(&self, global: &Global, missing: &[&dyn Setup]) -> Result<(AgentChoice, Vec<Account>), Failure> {
        match self.agent {
            Some(AgentKindArg::FrontDesk) => return Ok((AgentChoice::FrontDesk, Vec::new())),
            Some(AgentKindArg::Openai) => return Ok((self.openai()?, Vec::new())),
            None if self.base_url.is_some() || self.model.is_some() => return Ok((self.openai()?, Vec::new())),
            None => {}
        }
        let is_asked = !self.yes;
        if is_asked && !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            let what = "this is not a terminal, so init cannot ask: pass --yes, or --agent with its options";
            return Err(Failure::Usage(what.to_owned()));
        }
        let found = find_agents().await?;
        if !is_asked {
            return Ok((first_with_model(&found), Vec::new()));
        }
        let mut terminal = Terminal;
        let choice = Interview { found: &found }.conduct(&mut terminal)?;
        let mut accounts = Vec::new();
        for setup in missing {
            accounts.extend(setup.interview(&self.accounts.0, &mut terminal, &global.data_dir()?).await?);
        }
        Ok((choice, accounts))
    }

    fn openai(&self) -> Result<AgentChoice, Failure> {
        match (&self.base_url, &self.model) {
            (Some(base_url), Some(model)) => Ok(AgentChoice::OpenAi {
                base_url: base_url.clone(),
                model: model.clone(),
                api_key_env: self.api_key_env.clone(),
            }),
            _ => Err(Failure::Usage("an agent of kind openai needs --base-url and --model".to_owned())),
        }
    }
}

fn already_exists(path: &Path) -> anyhow::Error {
    anyhow!("{} already exists: see `rejoinder config show`, or overwrite it with --force", path.display())
}

/// IdFormat for agents in the usual places. Takes about a second.
async fn find_agents() -> Result<Vec<FoundServer>, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let environment = variable("OPENAI_BASE_URL")
        .map(|url| url.trim().parse::<Url>().with_context(|| format!("OPENAI_BASE_URL is not a URL: {url}")))
        .transpose()?;
    let candidates = ServerCandidates {
        environment,
        api_key: variable(KEY_VARIABLE).map(SecretString::from),
        ..ServerCandidates::default()
    };
    let http = client::http_client().context("cannot look for agents")?;
    Ok(find_local(&http, &candidates).await)
}

/// The choice without asking: the first model of the first server that lists any, else the front desk.
fn first_with_model(found: &[FoundServer]) -> AgentChoice {
    let with_model = found.iter().find_map(|found| Some((found, found.models.first()?)));
    with_model.map_or(AgentChoice::FrontDesk, |(found, model)| choice(found, model.clone()))
}

fn choice(found: &FoundServer, model: String) -> AgentChoice {
    let has_key = std::env::var_os(KEY_VARIABLE).is_some_and(|key| !key.is_empty());
    let api_key_env = (found.origin == Origin::Environment && has_key).then(|| KEY_VARIABLE.to_owned());
    AgentChoice::OpenAi { base_url: found.base_url.clone(), model, api_key_env }
}

/// Asks for the agent on a terminal.
struct Interview<'a> {
    found: &'a [FoundServer],
}

impl Interview<'_> {
    fn conduct(&self, terminal: &mut dyn Ask) -> Result<AgentChoice, Failure> {
        let mut options: Vec<String> = self.found.iter().map(describe).collect();
        options.push("another server with the Chat Completions API (OpenAI-compatible)".to_owned());
        options.push("no agent yet: the built-in front desk answers".to_owned());
        let picked = terminal.pick("Which agent should answer?", &options)?;
        if let Some(found) = self.found.get(picked) {
            let model = match &*found.models {
                [] => terminal.line("Which model?")?,
                models => models[terminal.pick("Which model?", models)?].clone(),
            };
            return Ok(choice(found, model));
        }
        if picked == self.found.len() + 1 {
            return Ok(AgentChoice::FrontDesk);
        }
        let base_url = loop {
            match terminal.line("Where is its API? (for example http://127.0.0.1:8000/v1)")?.parse::<Url>() {
                Ok(url) if matches!(url.scheme(), "http" | "https") => break url,
                _ => terminal.say("That is not a URL that begins with http:// or https://.")?,
            }
        };
        let model = terminal.line("Which model?")?;
        let name = terminal.line_or_nothing("Which environment variable holds its API key? (empty: none needed)")?;
        Ok(AgentChoice::OpenAi { base_url, model, api_key_env: Some(name).filter(|name| !name.is_empty()) })
    }
}

fn describe(found: &FoundServer) -> String {
    let what = match found.origin {
        Origin::Environment => "the server at OPENAI_BASE_URL",
        Origin::Ollama => "Ollama on this machine",
    };
    format!("{what}, {}", output::printable(found.base_url.as_str()))
}

fn configuration(choice: &AgentChoice, accounts: &str) -> Result<String, Failure> {
    let agent = match choice {
        AgentChoice::FrontDesk => "\
# Only the built-in front desk answers so far. To connect an agent, uncomment and complete these lines:
#[agents.main]
#kind = \"openai\"
#base_url = \"http://127.0.0.1:11434/v1\"
#model = \"llama3.1\"
#api_key = { env = \"OPENAI_API_KEY\" }
"
        .to_owned(),
        AgentChoice::OpenAi { base_url, model, api_key_env } => {
            let mut agent = format!(
                "[agents.main]\nkind = \"openai\"\nbase_url = {}\nmodel = {}\n",
                toml_text(base_url.as_str().trim_end_matches('/'))?,
                toml_text(model)?
            );
            if let Some(name) = api_key_env {
                let _ = writeln!(agent, "api_key = {{ env = {} }}", toml_text(name)?);
            }
            agent
        }
    };
    Ok(format!(
        "# Written by `rejoinder init`. Other keys have their defaults: `rejoinder config default` shows every key.\n\n\
         {agent}\n\
         {accounts}\
         # A hook: POST /hooks/default. Its token is created at the first start and kept in the data directory.\n\
         [channels.webhook.default]\n\
         token = {{ generate = true }}\n\n\
         # A chat page at /chat, for browsers on this machine.\n\
         [channels.webchat.main]\n\
         access = \"loopback\"\n"
    ))
}

fn write(path: &Path, text: &str, overwrite: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true);
    if overwrite {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(already_exists(path).into()),
        written => Ok(written.with_context(|| format!("cannot write {}", path.display()))?),
    }
}

fn closing_text(path: &Path, choice: &AgentChoice, accounts: &[Account]) -> String {
    let mut text = format!("Wrote {}.\n", path.display());
    match choice {
        AgentChoice::FrontDesk => text.push_str(
            "The built-in front desk answers for now, without a model. The file explains how to connect an agent.\n",
        ),
        AgentChoice::OpenAi { base_url, model, api_key_env } => {
            let _ = writeln!(text, "The agent `main` answers: {model} at {base_url}.");
            if let Some(name) = api_key_env
                && std::env::var_os(name).is_none_or(|value| value.is_empty())
            {
                let _ = writeln!(text, "Set {name} to its key before you start.");
            }
        }
    }
    for account in accounts {
        text.push_str(&account.closing_text);
    }
    let is_usual = path == Path::new("rejoinder.toml");
    let config = if is_usual { String::new() } else { format!(" --config {}", path.display()) };
    let _ = write!(text, "Next: run `rejoinder{config}`. It prints where to open the chat and how to call the hook.");
    text
}

#[cfg(test)]
mod tests {
    use rejoinder_agents::{FrontDeskSection, OpenAiSection};
    use rejoinder_config::{Config, Environment};

    use super::*;

    fn loaded(choice: &AgentChoice, environment: Environment) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejoinder.toml");
        write(&path, &configuration(choice, "").unwrap(), false).unwrap();
        let (path, working_dir) = (Some(path), folder.path().to_owned());
        let options = rejoinder_config::Options { path, working_dir, environment };
        rejoinder_config::load(&options, &crate::build()).unwrap().config
    }

    #[test]
    fn what_is_written_can_be_loaded() {
        let openai = AgentChoice::OpenAi {
            base_url: "http://127.0.0.1:11434/v1".parse().unwrap(),
            model: "a \"strange\" model\\name".to_owned(),
            api_key_env: Some("SOME_KEY".to_owned()),
        };

        let config = loaded(&openai, Environment::from_iter([("SOME_KEY", "k")]));

        let agent = config.agents["main"].section::<OpenAiSection>().unwrap();
        assert_eq!(agent.model, "a \"strange\" model\\name");
        assert_eq!(agent.base_url.as_str(), "http://127.0.0.1:11434/v1");
        assert!(agent.api_key.is_some());
        assert_eq!(config.routing.default_agent, "main");
    }

    #[test]
    fn without_an_agent_the_front_desk_answers() {
        let config = loaded(&AgentChoice::FrontDesk, Environment::default());

        assert!(config.agents[&config.routing.default_agent].section::<FrontDeskSection>().is_some());
        let channels: Vec<_> = config.channels.iter().map(|(id, _)| id.to_string()).collect();
        assert_eq!(channels, ["webchat.main", "webhook.default"]);
    }

    #[test]
    fn a_file_that_is_there_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejoinder.toml");
        std::fs::write(&path, "mine").unwrap();

        assert!(write(&path, "other", false).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        write(&path, "other", true).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "other");
    }

    #[test]
    fn the_first_server_with_a_model_is_taken_without_asking() {
        let found = |models: &[&str]| FoundServer {
            origin: Origin::Ollama,
            base_url: "http://127.0.0.1:11434/v1".parse().unwrap(),
            models: models.iter().map(ToString::to_string).collect(),
        };

        assert_eq!(first_with_model(&[]), AgentChoice::FrontDesk);
        assert_eq!(first_with_model(&[found(&[])]), AgentChoice::FrontDesk);
        let AgentChoice::OpenAi { model, .. } = first_with_model(&[found(&[]), found(&["one", "two"])]) else {
            panic!()
        };
        assert_eq!(model, "one");
    }

    #[test]
    fn what_cannot_stand_in_the_file_is_refused() {
        assert!(toml_text("a\nb").is_err());
        assert!(toml_text("").is_err());
        assert!(toml_text("\u{7f}").is_err());
    }
}
