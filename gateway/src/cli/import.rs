//! `rejoinder import`: reads the configuration of another gateway and writes ours.
//!
//! The files of the other gateway are read ([`source`]) and taken apart ([`table`]); what has a counterpart becomes a section
//! ([`draft`]), and the rest is noted ([`notes`]). The result is checked with our own loader ([`checked`]) before it is written.
//! To add a gateway, add a module like [`hermes`] and a line in [`From`].

mod access;
mod checked;
mod draft;
mod hermes;
mod jobs;
mod notes;
mod openclaw;
mod servers;
mod shared;
mod source;
mod table;
#[cfg(test)]
mod tests;
mod variables;

use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use rejoinder_core::{Clock as _, SystemClock};
use secrecy::ExposeSecret as _;

use self::{
    draft::Draft,
    notes::plain,
    shared::{Imported, Surroundings},
};
use super::{global::Global, init::OWN_CHANNELS};
use crate::console::{command::command_line, failure::Failure, output, secret::SecretLocation};

pub(super) const HELP: &str = "\
It reads OpenClaw's openclaw.json (or clawdbot.json, moltbot.json) with what it includes, or the config.yaml and .env of Hermes
Agent, and the jobs in cron/jobs.json or OpenClaw's database beside them. Nothing there is changed or run. It writes
./rejoinder.toml, or the file that --output or --config names: accounts, who may write, groups, the model and scheduled jobs. What
it does not know stands there as a comment, and what has no counterpart is listed. A token that is written there goes into a file
of its own in the data directory.

Exit code: 0 also if something has no counterpart, 1 if nothing could be written.

Examples:
  rejoinder import openclaw --dry-run
  rejoinder import hermes /srv/hermes --output rejoinder.toml";

#[derive(Debug, Args)]
pub(super) struct Import {
    /// The gateway whose configuration is read
    #[arg(value_enum, value_name = "GATEWAY")]
    from: From,
    /// Its configuration file or folder; if not given, where it keeps it in the home directory
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// The file to write; if not given: that of --config, or ./rejoinder.toml
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// Print the file instead of writing it; what has no counterpart goes to standard error
    #[arg(long, conflicts_with = "force")]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum From {
    /// OpenClaw, formerly Clawdbot and Moltbot
    Openclaw,
    /// Hermes Agent
    Hermes,
}

impl From {
    const fn name(self) -> &'static str {
        match self {
            Self::Openclaw => "OpenClaw",
            Self::Hermes => "Hermes Agent",
        }
    }

    /// The file to read.
    fn file(self, path: Option<&Path>, home: &Path) -> Result<PathBuf, Failure> {
        let in_folder = match self {
            Self::Openclaw => openclaw::in_folder,
            Self::Hermes => hermes::in_folder,
        };
        if let Some(path) = path {
            let path = std::path::absolute(path).context("the working directory is unknown")?;
            return Ok(if path.is_dir() { in_folder(&path) } else { path });
        }
        let found = match self {
            Self::Openclaw => openclaw::find(home),
            Self::Hermes => hermes::find(home),
        };
        let name = self.name();
        Ok(found
            .ok_or_else(|| anyhow!("no configuration of {name} is in {}: name its file or folder", home.display()))?)
    }

    fn read(self, file: &Path, surroundings: &Surroundings) -> Result<Imported, Failure> {
        match self {
            Self::Openclaw => openclaw::read(file, surroundings),
            Self::Hermes => hermes::read(file, surroundings),
        }
    }
}

impl Import {
    pub(super) fn perform(&self, global: &Global) -> Result<(), Failure> {
        let output = self.output.clone().or_else(|| global.config.clone());
        let output = output.unwrap_or_else(|| PathBuf::from("rejoinder.toml"));
        if !self.dry_run && !self.force && output.exists() {
            return Err(already_exists(&output).into());
        }
        let home = std::env::home_dir().filter(|home| home.is_absolute()).context("the home directory is unknown")?;
        let now = Timestamp::from_millisecond(SystemClock.now().as_millis()).context("the clock is out of range")?;
        let surroundings = Surroundings { home, data_dir: global.data_dir()?, now };
        let file = self.from.file(self.path.as_deref(), &surroundings.home)?;
        let Imported { mut draft, mut notes } = self.from.read(&file, &surroundings)?;
        checked::check(&mut draft, OWN_CHANNELS, &mut notes)?;
        let text = self.text(&draft, &file)?;
        let rest = match notes.lines() {
            lines if lines.is_empty() => String::new(),
            lines => format!("Not taken over:\n{lines}"),
        };
        if self.dry_run {
            output::print_untrusted(text.trim_end())?;
            rest.lines().for_each(output::remark);
            return Ok(());
        }
        let secrets: Vec<_> = draft.secrets().collect();
        for (.., secret) in &secrets {
            self.check_free(secret)?;
        }
        secrets.iter().try_for_each(|(.., secret)| secret.write())?;
        put(&output, &text, self.force)?;
        let mut said = format!("Wrote {}.\n", output.display());
        for (block, name, secret) in &secrets {
            let advice = secret.advice(&format!("{name} for {}", block.name()));
            said.push_str(&advice);
        }
        said.push_str(&rest);
        let next = [command_line("config check", Some(&output)), command_line("doctor", Some(&output))];
        let _ = write!(
            said,
            "Next: stop {}, because a bot has one program only; run `{}` and `{}`.",
            self.from.name(),
            next[0],
            next[1]
        );
        output::print(said)
    }

    fn text(&self, draft: &Draft, file: &Path) -> Result<String, Failure> {
        let (name, file) = (self.from.name(), plain(&file.display().to_string()));
        let sections = draft.text(SecretLocation::reference)?;
        Ok(format!(
            "# Written by `rejoinder import` from the configuration of {name} in {file}.\n# Other keys have their defaults: `rejoinder \
             config default` shows every key.\n{sections}\n{OWN_CHANNELS}"
        ))
    }

    /// # Errors
    /// When the file for a secret has another one.
    fn check_free(&self, secret: &SecretLocation) -> Result<(), Failure> {
        let SecretLocation::Typed(secret, path) = secret else { return Ok(()) };
        match source::text(path)? {
            Some(known) if !self.force && known.trim() != secret.expose_secret().trim() => Err(anyhow!(
                "{} already has another secret: move it away, or overwrite it with --force; nothing was written",
                path.display()
            )
            .into()),
            _ => Ok(()),
        }
    }
}

fn already_exists(path: &Path) -> anyhow::Error {
    anyhow!("{} already exists: name another file with --output, or overwrite it with --force", path.display())
}

/// Writes a whole file, or none.
///
/// # Errors
/// When that fails, or when the file exists and `overwrite` is `false`.
fn put(path: &Path, text: &str, overwrite: bool) -> Result<(), Failure> {
    let cannot = || format!("cannot write {}", path.display());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).with_context(cannot)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).with_context(cannot)?;
    let put = if overwrite { file.persist(path) } else { file.persist_noclobber(path) };
    match put {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Err(already_exists(path).into()),
        Err(error) => Err(anyhow::Error::new(error.error).context(cannot()).into()),
    }
}
