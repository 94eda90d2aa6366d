//! A digest: what is open, with a question about one thing after the other, and what somebody presses below it.

use std::time::Duration;

use rejoinder_guard::{CancelledBy, Choices, Event, ObligationState, Reply, Settlement};

use super::{
    asks::name_of,
    command::{Answer, Call, Command, DecidedStep, Words},
};
use crate::{
    digest::{self, Button, Digest, SNOOZED},
    explain::text::rfc3339,
    ledger::{
        log::subject_of,
        trigger::{OperatorStep, TurnEvents},
    },
    loops::LoopKind,
    model::{
        event::EventKind,
        ids::TurnId,
        log::{LogEvent, NewLogEntry},
        people::PersonRole,
        question::{AskedQuestion, QuestionFilter},
        turn::TurnRecord,
        view::TurnStatus,
    },
    operations::{Actor, operation},
    ports::store::{StoreError, list::Origin, record::Remark},
    words::{age, excerpt, filled, plain},
};

/// How many characters of a message are told.
const EXCERPT: usize = 80;

/// How long the question about something is open.
const PATIENCE: Duration = Duration::from_hours(24);

/// How many open questions of a conversation are looked at.
const QUESTIONS: u32 = 100;

pub(crate) const DIGEST: Command = Command {
    name: Origin::DIGEST,
    texts: &[],
    arguments: 0,
    description: "Tell somebody what is open",
    is_recorded: false,
    act: |call| {
        Box::pin(async {
            match &call.turn.event.kind {
                EventKind::Digest { items, more, .. } => list(call, items, *more).await,
                EventKind::Choice { turn } => press(call, *turn).await,
                _ => Ok(Answer::of("approval_not_yours")),
            }
        })
    },
};

/// Something that a digest lists, and is still open.
struct Item {
    /// Its number in the digest, counted from 1.
    number: usize,
    turn: TurnRecord,
    kind: LoopKind,
    /// The question that waits, if it is one.
    question: Option<AskedQuestion>,
}

/// How something is answered.
enum Answering {
    /// The guard decides on this, which is called so in the audit.
    Step(&'static str, Event),
    /// The question is shown again.
    Again(AskedQuestion),
}

/// Lists what is open, and asks about the first of it.
async fn list(call: &Call<'_>, items: &[TurnId], more: usize) -> Result<Answer, StoreError> {
    let mut lines = Vec::new();
    let mut first = None;
    for (number, id) in (1..).zip(items) {
        if let Some(item) = Item::read(call, number, *id).await? {
            lines.push(format!("* {}", item.line(call)));
            first.get_or_insert(item);
        }
    }
    let Some(first) = first else { return Ok(Answer::of("digest_nothing")) };
    let count = (lines.len() + more).to_string();
    let mut text = vec![filled(call.say("digest"), &[("count", count)]), lines.join("\n")];
    if more > 0 {
        text.push(filled(call.say("digest_more"), &[("count", more.to_string())]));
    }
    Ok(Answer { closes: earlier(call).await?, ..Answer::saying(Words::Own(first.ask(text, call))) })
}

/// The turns with which earlier digests asked about something: what is said in words from now on is about this one.
async fn earlier(call: &Call<'_>) -> Result<Vec<TurnId>, StoreError> {
    let open = QuestionFilter::OpenBy(call.turn.conversation, Origin::DIGEST);
    let open = call.store.questions(open, QUESTIONS).await?;
    Ok(open.into_iter().map(|it| it.question.turn).collect())
}

/// Does what was pressed of the question with which a turn was answered, and asks about what comes next.
async fn press(call: &Call<'_>, asked: TurnId) -> Result<Answer, StoreError> {
    let question = call.store.questions(QuestionFilter::Of(asked), 1).await?.pop().map(|it| it.question);
    let pressed = question.and_then(|question| digest::pressed(&question.choices, &call.turn.event.text));
    let digest = Digest::of(call.store, call.turn).await?;
    let (Some((button, number)), Some(digest)) = (pressed, digest) else { return Ok(Answer::of("approval_over")) };
    let item = match digest.item(number) {
        Some(id) => Item::read(call, number, id).await?.filter(|item| item.is_seen_by(&digest, call)),
        None => None,
    };
    let (template, mut answer) = match item {
        Some(item) => match item.pressed(button, &digest, call).await? {
            Done::Shown(answer) => return Ok(answer),
            Done::Said(template, answer) => (template, answer),
        },
        None => ("digest_over", Answer::nothing()),
    };
    let said = filled(call.say(template), &[("number", number.to_string())]);
    answer.words = Words::Own(match next(call, &digest, number).await? {
        Some(next) => next.ask(vec![said], call),
        None => Reply::text(said),
    });
    Ok(answer)
}

/// What comes after a number in a digest, and is still open.
async fn next(call: &Call<'_>, digest: &Digest, number: usize) -> Result<Option<Item>, StoreError> {
    for (number, id) in (1..).zip(&digest.items).skip(number) {
        let item = Item::read(call, number, *id).await?;
        if let Some(item) = item.filter(|item| item.is_seen_by(digest, call)) {
            return Ok(Some(item));
        }
    }
    Ok(None)
}

/// Counts a press that is stored.
pub(super) fn count(entry: &NewLogEntry) {
    if let LogEvent::DigestPressed { button, .. } = entry.event {
        metrics::counter!("rejoinder_digest_presses_total", "button" => button).increment(1);
    }
}

/// What a press has done.
enum Done {
    /// This is the whole answer.
    Shown(Answer),
    /// This template says it.
    Said(&'static str, Answer),
}

impl Item {
    async fn read(call: &Call<'_>, number: usize, id: TurnId) -> Result<Option<Self>, StoreError> {
        let Some(turn) = digest::read(call.store, id).await? else { return Ok(None) };
        let state = turn.obligation.state();
        let kind = match state {
            ObligationState::Undeliverable { .. } => LoopKind::Failed,
            ObligationState::Settled(Settlement::Signal { .. }) => LoopKind::Asked,
            ObligationState::Settled(_) | ObligationState::Merged { .. } => return Ok(None),
            _ if turn.obligation.overdue_at().is_some_and(|at| at < call.now) => LoopKind::Late,
            _ if TurnStatus::of(&turn.obligation) == TurnStatus::Deferred => LoopKind::Deferred,
            _ => LoopKind::Open,
        };
        let mut question = None;
        if kind == LoopKind::Asked {
            let open = call.store.questions(QuestionFilter::OpenIn(turn.conversation), QUESTIONS).await?;
            question = open.into_iter().map(|it| it.question).find(|question| question.turn == id);
            if question.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(Self { number, turn, kind, question }))
    }

    /// Whether whoever presses may still see it.
    fn is_seen_by(&self, digest: &Digest, call: &Call<'_>) -> bool {
        let known = call.people.known();
        let role = call.turn.event.known_as(&known).map(|(role, _)| role);
        role == Some(PersonRole::Owner) || digest::is_theirs(&self.turn.event, digest.person, call.people)
    }

    fn text(&self) -> String {
        let text = self.question.as_ref().map_or(&self.turn.event.text, |question| &question.text);
        plain(&excerpt(text, EXCERPT))
    }

    fn line(&self, call: &Call<'_>) -> String {
        let Self { number, turn, .. } = self;
        let kind = call.say(match self.kind {
            LoopKind::Late => "digest_late",
            LoopKind::Deferred => "digest_deferred",
            LoopKind::Open => "digest_open",
            LoopKind::Asked => "digest_asked",
            LoopKind::Failed => "digest_failed",
        });
        let (since, who) = (age(call.now.since(turn.event.received_at)), name_of(&turn.event, call));
        format!("**{number}** {kind}, {since}: {} ({who}, {})", self.text(), turn.event.conversation.channel)
    }

    /// The question about it, after what else is said.
    fn ask(&self, mut said: Vec<String>, call: &Call<'_>) -> Reply {
        let values = [("number", self.number.to_string()), ("text", self.text())];
        said.push(filled(call.say("digest_about"), &values));
        let can_answer = self.answering(call).is_some();
        let buttons = Button::ALL.into_iter().filter(|button| can_answer || *button != Button::Answer);
        let options = buttons.map(|button| format!("{} {}", call.say(button.template()), self.number)).collect();
        let choices = Choices { options, free_text: false, expires: Some(call.now + PATIENCE) };
        Reply::question(said.join("\n\n"), choices)
    }

    /// How it is answered, if there is something to do for that besides waiting.
    fn answering(&self, call: &Call<'_>) -> Option<Answering> {
        let Self { turn, .. } = self;
        let has_channel = call.channels.get(&turn.event.conversation.channel).is_some();
        match self.kind {
            LoopKind::Asked => {
                let here = |question: &&AskedQuestion| question.conversation == call.turn.conversation;
                self.question.as_ref().filter(here).cloned().map(Answering::Again)
            }
            _ if !has_channel => None,
            LoopKind::Failed => Some(Answering::Step("retry", Event::Retried)),
            _ if turn.obligation.is_held() => Some(Answering::Step("resume", Event::Resumed)),
            _ if turn.obligation.may_be_hurried() => Some(Answering::Step("hurry", Event::Hurried)),
            _ => None,
        }
    }

    /// Does what a button says.
    async fn pressed(self, button: Button, digest: &Digest, call: &Call<'_>) -> Result<Done, StoreError> {
        let until = (button == Button::Snooze).then(|| rfc3339(call.now + SNOOZED));
        let event = LogEvent::DigestPressed { button: button.as_str(), person: digest.person, until };
        let entry = NewLogEntry { at: call.now, subject: subject_of(&self.turn), event };
        let mut answer = Answer::nothing();
        let mut decided = DecidedStep { step: None, log: vec![entry] };
        let (template, step) = match (button, self.answering(call)) {
            (Button::Answer, Some(Answering::Again(question))) => {
                let AskedQuestion { text, choices, free_text, expires_at, .. } = question;
                let choices = Choices { options: choices, free_text, expires: expires_at };
                answer.words = Words::Own(Reply::question(text, choices));
                answer.step = Some(decided);
                return Ok(Done::Shown(answer));
            }
            (Button::Answer, Some(Answering::Step(action, event))) => ("digest_tried", Some((action, event))),
            (Button::Answer, None) => ("digest_waits", None),
            (Button::Snooze, _) => ("digest_snoozed", None),
            (Button::Drop, _) if self.kind == LoopKind::Asked => {
                answer.closes = vec![self.turn.id];
                ("digest_dropped", None)
            }
            (Button::Drop, _) => {
                let action = if self.kind == LoopKind::Failed { "discard" } else { "cancel" };
                let by = CancelledBy::Operator("dropped from a digest".to_owned());
                ("digest_dropped", Some((action, Event::Cancelled { by })))
            }
        };
        if let Some((action, event)) = step {
            decided.step = Some(self.step(action, call).await?);
            answer.turn_events = vec![TurnEvents { turn: self.turn, events: vec![event] }];
        }
        answer.step = Some(decided);
        Ok(Done::Said(template, answer))
    }

    /// What is done with its turn, as it is stored.
    async fn step(&self, action: &str, call: &Call<'_>) -> Result<OperatorStep, StoreError> {
        let known = call.people.known();
        let event = &call.turn.event;
        let name = event.known_as(&known).map(|(_, name)| format!("{name} ({})", event.identity()));
        let by = Actor { name: name.unwrap_or_default(), reason: None, channels: None, answer: None };
        let (id, at) = (self.turn.id, call.now);
        let remark = Remark { turn: id, at, kind: action.to_owned(), detail: format!("by {}, from a digest", by.name) };
        Ok(OperatorStep {
            operation: Some(operation(&by, action, id, subject_of(&self.turn), at)),
            remark,
            deliveries: call.store.deliveries(id).await?,
            elsewhere: None,
        })
    }
}
