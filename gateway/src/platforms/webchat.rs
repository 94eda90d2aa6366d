//! Chat pages.

use std::sync::Arc;

use rejoinder_config::{Config, PlatformSection};
use rejoinder_core::ChannelAdapter;
use rejoinder_webchat::{Access, AccessKind, WebchatAdapter, WebchatSection, WebchatSettings};
use utoipa::openapi::OpenApi;

use super::platform::{Built, ChannelNotice, Platform};
use crate::materials::{Materials, WiringError};

pub(super) struct Webchat;

impl Platform for Webchat {
    fn name(&self) -> &'static str {
        "Chat pages"
    }

    fn section(&self) -> PlatformSection {
        PlatformSection::of::<WebchatSection>()
    }

    fn build(&self, materials: &Materials<'_>) -> Result<Built, WiringError> {
        let (mut chats, mut built) = (Vec::new(), Built::default());
        for (name, section) in materials.config.channels.of::<WebchatSection>() {
            let token = section.token.as_ref();
            let token = token.map(|token| materials.tokens(token, &format!("chat-{name}-token"))).transpose()?;
            let (access, token_source) = match token {
                Some((token, source)) => (Access::Token(token), Some(source)),
                None => (Access::Loopback, None),
            };
            let public_url =
                materials.config.server.public_url.as_ref().filter(|_| section.access == AccessKind::Token);
            chats.push(Arc::new(WebchatAdapter::new(WebchatSettings {
                name: name.to_owned(),
                section: section.clone(),
                access,
                origins: public_url.map(|url| url.origin().ascii_serialization()).into_iter().collect(),
                guesses: Arc::clone(&materials.guesses),
                files: materials.config.files.limits(),
                clock: Arc::clone(materials.clock),
            })));
            let path = if name == "main" { "/chat".to_owned() } else { format!("/chat/{name}") };
            built.notices.push(ChannelNotice::Page { path, token: token_source });
        }
        built.channels = chats.iter().map(|chat| Arc::clone(chat) as Arc<dyn ChannelAdapter>).collect();
        built.front_page = (!chats.is_empty()).then_some("/chat");
        built.routes = Some(Box::new(|_| rejoinder_webchat::router(chats)));
        Ok(built)
    }

    fn remarks(&self, config: &Config) -> Vec<String> {
        let listen = config.server.listen;
        let pages = config.channels.of::<WebchatSection>().filter(|_| !listen.ip().is_loopback());
        let closed = pages.filter(|(_, page)| page.access == AccessKind::Loopback);
        let remark = |(name, _)| {
            format!(
                "server.listen is {listen}, and channels.webchat.{name} is open to this machine only: callers from \
                 other machines are rejected. Set access = \"token\" to let them in."
            )
        };
        closed.map(remark).collect()
    }

    fn openapi(&self) -> Option<OpenApi> {
        Some(rejoinder_webchat::openapi())
    }
}
