//! Scripted answers for tests of `init`, and helpers that read what it writes.

use std::collections::VecDeque;

use rejoinder_config::{Config, Environment};
use secrecy::SecretString;
use tokio::net::TcpListener;
use url::Url;

use super::{AgentChoice, configuration};
use crate::{
    console::{ask::Ask, failure::Failure},
    wiring::tests::load,
};

/// Gives prepared answers in order, and records what it was asked and told.
#[derive(Default)]
pub(crate) struct Script {
    answers: VecDeque<String>,
    pub(crate) output: String,
}

impl Script {
    pub(crate) fn of(answers: &[&str]) -> Self {
        Self { answers: answers.iter().map(ToString::to_string).collect(), output: String::new() }
    }
}

impl Ask for Script {
    fn say(&mut self, text: &str) -> Result<(), Failure> {
        self.output.push_str(text);
        self.output.push('\n');
        Ok(())
    }

    fn line_or_nothing(&mut self, question: &str) -> Result<String, Failure> {
        self.say(question)?;
        Ok(self.answers.pop_front().unwrap_or_else(|| panic!("the script has no answer left: {}", self.output)))
    }

    fn secret_or_nothing(&mut self, question: &str) -> Result<SecretString, Failure> {
        self.line_or_nothing(question).map(SecretString::from)
    }
}

/// The URL of a port where nothing listens.
pub(crate) async fn unused_url() -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap()).parse().unwrap()
}

/// Loads a written section, with `token` in the variable SOME_TOKEN.
pub(crate) fn load_section(section: &str, token: &str) -> Config {
    let text = configuration(&AgentChoice::FrontDesk.section().unwrap(), section);
    load(&text, Environment::from_iter([("SOME_TOKEN", token)])).unwrap()
}
