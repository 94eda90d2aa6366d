//! Speech: what people say as text, and text as sound.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::model::{ChannelId, Unheard};

/// The servers that write down recordings and speak answers.
#[derive(Clone, Default)]
pub struct Speech {
    /// What writes down what people say; `None`: voice notes stay files.
    pub transcriber: Option<Arc<dyn Transcriber>>,
    /// What speaks answers; `None`: they are words alone.
    pub synthesizer: Option<Arc<dyn Synthesizer>>,
}

/// Writes down what is said in a recording.
#[async_trait]
pub trait Transcriber: Send + Sync + 'static {
    /// The name of what hears, for operators.
    fn model(&self) -> Option<&str> {
        None
    }

    /// How long a recording may be. A longer one is not to be given to it.
    fn longest(&self) -> Duration;

    /// The total length of the recordings that all nodes may give it on one day; `None`: any.
    fn most_per_day(&self) -> Option<Duration> {
        None
    }

    /// The words in a recording, in any of the usual formats. Empty if nobody speaks in it. It is tried once in each format that the server
    /// may want, within a time of its own.
    ///
    /// # Errors
    /// When there are no words. What the person is told is the caller's business.
    async fn transcribe(&self, recording: Vec<u8>) -> Result<String, SpeechError>;
}

/// What was said in a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// Never empty.
    pub words: String,
    /// See [`Transcriber::model`].
    pub model: Option<Arc<str>>,
    /// How long it is, as far as its sender or the recording itself says.
    pub seconds: Option<u64>,
}

/// Hears and speaks within what is configured: the core's side of [`Intake::hear`](super::Intake::hear) and
/// [`Intake::speak`](super::Intake::speak).
#[async_trait]
pub(crate) trait SpeechDesk: Send + Sync {
    /// Whether somebody writes recordings down.
    fn hears(&self) -> bool;

    /// Whether somebody speaks.
    fn speaks(&self) -> bool;

    /// The words in a recording on a channel. `said`: how many seconds it has, as far as its sender says.
    async fn hear(&self, channel: &ChannelId, recording: Vec<u8>, said: Option<u64>) -> Result<Transcript, Unheard>;

    /// The sound of a text, which is plain words, if it is made `within` this time.
    async fn speak(&self, channel: &ChannelId, text: &str, format: SoundFormat, within: Duration) -> Option<Sound>;
}

/// Counts what became of a voice note.
pub(crate) fn count_heard(channel: &ChannelId, heard: &Result<Transcript, Unheard>) {
    let result = heard.as_ref().map_or_else(|why| why.as_str(), |_| "words");
    metrics::counter!("rejoinder_voice_notes_total", "channel" => channel.to_string(), "result" => result).increment(1);
}

/// Speaks a text.
#[async_trait]
pub trait Synthesizer: Send + Sync + 'static {
    /// How much may be spoken on one day, by all nodes; `None`: any amount.
    fn most_per_day(&self) -> Option<Duration> {
        None
    }

    /// The sound of a text, which is plain words. It may have another format than the one that is asked for. It is tried once in each
    /// format that the server may have, within a time of its own.
    ///
    /// # Errors
    /// When there is no sound. What the person is told is the caller's business.
    async fn synthesize(&self, text: &str, format: SoundFormat) -> Result<Sound, SpeechError>;
}

/// A format that a text can be spoken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoundFormat {
    /// MP3.
    Mp3,
    /// Opus in Ogg, as voice notes have it.
    Opus,
    /// Samples without compression.
    Wav,
}

/// A spoken text.
#[derive(Clone, PartialEq, Eq)]
pub struct Sound {
    /// Judged by its first bytes.
    pub media_type: &'static str,
    /// The content of the file.
    pub bytes: Vec<u8>,
}

/// Why there are no words, or no sound. Contains no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpeechError {
    /// No answer came.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The answer took too long.
    #[error("the server did not answer within {0:?}")]
    Stalled(Duration),
    /// The server refused the request, in its own words.
    #[error("the server answers {status}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What the server says about it. It may repeat what people said.
        message: String,
    },
    /// The server refused a recording of this kind, which cannot be converted.
    #[error("the server answers {status}, and the recording cannot be converted: {why}")]
    Unconverted {
        /// The HTTP status.
        status: u16,
        /// Why it cannot be converted.
        why: String,
    },
    /// The answer cannot be used.
    #[error("the server's answer cannot be used: {0}")]
    Broken(String),
}

impl SpeechError {
    /// The error without what the server said in its own words, for the log.
    pub fn summary(&self) -> String {
        match self {
            Self::Refused { status, .. } => format!("the server answers {status}"),
            Self::Unreachable(_) | Self::Stalled(_) | Self::Unconverted { .. } | Self::Broken(_) => self.to_string(),
        }
    }
}
