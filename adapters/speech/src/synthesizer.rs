//! `POST /audio/speech`: the sound of a text.

use std::time::Duration;

use async_trait::async_trait;
use rejoinder_config::Speech;
use rejoinder_core::{Sound, SoundFormat, SpeechError, Synthesizer};
use reqwest::Client;
use serde_json::json;

use crate::{
    endpoint::{Endpoint, KeyError},
    kind::kind_of,
};

/// The largest sound, in bytes: an answer of some minutes without compression.
const MAX_SOUND: usize = 16 << 20;

/// A server that speaks.
pub struct HttpSynthesizer {
    endpoint: Endpoint,
    model: String,
    voice: String,
    most_per_day: Option<Duration>,
}

impl HttpSynthesizer {
    /// `http` follows no redirects.
    ///
    /// # Errors
    /// When the key cannot be sent.
    pub fn new(server: &Speech, http: Client) -> Result<Self, KeyError> {
        let Speech { base_url, model, voice, api_key, timeout } = server;
        let endpoint = Endpoint::new(http, base_url, "speech", api_key.as_ref(), *timeout)?;
        Ok(Self { endpoint, model: model.clone(), voice: voice.clone(), most_per_day: None })
    }

    /// No more may be spoken by it on one day.
    #[must_use]
    pub fn at_most(self, most_per_day: Option<Duration>) -> Self {
        Self { most_per_day, ..self }
    }
}

#[async_trait]
impl Synthesizer for HttpSynthesizer {
    fn most_per_day(&self) -> Option<Duration> {
        self.most_per_day
    }

    async fn synthesize(&self, text: &str, format: SoundFormat) -> Result<Sound, SpeechError> {
        let format = match format {
            SoundFormat::Mp3 => "mp3",
            SoundFormat::Opus => "opus",
            SoundFormat::Wav => "wav",
        };
        let body = json!({ "model": self.model, "voice": self.voice, "input": text, "response_format": format });
        let bytes = self.endpoint.answer(self.endpoint.request().json(&body), MAX_SOUND).await?;
        match kind_of(&bytes) {
            Some((media_type, _)) => Ok(Sound { media_type, bytes }),
            None => Err(SpeechError::Broken("it is no sound of a known kind".to_owned())),
        }
    }
}
