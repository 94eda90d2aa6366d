//! Hooks.

use std::sync::Arc;

use rejoinder_config::{Config, PlatformSection, TokenValue};
use rejoinder_core::{ChannelAdapter, ChannelId, Language};
use rejoinder_webhook::{FormerHooks, HookTexts, ResultKeys, WebhookAdapter, WebhookSection, WebhookSettings};
use secrecy::SecretString;
use utoipa::openapi::OpenApi;

use super::platform::{Built, ChannelNotice, Hook, Platform, RouteMaterials};
use crate::{
    client::is_readable_on_the_way,
    materials::{Materials, TokenSource, WiringError},
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
                language,
            }
        };
        let (mut hooks, mut built) = (Vec::new(), Built::default());
        let bodies = Arc::default();
        for (name, section) in materials.config.channels.of::<WebhookSection>() {
            let token = section.token.as_ref();
            let token = token.map(|token| materials.tokens(token, &format!("hook-{name}-token"))).transpose()?;
            let (token, token_source) = token.unzip();
            let shown = token_source.as_ref().and_then(|source| shown_token(section, source));
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
                clock: Arc::clone(materials.clock),
                http: materials.http.clone(),
                stop_waiting: materials.stop_waiting.clone(),
            };
            let hook = WebhookAdapter::new(settings).map_err(|error| WiringError::Channel {
                channel: ChannelId::new(self.section().name, name),
                reason: error.to_string(),
            })?;
            let (hook, path) = (Arc::new(hook), format!("/hooks/{name}"));
            hooks.push(Arc::clone(&hook));
            let base = server.public_url.as_ref().map_or("", |url| url.as_str().trim_end_matches('/'));
            built.hooks.push(Hook {
                channel: hook.channel().clone(),
                url: format!("{base}{path}"),
                token: shown,
                takes_events: section.deliver_to.is_some(),
                wait: section.wait,
                calls: Arc::new(move || hook.calls()),
            });
            built.notices.push(ChannelNotice::Hook { path, token: token_source });
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

/// The token that callers of a hook send, as an operator may see it.
fn shown_token(section: &WebhookSection, source: &TokenSource) -> Option<SecretString> {
    match (source, &section.token.as_ref()?.current) {
        (TokenSource::Generated(made), _) => Some(made.token.clone()),
        (TokenSource::Configured, TokenValue::Configured(secret)) => Some(secret.get().clone()),
        (TokenSource::Configured, TokenValue::Generate) => None,
    }
}
