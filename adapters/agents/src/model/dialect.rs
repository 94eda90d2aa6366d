//! Which parts of the API a server supports. Each is assumed to be supported until the server refuses it and then accepts
//! the same request without it.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::file_kind::{Sounds, Takes};

/// How long a part is left out before it is tried again: the server may change, or its refusal may have been misread.
const MEMORY: Duration = Duration::from_mins(30);

/// The parts of the API that some servers refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the parts are independent")]
pub(crate) struct Dialect {
    /// `stream_options`, which requests the usage.
    pub(crate) stream_options: bool,
    /// `tools`: many small models do not support them.
    pub(crate) tools: bool,
    /// Use `max_completion_tokens` instead of `max_tokens`, which OpenAI's reasoning models refuse.
    pub(crate) max_completion_tokens: bool,
    /// Pictures: many models have no vision.
    pub(crate) images: bool,
    /// Sounds: few models can hear.
    pub(crate) audio: bool,
    /// Encrypted thoughts in the Responses API, which models that do not think refuse.
    pub(crate) encrypted_thoughts: bool,
}

impl Default for Dialect {
    fn default() -> Self {
        Self {
            stream_options: true,
            tools: true,
            max_completion_tokens: false,
            images: true,
            audio: true,
            encrypted_thoughts: true,
        }
    }
}

impl Dialect {
    /// Which of these files are sent.
    pub(super) fn taken(self, takes: Takes) -> Takes {
        let sounds = if self.audio { takes.sounds } else { Sounds::None };
        Takes { pictures: takes.pictures.filter(|_| self.images), sounds, ..takes }
    }

    /// What is not sent, for the log.
    pub(super) fn left_out(self) -> String {
        let parts = [
            (!self.stream_options, "stream_options"),
            (!self.tools, "tools"),
            (!self.images, "pictures"),
            (!self.audio, "sounds"),
            (!self.encrypted_thoughts, "encrypted thoughts"),
            (self.max_completion_tokens, "max_tokens"),
        ];
        parts.into_iter().filter_map(|(is_left_out, name)| is_left_out.then_some(name)).collect::<Vec<_>>().join(", ")
    }

    /// The parts that both dialects support.
    const fn and(self, other: Self) -> Self {
        Self {
            stream_options: self.stream_options && other.stream_options,
            tools: self.tools && other.tools,
            max_completion_tokens: self.max_completion_tokens || other.max_completion_tokens,
            images: self.images && other.images,
            audio: self.audio && other.audio,
            encrypted_thoughts: self.encrypted_thoughts && other.encrypted_thoughts,
        }
    }

    /// The dialect without the part that the server refused with `message`. `None` if the message is about something else.
    pub(super) fn without_refused(self, message: &str) -> Option<Self> {
        let message = message.to_ascii_lowercase();
        let left = if message.contains("stream_options") {
            Self { stream_options: false, ..self }
        } else if message.contains("max_completion_tokens") {
            Self { max_completion_tokens: true, ..self }
        } else if refuses_encrypted_thoughts(&message) {
            Self { encrypted_thoughts: false, ..self }
        } else if refuses_tools(&message) {
            Self { tools: false, ..self }
        } else if refuses_files(&message) {
            Self { images: false, audio: false, ..self }
        } else if refuses_images(&message) {
            Self { images: false, ..self }
        } else if refuses_audio(&message) {
            Self { audio: false, ..self }
        } else {
            self
        };
        (left != self).then_some(left)
    }
}

/// The messages of OpenAI ("Encrypted content is not supported with this model.", "Unknown parameter: 'include'.") and servers
/// on pydantic ("body.include: Extra inputs are not permitted").
fn refuses_encrypted_thoughts(message: &str) -> bool {
    let refuses = ["unknown", "not permitted", "not supported", "unsupported", "unrecognized", "unexpected"];
    let names_it = ["encrypted content", "encrypted_content", "include"].iter().any(|name| message.contains(name));
    names_it && refuses.iter().any(|word| message.contains(word))
}

/// The messages of Ollama ("does not support tools"), vLLM ("\"auto\" tool choice requires
/// --enable-auto-tool-choice"), llama.cpp ("tools param requires --jinja flag"), OpenAI ("Unsupported
/// parameter: 'tools'") and servers on pydantic ("Extra inputs are not permitted").
fn refuses_tools(message: &str) -> bool {
    let names = ["tools", "tool use", "tool choice", "tool calling", "function calling"];
    let refuses = ["support", "requires", "not permitted", "not allowed", "unrecognized", "unknown", "unexpected"];
    names.iter().any(|name| message.contains(name)) && refuses.iter().any(|word| message.contains(word))
}

/// The messages of vLLM ("... is not a multimodal model") and servers that accept only text ("content: Input should be a valid
/// string").
fn refuses_files(message: &str) -> bool {
    let wants_text = message.contains("content") && message.contains("valid string");
    wants_text || refuses_one_of(message, &["multimodal"])
}

/// The messages of OpenAI ("Invalid content type. image_url is only supported by certain models."), vLLM ("At most 0 image(s)
/// may be provided"), llama.cpp ("image input is not supported") and Ollama ("this model is missing data required for image
/// input").
fn refuses_images(message: &str) -> bool {
    refuses_one_of(message, &["image_url", "input_image", "image input", "images", "image(s)", "vision"])
}

/// The same for sounds.
fn refuses_audio(message: &str) -> bool {
    refuses_one_of(message, &["input_audio", "audio input", "audio(s)", "audio content"])
}

fn refuses_one_of(message: &str, names: &[&str]) -> bool {
    let refuses = ["support", "not a ", "at most 0", "missing data", "not permitted", "not allowed", "unknown"];
    names.iter().any(|name| message.contains(name)) && refuses.iter().any(|word| message.contains(word))
}

/// The dialect of a server, as learned so far.
#[derive(Debug, Default)]
pub(super) struct LearnedDialect(Mutex<Learned>);

#[derive(Debug, Default)]
struct Learned {
    dialect: Dialect,
    /// When it was last learned.
    at: Option<Instant>,
    /// Without every part that was ever refused.
    least: Dialect,
}

impl Learned {
    fn current(&self) -> Dialect {
        if self.at.is_some_and(|at| at.elapsed() < MEMORY) { self.dialect } else { Dialect::default() }
    }
}

impl LearnedDialect {
    pub(super) fn get(&self) -> Dialect {
        self.0.lock().current()
    }

    /// Learns that the server accepts `dialect` after it refused a part that is not in it. Returns whether that part was
    /// never refused before.
    pub(super) fn learn(&self, dialect: Dialect) -> bool {
        let mut learned = self.0.lock();
        let (least, before) = (learned.least.and(dialect), learned.least);
        *learned = Learned { dialect: learned.current().and(dialect), at: Some(Instant::now()), least };
        least != before
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ALL: Dialect = Dialect {
        stream_options: true,
        tools: true,
        max_completion_tokens: false,
        images: true,
        audio: true,
        encrypted_thoughts: true,
    };

    #[rstest]
    #[case("Unknown parameter: 'stream_options'", Dialect { stream_options: false, ..ALL })]
    #[case(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        Dialect { max_completion_tokens: true, ..ALL },
    )]
    #[case("registry.ollama.ai/library/gemma:2b does not support tools", Dialect { tools: false, ..ALL })]
    #[case(
        "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
        Dialect { tools: false, ..ALL },
    )]
    #[case("tools param requires --jinja flag", Dialect { tools: false, ..ALL })]
    #[case("Invalid content type. image_url is only supported by certain models.", Dialect { images: false, ..ALL })]
    #[case("Invalid content type. input_image is only supported by certain models.", Dialect { images: false, ..ALL })]
    #[case("Encrypted content is not supported with this model.", Dialect { encrypted_thoughts: false, ..ALL })]
    #[case("Unknown parameter: 'include'.", Dialect { encrypted_thoughts: false, ..ALL })]
    #[case("body.include: Extra inputs are not permitted", Dialect { encrypted_thoughts: false, ..ALL })]
    #[case("/models/qwen is not a multimodal model", Dialect { images: false, audio: false, ..ALL })]
    #[case("At most 0 image(s) may be provided in one prompt.", Dialect { images: false, ..ALL })]
    #[case("image input is not supported - hint: you may need to provide the mmproj", Dialect { images: false, ..ALL })]
    #[case("messages.1.content: Input should be a valid string", Dialect { images: false, audio: false, ..ALL })]
    #[case("Invalid content type. input_audio is only supported by certain models.", Dialect { audio: false, ..ALL })]
    #[case("At most 0 audio(s) may be provided in one prompt.", Dialect { audio: false, ..ALL })]
    #[case("audio input is not supported - hint: you may need to provide the mmproj", Dialect { audio: false, ..ALL })]
    fn a_refusal_names_the_part_to_leave_out(#[case] message: &str, #[case] left: Dialect) {
        assert_eq!(ALL.without_refused(message), Some(left));
        assert_eq!(left.without_refused(message), None, "it was already left out");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_learned_is_forgotten_some_time() {
        let learned = LearnedDialect::default();
        let (no_tools, no_images) = (Dialect { tools: false, ..ALL }, Dialect { images: false, ..ALL });

        assert!(learned.learn(no_tools) && learned.learn(no_images));
        assert_eq!(learned.get(), Dialect { tools: false, images: false, ..ALL });
        tokio::time::advance(MEMORY).await;
        assert_eq!(learned.get(), ALL);
        assert!(!learned.learn(no_tools), "it is not news");
        assert_eq!(learned.get(), no_tools);
    }

    #[rstest]
    #[case("model 'llama9' not found")]
    #[case("This model's maximum context length is 8192 tokens")]
    #[case("Invalid 'messages[3].tool_call_id'")]
    #[case("Invalid image data")]
    #[case("Invalid value for 'model'. Valid values include: llama3")]
    fn another_refusal_names_no_part(#[case] message: &str) {
        assert_eq!(ALL.without_refused(message), None);
    }
}
