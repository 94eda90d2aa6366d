//! The guard under random events in any order, checked against a model of what the person can see.

use std::time::Duration;

use proptest::{collection::vec, option, prelude::*, sample::select};
use rejoinder_guard::{
    ApprovalRequest, CancelledBy, Cause, Draft, Effect, Event, Expectation, Ladder, LateAnswer, MergedTurn, Obligation,
    ObligationState, OnUnknown, Outcome, Policy, Reply, Rung, Settlement, SignalKind, Timestamp, Via,
};

/// Why a turn is given up whose person is to be told.
const GIVEN_UP: &str = "hopeless";

/// One step of a test. Claims are counted back from the latest.
#[derive(Clone, Debug)]
enum TestStep {
    Event(Event),
    Pass(u64),
    /// The wake time comes; the run in flight has taken this many seconds, if anybody measured.
    Wake(Option<u64>),
    Attempted(u32),
    NotSent(u32),
    PartDelivered(u32),
    Delivered(u32),
    Refused(u32),
    Expired(u32),
    Lost(u32, bool),
    /// The claim in flight is delivered.
    DeliverClaim,
}

fn texts() -> impl Strategy<Value = String> {
    select(vec!["done", "NO_REPLY", "", "<think>hm", "Done. [SILENT]"]).prop_map(str::to_owned)
}

fn request(action: String) -> ApprovalRequest {
    ApprovalRequest::action(action)
}

fn events() -> impl Strategy<Value = Event> {
    let outcomes = prop_oneof![
        4 => texts().prop_map(|text| Outcome::Reply(Reply::text(text))),
        1 => texts().prop_map(Outcome::React),
        2 => (option::of(texts()), -10_000_i64..100_000)
            .prop_map(|(note, due)| Outcome::Defer { note, due: Timestamp::from_millis(due) }),
        2 => texts().prop_map(Outcome::Silent),
        2 => texts().prop_map(|action| Outcome::Approval(request(action))),
    ];
    prop_oneof![
        6 => Just(Event::Begin),
        1 => Just(Event::MessageGone { message: "m".to_owned() }),
        5 => outcomes.prop_map(Event::Outcome),
        2 => texts().prop_map(|text| Event::Sent(Reply::text(text))),
        2 => Just(Event::Failed("broken".to_owned())),
        1 => Just(Event::Unreachable("refused".to_owned())),
        2 => texts().prop_map(|text| Event::Draft { text }),
        1 => Just(Event::Attempted { claim: Draft::CLAIM }),
        1 => Just(Event::Delivered { claim: Draft::CLAIM, messages: vec!["m".to_owned()] }),
        1 => any::<bool>().prop_map(|idempotent| Event::Lost { claim: Draft::CLAIM, idempotent }),
        1 => Just(Event::Unreadable("no key".to_owned())),
        1 => Just(Event::OverBudget("spent".to_owned())),
        1 => Just(Event::Unheard("no server".to_owned())),
        2 => Just(Event::Recovered),
        1 => Just(Event::Interrupted),
        1 => Just(Event::Cancelled { by: CancelledBy::Turn("t9".to_owned()) }),
        1 => Just(Event::Merged { into: "t2".to_owned() }),
        1 => Just(Event::MergeSettled),
        1 => Just(Event::MergeGivenUp { reason: "blocked".to_owned() }),
        2 => Just(Event::Retried),
        1 => texts().prop_map(|text| Event::Redirected { reply: Reply::text(text) }),
        1 => texts().prop_map(|text| Event::SentElsewhere { reply: Reply::text(text) }),
        1 => Just(Event::Cancelled { by: CancelledBy::Operator("it is too old".to_owned()) }),
        1 => option::of(texts()).prop_map(|say| Event::GivenUp { reason: GIVEN_UP.to_owned(), say }),
        1 => Just(Event::Hurried),
        1 => Just(Event::Superseded),
        1 => Just(Event::LateWindowEnded),
        1 => Just(Event::Absorbed {
            turns: vec![MergedTurn { turn: "later".to_owned(), place: 2 }],
            owed: Expectation::Answer,
        }),
        2 => Just(Event::Decided),
        1 => texts().prop_map(|action| Event::Suspended(request(action))),
        1 => texts().prop_map(|action| Event::SuspendedByRule(request(action))),
        2 => (option::of(Just("boss".to_owned())), 1..3_u32)
            .prop_map(|(agent, attempt)| Event::RunResumed { agent, attempt }),
        1 => Just(Event::LeftSuspended),
        1 => (option::of(Just("boss".to_owned())), 1..3_u32)
            .prop_map(|(agent, attempt)| Event::TakenBack { agent, attempt }),
        1 => texts()
            .prop_map(|action| Event::DecidedByRule(request(action))),
        1 => Just(Event::Held),
        2 => Just(Event::Resumed),
        1 => Just(Event::Postponed),
        2 => Just(Event::Continued),
    ]
}

fn steps() -> impl Strategy<Value = Vec<TestStep>> {
    let claim = prop_oneof![5 => Just(0_u32), 1 => 1_u32..3];
    let step = prop_oneof![
        8 => events().prop_map(TestStep::Event),
        1 => (0_u64..60).prop_map(TestStep::Pass),
        4 => option::weighted(0.2, 0_u64..60).prop_map(TestStep::Wake),
        4 => claim.clone().prop_map(TestStep::Attempted),
        1 => claim.clone().prop_map(TestStep::NotSent),
        1 => claim.clone().prop_map(TestStep::PartDelivered),
        3 => claim.clone().prop_map(TestStep::Delivered),
        2 => claim.clone().prop_map(TestStep::Refused),
        1 => claim.clone().prop_map(TestStep::Expired),
        2 => (claim, any::<bool>()).prop_map(|(claim, idempotent)| TestStep::Lost(claim, idempotent)),
    ];
    vec(step, 0..40)
}

fn policies() -> impl Strategy<Value = Policy> {
    let rung = select(vec![
        Rung::Say("sorry".to_owned()),
        Rung::React("😕".to_owned()),
        Rung::Clarify("which".to_owned()),
        Rung::Handoff("orchestrator".to_owned()),
    ]);
    (
        option::weighted(0.8, 1_u64..30),
        30_u64..60,
        1_u32..4,
        0_u32..3,
        (select(vec![LateAnswer::Deliver, LateAnswer::Record]), 0_u64..30),
        select(vec![OnUnknown::Resend, OnUnknown::Label, OnUnknown::Hold]),
        vec(rung, 0..4),
    )
        .prop_map(|(soft, hard, max_runs, max_deferrals, (late_answer, late_window), on_unknown, rungs)| Policy {
            soft_deadline: soft.map(Duration::from_secs),
            hard_deadline: Duration::from_secs(hard),
            max_runs,
            max_deferrals,
            max_defer: Duration::from_mins(2),
            approval_wait: Duration::from_mins(3),
            max_approvals: max_runs,
            late_answer,
            late_window: Duration::from_secs(late_window),
            on_unknown,
            ladder: Cause::ALL.into_iter().fold(Ladder::empty(), |ladder, cause| ladder.with(cause, rungs.clone())),
            ..Policy::default()
        })
}

/// What the person can see, and which claim is in flight.
#[derive(Debug, Default)]
struct SeenSignals {
    in_flight: Option<u32>,
    answers: u32,
    late_answers: u32,
    deferrals: u32,
}

fn is_settled_by_a_signal(obligation: &Obligation) -> bool {
    matches!(obligation.state(), ObligationState::Settled(Settlement::Signal { .. }))
}

struct Turn {
    obligation: Obligation,
    policy: Policy,
    now: Timestamp,
    seen: SeenSignals,
    /// How many of the current agent's runs do not count towards `max_runs`, at most.
    uncounted_runs: u32,
    /// Whether an approval is open.
    is_approval_open: bool,
    approvals: u32,
}

impl Turn {
    fn open(owed: Expectation, policy: Policy) -> Self {
        let now = Timestamp::from_millis(0);
        Self {
            obligation: Obligation::open(owed, &policy, None, now),
            policy,
            now,
            seen: SeenSignals::default(),
            uncounted_runs: 0,
            is_approval_open: false,
            approvals: 0,
        }
    }

    fn apply(&mut self, step: TestStep) -> Result<(), TestCaseError> {
        let claim = |back: u32| self.obligation.claims().saturating_sub(back);
        let reason = || "the platform's error".to_owned();
        let event = match step {
            TestStep::Event(event) => event,
            TestStep::Pass(secs) => {
                self.now = self.now + Duration::from_secs(secs);
                Event::Tick { ran: None }
            }
            TestStep::Wake(ran) => {
                self.now = self.obligation.wake_at().map_or(self.now, |at| at.max(self.now));
                Event::Tick { ran: ran.map(Duration::from_secs) }
            }
            TestStep::DeliverClaim => {
                let claim = self.obligation.claim_in_flight().unwrap_or_default();
                Event::Delivered { claim, messages: vec!["m".to_owned()] }
            }
            TestStep::Attempted(back) => Event::Attempted { claim: claim(back) },
            TestStep::NotSent(back) => Event::NotSent { claim: claim(back) },
            TestStep::PartDelivered(back) => {
                Event::PartDelivered { claim: claim(back), messages: vec!["p".to_owned()] }
            }
            TestStep::Delivered(back) => Event::Delivered { claim: claim(back), messages: vec!["m".to_owned()] },
            TestStep::Refused(back) => Event::Refused { claim: claim(back), reason: reason() },
            TestStep::Expired(back) => Event::Expired { claim: claim(back), reason: reason() },
            TestStep::Lost(back, idempotent) => Event::Lost { claim: claim(back), idempotent },
        };
        self.on(event)
    }

    fn on(&mut self, event: Event) -> Result<(), TestCaseError> {
        let before = self.obligation.clone();
        self.nothing_happens_before_the_wake()?;
        self.note_shown(&event);
        let is_begin = event == Event::Begin;
        // After a retry of the turn that answers for it, a merged one is settled with that.
        let may_change_a_dead_letter = matches!(
            event,
            Event::Retried
                | Event::Redirected { .. }
                | Event::SentElsewhere { .. }
                | Event::MergeSettled
                | Event::Cancelled { by: CancelledBy::Operator(_) }
                | Event::GivenUp { .. }
        );
        let is_tick = matches!(event, Event::Tick { .. });
        let (is_hurried, may_be_hurried) = (event == Event::Hurried, before.may_be_hurried());
        let may_defer = matches!(event, Event::Outcome(Outcome::Defer { .. }));
        self.uncounted_runs += u32::from(
            may_defer
                || (matches!(event, Event::Interrupted | Event::Superseded | Event::LeftSuspended)
                    && self.obligation.is_running()),
        );
        if event == Event::Decided {
            self.is_approval_open = false;
        }
        if event == Event::Retried {
            self.approvals = 0;
        }
        let effects = self.obligation.on(event, &self.policy, self.now).effects;
        self.check_effects(&before, &effects, is_begin)?;
        if is_hurried && !may_be_hurried {
            prop_assert_eq!(&before, &self.obligation, "a turn was hurried that does not wait for its time");
        }
        self.check_state(&before, may_change_a_dead_letter)?;
        if is_tick {
            prop_assert!(self.obligation.wake_at().is_none_or(|at| at > self.now), "the wake time is in the past");
        }
        Ok(())
    }

    fn nothing_happens_before_the_wake(&self) -> Result<(), TestCaseError> {
        if self.obligation.wake_at().is_none_or(|at| at > self.now) {
            let mut ticked = self.obligation.clone();
            prop_assert_eq!(ticked.on(Event::Tick { ran: None }, &self.policy, self.now).effects, Vec::new());
            prop_assert_eq!(&ticked, &self.obligation);
        }
        Ok(())
    }

    /// Notes what the event shows to the person, and that its claim is no longer in flight.
    fn note_shown(&mut self, event: &Event) {
        let (Event::Delivered { claim, .. } | Event::Refused { claim, .. } | Event::Expired { claim, .. }) = event
        else {
            if matches!(event, Event::Lost { claim, .. } if self.seen.in_flight == Some(*claim)) {
                // The decision may resend it or send something else.
                self.seen.in_flight = None;
            }
            return;
        };
        if let (Event::Delivered { .. }, ObligationState::Claimed(in_flight)) = (event, self.obligation.state())
            && *claim == in_flight.number
        {
            match in_flight.signal {
                SignalKind::Deferral => self.seen.deferrals += 1,
                SignalKind::Reply | SignalKind::Reaction => self.seen.answers += 1,
            }
        }
        if self.seen.in_flight == Some(*claim) {
            self.seen.in_flight = None;
        }
    }

    fn check_effects(&mut self, before: &Obligation, effects: &[Effect], is_begin: bool) -> Result<(), TestCaseError> {
        let now = &self.obligation;
        let mut claims = before.claims();
        for effect in effects {
            match effect {
                Effect::Send(cleared) => {
                    let signal = cleared.get();
                    claims += 1;
                    prop_assert_eq!(signal.claim, claims);
                    prop_assert_eq!(self.seen.in_flight, None, "two claims in flight");
                    if signal.via == Via::LateAnswer {
                        self.seen.late_answers += 1;
                        prop_assert!(is_settled_by_a_signal(now), "a late answer before any signal");
                    } else {
                        prop_assert_eq!(self.seen.answers, 0, "a second answer");
                        let claimed = matches!(
                            now.state(),
                            ObligationState::Claimed(claim) if claim.signal == signal.kind() && claim.via == signal.via
                        );
                        prop_assert!(claimed, "sent without a claim");
                        self.seen.in_flight = Some(signal.claim);
                    }
                }
                Effect::Draft(_) => prop_assert!(now.is_draft_pending() && self.seen.answers == 0),
                Effect::Withdraw { claim: Draft::CLAIM } => prop_assert!(!now.is_draft_pending()),
                Effect::Resend { claim: Draft::CLAIM, labelled } => prop_assert!(now.is_draft_pending() && !labelled),
                Effect::Withdraw { claim } => {
                    prop_assert_eq!(Some(*claim), before.claim_in_flight());
                    self.seen.in_flight = None;
                }
                Effect::SendAgain { claim, .. } => {
                    prop_assert_eq!(self.seen.in_flight, None, "two claims in flight");
                    prop_assert_eq!(now.claim_in_flight(), Some(*claim));
                    self.seen.in_flight = Some(*claim);
                }
                Effect::ToMerged { .. } => {
                    let is_told = matches!(now.state(), ObligationState::Claimed(claim) if matches!(claim.via, Via::GivenUp { .. }));
                    let has_ended = now.state().is_final() || is_told;
                    prop_assert!(has_ended && !before.merged_turns().is_empty(), "nothing ended");
                }
                Effect::Hold => prop_assert!(!before.is_held() && now.is_held()),
                Effect::Release => prop_assert!(before.is_held() && !now.is_held()),
                Effect::Resend { claim, .. } => {
                    prop_assert_eq!(Some(*claim), before.claim_in_flight());
                    let is_late = matches!(now.state(), ObligationState::Settled(_));
                    self.seen.in_flight = Some(*claim).filter(|_| !is_late);
                }
                Effect::Run { attempt, .. } => {
                    prop_assert!(is_begin && now.is_running());
                    if *attempt == 1 {
                        self.uncounted_runs = 0;
                    }
                    prop_assert!(*attempt >= 1 && *attempt <= self.policy.max_runs + self.uncounted_runs);
                }
                Effect::RunAgain => prop_assert!(now.is_waiting()),
                Effect::RunContinues => {
                    prop_assert!(before.is_suspended() && now.is_running() && !now.is_suspended());
                }
                Effect::RunGoesOn => prop_assert!(before.is_running()),
                Effect::StopRun => prop_assert!(before.is_running() && !now.is_running()),
                Effect::DeadLetter { reason } => {
                    prop_assert_eq!(now.state(), &ObligationState::Undeliverable { reason: reason.clone() });
                    self.seen.in_flight = None;
                }
                Effect::AskApproval { until, .. } => {
                    prop_assert!(!self.is_approval_open, "two approvals at once");
                    self.is_approval_open = until.is_some();
                    self.approvals += 1;
                    self.uncounted_runs += 1;
                }
                Effect::ApprovalExpired | Effect::ApprovalDropped => {
                    prop_assert!(self.is_approval_open, "an approval ended that was not open");
                    self.is_approval_open = false;
                }
                Effect::Suppress(_) => {}
            }
        }
        prop_assert_eq!(claims, now.claims());
        prop_assert!(self.seen.late_answers <= 1);
        Ok(())
    }

    fn check_state(&self, before: &Obligation, may_change_a_dead_letter: bool) -> Result<(), TestCaseError> {
        let now = &self.obligation;
        if before.state().is_final()
            && !(may_change_a_dead_letter && matches!(before.state(), ObligationState::Undeliverable { .. }))
        {
            prop_assert_eq!(before.state(), now.state(), "a final state changed");
        }
        let given_up = Settlement::Cancelled { by: CancelledBy::Operator(GIVEN_UP.to_owned()) };
        if *now.state() == ObligationState::Settled(given_up) && before.state() != now.state() {
            let is_dead = matches!(before.state(), ObligationState::Undeliverable { .. });
            prop_assert!(is_dead || now.expectation() == Expectation::Nothing, "a turn was given up in silence");
        }
        prop_assert!(!(now.is_held() && (now.is_waiting() || now.state().is_final())));
        prop_assert_eq!(self.seen.answers, u32::from(is_settled_by_a_signal(now)), "state and seen answers differ");
        prop_assert!(!(now.is_postponed() && (now.is_waiting() || now.is_running() || now.state().is_final())));
        prop_assert!(now.agents_deferrals() <= self.policy.max_deferrals);
        prop_assert!(
            now.deferrals() - now.agents_deferrals() <= self.policy.max_deferrals,
            "the gateway defers too often"
        );
        prop_assert!(!now.is_put_off() || now.is_held() || now.wake_at().is_some(), "nobody asks for what was put off");
        prop_assert!(self.approvals <= self.policy.max_approvals);
        prop_assert_eq!(self.is_approval_open, now.decide_by().is_some(), "an approval is open, or is not");
        prop_assert!(now.decide_by().is_none() || !(now.is_waiting() || (now.is_running() && !now.is_suspended())));
        prop_assert!(!(now.is_running() && now.is_waiting()));

        let stored = serde_json::to_value(now).expect("an obligation is plain data");
        if now.state().is_final() {
            prop_assert!(!now.is_waiting() && (now.is_running() || now.wake_at().is_none()));
            for held in ["pending", "due"] {
                let kept = &stored["undelivered"]["claim"];
                prop_assert!(kept.get(held).is_none(), "{held} is still set after the end: {stored}");
            }
        }
        let read: Obligation = serde_json::from_value(stored).expect("a stored obligation can be read");
        prop_assert_eq!(&read, now);
        Ok(())
    }

    /// Continues without failures until the turn ends.
    fn finish_without_failures(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..40 {
            let state = self.obligation.state().clone();
            let step = match state {
                ObligationState::Settled(_) | ObligationState::Undeliverable { .. } => return Ok(()),
                ObligationState::Merged { .. } => TestStep::Event(Event::MergeSettled),
                ObligationState::Claimed(_) => TestStep::DeliverClaim,
                _ if self.obligation.is_held() => TestStep::Event(Event::Resumed),
                _ if self.obligation.is_postponed() => TestStep::Event(Event::Continued),
                ObligationState::Open | ObligationState::Deferred if self.obligation.is_waiting() => {
                    TestStep::Event(Event::Begin)
                }
                ObligationState::Open | ObligationState::Deferred if self.obligation.is_running() => {
                    TestStep::Event(Event::Outcome(Outcome::Reply(Reply::text("done"))))
                }
                ObligationState::Open | ObligationState::Deferred => TestStep::Wake(None),
            };
            self.apply(step)?;
        }
        Err(TestCaseError::fail(format!("the turn never ends: {:?}", self.obligation)))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// A3, B8, B10, G5.
    #[test]
    fn every_turn_ends_in_one_signal_whatever_happens_on_the_way(
        is_owed in any::<bool>(),
        policy in policies(),
        steps in steps(),
    ) {
        let owed = if is_owed { Expectation::Answer } else { Expectation::Nothing };
        let mut turn = Turn::open(owed, policy);
        for step in steps {
            turn.apply(step)?;
        }
        turn.finish_without_failures()?;

        if is_owed {
            let is_silent = matches!(turn.obligation.state(), ObligationState::Settled(Settlement::Silence { .. }));
            prop_assert!(!is_silent, "silence where an answer was owed");
        }
    }
}
