//! What the application needs, and how the gateway reports that something is missing.

use rejoinder_discord_server::{DiscordServer, Fault};
use rejoinder_tests::{Gateway, ScriptedAgent, eventually};
use serde_json::json;

use crate::{between, between_with, hears};

/// D17, F4: without the MESSAGE CONTENT intent readiness says what to switch on; messages directed at the bot are still
/// answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn hidden_content_is_named() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    server.set(json!({ "message_content": false })).await;
    let mut gateway = between_with(&server, &agent, "group_policy = \"all\"").prepare();
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;

    gateway.spawn(&[]);
    server.until_connected().await;
    ada.says(&general, "nice weather").await;
    ada.mentions(&general, "are you there?").await;
    ada.dm("are you there?").await;
    hears(&server, &general, "Hello.").await;
    hears(&server, &ada.direct().await, "Hello.").await;
    let said = gateway.until_not_ready("MESSAGE CONTENT INTENT").await;

    gateway.until_settled().await;
    assert!(said.contains("discord.test"), "{said}");
    assert!(gateway.log().contains("MESSAGE CONTENT INTENT"), "the log does not name the intent");
    assert_eq!(agent.calls().len(), 2);
}

/// With `message_content = false` the gateway is ready without the intent.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_does_not_ask_for_the_content_is_ready_without_it() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    server.set(json!({ "message_content": false })).await;
    let gateway = between_with(&server, &agent, "message_content = false").start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;

    ada.says(&general, "nice weather").await;
    ada.mentions(&general, "are you there?").await;
    hears(&server, &general, "Hello.").await;

    gateway.until_settled().await;
    assert!(gateway.readiness().await.0, "{}", gateway.readiness().await.1);
}

/// The commands are registered globally, or in the servers that the operator names.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_commands_are_registered_where_the_operator_wants_them() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let guild = server.guild("Friends").await;
    let expected = [
        "agent", "ask", "budget", "export", "help", "history", "home", "language", "link", "model", "new", "queue",
        "retry", "session", "status", "stop", "undo", "unlink", "voice", "whoami",
    ];
    let registered = async |of: Option<&rejoinder_discord_server::Guild>| {
        let mut names = server.commands(of).await;
        names.sort();
        names
    };

    let everywhere = between(&server, &agent).start().await;
    server.until("the global commands", async || (registered(None).await == expected).then_some(())).await;
    assert!(registered(Some(&guild)).await.is_empty());
    drop(everywhere);

    let keys = format!("command_guilds = [\"{}\"]", guild.id());
    let _here = between_with(&server, &agent, &keys).start().await;
    server.until("the server's commands", async || (registered(Some(&guild)).await == expected).then_some(())).await;
}

/// D17: the gateway is not ready until Discord's Gateway has accepted it; it starts no session when none is left today.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn it_is_not_ready_while_no_session_may_be_begun() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    server.set(json!({ "identify_remaining": 0, "identify_reset_after": 3600.0 })).await;
    let mut gateway = between(&server, &agent).prepare();

    gateway.spawn(&[]);
    let asked = async || (!server.calls_to("GET", "/gateway/bot").await.is_empty()).then_some(());
    server.until("the gateway asks how many sessions are left", asked).await;
    let said = gateway.until_not_ready("60 minutes").await;

    assert!(said.contains("discord.test"), "{said}");
    assert_eq!(server.sessions().await.identifies, 0);
}

/// D17, F3: readiness reports a Discord that is unreachable at the start; the gateway connects once it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_start_without_discord_goes_on_when_it_is_there() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    server.fault(Fault::on_everything().failed(503).always()).await;
    let mut gateway = between(&server, &agent).prepare();

    gateway.spawn(&[]);
    eventually("the gateway listens", async || gateway.http().get(gateway.url()).send().await.ok().map(drop)).await;
    gateway.until_not_ready("discord.test").await;
    server.clear_faults().await;
    gateway.until_ready().await;

    let ada = server.person("Ada").await;
    ada.dm("hello").await;
    hears(&server, &ada.direct().await, "Hello.").await;
    gateway.until_settled().await;
}

/// After a 401 the channel pauses, readiness reports it, calls are rare, and the token appears nowhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_token_that_is_refused_is_named() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between(&server, &agent).start().await;
    let ada = server.person("Ada").await;

    let refused = Fault::on_everything().refused(401, 0, "401: Unauthorized").always();
    server.fault(refused).await;
    server.gateway(rejoinder_discord_server::GatewayAction::Close(4004)).await;
    let said = gateway.until_not_ready("token").await;
    server.clear_faults().await;
    eventually("the gateway is ready again", async || gateway.readiness().await.0.then_some(())).await;
    ada.dm("hello").await;
    hears(&server, &ada.direct().await, "Hello.").await;

    gateway.until_settled().await;
    assert!(said.contains("discord.test"), "{said}");
    assert!(server.invalid_requests().await < 20, "{} invalid requests", server.invalid_requests().await);
    let shown = format!("{}{said}{}", gateway.log(), gateway.metrics().await);
    assert!(!shown.contains(server.token()), "the token is shown");
}

/// After a 401 on sending the channel pauses, readiness reports it, and the answer is kept until the token is accepted.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_waits_for_a_token_that_is_heard() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let keys = "streaming = \"off\"";
    let gateway = Gateway::builder()
        .time_passes_faster(10)
        .config(&crate::discord(&server, keys))
        .config(&agent.section())
        .config("[guard]\nsoft_deadline = \"off\"\n")
        .start()
        .await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    let refused = Fault::on("POST", "/channels/*/messages").refused(401, 0, "401: Unauthorized").always();
    server.fault(refused).await;
    ada.dm("hello").await;
    gateway.until_not_ready("token").await;
    let tried = server.calls_to("POST", "/messages").await.len();
    server.clear_faults().await;
    hears(&server, &chat, "Hello.").await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&chat).await, ["Hello."]);
    assert!(tried <= 3, "it was tried {tried} times while the token was rejected");
    eventually("the gateway is ready again", async || gateway.readiness().await.0.then_some(())).await;
}
