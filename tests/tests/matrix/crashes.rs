//! `kill -9` at every step: nothing is lost, and nobody is answered twice: what may have been sent is sent again as
//! the same transaction, which the homeserver shows once.

use rejoinder_matrix_server::Homeserver;
use rejoinder_tests::{Gateway, ModelServer, Script, ScriptedAgent};
use rstest::rstest;

use crate::{Chat, FAILED, Place, QUIET, matrix, patient};

/// A gateway that was met by somebody in a place, and has ended.
async fn met(homeserver: &Homeserver, agent: &ScriptedAgent, place: Place, keys: &str) -> (Gateway, Chat, String) {
    let (builder, user) = patient(homeserver, agent, keys).await;
    let mut gateway = builder.start().await;
    let chat = Chat::new(homeserver, place, &user).await;
    chat.is_joined(&user).await;
    chat.says("we meet").await;
    chat.until_hears(&user, 1).await;
    gateway.settles().await;
    gateway.stop().await;
    (gateway, chat, user)
}

/// D1, D14, E1, E3, E8: design §9.
#[rstest]
#[case::received_before_the_commit("received:1", 1)]
#[case::committed_before_it_is_acknowledged("accepted:1", 1)]
#[case::the_agent_is_about_to_run("run_started:1", 1)]
#[case::the_agent_has_run("run_ended:1", 2)]
#[case::the_outcome_is_about_to_be_claimed("before_commit:1", 2)]
#[case::claimed_and_not_sent("after_commit:1", 1)]
#[case::about_to_be_sent("attempt_started:1", 1)]
#[case::sent_and_not_written_down("attempt_ended:1", 1)]
#[tokio::test]
async fn a_crash_at_any_step_loses_nothing_and_answers_once(
    #[case] point: &str,
    #[case] most_runs: usize,
    #[values(Place::Direct, Place::Group, Place::Encrypted)] place: Place,
) {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (mut gateway, chat, user) = met(homeserver, &agent, place, QUIET).await;

    gateway.spawn(&[("REJOINDER_CRASH_AT", point)]);
    gateway.is_ready().await;
    chat.says("hello").await;
    gateway.has_crashed().await;
    gateway.restart().await;
    chat.until_hears(&user, 2).await;
    gateway.settles().await;

    assert_eq!(chat.hears(&user).await, ["Hello.", "Hello."]);
    let runs = agent.calls().len() - 1;
    assert!(runs <= most_runs, "the agent ran {runs} times");
}

/// B13, D1: the same with an answer that is shown while it is written: no draft is left beside it.
#[rstest]
#[case::the_agent_has_run("run_ended:1")]
#[case::the_outcome_is_about_to_be_claimed("before_commit:1")]
#[case::claimed_and_not_sent("after_commit:1")]
#[case::about_to_be_sent("attempt_started:1")]
#[case::sent_and_not_written_down("attempt_ended:1")]
#[tokio::test]
async fn a_crash_while_the_answer_grows_leaves_no_draft_behind(
    #[case] point: &str,
    #[values(Place::Direct, Place::Encrypted)] place: Place,
) {
    const STREAMED: &str = "one two three four five six seven eight nine ten";
    let (homeserver, model) = tokio::join!(Homeserver::shared(), ModelServer::start());
    let account = homeserver.account("agent").await;
    let section = matrix(homeserver.url(), &account, "streaming = \"edit\"");
    let patience = "[guard]\nsoft_deadline = \"off\"\n";
    let mut gateway = Gateway::builder().config(&section).config(&model.section()).config(patience).prepare();

    gateway.spawn(&[("REJOINDER_CRASH_AT", point)]);
    gateway.is_ready().await;
    let chat = Chat::new(homeserver, place, &account.user).await;
    chat.is_joined(&account.user).await;
    chat.says("zebra-stream").await;
    gateway.has_crashed().await;
    gateway.restart().await;
    chat.until_last(&account.user, STREAMED).await;
    gateway.settles().await;

    assert_eq!(chat.hears(&account.user).await, [STREAMED]);
}

/// D1: part k of n: it goes on at the part that was not sent.
#[rstest]
#[case::about_to_be_sent("attempt_started:2")]
#[case::sent_and_not_written_down("attempt_ended:2")]
#[tokio::test]
async fn a_crash_between_two_parts_sends_no_part_twice(#[case] point: &str) {
    let homeserver = Homeserver::shared().await;
    let paragraphs: Vec<_> = (0..60).map(|n| format!("Paragraph {n}. {}", "word ".repeat(150))).collect();
    let agent = ScriptedAgent::replying(&paragraphs.join("\n\n")).await;
    let (builder, user) = patient(homeserver, &agent, QUIET).await;
    let mut gateway = builder.prepare();

    gateway.spawn(&[("REJOINDER_CRASH_AT", point)]);
    gateway.is_ready().await;
    let chat = Chat::new(homeserver, Place::Direct, &user).await;
    chat.says("tell me all").await;
    gateway.has_crashed().await;
    gateway.restart().await;
    chat.until_hears(&user, 3).await;

    gateway.settles().await;
    let said = chat.hears(&user).await.join("\n");
    for n in 0..60 {
        assert_eq!(said.matches(&format!("Paragraph {n}.")).count(), 1, "paragraph {n}");
    }
}

/// D11, D13: a turn that ends the process each time is given up after `max_runs`, and answered.
#[tokio::test]
async fn a_poisonous_turn_is_quarantined_and_answered() {
    let homeserver = Homeserver::shared().await;
    let agent = ScriptedAgent::start(|_, _| Script::replies("never seen")).await;
    let (builder, user) = patient(homeserver, &agent, QUIET).await;
    let mut gateway = builder.prepare();

    gateway.spawn(&[("REJOINDER_CRASH_AT", "run_started:1")]);
    gateway.is_ready().await;
    let chat = Chat::new(homeserver, Place::Direct, &user).await;
    chat.says("poison").await;
    gateway.has_crashed().await;
    for _ in 0..2 {
        gateway.spawn(&[("REJOINDER_CRASH_AT", "run_started:1")]);
        gateway.has_crashed().await;
    }
    gateway.restart().await;
    chat.until_last(&user, FAILED).await;

    gateway.settles().await;
    assert_eq!(chat.hears(&user).await, [FAILED]);
    assert!(agent.calls().is_empty());
}

/// D1, E1, E3, E6: killed at random moments under load, again and again; every message is answered, once.
#[rstest]
#[case::quiet(QUIET)]
#[case::streaming("streaming = \"edit\"")]
#[tokio::test]
async fn killed_again_and_again_every_message_is_answered_once(#[case] keys: &str) {
    const PEOPLE: usize = 6;
    const ROUNDS: usize = 4;
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (builder, user) = patient(homeserver, &agent, keys).await;
    let mut gateway = builder.start().await;
    let mut chats = Vec::new();
    for n in 0..PEOPLE {
        let place = if n == 0 { Place::Encrypted } else { Place::Direct };
        let chat = Chat::new(homeserver, place, &user).await;
        chat.is_joined(&user).await;
        chats.push(chat);
    }

    for round in 0..ROUNDS {
        let before = agent.calls().len();
        for n in 0..3 {
            for chat in &chats {
                chat.says(&format!("round {round} question {n}")).await;
            }
        }
        agent.called(before + 5).await;
        gateway.kill();
        gateway.restart().await;
    }
    let expected: Vec<_> =
        (0..ROUNDS).flat_map(|round| (0..3).map(move |n| format!("echo round {round} question {n}"))).collect();
    for chat in &chats {
        chat.until_last(&user, &expected[expected.len() - 1]).await;
    }
    gateway.settles().await;

    for chat in &chats {
        assert_eq!(chat.hears(&user).await, expected);
    }
    assert_eq!(gateway.undeliverable(), 0);
}
