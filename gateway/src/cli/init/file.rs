//! The configuration file: written anew, or with sections added.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use toml_edit::DocumentMut;

use super::agent::NO_AGENT;
use crate::console::failure::Failure;

/// The channels that a gateway has without a configuration. They must be named once any other is.
pub(in crate::cli) const OWN_CHANNELS: &str = "\
# A hook: POST /hooks/default. Its token is created at the first start and kept in the data directory.
[channels.webhook.default]
token = { generate = true }

# A chat page at /chat, for browsers on this machine.
[channels.webchat.main]
access = \"loopback\"

# An OpenAI-compatible API at /v1. Its token is created in the same way.
[channels.api.main]
token = { generate = true }
";

/// A new file with these sections.
pub(super) fn configuration(agent: &str, accounts: &str) -> String {
    format!(
        "# Written by `rejoinder init`. Other keys have their defaults: `rejoinder config default` shows every key.\n\n\
         {agent}\n{accounts}{OWN_CHANNELS}"
    )
}

pub(super) struct Existing {
    path: PathBuf,
    text: String,
    document: DocumentMut,
}

impl Existing {
    /// # Errors
    /// When the file cannot be read, or is not TOML.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let document = text.parse().with_context(|| format!("{} is not TOML", path.display()))?;
        Ok(Self { path: path.to_owned(), text, document })
    }

    /// Whether it has `key`, such as `channels.telegram.main`.
    pub(super) fn has(&self, key: &str) -> bool {
        let mut names = key.split('.');
        names.try_fold(self.document.as_item(), |item, name| item.get(name)).is_some()
    }

    /// # Errors
    /// When it has `key`.
    pub(super) fn check_free(&self, key: &str) -> Result<(), Failure> {
        if !self.has(key) {
            return Ok(());
        }
        let path = self.path.display();
        Err(anyhow!("{path} already has [{key}]: change it there; nothing was written").into())
    }

    /// Its text with these sections added. Everything else stays as it is, comments included.
    ///
    /// # Errors
    /// When the file is written in a way that sections cannot be added to, such as `channels = { … }`.
    pub(super) fn with(&self, agent: Option<&str>, accounts: &str) -> Result<String, Failure> {
        let (text, agent) = match agent {
            // It takes the place of the words that there is none.
            Some(agent) if self.text.contains(NO_AGENT) => (self.text.replacen(NO_AGENT, agent, 1), ""),
            agent => (self.text.clone(), agent.unwrap_or_default()),
        };
        let own_channels = if accounts.is_empty() || self.has("channels") { "" } else { OWN_CHANNELS };
        let join = |parts: &[&str]| {
            let parts = parts.iter().map(|part| part.trim_end()).filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>().join("\n\n")
        };
        let added = join(&[agent, accounts, own_channels]);
        let text = format!("{}\n", join(&[&text, &added]));
        match text.parse::<DocumentMut>() {
            Ok(_) => Ok(text),
            Err(_) => Err(anyhow!(
                "init cannot add to {}, because it names these sections inline; nothing was written. Add them yourself:\n\n{added}",
                self.path.display()
            )
            .into()),
        }
    }

    /// Replaces its content; owner, mode and links stay.
    ///
    /// # Errors
    /// When that fails; the former content is then put back, if that is possible.
    pub(super) fn replace(&self, text: &str) -> Result<(), Failure> {
        let written = std::fs::write(&self.path, text);
        if written.is_err() {
            let _ = std::fs::write(&self.path, &self.text);
        }
        Ok(written.with_context(|| format!("cannot write {}", self.path.display()))?)
    }
}

/// Writes a whole file.
///
/// # Errors
/// When that fails, or when the file exists and `overwrite` is `false`.
pub(super) fn write(path: &Path, text: &str, overwrite: bool) -> Result<(), Failure> {
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

pub(super) fn already_exists(path: &Path) -> anyhow::Error {
    anyhow!("{} already exists: add a bot or an agent to it with --add, or overwrite it with --force", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: &str = "[agents.main]\nkind = \"openai\"\n";
    const BOT: &str = "# A bot.\n[channels.telegram.main]\ntoken = \"1:a\"\n\n";

    fn existing(text: &str) -> Existing {
        Existing { path: "rejoinder.toml".into(), text: text.to_owned(), document: text.parse().unwrap() }
    }

    #[test]
    fn what_is_there_stays_as_it_is() {
        let text = "# Mine.\n[server]\nlisten   = \"127.0.0.1:1\"  # aligned\n\n[channels.webchat.main]";

        let added = existing(text).with(Some(AGENT), BOT).unwrap();

        assert_eq!(added, format!("{text}\n\n{AGENT}\n{}\n", BOT.trim_end()));
    }

    #[test]
    fn an_agent_takes_the_place_of_the_words_about_none() {
        let new = configuration(NO_AGENT, "");

        let added = existing(&new).with(Some(AGENT), BOT).unwrap();

        assert!(
            !added.contains("Only the built-in front desk") && added.matches("[agents.main]").count() == 1,
            "{added}"
        );
        assert!(
            added.ends_with("token = \"1:a\"\n") && added.matches("[channels.webchat.main]").count() == 1,
            "{added}"
        );
    }

    #[test]
    fn a_bot_does_not_switch_off_the_channels_that_every_gateway_has() {
        let added = existing("[server]\n").with(None, BOT).unwrap();

        assert!(existing(&added).has("channels.webchat.main") && existing(&added).has("channels.webhook.default"));
    }

    #[test]
    fn a_section_that_is_there_is_found_however_it_is_written() {
        for text in [
            "[channels.telegram.main]\n",
            "[channels]\ntelegram = { main = {} }\n",
            "channels.telegram.main.token = \"1:a\"\n",
        ] {
            let error = existing(text).check_free("channels.telegram.main").unwrap_err().to_string();
            assert!(error.contains("already has [channels.telegram.main]"), "{error}");
            assert!(existing(text).check_free("channels.telegram.other").is_ok());
        }
    }

    #[test]
    fn where_sections_are_named_inline_the_operator_gets_the_lines() {
        let error = existing("channels = { telegram = {} }\n").with(None, BOT).unwrap_err().to_string();

        assert!(error.contains("nothing was written") && error.ends_with("token = \"1:a\""), "{error}");
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
}
