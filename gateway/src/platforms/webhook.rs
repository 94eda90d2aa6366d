//! Hooks.

use std::sync::Arc;

use rejoinder_config::{Config, PlatformSection};
use rejoinder_core::{ChannelAdapter, ChannelId, Language};
use rejoinder_webhook::{FormerHooks, HookTexts, ResultKeys, WebhookAdapter, WebhookSection, WebhookSettings};
use utoipa::openapi::OpenApi;

use super::platform::{Built, ChannelNotice, Platform, RouteMaterials};
use crate::{
    client::is_readable_on_the_way,
    materials::{Materials, WiringError},
};

pub(super) struct Webhook;

impl Platform for Webhook {
    fn name(&self) -> &'static str {
        "Hooks"
    }

    fn section(&self) -> PlatformSection {
        PlatformSection::of::<WebhookSection>()
    }

    fn build(&self, materials: &Materials<'_>) -> Result<Built, WiringError> {
        let server = &materials.config.server;
        let keys = ResultKeys::new(&materials.generated_token("hook-result-key")?.token);
        let texts = |channel: &str, language: Option<Language>| {
            let guard = &materials.config.guard;
            let language = language.unwrap_or(guard.language);
            let text = |name| guard.templates.text(channel, language, name).unwrap_or_default().to_owned();
            HookTexts {
                accepted: text("accepted"),
                cancelled: text("cancelled"),
                undeliverable: text("failed"),
                unspoken: text("unspoken"),
            }
        };
        let (mut hooks, mut built) = (Vec::new(), Built::default());
        let (bodies, transcriber, synthesizer) = (Arc::default(), materials.transcriber()?, materials.synthesizer()?);
        for (name, section) in materials.config.channels.of::<WebhookSection>() {
            let token = section.token.as_ref();
            let token = token.map(|token| materials.tokens(token, &format!("hook-{name}-token"))).transpose()?;
            let (token, token_source) = token.map_or((None, None), |(token, source)| (Some(token), Some(source)));
            let settings = WebhookSettings {
                name: name.to_owned(),
                section: section.clone(),
                token,
                result_keys: keys.clone(),
                guesses: Arc::clone(&materials.guesses),
                bodies: Arc::clone(&bodies),
                body_limit: server.body_limit.bytes(),
                files: materials.config.files.limits(),
                body_timeout: server.request_timeout,
                public_url: server.public_url.clone(),
                texts: texts(ChannelId::new(self.section().name, name).as_str(), section.common.language),
                transcriber: transcriber.clone(),
                synthesizer: synthesizer.clone(),
                clock: Arc::clone(materials.clock),
                http: materials.http.clone(),
                stop_waiting: materials.stop_waiting.clone(),
            };
            let hook = WebhookAdapter::new(settings).map_err(|error| WiringError::Channel {
                channel: ChannelId::new(self.section().name, name),
                reason: error.to_string(),
            })?;
            hooks.push(Arc::new(hook));
            built.notices.push(ChannelNotice::Hook { path: format!("/hooks/{name}"), token: token_source });
        }
        built.channels = hooks.iter().map(|hook| Arc::clone(hook) as Arc<dyn ChannelAdapter>).collect();
        let (public_url, clock) = (server.public_url.clone(), Arc::clone(materials.clock));
        let (texts, guesses) = (texts(self.section().name, None), Arc::clone(&materials.guesses));
        // Served even when no hook is configured: callers of former hooks can still read their results.
        built.routes = Some(Box::new(move |materials: &RouteMaterials| {
            let intakes = Arc::clone(&materials.intakes);
            let intake = Box::new(move |channel: &ChannelId| intakes(channel));
            rejoinder_webhook::router(hooks, FormerHooks { keys, guesses, public_url, texts, clock, intake })
        }));
        Ok(built)
    }

    fn remarks(&self, config: &Config) -> Vec<String> {
        let hooks = config.channels.of::<WebhookSection>();
        let plain = hooks.filter(|(_, hook)| hook.callback_url.as_ref().is_some_and(is_readable_on_the_way));
        let remark = |(name, _)| {
            format!(
                "channels.webhook.{name}.callback_url begins with http://: the answers, and a token in the URL, can be read \
                 on the way."
            )
        };
        plain.map(remark).collect()
    }

    fn openapi(&self) -> Option<OpenApi> {
        Some(rejoinder_webhook::openapi())
    }
}
