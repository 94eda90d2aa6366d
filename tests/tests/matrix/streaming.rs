//! Streamed answers.

use rejoinder_matrix_server::{Call, Fault, Homeserver, Person, Proxy};
use rejoinder_tests::{Gateway, ModelServer, Script, ScriptedAgent};
use rstest::rstest;
use serde_json::json;

use crate::{Chat, FAILED, Place, SEND, matrix};

const STREAMED: &str = "one two three four five six seven eight nine ten";

/// A4, B13: the final text is the whole answer, in one message, whatever was shown before.
#[rstest]
#[case::edits("edit")]
#[case::off("off")]
#[tokio::test]
async fn what_is_streamed_ends_as_the_whole_answer(
    #[case] how: &str,
    #[values(Place::Direct, Place::Group, Place::Encrypted)] place: Place,
) {
    let (homeserver, model) = tokio::join!(Homeserver::shared(), ModelServer::start());
    let account = homeserver.account("agent").await;
    let section = matrix(homeserver.url(), &account, &format!("streaming = \"{how}\""));
    let gateway = Gateway::builder().config(&section).config(&model.section()).start().await;
    let chat = Chat::new(homeserver, place, &account.user).await;
    chat.until_joined(&account.user).await;

    chat.says("zebra-stream").await;
    chat.until_last(&account.user, STREAMED).await;
    gateway.until_settled().await;

    assert_eq!(chat.hears(&account.user).await, [STREAMED]);
    let answer = chat.until_finds(&account.user, "the answer", |said| said.first().cloned()).await;
    let first = answer.content["body"].as_str().expect("a text").to_owned();
    assert!(STREAMED.starts_with(first.trim_end_matches(" …")), "{first}");
    assert_eq!(answer.edits > 0, how == "edit", "{} edits", answer.edits);
}

/// A4, B8, B13: the draft of a failed answer does not stay beside the fallback.
#[rstest]
#[tokio::test]
async fn a_draft_of_nothing_is_taken_back(#[values(Place::Direct, Place::Encrypted)] place: Place) {
    let (homeserver, agent) =
        (Homeserver::shared().await, ScriptedAgent::start(|_, _| Script::hangs().streaming("I am")).await);
    let account = homeserver.account("agent").await;
    let gateway = Gateway::builder()
        .config(&matrix(homeserver.url(), &account, "streaming = \"edit\""))
        .config(&agent.section_with("idle_timeout = \"3s\""))
        .start()
        .await;
    let chat = Chat::new(homeserver, place, &account.user).await;
    chat.until_joined(&account.user).await;

    chat.says("hello").await;
    let is_draft = |text: &str| text.starts_with("I am");
    chat.until_finds(&account.user, "the draft", |said| said.iter().find(|it| is_draft(&it.text)).map(drop)).await;
    chat.until_last(&account.user, FAILED).await;

    gateway.until_settled().await;
    assert_eq!(chat.hears(&account.user).await, [FAILED]);
}

/// B13, D1: a draft that a process left behind is edited into the answer of the next one.
#[tokio::test]
async fn a_draft_outlives_the_process_and_gives_way_to_the_answer() {
    let homeserver = Homeserver::shared().await;
    let agent = ScriptedAgent::start(|_, number| match number {
        0 => Script::hangs().streaming("I am"),
        _ => Script::replies("All of it."),
    })
    .await;
    let (proxy, account) = (homeserver.proxy().await, homeserver.account("agent").await);
    let section = matrix(proxy.url(), &account, "streaming = \"edit\"\nsync_timeout = \"1s\"");
    let mut gateway = Gateway::builder()
        .time_passes_faster(10)
        .config(&section)
        .config(&agent.section_with("idle_timeout = \"10m\""))
        .config("[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\n")
        .start()
        .await;
    let user = account.user;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&user).await;
    let notices = || proxy.calls().iter().filter(|call| call.path.contains("/typing/")).count();

    ada.says(&room, "hello").await;
    ada.until("the draft", async || ada.sees(&room).await.into_iter().find(|it| it.sender == user)).await;
    let before = notices();
    // The draft's receipt is stored only after it was sent; the next typing notice shows that time has passed.
    ada.until("another typing notice", async || (notices() > before).then_some(())).await;
    gateway.kill();
    gateway.restart().await;
    gateway.until_settled().await;

    // The answer edits the draft, or is a message of its own if the last draft took more than a second, here a tenth of it.
    let is_alone = async || (ada.hears(&room, &user).await == ["All of it."]).then_some(());
    ada.until("the answer alone", is_alone).await;
}

/// A gateway that streams its answers through a proxy, and a person to talk to it.
async fn growing() -> (Gateway, ModelServer, Proxy, String, Person) {
    let (homeserver, model) = tokio::join!(Homeserver::shared(), ModelServer::start());
    let (proxy, account) = (homeserver.proxy().await, homeserver.account("agent").await);
    let section = matrix(proxy.url(), &account, "streaming = \"edit\"");
    let gateway = Gateway::builder().config(&section).config(&model.section()).start().await;
    (gateway, model, proxy, account.user, homeserver.person("ada").await)
}

/// A4: while edits fail the complete answer is still sent.
#[tokio::test]
async fn a_draft_that_cannot_be_changed_costs_nobody_the_answer() {
    let (gateway, _model, proxy, user, ada) = growing().await;
    let room = ada.direct(&user).await;
    ada.until_joined(&room, &user).await;

    let body = json!({ "errcode": "M_UNKNOWN", "error": "Internal server error" });
    proxy.fail_on("m.replace", "PUT", SEND, 2, Fault::Answer { status: 500, body });
    ada.says(&room, "zebra-stream").await;
    let is_whole = async || (ada.hears(&room, &user).await == [STREAMED]).then_some(());
    ada.until("the whole answer", is_whole).await;

    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, &user).await, [STREAMED]);
    assert!(proxy.calls().iter().any(|call| call.status == 500), "no edit failed");
}

/// B8, B13: somebody deletes the draft: the answer is still sent, once.
#[tokio::test]
async fn a_draft_that_is_deleted_costs_nobody_the_answer() {
    let (gateway, _model, _way, user, ada) = growing().await;
    let room = ada.direct(&user).await;
    ada.until_joined(&room, &user).await;

    ada.says(&room, "zebra-stream").await;
    let draft = ada.until("the draft", async || ada.sees(&room).await.into_iter().find(|it| it.sender == user)).await;
    ada.redacts(&room, &draft.id).await;
    let is_whole = async || (ada.hears(&room, &user).await == [STREAMED]).then_some(());
    ada.until("the whole answer", is_whole).await;

    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, &user).await, [STREAMED]);
}

/// The same while the gateway does not hear of it: the homeserver accepts the edit, which nobody sees.
#[tokio::test]
async fn a_draft_whose_deletion_is_not_heard_of_costs_nobody_the_answer() {
    let (homeserver, model) = tokio::join!(Homeserver::shared(), ModelServer::start());
    let (proxy, account) = (homeserver.proxy().await, homeserver.account("agent").await);
    let section = matrix(proxy.url(), &account, "streaming = \"edit\"\nsync_timeout = \"1s\"");
    let gateway = Gateway::builder().config(&section).config(&model.section()).start().await;
    let (user, ada) = (account.user, homeserver.person("ada").await);
    let room = ada.direct(&user).await;
    ada.until_joined(&room, &user).await;

    ada.says(&room, "zebra-long").await;
    let draft = ada.until("the draft", async || ada.sees(&room).await.into_iter().find(|it| it.sender == user)).await;
    proxy.fail("GET", "/sync", 10_000, Fault::Answer { status: 502, body: json!({}) });
    proxy.until("a sync fails", |call| call.path.contains("/sync") && call.status == 502).await;
    ada.redacts(&room, &draft.id).await;

    let is_whole =
        |heard: &[String]| matches!(heard, [text] if text.starts_with("one two") && text.ends_with("forty fifty"));
    ada.until("the whole answer", async || is_whole(&ada.hears(&room, &user).await).then_some(())).await;
    proxy.clear_faults();
    gateway.until_settled().await;
    assert!(is_whole(&ada.hears(&room, &user).await));
    let is_last_edit = |call: &Call| {
        call.status == 200
            && call.body["m.new_content"]["body"].as_str().is_some_and(|text| text.ends_with("forty fifty"))
    };
    assert!(proxy.calls().iter().any(is_last_edit), "no edit was accepted");
}
