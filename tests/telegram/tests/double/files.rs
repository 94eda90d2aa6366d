//! Downloading and uploading files.

use serde_json::{Value, json};

use crate::client::{Api, started};

/// A multipart body of fields and files.
fn multipart(fields: &[(&str, String)], files: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (key, value) in fields {
        body.extend(format!("--b\r\ncontent-disposition: form-data; name=\"{key}\"\r\n\r\n{value}\r\n").bytes());
    }
    for (key, name, bytes) in files {
        let head = format!("--b\r\ncontent-disposition: form-data; name=\"{key}\"; filename=\"{name}\"\r\n");
        body.extend(head.bytes().chain(*b"content-type: application/octet-stream\r\n\r\n"));
        body.extend(bytes.iter().chain(b"\r\n"));
    }
    body.extend(*b"--b--\r\n");
    body
}

async fn upload(api: &Api, method: &str, body: Vec<u8>) -> Value {
    let request = api.http.post(api.url(method)).header("content-type", "multipart/form-data; boundary=b");
    request.body(body).send().await.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn a_file_that_was_sent_is_fetched() {
    let (telegram, api) = started().await;
    telegram.person("Ada").sends_document("notes.txt", "text/plain", b"remember the milk", "see");
    let message = api.one().await["message"].clone();
    assert_eq!((&message["caption"], &message["document"]["file_name"]), (&json!("see"), &json!("notes.txt")));
    let file = api.call("getFile", json!({ "file_id": message["document"]["file_id"] })).await;
    let path = file["file_path"].as_str().unwrap();
    let url = format!("{}/file/bot{}/{path}", telegram.url(), telegram.token());
    assert_eq!(api.http.get(url).send().await.unwrap().bytes().await.unwrap(), "remember the milk");
    assert_eq!(telegram.calls("file").len(), 1);
}

#[tokio::test]
async fn a_file_over_20_mb_cannot_be_fetched() {
    let (telegram, api) = started().await;
    telegram.person("Ada").sends_large_document("film.mkv", (20 << 20) + 1);
    let id = api.one().await["message"]["document"]["file_id"].clone();
    assert_eq!(
        api.refused("getFile", json!({ "file_id": id })).await,
        (400, "Bad Request: file is too big".to_owned())
    );
}

#[tokio::test]
async fn a_photo_is_sent_by_its_bytes_and_again_by_its_id() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    let chat = ("chat_id", ada.to_string());
    let body = multipart(&[chat, ("caption", "here".to_owned())], &[("photo", "a.jpg", b"jpeg")]);
    let sent = upload(&api, "sendPhoto", body).await;
    assert_eq!(sent["ok"], true, "{sent}");
    let seen = &telegram.visible(ada)[0];
    assert_eq!((seen.media.as_deref(), &*seen.text), (Some("photo"), "here"));
    assert_eq!(telegram.inspect(|view| view.file(ada, seen.id)).unwrap(), b"jpeg");
    let id = &sent["result"]["photo"][1]["file_id"];
    api.call("sendPhoto", json!({ "chat_id": ada, "photo": id })).await;
    assert_eq!(telegram.visible(ada).len(), 2);
    let wrong = api.refused("sendPhoto", json!({ "chat_id": ada, "photo": "nothing" })).await;
    assert!(wrong.1.starts_with("Bad Request: wrong remote file identifier"));
}

#[tokio::test]
async fn a_caption_has_1024_units() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    let fields = |length: usize| [("chat_id", ada.to_string()), ("caption", "a".repeat(length))];
    let file: &[(&str, &str, &[u8])] = &[("document", "a.txt", b"text")];
    let long = upload(&api, "sendDocument", multipart(&fields(1025), file)).await;
    assert_eq!(long["description"], "Bad Request: message caption is too long");
    let edge = upload(&api, "sendDocument", multipart(&fields(1024), file)).await;
    assert_eq!(edge["ok"], true, "{edge}");
}

#[tokio::test]
async fn an_album_is_as_many_messages() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    let media = json!([
        { "type": "photo", "media": "attach://one", "caption": "both" },
        { "type": "photo", "media": "attach://two" },
    ]);
    let fields = [("chat_id", ada.to_string()), ("media", media.to_string())];
    let body = multipart(&fields, &[("one", "1.jpg", b"first"), ("two", "2.jpg", b"second")]);
    let sent = upload(&api, "sendMediaGroup", body).await;
    assert_eq!(sent["result"].as_array().map(Vec::len), Some(2), "{sent}");
    let seen = telegram.visible(ada);
    assert!(seen[0].album.is_some() && seen[0].album == seen[1].album);
    assert_eq!(telegram.inspect(|view| view.file(ada, seen[1].id)).unwrap(), b"second");
}

/// An item of an album, uploaded in the part `one`.
fn item(kind: &str) -> Value {
    json!({ "type": kind, "media": "attach://one" })
}

/// Uploads an album and returns the response.
async fn album(api: &Api, chat: i64, media: &[Value]) -> Value {
    let fields = [("chat_id", chat.to_string()), ("media", json!(media).to_string())];
    upload(api, "sendMediaGroup", multipart(&fields, &[("one", "a", b"bytes")])).await
}

#[tokio::test]
async fn an_album_mixes_photos_and_videos_only() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    let missing = json!({ "type": "photo", "media": "attach://two" });
    let on_the_web = json!({ "type": "photo", "media": "https://example.org/a.png" });

    assert_eq!(album(&api, ada, &[item("photo"), item("video")]).await["ok"], true);
    for (media, refusal) in [
        (vec![], "there are no messages to send"),
        (vec![item("photo"); 11], "too many messages to send as an album"),
        (vec![item("photo"), item("document")], "document can't be mixed with other media types"),
        (vec![item("audio"), item("video")], "audio can't be mixed with other media types"),
        (vec![item("animation"); 2], "can't parse InputMedia: type \"animation\" can't be used in sendMediaGroup"),
        (vec![item("voice"); 2], "can't parse InputMedia: type \"voice\" is unsupported"),
        (vec![item("photo"), missing], "can't parse InputMedia: media not found"),
        (vec![item("photo"), on_the_web], "failed to send message #2 with the error message \"WEBPAGE_CURL_FAILED\""),
    ] {
        assert_eq!(album(&api, ada, &media).await["description"], format!("Bad Request: {refusal}"));
    }
    assert_eq!(telegram.visible(ada).len(), 2, "nothing is sent of an album that is refused");
}

#[tokio::test]
async fn an_album_of_one_file_is_an_ordinary_message() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();

    let sent = album(&api, ada, &[item("document")]).await;

    assert_eq!(sent["result"].as_array().map(Vec::len), Some(1), "{sent}");
    assert_eq!(telegram.visible(ada)[0].album, None);
}
