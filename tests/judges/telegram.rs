//! Independent software checks the double: aiogram's models of the Bot API, and two clients that have a conversation with
//! it.
//!
//! Each judge must also fail on an incorrect double, as a judge that accepts everything proves nothing.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use rejoinder_telegram_double::{ApiError, Fault, TelegramDouble};
use serde_json::{Value, json};
use tokio::process::Command;

fn python() -> OsString {
    env::var_os("REJOINDER_PYTHON").expect("REJOINDER_PYTHON is not set: run `cargo xtask test`")
}

/// The path of a log for one test.
fn log(name: &str) -> PathBuf {
    let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("telegram-{name}.jsonl"));
    // Otherwise the calls of an earlier run would be judged again.
    let _ = fs::remove_file(&log);
    log
}

fn judge(script: &str) -> Command {
    let mut command = Command::new(python());
    command.arg(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("telegram").join(script));
    command.env("PYTHONDONTWRITEBYTECODE", "1").kill_on_drop(true);
    command
}

/// Whether a judge is satisfied, and its output.
fn verdict(output: &Output) -> (bool, String) {
    let said = [output.stdout.as_slice(), output.stderr.as_slice()].map(String::from_utf8_lossy).concat();
    (output.status.success(), said)
}

async fn converses(script: &str, telegram: &TelegramDouble) -> (bool, String) {
    let mut command = judge(script);
    command.env("TELEGRAM_DOUBLE_URL", telegram.url()).env("TELEGRAM_DOUBLE_TOKEN", telegram.token());
    verdict(&command.output().await.expect("the judge runs"))
}

/// Runs `validate.py` on these logs.
async fn validates(logs: &[&Path]) -> (bool, String) {
    verdict(&judge("validate.py").args(logs).output().await.expect("the judge runs"))
}

/// Lets a client have its conversation; returns the log of all calls.
async fn is_content(script: &str) -> PathBuf {
    let telegram = TelegramDouble::start().await;
    let log = log(script);
    telegram.log_to(&log).expect("the log is opened");
    let (content, said) = converses(script, &telegram).await;
    assert!(content, "{said}");
    log
}

#[tokio::test]
async fn two_clients_hold_conversations_in_which_every_word_is_right() {
    let (ptb, aiogram) = tokio::join!(is_content("ptb_conversation.py"), is_content("aiogram_conversation.py"));
    let (content, said) = validates(&[&ptb, &aiogram]).await;
    assert!(content, "{said}");
}

#[tokio::test]
async fn a_double_that_answers_wrongly_pleases_no_client() {
    for script in ["ptb_conversation.py", "aiogram_conversation.py"] {
        let telegram = TelegramDouble::start().await;
        telegram.fault(Fault::refuse(ApiError::bad_request("chat not found")).on("getChat").forever());
        let (content, said) = converses(script, &telegram).await;
        assert!(!content, "{script} accepts a double that rejects `getChat`: {said}");
        assert!(said.to_lowercase().contains("chat not found"), "{script} fails for another reason: {said}");
    }
}

#[tokio::test]
async fn a_wrong_call_or_answer_is_found() {
    let chat = json!({ "id": 1, "type": "private", "first_name": "Ada" });
    let right = json!({
        "method": "sendMessage",
        "params": { "chat_id": "1", "text": "hello", "reply_parameters": "{\"message_id\":1}" },
        "result": { "message_id": 2, "date": 1, "chat": chat, "text": "hello" },
    });
    let changed = |pointer: &str, value: Value| {
        let mut line = right.clone();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
        let object = line.pointer_mut(parent).and_then(Value::as_object_mut).expect("the pointer refers to an object");
        object.insert(key.to_owned(), value);
        line
    };
    let mut unknown = changed("/method", json!("sendTelepathy"));
    unknown.as_object_mut().expect("a line is an object").remove("result");
    let wrong = [
        (unknown, "sendTelepathy <- there is no such method"),
        (changed("/params/chat", json!(1)), "sendMessage <- .chat: is no field of SendMessage"),
        (
            changed("/params/reply_parameters", json!({ "message": 1 })),
            "sendMessage <- .reply_parameters.message: is no",
        ),
        (changed("/params/text", json!(null)), "sendMessage <- text: Input should be a valid string"),
        (changed("/result/message_id", json!("two")), "sendMessage -> message_id: Input should be a valid integer"),
        (changed("/result/sender", json!(1)), "sendMessage -> .sender: is no field of Message"),
        (
            json!({ "update": { "update_id": 1, "message": { "text": "x" } } }),
            "update -> message.message_id: Field req",
        ),
    ];
    let lines: Vec<Value> = std::iter::once(&right).chain(wrong.iter().map(|(line, _)| line)).cloned().collect();
    let (wrong_log, empty) = (log("wrong"), log("empty"));
    let text = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    fs::write(&wrong_log, text).expect("the log is written");
    fs::write(&empty, "").expect("the log is written");
    let (content, said) = validates(&[&wrong_log, &empty]).await;
    assert!(!content, "{said}");
    assert!(!said.contains("jsonl:1:"), "the valid call is reported: {said}");
    for (at, (_, wanted)) in wrong.iter().enumerate() {
        let wanted = format!("wrong.jsonl:{}: {wanted}", at + 2);
        assert!(said.contains(&wanted), "wanted `{wanted}`: {said}");
    }
    assert!(said.contains("empty.jsonl: holds no call"), "an empty log must be reported: {said}");
}
