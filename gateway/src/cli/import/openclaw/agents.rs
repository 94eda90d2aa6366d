//! Agents: of each its model, and who is answered by which.
//!
//! Sources, in the repository openclaw/openclaw: `src/config/types.agents.ts`, `src/config/types.models.ts`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::secrets::Secrets;
use crate::{
    cli::import::{
        draft::{Draft, Names},
        notes::Notes,
        servers::{self, Api, Model},
        table::Table,
        variables::is_variable,
    },
    console::secret::SecretLocation,
};

/// The agents, by their ids there.
pub(super) struct Agents {
    names: BTreeMap<String, String>,
    /// Our name of the default agent.
    default: String,
}

impl Agents {
    /// Adds a section for each agent.
    pub(super) fn read(root: &mut Table, secrets: &Secrets<'_>, draft: &mut Draft, notes: &mut Notes) -> Self {
        let providers = Providers::read(root, notes);
        // `agent` is the older name of `agents.defaults`.
        let of_all = root.enter("agents").and_then(|agents| agents.enter("defaults")).and_then(model);
        let of_all = of_all.or_else(|| root.enter("agent").and_then(model));
        let mut listed = root.enter("agents").map(|agents| agents.tables("list")).unwrap_or_default();
        if listed.is_empty() && of_all.is_none() {
            return Self { names: BTreeMap::new(), default: String::new() };
        }
        if listed.is_empty() {
            listed.push((String::new(), Table::new("agents.defaults", serde_json::Map::new())));
        }
        let (mut names, mut taken, mut default) = (BTreeMap::new(), Names::default(), None);
        for (_, mut agent) in listed {
            let id = agent.text("id").unwrap_or_else(|| "main".to_owned());
            let name = taken.unused(&id, "agent");
            if agent.flag("default") == Some(true) {
                default.get_or_insert_with(|| name.clone());
            }
            let called = agent.text("name");
            let key = agent.path("model");
            let chosen = model(&mut agent).or_else(|| of_all.clone());
            let mut block = providers.model(key, chosen, &name, secrets).block(&name, notes);
            if let Some(called) = called {
                block.remark(format!("{called}."));
            }
            draft.blocks.push(block);
            names.insert(id, name);
            agent.note_rest(notes);
        }
        let default = default.or_else(|| names.get("main").cloned()).or_else(|| names.values().next().cloned());
        Self { names, default: default.unwrap_or_default() }
    }

    /// The default agent, if there are several from which one must be chosen.
    pub(super) fn default_agent(&self, draft: &Draft) -> Option<String> {
        let used = draft.used("agents");
        if used.len() < 2 {
            return None;
        }
        used.iter().find(|name| **name == self.default).or(used.first()).map(|name| (*name).to_owned())
    }

    /// Says of channels and groups which agent answers there. Of several bindings for one the first counts, as there.
    pub(super) fn bind(&self, root: &mut Table, draft: &mut Draft, notes: &mut Notes) {
        for (_, mut binding) in root.tables("bindings") {
            let key = binding.path("match");
            let agent = binding.text("agentId").and_then(|id| self.names.get(&id).cloned());
            let agent = agent.filter(|name| draft.used("agents").contains(&name.as_str()));
            let bound = agent.and_then(|agent| {
                let matched = binding.enter("match")?;
                let platform = matched.text("channel")?;
                let account = draft.account(&platform, &matched.text("accountId").unwrap_or_default());
                let peer = matched.enter("peer").map(|peer| (peer.text("kind"), peer.text("id")));
                let is_simple = matched.rest().is_empty();
                let block = draft.channel(&platform, &account).filter(|_| is_simple)?;
                match peer {
                    None => block.set("agent", agent),
                    Some((Some(kind), Some(id))) if matches!(&*kind, "group" | "channel") => {
                        block.set_below(&["groups", &id], "agent", agent);
                    }
                    Some(_) => return None,
                }
                Some(())
            });
            if bound.is_none() {
                notes.add(
                    &key,
                    "could not be taken over",
                    "[[routing.rules]] with the conversation and the agent: docs/routing.md",
                );
            }
        }
    }
}

/// `provider/model`.
fn model(table: &mut Table) -> Option<String> {
    match table.enter("model") {
        Some(model) => model.text("primary"),
        None => table.text("model"),
    }
}

/// The model servers that are configured.
struct Providers(BTreeMap<String, Provider>);

struct Provider {
    base_url: Option<String>,
    api: Option<String>,
    api_key: Option<Value>,
}

impl Providers {
    fn read(root: &mut Table, notes: &mut Notes) -> Self {
        let tables = root.enter("models").map(|models| models.tables("providers")).unwrap_or_default();
        let providers = tables.into_iter().map(|(name, mut table)| {
            let (base_url, api, api_key) = (table.text("baseUrl"), table.text("api"), table.take("apiKey"));
            // What is known of its models concerns the agent that called them.
            table.take("models");
            table.note_rest(notes);
            (name, Provider { base_url, api, api_key })
        });
        Self(providers.collect())
    }

    /// The model that `chosen` names, for our agent `name`.
    fn model(&self, key: String, chosen: Option<String>, name: &str, secrets: &Secrets<'_>) -> Model {
        let Some((provider, model)) = chosen.as_deref().and_then(|chosen| chosen.split_once('/')) else {
            let obstacle = Some("the model is not written as provider/model".to_owned());
            let api = Api::default();
            return Model { key, name: chosen, base_url: None, api, api_key: None, obstacle };
        };
        let (known, configured) = (servers::find(provider), self.0.get(provider));
        let file = format!("agent-{name}-key");
        let (mut obstacle, mut base_url) = (None, None);
        let mut speaks = known.map_or(Api::default(), |known| known.api);
        let mut api_key = None;
        if let Some(Provider { base_url: url, api, api_key: given }) = configured {
            match api.as_deref() {
                None => base_url = url.clone().or(base_url),
                Some(api @ ("openai-completions" | "openai-responses" | "anthropic-messages")) => {
                    base_url = url.clone().or(base_url);
                    speaks = match api {
                        "openai-responses" => Api::Responses,
                        "anthropic-messages" => Api::Messages,
                        _ => Api::ChatCompletions,
                    };
                }
                Some("ollama") => {
                    base_url = url.as_deref().map(with_version).or(base_url);
                    speaks = Api::ChatCompletions;
                }
                Some(_) if known.is_some() => {}
                Some(api) => {
                    base_url.clone_from(url);
                    obstacle = Some(format!(
                        "its server speaks {api}, and only openai-completions, openai-responses and anthropic-messages \
                         are taken over"
                    ));
                }
            }
            match given.clone().map(|value| key_location(value, &file, secrets)) {
                None => {}
                Some(Ok(location)) => api_key = Some(location),
                Some(Err(why)) => obstacle = obstacle.or(Some(format!("its key {why}"))),
            }
        }
        let base_url = base_url.or_else(|| known.map(|known| known.base_url(speaks)));
        if configured.is_none_or(|configured| configured.api_key.is_none()) {
            api_key = known.and_then(|known| {
                let set = known.keys.iter().find(|name| secrets.variables.get(name).is_some());
                Some(secrets.variables.locate(set.or(known.keys.first())?, secrets.data_dir.join(&file)))
            });
        }
        Model { key, name: Some(model.to_owned()), base_url, api: speaks, api_key, obstacle }
    }
}

/// OpenClaw takes an upper-case text for the name of a variable.
fn key_location(value: Value, file: &str, secrets: &Secrets<'_>) -> Result<SecretLocation, String> {
    match value {
        Value::String(name) if is_variable(&name) && name.contains('_') => {
            Ok(secrets.variables.locate(&name, secrets.data_dir.join(file)))
        }
        value => secrets.locate(value, file),
    }
}

/// Ollama's own API has no version in its address, and its Chat Completions API has one.
fn with_version(base_url: &str) -> String {
    let base_url = base_url.trim_end_matches('/');
    if base_url.ends_with("/v1") { base_url.to_owned() } else { format!("{base_url}/v1") }
}
