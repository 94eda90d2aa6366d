//! The answers when no agent is configured.

use rejoinder_agents::{FrontDesk, NextStep, Status};
use rejoinder_core::{AgentRuntime as _, AgentTurn, ChannelId, HistoryLine, LineState, Speaker, Timestamp};
use rstest::rstest;

use crate::double::{run, turn};

fn front_desk() -> FrontDesk {
    front_desk_before(NextStep::Init("./rejoinder init".into()))
}

fn front_desk_before(next_step: NextStep) -> FrontDesk {
    FrontDesk::new(move || Status {
        version: "1.2.3".into(),
        started: Timestamp::from_millis(1_700_000_000_000 - 7_200_000),
        channels: vec!["webchat.main".into(), "webhook.siri".into()],
        next_step: next_step.clone(),
    })
}

async fn answer(text: &str) -> String {
    run(&front_desk(), turn(text)).await.reply()
}

async fn spoken_answer(text: &str) -> String {
    let mut turn: AgentTurn = turn(text);
    turn.place.conversation.channel = ChannelId::new("webhook", "siri");
    run(&front_desk(), turn).await.reply()
}

#[tokio::test]
async fn a_ping_is_answered() {
    assert_eq!(answer("/ping").await, "pong");
}

#[tokio::test]
async fn the_status_tells_version_time_and_channels() {
    assert_eq!(
        answer("Status?").await,
        "Rejoinder 1.2.3 has been running for 2 hours. No agent is configured yet.\n\n\
         Channels: `webchat.main`, `webhook.siri`"
    );
    assert_eq!(
        spoken_answer("status").await,
        "Rejoinder 1.2.3 has been running for 2 hours. No agent is configured yet. It serves 2 channels."
    );
}

#[tokio::test]
async fn a_question_is_answered_with_how_to_connect_an_agent() {
    let answer = answer("What is the capital of France?").await;
    assert!(answer.contains("no agent is configured") && answer.contains("run `./rejoinder init`"));
    assert!(answer.contains("[agents.main]\nkind = \"openai\""));
}

#[tokio::test]
async fn what_was_explained_once_in_a_conversation_is_a_line_from_then_on() {
    let mut turn = turn("And of Spain?");
    let (text, at) = (answer("What is the capital of France?").await, turn.now);
    let (speaker, state) = (Speaker::Agent, LineState::Seen);
    turn.past.history =
        vec![HistoryLine { spoken: false, speaker, author: None, forwarded: None, text, at, state }.into()];

    let again = run(&front_desk(), turn).await.reply();

    assert!(front_desk().history() > 0);
    assert!(again.contains("still no agent") && again.contains("run `./rejoinder init`"), "{again}");
    assert!(!again.contains('\n'), "{again}");
}

#[tokio::test]
async fn after_init_the_front_desk_says_what_to_do_then() {
    let add = NextStep::Add { file: "bots.toml".into(), command: "rejoinder init --config bots.toml".into() };

    let added = run(&front_desk_before(add), turn("What is the capital of France?")).await.reply();
    let restarted = run(&front_desk_before(NextStep::Restart), turn("help")).await.reply();

    assert!(added.contains("add it to `bots.toml`") && added.contains("[agents.main]"), "{added}");
    assert!(restarted.contains("restart it") && !restarted.contains("init"), "{restarted}");
}

#[rstest]
#[case("help")]
#[case("status")]
#[case("ping")]
#[case("hello")]
#[case("What is the capital of France?")]
#[tokio::test]
async fn what_is_spoken_is_short_and_plain(#[case] text: &str) {
    let answer = spoken_answer(text).await;
    assert!(!answer.contains(['`', '*', '#', '\n', '[']), "{answer}");
    assert!(answer.len() < 250, "{answer}");
}
