//! `kind = "openai"`: the configuration of a server with the Chat Completions API or the Responses API.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rejoinder_config::{
    AgentSection, Checks, Secret, Section, SystemPrompt,
    duration::{self, HOUR},
    number, text,
};
use rejoinder_core::{Price, ScheduleLimits};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    file_kind::{Sounds, Takes},
    mcp_server::{self, McpServerSection},
    piece::PieceName,
    section::{
        self, ModelSettings, PriceSection, SYSTEM_PROMPT, SchedulesSection, read_temperature, write_temperature,
    },
};

/// By which of OpenAI's APIs a server is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OpenAiApi {
    /// Chat Completions, which nearly all servers have.
    #[default]
    Chat,
    /// Responses, of which nothing is stored on the server.
    Responses,
}

/// Any server with the Chat Completions API or the Responses API: Ollama, vLLM, llama.cpp, LiteLLM, OpenAI, ...
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the section")]
pub struct OpenAiSection {
    /// The URL of the API, including `/v1` if the server has it.
    #[serde(deserialize_with = "text::http_url")]
    pub base_url: Url,
    /// The API of the server.
    pub api: OpenAiApi,
    #[serde(deserialize_with = "text::filled")]
    pub model: String,
    /// Further models, of which people may choose one for a session.
    pub models: Vec<String>,
    /// Sent as `Authorization: Bearer …`.
    pub api_key: Option<Secret>,
    /// Sent with every request as well. The values are secrets.
    pub headers: BTreeMap<String, Secret>,
    /// The instructions that the model gets before each conversation.
    pub system_prompt: SystemPrompt,
    /// What of its own the gateway does not add to the system prompt.
    pub leave_out: Vec<PieceName>,
    /// From 0 to 2. `None`: the server decides.
    #[serde(serialize_with = "write_temperature", deserialize_with = "read_temperature::<_, 2>")]
    pub temperature: Option<f32>,
    /// The most tokens of one answer. `None`: the server decides.
    #[serde(deserialize_with = "number::between_option::<_, 1, 1_000_000>")]
    pub max_tokens: Option<u32>,
    /// Whether the model is offered tools to react, ask, defer, stay silent and send.
    pub tools: bool,
    /// Whether the model gets the pictures that people send.
    pub images: bool,
    /// Whether the model gets the sounds that people send, WAV and MP3.
    pub audio: bool,
    /// Whether the model begins with a thought that ends in `</think>` but has no `<think>` before it. No draft is shown
    /// before that thought has ended. If false, this is learned from the first such answer.
    pub thinks_first: bool,
    /// The most earlier messages that the model gets.
    #[serde(deserialize_with = "number::between::<_, 0, 10_000>")]
    pub history_messages: u32,
    /// The most characters of earlier messages that the model gets; the oldest messages are left out.
    #[serde(deserialize_with = "number::between::<_, 0, 10_000_000>")]
    pub history_chars: u32,
    /// How many turns the agent works on at once; the others wait.
    #[serde(deserialize_with = "number::between::<_, 1, 4096>")]
    pub max_concurrent: u32,
    /// Whether drafts show what it does.
    pub show_activity: bool,
    /// How long the server may take until the first part of an answer; it may have to load the model.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 10, HOUR>")]
    pub first_token_timeout: Duration,
    /// How long the server may pause after that.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 10, HOUR>")]
    pub idle_timeout: Duration,
    /// What the model may schedule in a chat.
    pub schedules: SchedulesSection,
    /// What the model's tokens cost. `None`: unknown.
    pub price: Option<PriceSection>,
    /// The servers of the Model Context Protocol whose tools the model is offered, by name.
    pub mcp: BTreeMap<String, McpServerSection>,
}

impl Default for OpenAiSection {
    fn default() -> Self {
        Self {
            base_url: "http://127.0.0.1:11434/v1".parse().expect("a valid constant"),
            api: OpenAiApi::default(),
            model: String::new(),
            models: Vec::new(),
            api_key: None,
            headers: BTreeMap::new(),
            system_prompt: SYSTEM_PROMPT.into(),
            leave_out: Vec::new(),
            temperature: None,
            max_tokens: None,
            tools: true,
            images: false,
            audio: false,
            thinks_first: false,
            history_messages: 40,
            history_chars: 16_000,
            max_concurrent: 32,
            show_activity: false,
            first_token_timeout: Duration::from_mins(2),
            idle_timeout: Duration::from_mins(1),
            schedules: SchedulesSection::default(),
            price: None,
            mcp: BTreeMap::new(),
        }
    }
}

impl OpenAiSection {
    pub(crate) fn settings(&self) -> ModelSettings<'_> {
        ModelSettings {
            base_url: &self.base_url,
            api_key: self.api_key.as_ref(),
            headers: &self.headers,
            model: &self.model,
            system_prompt: self.system_prompt.as_str(),
            leave_out: &self.leave_out,
            tools: self.tools,
            mcp: &self.mcp,
            takes: Takes {
                pictures: self.images.then_some(usize::MAX),
                sounds: if self.audio { Sounds::Common } else { Sounds::None },
                documents: false,
            },
            thinks_first: self.thinks_first,
            history_messages: self.history_messages,
            history_chars: self.history_chars,
            first_token_timeout: self.first_token_timeout,
            idle_timeout: self.idle_timeout,
        }
    }
}

impl Section for OpenAiSection {
    const REQUIRED: &'static [&'static str] = &["base_url", "model"];

    fn check(&self, checks: &mut Checks<'_>) {
        section::check_models(&self.model, &self.models, checks);
        section::check_headers(&self.headers, &[("authorization", Some("api_key"))], checks);
        mcp_server::check(&self.mcp, checks);
        if self.audio && self.api == OpenAiApi::Responses {
            let key = checks.key(&["audio"]);
            checks.wrong(key, "cannot be set with `api = \"responses\"`, which takes no sounds");
        }
    }
}

impl AgentSection for OpenAiSection {
    const KIND: &'static str = "openai";
    const MANUAL: &'static str = include_str!("../../openai.toml");

    fn max_concurrent(&self) -> Option<u32> {
        Some(self.max_concurrent)
    }

    fn shows_activity(&self) -> bool {
        self.show_activity
    }

    fn models(&self) -> Vec<Arc<str>> {
        section::models(&self.model, &self.models)
    }

    fn schedules(&self) -> Option<ScheduleLimits> {
        self.tools.then_some(self.schedules.into())
    }

    fn price(&self) -> Option<Price> {
        self.price.map(Price::from)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rejoinder_config::testing::{Machine, check_agent_manual};
    use rejoinder_core::Currency;
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_manual_holds() {
        check_agent_manual::<OpenAiSection>(
            &[("OPENAI_API_KEY", "sk-example"), ("GATEWAY_KEY", "gw-example")],
            &["models", "api_key", "headers", "temperature", "max_tokens", "price", "mcp"],
        );
    }

    #[test]
    fn a_temperature_is_shown_as_it_was_written() {
        let config = Machine::with_agent::<OpenAiSection>(
            "[agents.main]\nkind = \"openai\"\nbase_url = \"http://x\"\nmodel = \"m\"\ntemperature = 0.7",
        )
        .config();

        assert!(config.to_toml_redacted().contains("temperature = 0.7\n"), "{}", config.to_toml_redacted());
    }

    #[test]
    fn a_price_is_in_dollars_unless_it_says_otherwise() {
        let price = |keys: &str| {
            let agent = format!("[agents.main]\nkind = \"openai\"\nmodel = \"m\"\nbase_url = \"http://x\"\n{keys}");
            Machine::with_agent::<OpenAiSection>(&agent).config().agents["main"].price
        };

        let dollars = Price { input: 2.5, output: 10.0, currency: Currency::USD };
        assert_eq!(price("price = { input = 2.5, output = 10 }"), Some(dollars));
        let euros = Price { currency: "EUR".parse().expect("a currency"), ..dollars };
        assert_eq!(price("[agents.main.price]\ninput = 2.5\noutput = 10.0\ncurrency = \"EUR\""), Some(euros));
        assert_eq!(price(""), None);
    }

    const AGENT: &str = "[agents.main]\nkind = \"openai\"\nbase_url = \"http://x\"\nmodel = \"m\"\n";

    fn prompted(files: &str) -> Machine {
        let toml = format!("{AGENT}system_prompt = {{ files = {files} }}");
        let mut machine = Machine::with_agent::<OpenAiSection>("").with_file("etc/rejoinder.toml", &toml);
        machine.options.path = Some("etc/rejoinder.toml".into());
        machine
    }

    #[test]
    fn the_system_prompt_stands_in_files_beside_the_configuration() {
        let machine = prompted("[\"soul.md\", \"nothing.md\", \"../user.md\"]")
            .with_file("etc/soul.md", "\u{feff}Be kind.\n\n")
            .with_file("etc/nothing.md", "\n")
            .with_file("user.md", "I am Ada.\n");
        let config = machine.config();

        let section = config.agents["main"].section::<OpenAiSection>().expect("it is of this kind");
        assert_eq!(section.system_prompt.as_str(), "Be kind.\n\nI am Ada.");
        let printed = config.to_toml_redacted();
        assert!(printed.contains("files = [\"soul.md\", \"nothing.md\", \"../user.md\"]"), "{printed}");

        let changed = machine.with_file("user.md", "I am Bob.\n").config();
        assert_ne!(config.to_compare(), changed.to_compare(), "a reload sees it");
    }

    #[rstest]
    #[case(
        "[\"soul.md\", \"gone.md\"]",
        ".files[1]",
        "names the file …/etc/gone.md, which cannot be read: No such file or directory (os error 2)"
    )]
    #[case("[\"folder\"]", ".files[0]", "names …/etc/folder, which is not a file")]
    #[case("[\"pipe\"]", ".files[0]", "names …/etc/pipe, which is not a file")]
    #[case("[\"large.md\"]", ".files[0]", "names …/etc/large.md, which is larger than 256 KiB")]
    #[case("[\"latin.md\"]", ".files[0]", "names …/etc/latin.md, which is not UTF-8: save it as UTF-8")]
    #[case("[\"blank.md\"]", "", "is empty: there is no text in its files")]
    #[case("[\"\"]", ".files[0]", "must be the path of a file, in quotes")]
    #[case("[]", "", "must name 1 to 32 files, not 0")]
    #[case("\"soul.md\"", ".files", "must be a list, not text")]
    fn a_file_that_cannot_be_read_is_named(#[case] files: &str, #[case] key: &str, #[case] said: &str) {
        let machine = prompted(files)
            .with_file("etc/soul.md", "Be kind.")
            .with_file("etc/folder/a.md", "a")
            .with_file("etc/large.md", &"x".repeat(256 * 1024 + 1))
            .with_file("etc/blank.md", " \n");
        std::fs::write(machine.dir().join("etc/latin.md"), b"Gr\xfc\xdfe").expect("a file can be written");
        let made = Command::new("mkfifo").arg(machine.dir().join("etc/pipe")).status();
        assert!(made.expect("mkfifo is there").success());

        let expected = format!("config key `agents.main.system_prompt{key}` {said} (etc/rejoinder.toml:5)");
        assert_eq!(machine.errors(), expected);
    }

    #[rstest]
    #[case("\"\"", "", "is empty")]
    #[case("5", "", "must be text, or `{ files = [\"path\"] }`, not 5")]
    fn a_system_prompt_is_a_text_or_files(#[case] prompt: &str, #[case] key: &str, #[case] said: &str) {
        let machine = Machine::with_agent::<OpenAiSection>(&format!("{AGENT}system_prompt = {prompt}"));

        let errors = machine.errors();
        assert_eq!(errors, format!("config key `agents.main.system_prompt{key}` {said} (rejoinder.toml:5)"));
    }

    #[test]
    fn another_key_than_files_is_named() {
        let errors =
            Machine::with_agent::<OpenAiSection>(&format!("{AGENT}system_prompt = {{ file = [\"a.md\"] }}")).errors();

        let expected = "`agents.main.system_prompt.file` is unknown: did you mean `files`? (rejoinder.toml:5)";
        assert!(errors.contains(expected), "{errors}");
    }

    #[test]
    fn the_values_of_headers_are_secrets() {
        let machine = Machine::with_agent::<OpenAiSection>(
            "[agents.main]\nkind = \"openai\"\nbase_url = \"http://x\"\nmodel = \"m\"\n\
             headers = { x-team = \"support-7\", X-Key = { env = \"GATEWAY_KEY\" } }",
        )
        .with_environment(&[("GATEWAY_KEY", "gw-secret")]);
        let config = machine.config();

        let section = config.agents["main"].section::<OpenAiSection>().expect("it is of this kind");
        assert_eq!(section.headers["X-Key"].expose(), "gw-secret");
        let printed = format!("{}{section:?}", config.to_toml_redacted());
        assert!(printed.contains("X-Key = \"***\"") && printed.contains("x-team = \"***\""), "{printed}");
        assert!(!printed.contains("gw-secret") && !printed.contains("support-7"), "{printed}");
    }

    #[rstest]
    #[case("authorization", "\"Basic eDp5\"", "is set by the gateway itself: set `api_key`")]
    #[case("Content-Type", "\"text/plain\"", "is set by the gateway itself: remove it")]
    #[case("traceparent", "\"00\"", "is set by the gateway itself: remove it")]
    #[case("\"x team\"", "\"a\"", "is not the name of a header: use letters, digits, `-`, `_` and `.`")]
    #[case("x-team", "\"a\\nb\"", "contains a character that is not allowed in a header (a line break, perhaps)")]
    #[case("x-team", "\"\"", "is empty")]
    #[case("x-team", "5", "must be text in quotes, `{ env = \"NAME\" }` or `{ file = \"path\" }`")]
    fn a_header_that_cannot_be_sent_is_named(#[case] name: &str, #[case] value: &str, #[case] said: &str) {
        let machine = Machine::with_agent::<OpenAiSection>(&format!("{AGENT}[agents.main.headers]\n{name} = {value}"));

        assert_eq!(machine.errors(), format!("config key `agents.main.headers.{name}` {said} (rejoinder.toml:6)"));
    }

    #[test]
    fn a_header_is_there_once() {
        let machine = Machine::with_agent::<OpenAiSection>(
            "[agents.main]\nkind = \"openai\"\nbase_url = \"http://x\"\nmodel = \"m\"\nheaders = { x-a = \"1\", X-A = \"2\" }",
        );

        let errors = machine.errors();
        assert!(errors.contains("`agents.main.headers.X-A` is there twice: remove one (rejoinder.toml:5)"), "{errors}");
    }

    #[rstest]
    #[case::no_model("base_url = \"http://x\"", "agents.main.model` must be set (rejoinder.toml:1)")]
    #[case::too_free(
        "base_url = \"http://x\"\nmodel = \"m\"\ntemperature = 3",
        "agents.main.temperature` must be a number from 0 to 2, not 3 (rejoinder.toml:5)"
    )]
    #[case::no_words(
        "base_url = \"http://x\"\nmodel = \"m\"\nmax_tokens = 0",
        "agents.main.max_tokens` must be a whole number from 1 to 1000000, not 0 (rejoinder.toml:5)"
    )]
    #[case::half_a_price(
        "base_url = \"http://x\"\nmodel = \"m\"\nprice = { input = 1 }",
        "agents.main.price.output` must be set (rejoinder.toml:5)"
    )]
    #[case::a_gift(
        "base_url = \"http://x\"\nmodel = \"m\"\nprice = { input = -1, output = 2 }",
        "agents.main.price.input` must be a number that is not negative, for a million tokens, not -1 (rejoinder.toml:5)"
    )]
    #[case::no_api(
        "base_url = \"http://x\"\nmodel = \"m\"\napi = \"response\"",
        "agents.main.api` must be `chat` or `responses`, not `response` (did you mean `responses`?) (rejoinder.toml:5)"
    )]
    #[case::no_ears(
        "base_url = \"http://x\"\nmodel = \"m\"\naudio = true\napi = \"responses\"",
        "agents.main.audio` cannot be set with `api = \"responses\"`, which takes no sounds (rejoinder.toml:5)"
    )]
    #[case::no_piece(
        "base_url = \"http://x\"\nmodel = \"m\"\nleave_out = [\"date\", \"plac\"]",
        "agents.main.leave_out[1]` must be one of `place`, `legend`, `program`, `handoff`, `language`, `date` or `budget`, not `plac` (did you mean `place`?) (rejoinder.toml:5)"
    )]
    #[case::no_currency(
        "base_url = \"http://x\"\nmodel = \"m\"\nprice = { input = 1, output = 2, currency = \"dollars\" }",
        "agents.main.price.currency` must be three capital letters, such as \"USD\" (rejoinder.toml:5)"
    )]
    #[case::a_key_that_cannot_be_made(
        "base_url = \"http://x\"\nmodel = \"m\"\napi_key = { generate = true }",
        "agents.main.api_key` must be text in quotes, `{ env = \"NAME\" }` or `{ file = \"path\" }` (rejoinder.toml:5)"
    )]
    fn a_mistake_is_named(#[case] keys: &str, #[case] said: &str) {
        let machine = Machine::with_agent::<OpenAiSection>(&format!("[agents.main]\nkind = \"openai\"\n{keys}"));

        assert_eq!(machine.errors(), format!("config key `{said}"));
    }
}
