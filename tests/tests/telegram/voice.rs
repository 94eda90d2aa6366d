//! Voice notes: a server writes down what is said in them, and that is answered.

use std::time::Duration;

use rejoinder_telegram_double::{Person, TelegramDouble};
use rejoinder_tests::{
    Gate, Gateway, GatewayBuilder, Script, ScriptedAgent, SpeechEngines, SpeechServer, TranscriptionServer, eventually,
};
use serde_json::Value;

use crate::{between, last_message, only_turn, telegram};

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

/// Then it is gone, and what was said stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_operator_hears_what_was_said_for_as_long_as_it_is_kept() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Soup.").await);
    let server = TranscriptionServer::hearing(&["What is for dinner?"]).await;
    let mut gateway = speaking(&double, &agent, &server).start().await;
    let ada = double.person("Ada");
    ada.sends_voice(OGG);
    ada.hears("Soup.").await;
    let turn = only_turn(&gateway);
    let path = format!("turns/{turn}");

    let shown = gateway.output_of(&["turns", "show", &turn]);
    let line = "a voice note of 3 s, written down by test-whisper";
    assert!(shown.contains("What is for dinner?") && shown.contains(line), "{shown}");
    let kept = gateway.admin(&path).await["event"].clone();
    assert_eq!(
        (kept["attachments"][0]["size"].as_u64(), &kept["attachments"][0]["removed"]),
        (Some(OGG.len() as u64), &Value::Null)
    );
    gateway.stop().await;
    gateway.reconfigure(|toml| format!("{toml}[retention]\nvoice = \"1s\"\n"));
    gateway.restart().await;
    let is_removed = |event: &Value| event["attachments"][0]["removed"] == true;
    let gone =
        eventually("it is removed", async || Some(gateway.admin(&path).await["event"].clone()).filter(is_removed));
    let gone = gone.await;

    assert_eq!((&gone["text"], &gone["voice"]["model"]), (&kept["text"], &kept["voice"]["model"]));
    assert_eq!(gone["attachments"][0]["digest"], Value::Null);
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

const UNSPOKEN: &str = "(I could not say this aloud.)";

/// The kind, the text and the sound of each message of the bot.
fn shown(double: &TelegramDouble, person: &Person) -> Vec<(String, String, String)> {
    let sound = |message: i64| double.inspect(|view| view.file(person.chat(), message)).unwrap_or_default();
    let ours = person.sees().into_iter().filter(|message| message.ours);
    ours.map(|message| {
        let sound = String::from_utf8_lossy(&sound(message.id)).into_owned();
        (message.media.unwrap_or_default(), message.text, sound)
    })
    .collect()
}

fn message(kind: &str, text: &str, sound: &str) -> (String, String, String) {
    (kind.to_owned(), text.to_owned(), sound.to_owned())
}

/// K3. Words first, and then a voice message.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_speaks_is_answered_in_words_and_by_a_voice() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("**2** soups.").await);
    let (hears, speaks) = (TranscriptionServer::hearing(&["What is for dinner?"]).await, SpeechServer::start().await);
    let gateway = speaking(&double, &agent, &hears).config(&speaks.section()).start().await;
    let ada = double.person("Ada");

    ada.sends_voice(OGG);
    ada.finds("the voice", |message| message.ours && message.media.is_some()).await;
    ada.says("/voice off");
    ada.hears("From now on, answers that I also speak: off.").await;
    ada.sends_voice(OGG);
    eventually("the second answer", async || (agent.calls().len() == 2).then_some(())).await;
    gateway.until_settled().await;

    let words = || message("", "2 soups.", "");
    let expected = [
        words(),
        message("voice", "", "OggS 1 two soups."),
        message("", "From now on, answers that I also speak: off.", ""),
        words(),
    ];
    assert_eq!(shown(&double, &ada), expected);
}

/// Words, and one sentence.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_the_server_that_speaks_there_are_words_and_a_sentence() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Soup.").await);
    let speaks = SpeechServer::start().await;
    let _gateway = always(&double, &agent, &speaks).start().await;
    let ada = double.person("Ada");
    speaks.set_down(true);

    ada.says("dinner?");
    ada.hears(UNSPOKEN).await;

    assert_eq!(double.bot_texts(ada.chat()), ["Soup.", UNSPOKEN]);
}

/// All answers are spoken.
fn always(double: &TelegramDouble, agent: &ScriptedAgent, speaks: &SpeechServer) -> GatewayBuilder {
    let channel = telegram(double, "voice = \"always\"");
    Gateway::builder().config(&channel).config(&agent.section()).config(&speaks.section())
}

/// D1, K1. `kill -9` at every step: what may have arrived is sent again with the same sound, and labelled.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_spoken_answer_is_whole_whatever_step_the_process_ends_at() {
    for (step, times, copies) in
        [("speaking:1", 1, 1), ("spoken:1", 2, 1), ("attempt_started:2", 1, 1), ("attempt_ended:2", 1, 2)]
    {
        let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Soup.").await);
        let speaks = SpeechServer::start().await;
        let mut gateway = always(&double, &agent, &speaks).start().await;
        let ada = double.person("Ada");
        gateway.stop().await;

        gateway.spawn_crashing_at(step);
        gateway.until_ready().await;
        ada.says("dinner?");
        gateway.until_crashed().await;
        gateway.restart().await;
        gateway.until_settled().await;

        let shown = shown(&double, &ada);
        let sounds: Vec<_> = shown.iter().filter(|(kind, ..)| kind == "voice").collect();
        assert_eq!(shown.first(), Some(&message("", "Soup.", "")), "{step}: {shown:?}");
        assert_eq!((sounds.len(), shown.len(), speaks.texts().len()), (copies, copies + 1, times), "{step}: {shown:?}");
        let last = format!("OggS {times} Soup.");
        assert!(sounds.iter().all(|(_, _, sound)| *sound == last), "{step}: {shown:?}");
        assert_eq!(gateway.undeliverable(), 0);
        gateway.stop().await;
    }
}

/// K3. A voice note that somebody else's encoder made, and an answer that somebody else's player plays. The engines know WAV alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_really_speaks_is_heard_and_hears_the_answer() {
    let answer = "Many people live in London.";
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying(answer).await);
    let engines = SpeechEngines::start().await;
    let _gateway = between(&double, &agent).config(&engines.section()).start().await;
    let ada = double.person("Ada");

    ada.sends_voice(&engines.voice_note("How many people live in London?").await);
    let voice = ada.finds("the voice", |message| message.ours && message.media.is_some()).await;

    let told = last_message(&agent.calls()[0]);
    assert!(told.contains("how many people") && told.contains("london"), "{told}");
    assert_eq!(double.bot_texts(ada.chat())[0], answer);
    assert_eq!(voice.media.as_deref(), Some("voice"));
    let sound = double.inspect(|view| view.file(ada.chat(), voice.id)).expect("a sound");
    let played = engines.play(&sound).await;
    let expected = engines.length(answer).await;
    assert!(played.length.abs_diff(expected) < Duration::from_millis(20), "{expected:?}, {played:?}");
    assert!(played.words.contains("many people"), "{played:?}");
}
