//! A section of a kind with a model behind HTTP, as the gateway uses it.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use rejoinder_config::{AgentSection, Secret};
use rejoinder_core::{AgentName, AgentRuntime};
use url::Url;

use super::{
    listed::{ModelStatus, ModelsError, check_agent},
    protocol::Protocol,
    server::{Model, SettingsError},
};
use crate::{mcp_server::McpServerSection, piece::PieceName, section::ModelSettings, tools::ToolSource};

/// Where the further tools of an agent come from, if it has any.
pub type MoreTools = Option<Arc<dyn ToolSource>>;

/// The section of an agent behind a server with a model.
#[async_trait]
pub trait ModelSection: AgentSection {
    fn base_url(&self) -> &Url;

    fn model(&self) -> &str;

    fn api_key(&self) -> Option<&Secret>;

    /// Whether the server gets a key or further headers.
    fn sends_secrets(&self) -> bool;

    /// The servers whose tools it is offered as well.
    fn mcp(&self) -> &BTreeMap<String, McpServerSection>;

    /// Whether the model is offered tools.
    fn offers_tools(&self) -> bool;

    /// The agent, with further tools. As [`Model::new`].
    ///
    /// # Errors
    /// When the settings are invalid.
    fn agent(
        &self,
        name: AgentName,
        http: reqwest::Client,
        tools: MoreTools,
    ) -> Result<Arc<dyn AgentRuntime>, SettingsError>;

    /// What of its own the gateway does not add to the system prompt.
    fn leaves_out(&self) -> &[PieceName];

    /// Asks the server whether it has the model, without running a turn.
    ///
    /// # Errors
    /// When the server does not list its models.
    async fn check_model(&self, http: &reqwest::Client) -> Result<ModelStatus, ModelsError>;
}

/// A section whose agents are asked by a protocol.
pub(crate) trait ModelKind: AgentSection + Protocol + Clone {
    /// [`ModelSection::agent`].
    fn build(
        &self,
        name: AgentName,
        http: reqwest::Client,
        tools: MoreTools,
    ) -> Result<Arc<dyn AgentRuntime>, SettingsError> {
        Ok(Arc::new(Model::new(name, self.clone(), http)?.with_more_tools(tools)))
    }
}

#[async_trait]
impl<P: ModelKind> ModelSection for P {
    fn base_url(&self) -> &Url {
        self.settings().base_url
    }

    fn model(&self) -> &str {
        self.settings().model
    }

    fn api_key(&self) -> Option<&Secret> {
        self.settings().api_key
    }

    fn sends_secrets(&self) -> bool {
        let ModelSettings { api_key, headers, .. } = self.settings();
        api_key.is_some() || !headers.is_empty()
    }

    fn mcp(&self) -> &BTreeMap<String, McpServerSection> {
        self.settings().mcp
    }

    fn offers_tools(&self) -> bool {
        self.settings().tools
    }

    fn leaves_out(&self) -> &[PieceName] {
        self.settings().leave_out
    }

    fn agent(
        &self,
        name: AgentName,
        http: reqwest::Client,
        tools: MoreTools,
    ) -> Result<Arc<dyn AgentRuntime>, SettingsError> {
        self.build(name, http, tools)
    }

    async fn check_model(&self, http: &reqwest::Client) -> Result<ModelStatus, ModelsError> {
        check_agent(http, self).await
    }
}
