//! Both calls, against a server with scripted answers.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{FromRequest, Multipart, Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use rejoinder_config::{Speech, Transcriptions};
use rejoinder_core::{Language, SoundFormat, SpeechError, Synthesizer, Transcriber};
use rejoinder_speech::{HttpSynthesizer, HttpTranscriber, KeyError};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::net::TcpListener;

const KEY: &str = "sk-0123456789";
const OGG: &[u8] = b"OggS\0\x02, and what is said";
const TIMEOUT: Duration = Duration::from_secs(1);

/// Half a second of a tone.
const M4A: &[u8] = include_bytes!("recordings/tone.m4a");
const WAV: &[u8] = include_bytes!("recordings/tone.wav");

/// What a server was asked: the path and the key, and the fields of the form with file names and media types, or the body.
type Asked = Vec<(String, String)>;

type Answer = Arc<dyn Fn() -> Response + Send + Sync>;

struct Server {
    base_url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    async fn start(answer: impl Fn() -> Response + Send + Sync + 'static) -> Self {
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let answer: Answer = Arc::new(answer);
        let routes = Router::new().fallback(handle).with_state((answer, Arc::clone(&asked)));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let base_url = format!("http://{}/v1", listener.local_addr().expect("bound"));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { base_url, asked }
    }

    /// The only request.
    fn asked(&self) -> Asked {
        let mut asked = self.asked.lock().expect("nobody panicked");
        assert_eq!(asked.len(), 1);
        asked.remove(0)
    }

    /// What was asked for again and again: the value of a field of each request.
    fn each(&self, field: usize) -> Vec<String> {
        self.asked.lock().expect("nobody panicked").iter().map(|asked| asked[field].1.clone()).collect()
    }

    fn transcriber(&self, language: Option<Language>) -> HttpTranscriber {
        let server = Transcriptions {
            base_url: self.base_url.parse().expect("a URL"),
            model: "whisper".to_owned(),
            api_key: Some(KEY.into()),
            language,
            timeout: TIMEOUT,
        };
        HttpTranscriber::new(&server, Duration::from_mins(5), http()).expect("the key can be sent")
    }

    fn synthesizer(&self) -> HttpSynthesizer {
        let server = Speech {
            base_url: self.base_url.parse().expect("a URL"),
            model: "kokoro".to_owned(),
            voice: "heart".to_owned(),
            api_key: None,
            timeout: TIMEOUT,
        };
        HttpSynthesizer::new(&server, http()).expect("there is no key")
    }
}

fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().expect("a client")
}

async fn handle(State((answer, seen)): State<(Answer, Arc<Mutex<Vec<Asked>>>)>, request: Request) -> Response {
    let (mut asked, is_form) = {
        let header = |name: &str| request.headers().get(name).map_or("", |value| value.to_str().expect("text"));
        let path = ("path".to_owned(), request.uri().path().to_owned());
        let key = ("key".to_owned(), header("authorization").to_owned());
        (vec![path, key], header("content-type").starts_with("multipart/form-data"))
    };
    if is_form {
        let mut form = Multipart::from_request(request, &()).await.expect("a form");
        while let Some(field) = form.next_field().await.expect("a field") {
            let name = field.name().expect("a name").to_owned();
            let about = field.file_name().zip(field.content_type()).map(|(file, kind)| format!("{file} {kind}: "));
            let value = String::from_utf8_lossy(&field.bytes().await.expect("its value")).into_owned();
            asked.push((name, about.unwrap_or_default() + &value));
        }
    } else {
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.expect("a body");
        asked.push(("body".to_owned(), String::from_utf8_lossy(&body).into_owned()));
    }
    seen.lock().expect("nobody panicked").push(asked);
    answer()
}

fn pairs(asked: &[(String, String)]) -> Vec<(&str, &str)> {
    asked.iter().map(|(name, value)| (&**name, &**value)).collect()
}

#[tokio::test]
async fn a_recording_is_sent_as_it_came_and_its_words_come_back() {
    let server = Server::start(|| "{\"text\":\" What is on today?\\n\",\"usage\":{}}".into_response()).await;
    let transcriber = server.transcriber(Language::of("de"));

    let words = transcriber.transcribe(OGG.to_vec()).await;

    assert_eq!(words, Ok("What is on today?".to_owned()));
    let file = format!("recording.ogg audio/ogg: {}", String::from_utf8_lossy(OGG));
    let expected = [
        ("path", "/v1/audio/transcriptions"),
        ("key", "Bearer sk-0123456789"),
        ("model", "whisper"),
        ("response_format", "json"),
        ("file", &*file),
        ("language", "de"),
    ];
    assert_eq!(pairs(&server.asked()), expected);
    assert_eq!(transcriber.longest(), Duration::from_mins(5));
}

#[tokio::test]
async fn a_recording_of_an_unknown_kind_is_left_to_the_server() {
    let server = Server::start(|| "{\"text\":\"\"}".into_response()).await;

    assert_eq!(server.transcriber(None).transcribe(b"?".to_vec()).await, Ok(String::new()));

    assert_eq!(pairs(&server.asked())[4], ("file", "recording.bin application/octet-stream: ?"));
}

#[rstest]
#[case(SoundFormat::Opus, "opus", OGG, "audio/ogg")]
#[case(SoundFormat::Mp3, "mp3", b"\xff\xfb\x90\x64", "audio/mpeg")]
#[case::of_another_format(SoundFormat::Mp3, "mp3", b"RIFF\0\0\0\0WAVEfmt ", "audio/wav")]
#[tokio::test]
async fn a_text_is_spoken(
    #[case] format: SoundFormat,
    #[case] asked: &str,
    #[case] sound: &'static [u8],
    #[case] media_type: &str,
) {
    // What servers say of the type is often wrong.
    let server = Server::start(move || ([("content-type", "audio/mpeg")], sound).into_response()).await;

    let spoken = server.synthesizer().synthesize("Grüße, \"Ada\".", format).await.expect("a sound");

    assert_eq!((spoken.media_type, &*spoken.bytes), (media_type, sound));
    let request = server.asked();
    assert_eq!(pairs(&request[..2]), [("path", "/v1/audio/speech"), ("key", "")]);
    let body: Value = serde_json::from_str(&request[2].1).expect("JSON");
    let text = "Grüße, \"Ada\".";
    assert_eq!(body, json!({ "model": "kokoro", "voice": "heart", "input": text, "response_format": asked }));
}

#[tokio::test]
async fn a_voice_note_is_made_of_what_the_server_speaks() {
    let server = Server::start(|| WAV.into_response()).await;

    let spoken = server.synthesizer().synthesize("Hello", SoundFormat::Opus).await.expect("a sound");

    assert_eq!(spoken.media_type, "audio/ogg");
    assert!(spoken.bytes.starts_with(b"OggS") && spoken.bytes.windows(8).any(|bytes| bytes == b"OpusHead"));
}

#[rstest]
#[case(SoundFormat::Opus, "opus", "audio/ogg")]
#[case(SoundFormat::Mp3, "mp3", "audio/wav")]
#[tokio::test]
async fn a_server_that_has_wav_alone_is_asked_for_it(
    #[case] format: SoundFormat,
    #[case] asked: &str,
    #[case] media_type: &str,
) {
    let none = || (StatusCode::UNPROCESSABLE_ENTITY, "response_format: wav").into_response();
    let server = Server::start(first_and_then(none, || WAV.into_response())).await;

    let spoken = server.synthesizer().synthesize("Hello", format).await.expect("a sound");

    assert_eq!(spoken.media_type, media_type);
    let bodies = server.each(2);
    let formats: Vec<Value> = bodies
        .iter()
        .map(|body| serde_json::from_str::<Value>(body).expect("JSON")["response_format"].clone())
        .collect();
    assert_eq!(formats, [asked, "wav"]);
}

/// The platform may know it.
#[tokio::test]
async fn a_sound_that_cannot_be_converted_is_sent_as_it_is() {
    let server = Server::start(|| b"ID3\x04\0 and no sound".into_response()).await;

    let spoken = server.synthesizer().synthesize("Hello", SoundFormat::Opus).await.expect("a sound");

    assert_eq!((spoken.media_type, &*spoken.bytes), ("audio/mpeg", &b"ID3\x04\0 and no sound"[..]));
}

/// An endless answer, of which only the beginning is sent if nobody reads on.
fn endless() -> Response {
    let parts = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 1 << 16]));
    Response::new(Body::from_stream(parts))
}

fn refusal() -> Response {
    let body = format!("{{\"error\":{{\"message\":\"{KEY} may\\nnot\"}}}}");
    (StatusCode::UNAUTHORIZED, body).into_response()
}

fn no_json() -> Response {
    "words".into_response()
}

fn redirect() -> Response {
    (StatusCode::FOUND, [("location", "http://127.0.0.1:1/")]).into_response()
}

#[rstest]
#[case::a_refusal(refusal, "the server answers 401: [key] may not")]
#[case::no_json(no_json, "the server's answer cannot be used: it is no JSON with a `text`")]
#[case::a_redirect(redirect, "the server answers 302: (no message)")]
#[case::an_endless_answer(endless, "the server's answer cannot be used: it has more than 1048576 bytes")]
#[tokio::test]
async fn what_is_wrong_is_said_without_the_key(#[case] answer: fn() -> Response, #[case] told: &str) {
    let server = Server::start(answer).await;

    let error = server.transcriber(None).transcribe(OGG.to_vec()).await.expect_err("there are no words");

    assert_eq!(error.to_string(), told);
    assert!(!error.summary().contains("may not"));
    assert_eq!(server.each(0).len(), 1, "it is asked once");
}

/// Answers like this once, and then like that.
fn first_and_then(
    first: impl Fn() -> Response + Send + Sync + 'static,
    then: impl Fn() -> Response + Send + Sync + 'static,
) -> impl Fn() -> Response + Send + Sync + 'static {
    let was_asked = AtomicBool::new(false);
    move || if was_asked.swap(true, Ordering::Relaxed) { then() } else { first() }
}

#[rstest]
#[case(StatusCode::BAD_REQUEST)]
#[case(StatusCode::UNSUPPORTED_MEDIA_TYPE)]
#[case(StatusCode::UNPROCESSABLE_ENTITY)]
#[tokio::test]
async fn a_recording_that_the_server_does_not_take_is_sent_as_wav(#[case] status: StatusCode) {
    let words = || "{\"text\":\"What is on today?\"}".into_response();
    let server = Server::start(first_and_then(move || status.into_response(), words)).await;

    let heard = server.transcriber(None).transcribe(M4A.to_vec()).await;

    assert_eq!(heard, Ok("What is on today?".to_owned()));
    let files = server.each(4);
    let [original, wav] = &files[..] else { panic!("{} requests", files.len()) };
    assert!(original.starts_with("recording.m4a audio/mp4: "), "{original}");
    assert!(wav.starts_with("recording.wav audio/wav: RIFF"), "{wav}");
}

#[tokio::test]
async fn a_recording_that_cannot_be_converted_is_refused_in_one_sentence() {
    let server = Server::start(|| StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response()).await;

    let error = server.transcriber(None).transcribe(OGG.to_vec()).await.expect_err("there are no words");

    let told =
        "the server answers 415, and the recording cannot be converted: it is no sound of a kind that can be converted";
    assert_eq!((error.to_string(), error.summary()), (told.to_owned(), told.to_owned()));
    assert_eq!(server.each(0).len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_no_sound_is_refused() {
    let server = Server::start(|| "{\"error\":\"no\"}".into_response()).await;

    let error = server.synthesizer().synthesize("Hello", SoundFormat::Mp3).await.err();

    assert_eq!(error, Some(SpeechError::Broken("it is no sound of a known kind".to_owned())));
}

#[tokio::test]
async fn a_server_that_is_silent_or_not_there_costs_no_more_than_its_time() {
    // Takes connections, and nobody reads from them.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base_url = format!("http://{}", listener.local_addr().expect("bound"));
    let silent = Server { base_url, asked: Arc::default() };
    let gone = Server { base_url: "http://127.0.0.1:1/v1".to_owned(), asked: Arc::default() };

    let stalled = silent.transcriber(None).transcribe(OGG.to_vec()).await;
    let unreachable = gone.synthesizer().synthesize("Hello", SoundFormat::Mp3).await.err();

    assert_eq!(stalled, Err(SpeechError::Stalled(TIMEOUT)));
    assert!(matches!(unreachable, Some(SpeechError::Unreachable(_))), "{unreachable:?}");
}

#[test]
fn a_key_that_cannot_be_sent_is_refused() {
    let server = Transcriptions {
        base_url: "http://127.0.0.1:1/v1".parse().expect("a URL"),
        model: "whisper".to_owned(),
        api_key: Some("one\ntwo".into()),
        language: None,
        timeout: TIMEOUT,
    };

    let refused = HttpTranscriber::new(&server, Duration::from_mins(5), http()).err();

    assert_eq!(refused, Some(KeyError));
}
