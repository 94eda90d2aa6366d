//! Bots that authenticate with a token: how `rejoinder init` asks for one, checks its token and writes its section.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use anyhow::Context;
use async_trait::async_trait;
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use futures_util::future::BoxFuture;
use rejoinder_config::IdFormat;
use reqwest::Client;
use secrecy::SecretString;
use url::Url;

use super::{
    check::{Decision, ask_people, decide, is_set, unless_rejected},
    platform::{Account, CheckError, Setup},
};
use crate::{
    client,
    console::{
        ask::Ask,
        command::command_line,
        failure::Failure,
        secret::{SecretLocation, SecretRead, is_empty, variable},
        toml::{toml_list, toml_text},
    },
};

pub(super) struct BotPlatform {
    /// The platform's name for people.
    pub(super) name: &'static str,
    /// The platform's name in the configuration and in options.
    pub(super) key: &'static str,
    pub(super) options: OptionNames,
    /// The default server of its API.
    pub(super) api_url: &'static str,
    /// The environment variable in which `init` looks for a token without being told to.
    pub(super) token_variable: &'static str,
    /// Where to get a token, for the question.
    pub(super) token_source: &'static str,
    /// Who issues tokens, for the help.
    pub(super) token_issuer: &'static str,
    /// What `--…-api-url` is for, for the help.
    pub(super) api: &'static str,
    /// An example of an `init` command line with a bot.
    pub(super) example: &'static str,
    /// The syntax of ids and usernames there.
    pub(super) id_format: IdFormat,
    /// Asks the platform which bot a token belongs to.
    pub(super) fetch_profile: FetchProfile,
}

/// The names of the options of `rejoinder init`.
pub(super) struct OptionNames {
    pub(super) token_env: &'static str,
    pub(super) token_file: &'static str,
    pub(super) allow: &'static str,
    pub(super) api_url: &'static str,
}

type FetchProfile = for<'a> fn(&'a Client, &'a Url, &'a SecretString) -> BoxFuture<'a, Result<Profile, CheckError>>;

/// A bot as its platform describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Profile {
    /// Its name and where to find it: one printable line.
    pub(super) introduction: String,
    /// What the operator should know and do. Ends with a line break.
    pub(super) advice: String,
}

#[derive(Clone)]
pub(super) struct BotOptions<'a> {
    pub(super) platform: &'a BotPlatform,
    pub(super) token_env: Option<String>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) allow: Vec<String>,
    pub(super) api_url: Option<Url>,
    /// Whether `init` may ask for what is missing.
    pub(super) may_ask: bool,
    /// Whether the platform is not asked about the token.
    pub(super) no_check: bool,
}

/// A bot to write into the configuration.
pub(super) struct ConnectedBot<'a> {
    platform: &'a BotPlatform,
    pub(super) token: SecretLocation,
    api_url: Option<Url>,
    allow: Vec<String>,
    /// Its profile, or why the token was not checked.
    pub(super) profile: Result<Profile, String>,
}

impl BotPlatform {
    /// The file in the data directory for a typed token.
    pub(super) fn token_file(&self) -> String {
        format!("{}-main-token", self.key)
    }

    /// The rest of an error that begins with an invalid entry.
    fn invalid_person_text(&self) -> String {
        format!("is not an id or username on {}", self.name)
    }

    pub(super) fn remark_on_api_url(&self, channel: &str, api_url: &Url) -> Option<String> {
        client::is_readable_on_the_way(api_url).then(|| {
            let key = self.key;
            format!(
                "channels.{key}.{channel}.api_url begins with http://: the token and all messages can be read on the way."
            )
        })
    }
}

#[async_trait(?Send)]
impl Setup for BotPlatform {
    fn options(&self) -> Vec<Arg> {
        let Self { name, token_issuer, api, options, .. } = self;
        let option = |name: &'static str, value: &'static str, help: String| {
            Arg::new(name).long(name).value_name(value).help(help)
        };
        vec![
            option(
                options.token_env,
                "NAME",
                format!("Environment variable that holds a {name} bot's token from {token_issuer}"),
            )
            .conflicts_with(options.token_file),
            option(options.token_file, "FILE", format!("File that holds a {name} bot's token"))
                .value_parser(value_parser!(PathBuf)),
            option(options.allow, "ID", "Id or username of a person who may write to it; can be repeated".to_owned())
                .action(ArgAction::Append),
            option(options.api_url, "URL", format!("URL of {api}")).value_parser(value_parser!(Url)),
        ]
    }

    fn example(&self) -> &'static str {
        self.example
    }

    async fn account_from_options(&self, matches: &ArgMatches) -> Result<Option<Account>, Failure> {
        BotOptions::of(self, matches).connect().await?.map(ConnectedBot::account).transpose()
    }

    async fn interview(
        &self,
        matches: &ArgMatches,
        terminal: &mut dyn Ask,
        data_dir: &Path,
    ) -> Result<Option<Account>, Failure> {
        let options = BotOptions::of(self, matches);
        let connected = options.interview(terminal, data_dir, variable(self.token_variable)).await?;
        connected.map(ConnectedBot::account).transpose()
    }
}

impl<'a> BotOptions<'a> {
    fn of(platform: &'a BotPlatform, matches: &ArgMatches) -> Self {
        let names = &platform.options;
        Self {
            platform,
            token_env: matches.get_one(names.token_env).cloned(),
            token_file: matches.get_one(names.token_file).cloned(),
            allow: matches.get_many(names.allow).into_iter().flatten().cloned().collect(),
            api_url: matches.get_one(names.api_url).cloned(),
            no_check: is_set(matches, "no_check"),
            may_ask: io::stdin().is_terminal()
                && !is_set(matches, "yes")
                && !matches.try_contains_id("agent").unwrap_or(false),
        }
    }

    /// The bot that the command line names, if any.
    pub(super) async fn connect(&self) -> Result<Option<ConnectedBot<'a>>, Failure> {
        let BotPlatform { name: platform, options, .. } = self.platform;
        let Some(token) = SecretLocation::from_options(self.token_env.as_deref(), self.token_file.as_deref())? else {
            // The dialogue uses them, too.
            if self.may_ask || (self.allow.is_empty() && self.api_url.is_none()) {
                return Ok(None);
            }
            let what = format!("the bot's token is missing: pass --{} or --{}", options.token_env, options.token_file);
            return Err(Failure::Usage(what));
        };
        let found = token.read("bot's token")?;
        if let Some(wrong) = self.allow.iter().find(|entry| !self.platform.id_format.may_be_person(entry)) {
            return Err(Failure::Usage(format!("{wrong:?} {}", self.platform.invalid_person_text())));
        }
        let checked = match found {
            SecretRead::Secret(_) if self.no_check => Err(CheckError::Unchecked("--no-check was given".to_owned())),
            SecretRead::Secret(token) => self.check(&token).await?,
            SecretRead::Missing(why) => Err(CheckError::Unchecked(why)),
        };
        let profile = unless_rejected(checked, &format!("the {platform} bot's token cannot be used"))?;
        Ok(Some(self.connected_bot(token, self.allow.clone(), profile)))
    }

    /// Asks for a bot. A typed token will be kept in `data_dir`. `found` is a token in the platform's usual variable.
    pub(super) async fn interview(
        &self,
        terminal: &mut dyn Ask,
        data_dir: &Path,
        found: Option<SecretString>,
    ) -> Result<Option<ConnectedBot<'a>>, Failure> {
        let (token, profile) = loop {
            let Some((token, location)) = self.ask_token(terminal, data_dir, found.as_ref())? else { return Ok(None) };
            match decide(terminal, self.platform.name, "token", async || self.check(&token).await).await? {
                Decision::Write(profile) => break (location, profile),
                Decision::Change => {}
                Decision::Skip => return Ok(None),
            }
        };
        if let Ok(profile) = &profile {
            terminal.say(&format!("This is {}.", profile.introduction))?;
        }
        let question = "Who may write to it? Ids or usernames, separated by spaces (empty: nobody yet; the bot gives you a code to be let in with):";
        let wrong = self.platform.invalid_person_text();
        let allow = ask_people(terminal, question, &self.platform.id_format, &wrong)?;
        Ok(Some(self.connected_bot(token, allow, profile)))
    }

    fn connected_bot(
        &self,
        token: SecretLocation,
        allow: Vec<String>,
        profile: Result<Profile, String>,
    ) -> ConnectedBot<'a> {
        ConnectedBot { platform: self.platform, token, api_url: self.api_url.clone(), allow, profile }
    }

    async fn check(&self, token: &SecretString) -> Result<Result<Profile, CheckError>, Failure> {
        let usual = || self.platform.api_url.parse().expect("a constant address");
        let api_url = self.api_url.clone().unwrap_or_else(usual);
        let http = client::http_client().with_context(|| format!("cannot ask {}", self.platform.name))?;
        Ok((self.platform.fetch_profile)(&http, &api_url, token).await)
    }

    /// `None` if the operator wants no bot.
    fn ask_token(
        &self,
        terminal: &mut dyn Ask,
        data_dir: &Path,
        found: Option<&SecretString>,
    ) -> Result<Option<(SecretString, SecretLocation)>, Failure> {
        let BotPlatform { name, token_variable, token_source, .. } = self.platform;
        if let Some(token) = found {
            let options = [
                format!("yes, with the token in {token_variable}"),
                "yes, with another token".to_owned(),
                "no".to_owned(),
            ];
            match terminal.pick(&format!("Connect a {name} bot?"), &options)? {
                0 => return Ok(Some((token.clone(), SecretLocation::Variable((*token_variable).to_owned())))),
                1 => {}
                _ => return Ok(None),
            }
        }
        let question = format!("Token of a {name} bot ({token_source}; not shown; empty: no bot):");
        let token = terminal.secret_or_nothing(&question)?;
        if is_empty(&token) {
            return Ok(None);
        }
        let location = SecretLocation::Typed(token.clone(), data_dir.join(self.platform.token_file()));
        Ok(Some((token, location)))
    }
}

impl ConnectedBot<'_> {
    fn account(self) -> Result<Account, Failure> {
        Ok(Account { section: self.section()?, closing_text: self.closing_text(), secrets: vec![self.token] })
    }

    /// Its configuration section, as TOML.
    pub(super) fn section(&self) -> Result<String, Failure> {
        let token = self.token.reference()?;
        let BotPlatform { name, key, .. } = self.platform;
        let mut text = format!("# A {name} bot: docs/{key}.md.\n[channels.{key}.main]\n");
        let _ = writeln!(text, "token = {token}");
        if let Some(api_url) = &self.api_url {
            let _ = writeln!(text, "api_url = {}", toml_text(api_url.as_str())?);
        }
        text.push_str(
            "# Who may write to it, by id or username. It gives others a code to be let in with: docs/people.md.\n",
        );
        let _ = writeln!(text, "allow_from = {}\n", toml_list(&self.allow)?);
        Ok(text)
    }

    /// What `init` prints about it at the end.
    pub(super) fn closing_text(&self) -> String {
        let name = self.platform.name;
        let mut text = String::new();
        match &self.profile {
            Ok(profile) => {
                let _ = write!(text, "The {name} bot is {}.\n{}", profile.introduction, profile.advice);
            }
            Err(why) => {
                let _ = writeln!(text, "The {name} bot's token was not checked: {why}.");
            }
        }
        text.push_str(&self.token.advice("token"));
        if self.allow.is_empty() {
            let approve = command_line("pairing approve", None);
            let _ = writeln!(
                text,
                "Nobody may write to it yet: send it a direct message, and run `{approve}` with the code that it gives you."
            );
        }
        text
    }
}
