//! Messages that were sent while the gateway was down.

use rejoinder_discord_server::{Channel, DiscordServer, Fault, GatewayAction, Person};
use rejoinder_tests::{Gateway, ScriptedAgent};
use rstest::rstest;

use crate::{between_with, hears};

const QUIET: &str = "streaming = \"off\"";

/// D14: the first start answers what was said in servers minutes before it. It does not know of direct chats.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_first_start_answers_what_was_just_said_in_servers() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::echoing().await);
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    ada.mentions(&general, "old").await;
    ada.dm("old").await;

    let gateway = between_with(&server, &agent, QUIET).start().await;
    ada.dm("new").await;
    hears(&server, &ada.direct().await, "echo new").await;

    hears(&server, &general, "echo old").await;

    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 2);
}

async fn begun(server: &DiscordServer, agent: &ScriptedAgent, ada: &Person, chat: &Channel) -> Gateway {
    let gateway = between_with(server, agent, QUIET).start().await;
    ada.says(chat, "hello").await;
    hears(server, chat, "echo hello").await;
    gateway.until_settled().await;
    gateway
}

/// D4, D9, E1, E6, F5: all missed messages are answered once and in order, whether Discord replays them or they are read
/// back page by page.
#[rstest]
#[case::replayed(false)]
#[case::read_back(true)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_said_meanwhile_is_answered_in_order(#[case] is_forgotten: bool) {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::echoing().await);
    let (ada, chat) = server.crowd(1).await.remove(0);
    let mut gateway = begun(&server, &agent, &ada, &chat).await;

    gateway.kill();
    server.all_say(&[(ada, chat.clone())], 110, "{}").await;
    if is_forgotten {
        server.gateway(GatewayAction::Forget).await;
    }
    gateway.restart().await;
    hears(&server, &chat, "echo 109").await;

    gateway.until_settled().await;
    let expected: Vec<_> = (0..110).map(|n| format!("echo {n}")).collect();
    assert_eq!(server.bot_texts(&chat).await[1..], expected);
    assert_eq!(server.sessions().await.identifies, if is_forgotten { 2 } else { 1 });
}

/// D4: `backfill_max_age` limits how far back messages are read.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_older_than_the_operator_wants_is_not_answered() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::echoing().await);
    let (ada, chat) = server.crowd(1).await.remove(0);
    let keys = "streaming = \"off\"\nbackfill_max_age = \"1h\"";
    let mut gateway = between_with(&server, &agent, keys).own_calendar().start().await;
    ada.says(&chat, "hello").await;
    hears(&server, &chat, "echo hello").await;
    gateway.until_settled().await;

    gateway.stop().await;
    server.gateway(GatewayAction::Forget).await;
    ada.says(&chat, "too old").await;
    server.advance(std::time::Duration::from_hours(2)).await;
    gateway.set_calendar_offset(2 * 3600);
    ada.says(&chat, "new").await;
    gateway.restart().await;
    hears(&server, &chat, "echo new").await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&chat).await, ["echo hello", "echo new"]);
}

/// D1, D9, E6, F5: people in channels, threads, forums and direct chats keep writing while the gateway is killed, restarted
/// and disconnected: each message is answered once, in order.
#[rstest]
#[case::resumed(&[])]
#[case::forgotten(&[GatewayAction::Forget])]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_restart_while_people_talk_loses_nothing(#[case] actions: &[GatewayAction]) {
    const TALK: usize = 24;
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::echoing().await);
    let guild = server.guild("Friends").await;
    let (general, forum) = (guild.channel("general").await, guild.forum("questions").await);
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
    let chat = ada.direct().await;
    let mut gateway = begun(&server, &agent, &ada, &chat).await;
    let aside = bob.opens_thread(&general, "aside").await;
    let post = bob.posts(&forum, "A question", "hm").await;

    let places = [general.clone(), aside, post];
    let talking = async {
        for n in 0..TALK {
            ada.says(&chat, &format!("number {n}")).await;
            for place in &places {
                bob.mentions(place, &format!("number {n}")).await;
            }
        }
    };
    let restarting = async {
        agent.until_called(6).await;
        gateway.kill();
        for action in actions {
            server.gateway(*action).await;
        }
        gateway.restart().await;
        agent.until_called(30).await;
        gateway.stop().await;
        for action in actions {
            server.gateway(*action).await;
        }
        gateway.restart().await;
    };
    tokio::join!(talking, restarting);

    for place in places.iter().chain([&chat]) {
        let greeted = usize::from(place.id() == chat.id());
        let said = server.until_bot_texts(place, TALK + greeted).await;
        let numbers: Vec<_> =
            said[greeted..].iter().map(|text| text.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).collect();
        assert_eq!(numbers, (0..TALK).collect::<Vec<_>>());
    }
    gateway.until_settled().await;
    for place in &places {
        assert_eq!(server.bot_texts(place).await.len(), TALK);
    }
}

/// D1, F5: a backlog that was not read before a crash is read before the newer events that Discord replays.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_left_to_be_read_comes_before_what_is_newer() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::echoing().await);
    let (ada, chat) = server.crowd(1).await.remove(0);
    let mut gateway = begun(&server, &agent, &ada, &chat).await;

    gateway.kill();
    server.gateway(GatewayAction::Forget).await;
    ada.says(&chat, "one").await;
    let before = server.calls_to("GET", "/messages").await.len();
    server.fault(Fault::on("GET", "/channels/*/messages").failed(503).always()).await;
    gateway.restart().await;
    ada.says(&chat, "two").await;
    let tried = async || (server.calls_to("GET", "/messages").await.len() > before).then_some(());
    server.until("an attempt to read the backlog", tried).await;
    gateway.kill();
    server.clear_faults().await;
    gateway.restart().await;
    hears(&server, &chat, "echo two").await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&chat).await, ["echo hello", "echo one", "echo two"]);
}

/// D1, F5: killed after the first page of a backlog, while the second is on its way and more is said.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_kill_while_a_backlog_is_read_loses_nothing_and_doubles_nothing() {
    const MISSED: usize = 150;
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::echoing().await);
    let (ada, chat) = server.crowd(1).await.remove(0);
    let mut gateway = begun(&server, &agent, &ada, &chat).await;

    gateway.kill();
    server.gateway(GatewayAction::Forget).await;
    server.all_say(&[(ada.clone(), chat.clone())], MISSED, "{}").await;
    let before = server.calls_to("GET", "/messages").await.len();
    server.fault(Fault::on("GET", "/channels/*/messages").silent().after(1).always()).await;
    gateway.restart().await;
    hears(&server, &chat, "echo 0").await;
    ada.says(&chat, &MISSED.to_string()).await;
    let hangs = async || (server.calls_to("GET", "/messages").await.len() > before + 1).then_some(());
    server.until("the second page is asked for", hangs).await;
    gateway.kill();
    server.clear_faults().await;
    gateway.restart().await;
    hears(&server, &chat, &format!("echo {MISSED}")).await;

    gateway.until_settled().await;
    let expected: Vec<_> = (0..=MISSED).map(|n| format!("echo {n}")).collect();
    assert_eq!(server.bot_texts(&chat).await[1..], expected);
}

/// D9: a channel that can no longer be read does not block others.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_channel_that_cannot_be_read_is_let_pass() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let guild = server.guild("Friends").await;
    let (closed, general) = (guild.channel("closed").await, guild.channel("general").await);
    let ada = server.person("Ada").await;
    let mut gateway = between_with(&server, &agent, QUIET).start().await;
    ada.mentions(&general, "hello").await;
    server.until_bot_texts(&general, 1).await;
    gateway.until_settled().await;

    gateway.stop().await;
    server.gateway(GatewayAction::Forget).await;
    ada.mentions(&closed, "for nobody").await;
    closed.denies(&["view_channel", "read_message_history"]).await;
    ada.mentions(&general, "open").await;
    gateway.restart().await;
    server.until_bot_texts(&general, 2).await;

    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 2);
}
