//! Findings about accounts on Discord, Matrix and Telegram.

#[cfg(feature = "discord")]
mod discord {
    use rejoinder_discord_server::DiscordServer;
    use serde_json::json;

    use crate::{
        discord::{problem, section},
        doctor::{DoctorRun, folder, unused_address},
        support::{Echo, TestGateway},
    };

    async fn run_doctor(api_url: &str, token: &str, more: &str) -> DoctorRun {
        let section = format!("[channels.discord.main]\ntoken = \"{token}\"\napi_url = \"{api_url}\"\n{more}\n");
        let doctor = DoctorRun::in_folder(folder(&section).await.path()).await;
        assert!(!format!("{:?}", doctor.findings).contains(token), "{:?}", doctor.findings);
        doctor
    }

    #[tokio::test]
    async fn an_application_is_known_and_so_is_what_it_reads() {
        let server = DiscordServer::start().await;

        let reads = run_doctor(server.api_url(), server.token(), "").await;
        server.set(json!({ "message_content": false })).await;
        let does_not = run_doctor(server.api_url(), server.token(), "").await;
        let need_not = run_doctor(server.api_url(), server.token(), "message_content = false").await;

        assert_eq!((reads.code, does_not.code, need_not.code), (Some(0), Some(1), Some(0)));
        reads.assert_finding("discord.main", "ok", &["INTENT is switched on"]);
        let words =
            ["MESSAGE CONTENT INTENT is not", "developer portal", "channels.discord.main.message_content = false"];
        does_not.assert_finding("discord.main", "wrong", &words);
        assert!(!need_not.has_finding("discord.main", "wrong", &[]), "{:?}", need_not.findings);
    }

    #[tokio::test]
    async fn a_token_that_discord_does_not_know_is_wrong() {
        let server = DiscordServer::start().await;

        let doctor = run_doctor(server.api_url(), "MTIz.re.voked", "").await;

        assert_eq!(doctor.code, Some(1));
        doctor.assert_finding("discord.main", "wrong", &["does not know this token", "Reset Token"]);
    }

    #[tokio::test]
    async fn what_a_gateway_says_of_itself_is_told() {
        let server = DiscordServer::start().await;
        let config = section(&server, "MTIz.re.voked", "");
        let gateway = TestGateway::start_unready(tempfile::tempdir().unwrap(), Echo::at_once(), &config).await;
        let (_, problem) = problem(&gateway).await;

        let doctor = DoctorRun::beside(&gateway).await;

        assert_eq!(doctor.code, Some(1));
        doctor.assert_finding("gateway", "ok", &["not_ready"]);
        doctor.assert_finding("gateway", "wrong", &["discord.main", &problem, "docs/discord.md"]);
        gateway.stop().await;
    }

    #[tokio::test]
    async fn discord_that_cannot_be_reached_is_wrong() {
        let doctor = run_doctor(&format!("http://{}", unused_address().await), "MTIz.abc.def", "").await;

        assert_eq!(doctor.code, Some(1));
        doctor.assert_finding("discord.main", "wrong", &["cannot be reached", "channels.discord.main.api_url"]);
    }
}

#[cfg(feature = "matrix")]
mod matrix {
    use rejoinder_matrix_server::{Account, Homeserver};

    use crate::{
        doctor::{DoctorRun, folder, unused_address},
        support::{Echo, PATIENCE, TestGateway},
    };

    fn section(homeserver: &str, account: &Account) -> String {
        let Account { user, password } = account;
        format!("[channels.matrix.main]\nhomeserver = \"{homeserver}\"\nuser = \"{user}\"\npassword = \"{password}\"\n")
    }

    async fn run_doctor(homeserver: &str, account: &Account) -> DoctorRun {
        let doctor = DoctorRun::in_folder(folder(&section(homeserver, account)).await.path()).await;
        assert!(!format!("{:?}", doctor.findings).contains(&account.password), "{:?}", doctor.findings);
        doctor
    }

    #[tokio::test]
    async fn an_account_is_known_before_a_gateway_uses_it() {
        let homeserver = Homeserver::shared().await;
        let account = homeserver.account("agent").await;

        let right = run_doctor(homeserver.url(), &account).await;
        let wrong = run_doctor(homeserver.url(), &Account { password: "revoked".to_owned(), ..account.clone() }).await;

        assert_eq!((right.code, wrong.code), (Some(0), Some(1)));
        right.assert_finding("matrix.main", "ok", &[&account.user, "no device yet"]);
        wrong.assert_finding("matrix.main", "wrong", &["the homeserver refused", "docs/matrix.md"]);
    }

    #[tokio::test]
    async fn the_device_of_a_gateway_is_looked_at_and_missed() {
        let homeserver = Homeserver::shared().await;
        let account = homeserver.account("agent").await;
        let config = section(homeserver.url(), &account);
        let gateway = TestGateway::start_unready(tempfile::tempdir().unwrap(), Echo::at_once(), &config).await;
        let signing = async {
            loop {
                let doctor = DoctorRun::beside(&gateway).await;
                if doctor.has_finding("matrix.main", "ok", &["has signed its device"]) {
                    return doctor;
                }
            }
        };

        let beside = tokio::time::timeout(PATIENCE, signing).await.expect("the device is signed");
        let data = gateway.stop().await;
        std::fs::remove_file(data.path().join("matrix-main/matrix-sdk-crypto.sqlite3")).unwrap();
        let without_keys = DoctorRun::in_folder(data.path()).await;

        assert!(!beside.has_finding("matrix.main", "ok", &["no device yet"]), "{:?}", beside.findings);
        beside.assert_finding("matrix.main", "ok", &[&account.user, "device "]);
        without_keys.assert_finding("matrix.main", "wrong", &["are gone from", "start-anew"]);
    }

    #[tokio::test]
    async fn a_homeserver_that_cannot_be_reached_is_wrong() {
        let account = Account { user: "@agent:example.org".to_owned(), password: "sesame".to_owned() };

        let doctor = run_doctor(&format!("http://{}", unused_address().await), &account).await;

        assert_eq!(doctor.code, Some(1));
        doctor.assert_finding("matrix.main", "wrong", &["cannot be reached", "channels.matrix.main.homeserver"]);
    }
}

#[cfg(feature = "telegram")]
mod telegram {
    use rejoinder_telegram_double::TelegramDouble;
    use serde_json::{Value, json};

    use crate::{
        doctor::{DoctorRun, folder, unused_address},
        support::eventually,
    };

    async fn run_doctor(api_url: &str, token: &str, more: &str) -> DoctorRun {
        let section = format!("[channels.telegram.main]\ntoken = \"{token}\"\napi_url = \"{api_url}\"\n{more}\n");
        let doctor = DoctorRun::in_folder(folder(&section).await.path()).await;
        assert!(!format!("{:?}", doctor.findings).contains(token), "{:?}", doctor.findings);
        doctor
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

        let doctor = run_doctor(&telegram.url(), telegram.token(), "").await;

        assert_eq!(doctor.code, Some(0));
        doctor.assert_finding("telegram.main", "ok", &[&format!("@{}", telegram.bot().username)]);
        let called: Vec<_> = telegram.inspect(|view| view.all_calls()).into_iter().map(|call| call.method).collect();
        assert!(called.iter().all(|method| method.starts_with("get") && method != "getUpdates"), "{called:?}");
        assert_eq!(telegram.inspect(|view| view.pending_updates()), 1);
    }

    #[tokio::test]
    async fn privacy_mode_is_a_warning_where_all_is_to_be_read() {
        let telegram = TelegramDouble::start().await;
        telegram.privacy(true);

        let all = run_doctor(&telegram.url(), telegram.token(), "group_policy = \"all\"").await;
        let mentions = run_doctor(&telegram.url(), telegram.token(), "").await;
        telegram.privacy(false);
        let off = run_doctor(&telegram.url(), telegram.token(), "group_policy = \"all\"").await;

        all.assert_finding("telegram.main", "warning", &["privacy mode is on", "/setprivacy"]);
        mentions.assert_finding("telegram.main", "ok", &["privacy mode"]);
        off.assert_finding("telegram.main", "ok", &["every message"]);
    }

    #[tokio::test]
    async fn a_webhook_is_named_where_updates_are_asked_for() {
        let telegram = TelegramDouble::start().await;
        set_webhook(&telegram, "http://127.0.0.1:1/other").await;

        let doctor = run_doctor(&telegram.url(), telegram.token(), "").await;

        assert_eq!(doctor.code, Some(0));
        doctor.assert_finding("telegram.main", "warning", &["127.0.0.1:1/other", "\"polling\"", "another program"]);
    }

    #[tokio::test]
    async fn what_telegram_says_of_its_posts_is_told() {
        let telegram = TelegramDouble::start().await;
        let url = format!("http://{}/telegram/main", unused_address().await);
        let posted = format!("mode = \"webhook\"\nwebhook = {{ url = \"{url}\" }}");

        let before = run_doctor(&telegram.url(), telegram.token(), &posted).await;
        set_webhook(&telegram, &url).await;
        let idle = run_doctor(&telegram.url(), telegram.token(), &posted).await;
        telegram.person("Ada").says("hello");
        eventually("a post fails", async || {
            let info = format!("{}/bot{}/getWebhookInfo", telegram.url(), telegram.token());
            let http = reqwest::Client::builder().no_proxy().build().unwrap();
            let info: Value = http.get(info).send().await.unwrap().json().await.unwrap();
            info["result"]["last_error_message"].as_str().map(str::to_owned)
        })
        .await;
        let fails = run_doctor(&telegram.url(), telegram.token(), &posted).await;

        before.assert_finding("telegram.main", "ok", &["no webhook is set yet"]);
        idle.assert_finding("telegram.main", "ok", &[&url, "no update is waiting"]);
        fails.assert_finding("telegram.main", "wrong", &["cannot reach", &url, "one update is waiting"]);
        assert_eq!((before.code, idle.code, fails.code), (Some(0), Some(0), Some(1)));
    }

    #[tokio::test]
    async fn a_token_that_telegram_does_not_know_is_wrong() {
        let telegram = TelegramDouble::start().await;

        let doctor = run_doctor(&telegram.url(), "123456:revoked", "").await;

        assert_eq!(doctor.code, Some(1));
        doctor.assert_finding("telegram.main", "wrong", &["does not know this token", "/token"]);
    }

    #[tokio::test]
    async fn telegram_that_cannot_be_reached_is_wrong() {
        let doctor = run_doctor(&format!("http://{}", unused_address().await), "123456:abc", "").await;

        assert_eq!(doctor.code, Some(1));
        doctor.assert_finding("telegram.main", "wrong", &["cannot be reached", "channels.telegram.main.api_url"]);
    }
}
