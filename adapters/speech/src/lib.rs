//! Speech, by servers with OpenAI's API for audio: OpenAI, speaches, LocalAI, vLLM, …
//!
//! [`HttpTranscriber`] has recordings written down (`POST /audio/transcriptions`), and [`HttpSynthesizer`] has texts spoken
//! (`POST /audio/speech`).
//!
//! Each request has a time of its own, and its answer is of bounded size. No redirect is followed (the client is given), and no error or
//! `Debug` output has a key. What a person is told instead of words or sound is the caller's business.
//!
//! A recording is sent as it came. If the server refuses that (400, 415 or 422), it is sent once more as WAV (`wav`). A text that the
//! server does not speak in the format that is asked for is asked for as WAV, and a voice note is made of any format (`ogg_opus`).
//! Decoders see what strangers send: they run beside the runtime, within limits (`conversion`), and all that they make of rubbish is an
//! error.
//!
//! To add another kind of server, add a module with a type that implements [`Transcriber`](rejoinder_core::Transcriber) or
//! [`Synthesizer`](rejoinder_core::Synthesizer), and its keys in `config/src/voice.rs`.

#![warn(missing_docs)]

mod conversion;
mod decoding;
mod endpoint;
mod kind;
mod ogg_opus;
mod resampling;
mod synthesizer;
mod transcriber;
mod wav;

pub use self::{endpoint::KeyError, synthesizer::HttpSynthesizer, transcriber::HttpTranscriber};
