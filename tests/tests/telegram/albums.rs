//! Several files of one answer.

use std::time::Duration;

use rejoinder_telegram_double::{ApiError, Fault, Person, TelegramDouble};
use rejoinder_tests::{Gateway, GatewayBuilder};
use serde_json::json;

use crate::telegram;

/// A picture of one dot, in Base64.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGMAAQAABQABDQottAAAAABJRU5ErkJggg==";

/// A gateway whose agent answers with two pictures and a text file.
fn gateway(double: &TelegramDouble) -> GatewayBuilder {
    let picture = json!({ "name": "dot.png", "type": "image/png", "data": DOT });
    let text = json!({ "name": "a.txt", "type": "text/plain", "data": "aGVsbG8=" });
    let answer = json!({ "reply": { "text": "Here they are.", "attachments": [picture, text, picture] } });
    let command = json!(["sh", "-c", format!("cat > /dev/null; echo '{answer}'")]);
    Gateway::builder()
        .config(&telegram(double, ""))
        .config(&format!("[agents.main]\nkind = \"command\"\ncommand = {command}\n"))
}

/// The kind and the text of each message of the bot.
fn shown(person: &Person) -> Vec<(String, String)> {
    let ours = person.sees().into_iter().filter(|message| message.ours);
    ours.map(|message| (message.media.unwrap_or_default(), message.text)).collect()
}

fn message(kind: &str, text: &str) -> (String, String) {
    (kind.to_owned(), text.to_owned())
}

/// K3. The pictures are one message with the words, and the other file is one of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn pictures_are_an_album_with_the_words() {
    let double = TelegramDouble::start().await;
    let gateway = gateway(&double).start().await;
    let ada = double.person("Ada");

    ada.says("show me");
    ada.finds("the document", |message| message.media.as_deref() == Some("document")).await;
    gateway.until_settled().await;

    let expected = [message("photo", "Here they are."), message("photo", ""), message("document", "")];
    assert_eq!(shown(&ada), expected);
    let albums: Vec<_> = ada.sees().into_iter().filter(|message| message.ours).map(|message| message.album).collect();
    assert!(albums[0].is_some() && albums[0] == albums[1] && albums[2].is_none(), "{albums:?}");
    assert_eq!(["sendMediaGroup", "sendDocument", "sendMessage"].map(|method| double.calls(method).len()), [1, 1, 0]);
}

/// K2. A group that takes no pictures gets the words, and the file that it takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn pictures_that_are_refused_leave_the_words() {
    let double = TelegramDouble::start().await;
    let gateway = gateway(&double).start().await;
    let ada = double.person("Ada");
    let refusal = ApiError::bad_request("not enough rights to send photos to the chat");
    double.fault(Fault::refuse(refusal).on("sendMediaGroup").forever());

    ada.says("show me");
    ada.finds("the document", |message| message.media.as_deref() == Some("document")).await;
    gateway.until_settled().await;

    let notice = "(The file dot.png could not be sent.)";
    let text = format!("Here they are.\n\n{notice}\n{notice}");
    assert_eq!(shown(&ada), [message("", &text), message("document", "")]);
}

/// D1, D7. The gateway is killed while Telegram has the album and the gateway does not know it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_album_whose_gateway_is_killed_is_sent_again_with_a_label() {
    let double = TelegramDouble::start().await;
    let mut gateway = gateway(&double).start().await;
    let ada = double.person("Ada");
    double.fault(Fault::slow_answer(Duration::from_hours(1)).on("sendMediaGroup"));
    ada.says("show me");
    ada.finds("the album", |message| message.text == "Here they are.").await;

    gateway.kill();
    gateway.restart().await;
    ada.finds("the document", |message| message.media.as_deref() == Some("document")).await;
    gateway.until_settled().await;

    let label = "(Sent again, because it may not have arrived.)";
    let (first, copy) = ("Here they are.", format!("{label}\n\nHere they are."));
    let album = |text: &str| [message("photo", text), message("photo", "")];
    let expected = [&album(first)[..], &album(&copy), &[message("document", "")]].concat();
    assert_eq!(shown(&ada), expected);
}
