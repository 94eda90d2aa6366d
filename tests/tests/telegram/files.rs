//! Files and other messages without text.

use axum::{Json, Router, routing::post};
use rejoinder_core::{Attachment, Reply};
use rejoinder_telegram_double::{Fault, TelegramDouble};
use rejoinder_tests::{Gateway, Script, ScriptedAgent, ToolModel, eventually};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{between, last_message, only_turn, telegram};

/// A minimal picture.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\0\x01\0\0\x05\0\x01\r\n-\xb4\0\0\0\0IEND\xaeB`\x82";

async fn echo() -> ScriptedAgent {
    ScriptedAgent::start(|_, number| Script::replies(&format!("answer {number}"))).await
}

/// K3: a picture and its caption reach a multimodal model.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_picture_is_seen() {
    let (double, agent) = (TelegramDouble::start().await, echo().await);
    let _gateway =
        Gateway::builder().config(&telegram(&double, "")).config(&agent.section_with("images = true")).start().await;
    let ada = double.person("Ada");

    ada.sends_photo(PNG, "what is this?");
    ada.hears("answer 0").await;

    let text = last_message(&agent.calls()[0]);
    assert!(text.contains("what is this?") && text.contains("data:image/"), "{text}");
}

/// A model that can hear gets the sound itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_sound_is_heard() {
    let (double, agent) = (TelegramDouble::start().await, echo().await);
    let _gateway =
        Gateway::builder().config(&telegram(&double, "")).config(&agent.section_with("audio = true")).start().await;
    let ada = double.person("Ada");

    ada.sends_document("song.mp3", "audio/mpeg", b"ID3hello", "what is this?");
    ada.hears("answer 0").await;

    let text = last_message(&agent.calls()[0]);
    assert!(text.contains("what is this?") && text.contains("input_audio") && text.contains("SUQzaGVsbG8="), "{text}");
}

/// A voice note is no music.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_agent_is_told_that_a_message_was_spoken() {
    let (double, agent) = (TelegramDouble::start().await, echo().await);
    let _gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    ada.sends_voice(b"opus");
    ada.hears("answer 0").await;
    ada.sends_document("song.ogg", "audio/ogg", b"opus", "");
    ada.hears("answer 1").await;

    let told: Vec<_> = agent.calls().iter().map(last_message).collect();
    assert!(told[0].contains(r#""voice_note":{"seconds":3}"#), "{told:?}");
    assert!(told[1].contains("song.ogg") && !told[1].contains("voice_note"), "{told:?}");
}

/// An album is one turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_album_is_one_turn() {
    let (double, agent) = (TelegramDouble::start().await, echo().await);
    let _gateway =
        Gateway::builder().config(&telegram(&double, "")).config(&agent.section_with("images = true")).start().await;
    let ada = double.person("Ada");

    ada.sends_album(&[PNG, PNG, PNG], "three of them");
    ada.hears("answer 0").await;
    double.all_confirmed().await;

    let text = last_message(&agent.calls()[0]);
    assert_eq!(text.matches("data:image/").count(), 3, "{text}");
    eventually("there is one answer", async || (double.bot_texts(ada.chat()).len() == 1).then_some(())).await;
    assert_eq!(agent.calls().len(), 1);
}

/// D18: an album captioned with a command is that command; the chat works on after it, even after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_album_captioned_with_a_command_is_the_command() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::echoing().await);
    let mut gateway =
        Gateway::builder().config(&telegram(&double, "")).config(&agent.section_with("images = true")).start().await;
    let ada = double.person("Ada");

    ada.sends_album(&[PNG, PNG], "/stop");
    ada.hears("There is nothing to cancel.").await;
    double.all_confirmed().await;
    gateway.stop().await;
    gateway.restart().await;
    ada.says("one");
    ada.says("two");
    ada.hears("echo one").await;
    ada.hears("echo two").await;

    assert_eq!(double.bot_texts(ada.chat()), ["There is nothing to cancel.", "echo one", "echo two"]);
    assert!(!gateway.log().contains("a batch failed"), "{}", gateway.log());
}

/// K3: a message with a file that cannot be fetched is answered without the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_cannot_be_fetched_costs_nobody_the_text() {
    let (double, agent) = (TelegramDouble::start().await, echo().await);
    let _gateway =
        Gateway::builder().config(&telegram(&double, "")).config(&agent.section_with("images = true")).start().await;
    let ada = double.person("Ada");

    double.fault(Fault::error_before(500).on("getFile").forever());
    ada.sends_photo(PNG, "what is this?");
    ada.hears("answer 0").await;

    assert!(last_message(&agent.calls()[0]).contains("what is this?"));
}

const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGMAAQAABQABDQottAAAAABJRU5ErkJggg==";

/// A picture is a photo, another file a document.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_model_sends_files_with_a_tool() {
    let (double, model) = (TelegramDouble::start().await, ToolModel::start().await);
    let gateway = Gateway::builder().config(&telegram(&double, "")).config(&model.section()).start().await;
    let ada = double.person("Ada");
    let files = [
        ("photo", json!({ "name": "dot.png", "media_type": "image/png", "data": DOT }), PNG),
        ("document", json!({ "name": "a.txt", "media_type": "text/plain", "data": "aGVsbG8=" }), b"hello".as_slice()),
    ];

    for (kind, file, bytes) in files {
        ada.says(&format!("call send_file {file}"));
        let sent = ada.finds(kind, |message| message.ours && message.media.as_deref() == Some(kind)).await;
        assert_eq!(double.inspect(|view| view.file(ada.chat(), sent.id)).as_deref(), Some(bytes));
        let told = format!("noted: {} goes with your answer", file["name"].as_str().unwrap_or_default());
        ada.finds("the words", |message| message.ours && message.text.contains(&told)).await;
    }
    drop(gateway);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_a_model_cannot_send_is_told_to_it() {
    let (double, model) = (TelegramDouble::start().await, ToolModel::start().await);
    let _gateway = Gateway::builder().config(&telegram(&double, "")).config(&model.section()).start().await;
    let ada = double.person("Ada");

    ada.says(r#"call send_file {"name": "a.txt", "data": "hello"}"#);

    ada.finds("the words", |message| message.ours && message.text.contains("must be bytes in Base64")).await;
}

/// K2. What Telegram does not take is a link that opens it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_is_too_large_is_a_link() {
    let (double, model) = (TelegramDouble::start().await, ToolModel::start().await);
    let section = telegram(&double, "max_upload = \"1 KiB\"");
    let mut gateway = Gateway::builder().config(&section).config(&model.section()).prepare();
    let public_url = format!("[server]\npublic_url = \"{}\"\n", gateway.url());
    gateway.reconfigure(|toml| toml.replace("[server]\n", &public_url));
    gateway.restart().await;
    let ada = double.person("Ada");
    let file = json!({ "name": "large.txt", "media_type": "text/plain", "data": "QUJD".repeat(400) });

    ada.says(&format!("call send_file {file}"));

    let sent = ada.finds("a link", |message| message.ours && message.text.contains("📎 large.txt")).await;
    let url = sent.entities.iter().find_map(|entity| entity.url.as_deref()).expect("a link");
    let opened = gateway.http().get(url).send().await.expect("it is open");
    assert_eq!(opened.text().await.expect("a text"), "ABC".repeat(400));
    gateway.until_settled().await;
}

/// What a run had collected is lost with it, and the next run sends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_of_a_run_that_was_killed_is_sent_once() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::start(|_, number| match number {
        0 | 2 => Script::answers(Reply { attachments: vec![dot()], ..Reply::default() }),
        1 => Script::hangs(),
        _ => Script::replies("Here it is."),
    })
    .await;
    let mut gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");
    ada.says("draw a dot");
    agent.until_called(2).await;

    gateway.kill();
    gateway.restart().await;

    ada.finds("the words", |message| message.ours && message.text == "Here it is.").await;
    ada.finds("the photo", |message| message.ours && message.media.is_some()).await;
    double.all_confirmed().await;
    let photos = double.visible(ada.chat()).into_iter().filter(|message| message.media.is_some()).count();
    assert_eq!((photos, agent.calls().len()), (1, 4));
}

/// A service that answers each turn with this.
async fn service(outcome: &Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let outcome = outcome.clone();
    let answer = move |_: Json<Value>| std::future::ready(Json(outcome.clone()));
    let service = Router::new().route("/", post(answer));
    tokio::spawn(async move { axum::serve(listener, service).await });
    format!("[agents.main]\nkind = \"http\"\nurl = \"http://{address}/\"\n")
}

/// A program that answers each turn with this.
fn program(outcome: &Value) -> String {
    let command = json!(["sh", "-c", format!("cat > /dev/null; echo '{outcome}'")]);
    format!("[agents.main]\nkind = \"command\"\ncommand = {command}\n")
}

/// What is no file costs neither the words nor the other files, and the operator reads why.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_files_of_an_agents_outcome_arrive(#[values("http", "command")] kind: &str) {
    let outcome = json!({ "reply": "Here they are.", "files": [
        { "name": "dot.png", "type": "image/png", "data": DOT },
        { "name": "a.txt", "type": "text/plain", "data": "aGVsbG8=" },
        { "name": "b.txt", "type": "text/plain", "data": "hello" },
    ] });
    let double = TelegramDouble::start().await;
    let agent = if kind == "http" { service(&outcome).await } else { program(&outcome) };
    let gateway = Gateway::builder().config(&telegram(&double, "")).config(&agent).start().await;
    let ada = double.person("Ada");

    ada.says("show me");
    ada.finds("the words", |message| message.ours && message.text == "Here they are.").await;

    for (kind, bytes) in [("photo", PNG), ("document", b"hello".as_slice())] {
        let sent = ada.finds(kind, |message| message.ours && message.media.as_deref() == Some(kind)).await;
        assert_eq!(double.inspect(|view| view.file(ada.chat(), sent.id)).as_deref(), Some(bytes));
    }
    assert_eq!((double.calls("sendPhoto").len(), double.calls("sendDocument").len()), (1, 1));
    let record = gateway.output_of(&["turns", "show", &only_turn(&gateway)]);
    assert!(record.contains("tool files b.txt") && record.contains("must be bytes in Base64"), "{record}");
}

fn dot() -> Attachment {
    let url = format!("data:image/png;base64,{DOT}");
    Attachment { name: "dot.png".to_owned(), media_type: "image/png".to_owned(), url }
}

/// K3: a location, a contact and a sticker are described in text, and a text file is inlined.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_no_text_is_told_in_words() {
    let (double, agent) = (TelegramDouble::start().await, echo().await);
    let _gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    ada.sends_location(52.52, 13.405);
    ada.hears("answer 0").await;
    ada.sends_contact("Grace", "+1555");
    ada.hears("answer 1").await;
    ada.sends_sticker("🎉");
    ada.hears("answer 2").await;
    ada.sends_document("notes.txt", "text/plain", b"milk, eggs", "");
    ada.hears("answer 3").await;
    ada.sends_large_document("film.mkv", 900 * 1024 * 1024);
    ada.hears("answer 4").await;

    let calls = agent.calls();
    let all: Vec<_> = calls.iter().map(last_message).collect();
    assert!(all[0].contains("52.52") && all[1].contains("Grace") && all[2].contains('🎉'), "{all:#?}");
    assert!(all[3].contains("milk, eggs") && all[4].contains("film.mkv"), "{all:#?}");
}
