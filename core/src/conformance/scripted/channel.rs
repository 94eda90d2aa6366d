//! The adapter for the scripted platform.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use rejoinder_guard::Attachment;
use tokio_util::sync::CancellationToken;

use super::platform::Platform;
use crate::{
    model::{
        capabilities::{Capabilities, Receipts, Resend, Support},
        conversation::{ChannelId, ConversationRef},
        delivery::{Action, Delivery, DeliveryError, Receipt},
    },
    ports::{
        channel::{ChannelAdapter, ChannelError, ChannelHealth},
        intake::Intake,
    },
};

/// The pause before an event that was not accepted is given to the intake again.
const AGAIN: Duration = Duration::from_millis(50);

/// Full support for edits, reactions, choices and files, each by itself and without a text; receipts from the platform; ambiguous
/// resends; no drafts, no typing and no limits.
#[must_use]
pub const fn capabilities() -> Capabilities {
    Capabilities {
        receipts: Receipts::Platform,
        can_write_first: true,
        resend: Resend::Ambiguous,
        edit: Support::Full,
        reactions: Support::Full,
        allowed_reactions: None,
        choices: Support::Full,
        attachments: Support::Full,
        files_per_message: 1,
        bytes_per_message: usize::MAX,
        caption_limit: None,
        drafts: Support::No,
        drafts_are_messages: false,
        draft_steps: false,
        draft_interval: Duration::from_secs(1),
        typing: Support::No,
        typing_interval: Duration::from_secs(4),
        typing_ends_by_itself: false,
        bang_commands: false,
        text_limit: None,
        conversation_rate: None,
        account_rate: None,
    }
}

/// A channel that connects one gateway to a [`Platform`]. Splits texts at [`ScriptedChannel::CUT`] and at their limit, and
/// counts them in bytes. Pictures are an album, and so are texts.
#[derive(Debug)]
pub struct ScriptedChannel {
    channel: ChannelId,
    platform: Arc<Platform>,
    capabilities: Capabilities,
}

impl ScriptedChannel {
    /// The separator between the parts of a text.
    pub const CUT: &str = "\n---\n";

    /// Makes an adapter for `channel` on `platform` that declares `capabilities`.
    #[must_use]
    pub const fn new(channel: ChannelId, platform: Arc<Platform>, capabilities: Capabilities) -> Self {
        Self { channel, platform, capabilities }
    }
}

#[async_trait]
impl ChannelAdapter for ScriptedChannel {
    fn channel(&self) -> &ChannelId {
        &self.channel
    }

    fn capabilities(&self, _conversation: &ConversationRef) -> Capabilities {
        self.capabilities.clone()
    }

    fn is_group(&self, conversation: &ConversationRef) -> bool {
        self.platform.is_joined(conversation)
    }

    fn health(&self) -> ChannelHealth {
        ChannelHealth { inbound_at: None, stale_after: None, problem: None, notice: None }
    }

    fn parts(&self, text: &str) -> Vec<String> {
        let most = self.capabilities.text_limit.map_or(usize::MAX, |limit| limit.max);
        let mut parts = Vec::new();
        for mut rest in text.split(Self::CUT) {
            while rest.len() > most {
                let (part, after) = rest.split_at(rest.floor_char_boundary(most));
                parts.push(part.to_owned());
                rest = after;
            }
            parts.push(rest.to_owned());
        }
        parts
    }

    fn album_of(&self, file: &Attachment) -> Option<&'static str> {
        ["image/", "text/"].into_iter().find(|kind| file.media_type.starts_with(kind))
    }

    fn fits_caption(&self, text: &str) -> bool {
        self.capabilities.caption_limit.is_some_and(|limit| text.len() <= limit.max)
    }

    fn shows_anything(&self, text: &str) -> bool {
        crate::shows_anything(text)
    }

    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        loop {
            let event = tokio::select! {
                event = self.platform.next_event() => event,
                () = shutdown.cancelled() => return Ok(()),
            };
            if intake.accept(event).await.is_ok() {
                self.platform.acknowledge();
            } else {
                tokio::select! {
                    () = intake.clock().sleep(AGAIN) => {}
                    () = shutdown.cancelled() => return Ok(()),
                }
            }
        }
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        let support = match delivery.action() {
            Action::Send { .. } | Action::Delete { .. } => Support::Full,
            Action::Edit { .. } => self.capabilities.edit,
            Action::React { .. } | Action::Mark { .. } => self.capabilities.reactions,
            Action::Draft { .. } => self.capabilities.drafts,
            Action::Typing { .. } => self.capabilities.typing,
        };
        if support == Support::No {
            return Err(DeliveryError::Unsupported("the test's capabilities exclude it".to_owned()));
        }
        let has_too_many = delivery.action().files().len() > self.capabilities.files_per_message;
        if has_too_many && self.capabilities.receipts == Receipts::Platform {
            return Err(DeliveryError::Unsupported("too many files in one message".to_owned()));
        }
        self.platform.deliver(delivery, &self.capabilities).await
    }
}
