//! Findings about the servers for speech: each is tried.

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode},
    response::IntoResponse,
    routing,
};
use tokio::net::TcpListener;

use super::{DoctorRun, folder, unused_address};

const KEY: &str = "sk-0123456789";

/// Starts a server that hears a WAV file, and speaks to who has the key; returns its `base_url`.
async fn server() -> String {
    let hear = async |body: Bytes| {
        let has_wav = body.windows(8).any(|part| part == b"WAVEfmt ");
        if has_wav { Ok("{\"text\":\"\"}") } else { Err(StatusCode::UNPROCESSABLE_ENTITY) }
    };
    let speak = async |headers: HeaderMap| {
        let sent = headers["authorization"].to_str().unwrap().to_owned();
        if sent == format!("Bearer {KEY}") {
            b"ID3\x04".into_response()
        } else {
            (StatusCode::UNAUTHORIZED, sent).into_response()
        }
    };
    let routes = Router::new()
        .route("/v1/audio/transcriptions", routing::post(hear))
        .route("/v1/audio/speech", routing::post(speak));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    format!("http://{address}/v1")
}

async fn run_doctor(transcriptions: &str, speech: &str, key: &str) -> DoctorRun {
    let hears = format!("transcriptions = {{ base_url = \"{transcriptions}\", model = \"whisper\" }}");
    let speaks =
        format!("speech = {{ base_url = \"{speech}\", model = \"tts\", voice = \"heart\", api_key = \"{key}\" }}");
    DoctorRun::in_folder(folder(&format!("[voice]\n{hears}\n{speaks}\n")).await.path()).await
}

#[tokio::test]
async fn servers_that_hear_and_speak_are_well() {
    let base_url = server().await;

    let doctor = run_doctor(&base_url, &base_url, KEY).await;

    assert_eq!(doctor.code, Some(0));
    doctor.assert_finding("voice.transcriptions", "ok", &["whisper at http://127.0.0.1:", "it hears after "]);
    doctor.assert_finding("voice.speech", "ok", &["tts at http://127.0.0.1:", "it speaks (audio/mpeg) after "]);
}

#[tokio::test]
async fn what_is_wrong_with_servers_for_speech_is_said_without_the_key() {
    let base_url = server().await;

    let doctor = run_doctor(&format!("http://{}/v1", unused_address().await), &base_url, "sk-another-key").await;
    let elsewhere = run_doctor(base_url.trim_end_matches("/v1"), &base_url, KEY).await;

    assert_eq!(doctor.code, Some(1));
    doctor.assert_finding("voice.transcriptions", "wrong", &["cannot be reached", "voice.transcriptions.base_url"]);
    doctor.assert_finding("voice.speech", "wrong", &["the server answers 401", "voice.speech.api_key"]);
    assert!(!format!("{:?}", doctor.findings).contains("sk-another-key"), "{:?}", doctor.findings);
    elsewhere.assert_finding("voice.transcriptions", "wrong", &["the server answers 404", "lack a /v1"]);
}

#[tokio::test]
async fn without_servers_for_speech_there_is_no_finding() {
    let doctor = DoctorRun::in_folder(folder("").await.path()).await;

    assert!(doctor.about("voice.transcriptions").is_empty() && doctor.about("voice.speech").is_empty());
}
