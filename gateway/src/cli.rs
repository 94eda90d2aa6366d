//! The command line.
//!
//! A file per command. What a command prints goes to standard output, what is wrong to standard error; the exit
//! code is 0, 1 (it failed) or 2 (it was called wrongly, or the configuration is wrong).

mod config;
mod doctor;
mod init;
mod run;
mod turns;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context;
use clap::{Args, Parser, Subcommand, ValueEnum};
use rejoinder_config::{Environment, Loaded, LogFormat, LogLevel, Options};

#[cfg(test)]
pub(crate) use self::init::{Script, nowhere, read};
use crate::{
    console::{failure::Failure, output},
    logging, platforms,
};

/// How long an error may take to be printed: a gateway that cannot start and that nobody hears ends all the same.
const ERROR_PATIENCE: Duration = Duration::from_secs(10);

/// The messaging gateway that can prove it answered.
#[derive(Debug, Parser)]
#[command(name = "rejoinder", version, propagate_version = true, long_about = description(), after_help = EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  rejoinder                                 run the gateway
  rejoinder init                            connect an agent, and bots: writes rejoinder.toml
  rejoinder doctor                          say what is wrong, and what to do
  rejoinder config check                    say what is wrong with the configuration
  rejoinder turns list --state overdue      what should have happened and has not
  rejoinder turns explain 0199a1            why a turn ended as it did

Environment:
  REJOINDER_CONFIG, REJOINDER_DATA          stand for --config and --data
  REJOINDER__SERVER__LISTEN, ...            set any key of the configuration";

fn description() -> String {
    format!(
        "The messaging gateway that can prove it answered.\n\nRejoinder makes an AI agent reachable in {}, over webhooks and \
         on a web page, and answers every turn that expects an answer with exactly one signal. Without a command it runs \
         the gateway.",
        platforms::names()
    )
}

#[derive(Clone, Debug, Args)]
struct Global {
    /// The configuration: else $REJOINDER_CONFIG, ./rejoinder.toml, ~/.config/rejoinder/rejoinder.toml, or none
    #[arg(long, global = true, help_heading = "Global options", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the database and tokens are: else $XDG_DATA_HOME/rejoinder or ~/.local/share/rejoinder
    #[arg(
        long,
        global = true,
        help_heading = "Global options",
        value_name = "DIR",
        env = "REJOINDER_DATA",
        hide_env_values = true
    )]
    data: Option<PathBuf>,
    /// For whom log lines are written
    #[arg(long, global = true, help_heading = "Global options", value_enum)]
    log_format: Option<Format>,
    /// The least important log line that is written
    #[arg(long, global = true, help_heading = "Global options", value_enum)]
    log_level: Option<Level>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For a person
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway (as without a command)
    Run,
    /// Connect an agent, and bots: write rejoinder.toml
    Init(Box<init::Init>),
    /// Look at everything that a running gateway needs, and say what to do
    Doctor(doctor::Doctor),
    /// Check the configuration, show it, or print its manual
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Look at turns: what was owed, what was tried, what came of it
    #[command(subcommand)]
    Turns(turns::TurnsCommand),
}

/// Runs the command that the process was called with.
#[must_use]
pub fn main() -> ExitCode {
    // Ends the process with 0 for help and 2 for a wrong call.
    let cli = Cli::parse();
    match cli.perform() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(error)) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(failure) => {
            let code = failure.exit_code();
            logging::within(ERROR_PATIENCE, move || eprintln!("error: {failure}"));
            ExitCode::from(code)
        }
    }
}

impl Cli {
    fn perform(self) -> Result<(), Failure> {
        let global = &self.global;
        match self.command.unwrap_or(Command::Run) {
            Command::Run => run::run(global),
            Command::Init(init) => in_one_thread(init.perform(global)),
            Command::Doctor(doctor) => in_one_thread(doctor.perform(global)),
            Command::Config(command) => command.perform(global),
            Command::Turns(command) => in_one_thread(command.perform(global)),
        }
    }
}

fn in_one_thread(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    runtime.block_on(command)
}

impl Global {
    /// Where the configuration is looked for.
    fn options(&self) -> Result<Options, Failure> {
        Ok(Options {
            path: self.config.clone(),
            working_dir: std::env::current_dir().context("the working directory is unknown")?,
            environment: Environment::of_process(),
        })
    }

    /// The configuration, with what the command line says over it.
    fn load(&self) -> Result<Loaded, Failure> {
        let mut loaded = rejoinder_config::load(&self.options()?, &crate::build())?;
        let log = &mut loaded.config.log;
        log.format = match self.log_format {
            Some(Format::Text) => LogFormat::Text,
            Some(Format::Json) => LogFormat::Json,
            None => log.format,
        };
        log.level = match self.log_level {
            Some(Level::Error) => LogLevel::Error,
            Some(Level::Warn) => LogLevel::Warn,
            Some(Level::Info) => LogLevel::Info,
            Some(Level::Debug) => LogLevel::Debug,
            Some(Level::Trace) => LogLevel::Trace,
            None => log.level,
        };
        Ok(loaded)
    }

    /// Where data is kept.
    fn data_dir(&self) -> Result<PathBuf, Failure> {
        let given = self.data.clone().filter(|path| !path.as_os_str().is_empty());
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let usual = || user_data_dir(variable("XDG_DATA_HOME").as_deref(), variable("HOME").as_deref());
        let unknown =
            || Failure::Usage("where is data to be kept? Say --data DIR, or set REJOINDER_DATA or HOME".into());
        let path = given.or_else(usual).ok_or_else(unknown)?;
        // Absolute, so that the paths that are printed can be used anywhere.
        Ok(std::path::absolute(path).context("the working directory is unknown")?)
    }
}

/// `rejoinder` in the user's data directory, as the XDG Base Directory Specification has it.
fn user_data_dir(xdg: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let base = match (xdg, home) {
        (Some(xdg), _) if xdg.is_absolute() => xdg.to_owned(),
        (_, Some(home)) if home.is_absolute() => home.join(".local/share"),
        _ => return None,
    };
    Some(base.join("rejoinder"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }

    #[rstest]
    #[case(&[], "None")]
    #[case(&["run"], "Some(Run)")]
    #[case(&["--config", "x.toml", "run", "--log-format", "json"], "Some(Run)")]
    #[case(&["run", "--data", "d"], "Some(Run)")]
    fn options_stand_before_the_command_or_after_it(#[case] arguments: &[&str], #[case] command: &str) {
        let cli = Cli::try_parse_from(std::iter::once(&"rejoinder").chain(arguments)).unwrap();

        assert_eq!(format!("{:?}", cli.command), command);
    }

    #[rstest]
    #[case(&["fly"])]
    #[case(&["run", "--port", "1"])]
    #[case(&["--log-format", "xml"])]
    #[case(&["turns"])]
    #[case(&["turns", "show"])]
    #[case(&["turns", "list", "--state", "lost"])]
    #[case(&["turns", "list", "--limit", "0"])]
    #[case(&["init", "--agent", "openai", "--model", "m"])]
    fn a_wrong_call_is_exit_code_2(#[case] arguments: &[&str]) {
        let error = Cli::try_parse_from(std::iter::once(&"rejoinder").chain(arguments)).unwrap_err();

        assert_eq!(error.exit_code(), 2, "{error}");
    }

    #[test]
    fn data_is_where_the_user_keeps_data() {
        let path = |text| Some(Path::new(text));

        assert_eq!(user_data_dir(path("/xdg"), path("/home/ada")).as_deref(), path("/xdg/rejoinder"));
        assert_eq!(user_data_dir(None, path("/home/ada")).as_deref(), path("/home/ada/.local/share/rejoinder"));
        assert_eq!(
            user_data_dir(path("relative"), path("/home/ada")).as_deref(),
            path("/home/ada/.local/share/rejoinder")
        );
        assert_eq!(user_data_dir(None, None), None);
    }
}
