//! A Discord application and its bot.

use std::path::PathBuf;

use clap::Args;
use rejoinder_config::Discord;
use url::Url;

use super::bot::{Given, Platform, Profile};
use crate::{
    cli::{bots, output::printable},
    wiring::{self, DiscordBot},
};

pub(super) static DISCORD: Platform = Platform {
    name: "Discord",
    key: "discord",
    is_built: wiring::HAS_DISCORD,
    api_url: "https://discord.com",
    token_variable: "DISCORD_BOT_TOKEN",
    token_source: "https://discord.com/developers/applications gives one under \"Bot\", \"Reset Token\"",
    may_be_person: Discord::may_be_person,
    look_up: |http, api_url, token| {
        Box::pin(async move { wiring::check_discord(http, api_url, token).await.map(|bot| profile(&bot)) })
    },
};

#[derive(Debug, Args)]
#[command(next_help_heading = "Discord")]
pub(super) struct DiscordArgs {
    /// The environment variable that holds a Discord bot's token, as the developer portal gave it
    #[arg(
        id = "discord_token_env",
        long = "discord-token-env",
        value_name = "NAME",
        conflicts_with = "discord_token_file"
    )]
    token_env: Option<String>,
    /// The file that holds a Discord bot's token
    #[arg(id = "discord_token_file", long = "discord-token-file", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Who may write to the bot, by id or username; can be repeated
    #[arg(id = "discord_allow", long = "discord-allow", value_name = "ID")]
    allow: Vec<String>,
    /// Where Discord's REST API is, when it is not at discord.com
    #[arg(id = "discord_api_url", long = "discord-api-url", value_name = "URL")]
    api_url: Option<Url>,
}

impl DiscordArgs {
    pub(super) fn given(&self) -> Given<'_> {
        Given {
            platform: &DISCORD,
            token_env: self.token_env.as_deref(),
            token_file: self.token_file.as_deref(),
            allow: &self.allow,
            api_url: self.api_url.as_ref(),
        }
    }
}

fn profile(bot: &DiscordBot) -> Profile {
    let who = if bot.is_public { "" } else { " (its application is private, so only its owner can)" };
    let (invite_url, content) = (printable(&bot.invite_url), content(bot.reads_message_content));
    let advice = format!("Add it to a server{who}:\n  {invite_url}\n{content}\n");
    Profile { introduction: bots::discord(bot), advice }
}

/// What it reads in servers.
const fn content(reads: Option<bool>) -> &'static str {
    match reads {
        Some(true) => "Its Message Content intent is on: it reads what is said in the channels that it sees.",
        Some(false) => {
            "Its Message Content intent is off. Switch it on in the developer portal (\"Bot\", \"Message Content Intent\") \
             before you start, or set message_content = false: it then reads direct chats, mentions and commands alone."
        }
        None => {
            "Discord did not say whether its Message Content intent is on: look in the developer portal under \"Bot\". \
             Without it, set message_content = false."
        }
    }
}

#[cfg(all(test, feature = "discord"))]
mod tests {
    use axum::{
        Json, Router,
        http::{HeaderMap, StatusCode, Uri},
        response::IntoResponse,
    };
    use secrecy::ExposeSecret;
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;
    use crate::cli::init::{
        Failure,
        script::{Script, loaded, nowhere},
        secret::SecretPlace,
    };

    const TOKEN: &str = "MTIz.abc_DEF.g-1";
    const REVOKED: &str = "MTIz.abc_DEF.g-0";

    /// The flag of an application in few servers that may read what is said there.
    const READS_CONTENT: u64 = 1 << 19;

    /// A Discord with this one application; its address.
    async fn discord(flags: u64) -> Url {
        let answer = async move |uri: Uri, headers: HeaderMap| {
            if headers.get("authorization").is_none_or(|token| token != &format!("Bot {TOKEN}")) {
                let refused = json!({ "message": "401: Unauthorized", "code": 0 });
                return (StatusCode::UNAUTHORIZED, Json(refused)).into_response();
            }
            match uri.path() {
                "/api/v10/users/@me" => Json(json!({
                    "id": "123", "username": "ada_bot", "global_name": "Ada's bot", "discriminator": "0", "bot": true,
                }))
                .into_response(),
                "/api/v10/applications/@me" => Json(json!({
                    "id": "456", "name": "Ada's bot", "flags": flags, "bot_public": true,
                }))
                .into_response(),
                _ => StatusCode::NOT_FOUND.into_response(),
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        format!("http://{address}").parse().unwrap()
    }

    fn arguments(api_url: Url) -> DiscordArgs {
        DiscordArgs { token_env: None, token_file: None, allow: Vec::new(), api_url: Some(api_url) }
    }

    #[tokio::test]
    async fn a_token_that_is_typed_in_is_checked_and_kept_to_its_owner() {
        let (arguments, data) = (arguments(discord(READS_CONTENT).await), tempfile::tempdir().unwrap());
        let mut script = Script::of(&[TOKEN, "ada_l, 80351110224678912"]);

        let bot = arguments.given().interview(&mut script, &data.path().join("new"), None).await.unwrap().unwrap();
        bot.keep_token().unwrap();

        assert!(script.told.contains("This is Ada's bot (ada_bot)."), "{}", script.told);
        let config = loaded(&bot, TOKEN);
        let written = &config.channels.discord["main"];
        assert_eq!(written.token.get().expose_secret(), TOKEN);
        assert_eq!(written.allow_from.iter().collect::<Vec<_>>(), ["ada_l", "80351110224678912"]);
        assert!(!bot.section().unwrap().contains(TOKEN) && !bot.farewell().contains(TOKEN));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let file = data.path().join("new").join("discord-main-token");
            assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[tokio::test]
    async fn where_it_is_invited_and_what_it_reads_is_said() {
        let farewell = async |flags: u64| {
            let (arguments, data) = (arguments(discord(flags).await), tempfile::tempdir().unwrap());
            let asking = arguments.given();
            let bot = asking.interview(&mut Script::of(&[TOKEN, ""]), data.path(), None).await.unwrap().unwrap();
            bot.farewell()
        };

        let (reads, does_not) = (farewell(READS_CONTENT).await, farewell(0).await);

        let invite = "https://discord.com/oauth2/authorize?client_id=456&scope=bot+applications.commands&permissions=";
        assert!(reads.contains(invite) && reads.contains("Message Content intent is on"), "{reads}");
        assert!(does_not.contains(invite) && does_not.contains("Message Content intent is off"), "{does_not}");
        assert!(does_not.contains("message_content = false"), "{does_not}");
        assert!(reads.contains("Nobody may write to it yet"), "{reads}");
    }

    #[tokio::test]
    async fn a_wrong_token_is_said_and_asked_for_again() {
        let (arguments, data) = (arguments(discord(0).await), tempfile::tempdir().unwrap());
        let mut script = Script::of(&["my token", REVOKED, TOKEN, "Ada!", "ada_l"]);

        let bot = arguments.given().interview(&mut script, data.path(), None).await.unwrap().unwrap();

        assert!(script.told.contains("This does not look like a bot's token"), "{}", script.told);
        assert!(script.told.contains("Discord does not know this token. Nothing was written"), "{}", script.told);
        assert!(script.told.contains("Ada! is neither an id nor a username of Discord's."), "{}", script.told);
        assert!(bot.profile.is_ok() && !script.told.contains(REVOKED), "{}", script.told);
    }

    #[tokio::test]
    async fn without_discord_it_can_be_written_all_the_same() {
        let (arguments, data) = (arguments(nowhere().await), tempfile::tempdir().unwrap());
        let mut script = Script::of(&[TOKEN, "1", TOKEN, "2", "ada_l"]);

        let bot = arguments.given().interview(&mut script, data.path(), None).await.unwrap().unwrap();

        assert!(script.told.contains("Discord cannot be reached"), "{}", script.told);
        assert!(bot.farewell().contains("was not checked"), "{}", bot.farewell());
        assert!(!script.told.contains(TOKEN) && !bot.farewell().contains(TOKEN));
        let mut script = Script::of(&[TOKEN, "3"]);
        assert!(arguments.given().interview(&mut script, data.path(), None).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_token_that_is_there_already_is_offered() {
        let (arguments, data) = (arguments(discord(0).await), tempfile::tempdir().unwrap());
        let taken = async |answers: &[&str]| {
            arguments.given().interview(&mut Script::of(answers), data.path(), Some(TOKEN.into())).await.unwrap()
        };

        let bot = taken(&["1", ""]).await.unwrap();

        assert!(bot.section().unwrap().contains("token = { env = \"DISCORD_BOT_TOKEN\" }"));
        assert!(matches!(taken(&["2", TOKEN, ""]).await.unwrap().token, SecretPlace::Typed(..)));
        assert!(taken(&["3"]).await.is_none());
    }

    #[tokio::test]
    async fn a_script_names_what_holds_the_token() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("token");
        let given = async |token: &str| {
            std::fs::write(&file, format!("{token}\n")).unwrap();
            let from_file = DiscordArgs {
                token_file: Some(file.clone()),
                allow: vec!["ada_l".to_owned()],
                ..arguments(discord(0).await)
            };
            from_file.given().connect().await
        };
        let unset = DiscordArgs { token_env: Some("SOME_TOKEN".to_owned()), ..arguments(nowhere().await) };

        let refused = given(REVOKED).await.err().unwrap().to_string();
        let bot = given(TOKEN).await.unwrap().unwrap();
        let unset = unset.given().connect().await.unwrap().unwrap();

        let written = &loaded(&bot, TOKEN).channels.discord["main"];
        assert_eq!(written.token.get().expose_secret(), TOKEN);
        assert!(refused.contains("Discord does not know this token") && !refused.contains(REVOKED), "{refused}");
        assert!(unset.farewell().contains("Set SOME_TOKEN to its token before you start."), "{}", unset.farewell());
        assert_eq!(loaded(&unset, TOKEN).channels.discord.len(), 1);
    }

    #[tokio::test]
    async fn what_belongs_to_no_bot_or_to_nobody_is_a_wrong_call() {
        let none = DiscordArgs { allow: vec!["42".into()], ..arguments(nowhere().await) };
        let nobody = DiscordArgs {
            token_env: Some("SOME_TOKEN".into()),
            allow: vec!["Ada Lovelace".into()],
            ..arguments(nowhere().await)
        };

        for arguments in [none, nobody] {
            let Err(Failure::Usage(what)) = arguments.given().connect().await else { panic!("it is a wrong call") };
            assert!(what.contains("--discord-token-env") || what.contains("of Discord's"), "{what}");
        }
    }

    #[test]
    fn an_application_that_is_private_or_says_little_is_introduced_too() {
        let bot = |reads_message_content, is_public| DiscordBot {
            name: "bot".to_owned(),
            username: "bot".to_owned(),
            reads_message_content,
            is_public,
            invite_url: "https://x.example/".to_owned(),
        };

        let private = profile(&bot(None, false));

        assert_eq!(private.introduction, "bot");
        assert!(private.advice.contains("only its owner can") && private.advice.contains("did not say"));
        assert!(!profile(&bot(Some(true), true)).advice.contains("only its owner"));
    }
}
