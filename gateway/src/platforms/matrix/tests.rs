use axum::{
    Json, Router,
    http::{HeaderMap, StatusCode, Uri},
    response::IntoResponse,
};
use rejoinder_core::{Access, DirectPolicy, GroupPolicy};
use rstest::rstest;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use url::Url;

use super::{init::AccountOptions, *};
use crate::{
    cli::{Script, load_section, unused_url},
    console::failure::Failure,
    platforms::platform::Account,
    wiring::{
        remarks,
        tests::{config, parts},
    },
};

const USER: &str = "@agent:example.org";
const PASSWORD: &str = "correct horse";
const TOKEN: &str = "syt_sesame";

#[test]
fn doctor_says_why_strangers_get_no_code() {
    let said = |policy, auto_join| strangers_finding("matrix.main", policy, auto_join).map(|finding| finding.line());

    let line = said(DirectPolicy::Pairing, AutoJoin::Allowlist).unwrap();
    assert!(line.contains("channels.matrix.main.auto_join to \"always\""), "{line}");
    assert_eq!(said(DirectPolicy::Pairing, AutoJoin::Always), None);
    assert_eq!(said(DirectPolicy::Open, AutoJoin::Allowlist), None);
}

/// Starts a fake homeserver with one account, and returns its URL.
async fn homeserver() -> Url {
    let answer = async |uri: Uri, headers: HeaderMap, body: String| {
        let refused = |code: &str| {
            let body = json!({ "errcode": code, "error": "no" });
            (StatusCode::FORBIDDEN, Json(body)).into_response()
        };
        let has_token = headers.get("authorization").is_some_and(|token| token == &format!("Bearer {TOKEN}"));
        let body: Value = serde_json::from_str(&body).unwrap_or_default();
        match uri.path() {
            "/_matrix/client/versions" => Json(json!({ "versions": ["v1.11"] })).into_response(),
            "/_matrix/client/v3/login" if body["password"] == PASSWORD => {
                Json(json!({ "user_id": USER, "device_id": "TRIED", "access_token": TOKEN })).into_response()
            }
            "/_matrix/client/v3/login" => refused("M_FORBIDDEN"),
            "/_matrix/client/v3/account/whoami" if has_token => {
                Json(json!({ "user_id": USER, "device_id": "OWN" })).into_response()
            }
            "/_matrix/client/v3/account/whoami" => refused("M_UNKNOWN_TOKEN"),
            "/_matrix/client/v3/logout" => Json(json!({})).into_response(),
            path if path.contains("/profile/") => Json(json!({ "displayname": "Agent" })).into_response(),
            _ => (StatusCode::NOT_FOUND, Json(json!({ "errcode": "M_UNRECOGNIZED", "error": "no" }))).into_response(),
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    format!("http://{address}").parse().unwrap()
}

fn arguments(homeserver: Url) -> AccountOptions {
    AccountOptions { homeserver: Some(homeserver), ..AccountOptions::default() }
}

/// Converts the account and writes its secrets to their files.
fn write_secrets(account: init::ConnectedAccount) -> Account {
    let account = account.account().unwrap();
    account.secrets.iter().for_each(|secret| secret.write().unwrap());
    account
}

#[tokio::test]
async fn a_password_that_is_typed_in_is_checked_and_kept_to_its_owner() {
    let (arguments, data) = (arguments(homeserver().await), tempfile::tempdir().unwrap());
    let mut script =
        Script::of(&["agent", USER, "wrong", PASSWORD, "EsTj 3yST", "@ada:example.org, nobody", "@ada:example.org"]);

    let account = arguments.interview(&mut script, &data.path().join("new")).await.unwrap().unwrap();
    let account = write_secrets(account);

    assert!(
        script.output.contains("agent is not a user id") && script.output.contains("nobody is not a user id"),
        "{}",
        script.output
    );
    assert!(script.output.contains("The homeserver refused"), "{}", script.output);
    assert!(script.output.contains("This is Agent (@agent:example.org)."), "{}", script.output);
    let section = account.section;
    let config = load_section(&section, "");
    let (_, written) = config.channels.of::<MatrixSection>().next().unwrap();
    assert_eq!(written.password.as_ref().unwrap().get().expose_secret(), PASSWORD);
    assert_eq!(written.recovery_key.as_ref().unwrap().get().expose_secret(), "EsTj 3yST");
    assert_eq!(
        (&*written.user, written.people.allow_from.iter().collect::<Vec<_>>()),
        (USER, vec!["@ada:example.org"])
    );
    for said in [&section, &account.closing_text] {
        assert!(!said.contains(PASSWORD) && !said.contains("3yST"), "{said}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let file = data.path().join("new/matrix-main-password");
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn an_access_token_is_a_credential_too() {
    let (arguments, data) = (arguments(homeserver().await), tempfile::tempdir().unwrap());
    let mut script = Script::of(&[USER, "", TOKEN, "", ""]);

    let account = arguments.interview(&mut script, data.path()).await.unwrap().unwrap();
    let account = write_secrets(account);

    let config = load_section(&account.section, "");
    let (_, written) = config.channels.of::<MatrixSection>().next().unwrap();
    assert_eq!(written.access_token.as_ref().unwrap().get().expose_secret(), TOKEN);
    let closing_text = account.closing_text;
    assert!(
        closing_text.contains("It will use device OWN") && closing_text.contains("Nobody may write"),
        "{closing_text}"
    );
}

#[tokio::test]
async fn without_a_homeserver_it_can_be_written_all_the_same() {
    let (arguments, data) = (arguments(unused_url().await), tempfile::tempdir().unwrap());
    let mut script = Script::of(&[USER, PASSWORD, "1", "2", PASSWORD, "3", "", "*"]);

    let account = arguments.interview(&mut script, data.path()).await.unwrap().unwrap();

    assert_eq!(script.output.matches("The homeserver cannot be reached").count(), 3, "{}", script.output);
    assert_eq!(script.output.matches("Its password").count(), 2, "{}", script.output);
    assert!(account.closing_text().contains("was not checked"), "{}", account.closing_text());
    assert!(arguments.interview(&mut Script::of(&[USER, PASSWORD, "4"]), data.path()).await.unwrap().is_none());
    assert!(arguments.interview(&mut Script::of(&[USER, "", ""]), data.path()).await.unwrap().is_none());
    assert!(arguments.interview(&mut Script::of(&[""]), data.path()).await.unwrap().is_none());
    assert!(std::fs::read_dir(data.path()).unwrap().next().is_none());
}

#[tokio::test]
async fn a_script_names_where_the_secrets_are() {
    let (url, data) = (homeserver().await, tempfile::tempdir().unwrap());
    let file = data.path().join("password");
    let given = async |password: &str| {
        std::fs::write(&file, format!("{password}\n")).unwrap();
        let arguments = AccountOptions {
            user: Some(USER.to_owned()),
            password_file: Some(file.clone()),
            recovery_key_env: Some("SOME_TOKEN".to_owned()),
            allow: vec!["@ada:example.org".to_owned()],
            ..arguments(url.clone())
        };
        arguments.connect().await
    };

    let refused = given("wrong").await.err().unwrap().to_string();
    let account = given(PASSWORD).await.unwrap().unwrap();

    assert!(refused.contains("the homeserver refused") && !refused.contains("wrong"), "{refused}");
    let account = write_secrets(account);
    let config = load_section(&account.section, "key");
    let (_, written) = config.channels.of::<MatrixSection>().next().unwrap();
    assert_eq!(written.password.as_ref().unwrap().get().expose_secret(), PASSWORD);
    assert_eq!(written.recovery_key.as_ref().unwrap().get().expose_secret(), "key");
    assert!(account.closing_text.contains("Set SOME_TOKEN to its recovery key before you start."));
}

#[tokio::test]
async fn what_belongs_to_no_account_or_to_nobody_is_a_wrong_call() {
    let with = |change: fn(&mut AccountOptions)| {
        let mut arguments = AccountOptions {
            user: Some(USER.to_owned()),
            password_env: Some("SOME_TOKEN".to_owned()),
            homeserver: Some("http://127.0.0.1:1".parse().unwrap()),
            ..AccountOptions::default()
        };
        change(&mut arguments);
        arguments
    };

    let calls = [
        with(|it| it.user = Some("agent".to_owned())),
        with(|it| it.password_env = None),
        with(|it| it.allow = vec!["Ada".to_owned()]),
    ];
    for arguments in calls {
        assert!(matches!(arguments.connect().await, Err(Failure::Usage(_))));
    }
    assert!(AccountOptions::default().connect().await.unwrap().is_none());
}

const ACCOUNT: &str =
    "[channels.matrix.main]\nhomeserver = \"http://127.0.0.1:1\"\nuser = \"@agent:example.org\"\npassword = \"p\"\n";

/// N1.
#[test]
fn an_account_is_for_those_whom_the_operator_lets_in() {
    let more = "allow_from = [\"@Ada:example.org\", \"*:example.com\"]\ngroup_policy = \"all\"\nquote_strangers = false\nallow_bots = [\"@robot:example.org\"]\ngroup_allow_from = [\"!r:example.org\"]\ntell_reactions = true\nagent = \"front-desk\"\n";

    let settings = parts(&format!("{ACCOUNT}{more}")).unwrap().settings;
    let bare = parts(ACCOUNT).unwrap().settings;

    let main = ChannelId::new("matrix", "main");
    assert_eq!(bare.access[&main], Access::default());
    assert_eq!(
        settings.access[&main],
        Access {
            groups: [].into(),
            direct: DirectPolicy::Pairing,
            allow: ["@Ada:example.org", "*:example.com"].into_iter().collect(),
            group: GroupPolicy::All,
            group_allow: ["!r:example.org"].into_iter().collect(),
            quote_strangers: false,
            agents: ["@robot:example.org"].into_iter().collect(),
        }
    );
    assert!(settings.reaction_channels.contains(&main) && bare.reaction_channels.is_empty());
    assert_eq!(bare.max_attachment, 50 << 20);
}

#[rstest]
#[case("", "/data/matrix-main")]
#[case("[store]\nurl = \"sqlite:/elsewhere/other.db\"\n", "/elsewhere/matrix-main")]
#[case("[store]\nurl = \"sqlite:stores/other.db\"\n", "/data/stores/matrix-main")]
#[case("[store]\nurl = \"postgres://me@db.example.org/chats\"\n", "/data/matrix-main")]
fn the_keys_are_beside_the_database(#[case] store: &str, #[case] expected: &str) {
    let config = config(&format!("{ACCOUNT}{store}"));

    assert_eq!(folder(&config, Path::new("/data"), "main"), Path::new(expected));
}

#[test]
fn every_way_to_run_an_account_can_be_wired() {
    let other = "streaming = \"off\"\npace = \"server\"\nauto_join = \"always\"\nread_receipts = \"off\"\nrecovery_key = \"k\"\n";

    for more in ["", other] {
        let parts = parts(&format!("{ACCOUNT}{more}")).unwrap();
        let channels: Vec<_> = parts.channels.iter().map(|channel| channel.channel().to_string()).collect();
        assert_eq!((channels, parts.notices.len()), (vec!["matrix.main".to_owned()], 1));
    }
}

#[test]
fn who_may_write_and_who_may_read_along_is_remarked_on() {
    let said = |homeserver: &str, more: &str| {
        let account = format!("homeserver = \"{homeserver}\"\nuser = \"@a:b\"\npassword = \"p\"\n{more}");
        remarks(&config(&format!("[channels.matrix.main]\n{account}")))
    };

    assert!(said("https://x", "dm_policy = \"allowlist\"")[0].contains("put user ids"));
    assert!(said("https://x", "")[0].contains("accepts no invitation yet"));
    assert!(said("https://x", "auto_join = \"always\"").is_empty());
    assert!(said("https://x", "allow_from = [\"@a:b\"]").is_empty());
    assert!(said("http://[::1]:8008", "allow_from = [\"@a:b\"]").is_empty());
    assert!(said("http://x", "allow_from = [\"@a:b\"]")[0].contains("can be read on the way"));
}
