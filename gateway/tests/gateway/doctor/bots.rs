//! Findings about accounts on Discord, Matrix and Telegram.

#[cfg(feature = "discord")]
mod discord {
    use rejoinder_discord_server::DiscordServer;
    use serde_json::json;

    use crate::{
        discord::{problem, section},
        doctor::{Visit, folder, nobody},
        support::{Echo, TestGateway},
    };

    async fn visit(api_url: &str, token: &str, more: &str) -> Visit {
        let section = format!("[channels.discord.main]\ntoken = \"{token}\"\napi_url = \"{api_url}\"\n{more}\n");
        let visit = Visit::to(folder(&section).await.path()).await;
        assert!(!format!("{:?}", visit.findings).contains(token), "{:?}", visit.findings);
        visit
    }

    #[tokio::test]
    async fn an_application_is_known_and_so_is_what_it_reads() {
        let server = DiscordServer::start().await;

        let reads = visit(server.api_url(), server.token(), "").await;
        server.set(json!({ "message_content": false })).await;
        let does_not = visit(server.api_url(), server.token(), "").await;
        let need_not = visit(server.api_url(), server.token(), "message_content = false").await;

        assert_eq!((reads.code, does_not.code, need_not.code), (Some(0), Some(1), Some(0)));
        reads.must_find("discord.main", "ok", &["INTENT is switched on"]);
        let words =
            ["MESSAGE CONTENT INTENT is not", "developer portal", "channels.discord.main.message_content = false"];
        does_not.must_find("discord.main", "wrong", &words);
        assert!(!need_not.found("discord.main", "wrong", &[]), "{:?}", need_not.findings);
    }

    #[tokio::test]
    async fn a_token_that_discord_does_not_know_is_wrong() {
        let server = DiscordServer::start().await;

        let visit = visit(server.api_url(), "MTIz.re.voked", "").await;

        assert_eq!(visit.code, Some(1));
        visit.must_find("discord.main", "wrong", &["does not know this token", "Reset Token"]);
    }

    #[tokio::test]
    async fn what_a_gateway_says_of_itself_is_told() {
        let server = DiscordServer::start().await;
        let config = section(&server, "MTIz.re.voked", "");
        let gateway = TestGateway::begun(tempfile::tempdir().unwrap(), Echo::at_once(), &config).await;
        let (_, problem) = problem(&gateway).await;

        let visit = Visit::of(&gateway).await;

        assert_eq!(visit.code, Some(1));
        visit.must_find("gateway", "ok", &["not_ready"]);
        visit.must_find("gateway", "wrong", &["discord.main", &problem, "docs/discord.md"]);
        gateway.stopped().await;
    }

    #[tokio::test]
    async fn discord_that_cannot_be_reached_is_wrong() {
        let visit = visit(&format!("http://{}", nobody().await), "MTIz.abc.def", "").await;

        assert_eq!(visit.code, Some(1));
        visit.must_find("discord.main", "wrong", &["cannot be reached", "channels.discord.main.api_url"]);
    }
}

#[cfg(feature = "matrix")]
mod matrix {
    use rejoinder_matrix_server::{Account, Homeserver};

    use crate::{
        doctor::{Visit, folder, nobody},
        support::{Echo, PATIENCE, TestGateway},
    };

    fn section(homeserver: &str, account: &Account) -> String {
        let Account { user, password } = account;
        format!("[channels.matrix.main]\nhomeserver = \"{homeserver}\"\nuser = \"{user}\"\npassword = \"{password}\"\n")
    }

    async fn visit(homeserver: &str, account: &Account) -> Visit {
        let visit = Visit::to(folder(&section(homeserver, account)).await.path()).await;
        assert!(!format!("{:?}", visit.findings).contains(&account.password), "{:?}", visit.findings);
        visit
    }

    #[tokio::test]
    async fn an_account_is_known_before_a_gateway_uses_it() {
        let homeserver = Homeserver::shared().await;
        let account = homeserver.account("agent").await;

        let right = visit(homeserver.url(), &account).await;
        let wrong = visit(homeserver.url(), &Account { password: "revoked".to_owned(), ..account.clone() }).await;

        assert_eq!((right.code, wrong.code), (Some(0), Some(1)));
        right.must_find("matrix.main", "ok", &[&account.user, "no device yet"]);
        wrong.must_find("matrix.main", "wrong", &["the homeserver refused", "docs/matrix.md"]);
    }

    #[tokio::test]
    async fn the_device_of_a_gateway_is_looked_at_and_missed() {
        let homeserver = Homeserver::shared().await;
        let account = homeserver.account("agent").await;
        let config = section(homeserver.url(), &account);
        let gateway = TestGateway::begun(tempfile::tempdir().unwrap(), Echo::at_once(), &config).await;
        let signing = async {
            loop {
                let visit = Visit::of(&gateway).await;
                if visit.found("matrix.main", "ok", &["has signed its device"]) {
                    return visit;
                }
            }
        };

        let beside = tokio::time::timeout(PATIENCE, signing).await.expect("the device is signed");
        let data = gateway.stopped().await;
        std::fs::remove_file(data.path().join("matrix-main/matrix-sdk-crypto.sqlite3")).unwrap();
        let without_keys = Visit::to(data.path()).await;

        assert!(!beside.found("matrix.main", "ok", &["no device yet"]), "{:?}", beside.findings);
        beside.must_find("matrix.main", "ok", &[&account.user, "device "]);
        without_keys.must_find("matrix.main", "wrong", &["are gone from", "start-anew"]);
    }

    #[tokio::test]
    async fn a_homeserver_that_cannot_be_reached_is_wrong() {
        let account = Account { user: "@agent:example.org".to_owned(), password: "sesame".to_owned() };

        let visit = visit(&format!("http://{}", nobody().await), &account).await;

        assert_eq!(visit.code, Some(1));
        visit.must_find("matrix.main", "wrong", &["cannot be reached", "channels.matrix.main.homeserver"]);
    }
}

#[cfg(feature = "telegram")]
mod telegram {
    use rejoinder_telegram_double::TelegramDouble;
    use serde_json::{Value, json};

    use crate::doctor::{Visit, folder, nobody};

    async fn visit(api_url: &str, token: &str, more: &str) -> Visit {
        let section = format!("[channels.telegram.main]\ntoken = \"{token}\"\napi_url = \"{api_url}\"\n{more}\n");
        let visit = Visit::to(folder(&section).await.path()).await;
        assert!(!format!("{:?}", visit.findings).contains(token), "{:?}", visit.findings);
        visit
    }

    async fn set_webhook(telegram: &TelegramDouble, url: &str) {
        let method = format!("{}/bot{}/setWebhook", telegram.url(), telegram.token());
        let set = reqwest::Client::builder().no_proxy().build().unwrap().post(method).json(&json!({ "url": url }));
        assert_eq!(set.send().await.unwrap().json::<Value>().await.unwrap()["ok"], true);
    }

    #[tokio::test]
    async fn a_bot_is_known_and_nothing_is_taken_from_it() {
        let telegram = TelegramDouble::start().await;
        telegram.person("Ada").says("hello");

        let visit = visit(&telegram.url(), telegram.token(), "").await;

        assert_eq!(visit.code, Some(0));
        visit.must_find("telegram.main", "ok", &[&format!("@{}", telegram.bot().username)]);
        let called: Vec<_> = telegram.look(|view| view.all_calls()).into_iter().map(|call| call.method).collect();
        assert!(called.iter().all(|method| method.starts_with("get") && method != "getUpdates"), "{called:?}");
        assert_eq!(telegram.look(|view| view.pending_updates()), 1);
    }

    #[tokio::test]
    async fn privacy_mode_is_a_warning_where_all_is_to_be_read() {
        let telegram = TelegramDouble::start().await;
        telegram.privacy(true);

        let all = visit(&telegram.url(), telegram.token(), "group_policy = \"all\"").await;
        let mentions = visit(&telegram.url(), telegram.token(), "").await;
        telegram.privacy(false);
        let off = visit(&telegram.url(), telegram.token(), "group_policy = \"all\"").await;

        all.must_find("telegram.main", "warning", &["privacy mode is on", "/setprivacy"]);
        mentions.must_find("telegram.main", "ok", &["privacy mode"]);
        off.must_find("telegram.main", "ok", &["every message"]);
    }

    #[tokio::test]
    async fn a_webhook_is_named_where_updates_are_asked_for() {
        let telegram = TelegramDouble::start().await;
        set_webhook(&telegram, "http://127.0.0.1:1/other").await;

        let visit = visit(&telegram.url(), telegram.token(), "").await;

        assert_eq!(visit.code, Some(0));
        visit.must_find("telegram.main", "warning", &["127.0.0.1:1/other", "\"polling\"", "another program"]);
    }

    #[tokio::test]
    async fn what_telegram_says_of_its_posts_is_told() {
        let telegram = TelegramDouble::start().await;
        let url = format!("http://{}/telegram/main", nobody().await);
        let posted = format!("mode = \"webhook\"\nwebhook = {{ url = \"{url}\" }}");

        let before = visit(&telegram.url(), telegram.token(), &posted).await;
        set_webhook(&telegram, &url).await;
        let idle = visit(&telegram.url(), telegram.token(), &posted).await;
        telegram.person("Ada").says("hello");
        let failed = async || {
            let info = format!("{}/bot{}/getWebhookInfo", telegram.url(), telegram.token());
            let http = reqwest::Client::builder().no_proxy().build().unwrap();
            let info: Value = http.get(info).send().await.unwrap().json().await.unwrap();
            info["result"]["last_error_message"].is_string()
        };
        let failing = async {
            while !failed().await {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(crate::support::PATIENCE, failing).await.expect("a post fails");
        let fails = visit(&telegram.url(), telegram.token(), &posted).await;

        before.must_find("telegram.main", "ok", &["no webhook is set yet"]);
        idle.must_find("telegram.main", "ok", &[&url, "no update is waiting"]);
        fails.must_find("telegram.main", "wrong", &["cannot reach", &url, "one update is waiting"]);
        assert_eq!((before.code, idle.code, fails.code), (Some(0), Some(0), Some(1)));
    }

    #[tokio::test]
    async fn a_token_that_telegram_does_not_know_is_wrong() {
        let telegram = TelegramDouble::start().await;

        let visit = visit(&telegram.url(), "123456:revoked", "").await;

        assert_eq!(visit.code, Some(1));
        visit.must_find("telegram.main", "wrong", &["does not know this token", "/token"]);
    }

    #[tokio::test]
    async fn telegram_that_cannot_be_reached_is_wrong() {
        let visit = visit(&format!("http://{}", nobody().await), "123456:abc", "").await;

        assert_eq!(visit.code, Some(1));
        visit.must_find("telegram.main", "wrong", &["cannot be reached", "channels.telegram.main.api_url"]);
    }
}
