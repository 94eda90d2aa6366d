//! `kill -9` at every step: nothing is lost, and nobody is answered twice: what may have been sent is sent again as
//! the same message, which Discord shows once.

use rejoinder_discord_server::{Channel, DiscordServer, Gateway as Event, Person};
use rejoinder_tests::{Gateway, Script, ScriptedAgent};
use rstest::rstest;

use crate::{between_with, finds, hears};

#[derive(Clone, Copy, Debug)]
enum Place {
    DirectChat,
    Server,
}

/// A gateway that was met by somebody in a place, and has ended.
///
/// At its next start it takes its session up again, so that nothing but what is said then passes a crash point.
async fn met(server: &DiscordServer, agent: &ScriptedAgent, place: Place, keys: &str) -> (Gateway, Person, Channel) {
    let mut gateway = between_with(server, agent, keys).start().await;
    let ada = server.person("Ada").await;
    let channel = match place {
        Place::DirectChat => ada.direct().await,
        Place::Server => server.guild("Friends").await.channel("general").await,
    };
    says(&ada, &channel, place, "we meet").await;
    server.until_said(&channel, 1).await;
    gateway.settles().await;
    gateway.stop().await;
    (gateway, ada, channel)
}

async fn says(person: &Person, channel: &Channel, place: Place, words: &str) {
    match place {
        Place::DirectChat => person.says(channel, words).await,
        Place::Server => person.mentions(channel, words).await,
    };
}

/// D1, D7, E1, E3, E8: design §9.
#[rstest]
#[case::received_before_the_commit("received:1", 1)]
#[case::committed_before_it_is_acknowledged("accepted:1", 1)]
#[case::the_agent_is_about_to_run("run_started:1", 1)]
#[case::the_agent_has_run("run_ended:1", 2)]
#[case::the_outcome_is_about_to_be_claimed("before_commit:1", 2)]
#[case::claimed_and_not_sent("after_commit:1", 1)]
#[case::about_to_be_sent("attempt_started:1", 1)]
#[case::sent_and_not_written_down("attempt_ended:1", 1)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_at_any_step_loses_nothing_and_answers_once(
    #[case] point: &str,
    #[case] most_runs: usize,
    #[values(Place::DirectChat, Place::Server)] place: Place,
    #[values(false, true)] is_forgotten: bool,
) {
    let server = DiscordServer::start().await;
    let agent = ScriptedAgent::replying("Hello.").await;
    let (mut gateway, ada, channel) = met(&server, &agent, place, "streaming = \"off\"").await;

    gateway.spawn(&[("REJOINDER_CRASH_AT", point)]);
    gateway.is_ready().await;
    says(&ada, &channel, place, "hello").await;
    gateway.has_crashed().await;
    if is_forgotten {
        server.gateway(Event::Forget).await;
    }
    gateway.restart().await;
    server.until_said(&channel, 2).await;
    gateway.settles().await;

    assert_eq!(server.said(&channel).await, ["Hello.", "Hello."]);
    let runs = agent.calls().len() - 1;
    assert!(runs <= most_runs, "the agent ran {runs} times");
}

/// B13, D1: the same with an answer that is shown while it is written: no draft is left beside it.
#[rstest]
#[case::the_agent_has_run("run_ended:1")]
#[case::claimed_and_not_sent("after_commit:1")]
#[case::about_to_be_sent("attempt_started:1")]
#[case::sent_and_not_written_down("attempt_ended:1")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_while_an_answer_is_shown_leaves_one(#[case] point: &str) {
    let (server, model) = tokio::join!(DiscordServer::start(), rejoinder_tests::ModelServer::start());
    let mut gateway =
        Gateway::builder().config(&crate::discord(&server, "streaming = \"edit\"")).config(&model.section()).prepare();
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;
    let words = "one two three four five six seven eight nine ten";

    gateway.spawn(&[("REJOINDER_CRASH_AT", point)]);
    gateway.is_ready().await;
    ada.dm("zebra-stream").await;
    gateway.has_crashed().await;
    gateway.restart().await;
    hears(&server, &chat, words).await;

    gateway.settles().await;
    crate::says_only(&server, &chat, &[words]).await;
}

/// D1: part k of n: it goes on at the part that was not sent.
#[rstest]
#[case::about_to_be_sent("attempt_started:2")]
#[case::sent_and_not_written_down("attempt_ended:2")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_between_two_parts_sends_no_part_twice(#[case] point: &str) {
    let server = DiscordServer::start().await;
    let paragraphs: Vec<_> = (0..30).map(|n| format!("Paragraph {n}. {}", "word ".repeat(60))).collect();
    let agent = ScriptedAgent::replying(&paragraphs.join("\n\n")).await;
    let mut gateway = between_with(&server, &agent, "streaming = \"off\"").prepare();
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    gateway.spawn(&[("REJOINDER_CRASH_AT", point)]);
    gateway.is_ready().await;
    ada.dm("tell me all").await;
    gateway.has_crashed().await;
    gateway.restart().await;
    finds(&server, &chat, "the end", |message| message.ours && message.content.contains("Paragraph 29.")).await;

    gateway.settles().await;
    let said = server.said(&chat).await.join("\n");
    for n in 0..30 {
        assert_eq!(said.matches(&format!("Paragraph {n}.")).count(), 1, "paragraph {n}");
    }
}

/// D11, D13: a turn that ends the process each time is given up after `max_runs`, and answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_poisonous_turn_is_quarantined_and_answered() {
    let server = DiscordServer::start().await;
    let agent = ScriptedAgent::start(|_, _| Script::replies("never seen")).await;
    let mut gateway = between_with(&server, &agent, "streaming = \"off\"").prepare();
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    gateway.spawn(&[("REJOINDER_CRASH_AT", "run_started:1")]);
    gateway.is_ready().await;
    ada.dm("poison").await;
    gateway.has_crashed().await;
    for _ in 0..2 {
        gateway.spawn(&[("REJOINDER_CRASH_AT", "run_started:1")]);
        gateway.has_crashed().await;
    }
    gateway.restart().await;
    hears(&server, &chat, crate::FAILED).await;

    gateway.settles().await;
    assert_eq!(server.said(&chat).await, [crate::FAILED]);
    assert!(agent.calls().is_empty());
}

/// D1, E1, E3, E6: killed at random moments under load, again and again; every message is answered, once.
#[rstest]
#[case::quiet("streaming = \"off\"")]
#[case::streaming("streaming = \"edit\"")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn killed_again_and_again_every_message_is_answered_once(#[case] keys: &str) {
    const PEOPLE: usize = 10;
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::echoing().await);
    // A turn that was in the agent's hands at three crashes would be given up: it is not what is looked at here.
    let mut gateway = between_with(&server, &agent, keys).config("[guard]\nmax_runs = 10\n").start().await;
    let crowd = server.crowd(PEOPLE).await;
    // Discord lists direct chats nowhere: what is missed in one that was never heard of cannot be read back.
    server.all_say(&crowd, 1, "we meet").await;
    for (_, chat) in &crowd {
        hears(&server, chat, "echo we meet").await;
    }
    gateway.settles().await;

    for round in 0..5 {
        let before = agent.calls().len();
        server.all_say(&crowd, 3, &format!("round {round} question {{}}")).await;
        agent.called(before + 8).await;
        gateway.kill();
        if round % 2 == 1 {
            server.gateway(Event::Forget).await;
        }
        gateway.restart().await;
    }
    for (_, chat) in &crowd {
        hears(&server, chat, "echo round 4 question 2").await;
    }
    gateway.settles().await;

    let expected: Vec<_> =
        (0..5).flat_map(|round| (0..3).map(move |n| format!("echo round {round} question {n}"))).collect();
    for (_, chat) in &crowd {
        assert_eq!(server.said(chat).await[1..], expected);
    }
    assert_eq!(gateway.undeliverable(), 0);
}
