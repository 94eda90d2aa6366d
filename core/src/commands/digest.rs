//! A digest: the open turns, with a question about one after the other, and the presses of its buttons.

use std::time::Duration;

use rejoinder_guard::{Choices, Event, Reply};

use super::{
    asks::{decide_approval, may_decide, name_of, told_wish},
    command::{Answer, Call, Command, Filled, Words},
};
use crate::{
    base::{
        verbatim::verbatim,
        words::{age, excerpt, filled, plain, rfc3339},
    },
    conversations::loops::LoopKind,
    events::{TurnEvents, subjects::subject_of},
    ledger::trigger::OperatorStep,
    model::{
        Approval, ApprovalFilter, AskedQuestion, ConversationRef, DeliveryRecord, EventKind, LogEvent, NewLogEntry,
        PersonId, PersonRole, QuestionFilter, SenderKind, TurnId, TurnRecord,
    },
    operator::actor::{Actor, operation, sent_to},
    ports::{Origin, Remark, StoreError},
    questions::digest::{self, Button, Digest, FROM_DIGEST, Press, QUESTIONS, SNOOZED, letter},
};

/// How many characters of a message are told.
const EXCERPT: usize = 80;

/// How long the question about something is open.
const PATIENCE: Duration = Duration::from_hours(24);

pub(crate) const DIGEST: Command = Command::notice(Origin::DIGEST, "Tell somebody what is open", |call| {
    Box::pin(async {
        match &call.turn.event.kind {
            EventKind::Digest { person, items, more } => list(call, *person, items, *more).await,
            EventKind::Choice { .. } => press(call).await,
            _ => Ok(Answer::of("approval_not_yours")),
        }
    })
});

/// Its question is an agent's: what is picked from it is for an agent.
pub(crate) const ASKS_AGAIN: Command =
    Command::notice(Origin::ASKS_AGAIN, "Show a question again that somebody was asked", |call| {
        Box::pin(ask_again(call))
    });

/// An item of a digest that is still open.
struct Item {
    /// What stands for it.
    letter: char,
    turn: TurnRecord,
    kind: LoopKind,
    /// The approval that waits, if the reader may decide it.
    approval: Option<Approval>,
    /// Whether the reader may drop it: owners may drop anything, others their own turns.
    may_drop: bool,
    /// The question that waits, if it is one.
    question: Option<AskedQuestion>,
    /// Its deliveries, if it is a dead letter or held.
    deliveries: Vec<DeliveryRecord>,
}

/// What the guard decides on when something is answered.
struct Step {
    action: &'static str,
    event: Event,
}

/// Lists the open turns, and asks about the first.
async fn list(call: &Call<'_>, person: PersonId, items: &[TurnId], more: usize) -> Result<Answer, StoreError> {
    let mut open = Vec::new();
    for (position, id) in items.iter().enumerate() {
        open.extend(Item::read(call, position, *id, person, decides(call, person)).await?);
    }
    let mut text = Vec::new();
    if !open.is_empty() {
        text.push(filled(call.say("digest"), &[("count", (open.len() + more).to_string())]));
        let lines: Vec<_> = open.iter().map(|item| format!("* {}", item.line(call))).collect();
        text.push(lines.join("\n"));
    }
    if more > 0 {
        text.push(filled(call.say("digest_more"), &[("count", more.to_string())]));
    }
    let words = match open.first() {
        Some(first) => Words::Own(first.ask(text, call).await?),
        None if more > 0 => Words::Own(Reply::text(text.join("\n\n"))),
        None => Answer::of("digest_nothing").words,
    };
    Ok(Answer { closes: earlier(call).await?, ..Answer::saying(words) })
}

/// The turns with the questions of earlier digests: words from now on are about this one.
async fn earlier(call: &Call<'_>) -> Result<Vec<TurnId>, StoreError> {
    let open = QuestionFilter::OpenBy(call.turn.conversation, Origin::DIGEST);
    let open = call.questions.questions(open, QUESTIONS).await?;
    Ok(open.into_iter().map(|it| it.question.turn).collect())
}

async fn pressed(call: &Call<'_>) -> Result<Option<Press>, StoreError> {
    let pressed = digest::press(&*call.questions, &call.turn.event).await?;
    let known = call.people.known();
    Ok(pressed.filter(|press| digest::may_press(&call.turn.event, press.digest.person, &known)))
}

/// Acts on a press, and asks about the next item.
async fn press(call: &Call<'_>) -> Result<Answer, StoreError> {
    let Some(press) = pressed(call).await? else { return Ok(Answer::of("approval_over")) };
    let (digest, position) = (&press.digest, press.position);
    let answer = match Item::of(call, digest, position).await? {
        Some(item) => item.press(&press, call).await?,
        None => Answer::of("digest_over"),
    };
    let letter = || vec![("letter", letter(position).to_string())];
    let said = match answer.words {
        Words::Templates(lines) => {
            let line = |Filled { template, values }| {
                call.fill_in(Filled { template, values: [values, letter()].concat() }, None)
            };
            lines.into_iter().map(line).collect::<Vec<_>>().join("\n")
        }
        Words::Lines(_) | Words::Own(_) => String::new(),
    };
    let words = Words::Own(match next(call, digest, position).await? {
        Some(next) => next.ask(vec![said], call).await?,
        None => Reply::text(said),
    });
    Ok(Answer { words, ..answer })
}

/// Shows a question again, in place of the message that asked it before.
async fn ask_again(call: &Call<'_>) -> Result<Answer, StoreError> {
    let Some(Press { digest, position, .. }) = pressed(call).await? else { return Ok(Answer::of("approval_over")) };
    let item = Item::of(call, &digest, position).await?;
    let Some((item, asked)) = item.and_then(|mut item| item.question.take().map(|asked| (item, asked))) else {
        return Ok(Answer::filled("digest_over", vec![("letter", letter(position).to_string())]));
    };
    let AskedQuestion { text, choices, free_text, expires_at, .. } = asked;
    let choices = Choices { options: choices, free_text, expires: expires_at };
    let words = Words::Own(Reply::question(text, choices));
    let log = vec![item.log_entry(Button::Answer, &digest, call)];
    Ok(Answer { closes: vec![item.turn.id], log, ..Answer::saying(words) })
}

/// The next open item after a position in a digest.
async fn next(call: &Call<'_>, digest: &Digest, position: usize) -> Result<Option<Item>, StoreError> {
    for position in position + 1..digest.items.len() {
        if let Some(item) = Item::of(call, digest, position).await? {
            return Ok(Some(item));
        }
    }
    Ok(None)
}

pub(super) fn button(entry: &NewLogEntry) -> Option<&'static str> {
    if let LogEvent::DigestPressed { button, .. } = entry.event { Some(button) } else { None }
}

pub(super) fn count(button: &'static str) {
    metrics::counter!("rejoinder_digest_presses_total", "button" => button).increment(1);
}

impl Item {
    /// The item at this number of a digest, if it is open and the reader may still see it.
    async fn of(call: &Call<'_>, digest: &Digest, position: usize) -> Result<Option<Self>, StoreError> {
        let Some(id) = digest.items.get(position) else { return Ok(None) };
        let may_decide = may_decide(&call.turn.event, digest.person, call.settings, &call.people.known());
        Self::read(call, position, *id, digest.person, may_decide).await
    }

    async fn read(
        call: &Call<'_>,
        position: usize,
        id: TurnId,
        person: PersonId,
        may_decide: bool,
    ) -> Result<Option<Self>, StoreError> {
        let Some(turn) = call.store.readable_turn(id).await? else { return Ok(None) };
        let Some(kind) = LoopKind::of(&turn.obligation, call.now) else { return Ok(None) };
        let question = match kind {
            LoopKind::Asked => digest::open_question(&*call.questions, &turn).await?,
            _ => None,
        };
        if kind == LoopKind::Asked && question.is_none() {
            return Ok(None);
        }
        let approval = if may_decide && turn.obligation.decide_by().is_some() {
            let asked = call.approvals.list(ApprovalFilter::Of(id)).await?.pop();
            asked.filter(|approval| approval.is_open(call.now) && approval.request.choices.is_none())
        } else {
            None
        };
        let is_sent_on = kind == LoopKind::Failed || turn.obligation.is_held();
        let deliveries = if is_sent_on { call.outbox.deliveries(id).await? } else { Vec::new() };
        let is_theirs = digest::is_theirs(&turn.event.sender, &turn.event.conversation, person, &call.people);
        let may_drop = is_theirs || is_owner(call);
        if !may_drop && approval.is_none() {
            return Ok(None);
        }
        Ok(Some(Self { letter: letter(position), turn, kind, approval, may_drop, question, deliveries }))
    }

    fn text(&self) -> String {
        if let Some(approval) = &self.approval {
            return verbatim(&excerpt(&approval.request.action, EXCERPT));
        }
        let event = &self.turn.event;
        let text = self.question.as_ref().map_or_else(|| event.told(), |question| question.text.as_str());
        let of_file = || event.attachments.first().map_or("…", |file| file.name.as_str());
        plain(&excerpt(if text.trim().is_empty() { of_file() } else { text }, EXCERPT))
    }

    fn line(&self, call: &Call<'_>) -> String {
        let event = &self.turn.event;
        let kind = call.say(match self.kind {
            _ if self.approval.is_some() => "digest_approval",
            LoopKind::Overdue => "digest_late",
            LoopKind::Deferred => "digest_deferred",
            LoopKind::Open => "digest_open",
            LoopKind::Asked => "digest_asked",
            LoopKind::Failed => "digest_failed",
        });
        let (since, channel) = (age(call.now.since(event.received_at)), &event.conversation.channel);
        let address = match event.sender.kind {
            SenderKind::Operator => channel.to_string(),
            _ => format!("{}, {channel}", name_of(event, call)),
        };
        format!("**{}** {kind}, {since}: {} ({address})", self.letter, self.text())
    }

    /// The question about it, after other words.
    async fn ask(&self, mut said: Vec<String>, call: &Call<'_>) -> Result<Reply, StoreError> {
        let values = [("letter", self.letter.to_string()), ("text", self.text())];
        said.push(filled(call.say("digest_about"), &values));
        if let Some(approval) = &self.approval {
            said.push(told_wish(approval, call).await?);
        }
        let buttons = match &self.approval {
            Some(_) if self.may_drop => Button::DECIDE,
            Some(_) => Button::DECIDE_ONLY,
            None if self.is_asked_here(call) || self.answering(call).is_some() => Button::ANSWER,
            None => Button::WAIT,
        };
        let options = buttons.iter().map(|button| format!("{} {}", call.say(button.template()), self.letter)).collect();
        let choices = Choices { options, free_text: false, expires: Some(call.now + PATIENCE) };
        Ok(Reply::question(said.join("\n\n"), choices))
    }

    /// Whether it is a question that was asked in the chat of the digest.
    fn is_asked_here(&self, call: &Call<'_>) -> bool {
        self.question.as_ref().is_some_and(|asked| asked.conversation == call.turn.conversation)
    }

    /// How it is answered, if anything but waiting answers it.
    fn answering(&self, call: &Call<'_>) -> Option<Step> {
        let Self { turn, deliveries, .. } = self;
        let has_channel = |to: &ConversationRef| call.channels.get(&to.channel).is_some();
        let step = |action, event| Some(Step { action, event });
        match self.kind {
            LoopKind::Asked => None,
            LoopKind::Failed if !has_channel(sent_to(turn, deliveries)) => None,
            LoopKind::Failed => step("retry", Event::Retried),
            _ if !has_channel(&turn.event.conversation) => None,
            // An operator holds it.
            _ if turn.obligation.is_held() => {
                is_owner(call).then_some(Step { action: "resume", event: Event::Resumed })
            }
            _ if turn.obligation.may_be_hurried() && self.may_defer_again(call) => step("hurry", Event::Hurried),
            _ => None,
        }
    }

    /// Whether an agent that is asked early may say that it is too early.
    fn may_defer_again(&self, call: &Call<'_>) -> bool {
        self.turn.obligation.deferrals_left(&call.settings.policy(&self.turn)) > 0
    }

    /// Acts on a button, and tells the result.
    async fn press(self, press: &Press, call: &Call<'_>) -> Result<Answer, StoreError> {
        let Some(button) = press.button(self.may_drop) else { return Ok(Answer::of("approval_over")) };
        let log = vec![self.log_entry(button, &press.digest, call)];
        let telling = |template| Answer { log: log.clone(), ..Answer::of(template) };
        Ok(match button {
            Button::Approve | Button::Decline => match self.shown_approval(&press.question, call).await? {
                Some(approval) => {
                    let decided =
                        decide_approval(call, approval.id, Some(usize::from(button == Button::Decline))).await?;
                    Answer { log, ..decided }
                }
                None => Answer::of("approval_over"),
            },
            Button::Answer => match self.answering(call) {
                Some(step) => self.take(step, telling("digest_tried"), call),
                None => telling("digest_waits"),
            },
            Button::Snooze => telling("digest_snoozed"),
            Button::Drop if self.kind == LoopKind::Asked => {
                Answer { closes: vec![self.turn.id], ..telling("digest_dropped") }
            }
            Button::Drop => {
                let action = if self.kind == LoopKind::Failed { "discard" } else { "cancel" };
                let event = Event::GivenUp { reason: "dropped from a digest".to_owned(), say: None };
                self.take(Step { action, event }, telling("digest_dropped"), call)
            }
        })
    }

    /// The approval, if it is the one that a question showed: the agent may have asked for another one since.
    async fn shown_approval(&self, question: &AskedQuestion, call: &Call<'_>) -> Result<Option<&Approval>, StoreError> {
        let deliveries = call.outbox.deliveries(question.turn).await?;
        let shown_at = deliveries.iter().find(|it| it.claim == question.claim).map(|it| it.created_at);
        Ok(self.approval.as_ref().filter(|approval| shown_at.is_some_and(|at| approval.asked_at <= at)))
    }

    fn log_entry(&self, button: Button, digest: &Digest, call: &Call<'_>) -> NewLogEntry {
        let until = (button == Button::Snooze).then(|| rfc3339(call.now + SNOOZED));
        let event = LogEvent::DigestPressed { button: button.as_str(), person: digest.person, until };
        NewLogEntry { at: call.now, subject: subject_of(&self.turn), event }
    }

    /// Lets the guard decide on an event of its turn, as for an operator.
    fn take(self, Step { action, event }: Step, answer: Answer, call: &Call<'_>) -> Answer {
        let (known, presser) = (call.people.known(), &call.turn.event);
        let name = presser.known_as(&known).map(|(_, name)| format!("{name} ({})", presser.identity()));
        let by = Actor::named(name.unwrap_or_default());
        let (id, at) = (self.turn.id, call.now);
        let detail = format!("by {}{FROM_DIGEST}", by.name);
        let step = OperatorStep {
            operation: Some(operation(&by, action, id, subject_of(&self.turn), at)),
            remark: Remark { turn: id, at, kind: action.to_owned(), detail },
            deliveries: self.deliveries,
            elsewhere: None,
            said: None,
        };
        Answer { turn_events: vec![TurnEvents { turn: self.turn, events: vec![event] }], step: Some(step), ..answer }
    }
}

/// Whether the person of a digest is an approver.
fn decides(call: &Call<'_>, person: PersonId) -> bool {
    let known = call.people.known();
    known.identities(person).iter().any(|one| call.settings.approvals.is_approver(one, &known))
}

fn is_owner(call: &Call<'_>) -> bool {
    let (known, event) = (call.people.known(), &call.turn.event);
    let role = match event.kind {
        EventKind::Digest { person, .. } => {
            known.identities(person).first().and_then(|one| known.get(&one.channel, &one.id)).map(|(role, _)| role)
        }
        _ => event.known_as(&known).map(|(role, _)| role),
    };
    role == Some(PersonRole::Owner)
}
