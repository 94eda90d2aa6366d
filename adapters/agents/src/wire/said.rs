//! What an agent has said so far in a run, and the outcome of it.

use std::time::Duration;

use rejoinder_core::{Activity, AgentError, AgentTurn, EmbeddedFiles, Outcome, Reply, RunEvents, SendResult};
use tokio::time::Instant;

use super::{
    answer::WireObject,
    checked::CheckedObject,
    ends::{CheckedMessage, SaidSoFar},
};
use crate::{
    attachments::leave_out,
    report::{AnswerUpdate, Report, VisibleText, cut},
};

/// The largest object, in bytes: room for a reply with files.
pub(crate) const MAX_OBJECT: usize = 16 * 1024 * 1024;

/// How many objects an answer may have.
const MAX_OBJECTS: usize = 100_000;

/// Reads an answer, reports it while it arrives, and has its outcome at the end. Errors end the run.
pub(crate) struct Said<'a> {
    /// For the log.
    agent: &'a str,
    turn: &'a AgentTurn,
    events: &'a RunEvents,
    began: Instant,
    report: Report<'a>,
    /// Without the files that it embeds.
    text: String,
    embedded: EmbeddedFiles,
    visible: VisibleText,
    objects: usize,
    is_sent: bool,
    has_warned: bool,
    outcome: Option<Outcome>,
}

impl<'a> Said<'a> {
    pub(crate) fn of(agent: &'a str, turn: &'a AgentTurn, events: &'a RunEvents) -> Self {
        Self {
            agent,
            turn,
            events,
            began: Instant::now(),
            report: Report::to(events),
            text: String::new(),
            embedded: EmbeddedFiles::default(),
            visible: VisibleText::new(false),
            objects: 0,
            is_sent: false,
            has_warned: false,
            outcome: None,
        }
    }

    /// Whether a message that was sent became the turn's answer.
    pub(crate) const fn is_sent(&self) -> bool {
        self.is_sent
    }

    /// Whether a part of the answer was said: text, or a message that was sent.
    pub(crate) const fn has_part(&self) -> bool {
        self.is_sent || !self.text.is_empty()
    }

    /// Takes back what was said: another agent begins anew. What was sent stays sent.
    pub(crate) async fn begin_again(&mut self) {
        self.rewrite("").await;
        self.report.next(false);
        (self.objects, self.has_warned, self.outcome) = (0, false, None);
    }

    /// Whether the outcome is known: nothing more is to be read.
    pub(crate) const fn has_ended(&self) -> bool {
        self.outcome.is_some()
    }

    /// After how much of the answer an error came, for its text.
    pub(crate) fn after(&self) -> String {
        match self.visible.shown {
            0 => String::new(),
            shown => format!(" after {shown} characters"),
        }
    }

    /// Reads more of the answer's text.
    pub(crate) async fn text(&mut self, piece: &str) {
        if self.has_ended() || self.turn.person.seal_to.is_some() {
            return;
        }
        let piece = self.embedded.push(piece);
        let (kept, is_cut) = cut(&piece, self.text.len());
        let mut update = AnswerUpdate::default();
        self.add(kept, &mut update);
        self.report.update(update).await;
        if is_cut || self.embedded.is_too_much() {
            self.cut_off().await;
        }
    }

    /// Reads an object of the answer, as JSON.
    ///
    /// # Errors
    /// When it is not as described, when there are too many, and when the agent says that it failed.
    pub(crate) async fn object(&mut self, json: &str) -> Result<(), AgentError> {
        if self.has_ended() {
            return Ok(());
        }
        let object = self.check(json).map_err(AgentError::Broken)?;
        if !self.has_room_for(1) {
            return Err(AgentError::Broken(format!("it has more than {MAX_OBJECTS} objects")));
        }
        self.say(object).await
    }

    /// Whether so many more objects may be said.
    pub(crate) const fn has_room_for(&self, more: usize) -> bool {
        more <= MAX_OBJECTS.saturating_sub(self.objects)
    }

    /// Reads an object, and says nothing of it yet.
    ///
    /// # Errors
    /// When it is not as described.
    pub(crate) fn check(&self, json: &str) -> Result<CheckedObject, String> {
        let now = self.turn.now + Duration::from_secs(self.began.elapsed().as_secs());
        WireObject::read(json)?.check(self.turn, now)
    }

    /// Says an object. Does nothing once the outcome is known.
    ///
    /// # Errors
    /// When the agent says that it failed.
    pub(crate) async fn say(&mut self, object: CheckedObject) -> Result<(), AgentError> {
        if self.has_ended() {
            return Ok(());
        }
        self.objects += 1;
        let CheckedObject { rewrite, text, tool, activity, usage, cost, title, send, mut files, end, unknown } = object;
        if let Some(key) = unknown.filter(|_| !self.has_warned) {
            tracing::warn!(agent = self.agent, turn_id = %self.turn.turn, key, "an object of the answer has an unknown key");
            self.has_warned = true;
        }
        if let Some(text) = rewrite {
            self.rewrite(&text).await;
        }
        if let Some(text) = text {
            self.text(&text).await;
        }
        if let Some(Activity { title, state }) = activity {
            self.events.activity(title, state).await;
        }
        if let Some(call) = tool {
            self.events.tool(call).await;
        }
        if let Some(usage) = usage {
            self.report.update(AnswerUpdate { usage: Some(usage), ..AnswerUpdate::default() }).await;
        }
        match cost {
            Some(Ok(cost)) => self.report.cost(cost).await,
            Some(Err(why)) if !self.has_warned => {
                tracing::warn!(agent = self.agent, turn_id = %self.turn.turn, %why, "a cost that an agent reports is not used");
                self.has_warned = true;
            }
            Some(Err(_)) | None => {}
        }
        if let Some(title) = title {
            self.events.title(title).await;
        }
        if let Some(message) = send {
            self.send(message).await;
        }
        if let Some(end) = end
            && !self.has_ended()
        {
            self.end_text().await;
            let outcome = end.outcome(self.so_far(), &mut files);
            leave_out(self.agent, self.turn, self.events, files.into_left_out()).await;
            self.outcome = Some(self.bounded(outcome?).await);
        }
        Ok(())
    }

    /// The outcome of an answer that is text: what was said.
    ///
    /// # Errors
    /// When the answer is to be sealed, which a text is not.
    pub(crate) async fn into_text(mut self) -> Result<Outcome, AgentError> {
        if let Some(outcome) = self.outcome.take() {
            return Ok(outcome);
        }
        if self.turn.person.seal_to.is_some() {
            return Err(AgentError::Broken("it is a text in the clear, and is to be sealed".to_owned()));
        }
        self.end_text().await;
        Ok(self.so_far().outcome())
    }

    /// The outcome of an answer that consists of objects.
    ///
    /// # Errors
    /// When none of them ended the run.
    pub(crate) fn into_outcome(self) -> Result<Outcome, AgentError> {
        let after = self.after();
        self.outcome.ok_or_else(|| {
            AgentError::Broken(format!(
                "it ended{after} without an object that ends the run, such as {{\"end\": true}}"
            ))
        })
    }

    fn add(&mut self, text: &str, update: &mut AnswerUpdate) {
        self.text.push_str(text);
        self.visible.push(text, update);
        self.visible.count(update);
    }

    async fn rewrite(&mut self, text: &str) {
        self.embedded = EmbeddedFiles::default();
        let text = self.embedded.push(text);
        let (kept, is_cut) = cut(&text, 0);
        let mut update = AnswerUpdate { replaces_shown: self.visible.shown > 0, ..AnswerUpdate::default() };
        self.text.clear();
        self.visible = VisibleText::new(false);
        self.add(kept, &mut update);
        self.report.update(update).await;
        if is_cut {
            self.cut_off().await;
        }
    }

    /// Shows the rest of the text.
    async fn end_text(&mut self) {
        let (rest, mut update) = (self.embedded.end(), AnswerUpdate::default());
        self.add(&rest, &mut update);
        update.show.push_str(&self.visible.end());
        self.report.update(update).await;
        let left_out = self.embedded.take_left_out();
        leave_out(self.agent, self.turn, self.events, left_out).await;
    }

    /// Ends an answer whose text is too long.
    async fn cut_off(&mut self) {
        self.end_text().await;
        let notice = self.cut_off_notice();
        self.text.push_str(&notice);
        self.report.text(notice).await;
        self.outcome = Some(self.so_far().outcome());
    }

    fn cut_off_notice(&self) -> String {
        tracing::warn!(agent = self.agent, turn_id = %self.turn.turn, "the answer is too long, its end is cut off");
        format!("\n\n{}", self.turn.place.cut_off)
    }

    async fn send(&mut self, message: CheckedMessage) {
        let reply = self.bounded_reply(message.into_reply(SaidSoFar::default())).await;
        if self.events.send(reply).await == SendResult::Claimed {
            self.is_sent = true;
        }
    }

    fn so_far(&mut self) -> SaidSoFar {
        SaidSoFar { text: self.text.clone(), files: self.embedded.take_files(), is_sent: self.is_sent }
    }

    async fn bounded(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Reply(reply) => Outcome::Reply(self.bounded_reply(reply).await),
            other => other,
        }
    }

    async fn bounded_reply(&self, mut reply: Reply) -> Reply {
        leave_out(self.agent, self.turn, self.events, EmbeddedFiles::take_from(&mut reply)).await;
        let (kept, is_cut) = cut(&reply.text, 0);
        if is_cut {
            reply.text = kept.to_owned() + &self.cut_off_notice();
        }
        reply
    }
}
