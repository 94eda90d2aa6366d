//! Which agent answers: the questions, the trial, and its section.

use std::{fmt::Write as _, path::Path};

use anyhow::{Context, anyhow};
use rejoinder_agents::{FoundServer, Origin, ServerCandidates, find_local};
use rejoinder_core::AgentError;
use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::programs::{FoundProgram, Program};
use crate::{
    client::{self, CHECK_TIMEOUT},
    console::{
        ask::Ask,
        failure::Failure,
        output::{capital, excerpt},
        secret::{SecretLocation, SecretRead, is_empty, variable},
        toml::toml_text,
    },
};

/// The variable from which many programs read the API key.
const KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// How many characters of an answer are shown.
const MAX_SHOWN: usize = 200;

/// Stands in the file while it names no agent.
pub(super) const NO_AGENT: &str = "\
# Only the built-in front desk answers so far. To connect an agent, uncomment and complete these lines:
#[agents.main]
#kind = \"openai\"
#base_url = \"http://127.0.0.1:11434/v1\"
#model = \"llama3.1\"
#api_key = { env = \"OPENAI_API_KEY\" }
";

/// The file in the data directory for a typed API key.
const KEY_FILE: &str = "agent-main-key";

#[derive(Debug)]
pub(super) enum AgentChoice {
    FrontDesk,
    OpenAi(Server),
    /// A program that speaks the Agent Client Protocol.
    Program(&'static Program),
}

/// A server with the Chat Completions API.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) base_url: Url,
    pub(super) model: String,
    pub(super) api_key: Option<SecretLocation>,
    /// Why it was not tried, unless it was.
    pub(super) not_checked: Option<String>,
}

impl AgentChoice {
    /// Its section, as TOML.
    pub(super) fn section(&self) -> Result<String, Failure> {
        let Server { base_url, model, api_key, .. } = match self {
            Self::FrontDesk => return Ok(NO_AGENT.to_owned()),
            Self::Program(program) => return program.section(),
            Self::OpenAi(server) => server,
        };
        let mut agent = format!(
            "[agents.main]\nkind = \"openai\"\nbase_url = {}\nmodel = {}\n",
            toml_text(base_url.as_str().trim_end_matches('/'))?,
            toml_text(model)?
        );
        if let Some(key) = api_key {
            let _ = writeln!(agent, "api_key = {}", key.reference()?);
        }
        Ok(agent)
    }

    /// What `init` prints about it at the end.
    pub(super) fn closing_text(&self) -> String {
        let Server { base_url, model, api_key, not_checked } = match self {
            Self::FrontDesk => {
                return "The built-in front desk answers for now, without a model. The file explains how to connect an agent.\n"
                    .to_owned();
            }
            Self::Program(program) => {
                let (name, command) = (program.name, program.command.join(" "));
                return format!(
                    "The agent `main` is {name}, started with `{command}`. It was not checked: `rejoinder doctor` starts it.\n"
                );
            }
            Self::OpenAi(server) => server,
        };
        let mut text = format!("The agent `main` is {model} at {base_url}.\n");
        if let Some(why) = not_checked {
            let _ = writeln!(text, "It was not checked: {why}.");
        }
        text.push_str(&api_key.as_ref().map(|key| key.advice("API key")).unwrap_or_default());
        text
    }

    /// As it is, without being tried.
    pub(super) fn unchecked(self) -> Self {
        match self {
            Self::OpenAi(server) => {
                Self::OpenAi(Server { not_checked: Some("--no-check was given".to_owned()), ..server })
            }
            other => other,
        }
    }

    /// Its API key, to be written to a file if it was typed.
    pub(super) fn secret(&self) -> Option<&SecretLocation> {
        match self {
            Self::FrontDesk | Self::Program(_) => None,
            Self::OpenAi(server) => server.api_key.as_ref(),
        }
    }

    /// Sends a server that was named by options a short question.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) async fn checked(self, http: &Client) -> Result<Self, Failure> {
        let Self::OpenAi(server) = self else { return Ok(self) };
        let not_checked = match server.say_hello(http).await? {
            Hello::Answered(_) => None,
            Hello::NotAsked(why) => Some(why),
            Hello::Failed(error) => {
                let hint = server.hint(&error);
                return Err(anyhow!(
                    "{error}.{hint} Nothing was written; with --no-check it is written without asking"
                )
                .into());
            }
        };
        Ok(Self::OpenAi(Server { not_checked, ..server }))
    }
}

/// What became of a short question.
enum Hello {
    Answered(String),
    /// There is no key to ask with. Holds the reason.
    NotAsked(String),
    Failed(AgentError),
}

impl Server {
    async fn say_hello(&self, http: &Client) -> Result<Hello, Failure> {
        let key = match self.api_key.as_ref().map(|key| key.read("API key")).transpose()? {
            None => None,
            Some(SecretRead::Secret(key)) => Some(key),
            Some(SecretRead::Missing(why)) => return Ok(Hello::NotAsked(why)),
        };
        Ok(match rejoinder_agents::say_hello(http, &self.base_url, key.as_ref(), &self.model).await {
            Ok(answer) => Hello::Answered(answer),
            Err(error) => Hello::Failed(error),
        })
    }

    /// What may be wrong with its address; empty or a sentence with a space before it.
    fn hint(&self, error: &AgentError) -> &'static str {
        let lacks_version = !matches!(error, AgentError::Unreachable(_)) && self.base_url.path() == "/";
        if lacks_version { " Does the address lack a /v1 at its end?" } else { "" }
    }
}

/// Looks for agents in the usual places. Takes about a second.
pub(super) async fn find_agents(http: &Client) -> Result<Vec<FoundServer>, Failure> {
    let value = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let environment = value("OPENAI_BASE_URL")
        .map(|url| url.trim().parse::<Url>().with_context(|| format!("OPENAI_BASE_URL is not a URL: {url}")))
        .transpose()?;
    let candidates = ServerCandidates {
        environment,
        api_key: value(KEY_VARIABLE).map(SecretString::from),
        ..ServerCandidates::default()
    };
    Ok(find_local(http, &candidates).await)
}

pub(super) fn http_client() -> Result<Client, Failure> {
    Ok(client::http_client().context("cannot look for agents")?)
}

/// The choice without asking: the first model of the first server that lists any, else the front desk. A program that works on this
/// machine is only chosen by somebody.
pub(super) fn first_with_model(found: &[FoundServer]) -> AgentChoice {
    let with_model = found.iter().find_map(|found| Some((found, found.models.first()?)));
    with_model.map_or(AgentChoice::FrontDesk, |(found, model)| choice(found, model.clone()))
}

fn choice(found: &FoundServer, model: String) -> AgentChoice {
    let has_key = variable(KEY_VARIABLE).is_some();
    let is_for_key = found.origin == Origin::Environment && has_key;
    let api_key = is_for_key.then(|| SecretLocation::Variable(KEY_VARIABLE.to_owned()));
    AgentChoice::OpenAi(Server { base_url: found.base_url.clone(), model, api_key, not_checked: None })
}

/// Asks for the agent on a terminal.
pub(super) struct Interview<'a> {
    pub(super) found: &'a [FoundServer],
    pub(super) programs: &'a [FoundProgram],
    pub(super) http: &'a Client,
    /// For a typed API key.
    pub(super) data_dir: &'a Path,
}

impl Interview<'_> {
    /// Asks until an agent answers, or the operator goes on without its answer.
    pub(super) async fn conduct(&self, terminal: &mut dyn Ask) -> Result<AgentChoice, Failure> {
        loop {
            match self.choose(terminal).await? {
                Some(AgentChoice::OpenAi(server)) => {
                    if let Some(server) = self.try_out(server, terminal).await? {
                        return Ok(AgentChoice::OpenAi(server));
                    }
                }
                Some(choice) => return Ok(choice),
                None => {}
            }
        }
    }

    /// `None`: the operator wants to choose again. An empty answer takes the first server that was found, else asks for one.
    async fn choose(&self, terminal: &mut dyn Ask) -> Result<Option<AgentChoice>, Failure> {
        let programs = self.programs.iter().map(FoundProgram::description);
        let mut options: Vec<String> = self.found.iter().map(describe).chain(programs).collect();
        let other = if self.found.is_empty() { "a" } else { "another" };
        options.push(format!("{other} server with the Chat Completions API (OpenAI-compatible)"));
        options.push("no agent yet: the built-in front desk answers".to_owned());
        let picked = terminal.pick("Which agent should answer?", &options)?;
        if let Some(found) = self.found.get(picked) {
            let model = ask_model(&found.models, terminal)?;
            return Ok(model.map(|model| choice(found, model)));
        }
        match self.programs.get(picked - self.found.len()) {
            Some(FoundProgram { program, missing: None }) => Ok(Some(AgentChoice::Program(program))),
            Some(FoundProgram { program, missing: Some(install) }) => {
                terminal
                    .say(&format!("Run `{install}` first: {} does not speak the protocol by itself.", program.name))?;
                Ok(None)
            }
            None if picked == options.len() - 2 => self.ask_server(terminal).await,
            None => Ok(Some(AgentChoice::FrontDesk)),
        }
    }

    async fn ask_server(&self, terminal: &mut dyn Ask) -> Result<Option<AgentChoice>, Failure> {
        let Some(base_url) = ask_base_url(terminal)? else { return Ok(None) };
        let api_key = self.ask_key(terminal)?;
        let key = match api_key.as_ref().map(|key| key.read("API key")).transpose()? {
            Some(SecretRead::Secret(key)) => Some(key),
            Some(SecretRead::Missing(_)) | None => None,
        };
        let listing = rejoinder_agents::list_models(self.http, &base_url, key.as_ref());
        // Why there is no list is said when the agent is tried.
        let models = tokio::time::timeout(CHECK_TIMEOUT, listing).await.ok().and_then(Result::ok).unwrap_or_default();
        let model = ask_model(&models, terminal)?;
        Ok(model.map(|model| AgentChoice::OpenAi(Server { base_url, model, api_key, not_checked: None })))
    }

    /// A key itself, or the variable that holds it; `None` if the server needs none.
    fn ask_key(&self, terminal: &mut dyn Ask) -> Result<Option<SecretLocation>, Failure> {
        let question = "Its API key (not shown; $NAME: the environment variable NAME holds it; empty: none needed):";
        let typed = terminal.secret_or_nothing(question)?;
        if is_empty(&typed) {
            return Ok(None);
        }
        Ok(Some(match typed.expose_secret().strip_prefix('$') {
            Some(name) => SecretLocation::Variable(name.trim_matches(['{', '}']).to_owned()),
            None => SecretLocation::Typed(typed.clone(), self.data_dir.join(KEY_FILE)),
        }))
    }

    /// Sends the server a short question. Returns it if it stays: because it answers, or because the operator says so.
    async fn try_out(&self, server: Server, terminal: &mut dyn Ask) -> Result<Option<Server>, Failure> {
        loop {
            terminal.say("Trying it (up to a minute, if the server has to load the model) …")?;
            let error = match server.say_hello(self.http).await? {
                Hello::Answered(answer) => {
                    terminal.say(&format!("It answers: {}", excerpt(&answer, MAX_SHOWN)))?;
                    return Ok(Some(server));
                }
                Hello::NotAsked(why) => return Ok(Some(Server { not_checked: Some(why), ..server })),
                Hello::Failed(error) => error,
            };
            let options = ["try again", "choose another server or model", "write it anyway"].map(str::to_owned);
            let (why, hint) = (capital(&error.to_string()), server.hint(&error));
            match terminal.pick(&format!("{why}.{hint}"), &options)? {
                0 => {}
                1 => return Ok(None),
                _ => return Ok(Some(Server { not_checked: Some("it did not answer".to_owned()), ..server })),
            }
        }
    }
}

/// `None`: back to the first question.
fn ask_base_url(terminal: &mut dyn Ask) -> Result<Option<Url>, Failure> {
    loop {
        let answer =
            terminal.line_or_nothing("Where is its API? (for example https://api.openai.com/v1; empty: back)")?;
        if answer.is_empty() {
            return Ok(None);
        }
        match answer.parse::<Url>() {
            Ok(url) if matches!(url.scheme(), "http" | "https") => return Ok(Some(url)),
            _ => terminal.say("That is not a URL that begins with http:// or https://.")?,
        }
    }
}

/// `None`: back to the first question.
fn ask_model(models: &[String], terminal: &mut dyn Ask) -> Result<Option<String>, Failure> {
    if !models.is_empty() {
        return Ok(Some(models[terminal.pick("Which model?", models)?].clone()));
    }
    Ok(Some(terminal.line_or_nothing("Which model? (empty: back)")?).filter(|model| !model.is_empty()))
}

fn describe(found: &FoundServer) -> String {
    let what = match found.origin {
        Origin::Environment => "the server at OPENAI_BASE_URL",
        Origin::Ollama => "Ollama on this machine",
        Origin::LmStudio => "LM Studio on this machine",
        Origin::LlamaCpp => "llama.cpp on this machine",
        Origin::Vllm => "vLLM on this machine",
    };
    format!("{what}, {}", found.base_url)
}

#[cfg(test)]
mod tests {
    use axum::{
        Json, Router,
        http::StatusCode,
        response::IntoResponse,
        routing::{get, post},
    };
    use serde_json::{Value, json};
    use tokio::net::TcpListener;

    use super::*;
    use crate::cli::{Script, unused_url};

    /// Starts a server that lists two models, of which one answers.
    async fn server() -> String {
        let complete = async |Json(request): Json<Value>| {
            if request["model"] != "good" {
                let error = json!({ "error": { "message": "the model does not exist" } });
                return (StatusCode::NOT_FOUND, Json(error)).into_response();
            }
            let message = json!({ "role": "assistant", "content": "Hello\nthere." });
            Json(json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] })).into_response()
        };
        let models = async || Json(json!({ "data": [{ "id": "bad" }, { "id": "good" }] }));
        let routes = Router::new().route("/v1/models", get(models)).route("/v1/chat/completions", post(complete));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        format!("http://{address}/v1")
    }

    /// Answers the questions, and returns the choice and what was said.
    async fn asked(found: &[FoundServer], answers: &[&str]) -> (AgentChoice, String) {
        let (http, mut script) = (http_client().unwrap(), Script::of(answers));
        let data_dir = Path::new("/data");
        let choice = Interview { found, programs: &[], http: &http, data_dir }.conduct(&mut script).await.unwrap();
        (choice, script.output)
    }

    fn server_of(choice: AgentChoice) -> Server {
        let AgentChoice::OpenAi(server) = choice else { panic!("{choice:?}") };
        server
    }

    #[tokio::test]
    async fn without_a_server_an_empty_answer_asks_for_one_and_then_leads_back() {
        let nowhere = unused_url().await.to_string();

        let (choice, said) = asked(&[], &["", "", "2"]).await;
        assert!(matches!(choice, AgentChoice::FrontDesk), "{said}");
        assert_eq!(said.matches("Which agent should answer?").count(), 2, "{said}");
        assert!(matches!(asked(&[], &["1", "ftp://x", "", "2"]).await.0, AgentChoice::FrontDesk));
        assert!(matches!(asked(&[], &["1", &nowhere, "", "", "2"]).await.0, AgentChoice::FrontDesk));
    }

    #[tokio::test]
    async fn a_program_is_chosen_once_its_adapter_is_there() {
        let programs = crate::cli::init::programs::installed(|file| matches!(file, "codex" | "opencode"));
        let (http, mut script) = (http_client().unwrap(), Script::of(&["1", "2"]));
        let interview = Interview { found: &[], programs: &programs, http: &http, data_dir: Path::new("/data") };

        let choice = interview.conduct(&mut script).await.unwrap();

        assert!(
            script.output.contains("Run `npm install -g @agentclientprotocol/codex-acp` first"),
            "{}",
            script.output
        );
        let section = choice.section().unwrap();
        assert!(section.contains("command = [\"opencode\", \"acp\"]"), "{section}");
        assert!(choice.closing_text().contains("OpenCode"), "{}", choice.closing_text());
    }

    #[tokio::test]
    async fn the_agent_is_tried_and_a_wrong_model_can_be_changed() {
        let server = server().await;

        let (choice, said) = asked(&[], &["1", &server, "", "1", "2", "1", &server, "", "2"]).await;

        assert!(said.contains("The agent failed: 404 Not Found: the model does not exist."), "{said}");
        assert!(said.ends_with("It answers: Hello there.\n") && !said.contains("lack a /v1"), "{said}");
        let server = server_of(choice);
        assert_eq!((&*server.model, server.not_checked), ("good", None));
    }

    #[tokio::test]
    async fn an_address_without_its_version_is_noticed() {
        let server = server().await;

        let (_, said) = asked(&[], &["1", server.trim_end_matches("/v1"), "", "good", "3"]).await;

        assert!(said.contains("404 Not Found") && said.contains("Does the address lack a /v1 at its end?"), "{said}");
    }

    #[tokio::test]
    async fn a_server_that_is_found_is_tried_too() {
        let base_url = server().await.parse().unwrap();
        let found = FoundServer { origin: Origin::LmStudio, base_url, models: vec!["good".to_owned()] };

        let (_, said) = asked(&[found], &["", ""]).await;

        assert!(said.contains("LM Studio on this machine") && said.contains("It answers: Hello there."), "{said}");
    }

    #[tokio::test]
    async fn a_dead_server_is_said_and_written_only_when_the_operator_goes_on() {
        let nowhere = unused_url().await.to_string();

        let (choice, said) = asked(&[], &["1", &nowhere, "", "m", "", "3"]).await;

        assert_eq!(said.matches("The agent cannot be reached").count(), 2, "{said}");
        assert!(choice.closing_text().contains("It was not checked: it did not answer."), "{}", choice.closing_text());
        assert_eq!(server_of(choice).model, "m");
    }

    #[tokio::test]
    async fn without_its_key_an_agent_is_not_tried() {
        let (choice, _) = asked(&[], &["1", &server().await, "$REJOINDER_NO_SUCH_KEY", "2"]).await;

        let text = choice.closing_text();
        assert!(text.contains("It was not checked: REJOINDER_NO_SUCH_KEY is not set here."), "{text}");
        assert!(choice.section().unwrap().contains("api_key = { env = \"REJOINDER_NO_SUCH_KEY\" }"));
    }

    #[tokio::test]
    async fn a_pasted_key_is_kept_in_a_file() {
        let (choice, said) = asked(&[], &["1", &server().await, "sk-pasted", "2"]).await;

        assert!(said.contains("It answers: Hello there."), "{said}");
        let section = choice.section().unwrap();
        assert!(
            section.contains("api_key = { file = \"/data/agent-main-key\" }") && !section.contains("sk-pasted"),
            "{section}"
        );
        assert!(choice.closing_text().contains("/data/agent-main-key"), "{}", choice.closing_text());
    }

    #[tokio::test]
    async fn a_server_that_options_name_is_tried() {
        let base_url: Url = server().await.parse().unwrap();
        let checked = async |model: &str, key: Option<&str>| {
            let api_key = key.map(|name| SecretLocation::Variable(name.to_owned()));
            let server = Server { base_url: base_url.clone(), model: model.to_owned(), api_key, not_checked: None };
            AgentChoice::OpenAi(server).checked(&http_client().unwrap()).await
        };

        assert_eq!(server_of(checked("good", None).await.unwrap()).not_checked, None);
        let error = checked("bad", None).await.unwrap_err().to_string();
        assert!(error.contains("the model does not exist") && error.contains("--no-check"), "{error}");
        let unset = server_of(checked("good", Some("REJOINDER_NO_SUCH_KEY")).await.unwrap());
        assert_eq!(unset.not_checked.as_deref(), Some("REJOINDER_NO_SUCH_KEY is not set here"));
    }

    #[test]
    fn the_first_server_with_a_model_is_taken_without_asking() {
        let found = |models: &[&str]| FoundServer {
            origin: Origin::Ollama,
            base_url: "http://127.0.0.1:11434/v1".parse().unwrap(),
            models: models.iter().map(ToString::to_string).collect(),
        };

        assert!(matches!(first_with_model(&[]), AgentChoice::FrontDesk));
        assert!(matches!(first_with_model(&[found(&[])]), AgentChoice::FrontDesk));
        assert_eq!(server_of(first_with_model(&[found(&[]), found(&["one", "two"])])).model, "one");
    }
}
