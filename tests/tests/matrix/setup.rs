//! What the account needs, and how the gateway reports that something is missing.

use rejoinder_matrix_server::{Account, Homeserver};
use rejoinder_tests::{Gateway, ScriptedAgent, eventually};

use crate::{Chat, Place, QUIET, matrix, patient};

/// D17: readiness reports a rejected password without showing it.
#[tokio::test]
async fn a_password_that_is_refused_is_named() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let account = Account { password: "of-no-worth".to_owned(), ..homeserver.account("agent").await };
    let mut gateway =
        Gateway::builder().config(&matrix(homeserver.url(), &account, QUIET)).config(&agent.section()).prepare();

    gateway.spawn(&[]);
    eventually("the gateway listens", async || gateway.http().get(gateway.url()).send().await.ok().map(drop)).await;
    let said = gateway.until_not_ready("refused").await;

    assert!(said.contains("matrix.test"), "{said}");
    let shown = format!("{}{said}{}", gateway.log(), gateway.metrics().await);
    assert!(!shown.contains("of-no-worth"), "the password is shown");
}

/// Restarts reuse the account's one device.
#[tokio::test]
async fn a_restart_makes_no_second_device() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (builder, user) = patient(&agent, QUIET).await;
    let mut gateway = builder.start().await;
    let ada = homeserver.person("ada").await;
    let devices = async || ada.devices_of(&user).await;
    let before =
        ada.until("at least one device", async || Some(devices().await).filter(|devices| !devices.is_empty())).await;

    gateway.stop().await;
    gateway.restart().await;
    gateway.kill();
    gateway.restart().await;

    assert_eq!((devices().await, before.len()), (before.clone(), 1));
}

/// The session's files and keys are readable only by their owner.
#[cfg(unix)]
#[tokio::test]
async fn the_session_is_its_owners_alone() {
    use std::{os::unix::fs::PermissionsExt, path::Path};

    let agent = ScriptedAgent::replying("Hello.").await;
    let (builder, _) = patient(&agent, QUIET).await;
    let gateway = builder.start().await;

    let folder = gateway.data().join("matrix-test");
    let mode = |path: &Path| std::fs::metadata(path).expect("the path exists").permissions().mode() & 0o777;
    let files: Vec<_> = folder.read_dir().expect("it is read").flatten().map(|file| file.path()).collect();
    assert_eq!(mode(&folder), 0o700);
    assert!(files.iter().any(|file| file.ends_with("matrix-sdk-crypto.sqlite3")), "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

/// An access token in place of a password: its device is kept across restarts and works in encrypted rooms. The token of
/// another device is reported without showing either token.
#[tokio::test]
async fn an_access_token_is_the_device_that_it_belongs_to() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (account, token) = homeserver.account_with_token("agent").await;
    let Account { user, .. } = &account;
    let section = format!(
        "[channels.matrix.test]\nhomeserver = \"{}\"\nuser = \"{user}\"\naccess_token = \"{token}\"\n\
         dm_policy = \"open\"\npace = \"server\"\n{QUIET}\n",
        homeserver.url()
    );
    let mut gateway = Gateway::builder().config(&section).config(&agent.section()).start().await;
    let chat = Chat::new(homeserver, Place::Encrypted, user).await;
    chat.until_joined(user).await;
    chat.says("one").await;
    chat.until_hears(user, 1).await;
    gateway.until_settled().await;
    gateway.stop().await;
    gateway.restart().await;
    chat.says("two").await;
    chat.until_hears(user, 2).await;
    gateway.until_settled().await;
    gateway.stop().await;

    let other = homeserver.log_in(&account).await;
    let file = gateway.data().with_file_name("rejoinder.toml");
    let config = std::fs::read_to_string(&file).expect("the configuration is read").replace(&token, other.token());
    std::fs::write(&file, config).expect("the configuration is written");
    gateway.spawn(&[]);
    eventually("the gateway listens", async || gateway.http().get(gateway.url()).send().await.ok().map(drop)).await;
    let said = gateway.until_not_ready("has the keys of").await;

    assert_eq!(chat.hears(user).await, ["echo one", "echo two"]);
    let shown = format!("{}{said}{}", gateway.log(), gateway.metrics().await);
    assert!(!shown.contains(&token) && !shown.contains(other.token()), "a token is shown");
}
