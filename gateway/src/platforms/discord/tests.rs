use axum::{
    Json, Router,
    http::{HeaderMap, StatusCode, Uri},
    response::IntoResponse,
};
use rejoinder_core::{Access, DirectPolicy, GroupPolicy};
use secrecy::ExposeSecret;
use serde_json::json;
use tokio::net::TcpListener;

use super::*;
use crate::{
    cli::{Script, load_section, unused_url},
    console::{failure::Failure, secret::SecretLocation},
    platforms::bot::{BotOptions, ConnectedBot},
    wiring::{
        remarks,
        tests::{config, parts},
    },
};

const TOKEN: &str = "MTIz.abc_DEF.g-1";
const REVOKED: &str = "MTIz.abc_DEF.g-0";

/// The flag `GATEWAY_MESSAGE_CONTENT_LIMITED`: an application in few servers that may read messages there.
const READS_CONTENT: u64 = 1 << 19;

/// Starts a fake Discord with one application, and returns its URL.
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

fn arguments(api_url: Url) -> BotOptions<'static> {
    BotOptions {
        platform: &BOTS,
        token_env: None,
        token_file: None,
        allow: Vec::new(),
        api_url: Some(api_url),
        may_ask: false,
        no_check: false,
    }
}

/// Loads the section that was written.
fn loaded(bot: &ConnectedBot<'_>, token: &str) -> Config {
    load_section(&bot.section().unwrap(), token)
}

#[tokio::test]
async fn a_token_that_is_typed_in_is_checked_and_kept_to_its_owner() {
    let (arguments, data) = (arguments(discord(READS_CONTENT).await), tempfile::tempdir().unwrap());
    let mut script = Script::of(&[TOKEN, "@ada_l, 80351110224678912"]);

    let bot = arguments.interview(&mut script, &data.path().join("new"), None).await.unwrap().unwrap();
    bot.token.write().unwrap();

    assert!(script.output.contains("This is Ada's bot (ada_bot)."), "{}", script.output);
    let config = loaded(&bot, TOKEN);
    let (_, written) = config.channels.of::<DiscordSection>().next().unwrap();
    assert_eq!(written.token.get().expose_secret(), TOKEN);
    assert_eq!(written.people.allow_from.iter().collect::<Vec<_>>(), ["@ada_l", "80351110224678912"]);
    assert!(!bot.section().unwrap().contains(TOKEN) && !bot.closing_text().contains(TOKEN));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let file = data.path().join("new").join("discord-main-token");
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn where_it_is_invited_and_what_it_reads_is_said() {
    let closing_text = async |flags: u64| {
        let (arguments, data) = (arguments(discord(flags).await), tempfile::tempdir().unwrap());
        let bot = arguments.interview(&mut Script::of(&[TOKEN, ""]), data.path(), None).await.unwrap().unwrap();
        bot.closing_text()
    };

    let (reads, does_not) = (closing_text(READS_CONTENT).await, closing_text(0).await);

    let invite = "https://discord.com/oauth2/authorize?client_id=456&scope=bot+applications.commands&permissions=";
    assert!(reads.contains(invite) && reads.contains("Message Content intent is on"), "{reads}");
    assert!(does_not.contains(invite) && does_not.contains("Message Content intent is off"), "{does_not}");
    assert!(does_not.contains("message_content = false"), "{does_not}");
    assert!(reads.contains("Nobody may write to it yet"), "{reads}");
}

#[tokio::test]
async fn a_wrong_token_is_said_and_asked_for_again() {
    let (arguments, data) = (arguments(discord(0).await), tempfile::tempdir().unwrap());
    let mut script = Script::of(&["my token", REVOKED, TOKEN, "Ada!", "@ada_l"]);

    let bot = arguments.interview(&mut script, data.path(), None).await.unwrap().unwrap();

    assert!(script.output.contains("This does not look like a bot's token"), "{}", script.output);
    assert!(script.output.contains("Discord does not know this token. Nothing was written"), "{}", script.output);
    assert!(script.output.contains("Ada! is not an id or username on Discord."), "{}", script.output);
    assert!(bot.profile.is_ok() && !script.output.contains(REVOKED), "{}", script.output);
}

#[tokio::test]
async fn without_discord_it_can_be_written_all_the_same() {
    let (arguments, data) = (arguments(unused_url().await), tempfile::tempdir().unwrap());
    let mut script = Script::of(&[TOKEN, "1", "2", TOKEN, "3", "@ada_l"]);

    let bot = arguments.interview(&mut script, data.path(), None).await.unwrap().unwrap();

    assert_eq!(script.output.matches("Discord cannot be reached").count(), 3, "{}", script.output);
    assert!(bot.closing_text().contains("was not checked"), "{}", bot.closing_text());
    assert!(!script.output.contains(TOKEN) && !bot.closing_text().contains(TOKEN));
    let mut script = Script::of(&[TOKEN, "4"]);
    assert!(arguments.interview(&mut script, data.path(), None).await.unwrap().is_none());
}

#[tokio::test]
async fn a_token_that_is_there_already_is_offered() {
    let (arguments, data) = (arguments(discord(0).await), tempfile::tempdir().unwrap());
    let taken = async |answers: &[&str]| {
        arguments.interview(&mut Script::of(answers), data.path(), Some(TOKEN.into())).await.unwrap()
    };

    let bot = taken(&["1", ""]).await.unwrap();

    assert!(bot.section().unwrap().contains("token = { env = \"DISCORD_BOT_TOKEN\" }"));
    assert!(matches!(taken(&["2", TOKEN, ""]).await.unwrap().token, SecretLocation::Typed(..)));
    assert!(taken(&["3"]).await.is_none());
}

#[tokio::test]
async fn a_script_names_what_holds_the_token() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("token");
    let given = async |token: &str| {
        std::fs::write(&file, format!("{token}\n")).unwrap();
        let from_file = BotOptions {
            token_file: Some(file.clone()),
            allow: vec!["@ada_l".to_owned()],
            ..arguments(discord(0).await)
        };
        from_file.connect().await
    };
    let unset = BotOptions { token_env: Some("SOME_TOKEN".to_owned()), ..arguments(unused_url().await) };

    let refused = given(REVOKED).await.err().unwrap().to_string();
    let bot = given(TOKEN).await.unwrap().unwrap();
    let unset = unset.connect().await.unwrap().unwrap();

    let config = loaded(&bot, TOKEN);
    let (_, written) = config.channels.of::<DiscordSection>().next().unwrap();
    assert_eq!(written.token.get().expose_secret(), TOKEN);
    assert!(refused.contains("Discord does not know this token") && !refused.contains(REVOKED), "{refused}");
    assert!(unset.closing_text().contains("Set SOME_TOKEN to its token before you start."), "{}", unset.closing_text());
    assert_eq!(loaded(&unset, TOKEN).channels.of::<DiscordSection>().count(), 1);
}

#[tokio::test]
async fn what_belongs_to_no_bot_or_to_nobody_is_a_wrong_call() {
    let none = BotOptions { allow: vec!["42".into()], ..arguments(unused_url().await) };
    let nobody = BotOptions {
        token_env: Some("SOME_TOKEN".into()),
        allow: vec!["Ada Lovelace".into()],
        ..arguments(unused_url().await)
    };

    for arguments in [none, nobody] {
        let Err(Failure::Usage(what)) = arguments.connect().await else { panic!("it is a wrong call") };
        assert!(what.contains("--discord-token-env") || what.contains("on Discord"), "{what}");
    }
}

#[test]
fn an_application_that_is_private_or_says_little_is_introduced_too() {
    let bot = |reads_message_content, is_public| BotProfile {
        id: String::new(),
        application_id: String::new(),
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

const APPLICATION: &str = "[channels.discord.main]\ntoken = \"MTIz.abc.def\"\n";

/// N1.
#[test]
fn an_application_is_for_those_whom_the_operator_lets_in() {
    let more = "allow_from = [42, \"@Ada_L\"]\ngroup_policy = \"all\"\nquote_strangers = false\nallow_bots = [44]\ngroup_allow_from = [5]\ntell_reactions = true\nagent = \"front-desk\"\n";

    let settings = parts(&format!("{APPLICATION}{more}")).unwrap().settings;
    let bare = parts(APPLICATION).unwrap().settings;

    let main = ChannelId::new("discord", "main");
    assert_eq!(bare.access[&main], Access::default());
    assert_eq!(
        settings.access[&main],
        Access {
            groups: [].into(),
            direct: DirectPolicy::Pairing,
            allow: ["42", "@ada_l"].into_iter().collect(),
            group: GroupPolicy::All,
            group_allow: ["5"].into_iter().collect(),
            quote_strangers: false,
            agents: ["44"].into_iter().collect(),
        }
    );
    assert!(settings.reaction_channels.contains(&main) && bare.reaction_channels.is_empty());
    assert_eq!(bare.max_attachment, 25 << 20);
}

#[test]
fn every_way_to_run_an_application_can_be_wired() {
    let other = "streaming = \"off\"\npace = \"server\"\ncommand_guilds = [7]\ngateway_url = \"ws://127.0.0.1:1/\"\n";

    for more in ["", "auto_thread = true\nsuppress_embeds = false\n", other] {
        let parts = parts(&format!("{APPLICATION}{more}")).unwrap();
        let channels: Vec<_> = parts.channels.iter().map(|channel| channel.channel().to_string()).collect();
        assert_eq!((channels, parts.notices.len()), (vec!["discord.main".to_owned()], 1));
    }
}

#[test]
fn who_may_write_and_what_is_read_is_remarked_on() {
    let said = |more: &str| remarks(&config(&format!("[channels.discord.main]\ntoken = \"a.b.c\"\n{more}")));

    assert!(said("dm_policy = \"allowlist\"")[0].contains("channels.discord.main.allow_from"));
    assert!(said("").is_empty());
    assert!(said("allow_from = [42]").is_empty());
    let wordless = said("allow_from = [42]\nauto_thread = true\nmessage_content = false");
    assert!(wordless[0].contains("only messages that mention it"), "{wordless:?}");
}
