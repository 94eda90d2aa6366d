mod speakers;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use rejoinder_guard::{
    Body, CancelledBy, Cause, Effect, Event, Expectation, Ladder, Obligation, Outcome, Policy, Reply, Rung, Signal,
    SignalKind, Timestamp,
};
use uuid::Uuid;

use super::*;
use crate::{
    conformance::answer,
    model::{
        Action, Brief, ChannelId, ChatKind, Content, ConversationId, ConversationRef, DeliveryId, DeliveryRecord,
        DeliveryState, Directed, Handler, InboundEvent, Sender, SenderKind, SessionId, TurnRecord, Usage,
    },
    ports::{AttemptRecord, Dossier, Remark, RunRecord},
};

/// Plays a turn: gives events to the guard and records the effects as the core does, on a platform with receipts.
struct Life {
    policy: Policy,
    dossier: Dossier,
    now: Timestamp,
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn uuid(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

impl Life {
    fn new() -> Self {
        let ladder = Cause::ALL.into_iter().fold(Ladder::empty(), |ladder, cause| {
            ladder.with(cause, vec![Rung::Say(if cause == Cause::Error { "failed" } else { "silent" }.to_owned())])
        });
        Self::with(Policy { ladder, ..Policy::default() }, Expectation::Answer)
    }

    fn with(policy: Policy, owed: Expectation) -> Self {
        let now = Timestamp::from_millis(0);
        let event = InboundEvent {
            directed: if owed == Expectation::Answer { Directed::DirectChat } else { Directed::Ambient },
            text: "What is the status?".to_owned(),
            ..InboundEvent::new(
                ConversationRef::new(ChannelId::new("telegram", "main"), "7"),
                ChatKind::Direct,
                "1".to_owned(),
                Sender { id: "7".to_owned(), name: Some("Ada".to_owned()), username: None, kind: SenderKind::Person },
                now,
            )
        };
        let turn = TurnRecord {
            seq: 1,
            id: uuid(1).into(),
            version: 1,
            obligation: Obligation::open(owed, &policy, None, now),
            conversation: ConversationId::from(uuid(2)),
            session: SessionId::from(uuid(3)),
            model: None,
            handler: Handler::Agent("main".into()),
            rule: None,
            runs: 0,
            has_history: false,

            event: Arc::new(event),
        };
        let dossier = Dossier {
            turn,
            accepted_at: now,
            ended_at: None,
            absent: false,
            paused: None,
            runs: Vec::new(),
            contents: BTreeMap::new(),
            deliveries: Vec::new(),
            attempts: Vec::new(),
            remarks: Vec::new(),
            files: BTreeSet::new(),
        };
        Self { policy, dossier, now }
    }

    fn after(mut self, duration: Duration) -> Self {
        self.now = self.now + duration;
        self
    }

    fn event(mut self, event: Event) -> Self {
        let now = self.now;
        let id = self.dossier.turn.id;
        for effect in self.dossier.turn.obligation.on(event, &self.policy, now).effects {
            match effect {
                Effect::Run { agent, .. } => {
                    let number = u32::try_from(self.dossier.runs.len()).unwrap() + 1;
                    let agent = agent.map_or_else(|| "main".into(), Into::into);
                    let (ended_at, end, detail, usage, cost) = (None, None, None, None, None);
                    self.dossier.runs.push(RunRecord {
                        number,
                        handler: Handler::Agent(agent),
                        started_at: now,
                        ended_at,
                        end,
                        detail,
                        usage,
                        cost,
                        member: None,
                        holder: None,
                    });
                }
                Effect::Send(cleared) => self.dossier.deliveries.push(delivery(cleared.get(), now)),
                Effect::Suppress(suppressed) => {
                    let what = format!("{:?}", suppressed.what).to_lowercase();
                    let kept = suppressed.text.map(|text| format!(": {text}")).unwrap_or_default();
                    let detail = format!("{what} {}{kept}", suppressed.reason);
                    self.dossier.remarks.push(Remark { turn: id, at: now, kind: "suppressed".to_owned(), detail });
                }
                Effect::DeadLetter { reason } => {
                    let kind = "dead_letter".to_owned();
                    self.dossier.remarks.push(Remark { turn: id, at: now, kind, detail: reason });
                }
                Effect::Withdraw { claim } => {
                    for delivery in self.dossier.deliveries.iter_mut().filter(|one| one.claim == claim) {
                        delivery.state = DeliveryState::Withdrawn;
                        delivery.error = Some("a better signal came before it was sent".to_owned());
                    }
                }
                Effect::ToMerged { .. }
                | Effect::RunAgain
                | Effect::AskApproval { .. }
                | Effect::ApprovalExpired
                | Effect::ApprovalDropped
                | Effect::RunGoesOn
                | Effect::RunContinues
                | Effect::StopRun
                | Effect::Resend { .. }
                | Effect::SendAgain { .. }
                | Effect::Hold
                | Effect::Release
                | Effect::Draft(_) => {}
            }
        }
        if self.dossier.turn.obligation.state().is_final() && self.dossier.ended_at.is_none() {
            self.dossier.ended_at = Some(now);
        }
        self
    }

    fn begins(self) -> Self {
        self.event(Event::Begin)
    }

    fn run_ends(mut self, end: &str, detail: Option<&str>) -> Self {
        let run = self.dossier.runs.last_mut().unwrap();
        run.ended_at = Some(self.now);
        run.end = Some(end.to_owned());
        run.detail = detail.map(ToOwned::to_owned);
        self
    }

    fn answers(self, text: &str) -> Self {
        self.run_ends("reply", None).event(Event::Outcome(Outcome::Reply(Reply::text(text))))
    }

    fn fails(self, why: &str) -> Self {
        self.run_ends("failed", Some(why)).event(Event::Failed(why.to_owned()))
    }

    /// An attempt on the latest delivery ends.
    fn attempted(mut self, result: &str, detail: &str, event: impl FnOnce(u32) -> Event) -> Self {
        let now = self.now;
        let delivery = self.dossier.deliveries.last_mut().unwrap();
        delivery.attempts += 1;
        let (number, claim, id) = (delivery.attempts, delivery.claim, delivery.id);
        delivery.state = match result {
            "delivered" => DeliveryState::Delivered,
            "refused" => DeliveryState::Refused,
            _ => DeliveryState::Pending,
        };
        delivery.next_attempt_at = now + secs(5);
        self.dossier.attempts.push(AttemptRecord {
            delivery: id,
            number,
            started_at: now,
            ended_at: Some(now),
            result: Some(result.to_owned()),
            detail: Some(detail.to_owned()),
        });
        self.event(Event::Attempted { claim }).event(event(claim))
    }

    fn delivered(self, message: &str) -> Self {
        self.attempted("delivered", message, |claim| Event::Delivered { claim, messages: vec![message.to_owned()] })
    }

    fn explained(&self) -> String {
        explain(&self.dossier, self.now).to_string()
    }
}

fn delivery(signal: &Signal, now: Timestamp) -> DeliveryRecord {
    let text = match &signal.body {
        Body::Reply(reply) => reply.text.clone(),
        Body::Say(name) => format!("Text of {name}."),
        Body::Ask(name) => format!("Question {name}?"),
        Body::Wait(action) => format!("Waits: {action}."),
        Body::Question { text, .. } => text.clone(),
        Body::Defer { note, .. } => note.clone().unwrap_or_else(|| "Still working on this.".to_owned()),
        Body::React(emoji) => emoji.clone(),
    };
    let action = match signal.kind() {
        SignalKind::Reaction => Action::React { message: None, emoji: text },
        SignalKind::Reply | SignalKind::Deferral => {
            Action::Send { content: Content { text, ..Content::default() }, reply_to: None }
        }
    };
    let chat = ConversationRef::new(ChannelId::new("telegram", "main"), "7");
    DeliveryRecord {
        id: DeliveryId::from(uuid(100 + u128::from(signal.claim))),
        claim: signal.claim,
        signal: signal.kind(),
        via: signal.via.clone(),
        action,
        ..answer(uuid(1).into(), ConversationId::from(uuid(2)), chat, "", now)
    }
}

#[test]
fn an_answer_is_a_short_story() {
    let mut life = Life::new().begins().after(secs(2)).answers("All is well.").delivered("42");
    life.dossier.runs[0].usage = Some(Usage { input_tokens: 120, output_tokens: 8 });

    assert_eq!(
        life.explained(),
        "\
Answered with a reply by the agent, 2 s after it was accepted.

Owed: An answer, because it was sent in a direct chat.

  1970-01-01T00:00:00.000Z  Accepted on telegram.main from Ada: “What is the status?”
  1970-01-01T00:00:00.000Z  Run 1: given to `main`.
  1970-01-01T00:00:02.000Z  Run 1 ended after 2 s: it answered. It read 120 tokens and wrote 8.
  1970-01-01T00:00:02.000Z  The agent's answer is cleared: “All is well.”
  1970-01-01T00:00:02.000Z  Attempt 1: the platform acknowledged it as 42.

Next: Nothing more: the turn is settled."
    );
}

#[test]
fn where_the_row_is_the_receipt_it_says_so() {
    let mut life = Life::new().begins().answers("Hello").event(Event::Delivered { claim: 1, messages: Vec::new() });
    life.dossier.deliveries[0].state = DeliveryState::Delivered;
    life.dossier.deliveries[0].delivered_at = Some(life.now);
    life.dossier.deliveries[0].fetched_at = Some(life.now);

    let text = life.explained();

    assert!(text.contains("Stored where the client reads it, which is the receipt.\n"), "{text}");
    assert!(text.contains("It was written to the client.\n"), "{text}");
}

/// A1.
#[test]
fn an_empty_answer_and_the_ladder_are_named() {
    let life = Life::new()
        .begins()
        .after(secs(1))
        .run_ends("silent", Some("empty"))
        .event(Event::Outcome(Outcome::Reply(Reply::text(" \n"))))
        .delivered("43");

    assert_eq!(
        life.explained(),
        "\
The agent said nothing (empty): the ladder answered (say:silent), 1 s after it was accepted.

Owed: An answer, because it was sent in a direct chat.

  1970-01-01T00:00:00.000Z  Accepted on telegram.main from Ada: “What is the status?”
  1970-01-01T00:00:00.000Z  Run 1: given to `main`.
  1970-01-01T00:00:01.000Z  Run 1 ended after 1 s: its answer was empty.
  1970-01-01T00:00:01.000Z  The agent said nothing, so the ladder says `silent`: “Text of silent.”
  1970-01-01T00:00:01.000Z  Attempt 1: the platform acknowledged it as 43.

Next: Nothing more: the turn is settled."
    );
}

#[test]
fn an_agent_that_the_caller_named_is_told() {
    let mut life = Life::new();
    let event = (*life.dossier.turn.event).clone();
    let brief = Brief { agent: Some("main".into()), ..Brief::default() };
    life.dossier.turn.event = Arc::new(InboundEvent { brief: Some(Box::new(brief)), ..event });

    let text = life.explained();

    assert!(text.contains("The caller named the agent, as the model."), "{text}");
}

#[test]
fn a_chosen_silence_gives_its_reason() {
    let silent = Outcome::Silent("nothing to add".to_owned());
    let life = Life::new().begins().run_ends("silent", Some("nothing to add")).event(Event::Outcome(silent));

    assert!(life.explained().contains("it chose to say nothing (nothing to add).\n"), "{}", life.explained());
}

#[test]
fn a_failure_keeps_what_the_agent_said() {
    let life = Life::new().begins().fails("the agent failed: 500 Internal Server Error").delivered("44");

    let text = life.explained();

    assert!(
        text.starts_with(
            "The run failed (the agent failed: 500 Internal Server Error): the ladder answered (say:failed), 0 ms"
        ),
        "{text}"
    );
    assert!(text.contains("Run 1 ended after 0 ms: the agent failed: 500 Internal Server Error.\n"), "{text}");
}

#[test]
fn a_deferral_is_a_debt_until_it_is_paid() {
    let deferred = Life::new().begins().after(secs(20)).event(Event::Tick { ran: None }).delivered("45");

    assert_eq!(
        deferred.explained(),
        "\
A deferral was shown: the answer is a debt.

Owed: An answer, because it was sent in a direct chat.

  1970-01-01T00:00:00.000Z  Accepted on telegram.main from Ada: “What is the status?”
  1970-01-01T00:00:00.000Z  Run 1: given to `main`.
  1970-01-01T00:00:20.000Z  There is no answer yet, so a deferral is cleared: “Still working on this.”
  1970-01-01T00:00:20.000Z  Attempt 1: the platform acknowledged it as 45.

Next: The agent has until 1970-01-01T00:10:00.000Z (in 9 min 40 s); then the ladder is climbed. The deferral's debt is \
due at 1970-01-01T00:10:00.000Z (in 9 min 40 s); then the ladder is climbed."
    );

    let paid = deferred.after(secs(40)).answers("All is well.").delivered("46");

    let text = paid.explained();
    assert!(text.starts_with("Answered with a reply by the agent, 1 min 0 s after it was accepted.\n"), "{text}");
    assert!(text.ends_with("Next: Nothing more: the turn is settled."), "{text}");
}

/// A9.
#[test]
fn a_run_that_takes_too_long_is_stopped_and_the_ladder_speaks() {
    let life = Life::new()
        .begins()
        .after(Duration::from_mins(10))
        .event(Event::Tick { ran: None })
        .run_ends("stopped", None)
        .delivered("47");

    let text = life.explained();

    assert!(
        text.starts_with(
            "The agent took too long (the run passed its hard deadline): the ladder answered (say:silent), 10 min 0 s"
        ),
        "{text}"
    );
    assert!(text.contains("Run 1 ended after 10 min 0 s: it was stopped.\n"), "{text}");
}

/// D18.
#[test]
fn a_cancelled_turn_names_the_command() {
    let by = uuid(9).to_string();
    let life = Life::new()
        .begins()
        .after(secs(3))
        .event(Event::Cancelled { by: CancelledBy::Turn(by) })
        .run_ends("stopped", None);

    let text = life.explained();

    assert!(text.starts_with("Cancelled by the person, 3 s after it was accepted; turn 0000"), "{text}");
    assert!(text.contains("Cancelled by turn 00000000-0000-0000-0000-000000000009.\n"), "{text}");
}

/// A18, D10.
#[test]
fn a_dead_letter_says_what_the_platform_said_and_what_to_do() {
    let refused = |claim| Event::Refused { claim, reason: "the bot was blocked by the user".to_owned() };
    let life = Life::new()
        .begins()
        .answers("All is well.")
        .attempted("refused", "refused: the bot was blocked by the user", refused)
        .attempted("refused", "refused: the bot was blocked by the user", refused);

    assert_eq!(
        life.explained(),
        "\
Undeliverable: refused: the bot was blocked by the user; every rung failed, the last with: the bot was blocked by the user.

Owed: An answer, because it was sent in a direct chat.

  1970-01-01T00:00:00.000Z  Accepted on telegram.main from Ada: “What is the status?”
  1970-01-01T00:00:00.000Z  Run 1: given to `main`.
  1970-01-01T00:00:00.000Z  Run 1 ended after 0 ms: it answered.
  1970-01-01T00:00:00.000Z  The agent's answer is cleared: “All is well.”
  1970-01-01T00:00:00.000Z  Attempt 1: refused: the bot was blocked by the user.
  1970-01-01T00:00:00.000Z  The platform refused the agent's answer, so the ladder says `silent`: “Text of silent.”
  1970-01-01T00:00:00.000Z  Attempt 1: refused: the bot was blocked by the user.
  1970-01-01T00:00:00.000Z  Given up as a dead letter: refused: the bot was blocked by the user; every rung \
failed, the last with: the bot was blocked by the user.

Next: Nothing more happens automatically. Check what the platform reported. Then \
`rejoinder dead-letters retry 00000000-0000-0000-0000-000000000001` sends it again, `redirect` sends it to another \
conversation, and `discard` gives it up."
    );
}

/// H4.
#[test]
fn a_limit_says_when_the_next_attempt_is_due() {
    let life = Life::new().begins().answers("All is well.").attempted(
        "limited",
        "rate limited by the platform for 5s: Too Many Requests",
        |claim| Event::NotSent { claim },
    );

    let text = life.explained();

    assert!(text.contains("Attempt 1: rate limited by the platform for 5s: Too Many Requests.\n"), "{text}");
    assert!(text.ends_with("Next: Attempt 2 is due at 1970-01-01T00:00:05.000Z (in 5 s)."), "{text}");
}

/// H2.
#[test]
fn attempts_of_an_outage_are_told_in_one_line() {
    let not_sent = |claim| Event::NotSent { claim };
    let mut life = Life::new().begins().answers("All is well.");
    for _ in 0..5000 {
        life = life.attempted("not_sent", "502 Bad Gateway", not_sent);
    }

    let text = life.delivered("7").explained();

    let told: Vec<&str> = text.lines().filter(|line| line.contains("Attempt")).map(|line| &line[28..]).collect();
    let delivered = "Attempt 5001: the platform acknowledged it as 7.";
    assert_eq!(told, ["Attempt 1: 502 Bad Gateway.", "Attempts 2 to 5000: the same.", delivered]);
}

/// The store keeps the first and the last of many attempts with the same result.
#[test]
fn attempts_that_are_not_kept_are_told() {
    let not_sent = |claim| Event::NotSent { claim };
    let mut life = Life::new().begins().answers("All is well.");
    for _ in 0..20 {
        life = life.attempted("not_sent", "502 Bad Gateway", not_sent);
    }
    life.dossier.deliveries.last_mut().unwrap().attempts = 6999;

    let text = life.attempted("not_sent", "503 Service Unavailable", not_sent).delivered("7").explained();

    let told: Vec<&str> = text.lines().filter(|line| line.contains("Attempt")).map(|line| &line[28..]).collect();
    let expected = [
        "Attempt 1: 502 Bad Gateway.",
        "Attempts 2 to 20: the same.",
        "Attempts 21 to 7000 failed alike. The last: 503 Service Unavailable.",
        "Attempt 7001: the platform acknowledged it as 7.",
    ];
    assert_eq!(told, expected);
}

/// D1.
#[test]
fn a_crash_and_the_run_after_it_are_told() {
    let life = Life::new()
        .begins()
        .after(secs(5))
        .run_ends("crashed", Some("the gateway ended while the agent ran"))
        .event(Event::Recovered)
        .begins()
        .after(secs(1))
        .answers("All is well.")
        .delivered("48");

    let text = life.explained();

    let told = "\
Run 1 ended after 5 s: the gateway ended while the agent ran.
  1970-01-01T00:00:05.000Z  Run 2: given to `main` again.
  1970-01-01T00:00:06.000Z  Run 2 ended after 1 s: it answered.";
    assert!(text.contains(told), "{text}");
}

/// B8.
#[test]
fn an_answer_that_came_too_late_is_kept_and_told() {
    let life = Life::new()
        .begins()
        .after(Duration::from_mins(10))
        .event(Event::Tick { ran: None })
        .delivered("49")
        .after(secs(1))
        .answers("All is well.");

    let text = life.explained();

    assert!(text.contains("Suppressed outcome: a fallback had already been sent: All is well.\n"), "{text}");
}

#[test]
fn a_handoff_is_told_as_one() {
    let ladder = Ladder::empty().with(Cause::Silent, vec![Rung::Handoff("orchestrator".to_owned())]);
    let life = Life::with(Policy { ladder, ..Policy::default() }, Expectation::Answer)
        .begins()
        .run_ends("silent", None)
        .event(Event::Outcome(Outcome::Silent("nothing".to_owned())))
        .begins()
        .answers("Let me see.")
        .delivered("50");

    let text = life.explained();

    assert!(
        text.starts_with("The agent said nothing (nothing): the ladder handed it to `orchestrator`, which answered"),
        "{text}"
    );
    assert!(text.contains("Run 2: the ladder hands it to `orchestrator`.\n"), "{text}");
    assert!(text.contains("The answer of `orchestrator` is cleared: “Let me see.”\n"), "{text}");
}

#[test]
fn a_refused_outcome_is_told() {
    let mut life = Life::new().begins().answers("Words.").delivered("42").after(secs(1));
    let (turn, at, kind) = (life.dossier.turn.id, life.now, "refused".to_owned());
    let detail = "`reply` from the worker `gpu` of `fleet`, with the lease 1.1: it has ended".to_owned();
    life.dossier.remarks.push(Remark { turn, at, kind, detail });

    let text = life.explained();

    assert!(
        text.contains("Refused `reply` from the worker `gpu` of `fleet`, with the lease 1.1: it has ended."),
        "{text}"
    );
}

/// B5.
#[test]
fn ambient_talk_is_owed_nothing() {
    let life = Life::with(Policy::default(), Expectation::Nothing)
        .begins()
        .run_ends("silent", Some("not for me"))
        .event(Event::Outcome(Outcome::Silent("not for me".to_owned())));

    let text = life.explained();

    assert!(
        text.starts_with("Nothing was owed, and nothing was sent.\n\nOwed: Nothing: it was not directed"),
        "{text}"
    );
}

#[test]
fn a_turn_that_waits_says_for_what() {
    let life = Life::new().after(secs(1));

    let text = life.explained();

    let next = "Next: The agent gets it when the turns before it are done. Without an answer a deferral goes out at \
                1970-01-01T00:00:20.000Z (in 19 s).";
    assert!(text.ends_with(next), "{text}");
}

#[test]
fn a_note_on_its_way_does_not_hide_when_the_agent_is_asked() {
    let defers = Outcome::Defer { note: Some("Soon.".to_owned()), due: Timestamp::from_millis(60_000) };
    let life = Life::new().begins().run_ends("deferral", Some("Soon.")).event(Event::Outcome(defers));

    let text = life.explained();

    assert!(text.contains(" The agent is asked at 1970-01-01T00:01:00.000Z"), "{text}");
}

#[test]
fn what_is_quoted_is_short_and_one_line() {
    assert_eq!(text::quote("one\n two\u{1b}[31m."), "“one two\u{fffd}[31m.”");
    assert_eq!(text::quote(&"x".repeat(200)).chars().count(), 163);
}
