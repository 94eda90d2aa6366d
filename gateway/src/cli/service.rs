//! `rejoinder service`: the unit that runs the gateway under systemd.

use std::{
    env, fs, io,
    path::{Path, PathBuf, absolute},
};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use rejoinder_config::{ConfigSource, Environment};

use super::{global::Global, umask::let_others_read};
use crate::console::{command::command_line, failure::Failure, output};

/// The unit of the system, for the program and the configuration at their usual places.
const UNIT: &str = include_str!("../../../ops/rejoinder.service");

const PROGRAM: &str = "/usr/local/bin/rejoinder";

const CONFIG: &str = "/etc/rejoinder/rejoinder.toml";

/// Folders that the unit of the system hides from the service.
const HIDDEN: [&str; 5] = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];

/// The beginnings of lines that the unit of a user goes without: it has no other user to be, and may not make namespaces.
const FOR_THE_SYSTEM: [&str; 13] = [
    "#",
    "After=",
    "Wants=",
    "LoadCredential=",
    "ExecReload=+",
    "DynamicUser=",
    "StateDirectory",
    "CapabilityBoundingSet=",
    "AmbientCapabilities=",
    "Protect",
    "Private",
    "ProcSubset=",
    "RemoveIPC=",
];

#[derive(Debug, Subcommand)]
pub(super) enum ServiceCommand {
    /// Write a systemd unit that runs this program, and print the commands that start the service
    #[command(after_help = HELP)]
    Install(Install),
    /// Print the unit
    Print(Manager),
}

const HELP: &str = "\
The service of the system runs as a user of its own, with the configuration that --config names or else \
/etc/rejoinder/rejoinder.toml, and keeps its data in /var/lib/rejoinder. With --user it runs as you, with the configuration \
and the data that you have now. An edited unit is kept; \"systemctl edit rejoinder\" adds to a unit.

To remove it:
  sudo systemctl disable --now rejoinder && sudo rm /etc/systemd/system/rejoinder.service
  systemctl --user disable --now rejoinder && rm ~/.config/systemd/user/rejoinder.service

Files:
  /etc/systemd/system/rejoinder.service
  ~/.config/systemd/user/rejoinder.service

Examples:
  sudo rejoinder service install
  rejoinder service install --user
  rejoinder service print | diff - /etc/systemd/system/rejoinder.service";

#[derive(Debug, Args)]
pub(super) struct Install {
    #[command(flatten)]
    manager: Manager,
    /// Replace a unit that differs
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(super) struct Manager {
    /// A service of your own, without root (systemctl --user)
    #[arg(long)]
    user: bool,
}

impl ServiceCommand {
    pub(super) fn perform(&self, global: &Global) -> Result<(), Failure> {
        match self {
            Self::Install(install) => install.perform(global),
            Self::Print(manager) => output::print_as_is(manager.unit(global, &this_program()?)?.trim_end()),
        }
    }
}

impl Install {
    fn perform(&self, global: &Global) -> Result<(), Failure> {
        if !sd_notify::booted().unwrap_or_default() {
            return Err(
                anyhow!("systemd does not run on this system; `rejoinder service print` prints the unit").into()
            );
        }
        let program = this_program()?;
        let unit = self.manager.unit(global, &program)?;
        let path = self.manager.path()?;
        let config = config_of_system(global)?;
        if !self.manager.user {
            check_program(&program)?;
            if !rustix::process::geteuid().is_root() {
                let again = command_line("service install", global.config.is_some().then_some(config.as_path()));
                let advice = format!("run `sudo {again}`, or add --user for a service of your own");
                return Err(anyhow!("only root can write {}: {advice}", path.display()).into());
            }
            let_others_read();
        }
        write(&path, &unit, self.force)?;
        let systemctl = if self.manager.user { "systemctl --user" } else { "systemctl" };
        let mut text = format!(
            "The unit is {}. Start the service:\n\n  {systemctl} daemon-reload\n  {systemctl} enable --now rejoinder",
            path.display()
        );
        if self.manager.user {
            text.push_str("\n\nHave it run while you are not logged in:\n\n  loginctl enable-linger");
        } else if !config.exists() {
            text = format!("Its configuration is missing: write {} first.\n\n{text}", config.display());
        }
        output::print(text)
    }
}

impl Manager {
    fn unit(&self, global: &Global, program: &Path) -> Result<String, Failure> {
        if self.user {
            let config = match global.load()?.source {
                ConfigSource::File(path) | ConfigSource::Remembered(path) => {
                    Some(absolute(path).context("the working directory is unknown")?)
                }
                ConfigSource::Defaults => None,
            };
            return user_unit(program, config.as_deref(), &global.data_dir()?);
        }
        if global.data.as_ref().is_some_and(|data| !data.as_os_str().is_empty()) {
            let why =
                "the service of the system keeps its data in /var/lib/rejoinder: leave out --data and REJOINDER_DATA";
            return Err(Failure::Usage(why.to_owned()));
        }
        system_unit(program, &config_of_system(global)?)
    }

    fn path(&self) -> Result<PathBuf, Failure> {
        if !self.user {
            return Ok("/etc/systemd/system/rejoinder.service".into());
        }
        let folder = Environment::of_process().user_config_dir().context("neither XDG_CONFIG_HOME nor HOME is set")?;
        Ok(folder.join("systemd/user/rejoinder.service"))
    }
}

fn this_program() -> Result<PathBuf, Failure> {
    Ok(env::current_exe().context("the path of this program is unknown")?)
}

fn config_of_system(global: &Global) -> Result<PathBuf, Failure> {
    let config = global.config.as_deref().unwrap_or(Path::new(CONFIG));
    Ok(absolute(config).context("the working directory is unknown")?)
}

fn check_program(program: &Path) -> Result<(), Failure> {
    if HIDDEN.iter().all(|folder| !program.starts_with(folder)) {
        return Ok(());
    }
    let shown = program.display();
    let advice = format!("install it elsewhere first: sudo install -m 755 {shown} {PROGRAM}");
    Err(anyhow!("the service of the system cannot see {shown}; {advice}").into())
}

fn system_unit(program: &Path, config: &Path) -> Result<String, Failure> {
    // This path is a whole value, so blanks need no quotes.
    let config = utf8(config)?.replace('%', "%%");
    Ok(UNIT.replace(PROGRAM, &word(program)?).replace(CONFIG, &config))
}

fn user_unit(program: &Path, config: Option<&Path>, data: &Path) -> Result<String, Failure> {
    let config = config.map(word).transpose()?.map(|config| format!(" --config {config}")).unwrap_or_default();
    let start = format!("ExecStart={} run{config} --data {} --log-format json", word(program)?, word(data)?);
    let kept = UNIT.lines().filter(|line| !FOR_THE_SYSTEM.iter().any(|beginning| line.starts_with(beginning)));
    let mut unit = String::new();
    for line in kept.filter(|line| !line.is_empty()) {
        match line.split_once('=') {
            Some(("ExecStart", _)) => unit.push_str(&start),
            Some(("WantedBy", _)) => unit.push_str("WantedBy=default.target"),
            None if !unit.is_empty() => unit.extend(["\n", line]),
            _ => unit.push_str(line),
        }
        unit.push('\n');
    }
    Ok(unit)
}

/// A path as a word of `ExecStart=`.
fn word(path: &Path) -> Result<String, Failure> {
    let path = utf8(path)?;
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "/._-+,:@".contains(char);
    if path.chars().all(is_plain) {
        return Ok(path.to_owned());
    }
    let escaped = path.replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    Ok(format!("\"{escaped}\""))
}

fn utf8(path: &Path) -> Result<&str, Failure> {
    Ok(path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?)
}

/// Writes a unit, and replaces one that differs only with `force`.
fn write(path: &Path, unit: &str, force: bool) -> Result<(), Failure> {
    match fs::read_to_string(path) {
        Ok(there) if there == unit => return Ok(()),
        Ok(_) if !force => {
            let advice = "compare it with `rejoinder service print`, or replace it with --force";
            return Err(anyhow!("{} is there already and differs: {advice}", path.display()).into());
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(anyhow!(error).context(format!("cannot read {}", path.display())).into());
        }
        _ => {}
    }
    let created = path.parent().map_or(Ok(()), fs::create_dir_all);
    Ok(created.and_then(|()| fs::write(path, unit)).with_context(|| format!("cannot write {}", path.display()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a key that the unit has once.
    fn value<'a>(unit: &'a str, key: &str) -> Option<&'a str> {
        let mut values = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        let value = values.next();
        assert_eq!(values.next(), None, "{key}");
        value
    }

    #[test]
    fn the_unit_of_the_system_runs_this_program_with_this_configuration() {
        let unit = system_unit(Path::new("/opt/my tools/rejoinder"), Path::new("/srv/50% off/bot.toml")).unwrap();

        let start = value(&unit, "ExecStart").unwrap();
        assert!(start.starts_with("\"/opt/my tools/rejoinder\" run --config ${CREDENTIALS_DIRECTORY}/"), "{start}");
        assert_eq!(value(&unit, "LoadCredential"), Some("rejoinder.toml:/srv/50%% off/bot.toml"));
        assert_eq!(value(&unit, "DynamicUser"), Some("yes"));
    }

    #[test]
    fn at_the_usual_places_it_is_the_unit_of_the_repository() {
        assert_eq!(system_unit(Path::new(PROGRAM), Path::new(CONFIG)).unwrap(), UNIT);
        assert!(UNIT.contains(PROGRAM) && UNIT.contains(CONFIG), "{UNIT}");
    }

    #[test]
    fn the_unit_of_a_user_has_what_a_user_may_have() {
        let config = Path::new("/home/ada/bot.toml");
        let unit = user_unit(Path::new("/home/ada/bin/rejoinder"), Some(config), Path::new("/home/ada/a b")).unwrap();

        assert_eq!(
            value(&unit, "ExecStart"),
            Some(r#"/home/ada/bin/rejoinder run --config /home/ada/bot.toml --data "/home/ada/a b" --log-format json"#)
        );
        assert_eq!(value(&unit, "WantedBy"), Some("default.target"));
        for key in ["Type", "Restart", "WatchdogSec", "TimeoutStopSec", "NoNewPrivileges"] {
            assert_eq!(value(&unit, key), value(UNIT, key), "{key}");
        }
        for key in ["DynamicUser", "StateDirectory", "LoadCredential", "ProtectSystem", "PrivateUsers", "After"] {
            assert_eq!(value(&unit, key), None, "{key}");
        }
        let sections: Vec<_> = unit.lines().filter(|line| line.starts_with('[')).collect();
        assert_eq!(sections, ["[Unit]", "[Service]", "[Install]"]);
    }

    #[test]
    fn a_path_is_one_word() {
        let word = |path: &str| word(Path::new(path)).unwrap();

        assert_eq!(word("/usr/bin/rejoinder"), "/usr/bin/rejoinder");
        assert_eq!(word(r#"/a b/50%/$HOME/"c"\"#), r#""/a b/50%%/$$HOME/\"c\"\\""#);
    }

    #[test]
    fn a_unit_that_differs_is_replaced_only_when_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("systemd/user/rejoinder.service");
        let there = || fs::read_to_string(&path).unwrap();

        write(&path, "one", false).unwrap();
        write(&path, "one", false).unwrap();
        let refused = write(&path, "two", false).unwrap_err().to_string();

        assert!(refused.contains("--force"), "{refused}");
        assert_eq!(there(), "one");
        write(&path, "two", true).unwrap();
        assert_eq!(there(), "two");
    }

    #[test]
    fn a_program_that_the_service_cannot_see_is_refused() {
        assert!(check_program(Path::new("/opt/rejoinder")).is_ok());
        for path in ["/home/ada/.cargo/bin/rejoinder", "/tmp/rejoinder"] {
            let refused = check_program(Path::new(path)).unwrap_err().to_string();
            assert!(refused.contains("/usr/local/bin"), "{refused}");
        }
    }
}
