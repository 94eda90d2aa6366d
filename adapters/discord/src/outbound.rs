//! Performs a delivery with REST calls.
//!
//! A channel message carries a nonce derived from the delivery's id. Within two minutes, Discord shows it once however
//! often it is sent. After that, the channel is read back before it is sent again. The first message to a command replaces
//! the "thinking" notice, which is idempotent. Further ones, such as the answer after a question in the middle of a run, are
//! messages of their own; Discord recognises no copy of a private one.

mod address;
mod files;
mod message;
mod readback;
mod threads;

use std::sync::Arc;

use rejoinder_core::{Action, Content, Delivery, DeliveryError, Receipt};
use reqwest::Method;
use serde::Deserialize;

pub(crate) use self::files::album_of;
use self::{address::Address, message::Outgoing};
use crate::{
    Discord, UNKNOWN_TOKEN,
    api::Body,
    capabilities::FILES_PER_MESSAGE,
    errors::{ApiError, Refusal, code},
    format,
    inbound::{interaction_in, private_to},
    interactions::InteractionRecord,
    payload::SentMessage,
    snowflake::Snowflake,
};

#[derive(Deserialize)]
struct DirectChat {
    id: Snowflake,
}

struct Sending<'a> {
    discord: &'a Discord,
    delivery: &'a Delivery,
}

impl Discord {
    pub(crate) async fn perform(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        let sending = Sending { discord: self, delivery };
        let is_private = private_to(delivery.conversation()).is_some();
        match delivery.action() {
            Action::Send { content, reply_to } => sending.send(content, reply_to.as_deref()).await,
            Action::Edit { message, content, .. } => sending.edit(message, content).await,
            Action::React { .. } | Action::Mark { .. } | Action::Draft { .. } | Action::Typing { .. } if is_private => {
                Err(DeliveryError::Unsupported("a private answer has no reactions, drafts or typing".to_owned()))
            }
            Action::React { message: None, .. } => {
                Err(DeliveryError::Unsupported("a reaction needs a message".to_owned()))
            }
            Action::React { message: Some(message), emoji } => sending.react(message, emoji).await,
            Action::Mark { message, emoji, on } => sending.mark(message, emoji, *on).await,
            Action::Draft { text, message, .. } => sending.draft(text, message.as_deref()).await,
            Action::Typing { on: true } => sending.typing().await,
            Action::Typing { on: false } => Err(DeliveryError::Unsupported("typing ends by itself".to_owned())),
            Action::Delete { message } => sending.delete(message).await,
        }
    }

    /// Updates the channel's health from the result of a delivery.
    pub(crate) fn note_outbound(&self, result: &Result<Receipt, DeliveryError>) {
        match result {
            Ok(_) | Err(DeliveryError::Unauthorized(_)) => self.health.note_delivery(result, UNKNOWN_TOKEN),
            Err(_) if self.api.is_held_back() => self
                .health
                .outbound_fails("Discord refused too many calls (401, 403, 429), pausing all calls for a minute"),
            Err(_) => {}
        }
    }
}

impl Sending<'_> {
    async fn send(&self, content: &Content, reply_to: Option<&str>) -> Result<Receipt, DeliveryError> {
        if content.attachments.len() > FILES_PER_MESSAGE {
            return Err(DeliveryError::Unsupported("too many files in one message".to_owned()));
        }
        let outgoing = self.discord.outgoing(self.delivery, content).await?;
        Ok(self.try_to_send(&outgoing, reply_to).await?)
    }

    async fn try_to_send(&self, outgoing: &Outgoing, reply_to: Option<&str>) -> Result<Receipt, ApiError> {
        if let Some(user) = private_to(self.delivery.conversation()) {
            return self.send_privately(outgoing, user, reply_to).await;
        }
        if let Some(interaction) = reply_to.and_then(interaction_in) {
            return self.send_to_command(outgoing, interaction).await;
        }
        self.send_in(outgoing, reply_to.and_then(Snowflake::parse)).await
    }

    /// Sends in the place of the "thinking" notice of a command, else in its channel, else, if that is closed to us, by the token.
    async fn send_to_command(&self, outgoing: &Outgoing, interaction: Snowflake) -> Result<Receipt, ApiError> {
        let record = self.valid_interaction(interaction).await;
        let Some(record) = record else { return self.send_in(outgoing, None).await };
        if record.has_notice_for(self.delivery.id())
            && let Some(sent) = self.answer(&record, outgoing).await?
        {
            return Ok(self.note_sent(&sent, outgoing));
        }
        // A message in the channel has a nonce, and a further one by the token has none.
        match self.send_in(outgoing, None).await {
            Err(error) if error.refusal().is_some_and(Refusal::is_about_channel) => {
                let sent = self.follow_up(&record, outgoing).await?.ok_or(error)?;
                Ok(self.note_sent(&sent, outgoing))
            }
            result => result,
        }
    }

    /// Sends a private answer: by an interaction's token, or in the person's direct chat if no token is valid.
    async fn send_privately(
        &self,
        outgoing: &Outgoing,
        user: Snowflake,
        reply_to: Option<&str>,
    ) -> Result<Receipt, ApiError> {
        if let Some(record) = self.record_for(user, reply_to).await {
            let is_first = self.delivery.part().0 == 1 && reply_to.and_then(interaction_in) == Some(record.id);
            let sent = if is_first && record.has_notice_for(self.delivery.id()) {
                self.answer(&record, outgoing).await?
            } else {
                self.follow_up(&record, outgoing).await?
            };
            if let Some(sent) = sent {
                return Ok(Receipt::of(Address::Interaction(record.id, sent.id).to_text()));
            }
        }
        let recipient = serde_json::json!({"recipient_id": user});
        let chat: DirectChat = self.discord.api.ask_json(Method::POST, "users/@me/channels", &recipient).await?;
        let sent = self.post(outgoing, chat.id, None).await?;
        Ok(Receipt::of(Address::Direct(chat.id, sent.id).to_text()))
    }

    /// The interaction whose token can send a private delivery.
    async fn record_for(&self, user: Snowflake, reply_to: Option<&str>) -> Option<Arc<InteractionRecord>> {
        self.discord.wait_until_loaded().await;
        let now = self.discord.clock.now();
        if let Some(id) = reply_to.and_then(interaction_in) {
            return self.discord.interactions.valid(id, now).await;
        }
        if let Some(record) = self.discord.interactions.of_turn(self.delivery.turn(), now).await {
            return Some(record);
        }
        self.discord.interactions.private_to(user, &self.delivery.conversation().chat, now).await
    }

    async fn valid_interaction(&self, interaction: Snowflake) -> Option<Arc<InteractionRecord>> {
        self.discord.wait_until_loaded().await;
        self.discord.interactions.valid(interaction, self.discord.clock.now()).await
    }

    /// Replaces the "thinking" notice of a command with the answer. `None` if the token is no longer valid.
    async fn answer(&self, record: &InteractionRecord, outgoing: &Outgoing) -> Result<Option<SentMessage>, ApiError> {
        let path = record.message("@original");
        let sent = self.call_by_token(record, Method::PATCH, &path, outgoing.body(outgoing.edit_payload())).await?;
        if sent.is_some() {
            self.discord.interactions.set_answered(record.id, self.delivery.id());
        }
        Ok(sent)
    }

    /// Sends a further message to a command. If the response is lost, the message may be shown twice: as "Execute Webhook", "Create
    /// Followup Message" has no `nonce`, and what follows a command is read by its id only, so a private one cannot be looked for
    /// (<https://discord.com/developers/docs/interactions/receiving-and-responding#create-followup-message>).
    async fn follow_up(
        &self,
        record: &InteractionRecord,
        outgoing: &Outgoing,
    ) -> Result<Option<SentMessage>, ApiError> {
        let path = format!("{}?wait=true", record.followups());
        self.call_by_token(record, Method::POST, &path, outgoing.body(outgoing.follow_up_payload(record.is_private)))
            .await
    }

    async fn call_by_token(
        &self,
        record: &InteractionRecord,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<Option<SentMessage>, ApiError> {
        match self.discord.api.ask(method, path, body).await {
            Ok(sent) => Ok(Some(sent)),
            Err(error) if error.refusal().is_some_and(Refusal::is_about_interaction) => {
                self.discord.interactions.mark_expired(record.id);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn edit(&self, message: &str, content: &Content) -> Result<Receipt, DeliveryError> {
        let outgoing = self.discord.outgoing(self.delivery, content).await?;
        let address =
            Address::parse(message).ok_or_else(|| DeliveryError::Gone(format!("`{message}` is not a message id")))?;
        self.change(address, &outgoing).await?;
        Ok(Receipt::of(message))
    }

    async fn change(&self, address: Address, outgoing: &Outgoing) -> Result<(), DeliveryError> {
        let body = || outgoing.body(outgoing.edit_payload());
        let gone = |why: &str| DeliveryError::Gone(why.to_owned());
        let message = match address {
            Address::Interaction(interaction, message) => {
                let Some(record) = self.valid_interaction(interaction).await else {
                    return Err(gone("the time to edit it is over"));
                };
                let path = record.message(&message.to_string());
                let changed = self.call_by_token(&record, Method::PATCH, &path, body()).await?;
                return changed.map(|_| ()).ok_or_else(|| gone("the time to edit it is over"));
            }
            Address::Direct(chat, message) => {
                let path = format!("channels/{chat}/messages/{message}");
                let changed = self.discord.api.call(Method::PATCH, &path, body()).await;
                return changed.map(|_| ()).map_err(classify_edit_error);
            }
            Address::Message(message) => message,
        };
        let error = match self.call_on_message(message, Method::PATCH, "", body).await {
            Ok(()) => {
                self.discord.sent.note(message, &outgoing.text, None);
                return Ok(());
            }
            Err(error) => error,
        };
        // An answer to a command can be edited by its token even if its channel is closed to us.
        let is_closed = error.refusal().is_some_and(Refusal::is_about_channel);
        if is_closed
            && let Some(record) =
                self.discord.interactions.of_turn(self.delivery.turn(), self.discord.clock.now()).await
            && self
                .call_by_token(&record, Method::PATCH, &record.message(&message.to_string()), body())
                .await?
                .is_some()
        {
            return Ok(());
        }
        Err(classify_edit_error(error))
    }

    async fn react(&self, message: &str, emoji: &str) -> Result<Receipt, DeliveryError> {
        let Some(message) = Snowflake::parse(message) else {
            // A command is not a message, so the emoji is sent as the answer.
            let content = Content { text: emoji.to_owned(), ..Content::default() };
            return self.send(&content, Some(message)).await;
        };
        self.set_reaction(message, emoji, true).await
    }

    async fn mark(&self, message: &str, emoji: &str, on: bool) -> Result<Receipt, DeliveryError> {
        match Snowflake::parse(message) {
            Some(message) => self.set_reaction(message, emoji, on).await,
            None => Err(DeliveryError::Unsupported("a command has no reactions".to_owned())),
        }
    }

    /// Puts a reaction of ours on a message, or takes it away.
    async fn set_reaction(&self, message: Snowflake, emoji: &str, on: bool) -> Result<Receipt, DeliveryError> {
        let Some(emoji) = reaction(emoji) else {
            return Err(DeliveryError::Refused("not a valid emoji".to_owned()));
        };
        let method = if on { Method::PUT } else { Method::DELETE };
        let tail = format!("/reactions/{emoji}/@me");
        self.call_on_message(message, method, &tail, || Body::Empty).await?;
        Ok(Receipt::of(message.to_string()))
    }

    async fn draft(&self, text: &str, message: Option<&str>) -> Result<Receipt, DeliveryError> {
        let Some(message) = message else {
            return Err(DeliveryError::Unsupported("the first draft must be a message".to_owned()));
        };
        let (chat, thread) = address::channels(self.delivery.conversation())?;
        let path = format!("channels/{}/messages/{message}", thread.unwrap_or(chat));
        if let Some(wait) = self.discord.api.last_call(&Method::PATCH, &path) {
            let detail = "the last edit that Discord allows now is left to the answer".to_owned();
            return Err(DeliveryError::NotSent { retry_after: Some(wait), detail });
        }
        // Only the first part is shown. The other parts follow when the answer is complete.
        let text = format::parts(text).into_iter().next().unwrap_or_default();
        self.edit(message, &Content { text, ..Content::default() }).await
    }

    async fn typing(&self) -> Result<Receipt, DeliveryError> {
        let (chat, thread) = address::channels(self.delivery.conversation())?;
        let path = |channel| format!("channels/{channel}/typing");
        let typed = self.discord.api.call(Method::POST, &path(thread.unwrap_or(chat)), Body::Empty).await;
        match typed {
            // The thread may be opened only with the answer.
            Err(error) if thread.is_some() && error.refusal().is_some_and(|it| it.code == code::UNKNOWN_CHANNEL) => {
                self.discord.api.call(Method::POST, &path(chat), Body::Empty).await?;
            }
            typed => {
                typed?;
            }
        }
        Ok(Receipt::of(self.delivery.id().to_string()))
    }

    async fn delete(&self, message: &str) -> Result<Receipt, DeliveryError> {
        let deleted = match Address::parse(message) {
            None => return Err(DeliveryError::Refused(format!("`{message}` is not a message id"))),
            Some(Address::Interaction(interaction, id)) => {
                let Some(record) = self.valid_interaction(interaction).await else {
                    return Err(DeliveryError::Refused("the time to delete it is over".to_owned()));
                };
                self.discord.api.call(Method::DELETE, &record.message(&id.to_string()), Body::Empty).await.map(|_| ())
            }
            Some(Address::Direct(chat, id)) => {
                let path = format!("channels/{chat}/messages/{id}");
                self.discord.api.call(Method::DELETE, &path, Body::Empty).await.map(|_| ())
            }
            Some(Address::Message(id)) => self.call_on_message(id, Method::DELETE, "", || Body::Empty).await,
        };
        match deleted {
            Err(error) if error.refusal().is_some_and(|it| it.status == 404) => {}
            deleted => deleted?,
        }
        Ok(Receipt::of(message))
    }

    fn note_sent(&self, sent: &SentMessage, outgoing: &Outgoing) -> Receipt {
        self.discord.sent.note(sent.id, &outgoing.text, None);
        Receipt::of(sent.id.to_string())
    }
}

/// Maps an error that says that the message can no longer be edited to `Gone`, so that a new message is sent.
fn classify_edit_error(error: ApiError) -> DeliveryError {
    match error.refusal() {
        Some(refusal) if refusal.is_gone() => DeliveryError::Gone(refusal.to_string()),
        _ => error.into(),
    }
}

/// An emoji in the form for a reaction's path; a custom emoji is `name:id`.
fn reaction(emoji: &str) -> Option<String> {
    let emoji = emoji.trim();
    let own = emoji.strip_prefix('<').and_then(|it| it.strip_suffix('>'));
    let emoji = own.map_or(emoji, |it| it.strip_prefix("a:").unwrap_or(it).trim_start_matches(':'));
    let is_one = !emoji.is_empty() && !emoji.contains(['/', '?', '#', '%']) && !emoji.contains(char::is_whitespace);
    is_one.then(|| emoji.to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("👍", Some("👍"))]
    #[case("<:party:42>", Some("party:42"))]
    #[case("<a:party:42>", Some("party:42"))]
    #[case("party:42", Some("party:42"))]
    #[case("../../guilds", None)]
    #[case("thumbs up", None)]
    #[case("", None)]
    fn an_emoji_is_one_segment_of_a_path(#[case] emoji: &str, #[case] expected: Option<&str>) {
        assert_eq!(reaction(emoji).as_deref(), expected);
    }
}
