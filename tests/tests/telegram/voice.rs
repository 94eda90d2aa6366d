//! Voice notes: a server writes down what is said in them, and that is answered.

use rejoinder_telegram_double::TelegramDouble;
use rejoinder_tests::{Gate, GatewayBuilder, Script, ScriptedAgent, TranscriptionServer, eventually};

use crate::{between, last_message, only_turn};

const OGG: &[u8] = b"OggS\0\x02 what somebody says";

const UNHEARD: &str = "Sorry, I could not hear what you said. Please try again, or write to me.";

fn speaking(double: &TelegramDouble, agent: &ScriptedAgent, server: &TranscriptionServer) -> GatewayBuilder {
    between(double, agent).config(&server.section())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_voice_note_is_answered_in_words() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Soup.").await);
    let server = TranscriptionServer::hearing(&["What is for dinner?"]).await;
    let gateway = speaking(&double, &agent, &server).start().await;
    let ada = double.person("Ada");

    ada.sends_voice(OGG);
    ada.hears("Soup.").await;

    let told = last_message(&agent.calls()[0]);
    assert!(told.contains("What is for dinner?"), "{told}");
    assert!(server.was_given(OGG));
    let explained = gateway.explain(&only_turn(&gateway));
    assert!(explained.contains("a voice note of 3 s that was written down"), "{explained}");
}

/// B3. It does not wait behind what runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_says_stop_stops_what_runs() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::start(|_, _| Script::replies("too late").waiting(&Gate::default())).await;
    let server = TranscriptionServer::hearing(&["Stop!", "Anything new?"]).await;
    let _gateway = speaking(&double, &agent, &server).start().await;
    let ada = double.person("Ada");

    ada.says("a long task");
    eventually("the agent runs", async || (agent.calls().len() == 1).then_some(())).await;
    ada.sends_voice(OGG);
    ada.hears("Cancelled.").await;
    ada.sends_voice(OGG);
    ada.finds("the status", |message| message.text.contains("Everything is answered")).await;

    assert_eq!(agent.calls().len(), 1);
}

/// One sentence, and never silence.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_the_server_the_person_is_asked_to_write() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::echoing().await);
    let server = TranscriptionServer::hearing(&[]).await;
    let _gateway = speaking(&double, &agent, &server).start().await;
    let ada = double.person("Ada");

    ada.sends_voice(OGG);
    ada.hears(UNHEARD).await;
    ada.says("soup?");
    ada.hears("echo soup?").await;

    assert_eq!(double.bot_texts(ada.chat()), [UNHEARD, "echo soup?"]);
    assert_eq!(agent.calls().len(), 1, "the agent was not asked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_speaks_too_long_is_asked_to_write() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::echoing().await);
    let server = TranscriptionServer::hearing(&["never heard"]).await;
    let short = "[voice]\nlongest = \"2s\"\n";
    let _gateway = between(&double, &agent).config(short).config(&server.section()).start().await;
    let ada = double.person("Ada");

    ada.sends_voice(OGG);
    ada.hears(UNHEARD).await;

    assert_eq!((server.recordings(), agent.calls().len()), (0, 0));
}

/// D1. `kill -9` at every step until the words are stored: it is heard again, and answered once.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_voice_note_is_answered_once_whatever_step_the_process_ends_at() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Soup.").await);
    let server = TranscriptionServer::hearing(&["What is for dinner?"]).await;
    let mut gateway = speaking(&double, &agent, &server).start().await;
    let ada = double.person("Ada");
    gateway.stop().await;

    for step in ["received:1", "accepted:1", "hearing:1", "heard:1", "received:2", "accepted:2", "run_started:1"] {
        let before = double.bot_texts(ada.chat()).len();
        let shown = || double.bot_texts(ada.chat()).split_off(before);
        gateway.spawn_crashing_at(step);
        gateway.until_ready().await;
        ada.sends_voice(OGG);
        gateway.until_crashed().await;
        gateway.restart().await;
        eventually(step, async || (!shown().is_empty()).then_some(())).await;
        gateway.until_settled().await;
        gateway.stop().await;

        assert_eq!(shown(), ["Soup."], "{step}");
        let told = agent.calls().last().map(last_message).unwrap_or_default();
        assert!(told.contains("What is for dinner?"), "{step}: {told}");
    }
    assert_eq!(gateway.undeliverable(), 0);
}
