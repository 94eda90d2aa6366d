//! Bots that authenticate with a token: how `rejoinder init` asks for one, checks its token and writes its section.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use futures_util::{FutureExt, future::BoxFuture, future::LocalBoxFuture};
use rejoinder_config::Looks;
use reqwest::Client;
use secrecy::SecretString;
use url::Url;

use super::{Account, CheckError, Setup};
use crate::{
    client,
    console::{
        ask::Ask,
        failure::Failure,
        output::{capital, printable},
        secret::{Read, SecretPlace, is_empty, variable},
        toml::toml_text,
    },
};

/// A platform on which bots have tokens.
pub(super) struct Bots {
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
    pub(super) token_giver: &'static str,
    /// What `--…-api-url` is for, for the help.
    pub(super) api: &'static str,
    /// An example of an `init` command line with a bot.
    pub(super) example: &'static str,
    /// The syntax of ids and usernames there.
    pub(super) looks: Looks,
    /// Asks the platform which bot a token belongs to.
    pub(super) look_up: LookUp,
}

/// The names of the options of `rejoinder init`.
pub(super) struct OptionNames {
    pub(super) token_env: &'static str,
    pub(super) token_file: &'static str,
    pub(super) allow: &'static str,
    pub(super) api_url: &'static str,
}

type LookUp = for<'a> fn(&'a Client, &'a Url, &'a SecretString) -> BoxFuture<'a, Result<Profile, CheckError>>;

/// A bot as its platform describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Profile {
    /// Its name and where to find it: one printable line.
    pub(super) introduction: String,
    /// What the operator should know and do. Ends with a line break.
    pub(super) advice: String,
}

/// The options about a bot.
#[derive(Clone)]
pub(super) struct Given<'a> {
    pub(super) platform: &'a Bots,
    pub(super) token_env: Option<String>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) allow: Vec<String>,
    pub(super) api_url: Option<Url>,
}

/// A bot to write into the configuration.
pub(super) struct Connected<'a> {
    platform: &'a Bots,
    pub(super) token: SecretPlace,
    api_url: Option<Url>,
    allow: Vec<String>,
    /// Its profile, or why the token was not checked.
    pub(super) profile: Result<Profile, String>,
}

/// The result of checking a token.
enum Checked {
    Known(Profile),
    /// The token could not be checked. Holds the reason.
    Unsure(String),
    Wrong(String),
}

impl Bots {
    /// The file in the data directory for a typed token.
    pub(super) fn token_file(&self) -> String {
        format!("{}-main-token", self.key)
    }

    /// A token in the platform's usual variable.
    pub(super) fn found(&self) -> Option<SecretString> {
        variable(self.token_variable)
    }

    /// The rest of an error that begins with an invalid entry.
    fn is_nobody(&self) -> String {
        format!("is not an id or username on {}", self.name)
    }

    fn usual_api_url(&self) -> Url {
        self.api_url.parse().expect("a constant address")
    }
}

impl Setup for Bots {
    fn options(&self) -> Vec<Arg> {
        let Self { name, token_giver, api, options, .. } = self;
        let option = |name: &'static str, value: &'static str, help: String| {
            Arg::new(name).long(name).value_name(value).help(help)
        };
        vec![
            option(
                options.token_env,
                "NAME",
                format!("Environment variable that holds a {name} bot's token from {token_giver}"),
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

    fn given<'a>(&'a self, said: &'a ArgMatches) -> LocalBoxFuture<'a, Result<Option<Account>, Failure>> {
        async { Given::of(self, said).connect().await?.map(Connected::account).transpose() }.boxed_local()
    }

    fn interview<'a>(
        &'a self,
        said: &'a ArgMatches,
        asked: &'a mut dyn Ask,
        data_dir: &'a Path,
    ) -> LocalBoxFuture<'a, Result<Option<Account>, Failure>> {
        async move {
            let given = Given::of(self, said);
            let connected = given.interview(asked, data_dir, self.found()).await?;
            connected.map(Connected::account).transpose()
        }
        .boxed_local()
    }
}

impl<'a> Given<'a> {
    fn of(platform: &'a Bots, said: &ArgMatches) -> Self {
        let names = &platform.options;
        Self {
            platform,
            token_env: said.get_one(names.token_env).cloned(),
            token_file: said.get_one(names.token_file).cloned(),
            allow: said.get_many(names.allow).into_iter().flatten().cloned().collect(),
            api_url: said.get_one(names.api_url).cloned(),
        }
    }

    /// The bot that the command line names, if any.
    ///
    /// # Errors
    /// When the options are wrong, or the platform rejects the token.
    pub(super) async fn connect(&self) -> Result<Option<Connected<'a>>, Failure> {
        let Bots { name: platform, options, .. } = self.platform;
        let Some(token) = SecretPlace::given(self.token_env.as_deref(), self.token_file.as_deref())? else {
            if self.allow.is_empty() && self.api_url.is_none() {
                return Ok(None);
            }
            let what = format!("the bot's token is missing: pass --{} or --{}", options.token_env, options.token_file);
            return Err(Failure::Usage(what));
        };
        let found = token.read("bot's token")?;
        if let Some(wrong) = self.allow.iter().find(|entry| !self.platform.looks.may_be_person(entry)) {
            return Err(Failure::Usage(format!("{wrong:?} {}", self.platform.is_nobody())));
        }
        let checked = match found {
            Read::Secret(token) => self.check(&token).await?,
            Read::Missing(why) => Checked::Unsure(why),
        };
        let profile = match checked {
            Checked::Known(profile) => Ok(profile),
            Checked::Unsure(why) => Err(why),
            Checked::Wrong(why) => return Err(anyhow!("the {platform} bot's token cannot be used: {why}").into()),
        };
        Ok(Some(self.connected(token, self.allow.clone(), profile)))
    }

    /// Asks for a bot. A typed token will be kept in `data_dir`. `found` is a token in the platform's usual variable.
    pub(super) async fn interview(
        &self,
        asked: &mut dyn Ask,
        data_dir: &Path,
        found: Option<SecretString>,
    ) -> Result<Option<Connected<'a>>, Failure> {
        let (token, profile) = loop {
            let Some((token, place)) = self.ask_token(asked, data_dir, found.as_ref())? else { return Ok(None) };
            match self.check(&token).await? {
                Checked::Known(profile) => break (place, Ok(profile)),
                Checked::Wrong(why) => asked.say(&format!("{}. Nothing was written yet.", capital(&why)))?,
                Checked::Unsure(why) => {
                    let leave = format!("skip {}", self.platform.name);
                    let options = ["try again".to_owned(), "write it anyway".to_owned(), leave];
                    match asked.pick(&format!("{}, so the token was not checked.", capital(&why)), &options)? {
                        0 => {}
                        1 => break (place, Err(why)),
                        _ => return Ok(None),
                    }
                }
            }
        };
        if let Ok(profile) = &profile {
            asked.say(&format!("This is {}.", profile.introduction))?;
        }
        let allow = self.ask_people(asked)?;
        Ok(Some(self.connected(token, allow, profile)))
    }

    fn connected(&self, token: SecretPlace, allow: Vec<String>, profile: Result<Profile, String>) -> Connected<'a> {
        Connected { platform: self.platform, token, api_url: self.api_url.clone(), allow, profile }
    }

    async fn check(&self, token: &SecretString) -> Result<Checked, Failure> {
        let api_url = self.api_url.clone().unwrap_or_else(|| self.platform.usual_api_url());
        let http = client::http_client().with_context(|| format!("cannot ask {}", self.platform.name))?;
        Ok(match (self.platform.look_up)(&http, &api_url, token).await {
            Ok(profile) => Checked::Known(profile),
            Err(CheckError::Wrong(why)) => Checked::Wrong(why),
            Err(CheckError::Unreachable(why)) => Checked::Unsure(why),
        })
    }

    /// `None` if the operator wants no bot.
    fn ask_token(
        &self,
        asked: &mut dyn Ask,
        data_dir: &Path,
        found: Option<&SecretString>,
    ) -> Result<Option<(SecretString, SecretPlace)>, Failure> {
        let Bots { name, token_variable, token_source, .. } = self.platform;
        if let Some(token) = found {
            let options = [
                format!("yes, with the token in {token_variable}"),
                "yes, with another token".to_owned(),
                "no".to_owned(),
            ];
            match asked.pick(&format!("Connect a {name} bot?"), &options)? {
                0 => return Ok(Some((token.clone(), SecretPlace::Variable((*token_variable).to_owned())))),
                1 => {}
                _ => return Ok(None),
            }
        }
        let question = format!("Token of a {name} bot ({token_source}; not shown; empty: no bot):");
        let token = asked.secret_or_nothing(&question)?;
        if is_empty(&token) {
            return Ok(None);
        }
        let place = SecretPlace::Typed(token.clone(), data_dir.join(self.platform.token_file()));
        Ok(Some((token, place)))
    }

    fn ask_people(&self, asked: &mut dyn Ask) -> Result<Vec<String>, Failure> {
        loop {
            let question = "Who may write to it? Ids or usernames, separated by spaces (empty: nobody yet; the bot tells you your id):";
            let answer = asked.line_or_nothing(question)?;
            let people: Vec<String> =
                answer.split([' ', ',']).filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
            match people.iter().find(|entry| !self.platform.looks.may_be_person(entry)) {
                None => return Ok(people),
                Some(wrong) => asked.say(&format!("{} {}.", printable(wrong), self.platform.is_nobody()))?,
            }
        }
    }
}

impl Connected<'_> {
    fn account(self) -> Result<Account, Failure> {
        Ok(Account { section: self.section()?, farewell: self.farewell(), secrets: vec![self.token] })
    }

    /// Its configuration section, as TOML.
    pub(super) fn section(&self) -> Result<String, Failure> {
        let token = self.token.reference()?;
        let Bots { name, key, .. } = self.platform;
        let mut text = format!("# A {name} bot: docs/{key}.md.\n[channels.{key}.main]\n");
        let _ = writeln!(text, "token = {token}");
        if let Some(api_url) = &self.api_url {
            let _ = writeln!(text, "api_url = {}", toml_text(api_url.as_str())?);
        }
        let people = self.allow.iter().map(|entry| toml_text(entry)).collect::<Result<Vec<_>, _>>()?;
        let _ = writeln!(
            text,
            "# Who may write to it, by id or username. While it is empty, the bot tells people their id.\n\
             allow_from = [{}]\n",
            people.join(", ")
        );
        Ok(text)
    }

    /// What `init` prints about it at the end.
    pub(super) fn farewell(&self) -> String {
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
            text.push_str("Nobody may write to it yet: send it a message, and it tells you the id for allow_from.\n");
        }
        text
    }
}
