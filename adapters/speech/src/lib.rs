//! Speech, by servers with OpenAI's API for audio: OpenAI, speaches, LocalAI, vLLM, …
//!
//! [`HttpTranscriber`] has recordings written down (`POST /audio/transcriptions`), and [`HttpSynthesizer`] has texts spoken
//! (`POST /audio/speech`).
//!
//! Each call is one request within a time of its own, and one answer of bounded size. Nothing is sent twice, no redirect is followed
//! (the client is given), nothing is converted, and no error or `Debug` output has a key. What a person is told instead of words or
//! sound is the caller's business.
//!
//! To add another kind of server, add a module with a type that implements [`Transcriber`](rejoinder_core::Transcriber) or
//! [`Synthesizer`](rejoinder_core::Synthesizer), and its keys in `config/src/voice.rs`.

#![warn(missing_docs)]

mod endpoint;
mod kind;
mod synthesizer;
mod transcriber;

pub use self::{endpoint::KeyError, synthesizer::HttpSynthesizer, transcriber::HttpTranscriber};
