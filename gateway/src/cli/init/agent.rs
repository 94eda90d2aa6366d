//! Which agent answers: the questions, the trial, and its section.

use std::fmt::Write as _;

use anyhow::Context;
use rejoinder_agents::{FoundServer, Origin, ServerCandidates, find_local};
use rejoinder_core::AgentError;
use reqwest::Client;
use secrecy::SecretString;
use url::Url;

use crate::{
    client::{self, CHECK_TIMEOUT},
    console::{
        ask::Ask,
        failure::Failure,
        output::{capital, printable},
        secret::variable,
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

/// The chosen agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AgentChoice {
    FrontDesk,
    OpenAi { base_url: Url, model: String, api_key_env: Option<String> },
}

impl AgentChoice {
    /// Its section, as TOML.
    pub(super) fn section(&self) -> Result<String, Failure> {
        let Self::OpenAi { base_url, model, api_key_env } = self else { return Ok(NO_AGENT.to_owned()) };
        let mut agent = format!(
            "[agents.main]\nkind = \"openai\"\nbase_url = {}\nmodel = {}\n",
            toml_text(base_url.as_str().trim_end_matches('/'))?,
            toml_text(model)?
        );
        if let Some(name) = api_key_env {
            let _ = writeln!(agent, "api_key = {{ env = {} }}", toml_text(name)?);
        }
        Ok(agent)
    }

    /// What `init` prints about it at the end.
    pub(super) fn closing_text(&self) -> String {
        let Self::OpenAi { base_url, model, api_key_env } = self else {
            return "The built-in front desk answers for now, without a model. The file explains how to connect an agent.\n"
                .to_owned();
        };
        let mut text = format!("The agent `main` is {model} at {base_url}.\n");
        if let Some(name) = api_key_env
            && variable(name).is_none()
        {
            let _ = writeln!(text, "Set {name} to its key before you start.");
        }
        text
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

/// The choice without asking: the first model of the first server that lists any, else the front desk.
pub(super) fn first_with_model(found: &[FoundServer]) -> AgentChoice {
    let with_model = found.iter().find_map(|found| Some((found, found.models.first()?)));
    with_model.map_or(AgentChoice::FrontDesk, |(found, model)| choice(found, model.clone()))
}

fn choice(found: &FoundServer, model: String) -> AgentChoice {
    let has_key = variable(KEY_VARIABLE).is_some();
    let api_key_env = (found.origin == Origin::Environment && has_key).then(|| KEY_VARIABLE.to_owned());
    AgentChoice::OpenAi { base_url: found.base_url.clone(), model, api_key_env }
}

/// Asks for the agent on a terminal.
pub(super) struct Interview<'a> {
    pub(super) found: &'a [FoundServer],
    pub(super) http: &'a Client,
}

impl Interview<'_> {
    /// Asks until an agent answers, or the operator goes on without its answer.
    pub(super) async fn conduct(&self, terminal: &mut dyn Ask) -> Result<AgentChoice, Failure> {
        loop {
            if let Some(choice) = self.choose(terminal).await?
                && self.try_out(&choice, terminal).await?
            {
                return Ok(choice);
            }
        }
    }

    /// `None`: the operator wants to choose again. An empty answer takes the first server that was found, else the front desk.
    async fn choose(&self, terminal: &mut dyn Ask) -> Result<Option<AgentChoice>, Failure> {
        let mut options: Vec<String> = self.found.iter().map(describe).collect();
        options.push("no agent yet: the built-in front desk answers".to_owned());
        options.push("another server with the Chat Completions API (OpenAI-compatible)".to_owned());
        let picked = terminal.pick("Which agent should answer?", &options)?;
        if let Some(found) = self.found.get(picked) {
            let model = ask_model(&found.models, terminal)?;
            return Ok(model.map(|model| choice(found, model)));
        }
        if picked == self.found.len() { Ok(Some(AgentChoice::FrontDesk)) } else { self.ask_server(terminal).await }
    }

    async fn ask_server(&self, terminal: &mut dyn Ask) -> Result<Option<AgentChoice>, Failure> {
        let Some(base_url) = ask_base_url(terminal)? else { return Ok(None) };
        let name = terminal.line_or_nothing("Which environment variable holds its API key? (empty: none needed)")?;
        let api_key_env = Some(name).filter(|name| !name.is_empty());
        let key = api_key_env.as_deref().and_then(variable);
        let listing = rejoinder_agents::list_models(self.http, &base_url, key.as_ref());
        // Why there is no list is said when the agent is tried.
        let models = tokio::time::timeout(CHECK_TIMEOUT, listing).await.ok().and_then(Result::ok).unwrap_or_default();
        let model = ask_model(&models, terminal)?;
        Ok(model.map(|model| AgentChoice::OpenAi { base_url, model, api_key_env }))
    }

    /// Sends the agent a short question. Returns whether the choice stays: because it answers, or because the operator says so.
    async fn try_out(&self, choice: &AgentChoice, terminal: &mut dyn Ask) -> Result<bool, Failure> {
        let AgentChoice::OpenAi { base_url, model, api_key_env } = choice else { return Ok(true) };
        let key = api_key_env.as_deref().map(|name| (name, variable(name)));
        if let Some((name, None)) = key {
            terminal.say(&format!("{name} is not set here, so the agent was not tried."))?;
            return Ok(true);
        }
        let key = key.and_then(|(_, key)| key);
        loop {
            terminal.say("Trying it (up to a minute, if the server has to load the model) …")?;
            let error = match rejoinder_agents::say_hello(self.http, base_url, key.as_ref(), model).await {
                Ok(answer) => {
                    terminal.say(&format!("It answers: {}", shown(&answer)))?;
                    return Ok(true);
                }
                Err(error) => error,
            };
            let options = ["try again", "choose another server or model", "write it anyway"].map(str::to_owned);
            let lacks_version = !matches!(error, AgentError::Unreachable(_)) && base_url.path() == "/";
            let hint = if lacks_version { " Does the address lack a /v1 at its end?" } else { "" };
            match terminal.pick(&format!("{}.{hint}", capital(&printable(&error.to_string()))), &options)? {
                0 => {}
                picked => return Ok(picked == 2),
            }
        }
    }
}

/// `None`: back to the first question.
fn ask_base_url(terminal: &mut dyn Ask) -> Result<Option<Url>, Failure> {
    loop {
        let answer =
            terminal.line_or_nothing("Where is its API? (for example http://127.0.0.1:8000/v1; empty: back)")?;
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
    };
    format!("{what}, {}", printable(found.base_url.as_str()))
}

/// An answer as one short line.
fn shown(answer: &str) -> String {
    let line = printable(&answer.split_whitespace().collect::<Vec<_>>().join(" "));
    if line.chars().count() > MAX_SHOWN { line.chars().take(MAX_SHOWN).chain(['…']).collect() } else { line }
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
        let choice = Interview { found, http: &http }.conduct(&mut script).await.unwrap();
        (choice, script.output)
    }

    #[tokio::test]
    async fn without_a_server_an_empty_answer_takes_the_front_desk() {
        assert_eq!(asked(&[], &[""]).await.0, AgentChoice::FrontDesk);
    }

    #[tokio::test]
    async fn an_empty_address_or_model_leads_back_to_the_first_question() {
        let nowhere = unused_url().await.to_string();

        assert_eq!(asked(&[], &["2", "", "2", "ftp://x", "", ""]).await.0, AgentChoice::FrontDesk);
        assert_eq!(asked(&[], &["2", &nowhere, "", "", ""]).await.0, AgentChoice::FrontDesk);
    }

    #[tokio::test]
    async fn the_agent_is_tried_and_a_wrong_model_can_be_changed() {
        let server = server().await;

        let (choice, said) = asked(&[], &["2", &server, "", "1", "2", "2", &server, "", "2"]).await;

        assert!(said.contains("The agent failed: 404 Not Found: the model does not exist."), "{said}");
        assert!(said.ends_with("It answers: Hello there.\n") && !said.contains("lack a /v1"), "{said}");
        assert!(matches!(choice, AgentChoice::OpenAi { model, .. } if model == "good"));
    }

    #[tokio::test]
    async fn an_address_without_its_version_is_noticed() {
        let server = server().await;

        let (_, said) = asked(&[], &["2", server.trim_end_matches("/v1"), "", "good", "3"]).await;

        assert!(said.contains("404 Not Found") && said.contains("Does the address lack a /v1 at its end?"), "{said}");
    }

    #[tokio::test]
    async fn a_server_that_is_found_is_tried_too() {
        let base_url = server().await.parse().unwrap();
        let found = FoundServer { origin: Origin::Ollama, base_url, models: vec!["good".to_owned()] };

        let (_, said) = asked(&[found], &["", ""]).await;

        assert!(said.contains("It answers: Hello there."), "{said}");
    }

    #[tokio::test]
    async fn a_dead_server_is_said_and_written_only_when_the_operator_goes_on() {
        let nowhere = unused_url().await.to_string();

        let (choice, said) = asked(&[], &["2", &nowhere, "", "m", "", "3"]).await;

        assert_eq!(said.matches("The agent cannot be reached").count(), 2, "{said}");
        assert!(matches!(choice, AgentChoice::OpenAi { model, .. } if model == "m"));
    }

    #[tokio::test]
    async fn without_its_key_an_agent_is_not_tried() {
        let (_, said) = asked(&[], &["2", &server().await, "REJOINDER_NO_SUCH_KEY", "2"]).await;

        assert!(said.ends_with("REJOINDER_NO_SUCH_KEY is not set here, so the agent was not tried.\n"), "{said}");
    }

    #[test]
    fn the_first_server_with_a_model_is_taken_without_asking() {
        let found = |models: &[&str]| FoundServer {
            origin: Origin::Ollama,
            base_url: "http://127.0.0.1:11434/v1".parse().unwrap(),
            models: models.iter().map(ToString::to_string).collect(),
        };

        assert_eq!(first_with_model(&[]), AgentChoice::FrontDesk);
        assert_eq!(first_with_model(&[found(&[])]), AgentChoice::FrontDesk);
        let AgentChoice::OpenAi { model, .. } = first_with_model(&[found(&[]), found(&["one", "two"])]) else {
            panic!()
        };
        assert_eq!(model, "one");
    }
}
