//! The command line.
//!
//! One file per command. Results go to standard output, errors to standard error. The exit code is 0, 1 (the command
//! failed) or 2 (wrong arguments, or an invalid configuration); the help of a command names others.

mod agents;
mod alerts;
mod approvals;
mod backup;
mod channels;
mod completions;
mod config;
mod dashboard;
mod dead_letters;
mod doctor;
mod door;
mod errors;
mod forget;
mod global;
mod health;
mod ids;
mod import;
mod init;
mod listing;
mod logs;
mod man;
mod nodes;
mod notify;
mod options;
mod pairing;
mod people;
mod records;
mod reload;
mod remembered;
mod route;
mod run;
mod running;
mod schedule;
mod send;
mod service;
mod status;
mod store;
mod tokens;
mod turns;
mod umask;

use std::{process::ExitCode, time::Duration};

use anyhow::Context;
use clap::{CommandFactory as _, Parser, Subcommand};

use self::{global::Global, man::EXIT_CODES};
use crate::{
    console::{failure::Failure, output},
    logging, platforms, version,
};

#[cfg(test)]
pub(crate) use self::init::{Script, load_section, unused_url};

/// How long printing an error may take: the process ends even if nothing reads its standard error.
const ERROR_TIMEOUT: Duration = Duration::from_secs(10);

/// The messaging gateway that can prove it answered.
#[derive(Debug, Parser)]
#[command(
    name = "rejoinder",
    version,
    long_version = version::LONG.as_str(),
    propagate_version = true,
    long_about = description(),
    after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}")
)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  rejoinder                                 run the gateway
  rejoinder init                            connect an agent and bots; writes rejoinder.toml
  rejoinder import openclaw                 take over the configuration of OpenClaw
  rejoinder doctor                          find problems and say how to fix them
  rejoinder config check                    check the configuration
  rejoinder status                          say whether anything is late or down
  rejoinder chat                            talk to the agent in the terminal
  rejoinder ask \"Is it done?\"              print the agent's answer
  rejoinder dashboard                       print a link to the operator's page
  rejoinder agents test main                ask one agent a question outside all chats
  rejoinder turns list --state overdue      list the turns that are late
  rejoinder turns explain 0199a1            say why a turn ended as it did
  rejoinder dead-letters list               list what could not be delivered
  rejoinder route explain --channel telegram.main --person 42
                                            say which rule a message meets
  rejoinder pairing approve ABCD-EFGH       let somebody in who was given this code
  rejoinder approvals list                  what agents ask approval for

Environment:
  REJOINDER_CONFIG, REJOINDER_DATA          the same as --config and --data
  REJOINDER__SERVER__LISTEN, ...            set any configuration key

Files:
  ./rejoinder.toml                          the configuration, or else the next one
  ~/.config/rejoinder/rejoinder.toml        the user's configuration, or else that of the last start
  ~/.local/share/rejoinder                  the database and tokens";

fn description() -> String {
    format!(
        "The messaging gateway that can prove it answered.\n\nRejoinder makes an AI agent reachable on {}, webhooks and \
         a web page. It ends every turn that expects an answer in exactly one signal. Without a command it runs \
         the gateway.",
        platforms::names()
    )
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway (the default command)
    Run,
    /// Connect an agent and bots, and write rejoinder.toml
    Init(Box<init::Init>),
    /// Take over the configuration of OpenClaw or Hermes Agent
    #[command(after_help = import::HELP)]
    Import(import::Import),
    /// Check everything that a running gateway needs, and say how to fix problems
    Doctor(doctor::Doctor),
    /// Check or show the configuration, or print its manual
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Say in ten lines whether anything is late or down; the exit code is 1 if so
    Status(status::Status),
    /// Say in one line whether the running gateway is ready, for the health check of a container
    #[command(after_help = health::HELP)]
    Health,
    /// Print a link that opens the operator's page in a browser
    Dashboard(dashboard::Dashboard),
    /// Inspect turns: what was owed, what was tried, how they ended
    #[command(subcommand)]
    Turns(turns::TurnsCommand),
    /// List the agents, show what each is told, or ask one of them a question
    #[command(subcommand)]
    Agents(agents::AgentsCommand),
    /// List the channels; try now to send what waits for one
    #[command(subcommand)]
    Channels(channels::ChannelsCommand),
    /// List the nodes that share the work; have one give its channels to the others
    #[command(subcommand)]
    Nodes(nodes::NodesCommand),
    /// List what could not be delivered; send it again or elsewhere, or give it up
    #[command(subcommand)]
    DeadLetters(dead_letters::DeadLettersCommand),
    /// List who asks to be let in; approve or decline their requests, or revoke an approval
    #[command(subcommand)]
    Pairing(pairing::PairingCommand),
    /// What agents ask approval for
    #[command(subcommand)]
    Approvals(approvals::ApprovalsCommand),
    /// List the people who are known, and let them sign in to a chat page
    #[command(subcommand)]
    People(people::PeopleCommand),
    /// Send a message to a conversation, a person, or everybody with a role
    #[command(after_help = send::HELP)]
    Send(send::Send),
    /// Talk to the agent in the terminal
    #[command(after_help = rejoinder_terminal::CHAT_HELP)]
    Chat(rejoinder_terminal::Chat),
    /// Ask the agent one thing and print its answer
    #[command(after_help = rejoinder_terminal::ASK_HELP)]
    Ask(rejoinder_terminal::Ask),
    /// Messages and prompts at given times
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    /// Explain how a message would be routed
    #[command(subcommand)]
    Route(route::RouteCommand),
    /// Show the lines of the gateway's own log that are kept
    Logs(logs::Logs),
    /// List the errors of the gateway's own log, and say that you have seen them
    #[command(subcommand)]
    Errors(errors::ErrorsCommand),
    /// Make, list or revoke tokens for the admin API
    #[command(subcommand)]
    Tokens(tokens::TokensCommand),
    /// Try out who is told when something is wrong
    #[command(subcommand)]
    Alerts(alerts::AlertsCommand),
    /// Write everything that is stored into one file, also while the gateway runs
    #[command(after_help = backup::BACKUP_HELP)]
    Backup(backup::Backup),
    /// Restore a backup into an empty data directory
    #[command(after_help = backup::RESTORE_HELP)]
    Restore(backup::Restore),
    /// Erase what is stored about a person
    #[command(after_help = forget::HELP)]
    Forget(forget::Forget),
    /// Show the size of the database, compact it, or copy it to another one
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Run the gateway as a service of systemd
    #[command(subcommand)]
    Service(service::ServiceCommand),
    /// Print the script with which a shell completes the commands
    Completions(completions::Completions),
    /// Write the manual pages of all commands
    Man(man::ManPages),
}

/// Runs the command that the process's arguments name.
pub fn main() -> ExitCode {
    // The gateway starts itself beside the programs that it runs, and for each document that it reads; nothing else calls this.
    if let Some(code) = rejoinder_agents::supervise().or_else(rejoinder_reader::read_file) {
        return code;
    }
    umask::keep_private();
    // Exits with 0 for help and with 2 for wrong arguments.
    let cli = Cli::parse();
    match cli.perform() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(error)) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(failure) => {
            let code = failure.exit_code();
            logging::run_with_timeout(ERROR_TIMEOUT, move || output::remark(format_args!("error: {failure}")));
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
            Command::Import(import) => import.perform(global),
            Command::Doctor(doctor) => in_one_thread(doctor.perform(global)),
            Command::Config(command) => in_one_thread(command.perform(global)),
            Command::Status(status) => in_one_thread(status.perform(global)),
            Command::Health => in_one_thread(health::perform(global)),
            Command::Dashboard(dashboard) => in_one_thread(dashboard.perform(global)),
            Command::Turns(command) => in_one_thread(command.perform(global)),
            Command::Agents(command) => in_one_thread(command.perform(global)),
            Command::Channels(command) => in_one_thread(command.perform(global)),
            Command::Nodes(command) => in_one_thread(command.perform(global)),
            Command::DeadLetters(command) => in_one_thread(command.perform(global)),
            Command::Pairing(command) => in_one_thread(command.perform(global)),
            Command::Approvals(command) => in_one_thread(command.perform(global)),
            Command::People(command) => in_one_thread(command.perform(global)),
            Command::Send(send) => in_one_thread(send.perform(global)),
            Command::Chat(chat) => in_one_thread(chat.perform(|chat| door::find(global, chat))),
            Command::Ask(ask) => in_one_thread(ask.perform(|chat| door::find(global, chat))),
            Command::Schedule(command) => in_one_thread(command.perform(global)),
            Command::Route(command) => in_one_thread(command.perform(global)),
            Command::Logs(logs) => in_one_thread(logs.perform(global)),
            Command::Errors(command) => in_one_thread(command.perform(global)),
            Command::Tokens(command) => in_one_thread(command.perform(global)),
            Command::Alerts(command) => in_one_thread(command.perform(global)),
            Command::Backup(backup) => in_one_thread(backup.perform(global)),
            Command::Restore(restore) => in_one_thread(restore.perform(global)),
            Command::Forget(forget) => in_one_thread(forget.perform(global)),
            Command::Store(command) => in_one_thread(command.perform(global)),
            Command::Service(command) => command.perform(global),
            Command::Completions(completions) => completions.perform(Self::command()),
            Command::Man(pages) => pages.perform(Self::command()),
        }
    }
}

fn in_one_thread(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    runtime.block_on(command)
}

#[cfg(test)]
mod tests {
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
    #[case(&["dead-letters", "retry"])]
    #[case(&["dead-letters", "discard", "--all"])]
    #[case(&["approvals", "approve"])]
    #[case(&["errors", "mute"])]
    #[case(&["pairing", "approve"])]
    #[case(&["pairing", "approve", "ABCD-EFGH", "--role", "admin"])]
    #[case(&["people"])]
    #[case(&["agents", "show"])]
    #[case(&["nodes", "drain"])]
    #[case(&["nodes", "resume", "one", "--this"])]
    #[case(&["agents", "test", "main", "--timeout", "0"])]
    #[case(&["tokens", "create"])]
    #[case(&["send", "telegram.main/42"])]
    #[case(&["send", "telegram.main/42", "hello", "--wait", "18446744073709551615"])]
    #[case(&["ask", "hello", "--wait", "18446744073709551615"])]
    #[case(&["schedule", "add", "--to", "ada", "--message", "hello"])]
    #[case(&["schedule", "add", "--to", "ada", "--in", "5m"])]
    #[case(&["schedule", "add", "--to", "ada", "--in", "5m", "--message", "hello", "--quiet"])]
    #[case(&["service"])]
    #[case(&["completions", "sh"])]
    #[case(&["man"])]
    #[case(&["init", "--agent", "openai", "--model", "m"])]
    #[case(&["import"])]
    #[case(&["import", "eliza"])]
    #[case(&["import", "hermes", "--dry-run", "--force"])]
    fn a_wrong_call_is_exit_code_2(#[case] arguments: &[&str]) {
        let error = Cli::try_parse_from(std::iter::once(&"rejoinder").chain(arguments)).unwrap_err();

        assert_eq!(error.exit_code(), 2, "{error}");
    }
}
