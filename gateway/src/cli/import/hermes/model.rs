//! The model of the agent.
//!
//! Source: NousResearch/hermes-agent, `cli-config.yaml.example` ("Model Configuration").

use serde_json::Value;

use super::settings::Settings;
use crate::{
    cli::import::{
        draft::Block,
        notes::Notes,
        servers::{self, Api, Model},
        table::Table,
    },
    console::secret::SecretLocation,
};

/// The file in the data directory for a key that is written there.
const KEY_FILE: &str = "agent-main-key";

/// The section of the agent, if the configuration names a model.
pub(super) fn read(root: &mut Table, settings: &Settings<'_>, notes: &mut Notes) -> Option<Block> {
    let mut server = Server::default();
    let (mut name, mut provider) = (None, None);
    match root.enter("model") {
        Some(model) => {
            name = model.text("default").or(model.text("model"));
            provider = model.text("provider");
            server = Server::read(model, settings);
        }
        None => name = name.or(root.text("model")),
    }
    let provider = provider.unwrap_or_else(|| "auto".to_owned());
    let configured = configured(root, provider.strip_prefix("custom:").unwrap_or(&provider), settings);
    if name.is_none() && configured.is_none() && server.base_url.is_none() {
        return None;
    }
    let configured = configured.unwrap_or_default();
    let known = servers::find(&provider);
    // A server of one's own has no key of a known one.
    let is_known = server.base_url.is_none() && configured.base_url.is_none();
    let base_url = server.base_url.or(configured.base_url);
    let api = server.api.or(configured.api).or(known.map(|known| known.api)).unwrap_or_default();
    let known = known.filter(|known| is_known || base_url.as_deref().is_some_and(|url| known.is_at(url)));
    let api_key = server.api_key.or(configured.api_key).or_else(|| {
        let keys = known?.keys;
        let set = keys.iter().find(|name| settings.has(name));
        Some(settings.secret(set.or(keys.first())?, KEY_FILE))
    });
    let model = Model {
        key: "model".to_owned(),
        name: name.or(configured.model),
        base_url: base_url.or_else(|| known.map(|known| known.base_url(api))),
        api,
        api_key,
        obstacle: server.obstacle.or(configured.obstacle),
    };
    Some(model.block("main", notes))
}

#[derive(Default)]
struct Server {
    base_url: Option<String>,
    /// The API, if it is named.
    api: Option<Api>,
    api_key: Option<SecretLocation>,
    model: Option<String>,
    obstacle: Option<String>,
}

impl Server {
    fn read(table: &mut Table, settings: &Settings<'_>) -> Self {
        let base_url = table.text("base_url").or(table.text("api"));
        let written = table.take("api_key").and_then(|key| settings.written_secret(&key, KEY_FILE));
        let api_key = table.text("key_env").map(|name| settings.secret(&name, KEY_FILE)).or(written);
        let is_command = table.take("key_cmd").is_some();
        let mode = table.text("api_mode");
        let api = mode.as_deref().and_then(|mode| match mode {
            "chat_completions" => Some(Api::ChatCompletions),
            "codex_responses" => Some(Api::Responses),
            "anthropic_messages" => Some(Api::Messages),
            _ => None,
        });
        let obstacle = match mode.filter(|_| api.is_none()) {
            Some(mode) => Some(format!(
                "its server speaks {mode}, and only chat_completions, codex_responses and anthropic_messages are taken over"
            )),
            None if is_command => Some("its key is what a program prints, and none is run here".to_owned()),
            None => None,
        };
        Self { base_url, api, api_key, model: None, obstacle }
    }
}

/// The entry of `providers` or `custom_providers` with this name.
fn configured(root: &mut Table, provider: &str, settings: &Settings<'_>) -> Option<Server> {
    let is_named = root.enter("providers").is_some_and(|providers| providers.rest().contains_key(provider));
    if is_named {
        let table = root.enter("providers")?.enter(provider)?;
        let model = table.text("model").or(table.text("default_model"));
        return Some(Server { model, ..Server::read(table, settings) });
    }
    let listed = root.rest().get("custom_providers").and_then(Value::as_array)?;
    let is_it = |entry: &Value| entry.get("name").and_then(Value::as_str) == Some(provider);
    let entry = listed.iter().position(is_it)?;
    let (_, mut table) = root.tables("custom_providers").into_iter().nth(entry)?;
    let model = table.text("model");
    Some(Server { model, ..Server::read(&mut table, settings) })
}
