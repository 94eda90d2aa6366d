//! The options that every command takes.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use rejoinder_config::{Environment, Loaded, LogFormat, LogLevel, Options};

use super::remembered;
use crate::console::failure::Failure;

#[derive(Clone, Debug, Args)]
pub(super) struct Global {
    /// Configuration file; if not given: $REJOINDER_CONFIG, ./rejoinder.toml, ~/.config/rejoinder/rejoinder.toml, that of the last start, or defaults
    #[arg(long, global = true, help_heading = "Global options", value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Folder for the database and tokens; if not given: $XDG_DATA_HOME/rejoinder or ~/.local/share/rejoinder
    #[arg(
        long,
        global = true,
        help_heading = "Global options",
        value_name = "DIR",
        env = "REJOINDER_DATA",
        hide_env_values = true
    )]
    pub(super) data: Option<PathBuf>,
    /// Format of log lines
    #[arg(long, global = true, help_heading = "Global options", value_enum)]
    log_format: Option<Format>,
    /// Lowest level of log lines to write
    #[arg(long, global = true, help_heading = "Global options", value_enum)]
    log_level: Option<Level>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// One JSON object per line
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

impl Global {
    /// Where to look for the configuration.
    pub(super) fn options(&self) -> Result<Options, Failure> {
        Ok(Options {
            path: self.config.clone(),
            working_dir: std::env::current_dir().context("the working directory is unknown")?,
            environment: Environment::of_process(),
            remembered: self.data_dir().ok().and_then(|data_dir| remembered::followed(&data_dir)),
        })
    }

    /// The configuration. Options of the command line override it.
    pub(super) fn load(&self) -> Result<Loaded, Failure> {
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

    /// The data directory, as an absolute path.
    pub(super) fn data_dir(&self) -> Result<PathBuf, Failure> {
        let given = self.data.clone().filter(|path| !path.as_os_str().is_empty());
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let usual = || user_data_dir(variable("XDG_DATA_HOME").as_deref(), variable("HOME").as_deref());
        let unknown =
            || Failure::Usage("no data directory is known: pass --data DIR, or set REJOINDER_DATA or HOME".into());
        let path = given.or_else(usual).ok_or_else(unknown)?;
        // Absolute, so that printed paths work from any directory.
        Ok(std::path::absolute(path).context("the working directory is unknown")?)
    }
}

/// `rejoinder` in the user's data directory, per the XDG Base Directory Specification.
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
    use super::*;

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
