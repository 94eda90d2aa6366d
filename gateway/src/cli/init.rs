//! `rejoinder init`: connects an agent and bots, and writes the configuration or adds to it.
//!
//! The questions about a platform's accounts are in `platforms/`.

mod agent;
mod file;
mod programs;
#[cfg(test)]
mod script;

use std::{
    fmt::Write as _,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use clap::{ArgMatches, Args, FromArgMatches, ValueEnum};
use rejoinder_config::ConfigSource;
use url::Url;

pub(super) use self::file::OWN_CHANNELS;
#[cfg(test)]
pub(crate) use self::script::{Script, load_section, unused_url};
use self::{
    agent::{AgentChoice, Interview, Server, find_agents, first_with_model, http_client},
    file::{Existing, already_exists, configuration, write},
};
use super::{global::Global, remembered};
use crate::{
    console::{
        ask::{Ask, Terminal},
        command::command_line,
        failure::Failure,
        output,
        secret::SecretLocation,
    },
    platforms::{self, Account, Platform, Setup},
    secrets,
};

#[derive(Debug, Args)]
#[command(after_help = examples())]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command")]
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
    #[arg(long, value_name = "NAME", conflicts_with = "api_key_file")]
    api_key_env: Option<String>,
    /// File that holds the server's API key
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    #[command(flatten)]
    accounts: AccountArgs,
    /// Ask nothing: use the first server with a model that is found, or the front desk
    #[arg(long, short)]
    yes: bool,
    /// Add to an existing file; without options that name an agent or an account, init asks on a terminal
    #[arg(long, conflicts_with = "force")]
    add: bool,
    /// Try nothing that is written
    #[arg(long)]
    no_check: bool,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

fn examples() -> String {
    let mut text = "\
It looks for a server at $OPENAI_BASE_URL, for Ollama, LM Studio, llama.cpp and vLLM on this machine, and for coding agents (Claude Code,
Codex, Gemini CLI, Qwen Code, OpenCode, goose) on the path, offers what it finds, and tries the agent and the accounts that you choose or name; with --no-check it does not. It writes ./rejoinder.toml, or the file that --config names; if that file exists, it offers to add to it.

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

/// What happens to the file.
enum Plan {
    Write { overwrite: bool },
    Add,
    Leave,
}

#[derive(Default)]
struct Choices {
    /// `None`: the file keeps its own.
    agent: Option<AgentChoice>,
    accounts: Vec<Account>,
}

impl Choices {
    fn sections(&self) -> String {
        self.accounts.iter().map(|account| account.section.as_str()).collect()
    }

    fn write_secrets(&self) -> Result<(), Failure> {
        let of_accounts = self.accounts.iter().flat_map(|account| &account.secrets);
        let of_agent = self.agent.as_ref().and_then(AgentChoice::secret);
        of_agent.into_iter().chain(of_accounts).try_for_each(SecretLocation::write)
    }

    /// What `init` prints about them at the end.
    fn closing_text(&self) -> String {
        let agent = self.agent.as_ref().map(AgentChoice::closing_text);
        agent.into_iter().chain(self.accounts.iter().map(|account| account.closing_text.clone())).collect()
    }
}

impl Init {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let path = global.config.clone().unwrap_or_else(|| PathBuf::from("rejoinder.toml"));
        match self.plan(&path)? {
            Plan::Write { overwrite } => self.write(global, &path, overwrite).await,
            Plan::Add => self.add(global, &path, &Existing::read(&path)?).await,
            Plan::Leave => output::print(format!("{} stays as it is.", path.display())),
        }
    }

    fn plan(&self, path: &Path) -> Result<Plan, Failure> {
        match path.exists() {
            false if self.add => Err(Failure::Usage(format!("there is no {} to add to", path.display()))),
            _ if self.force => Ok(Plan::Write { overwrite: true }),
            false => Ok(Plan::Write { overwrite: false }),
            true if self.add => Ok(Plan::Add),
            true if self.may_ask().is_err() || self.names_agent() => Err(already_exists(path).into()),
            true => ask_plan(path, &mut Terminal),
        }
    }

    async fn write(&self, global: &Global, path: &Path, overwrite: bool) -> Result<(), Failure> {
        let (accounts, missing) = self.accounts_from_options(None).await?;
        let mut choices = Choices { agent: self.agent_from_options().await?, accounts };
        if choices.agent.is_none() && self.yes {
            let found = first_with_model(&find_agents(&http_client()?).await?);
            choices.agent = Some(self.tried(found).await?);
        } else if choices.agent.is_none() {
            self.may_ask()?;
            choices.agent = Some(ask_agent(&mut Terminal, global).await?);
            choices.accounts.extend(self.ask_accounts(&missing, &mut Terminal, global).await?);
        }
        let agent = choices.agent.as_ref().unwrap_or(&AgentChoice::FrontDesk);
        let text = configuration(&agent.section()?, &choices.sections());
        choices.write_secrets()?;
        write(path, &text, overwrite)?;
        remember(global, path);
        let run = command_line("", Some(path));
        let next = format!("Next: run `{run}`. It prints where to open the chat and how to call the hook.");
        output::print(format!("Wrote {}.\n{}{next}", path.display(), choices.closing_text()))
    }

    /// Adds what the command line names, or else what the operator chooses on a terminal.
    async fn add(&self, global: &Global, path: &Path, existing: &Existing) -> Result<(), Failure> {
        let agent = self.agent_from_options().await?.filter(is_agent);
        if agent.is_some() {
            existing.check_free("agents.main")?;
            existing.check_free("agents")?;
        }
        let (accounts, missing) = self.accounts_from_options(Some(existing)).await?;
        let mut choices = Choices { agent, accounts };
        if choices.agent.is_none() && choices.accounts.is_empty() {
            self.may_ask()?;
            if !existing.has("agents") {
                choices.agent = Some(ask_agent(&mut Terminal, global).await?).filter(is_agent);
            }
            choices.accounts = self.ask_accounts(&missing, &mut Terminal, global).await?;
        }
        if choices.agent.is_none() && choices.accounts.is_empty() {
            return output::print(format!("Nothing was added to {}.", path.display()));
        }
        let agent = choices.agent.as_ref().map(AgentChoice::section).transpose()?;
        let text = existing.with(agent.as_deref(), &choices.sections())?;
        choices.write_secrets()?;
        existing.replace(&text)?;
        let next = format!("Next: restart the gateway, or start it with `{}`.", command_line("", Some(path)));
        output::print(format!("Added to {}.\n{}{next}", path.display(), choices.closing_text()))
    }

    /// The accounts that the command line names, and the platforms for which it names none and `existing` has none.
    async fn accounts_from_options(
        &self,
        existing: Option<&Existing>,
    ) -> Result<(Vec<Account>, Vec<&'static dyn Setup>), Failure> {
        let (mut accounts, mut missing) = (Vec::new(), Vec::new());
        for (platform, setup) in setups(platforms::all()) {
            let key = format!("channels.{}.main", platform.section().name);
            match (setup.account_from_options(&self.accounts.0).await?, existing) {
                (Some(account), existing) => {
                    existing.map_or(Ok(()), |existing| existing.check_free(&key))?;
                    accounts.push(account);
                }
                (None, Some(existing)) if existing.has(&key) => {}
                (None, _) => missing.push(setup),
            }
        }
        Ok((accounts, missing))
    }

    /// Asks for accounts of the `missing` platforms.
    async fn ask_accounts(
        &self,
        missing: &[&dyn Setup],
        terminal: &mut dyn Ask,
        global: &Global,
    ) -> Result<Vec<Account>, Failure> {
        let mut accounts = Vec::new();
        for setup in missing {
            accounts.extend(setup.interview(&self.accounts.0, terminal, &global.data_dir()?).await?);
        }
        Ok(accounts)
    }

    /// # Errors
    /// When questions are not wanted, or there is no terminal to ask them on.
    fn may_ask(&self) -> Result<(), Failure> {
        if self.yes {
            return Err(Failure::Usage("there is nothing to add: name an agent or an account".to_owned()));
        }
        if io::stdin().is_terminal() && io::stdout().is_terminal() {
            return Ok(());
        }
        let what = "this is not a terminal, so init cannot ask: pass --yes, or --agent with its options";
        Err(Failure::Usage(what.to_owned()))
    }

    const fn names_agent(&self) -> bool {
        self.agent.is_some() || self.base_url.is_some() || self.model.is_some()
    }

    /// The agent that the command line names, if any.
    async fn agent_from_options(&self) -> Result<Option<AgentChoice>, Failure> {
        let choice = match (self.agent, &self.base_url, &self.model) {
            (Some(AgentKindArg::FrontDesk), ..) => AgentChoice::FrontDesk,
            (None, None, None) => return Ok(None),
            (_, Some(base_url), Some(model)) => AgentChoice::OpenAi(Server {
                base_url: base_url.clone(),
                model: model.clone(),
                api_key: SecretLocation::from_options(self.api_key_env.as_deref(), self.api_key_file.as_deref())?,
                not_checked: None,
            }),
            _ => return Err(Failure::Usage("an agent of kind openai needs --base-url and --model".to_owned())),
        };
        Ok(Some(self.tried(choice).await?))
    }

    /// Tries an agent that was not chosen in the dialogue, which does so itself.
    async fn tried(&self, choice: AgentChoice) -> Result<AgentChoice, Failure> {
        if self.no_check { Ok(choice.unchecked()) } else { choice.checked(&http_client()?).await }
    }
}

/// Writes the file down in the data directory, unless another one was used with it.
fn remember(global: &Global, path: &Path) {
    let Ok(data_dir) = global.data_dir() else { return };
    if remembered::read(&data_dir).is_none() && secrets::make_private_dir(&data_dir).is_ok() {
        // The first start does so as well.
        let _ = remembered::write(&data_dir, &ConfigSource::File(path.to_owned()));
    }
}

const fn is_agent(choice: &AgentChoice) -> bool {
    !matches!(choice, AgentChoice::FrontDesk)
}

fn ask_plan(path: &Path, terminal: &mut dyn Ask) -> Result<Plan, Failure> {
    let options = ["add a bot or an agent to it", "overwrite it", "leave it as it is"].map(str::to_owned);
    Ok(match terminal.pick(&format!("{} already exists.", path.display()), &options)? {
        0 => Plan::Add,
        1 => Plan::Write { overwrite: true },
        _ => Plan::Leave,
    })
}

async fn ask_agent(terminal: &mut dyn Ask, global: &Global) -> Result<AgentChoice, Failure> {
    let http = http_client()?;
    let found = find_agents(&http).await?;
    Interview { found: &found, programs: &programs::find(), http: &http, data_dir: &global.data_dir()? }
        .conduct(terminal)
        .await
}

#[cfg(test)]
mod tests {
    use rejoinder_agents::{FrontDeskSection, OpenAiSection};
    use rejoinder_config::{Config, Environment};

    use super::*;
    use crate::wiring::tests::load;

    fn loaded(choice: &AgentChoice, environment: Environment) -> Config {
        load(&configuration(&choice.section().unwrap(), ""), environment).unwrap()
    }

    #[test]
    fn what_is_written_can_be_loaded() {
        let openai = AgentChoice::OpenAi(Server {
            base_url: "http://127.0.0.1:11434/v1".parse().unwrap(),
            model: "a \"strange\" model\\name".to_owned(),
            api_key: Some(SecretLocation::Variable("SOME_KEY".to_owned())),
            not_checked: None,
        });

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
        assert_eq!(channels, ["api.main", "webchat.main", "webhook.default"]);
    }

    #[test]
    fn a_file_that_is_there_is_added_to_unless_the_operator_says_otherwise() {
        let plan = |answer: &str| ask_plan(Path::new("rejoinder.toml"), &mut Script::of(&[answer])).unwrap();

        assert!(matches!(plan(""), Plan::Add));
        assert!(matches!(plan("2"), Plan::Write { overwrite: true }));
        assert!(matches!(plan("3"), Plan::Leave));
    }
}
