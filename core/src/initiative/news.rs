//! News of channels for people: sent as it is, or given to an agent, whose answer they get.

use async_trait::async_trait;

use super::{Initiative, Prompt, recipients::Recipient};
use crate::{
    model::{Author, ChannelId, ConversationRef, InboundEvent, Quote, Reached},
    notices::message,
    operator::error::OperationError,
    ports::{News, NewsDesk, NewsError, Task},
};

#[async_trait]
impl NewsDesk for Initiative {
    async fn take(&self, channel: &ChannelId, news: News) -> Result<Reached, NewsError> {
        let mut events = Vec::new();
        let (recipients, missed) = self.recipients.of(&news.to, |_| true).await.map_err(news_error)?;
        for Recipient { address, person, .. } in recipients {
            let mut event = self.unasked(self.news(&address, channel, &news).await.map_err(news_error)?);
            // The payload is kept once.
            if events.is_empty() {
                event.raw.clone_from(&news.raw);
            }
            events.push((event, person));
        }
        let key = format!("news:{channel}:{}", news.key);
        let reached = self.begin(events, missed, &key, None, None).await.map_err(news_error)?;
        // The sender may not see the people whom it is for: it gets numbers only.
        Ok(reached.counted())
    }
}

impl Initiative {
    /// The event that news is in a conversation.
    async fn news(
        &self,
        address: &ConversationRef,
        from: &ChannelId,
        news: &News,
    ) -> Result<InboundEvent, OperationError> {
        let Some(Task { text, agent, quiet, words }) = &news.task else {
            return Ok(message(address, news.text.clone(), from.as_str(), "", self.clock.now()));
        };
        let author = Author { name: Some(from.to_string()), is_stranger: true, ..Author::unknown() };
        let (by, agent) = (from.as_str(), agent.as_ref());
        let prompt = Prompt { text, by, agent, quiet: *quiet, asked_by: None, words };
        Ok(InboundEvent {
            quoted: Some(Quote { author, text: news.text.clone(), ..Quote::default() }),
            ..self.prompt(address, prompt).await?
        })
    }
}

fn news_error(error: OperationError) -> NewsError {
    match error {
        OperationError::Store(error) => NewsError::Intake(error.into()),
        OperationError::Limited { retry_after } => NewsError::Limited { retry_after },
        error => NewsError::Unreachable(error.to_string()),
    }
}
