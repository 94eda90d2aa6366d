//! What somebody sends to do harm: each gets an answer or a sentence, and takes little memory.

use rejoinder_core::data_url;
use rejoinder_tests::{Call, Form, Gateway, PATIENCE, Reply, ScriptedAgent};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{TOKEN, hook};

const MIB: usize = 1 << 20;

/// The most memory that the bombs of a test may take, in KiB: a few times the 25 MiB that the files of a message may have, and a part
/// of what they say they are.
const MOST: u64 = 256 << 10;

/// A gateway whose three doors take files: a hook, the chat page and the API.
async fn gateway(agent: &ScriptedAgent) -> Gateway {
    let doors = format!("[channels.webchat.main]\n[channels.api.main]\ntoken = \"{TOKEN}\"\n");
    let agent = agent.section_with("images = true");
    Gateway::builder().config(&hook("")).config(&doors).config(&agent).start().await
}

/// A form to the hook.
fn called(gateway: &Gateway, form: Form) -> RequestBuilder {
    gateway.hook("test", TOKEN).call().header("Content-Type", Form::TYPE).body(form.body())
}

/// A form of the chat page.
fn on_the_page(gateway: &Gateway, id: &str, form: Form) -> RequestBuilder {
    let form = form.field("conversation", "a-conversation-of-tests").field("id", id);
    let request = gateway.http().post(format!("{}/chat/messages", gateway.url()));
    request.header("Content-Type", Form::TYPE).body(form.body())
}

/// A question with this part to the API.
fn asked(gateway: &Gateway, part: &Value) -> RequestBuilder {
    let content = json!([{ "type": "text", "text": "what is this?" }, part]);
    let body = json!({ "model": "main", "messages": [{ "role": "user", "content": content }] });
    gateway.http().post(format!("{}/v1/chat/completions", gateway.url())).bearer_auth(TOKEN).json(&body)
}

/// So many MiB of zeros, in DEFLATE (RFC 1951) with its fixed codes: a zero, and copies of the 258 bytes before, in 13 bits each.
fn zeros(mebibytes: usize) -> Vec<u8> {
    let begin: [u8; 11] = [1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0];
    let copy: [u8; 13] = [1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0];
    let bits = [&begin[..], &copy.repeat(16)].concat();
    let byte = |bits: &[u8]| bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | (bit << at));
    let bytes: Vec<u8> = bits.chunks(8).map(byte).collect();
    // Eight copies are 13 whole bytes.
    let (begin, copies) = (&bytes[..2], &bytes[2..15]);
    [begin, &copies.repeat(mebibytes * MIB / (8 * 258))].concat()
}

/// A document that says it has 1000 bytes, and has half a gibibyte: an archive (ZIP) with one entry.
fn document() -> Vec<u8> {
    let (name, packed) = (b"word/document.xml", zeros(512));
    let number = |number: usize| u32::try_from(number).expect("a small number").to_le_bytes();
    // The versions, flags, method, time, checksum, sizes and lengths that both headers have.
    let method: [u8; 14] = [20, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let about = [&method[..], &number(packed.len()), &number(1000), &number(name.len())].concat();
    let entry = [&b"PK\x03\x04"[..], &about, name, &packed].concat();
    let directory = [&b"PK\x01\x02\x14\0"[..], &about, &[0_u8; 14], name].concat();
    let end =
        [&b"PK\x05\x06\0\0\0\0\x01\0\x01\0"[..], &number(directory.len()), &number(entry.len()), b"\0\0"].concat();
    [entry, directory, end].concat()
}

/// A picture of 65535 times 65535 pixels.
fn picture() -> Vec<u8> {
    let chunk = |kind: &[u8], content: &[u8]| {
        let length = u32::try_from(content.len()).expect("a small number").to_be_bytes();
        [&length[..], kind, content, &[0_u8; 4]].concat()
    };
    let about: [u8; 13] = [0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff, 8, 6, 0, 0, 0];
    let pixels = [&b"\x78\x9c"[..], &zeros(256)].concat();
    let chunks = [chunk(b"IHDR", &about), chunk(b"IDAT", &pixels), chunk(b"IEND", &[])].concat();
    [&b"\x89PNG\r\n\x1a\n"[..], &chunks].concat()
}

/// Pages that are their own pages, and a stream of half a gibibyte.
fn pages() -> Vec<u8> {
    let stream = [&b"\x78\x9c"[..], &zeros(512)].concat();
    let begin = format!(
        "%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[2 0 R]/Count 999999999>>endobj\n\
         3 0 obj<</Length {}/Filter/FlateDecode>>stream\n",
        stream.len()
    );
    [begin.as_bytes(), &stream, b"\nendstream endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_is_not_what_it_seems_is_answered() {
    const WORD: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    let agent = ScriptedAgent::replying("I have seen it.").await;
    let gateway = gateway(&agent).await;
    gateway.hook("test", TOKEN).ask("hello").await;
    let before = gateway.peak_memory();
    let files = [
        ("a.docx", WORD, document()),
        ("a.zip", "application/zip", document()),
        ("a.png", "image/png", picture()),
        ("a.pdf", "application/pdf", pages()),
        ("page.png", "image/png", b"<html><script>alert(1)</script></html>".to_vec()),
        ("a.txt", "text/plain", b"\xff\xfe\0\xd8".repeat(1000)),
    ];

    for (number, (name, media_type, bytes)) in files.iter().enumerate() {
        let form = |text: &str| Form::default().field(text, "what is this?").file("file", name, media_type, bytes);
        let heard = Reply::of(called(&gateway, form("message"))).await;
        let shown = Reply::of(on_the_page(&gateway, &format!("message-{number}"), form("text"))).await;
        let file = json!({ "filename": name, "file_data": data_url(media_type, bytes) });
        let told = Reply::of(asked(&gateway, &json!({ "type": "file", "file": file }))).await;

        assert_eq!((heard.status.as_u16(), heard.text()), (200, "I have seen it."), "{name}");
        assert!(shown.status == 200 && shown.body["turn_id"].is_string(), "{name}: {shown:?}");
        assert_eq!(told.body["choices"][0]["message"]["content"], "I have seen it.", "{name}: {told:?}");
    }
    gateway.until_settled().await;
    let takes = gateway.peak_memory() - before;
    assert!(takes < MOST, "{takes} KiB");
    let is_picture = |call: &Call| call.body.to_string().contains("data:image/png;base64,PGh0bWw");
    assert!(!agent.calls().iter().any(is_picture), "a page is no picture");
}

/// Sends a request whose body has so many bytes, or no end, until the gateway closes the connection. Returns what it says.
async fn flooded(gateway: &Gateway, (path, media_type): (&str, &str), length: Option<usize>) -> String {
    let address = gateway.url().replace("http://", "");
    let (mut reader, mut writer) = TcpStream::connect(&address).await.expect("the gateway listens").into_split();
    let framing = length.map_or("Transfer-Encoding: chunked".to_owned(), |length| format!("Content-Length: {length}"));
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: {media_type}\r\n{framing}\r\n\r\n"
    );
    let part = match length {
        Some(_) => vec![b'x'; 0x10000],
        None => [&b"10000\r\n"[..], &vec![b'x'; 0x10000], b"\r\n"].concat(),
    };
    let writing = async move {
        let mut written = writer.write_all(head.as_bytes()).await;
        let mut left = length.map_or(usize::MAX, |length| length / part.len());
        while written.is_ok() && left > 0 {
            written = writer.write_all(&part).await;
            left -= 1;
        }
        assert!(left > 0, "{path}: the gateway has read all of it");
    };
    let mut said = Vec::new();
    // What comes before the connection is reset is there.
    let reading = async {
        let _ = reader.read_to_end(&mut said).await;
    };
    let both = async { tokio::join!(writing, reading) };
    tokio::time::timeout(PATIENCE, both).await.expect("the gateway closes the connection");
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_body_that_goes_on_and_on_is_refused() {
    let agent = ScriptedAgent::replying("here").await;
    let gateway = gateway(&agent).await;
    gateway.hook("test", TOKEN).ask("hello").await;
    let before = gateway.peak_memory();
    let doors = [
        ("/hooks/test", "audio/ogg"),
        ("/hooks/test", "text/plain"),
        ("/hooks/test", Form::TYPE),
        ("/chat/messages", Form::TYPE),
        ("/v1/chat/completions", "application/json"),
    ];

    for door in doors {
        for length in [Some(1024 * MIB), None] {
            let said = flooded(&gateway, door, length).await;
            assert!(said.starts_with("HTTP/1.1 413 ") && said.contains("must have at most"), "{door:?}: {said}");
        }
    }

    let takes = gateway.peak_memory() - before;
    assert!(takes < MOST, "{takes} KiB");
    assert_eq!(gateway.hook("test", TOKEN).ask("hello").await.text(), "here");
}

/// One in the other, a thousand times.
fn nested() -> String {
    (0..1000).fold(String::new(), |inner, depth| {
        format!("--{depth}\r\nContent-Type: multipart/mixed; boundary={}\r\n\r\n{inner}\r\n--{depth}--\r\n", depth - 1)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_cannot_be_read_is_refused_with_a_sentence() {
    let agent = ScriptedAgent::replying("here").await;
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);
    hook.ask("hello").await;
    let before = gateway.peak_memory();
    let as_json = |body: String| hook.call().header("Content-Type", "application/json").body(body);
    let to_the_api = |body: String| {
        let request = gateway.http().post(format!("{}/v1/chat/completions", gateway.url()));
        request.bearer_auth(TOKEN).header("Content-Type", "application/json").body(body)
    };
    let many = |name: &str| (0..50_000).fold(Form::default(), |form, _| form.field(name, "b"));
    let files = (0..100).fold(Form::default(), |form, _| form.file("file", "a", "image/png", b"b"));
    let named = |name: usize| Form::default().file("file", &"a".repeat(name), "image/png", b"b");
    let rubbish = |bytes| data_url("image/png", b"").replacen("base64,", &format!("base64,{}", "!".repeat(bytes)), 1);
    let broken = json!({ "message": "hi", "attachments": [{ "url": rubbish(MIB / 2) }] });
    let cut_off = [&Form::default().field("message", "hi").body()[..60], &vec![b'x'; MIB]].concat();
    let values = format!("{{\"model\": \"main\", \"messages\": [{}0]}}", "0,".repeat(15 * MIB));

    let bombs = [
        (
            "another type",
            hook.call().header("Content-Type", "application/zip").body("PK"),
            415,
            "must be application/json",
        ),
        ("many fields", called(&gateway, many("a")), 422, "at most 64 fields"),
        ("many files", called(&gateway, files.clone()), 422, "at most 64 fields"),
        ("many files on the page", on_the_page(&gateway, "message-1", files), 422, "may have 32 files"),
        ("a long name", called(&gateway, named(MIB)), 422, "at most 256 characters"),
        ("forms in forms", called(&gateway, Form::default().field("a", &nested())), 422, "must not be empty"),
        (
            "half a form",
            hook.call().header("Content-Type", Form::TYPE).body(cut_off),
            400,
            "is not multipart/form-data",
        ),
        ("no Base64", as_json(broken.to_string()), 422, "malformed data: URL"),
        (
            "no Base64 for the API",
            asked(&gateway, &json!({ "type": "image_url", "image_url": { "url": rubbish(30 * MIB) } })),
            400,
            "malformed data: URL",
        ),
        ("depth", as_json(format!("{{\"message\": \"hi\", \"x\": {}", "[".repeat(MIB - 100))), 400, "line 1"),
        ("many values", to_the_api(values), 413, "must have at most"),
    ];
    for (name, request, status, says) in bombs {
        let refused = Reply::of(request).await;
        assert_eq!(refused.status.as_u16(), status, "{name}: {refused:?}");
        assert!(refused.body.to_string().contains(says), "{name}: {refused:?}");
    }
    // These are ignored, and cut.
    for (id, form) in [("message-2", many("a")), ("message-3", named(MIB))] {
        let stored = Reply::of(on_the_page(&gateway, id, form.field("text", "hi"))).await;
        assert_eq!(stored.status.as_u16(), 200, "{stored:?}");
    }

    gateway.until_settled().await;
    let takes = gateway.peak_memory() - before;
    assert!(takes < MOST, "{takes} KiB");
    assert!(agent.calls().len() <= 3, "only what was stored is put before the agent");
}
