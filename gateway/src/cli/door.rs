//! Where the web chat of the running gateway is, and what opens it.

use std::{io, path::PathBuf};

use anyhow::{Context, anyhow};
use rejoinder_config::{Config, TokenValue};
use rejoinder_terminal::{Conversation, Door};
use rejoinder_webchat::{AccessKind, WebchatSection};
use secrecy::SecretString;

use super::{global::Global, running};
use crate::{console::failure::Failure, gateway::url_of, secrets};

/// The name of the chat that is used if none is named.
const MAIN: &str = "main";

/// A web chat of the gateway that runs with this configuration and data directory.
struct Webchat {
    global: Global,
    config: Config,
    data_dir: PathBuf,
    name: String,
    token: Option<SecretString>,
}

/// Finds the chat with this name, and its token. Calls nothing yet.
pub(super) fn find(global: &Global, chat: Option<&str>) -> Result<Box<dyn Door>, Failure> {
    let config = global.load()?.config;
    let data_dir = global.data_dir()?;
    let chats: Vec<_> = config.channels.of::<WebchatSection>().map(|(name, _)| name).collect();
    let name = chosen(&chats, chat).map_err(|why| anyhow!("{why}"))?.to_owned();
    let mut webchat = Webchat { global: global.clone(), config, data_dir, name, token: None };
    // Before the token: the first start makes one, and what says that no gateway runs is the better advice.
    webchat.url()?;
    webchat.token = webchat.read_token()?;
    Ok(Box::new(webchat))
}

impl Door for Webchat {
    fn url(&self) -> Result<String, Failure> {
        running::check_runs(&self.global, &self.config, &self.data_dir)?;
        let url = match self.config.admin.listen {
            // The address that a running gateway writes down is that of its admin interface.
            Some(_) if self.config.server.listen.port() != 0 => url_of(self.config.server.listen),
            Some(_) => {
                let why = "config key `server.listen` has port 0, so only the gateway knows where its web chat is: name a port";
                return Err(anyhow!(why).into());
            }
            None => running::find_url(&self.global, &self.config, &self.data_dir)?,
        };
        Ok(format!("{}/chat/{}/ws", url.replacen("http", "ws", 1), self.name))
    }

    fn token(&self) -> Option<&SecretString> {
        self.token.as_ref()
    }

    fn conversation(&self, which: Conversation) -> Result<SecretString, Failure> {
        if which == Conversation::Passing {
            return Ok(secrets::new_token().context("cannot make a conversation's id")?);
        }
        let file = format!("terminal-{}-conversation", self.name);
        let kept = || -> io::Result<SecretString> {
            if which == Conversation::Renewed {
                let id = secrets::new_token()?;
                secrets::write(&self.data_dir.join(&file), &id)?;
                return Ok(id);
            }
            secrets::read_or_create(&self.data_dir, &file).map(|kept| kept.token)
        };
        Ok(kept()
            .with_context(|| format!("cannot keep the conversation in {}", self.data_dir.join(&file).display()))?)
    }

    fn history(&self) -> PathBuf {
        self.data_dir.join(format!("terminal-{}-history", self.name))
    }
}

impl Webchat {
    fn read_token(&self) -> Result<Option<SecretString>, Failure> {
        let section = self.config.channels.of::<WebchatSection>().find(|(name, _)| *name == self.name);
        let section = section.map(|(_, section)| section).filter(|section| section.access == AccessKind::Token);
        let Some(token) = section.and_then(|section| section.token.as_ref()) else { return Ok(None) };
        if let TokenValue::Configured(secret) = &token.current {
            return Ok(Some(secret.get().clone()));
        }
        let file = format!("chat-{}-token", self.name);
        let read = secrets::read(&self.data_dir, &file);
        let read = read.with_context(|| format!("cannot read the token {}", self.data_dir.join(&file).display()))?;
        Ok(Some(
            read.ok_or_else(|| anyhow!("{} does not exist: start the gateway", self.data_dir.join(file).display()))?,
        ))
    }
}

/// The chat to use, of the configured ones.
fn chosen<'a>(chats: &[&'a str], wanted: Option<&str>) -> Result<&'a str, String> {
    if chats.is_empty() {
        let name = wanted.unwrap_or(MAIN);
        return Err(format!(
            "no web chat is configured, and the terminal is a client of one: add [channels.webchat.{name}] to the configuration"
        ));
    }
    let find = |name: &str| chats.iter().find(|chat| **chat == name).copied();
    match (wanted, chats) {
        (Some(name), _) => find(name).ok_or_else(|| {
            format!("config key `channels.webchat.{name}` does not exist; there is {}", chats.join(", "))
        }),
        (None, [only]) => Ok(only),
        (None, _) => find(MAIN)
            .ok_or_else(|| format!("there are several web chats: pass --chat with one of {}", chats.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&["main", "other"], None, Ok("main"))]
    #[case(&["desk"], None, Ok("desk"))]
    #[case(&["desk", "main"], Some("desk"), Ok("desk"))]
    #[case(&[], None, Err("add [channels.webchat.main]"))]
    #[case(&["main"], Some("desk"), Err("`channels.webchat.desk` does not exist; there is main"))]
    #[case(&["a", "b"], None, Err("pass --chat with one of a, b"))]
    fn a_chat_is_chosen(#[case] chats: &[&str], #[case] wanted: Option<&str>, #[case] expected: Result<&str, &str>) {
        match (chosen(chats, wanted), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
            (found, _) => panic!("{found:?}"),
        }
    }
}
