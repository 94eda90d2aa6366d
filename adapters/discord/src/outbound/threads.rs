//! Channels and threads: where a message is sent, where it is found, and threads that are opened with an answer.

use rejoinder_core::{DeliveryError, Receipt};
use reqwest::Method;
use serenity::builder::CreateThread;

use super::{Sending, address, message::Outgoing, readback::nonce};
use crate::{
    Discord,
    api::{Body, json},
    errors::{ApiError, Refusal, code},
    payload::{Message, SentMessage},
    snowflake::Snowflake,
};

/// The longest name that is given to a thread, in characters. Discord allows 100
/// (<https://discord.com/developers/docs/resources/channel#start-thread-from-message>).
const MAX_NAME: usize = 80;

/// The name of a thread whose first message has no text.
const NAMELESS: &str = "…";

impl Discord {
    /// Notes the name of the thread that will start from this message.
    pub(crate) fn note_thread_title(&self, message: &str, text: &str) {
        if let Some(message) = Snowflake::parse(message) {
            self.thread_titles.insert(message, thread_name(text).into());
        }
    }
}

impl Sending<'_> {
    /// Sends to a conversation's channel or thread. With `auto_thread`, opens the thread if it does not exist yet.
    pub(super) async fn send_in(&self, outgoing: &Outgoing, reply_to: Option<Snowflake>) -> Result<Receipt, ApiError> {
        let (chat, thread) = address::channels(self.delivery.conversation()).map_err(|error| no_channel(&error))?;
        let Some(thread) = thread else {
            let is_direct = self.discord.directory.channel(chat).is_some_and(|info| info.is_direct());
            let sent = self.post(outgoing, chat, reply_to.filter(|_| !is_direct)).await?;
            return Ok(self.note_sent(&sent, outgoing));
        };
        // In the channel, the answer replies to the message that the thread would have started from.
        let link = reply_to.and(Some(thread));
        if self.discord.threadless.get(&thread).is_some() {
            let sent = self.post(outgoing, chat, link).await?;
            return Ok(self.note_sent(&sent, outgoing));
        }
        // The message that a thread starts from is in the channel, so a message in the thread cannot reply to it.
        let reply_to = reply_to.filter(|message| *message != thread);
        let is_unknown = |error: &ApiError| error.refusal().is_some_and(|it| it.code == code::UNKNOWN_CHANNEL);
        let sent = match self.post(outgoing, thread, reply_to).await {
            Err(error) if self.discord.options.auto_thread && is_unknown(&error) => {
                if self.open_thread(chat, thread).await? {
                    self.post(outgoing, thread, reply_to).await?
                } else {
                    self.discord.threadless.insert(thread, ());
                    self.post(outgoing, chat, link).await?
                }
            }
            sent => sent?,
        };
        Ok(self.note_sent(&sent, outgoing))
    }

    async fn open_thread(&self, channel: Snowflake, message: Snowflake) -> Result<bool, ApiError> {
        let path = format!("channels/{channel}/messages/{message}");
        let title = if let Some(title) = self.discord.thread_titles.get(&message) {
            title.to_string()
        } else {
            let message = self.discord.api.get::<Message>(&path).await;
            message.map_or_else(|_| NAMELESS.to_owned(), |it| thread_name(&it.content))
        };
        let thread = json(&CreateThread::new(title));
        match self.discord.api.ask_json::<SentMessage>(Method::POST, &format!("{path}/threads"), &thread).await {
            Ok(_) | Err(ApiError::Refused(Refusal { code: code::THREAD_EXISTS, .. })) => Ok(true),
            Err(error) if error.is_transient() => Err(error),
            Err(error) => {
                tracing::info!(channel = %self.discord.channel, %error, "the thread cannot be opened, answering in the channel");
                Ok(false)
            }
        }
    }

    /// Sends a message to a channel, unless an earlier attempt did.
    pub(super) async fn post(
        &self,
        outgoing: &Outgoing,
        channel: Snowflake,
        reply_to: Option<Snowflake>,
    ) -> Result<SentMessage, ApiError> {
        if let Some(sent) = self.find_earlier_attempt(outgoing, channel, reply_to).await? {
            return Ok(sent);
        }
        let path = format!("channels/{channel}/messages");
        let nonce = nonce(self.delivery);
        let body = outgoing.body(outgoing.create_payload(&nonce, channel, reply_to));
        let sent: SentMessage = match self.discord.api.ask(Method::POST, &path, body).await {
            Err(ApiError::Refused(refusal)) if reply_to.is_some() && refusal.is_about_reply() => {
                return Err(ApiError::ReplyGone(refusal));
            }
            sent => sent?,
        };
        self.discord.sent.note(sent.id, &outgoing.text, None);
        Ok(sent)
    }

    /// Makes a call on a message in the thread or in its parent channel, wherever the message is. The message that a thread
    /// starts from is in the channel, but the first message of a forum post is in the thread. `tail` follows the message id
    /// in the path.
    pub(super) async fn call_on_message(
        &self,
        message: Snowflake,
        method: Method,
        tail: &str,
        body: impl Fn() -> Body + Send,
    ) -> Result<(), ApiError> {
        let call = |channel: Snowflake| {
            let path = format!("channels/{channel}/messages/{message}{tail}");
            let (method, body) = (method.clone(), body());
            async move { self.discord.api.call(method, &path, body).await.map(|_| ()) }
        };
        let (chat, thread) = address::channels(self.delivery.conversation()).map_err(|error| no_channel(&error))?;
        let Some(thread) = thread else { return call(chat).await };
        let in_channel = message == thread || self.discord.threadless.get(&thread).is_some();
        let (first, second) = if in_channel { (chat, thread) } else { (thread, chat) };
        let is_elsewhere = |error: &ApiError| {
            error.refusal().is_some_and(|it| {
                matches!(it.code, code::UNKNOWN_CHANNEL | code::UNKNOWN_MESSAGE | code::NO_TEXT_CHANNEL)
            })
        };
        match call(first).await {
            Err(error) if is_elsewhere(&error) => call(second).await.map_err(|other| {
                // If neither has the message, the first error is as good as the second.
                if is_elsewhere(&other) { error } else { other }
            }),
            done => done,
        }
    }
}

fn no_channel(error: &DeliveryError) -> ApiError {
    ApiError::Refused(Refusal { code: code::UNKNOWN_CHANNEL, ..Refusal::of(404, error.to_string()) })
}

/// The name of a thread that starts from this text: its first line, shortened.
fn thread_name(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(NAMELESS);
    if line.chars().count() <= MAX_NAME {
        return line.to_owned();
    }
    line.chars().take(MAX_NAME - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_called_by_its_first_line() {
        assert_eq!(thread_name("\n What is this?\nTell me."), "What is this?");
        assert_eq!(thread_name(" "), NAMELESS);
        assert_eq!(thread_name(&"ö".repeat(200)).chars().count(), 80);
    }
}
