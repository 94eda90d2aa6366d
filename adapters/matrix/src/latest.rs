//! For each conversation: the last message of a person, which an answer need not reply to explicitly, and the open
//! question, which a bare number answers.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use quick_cache::sync::Cache;
use rejoinder_core::ConversationRef;

use crate::memory::Question;

const REMEMBERED: usize = 4096;

/// The last message of a person in each conversation.
#[derive(Debug)]
pub(crate) struct LastMessages(Cache<ConversationRef, String>);

impl Default for LastMessages {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl LastMessages {
    pub(crate) fn note(&self, conversation: &ConversationRef, message: &str) {
        self.0.insert(conversation.clone(), message.to_owned());
    }

    /// Whether a message is the last one from a person.
    pub(crate) fn is_last(&self, conversation: &ConversationRef, message: &str) -> bool {
        self.0.get(conversation).is_some_and(|last| last == message)
    }
}

/// The open question of each conversation: our last message there, until a person writes.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions(Mutex<HashMap<(String, Option<String>), Question>>);

impl OpenQuestions {
    pub(crate) fn note(&self, conversation: &ConversationRef, question: Question) {
        let mut questions = self.lock();
        if questions.len() >= REMEMBERED {
            questions.clear();
        }
        questions.insert(key(conversation), question);
    }

    pub(crate) fn forget(&self, conversation: &ConversationRef) {
        self.lock().remove(&key(conversation));
    }

    pub(crate) fn last(&self, room: &str, thread: Option<&str>) -> Option<Question> {
        self.lock().get(&(room.to_owned(), thread.map(str::to_owned))).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, Option<String>), Question>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(conversation: &ConversationRef) -> (String, Option<String>) {
    (conversation.chat.to_string(), conversation.thread.as_deref().map(str::to_owned))
}
