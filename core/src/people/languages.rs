//! The language in which the gateway speaks to a person.

use std::collections::HashMap;

use super::{People, State};
use crate::model::{ConversationRef, DirectChat, Identity, Language};

impl People {
    /// The language of the gateway's messages in a direct chat.
    pub(crate) fn language_in_chat(&self, address: &ConversationRef) -> Option<Language> {
        let chat = self.state().chats.values().find(|chat| chat.conversation == *address).cloned();
        self.spoken_language(&chat?)
    }

    /// The language that somebody chose, here or on another of their channels.
    pub(crate) fn chosen_language(&self, identity: &Identity) -> Option<Language> {
        self.language_in(|state| &state.languages, identity)
    }

    /// The language that the configuration says of somebody.
    pub(crate) fn configured_language(&self, identity: &Identity) -> Option<Language> {
        self.language_in(|state| &state.configured_languages, identity)
    }

    /// The language of what the gateway tells somebody of its own accord in their direct chat.
    pub(crate) fn spoken_language(&self, chat: &DirectChat) -> Option<Language> {
        let told = self.chosen_language(&chat.identity).or(chat.language);
        told.or_else(|| self.configured_language(&chat.identity))
    }

    /// What a map has for an identity, or else for another identity of its person.
    fn language_in(
        &self,
        map: impl Fn(&State) -> &HashMap<Identity, Language>,
        identity: &Identity,
    ) -> Option<Language> {
        let state = self.state();
        let map = map(&state);
        if map.is_empty() {
            return None;
        }
        map.get(identity).copied().or_else(|| self.known().all_of(identity).iter().find_map(|it| map.get(it).copied()))
    }
}
