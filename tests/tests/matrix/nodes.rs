//! The channel moves between nodes, or from one database to another: it stays the same device, and reads all that is encrypted for it.
//! Without a PostgreSQL server the tests say so, and pass.

use rejoinder_matrix_server::{Account, Homeserver};
use rejoinder_store::{TestDatabase, TestServer};
use rejoinder_tests::{Gateway, GatewayBuilder, ScriptedAgent, eventually};

use crate::{Chat, Place, QUIET, matrix, with_chat};

#[allow(dead_code, reason = "the tests of the store use all of it")]
#[path = "../../../adapters/store/tests/postgres/server.rs"]
mod server;

fn on(database: &TestDatabase) -> String {
    format!("[store]\nurl = \"{}\"", database.url())
}

/// A gateway with an account on the shared homeserver.
fn node(homeserver: &Homeserver, account: &Account, agent: &ScriptedAgent) -> GatewayBuilder {
    Gateway::builder()
        .config(&matrix(homeserver.url(), account, QUIET))
        .config(&agent.section())
        .config("[guard]\nsoft_deadline = \"off\"")
}

async fn devices(homeserver: &Homeserver, account: &Account) -> Vec<String> {
    homeserver.person("eve").await.devices_of(&account.user).await
}

fn has_file(gateway: &Gateway, name: &str) -> bool {
    gateway.data().join("matrix-test").join(name).exists()
}

/// One node is killed, and the other one is stopped later. Both get the keys of rooms, and of people who begin to write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_moves_stays_the_same_device_and_reads_all() {
    let Some(postgres) = server::get() else { return };
    let database = postgres.create(TestServer::EMPTY).await;
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let account = homeserver.account("agent").await;
    let user = account.user.as_str();
    let (mut one, ada) =
        with_chat(node(homeserver, &account, &agent).config(&on(&database)), Place::Encrypted, user).await;
    ada.says("one").await;
    ada.until_hears(user, 1).await;
    one.until_settled().await;
    let before = devices(homeserver, &account).await;
    let mut two = node(homeserver, &account, &agent).config(&on(&database)).start().await;

    one.kill();
    ada.says("two").await;
    ada.until_hears(user, 2).await;
    let bob = Chat::new(homeserver, Place::Encrypted, user).await;
    bob.until_joined(user).await;
    bob.says("three").await;
    bob.until_hears(user, 1).await;
    one.restart().await;
    assert!(two.stop().await.success());
    ada.says("four").await;
    bob.says("five").await;

    assert_eq!(ada.until_hears(user, 3).await, ["echo one", "echo two", "echo four"]);
    assert_eq!(bob.until_hears(user, 2).await, ["echo three", "echo five"]);
    one.until_settled().await;
    assert_eq!(ada.hears(user).await.len() + bob.hears(user).await.len(), 5, "nothing was doubled");
    assert_eq!(devices(homeserver, &account).await, before);
    for gateway in [&one, &two] {
        assert!(!has_file(gateway, "session.json"), "the device is in the database");
    }
}

/// The folder of a gateway on SQLite, whose channel goes on with a database that other nodes may share.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_moves_from_its_folder_to_the_database() {
    let Some(postgres) = server::get() else { return };
    let database = postgres.create(TestServer::EMPTY).await;
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let account = homeserver.account("agent").await;
    let user = account.user.as_str();
    let (mut gateway, ada) = with_chat(node(homeserver, &account, &agent), Place::Encrypted, user).await;
    ada.says("one").await;
    ada.until_hears(user, 1).await;
    gateway.until_settled().await;
    let before = devices(homeserver, &account).await;
    assert!(gateway.stop().await.success());

    ada.says("two").await;
    gateway.reconfigure(|text| format!("{text}{}\n", on(&database)));
    gateway.restart().await;

    assert_eq!(ada.until_hears(user, 2).await, ["echo one", "echo two"]);
    gateway.until_settled().await;
    assert_eq!(devices(homeserver, &account).await, before);
    assert!(!has_file(&gateway, "session.json") && has_file(&gateway, "session.json.moved"));

    gateway.stop().await;
    gateway.restart().await;
    ada.says("three").await;
    eventually("it is read", async || (agent.calls().len() == 3).then_some(())).await;
    assert_eq!(ada.until_hears(user, 3).await[2], "echo three");
    assert_eq!(devices(homeserver, &account).await, before);
}
