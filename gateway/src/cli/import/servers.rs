//! Model servers, by the names that the other gateways have for them.

use url::Url;

use super::{draft::Block, notes::Notes};
use crate::console::secret::SecretLocation;

/// The API of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Api {
    #[default]
    ChatCompletions,
    Responses,
    /// Anthropic's Messages.
    Messages,
}

/// A server that is known by name.
pub(super) struct KnownServer {
    pub(super) names: &'static [&'static str],
    pub(super) base_url: &'static str,
    pub(super) api: Api,
    /// The variables in which its users keep the key, the usual one first. None: it needs no key.
    pub(super) keys: &'static [&'static str],
}

/// Sources: NousResearch/hermes-agent, `cli-config.yaml.example` and `.env.example`; openclaw/openclaw, `docs/providers/`; for
/// Anthropic <https://docs.anthropic.com/en/api/messages>, for Google <https://ai.google.dev/gemini-api/docs/openai>.
const KNOWN: &[KnownServer] = &[
    known(&["openai"], "https://api.openai.com/v1", &["OPENAI_API_KEY"]),
    KnownServer { api: Api::Messages, ..known(&["anthropic"], "https://api.anthropic.com", &["ANTHROPIC_API_KEY"]) },
    known(&["openrouter", "auto"], "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY", "OPENAI_API_KEY"]),
    known(
        &["google", "gemini"],
        "https://generativelanguage.googleapis.com/v1beta/openai",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    ),
    known(&["groq"], "https://api.groq.com/openai/v1", &["GROQ_API_KEY"]),
    known(&["mistral"], "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"]),
    known(&["xai"], "https://api.x.ai/v1", &["XAI_API_KEY"]),
    known(&["deepseek"], "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"]),
    known(&["zai"], "https://api.z.ai/api/paas/v4", &["GLM_API_KEY", "ZAI_API_KEY"]),
    known(&["huggingface"], "https://router.huggingface.co/v1", &["HF_TOKEN"]),
    known(&["ollama-cloud"], "https://ollama.com/v1", &["OLLAMA_API_KEY"]),
    known(&["ollama"], "http://127.0.0.1:11434/v1", &[]),
    known(&["lmstudio"], "http://127.0.0.1:1234/v1", &[]),
];

const fn known(names: &'static [&'static str], base_url: &'static str, keys: &'static [&'static str]) -> KnownServer {
    KnownServer { names, base_url, api: Api::ChatCompletions, keys }
}

/// The server with this name, if it is known.
pub(super) fn find(name: &str) -> Option<&'static KnownServer> {
    KNOWN.iter().find(|server| server.names.contains(&name))
}

impl KnownServer {
    /// Its address for this API: Anthropic's server has the others below its version.
    pub(super) fn base_url(&self, api: Api) -> String {
        let version = if self.api == Api::Messages && api != Api::Messages { "/v1" } else { "" };
        format!("{}{version}", self.base_url)
    }

    /// Whether `base_url` is its address. That of a server with Anthropic's API may be written with its version.
    pub(super) fn is_at(&self, base_url: &str) -> bool {
        let base_url = base_url.trim_end_matches('/');
        base_url == self.base_url || (self.api == Api::Messages && base_url.strip_suffix("/v1") == Some(self.base_url))
    }
}

/// An agent that another gateway runs itself: all that can be taken over is its model.
pub(super) struct Model {
    /// Where it stands there.
    pub(super) key: String,
    /// The model's name on its server.
    pub(super) name: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) api: Api,
    pub(super) api_key: Option<SecretLocation>,
    /// Why our gateway cannot talk to the server, if it cannot.
    pub(super) obstacle: Option<String>,
}

impl Model {
    /// The section of the agent `name`.
    pub(super) fn block(self, name: &str, notes: &mut Notes) -> Block {
        let mut block = Block::new(&["agents", name]);
        block.remark("The model alone: tools, memory and skills of the former agent are not part of it.");
        block.set("kind", if self.api == Api::Messages { "anthropic" } else { "openai" });
        let base_url = self.base_url.and_then(|url| address(&url, self.api, &self.key, notes));
        let missing = match (&base_url, &self.name) {
            (None, _) => Some("the address of the model's server is not known"),
            (_, None) => Some("the model is not known"),
            _ => None,
        };
        match base_url {
            Some(base_url) => block.set("base_url", base_url),
            None => block.leave_open("base_url", "\"http://127.0.0.1:11434/v1\""),
        }
        if self.api == Api::Responses {
            block.set("api", "responses");
        }
        match self.name {
            Some(model) => block.set("model", model),
            None => block.leave_open("model", "\"llama3.1\""),
        }
        if let Some(api_key) = self.api_key {
            block.set_secret("api_key", api_key);
        }
        if let Some(why) = self.obstacle.or_else(|| missing.map(str::to_owned)) {
            notes.add(&self.key, format!("cannot be used as it is: {why}"), "connect an agent: docs/agents.md");
            block.turn_off(why);
        }
        block
    }
}

/// The address of a server, without what may be a secret: a user, a password or a query. `None` if it is no URL.
fn address(url: &str, api: Api, key: &str, notes: &mut Notes) -> Option<String> {
    // Our section of kind `anthropic` adds the version.
    let bare = |url: &str| {
        let url = url.trim_end_matches('/');
        if api == Api::Messages { url.strip_suffix("/v1").unwrap_or(url) } else { url }.to_owned()
    };
    let mut address = url.parse::<Url>().ok()?;
    let has_secrets = !address.username().is_empty() || address.password().is_some() || address.query().is_some();
    if !has_secrets {
        return Some(bare(url));
    }
    address.set_username("").ok()?;
    address.set_password(None).ok()?;
    address.set_query(None);
    notes.add(
        key,
        "its address holds a user, a password or a query, which may be a secret",
        "send it as a header of the agent: docs/agents.md#headers",
    );
    Some(bare(address.as_str()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("http://models:1/v1/", Some("http://models:1/v1"), false)]
    #[case::anthropic("http://claude:1/v1/", Some("http://claude:1"), false)]
    #[case::anthropic_with_a_query("http://claude:1/v1?key=secret-word", Some("http://claude:1"), true)]
    #[case("https://ann:secret-word@models/v1/", Some("https://models/v1"), true)]
    #[case("https://secret-word@models", Some("https://models"), true)]
    #[case("https://models/v1?key=secret-word", Some("https://models/v1"), true)]
    #[case("models/v1", None, false)]
    fn an_address_is_written_without_secrets(
        #[case] url: &str,
        #[case] expected: Option<&str>,
        #[case] is_noted: bool,
    ) {
        let mut notes = Notes::new(&[]);

        let api = if url.contains("claude") { Api::Messages } else { Api::ChatCompletions };
        assert_eq!(address(url, api, "models.main", &mut notes).as_deref(), expected);

        let noted = notes.lines();
        assert_eq!((noted.contains("models.main"), noted.contains("secret-word")), (is_noted, false), "{noted}");
    }
}
