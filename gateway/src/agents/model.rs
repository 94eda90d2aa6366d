//! An agent behind a server with a model, in each of the protocols.

use std::{
    marker::PhantomData,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use rejoinder_agents::{
    AddedToPrompt, AnthropicSection, McpServerSection, ModelSection, ModelStatus, ModelsError, OpenAiSection,
};
use rejoinder_config::{Agent, AgentKind};
use rejoinder_core::{AgentName, AgentTurn};
use reqwest::Client;

use super::factory::{AgentFactory, missing_program, role, section};
use crate::{
    built_agent::BuiltAgent,
    client::{CHECK_TIMEOUT, is_readable_on_the_way},
    console::finding::Finding,
    materials::{Materials, WiringError},
    mcp_servers::{self, FoundServer, Tried},
};

/// How many of the server's models a finding names.
const MAX_LISTED: usize = 10;

/// A kind whose section is `S`.
pub(super) struct ModelKind<S> {
    /// What may be wrong with `base_url` if the server does not list its models: the rest of a question about it.
    doubt: &'static str,
    section: PhantomData<fn() -> S>,
}

/// A server with the Chat Completions API or the Responses API.
pub(super) static OPENAI: ModelKind<OpenAiSection> = ModelKind { doubt: "lack a /v1 at its end", section: PhantomData };

/// A server with Anthropic's Messages API.
pub(super) static ANTHROPIC: ModelKind<AnthropicSection> =
    ModelKind { doubt: "end in /v1, which it must not", section: PhantomData };

#[async_trait]
impl<S: ModelSection> AgentFactory for ModelKind<S> {
    fn section(&self) -> AgentKind {
        AgentKind::of::<S>()
    }

    fn build(&self, name: &AgentName, agent: &Agent, materials: &Materials<'_>) -> Result<BuiltAgent, WiringError> {
        let (section, http) = (section::<S>(agent), &materials.http);
        let wrong = |reason| WiringError::Agent { name: Arc::clone(name), reason };
        let tools = mcp_servers::source(name, section.mcp(), http).map_err(wrong)?;
        let agent = section.agent(Arc::clone(name), http.clone(), tools.clone());
        let agent = agent.map_err(|error| wrong(error.to_string()))?;
        Ok(BuiltAgent { tools, ..agent.into() })
    }

    fn counts_requests(&self) -> bool {
        true
    }

    fn added_to_prompt(&self, agent: &Agent, turn: &AgentTurn) -> Option<AddedToPrompt> {
        let server = section::<S>(agent);
        Some(rejoinder_agents::added_to_prompt(turn, server.leaves_out(), server.offers_tools()))
    }

    async fn mcp_servers(&self, agent: &Agent, http: &Client) -> Vec<Tried> {
        mcp_servers::probe(section::<S>(agent).mcp(), http).await
    }

    fn remarks_on(&self, name: &str, agent: &Agent) -> Vec<String> {
        let server = section::<S>(agent);
        let secret = if server.api_key().is_some() { "the key" } else { "the headers" };
        let own = (server.sends_secrets() && is_readable_on_the_way(server.base_url())).then(|| {
            format!("agents.{name}.base_url begins with http://: {secret} and all messages can be read on the way.")
        });
        let of_server = |(server, section): (&String, &McpServerSection)| {
            let sends_secrets = !section.headers.is_empty();
            (sends_secrets && section.url.as_ref().is_some_and(is_readable_on_the_way)).then(|| {
                format!(
                    "agents.{name}.mcp.{server}.url begins with http://: the headers and all calls can be read on the \
                     way."
                )
            })
        };
        let missing = server.mcp().iter().filter_map(|(server, section)| {
            let key = format!("mcp.{server}.command");
            let missing = missing_program(section.program()?, agent, &key)?;
            Some(format!(
                "agents.{name} has no tools of {server}: {missing}. Install it, or correct agents.{name}.{key}."
            ))
        });
        own.into_iter().chain(server.mcp().iter().filter_map(of_server)).chain(missing).collect()
    }

    async fn check(&self, name: &str, agent: &Agent, is_default: bool, http: &Client) -> Vec<Finding> {
        let (about, server) = (format!("agents.{name}"), section::<S>(agent));
        let role = role(is_default);
        let url = rejoinder_agents::redacted_url(server.base_url());
        let who = format!("{} at {}{role}", server.model(), url.as_str().trim_end_matches('/'));
        let asked = Instant::now();
        let in_time = tokio::time::timeout(CHECK_TIMEOUT, server.check_model(http)).await;
        let took = asked.elapsed();
        let late = || Err(ModelsError::Unreachable("it does not answer in time".to_owned()));
        let has_key = server.api_key().is_some();
        let mut findings = vec![finding(about, &who, has_key, self.doubt, in_time.unwrap_or_else(|_| late()), took)];
        let servers = self.mcp_servers(agent, http).await;
        findings
            .extend(servers.into_iter().map(|(server, found)| of_server(format!("agents.{name}.mcp.{server}"), found)));
        findings
    }
}

/// What a check found. `doubt`: what may be wrong with `base_url` if the server does not list its models. `took`: how long the list took.
fn finding(
    about: String,
    who: &str,
    has_key: bool,
    doubt: &str,
    status: Result<ModelStatus, ModelsError>,
    took: Duration,
) -> Finding {
    let (model, key) = (format!("{about}.model"), format!("{about}.api_key"));
    let base_url = format!("{about}.base_url");
    match status {
        Ok(ModelStatus::Available) => {
            Finding::ok(about, format!("{who}: it lists the model after {:.1} s", took.as_secs_f64()))
        }
        Ok(ModelStatus::Missing(listed)) => Finding::wrong(about, format!("{who}: the server has no such model"))
            .with_advice(format!("Set {model} to one that it has: {}.", list_models(&listed))),
        Ok(ModelStatus::Unlisted(listed)) => {
            Finding::warning(about, format!("{who}: the server does not list this model")).with_advice(format!(
                "If it accepts only listed models, set {model} to one of them: {}.",
                list_models(&listed)
            ))
        }
        Err(error @ ModelsError::Unreachable(_)) => Finding::wrong(about, format!("{who}: {error}"))
            .with_advice(format!("Start the server, or correct its address in {base_url}.")),
        Err(ModelsError::KeyRefused(status)) if !has_key => {
            Finding::wrong(about, format!("{who}: it needs a key ({status})")).with_advice(format!("Set {key}."))
        }
        Err(error @ ModelsError::KeyRefused(_)) => {
            Finding::wrong(about, format!("{who}: {error}")).with_advice(format!("Set {key} to a valid key."))
        }
        Err(error @ ModelsError::Failing(_)) => Finding::wrong(about, format!("{who}: {error}"))
            .with_advice("See the server's log, and try again in a moment."),
        Err(error @ ModelsError::NoList(_)) => Finding::warning(about, format!("{who}: {error}"))
            .with_advice(format!("Does {base_url} {doubt}? If turns are answered, ignore this.")),
    }
}

/// What a check of an MCP server found.
fn of_server(about: String, found: Result<FoundServer, String>) -> Finding {
    match found {
        Ok(FoundServer { name, took, tools, left_out }) => {
            let name = name.unwrap_or_else(|| "a server without a name".to_owned());
            let what = format!("{name} answers after {:.1} s: {} tools", took.as_secs_f64(), tools.len());
            if left_out.is_empty() {
                return Finding::ok(about, what);
            }
            Finding::warning(about, format!("{what}; not offered: {}", left_out.join(", ")))
                .with_advice("Name the tools that are to be offered in `tools`.")
        }
        Err(why) => Finding::wrong(about.clone(), why).with_advice(format!(
            "Start the server, or correct {about}. Until then the model does not have its tools."
        )),
    }
}

fn list_models(models: &[String]) -> String {
    if models.is_empty() {
        return "it lists none".to_owned();
    }
    let names: Vec<_> = models.iter().take(MAX_LISTED).map(String::as_str).collect();
    let more = models.len() - names.len();
    if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_of_models_is_cut() {
        let models: Vec<_> = (1..=12).map(|number| format!("m{number}")).collect();

        assert_eq!(list_models(&models), "m1, m2, m3, m4, m5, m6, m7, m8, m9, m10 and 2 more");
        assert_eq!(list_models(&models[..2]), "m1, m2");
        assert_eq!(list_models(&[]), "it lists none");
    }
}
