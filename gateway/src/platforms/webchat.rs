//! Chat pages.

use std::sync::Arc;

use rejoinder_config::{Config, PlatformSection};
use rejoinder_core::ChannelAdapter;
use rejoinder_kit::Tokens;
use rejoinder_webchat::{
    Access, AccessKind, PushKind, PushSettings, SignIn, WebchatAdapter, WebchatSection, WebchatSettings,
};
use utoipa::openapi::OpenApi;

use super::platform::{Built, ChannelNotice, Platform};
use crate::{
    client::public_client,
    materials::{Materials, WiringError},
};

/// The file in the data directory with the secret of the key at push services.
const PUSH_KEY: &str = "push-key";

/// What push services are told if there is no public URL. They want an address that looks like one.
const NO_CONTACT: &str = "mailto:operator@example.org";

/// The file in the data directory with the key that proves the challenges of people who sign in.
const SIGN_IN_KEY: &str = "chat-sign-in-key";

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
        let push = push(materials)?;
        for (name, section) in materials.config.channels.of::<WebchatSection>() {
            let token = section.token.as_ref();
            let token = token.map(|token| materials.tokens(token, &format!("chat-{name}-token"))).transpose()?;
            let (access, token_source) = match token {
                Some((token, source)) => (Access::Token(token), Some(source)),
                None if section.access == AccessKind::People => (Access::People(sign_in(materials, section)?), None),
                None => (Access::Loopback, None),
            };
            let public_url =
                materials.config.server.public_url.as_ref().filter(|_| section.access != AccessKind::Loopback);
            chats.push(Arc::new(WebchatAdapter::new(WebchatSettings {
                name: name.to_owned(),
                section: section.clone(),
                access,
                origins: public_url.map(|url| url.origin().ascii_serialization()).into_iter().collect(),
                guesses: Arc::clone(&materials.guesses),
                files: materials.config.files.limits(),
                push: push.clone(),
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
        let remarks = closed.map(remark);
        let pages = config.channels.of::<WebchatSection>().filter(|_| config.server.public_url.is_none());
        let with_passkeys_only = pages.filter(|(_, page)| page.access == AccessKind::People && page.header.is_none());
        let without_url = |(name, _)| {
            format!(
                "channels.webchat.{name} lets in people who sign in, and server.public_url is not set: passkeys work under \
                 http://localhost only, as they belong to the address of the page."
            )
        };
        remarks.chain(with_passkeys_only.map(without_url)).collect()
    }

    fn openapi(&self) -> Option<OpenApi> {
        Some(rejoinder_webchat::openapi())
    }
}

/// How people sign in to a chat.
fn sign_in(materials: &Materials<'_>, section: &WebchatSection) -> Result<SignIn, WiringError> {
    let key = materials.generated_token(SIGN_IN_KEY)?.token;
    let public_url = materials.config.server.public_url.clone();
    Ok(SignIn { key: Tokens::new([&key]), header: section.header.clone(), public_url })
}

/// How messages are sent to push services, if some chat page has them sent.
fn push(materials: &Materials<'_>) -> Result<Option<PushSettings>, WiringError> {
    let config = materials.config;
    if config.channels.of::<WebchatSection>().all(|(_, section)| section.push == PushKind::Off) {
        return Ok(None);
    }
    let public_url = config.server.public_url.as_ref().filter(|url| url.scheme() == "https");
    Ok(Some(PushSettings {
        secret: materials.generated_token(PUSH_KEY)?.token,
        contact: public_url.map_or_else(|| NO_CONTACT.to_owned(), ToString::to_string),
        public: public_client,
        own: materials.http.clone(),
    }))
}
