//! `rejoinder completions`: the script with which a shell completes our commands.

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::console::{failure::Failure, output};

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

const HELP: &str = "\
Where each shell looks for it:
  rejoinder completions bash > ~/.local/share/bash-completion/completions/rejoinder
  rejoinder completions zsh > ~/.zfunc/_rejoinder
  rejoinder completions fish > ~/.config/fish/completions/rejoinder.fish
  rejoinder completions elvish > ~/.config/elvish/lib/rejoinder.elv
  rejoinder completions powershell >> $PROFILE

For zsh, ~/.zshrc needs \"fpath+=~/.zfunc\" before \"compinit\". For Elvish, ~/.config/elvish/rc.elv needs \"use rejoinder\". \
The folder must exist. A new shell then completes the commands.";

impl Completions {
    pub(super) fn perform(&self, mut cli: Command) -> Result<(), Failure> {
        output::print_as_is(script(self.shell, &mut cli).trim_end())
    }
}

fn script(shell: Shell, cli: &mut Command) -> String {
    let mut script = Vec::new();
    generate(shell, cli, "rejoinder", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, ValueEnum as _};

    use super::{super::Cli, *};

    #[test]
    fn every_shell_completes_every_command() {
        for shell in Shell::value_variants() {
            let script = script(*shell, &mut Cli::command());

            for command in Cli::command().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell} does not complete {}", command.get_name());
            }
        }
    }
}
