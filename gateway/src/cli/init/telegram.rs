//! A Telegram bot: whose token it is, where it is kept, and what it means.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::Args;
use rejoinder_config::Telegram;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::{Ask, Failure, toml_text};
use crate::{
    cli::output::printable,
    gateway, secrets,
    wiring::{self, Bot, BotCheckError},
};

/// The variable that is looked at without being named.
const TOKEN_VARIABLE: &str = "TELEGRAM_BOT_TOKEN";

/// The file in the data directory that keeps a token that was typed in.
const TOKEN_FILE: &str = "telegram-main-token";

const API_URL: &str = "https://api.telegram.org";

#[derive(Debug, Args)]
#[command(next_help_heading = "Telegram")]
pub(super) struct TelegramArgs {
    /// The environment variable that holds a Telegram bot's token, as BotFather gave it
    #[arg(long = "telegram-token-env", value_name = "NAME", conflicts_with = "token_file")]
    token_env: Option<String>,
    /// The file that holds a Telegram bot's token
    #[arg(long = "telegram-token-file", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Who may write to the bot, by id or username; can be repeated
    #[arg(long = "telegram-allow", value_name = "ID")]
    allow: Vec<String>,
    /// Where the Bot API is, when it is not at api.telegram.org
    #[arg(long = "telegram-api-url", value_name = "URL")]
    api_url: Option<Url>,
}

/// Where the token is.
#[derive(Debug)]
enum TokenPlace {
    Variable(String),
    File(PathBuf),
    /// Typed in just now, and to be kept in this file.
    Typed(SecretString, PathBuf),
}

/// A bot that is to be written into the configuration.
#[derive(Debug)]
pub(super) struct Connected {
    token: TokenPlace,
    api_url: Option<Url>,
    allow: Vec<String>,
    /// Who it is, or why that is not known.
    bot: Result<Bot, String>,
}

/// What came of a token.
enum Checked {
    Known(Bot),
    /// It may be right: why nothing is known of it.
    Unsure(String),
    Wrong(String),
}

impl TelegramArgs {
    /// The bot that the command line names.
    ///
    /// # Errors
    /// When its token is nobody's.
    pub(super) async fn given(&self) -> Result<Option<Connected>, Failure> {
        let (token, found) = match (&self.token_env, &self.token_file) {
            (Some(name), _) => {
                let found = variable(name).ok_or_else(|| format!("{name} is not set here"));
                (TokenPlace::Variable(name.clone()), found)
            }
            (None, Some(path)) => {
                let path = std::path::absolute(path).context("the working directory is unknown")?;
                let read = std::fs::read_to_string(&path)
                    .with_context(|| format!("cannot read the bot's token from {}", path.display()))?;
                (TokenPlace::File(path), Ok(SecretString::from(read.trim())))
            }
            (None, None) if self.allow.is_empty() && self.api_url.is_none() => return Ok(None),
            (None, None) => {
                let what = "which bot? Say --telegram-token-env or --telegram-token-file";
                return Err(Failure::Usage(what.to_owned()));
            }
        };
        if !wiring::HAS_TELEGRAM {
            return Err(Failure::Usage("this build cannot talk to Telegram".to_owned()));
        }
        if let Some(wrong) = self.allow.iter().find(|entry| !Telegram::may_be_person(entry)) {
            return Err(Failure::Usage(format!("{wrong:?} is neither an id nor a username of Telegram's")));
        }
        let checked = match found {
            Ok(token) => self.check(&token).await?,
            Err(why) => Checked::Unsure(why),
        };
        let bot = match checked {
            Checked::Known(bot) => Ok(bot),
            Checked::Unsure(why) => Err(why),
            Checked::Wrong(why) => return Err(anyhow!("the bot's token cannot be used: {why}").into()),
        };
        Ok(Some(self.connected(token, self.allow.clone(), bot)))
    }

    /// Asks for a bot. What is typed in will be kept in `data_dir`; `found` is a token that is there already, in
    /// [`TOKEN_VARIABLE`].
    pub(super) async fn interview(
        &self,
        asked: &mut impl Ask,
        data_dir: &Path,
        found: Option<SecretString>,
    ) -> Result<Option<Connected>, Failure> {
        let (token, bot) = loop {
            let Some((token, place)) = ask_token(asked, data_dir, found.as_ref())? else { return Ok(None) };
            match self.check(&token).await? {
                Checked::Known(bot) => break (place, Ok(bot)),
                Checked::Wrong(why) => asked.say(&format!("{}. Nothing was written yet.", capital(&why)))?,
                Checked::Unsure(why) => {
                    let options = ["try again", "write it all the same", "leave Telegram out"].map(str::to_owned);
                    match asked.pick(&format!("{}, so the token was not checked.", capital(&why)), &options)? {
                        0 => {}
                        1 => break (place, Err(why)),
                        _ => return Ok(None),
                    }
                }
            }
        };
        if let Ok(bot) = &bot {
            asked.say(&format!("This is {}.", introduction(bot)))?;
        }
        let allow = ask_people(asked)?;
        Ok(Some(self.connected(token, allow, bot)))
    }

    fn connected(&self, token: TokenPlace, allow: Vec<String>, bot: Result<Bot, String>) -> Connected {
        Connected { token, api_url: self.api_url.clone(), allow, bot }
    }

    async fn check(&self, token: &SecretString) -> Result<Checked, Failure> {
        let usual = || API_URL.parse().expect("a constant address");
        let api_url = self.api_url.clone().unwrap_or_else(usual);
        let http = wiring::http_client().context("cannot ask Telegram")?;
        Ok(match wiring::check_bot(&http, &api_url, token).await {
            Ok(bot) => Checked::Known(bot),
            Err(BotCheckError::Wrong(why)) => Checked::Wrong(why),
            Err(BotCheckError::Unreachable(why)) => Checked::Unsure(why),
        })
    }
}

fn variable(name: &str) -> Option<SecretString> {
    let value = std::env::var(name).ok()?;
    Some(value.trim()).filter(|value| !value.is_empty()).map(SecretString::from)
}

/// The token that is offered without being typed in.
pub(super) fn found() -> Option<SecretString> {
    variable(TOKEN_VARIABLE)
}

/// `None`: no bot.
fn ask_token(
    asked: &mut impl Ask,
    data_dir: &Path,
    found: Option<&SecretString>,
) -> Result<Option<(SecretString, TokenPlace)>, Failure> {
    if let Some(token) = found {
        let options = [
            format!("yes, the one whose token is in {TOKEN_VARIABLE}"),
            "yes, another one".to_owned(),
            "no".to_owned(),
        ];
        match asked.pick("Connect a Telegram bot?", &options)? {
            0 => return Ok(Some((token.clone(), TokenPlace::Variable(TOKEN_VARIABLE.to_owned())))),
            1 => {}
            _ => return Ok(None),
        }
    }
    let question =
        "A Telegram bot's token (https://t.me/BotFather gives one for /newbot; it is not shown; empty: no bot):";
    let token = asked.secret_or_nothing(question)?;
    if token.expose_secret().is_empty() {
        return Ok(None);
    }
    let place = TokenPlace::Typed(token.clone(), data_dir.join(TOKEN_FILE));
    Ok(Some((token, place)))
}

fn ask_people(asked: &mut impl Ask) -> Result<Vec<String>, Failure> {
    loop {
        let question = "Who may write to it? Ids or usernames, with blanks between (empty: nobody yet; the bot tells you your id):";
        let answer = asked.line_or_nothing(question)?;
        let people: Vec<String> =
            answer.split([' ', ',']).filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
        match people.iter().find(|entry| !Telegram::may_be_person(entry)) {
            None => return Ok(people),
            Some(wrong) => {
                asked.say(&format!("{} is neither an id nor a username of Telegram's.", printable(wrong)))?;
            }
        }
    }
}

fn capital(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn introduction(bot: &Bot) -> String {
    format!("{} (@{}), at https://t.me/{}", printable(&bot.name), printable(&bot.username), printable(&bot.username))
}

/// What it sees in groups.
fn groups(bot: &Bot) -> &'static str {
    if !bot.can_join_groups {
        "It cannot be added to groups; /setjoingroups at BotFather changes that."
    } else if bot.reads_groups {
        "In groups it sees every message, since its privacy mode is off. It answers mentions, replies and commands; \
         group_policy changes that."
    } else {
        "In groups it sees commands, replies to it and mentions, and nothing else: that is privacy mode. To have it see \
         everything, say /setprivacy to BotFather and add it to the group again, or make it an administrator."
    }
}

impl Connected {
    /// Writes a token that was typed in to its file, which only its owner can read.
    pub(super) fn keep_token(&self) -> Result<(), Failure> {
        let TokenPlace::Typed(token, path) = &self.token else { return Ok(()) };
        let kept = path.parent().map_or(Ok(()), gateway::make_private_dir).map_err(anyhow::Error::new);
        kept?;
        Ok(secrets::keep(path, token).with_context(|| format!("cannot write {}", path.display()))?)
    }

    /// Its section of the configuration.
    pub(super) fn section(&self) -> Result<String, Failure> {
        let file = |path: &Path| {
            let path = path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?;
            Ok::<_, Failure>(format!("{{ file = {} }}", toml_text(path)?))
        };
        let token = match &self.token {
            TokenPlace::Variable(name) => format!("{{ env = {} }}", toml_text(name)?),
            TokenPlace::File(path) | TokenPlace::Typed(_, path) => file(path)?,
        };
        let mut text = "# A Telegram bot: docs/telegram.md.\n[channels.telegram.main]\n".to_owned();
        let _ = writeln!(text, "token = {token}");
        if let Some(api_url) = &self.api_url {
            let _ = writeln!(text, "api_url = {}", toml_text(api_url.as_str())?);
        }
        let people = self.allow.iter().map(|entry| toml_text(entry)).collect::<Result<Vec<_>, _>>()?;
        let _ = writeln!(
            text,
            "# Who may write to it, by id or username. While it is empty, the bot tells whoever writes their id.\n\
             allow_from = [{}]\n",
            people.join(", ")
        );
        Ok(text)
    }

    /// What whoever wrote it should know.
    pub(super) fn farewell(&self) -> String {
        let mut text = String::new();
        match &self.bot {
            Ok(bot) => {
                let _ = writeln!(text, "The Telegram bot is {}.\n{}", introduction(bot), groups(bot));
            }
            Err(why) => {
                let _ = writeln!(text, "The Telegram bot's token was not checked: {why}.");
            }
        }
        match &self.token {
            TokenPlace::Typed(_, path) => {
                let _ = writeln!(text, "Its token is kept in {}.", path.display());
            }
            TokenPlace::Variable(name) if variable(name).is_none() => {
                let _ = writeln!(text, "Set {name} to its token before you start.");
            }
            TokenPlace::Variable(_) | TokenPlace::File(_) => {}
        }
        if self.allow.is_empty() {
            text.push_str("Nobody may write to it yet: write to it, and it tells you the id to put into allow_from.\n");
        }
        text
    }
}

#[cfg(all(test, feature = "telegram"))]
mod tests {
    use std::collections::VecDeque;

    use axum::{Json, Router, http::StatusCode, response::IntoResponse};
    use rejoinder_config::{Config, Environment, Options};
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;
    use crate::cli::init::{Choice, configuration};

    const TOKEN: &str = "123456:abc_DEF-1";

    /// Somebody who answers as was written down before.
    #[derive(Default)]
    struct Script {
        answers: VecDeque<String>,
        told: String,
    }

    impl Script {
        fn of(answers: &[&str]) -> Self {
            Self { answers: answers.iter().map(ToString::to_string).collect(), told: String::new() }
        }
    }

    impl Ask for Script {
        fn say(&mut self, text: &str) -> Result<(), Failure> {
            self.told.push_str(text);
            self.told.push('\n');
            Ok(())
        }

        fn line_or_nothing(&mut self, question: &str) -> Result<String, Failure> {
            self.say(question)?;
            Ok(self.answers.pop_front().unwrap_or_else(|| panic!("nothing is left to answer: {}", self.told)))
        }

        fn secret_or_nothing(&mut self, question: &str) -> Result<SecretString, Failure> {
            self.line_or_nothing(question).map(SecretString::from)
        }
    }

    /// A Bot API with this one bot; its address.
    async fn telegram() -> Url {
        let get_me = async |uri: axum::http::Uri| {
            if uri.path() == format!("/bot{TOKEN}/GetMe") || uri.path() == format!("/bot{TOKEN}/getMe") {
                let me = json!({
                    "id": 123_456, "is_bot": true, "first_name": "Ada's bot", "username": "ada_bot",
                    "can_join_groups": true, "can_read_all_group_messages": false,
                });
                Json(json!({ "ok": true, "result": me })).into_response()
            } else {
                let refused = json!({ "ok": false, "error_code": 401, "description": "Unauthorized" });
                (StatusCode::UNAUTHORIZED, Json(refused)).into_response()
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(get_me)).await });
        format!("http://{address}").parse().unwrap()
    }

    /// Where nobody is.
    async fn nowhere() -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap()).parse().unwrap()
    }

    fn arguments(api_url: Url) -> TelegramArgs {
        TelegramArgs { token_env: None, token_file: None, allow: Vec::new(), api_url: Some(api_url) }
    }

    /// What the gateway reads of what was written.
    fn loaded(bot: &Connected) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejoinder.toml");
        std::fs::write(&path, configuration(&Choice::FrontDesk, Some(bot)).unwrap()).unwrap();
        let environment = Environment::from_iter([("SOME_TOKEN", TOKEN)]);
        rejoinder_config::load(&Options { path: Some(path), working_dir: folder.path().to_owned(), environment })
            .unwrap()
            .config
    }

    #[tokio::test]
    async fn a_token_that_is_typed_in_is_checked_and_kept_to_its_owner() {
        let (arguments, data) = (arguments(telegram().await), tempfile::tempdir().unwrap());
        let mut script = Script::of(&[TOKEN, "@ada_l, 42"]);

        let bot = arguments.interview(&mut script, &data.path().join("new"), None).await.unwrap().unwrap();
        bot.keep_token().unwrap();

        assert!(script.told.contains("This is Ada's bot (@ada_bot), at https://t.me/ada_bot."), "{}", script.told);
        let config = loaded(&bot);
        let written = &config.channels.telegram["main"];
        assert_eq!(written.token.get().expose_secret(), TOKEN);
        assert_eq!(written.allow_from.iter().collect::<Vec<_>>(), ["@ada_l", "42"]);
        assert!(config.channels.webhook.contains_key("default") && config.channels.webchat.contains_key("main"));
        assert!(!bot.section().unwrap().contains(TOKEN) && !bot.farewell().contains(TOKEN));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let file = data.path().join("new").join(TOKEN_FILE);
            assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[tokio::test]
    async fn a_wrong_token_is_said_and_asked_for_again() {
        let (arguments, data) = (arguments(telegram().await), tempfile::tempdir().unwrap());
        let mut script = Script::of(&["my token", "123456:revoked", TOKEN, ""]);

        let bot = arguments.interview(&mut script, data.path(), None).await.unwrap().unwrap();

        assert!(script.told.contains("This does not look like a token"), "{}", script.told);
        assert!(script.told.contains("Telegram does not know this token. Nothing was written"), "{}", script.told);
        assert!(bot.bot.is_ok());
        assert!(bot.farewell().contains("Nobody may write to it yet"), "{}", bot.farewell());
    }

    #[tokio::test]
    async fn without_telegram_it_can_be_written_all_the_same() {
        let (arguments, data) = (arguments(nowhere().await), tempfile::tempdir().unwrap());
        let mut script = Script::of(&[TOKEN, "1", TOKEN, "2", "a b", "@ada_l"]);

        let bot = arguments.interview(&mut script, data.path(), None).await.unwrap().unwrap();

        assert!(script.told.contains("Telegram cannot be reached"), "{}", script.told);
        assert!(script.told.contains("a is neither an id nor a username"), "{}", script.told);
        assert!(bot.farewell().contains("was not checked"), "{}", bot.farewell());
        assert!(!script.told.contains(TOKEN) && !bot.farewell().contains(TOKEN));
        let mut script = Script::of(&[TOKEN, "3"]);
        assert!(arguments.interview(&mut script, data.path(), None).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn no_token_is_no_bot() {
        let (arguments, data) = (arguments(nowhere().await), tempfile::tempdir().unwrap());

        assert!(arguments.interview(&mut Script::of(&[""]), data.path(), None).await.unwrap().is_none());
        assert!(std::fs::read_dir(data.path()).unwrap().next().is_none());
    }

    #[tokio::test]
    async fn a_token_that_is_there_already_is_offered() {
        let (arguments, data) = (arguments(telegram().await), tempfile::tempdir().unwrap());
        let taken = async |answers: &[&str]| {
            arguments.interview(&mut Script::of(answers), data.path(), Some(TOKEN.into())).await.unwrap()
        };

        let bot = taken(&["1", ""]).await.unwrap();

        assert!(bot.section().unwrap().contains("token = { env = \"TELEGRAM_BOT_TOKEN\" }"));
        assert!(matches!(taken(&["2", TOKEN, ""]).await.unwrap().token, TokenPlace::Typed(..)));
        assert!(taken(&["3"]).await.is_none());
    }

    #[tokio::test]
    async fn a_script_names_the_file_that_holds_the_token() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("token");
        let given = async |token: &str| {
            std::fs::write(&file, format!("{token}\n")).unwrap();
            let arguments = TelegramArgs {
                token_file: Some(file.clone()),
                allow: vec!["42".to_owned()],
                ..arguments(telegram().await)
            };
            arguments.given().await
        };

        let refused = given("123456:revoked").await.unwrap_err().to_string();
        let bot = given(TOKEN).await.unwrap().unwrap();

        let written = &loaded(&bot).channels.telegram["main"];
        assert_eq!(written.token.get().expose_secret(), TOKEN);
        assert!(bot.farewell().contains("privacy mode"), "{}", bot.farewell());
        assert!(refused.contains("Telegram does not know this token") && !refused.contains("revoked"), "{refused}");
    }

    #[tokio::test]
    async fn a_variable_that_is_not_set_yet_is_written_and_said() {
        let arguments = TelegramArgs { token_env: Some("SOME_TOKEN".into()), ..arguments(nowhere().await) };

        let bot = arguments.given().await.unwrap().unwrap();

        assert!(bot.section().unwrap().contains("token = { env = \"SOME_TOKEN\" }"));
        assert!(bot.farewell().contains("Set SOME_TOKEN to its token before you start."), "{}", bot.farewell());
        assert_eq!(loaded(&bot).channels.telegram.len(), 1);
    }

    #[tokio::test]
    async fn what_belongs_to_no_bot_or_to_nobody_is_a_wrong_call() {
        let none = TelegramArgs { allow: vec!["42".into()], ..arguments(nowhere().await) };
        let nobody = TelegramArgs {
            token_env: Some("SOME_TOKEN".into()),
            allow: vec!["Ada Lovelace".into()],
            ..arguments(nowhere().await)
        };

        for arguments in [none, nobody] {
            assert!(matches!(arguments.given().await, Err(Failure::Usage(_))));
        }
    }

    #[test]
    fn what_it_sees_in_groups_is_said() {
        let bot = |can_join_groups, reads_groups| {
            groups(&Bot { name: String::new(), username: String::new(), can_join_groups, reads_groups })
        };

        assert!(bot(true, false).contains("privacy mode") && bot(true, false).contains("/setprivacy"));
        assert!(bot(true, true).contains("every message"));
        assert!(bot(false, false).contains("/setjoingroups"));
    }
}
