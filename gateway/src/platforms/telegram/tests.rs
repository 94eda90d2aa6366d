use axum::{Json, Router, http::StatusCode, response::IntoResponse};
use rejoinder_core::{Access, ChatKind, DirectPolicy, OnUnknown};
use secrecy::ExposeSecret;
use serde_json::json;
use tokio::net::TcpListener;

use rejoinder_core::Timestamp;

use super::*;
use crate::{
    cli::{Script, load_section, unused_url},
    console::{failure::Failure, finding::Verdict, secret::SecretLocation},
    platforms::bot::{BotOptions, ConnectedBot},
    wiring::{
        remarks,
        tests::{config, parts},
    },
};

const TOKEN: &str = "123456:abc_DEF-1";

/// Starts a fake Bot API with one bot, and returns its URL.
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
    let (arguments, data) = (arguments(telegram().await), tempfile::tempdir().unwrap());
    let mut script = Script::of(&[TOKEN, "@ada_l, 42"]);

    let bot = arguments.interview(&mut script, &data.path().join("new"), None).await.unwrap().unwrap();
    bot.token.write().unwrap();

    assert!(script.output.contains("This is Ada's bot (@ada_bot), at https://t.me/ada_bot."), "{}", script.output);
    let config = loaded(&bot, TOKEN);
    let (_, written) = config.channels.of::<TelegramSection>().next().unwrap();
    assert_eq!(written.token.get().expose_secret(), TOKEN);
    assert_eq!(written.people.allow_from.iter().collect::<Vec<_>>(), ["@ada_l", "42"]);
    assert!(!bot.section().unwrap().contains(TOKEN) && !bot.closing_text().contains(TOKEN));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let file = data.path().join("new").join(BOTS.token_file());
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_wrong_token_is_said_and_asked_for_again() {
    let (arguments, data) = (arguments(telegram().await), tempfile::tempdir().unwrap());
    let mut script = Script::of(&["my token", "123456:revoked", TOKEN, ""]);

    let bot = arguments.interview(&mut script, data.path(), None).await.unwrap().unwrap();

    assert!(script.output.contains("This does not look like a token"), "{}", script.output);
    assert!(script.output.contains("Telegram does not know this token. Nothing was written"), "{}", script.output);
    assert!(bot.profile.is_ok());
    assert!(bot.closing_text().contains("Nobody may write to it yet"), "{}", bot.closing_text());
}

#[tokio::test]
async fn without_telegram_it_can_be_written_all_the_same() {
    let (arguments, data) = (arguments(unused_url().await), tempfile::tempdir().unwrap());
    let mut script = Script::of(&[TOKEN, "", "1", "3", "a b", "@ada_l"]);

    let bot = arguments.interview(&mut script, data.path(), None).await.unwrap().unwrap();

    assert_eq!(script.output.matches("Telegram cannot be reached").count(), 3, "{}", script.output);
    assert_eq!(script.output.matches("Token of a Telegram bot").count(), 1, "{}", script.output);
    assert!(script.output.contains("a is not an id or username"), "{}", script.output);
    assert!(bot.closing_text().contains("was not checked"), "{}", bot.closing_text());
    assert!(!script.output.contains(TOKEN) && !bot.closing_text().contains(TOKEN));
    let mut script = Script::of(&[TOKEN, "2", TOKEN, "4"]);
    assert!(arguments.interview(&mut script, data.path(), None).await.unwrap().is_none());
}

#[tokio::test]
async fn no_token_is_no_bot() {
    let (arguments, data) = (arguments(unused_url().await), tempfile::tempdir().unwrap());

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
    assert!(matches!(taken(&["2", TOKEN, ""]).await.unwrap().token, SecretLocation::Typed(..)));
    assert!(taken(&["3"]).await.is_none());
}

#[tokio::test]
async fn a_script_names_the_file_that_holds_the_token() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("token");
    let given = async |token: &str| {
        std::fs::write(&file, format!("{token}\n")).unwrap();
        let arguments =
            BotOptions { token_file: Some(file.clone()), allow: vec!["42".to_owned()], ..arguments(telegram().await) };
        arguments.connect().await
    };

    let refused = given("123456:revoked").await.err().unwrap().to_string();
    let bot = given(TOKEN).await.unwrap().unwrap();

    let config = loaded(&bot, TOKEN);
    let (_, written) = config.channels.of::<TelegramSection>().next().unwrap();
    assert_eq!(written.token.get().expose_secret(), TOKEN);
    assert!(bot.closing_text().contains("privacy mode"), "{}", bot.closing_text());
    assert!(refused.contains("Telegram does not know this token") && !refused.contains("revoked"), "{refused}");
}

#[tokio::test]
async fn a_variable_that_is_not_set_yet_is_written_and_said() {
    let arguments = BotOptions { token_env: Some("SOME_TOKEN".into()), ..arguments(unused_url().await) };

    let bot = arguments.connect().await.unwrap().unwrap();

    assert!(bot.section().unwrap().contains("token = { env = \"SOME_TOKEN\" }"));
    assert!(bot.closing_text().contains("Set SOME_TOKEN to its token before you start."), "{}", bot.closing_text());
    assert_eq!(loaded(&bot, TOKEN).channels.of::<TelegramSection>().count(), 1);
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
        assert!(matches!(arguments.connect().await, Err(Failure::Usage(_))));
    }
}

#[test]
fn what_it_sees_in_groups_is_said() {
    let bot = |can_join_groups, reads_groups| {
        group_visibility(&BotProfile {
            can_join_groups,
            can_read_all_group_messages: reads_groups,
            ..BotProfile::default()
        })
    };

    assert!(bot(true, false).contains("privacy mode") && bot(true, false).contains("/setprivacy"));
    assert!(bot(true, true).contains("every message"));
    assert!(bot(false, false).contains("/setjoingroups"));
}

const OURS: &str = "https://x.example/telegram/main";

fn verdict(url: Option<&str>, pending: u64, has_failed: bool, is_running: bool) -> Verdict {
    let last_error = has_failed.then(|| ("Connection refused".to_owned(), Timestamp::from_millis(0)));
    let status = WebhookStatus { url: url.map(str::to_owned), pending, last_error };
    webhook_finding("telegram.main", &OURS.parse().unwrap(), &status, is_running).verdict
}

#[test]
fn a_webhook_is_well_while_its_posts_arrive() {
    assert_eq!(verdict(Some(OURS), 0, false, true), Verdict::Ok);
    assert_eq!(verdict(Some(OURS), 0, true, true), Verdict::Ok);
    assert_eq!(verdict(Some(OURS), 3, true, true), Verdict::Wrong);
    assert_eq!(verdict(Some(OURS), 3, true, false), Verdict::Wrong);
    assert_eq!(verdict(Some("https://other.example/"), 0, false, true), Verdict::Warning);
}

#[test]
fn a_webhook_that_is_not_set_is_missed_only_while_a_gateway_runs() {
    assert_eq!(verdict(None, 0, false, false), Verdict::Ok);
    assert_eq!(verdict(None, 0, false, true), Verdict::Warning);
}

#[test]
fn a_webhook_that_nobody_asked_for_is_named() {
    let set = WebhookStatus { url: Some(OURS.to_owned()), ..WebhookStatus::default() };

    assert!(polling_finding("telegram.main", &set).unwrap().line().contains(OURS));
    assert_eq!(polling_finding("telegram.main", &WebhookStatus::default()), None);
}

const BOT: &str = "[channels.telegram.main]\ntoken = \"123456:abc\"\n";

/// N1.
#[test]
fn a_bot_is_for_those_whom_the_operator_lets_in() {
    let more = "allow_from = [42, \"@Ada_L\"]\ngroup_policy = \"all\"\nquote_strangers = false\nallow_bots = [44]\ngroup_allow_from = [-5]\ntell_reactions = true\n";

    let settings = parts(&format!("{BOT}{more}")).unwrap().settings;
    let bare = parts(BOT).unwrap().settings;

    let main = ChannelId::new("telegram", "main");
    assert_eq!(bare.access[&main], Access::default());
    assert_eq!(
        settings.access[&main],
        Access {
            groups: [].into(),
            direct: DirectPolicy::Pairing,
            allow: ["42", "@ada_l"].into_iter().collect(),
            group: GroupPolicy::All,
            group_allow: ["-5"].into_iter().collect(),
            quote_strangers: false,
            agents: ["44"].into_iter().collect(),
        }
    );
    assert!(settings.reaction_channels.contains(&main) && bare.reaction_channels.is_empty());
    assert_eq!(bare.max_attachment, 25 << 20, "hooks and pages take more than bots");
}

/// D7.
#[test]
fn a_bots_own_way_with_what_may_have_arrived_comes_first() {
    let own =
        "on_unknown = \"hold\"\n[channels.telegram.other]\ntoken = \"234567:abc\"\n[guard]\non_unknown = \"resend\"\n";

    let policies = parts(&format!("{BOT}{own}")).unwrap().settings.policies;

    let of = |name| policies.of(&ChannelId::new("telegram", name), ChatKind::Group).on_unknown;
    assert_eq!((of("main"), of("other")), (OnUnknown::Hold, OnUnknown::Resend));
}

#[test]
fn every_way_to_run_a_bot_can_be_wired() {
    let posted = "mode = \"webhook\"\nwebhook = { url = \"https://x.example/telegram/main\" }\nstreaming = \"draft\"\npace = \"server\"\nagent = \"front-desk\"\n";

    for more in ["", "streaming = \"off\"\nreactions = { \"🥦\" = \"🔥\" }\n", posted] {
        let parts = parts(&format!("{BOT}{more}")).unwrap();
        let channels: Vec<_> = parts.channels.iter().map(|channel| channel.channel().to_string()).collect();
        assert_eq!((channels, parts.notices.len()), (vec!["telegram.main".to_owned()], 1));
    }
}

#[test]
fn who_may_write_and_where_posts_go_is_remarked_on() {
    let said = |more: &str| remarks(&config(&format!("[channels.telegram.main]\ntoken = \"1:a\"\n{more}")));

    let unlisted = said("dm_policy = \"allowlist\"");
    assert!(unlisted[0].contains("lets nobody in yet") && unlisted[0].contains("channels.telegram.main.allow_from"));
    assert!(said("").is_empty());
    assert!(said("dm_policy = \"open\"")[0].contains("everyone who finds the bot"));
    assert!(said("allow_from = [42]").is_empty());
    let posted = |path: &str| {
        said(&format!("allow_from = [42]\nmode = \"webhook\"\nwebhook = {{ url = \"https://x.example{path}\" }}"))
    };
    assert!(posted("/telegram/main").is_empty());
    assert!(posted("/bot")[0].contains("/telegram/main"));
}
