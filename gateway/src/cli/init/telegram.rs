//! A Telegram bot.

use std::path::PathBuf;

use clap::Args;
use rejoinder_config::Telegram;
use url::Url;

use super::bot::{Given, Platform, Profile};
use crate::{
    cli::bots,
    wiring::{self, TelegramBot},
};

pub(super) static TELEGRAM: Platform = Platform {
    name: "Telegram",
    key: "telegram",
    is_built: wiring::HAS_TELEGRAM,
    api_url: "https://api.telegram.org",
    token_variable: "TELEGRAM_BOT_TOKEN",
    token_source: "https://t.me/BotFather gives one for /newbot",
    may_be_person: Telegram::may_be_person,
    look_up: |http, api_url, token| {
        Box::pin(async move { wiring::check_telegram(http, api_url, token).await.map(|bot| profile(&bot)) })
    },
};

#[derive(Debug, Args)]
#[command(next_help_heading = "Telegram")]
pub(super) struct TelegramArgs {
    /// The environment variable that holds a Telegram bot's token, as BotFather gave it
    #[arg(
        id = "telegram_token_env",
        long = "telegram-token-env",
        value_name = "NAME",
        conflicts_with = "telegram_token_file"
    )]
    token_env: Option<String>,
    /// The file that holds a Telegram bot's token
    #[arg(id = "telegram_token_file", long = "telegram-token-file", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Who may write to the bot, by id or username; can be repeated
    #[arg(id = "telegram_allow", long = "telegram-allow", value_name = "ID")]
    allow: Vec<String>,
    /// Where the Bot API is, when it is not at api.telegram.org
    #[arg(id = "telegram_api_url", long = "telegram-api-url", value_name = "URL")]
    api_url: Option<Url>,
}

impl TelegramArgs {
    pub(super) fn given(&self) -> Given<'_> {
        Given {
            platform: &TELEGRAM,
            token_env: self.token_env.as_deref(),
            token_file: self.token_file.as_deref(),
            allow: &self.allow,
            api_url: self.api_url.as_ref(),
        }
    }
}

fn profile(bot: &TelegramBot) -> Profile {
    Profile { introduction: bots::telegram(bot), advice: format!("{}\n", bots::telegram_in_groups(bot)) }
}

#[cfg(all(test, feature = "telegram"))]
mod tests {
    use axum::{Json, Router, http::StatusCode, response::IntoResponse};
    use secrecy::ExposeSecret;
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;
    use crate::cli::init::{
        Failure,
        script::{Script, loaded, nowhere},
        secret::SecretPlace,
    };

    const TOKEN: &str = "123456:abc_DEF-1";

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

    fn arguments(api_url: Url) -> TelegramArgs {
        TelegramArgs { token_env: None, token_file: None, allow: Vec::new(), api_url: Some(api_url) }
    }

    #[tokio::test]
    async fn a_token_that_is_typed_in_is_checked_and_kept_to_its_owner() {
        let (arguments, data) = (arguments(telegram().await), tempfile::tempdir().unwrap());
        let mut script = Script::of(&[TOKEN, "@ada_l, 42"]);

        let bot = arguments.given().interview(&mut script, &data.path().join("new"), None).await.unwrap().unwrap();
        bot.keep_token().unwrap();

        assert!(script.told.contains("This is Ada's bot (@ada_bot), at https://t.me/ada_bot."), "{}", script.told);
        let config = loaded(&bot, TOKEN);
        let written = &config.channels.telegram["main"];
        assert_eq!(written.token.get().expose_secret(), TOKEN);
        assert_eq!(written.allow_from.iter().collect::<Vec<_>>(), ["@ada_l", "42"]);
        assert!(config.channels.webhook.contains_key("default") && config.channels.webchat.contains_key("main"));
        assert!(!bot.section().unwrap().contains(TOKEN) && !bot.farewell().contains(TOKEN));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let file = data.path().join("new").join(TELEGRAM.token_file());
            assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[tokio::test]
    async fn a_wrong_token_is_said_and_asked_for_again() {
        let (arguments, data) = (arguments(telegram().await), tempfile::tempdir().unwrap());
        let mut script = Script::of(&["my token", "123456:revoked", TOKEN, ""]);

        let bot = arguments.given().interview(&mut script, data.path(), None).await.unwrap().unwrap();

        assert!(script.told.contains("This does not look like a token"), "{}", script.told);
        assert!(script.told.contains("Telegram does not know this token. Nothing was written"), "{}", script.told);
        assert!(bot.profile.is_ok());
        assert!(bot.farewell().contains("Nobody may write to it yet"), "{}", bot.farewell());
    }

    #[tokio::test]
    async fn without_telegram_it_can_be_written_all_the_same() {
        let (arguments, data) = (arguments(nowhere().await), tempfile::tempdir().unwrap());
        let mut script = Script::of(&[TOKEN, "1", TOKEN, "2", "a b", "@ada_l"]);

        let bot = arguments.given().interview(&mut script, data.path(), None).await.unwrap().unwrap();

        assert!(script.told.contains("Telegram cannot be reached"), "{}", script.told);
        assert!(script.told.contains("a is neither an id nor a username"), "{}", script.told);
        assert!(bot.farewell().contains("was not checked"), "{}", bot.farewell());
        assert!(!script.told.contains(TOKEN) && !bot.farewell().contains(TOKEN));
        let mut script = Script::of(&[TOKEN, "3"]);
        assert!(arguments.given().interview(&mut script, data.path(), None).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn no_token_is_no_bot() {
        let (arguments, data) = (arguments(nowhere().await), tempfile::tempdir().unwrap());

        assert!(arguments.given().interview(&mut Script::of(&[""]), data.path(), None).await.unwrap().is_none());
        assert!(std::fs::read_dir(data.path()).unwrap().next().is_none());
    }

    #[tokio::test]
    async fn a_token_that_is_there_already_is_offered() {
        let (arguments, data) = (arguments(telegram().await), tempfile::tempdir().unwrap());
        let taken = async |answers: &[&str]| {
            arguments.given().interview(&mut Script::of(answers), data.path(), Some(TOKEN.into())).await.unwrap()
        };

        let bot = taken(&["1", ""]).await.unwrap();

        assert!(bot.section().unwrap().contains("token = { env = \"TELEGRAM_BOT_TOKEN\" }"));
        assert!(matches!(taken(&["2", TOKEN, ""]).await.unwrap().token, SecretPlace::Typed(..)));
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
            arguments.given().connect().await
        };

        let refused = given("123456:revoked").await.err().unwrap().to_string();
        let bot = given(TOKEN).await.unwrap().unwrap();

        let written = &loaded(&bot, TOKEN).channels.telegram["main"];
        assert_eq!(written.token.get().expose_secret(), TOKEN);
        assert!(bot.farewell().contains("privacy mode"), "{}", bot.farewell());
        assert!(refused.contains("Telegram does not know this token") && !refused.contains("revoked"), "{refused}");
    }

    #[tokio::test]
    async fn a_variable_that_is_not_set_yet_is_written_and_said() {
        let arguments = TelegramArgs { token_env: Some("SOME_TOKEN".into()), ..arguments(nowhere().await) };

        let bot = arguments.given().connect().await.unwrap().unwrap();

        assert!(bot.section().unwrap().contains("token = { env = \"SOME_TOKEN\" }"));
        assert!(bot.farewell().contains("Set SOME_TOKEN to its token before you start."), "{}", bot.farewell());
        assert_eq!(loaded(&bot, TOKEN).channels.telegram.len(), 1);
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
            assert!(matches!(arguments.given().connect().await, Err(Failure::Usage(_))));
        }
    }
}
