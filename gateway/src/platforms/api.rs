//! The agents as models of an OpenAI-compatible API.

use std::sync::Arc;

use futures_util::FutureExt;
use rejoinder_completions::{
    ApiTexts, CompletionsAdapter, CompletionsSection, CompletionsSettings, Models, OfferedAgent, OperatorToken,
    OperatorTokens,
};
use rejoinder_config::{Config, PlatformSection};
use rejoinder_core::{ChannelAdapter, ChannelId, store::Role};
use utoipa::openapi::OpenApi;

use super::platform::{Built, ChannelNotice, Platform, RouteMaterials};
use crate::{
    callers::Caller,
    materials::{Materials, WiringError},
};

pub(super) struct Api;

impl Platform for Api {
    fn name(&self) -> &'static str {
        "APIs"
    }

    fn section(&self) -> PlatformSection {
        PlatformSection::of::<CompletionsSection>()
    }

    fn build(&self, materials: &Materials<'_>) -> Result<Built, WiringError> {
        let Config { server, guard, files, .. } = materials.config;
        let (mut apis, mut built) = (Vec::new(), Built::default());
        for (name, section) in materials.config.channels.of::<CompletionsSection>() {
            let token = section.token.as_ref();
            let token = token.map(|token| materials.tokens(token, &format!("api-{name}-token"))).transpose()?;
            let (token, token_source) = token.unzip();
            let channel = ChannelId::new(self.section().name, name);
            let language = section.common.language.unwrap_or(guard.language);
            let text = |name| guard.templates.text(channel.as_str(), language, name).unwrap_or_default().to_owned();
            apis.push(Arc::new(CompletionsAdapter::new(CompletionsSettings {
                name: name.to_owned(),
                section: section.clone(),
                token,
                models: models(materials.config, section),
                guesses: Arc::clone(&materials.guesses),
                body_limit: server.body_limit.bytes(),
                files: files.limits(),
                body_timeout: server.request_timeout,
                public_url: server.public_url.clone(),
                texts: ApiTexts {
                    deferral: text("deferral"),
                    cancelled: text("cancelled"),
                    undeliverable: text("failed"),
                },
                clock: Arc::clone(materials.clock),
                stop_waiting: materials.stop_waiting.clone(),
            })));
            let path = CompletionsAdapter::path_of(name);
            built.notices.push(ChannelNotice::Api { path, token: token_source });
        }
        built.channels = apis.iter().map(|api| Arc::clone(api) as Arc<dyn ChannelAdapter>).collect();
        built.routes = Some(Box::new(move |materials: &RouteMaterials| {
            apis.into_iter().fold(axum::Router::new(), |routes, api| {
                let operators = operators_on(api.channel().clone(), materials);
                routes.merge(rejoinder_completions::router(api, operators))
            })
        }));
        Ok(built)
    }

    fn openapi(&self) -> Option<OpenApi> {
        Some(rejoinder_completions::openapi())
    }
}

/// The agents that may be chosen, the channel's own first.
fn models(config: &Config, section: &CompletionsSection) -> Models {
    let routing = &config.routing;
    let own = section.common.agent.as_ref().unwrap_or(&routing.default_agent);
    let names = std::iter::once(own).chain(&routing.choosable);
    // Of a single model nothing can be chosen.
    let models = |name: &String| config.agents.get(name).map(|agent| &agent.models).filter(|models| models.len() > 1);
    let models = |name: &String| models(name).cloned().unwrap_or_default();
    Models::new(names.map(|name| OfferedAgent { name: name.as_str().into(), models: models(name) }))
}

/// The operators' tokens, as far as they open a channel.
fn operators_on(channel: ChannelId, materials: &RouteMaterials) -> OperatorTokens {
    let callers = Arc::clone(&materials.callers);
    Arc::new(move |sent| {
        let (callers, channel) = (Arc::clone(&callers), channel.clone());
        async move {
            let token = |caller: Caller| {
                let may_ask = caller.role != Role::Viewer && caller.may_see(&channel);
                OperatorToken { name: caller.token.map(|_| caller.name), may_ask }
            };
            Ok(callers(sent).await?.map(token))
        }
        .boxed()
    })
}
