//! Engines that really speak and hear, and programs that make voice notes and play them. We wrote none of them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use reqwest::{
    Client, RequestBuilder,
    multipart::{Form, Part},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::{Process, eventually, free_port};

/// A server with OpenAI's API for audio, whose comment says what it takes and gives: `tests/speech/server.py`. It knows WAV alone.
#[derive(Debug)]
pub struct SpeechEngines {
    base_url: String,
    http: Client,
    folder: TempDir,
    _process: Process,
}

/// What somebody hears who plays a sound.
#[derive(Clone, Debug)]
pub struct Played {
    /// How long it is.
    pub length: Duration,
    /// What is said in it, as far as the engine understands that.
    pub words: String,
}

impl SpeechEngines {
    /// Starts it, and waits until it responds.
    ///
    /// # Panics
    /// If something is not installed: run the tests with `cargo xtask test`.
    pub async fn start() -> Self {
        let port = free_port();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("speech/server.py");
        let process = Process::python(&program, &[&port.to_string()], &[]);
        eventually("the engines respond: run `cargo xtask test`", async || {
            TcpStream::connect(("127.0.0.1", port)).await.ok().map(drop)
        })
        .await;
        let http = Client::builder().no_proxy().build().expect("an HTTP client");
        let folder = tempfile::tempdir().expect("a folder");
        Self { base_url: format!("http://127.0.0.1:{port}/v1"), http, folder, _process: process }
    }

    /// The sections of a configuration that use it.
    #[must_use]
    pub fn section(&self) -> String {
        let Self { base_url, .. } = self;
        format!(
            "[voice.transcriptions]\nbase_url = \"{base_url}\"\nmodel = \"pocketsphinx\"\n\
             [voice.speech]\nbase_url = \"{base_url}\"\nmodel = \"espeak-ng\"\nvoice = \"en-us\"\n"
        )
    }

    /// A text as a voice note: Opus in Ogg.
    ///
    /// # Panics
    /// If it is not spoken.
    pub async fn voice_note(&self, text: &str) -> Vec<u8> {
        let (spoken, note) = (self.file("spoken.wav"), self.file("note.ogg"));
        fs::write(&spoken, self.speak(text).await).expect("it is written");
        // The length that a program says is unknown which writes to a pipe.
        run(Command::new("opusenc").args(["--quiet", "--ignorelength"]).arg(&spoken).arg(&note));
        fs::read(&note).expect("a voice note")
    }

    /// How long the engine speaks a text.
    ///
    /// # Panics
    /// If it is not spoken.
    pub async fn length(&self, text: &str) -> Duration {
        length(&self.speak(text).await, 22_050)
    }

    /// Plays a voice note.
    ///
    /// # Panics
    /// If it cannot be played.
    pub async fn play(&self, note: &[u8]) -> Played {
        let (file, played) = (self.file("answer.ogg"), self.file("answer.wav"));
        fs::write(&file, note).expect("it is written");
        run(Command::new("opusdec").args(["--quiet", "--force-wav", "--rate", "16000"]).arg(&file).arg(&played));
        let wav = fs::read(&played).expect("a sound");
        let length = length(&wav, 16_000);
        let form = Form::new().part("file", Part::bytes(wav).file_name("answer.wav"));
        let heard = answer(self.http.post(format!("{}/audio/transcriptions", self.base_url)).multipart(form)).await;
        let heard: Value = serde_json::from_slice(&heard).expect("JSON");
        Played { length, words: heard["text"].as_str().expect("words").to_owned() }
    }

    async fn speak(&self, text: &str) -> Vec<u8> {
        let body = json!({ "voice": "en-us", "input": text, "response_format": "wav" });
        answer(self.http.post(format!("{}/audio/speech", self.base_url)).json(&body)).await
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

async fn answer(request: RequestBuilder) -> Vec<u8> {
    let response = request.send().await.expect("the engines respond");
    assert!(response.status().is_success(), "{}", response.status());
    response.bytes().await.expect("an answer").to_vec()
}

fn run(command: &mut Command) {
    let done = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}: run `cargo xtask test`"));
    assert!(done.success(), "{command:?}: {done}");
}

/// How long a WAV file of one channel with 16 bits a sample is.
fn length(wav: &[u8], rate: u32) -> Duration {
    let samples = u32::try_from((wav.len() - 44) / 2).expect("a short one");
    Duration::from_secs(1) * samples / rate
}
