//! Checks of the servers for speech: one writes down a second of silence, the other speaks a word.

use std::time::Instant;

use rejoinder_agents::redacted_url;
use rejoinder_config::{Speech, Transcriptions, Voice};
use rejoinder_core::{SoundFormat, SpeechError, Synthesizer as _, Transcriber as _};
use rejoinder_speech::{HttpSynthesizer, HttpTranscriber, KeyError};
use reqwest::Client;
use tokio::time::timeout;
use url::Url;

use crate::{client::CHECK_TIMEOUT, console::finding::Finding};

/// A server that is tried.
struct Server {
    /// Its section.
    about: &'static str,
    who: String,
    has_key: bool,
}

pub(super) async fn check(voice: &Voice, http: &Client) -> Vec<Finding> {
    let heard = async {
        match &voice.transcriptions {
            Some(server) => Some(hears(voice, server, http).await),
            None => None,
        }
    };
    let spoken = async {
        match &voice.speech {
            Some(server) => Some(speaks(server, http).await),
            None => None,
        }
    };
    let (heard, spoken) = tokio::join!(heard, spoken);
    heard.into_iter().chain(spoken).collect()
}

async fn hears(voice: &Voice, server: &Transcriptions, http: &Client) -> Finding {
    let transcriber = HttpTranscriber::new(server, voice.longest, http.clone());
    let tried = Server::new("voice.transcriptions", &server.model, &server.base_url, server.api_key.is_some());
    match transcriber {
        Ok(transcriber) => tried.finding(transcriber.transcribe(silence()), |_| "it hears".to_owned()).await,
        Err(error) => tried.unusable(error),
    }
}

async fn speaks(server: &Speech, http: &Client) -> Finding {
    let synthesizer = HttpSynthesizer::new(server, http.clone());
    let tried = Server::new("voice.speech", &server.model, &server.base_url, server.api_key.is_some());
    match synthesizer {
        Ok(synthesizer) => {
            let spoken = synthesizer.synthesize("Hello.", SoundFormat::Mp3);
            tried.finding(spoken, |sound| format!("it speaks ({})", sound.media_type)).await
        }
        Err(error) => tried.unusable(error),
    }
}

impl Server {
    fn new(about: &'static str, model: &str, base_url: &Url, has_key: bool) -> Self {
        let who = format!("{model} at {}", redacted_url(base_url).as_str().trim_end_matches('/'));
        Self { about, who, has_key }
    }

    /// What came of a call. `done` says what the server does.
    async fn finding<T>(
        &self,
        call: impl Future<Output = Result<T, SpeechError>>,
        done: impl FnOnce(T) -> String,
    ) -> Finding {
        let Self { about, who, .. } = self;
        let asked = Instant::now();
        match timeout(CHECK_TIMEOUT, call).await.unwrap_or(Err(SpeechError::Stalled(CHECK_TIMEOUT))) {
            Ok(value) => {
                let took = asked.elapsed().as_secs_f64();
                Finding::ok(*about, format!("{who}: {} after {took:.1} s", done(value)))
            }
            Err(error @ SpeechError::Stalled(_)) => Finding::warning(*about, format!("{who}: {error}"))
                .with_advice("It may have to load the model: try again in a moment."),
            Err(error) => Finding::wrong(*about, format!("{who}: {error}")).with_advice(self.advice(&error)),
        }
    }

    fn advice(&self, error: &SpeechError) -> String {
        let about = self.about;
        match error {
            SpeechError::Unreachable(_) => {
                format!("Start the server, or correct its address in {about}.base_url.")
            }
            SpeechError::Refused { status: 401 | 403, .. } if self.has_key => {
                format!("Set {about}.api_key to a valid key.")
            }
            SpeechError::Refused { status: 401 | 403, .. } => format!("Set {about}.api_key."),
            SpeechError::Refused { status: 404 | 405, .. } => {
                format!("Does {about}.base_url lack a /v1 at its end? Does the server have the model?")
            }
            SpeechError::Refused { .. }
            | SpeechError::Stalled(_)
            | SpeechError::Unconverted { .. }
            | SpeechError::Broken(_) => {
                format!("See the server's log, and whether [{about}] has what it wants.")
            }
        }
    }

    fn unusable(&self, error: KeyError) -> Finding {
        Finding::wrong(self.about, format!("{}: {error}", self.who))
            .with_advice(format!("Correct {}.api_key.", self.about))
    }
}

/// A second of silence: a WAV file with one channel.
fn silence() -> Vec<u8> {
    const RATE: u32 = 16_000;
    const SAMPLE: u32 = 2;
    let size = RATE * SAMPLE;
    let header = [
        &b"RIFF"[..],
        &(36 + size).to_le_bytes(),
        b"WAVEfmt ",
        &16u32.to_le_bytes(),
        // Samples without compression, in one channel.
        &1u16.to_le_bytes(),
        &1u16.to_le_bytes(),
        &RATE.to_le_bytes(),
        &size.to_le_bytes(),
        &2u16.to_le_bytes(),
        &16u16.to_le_bytes(),
        b"data",
        &size.to_le_bytes(),
    ];
    let mut wav = header.concat();
    wav.resize(wav.len() + size as usize, 0);
    wav
}
