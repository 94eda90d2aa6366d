//! Checks of transitions: compare-and-swap, all or nothing.

use std::sync::Arc;

use futures_util::future::join_all;
use rejoinder_guard::{Event, Obligation, Outcome, Reply, SignalKind};

use super::{
    subject::Subject,
    turn::{Turn, accept_one, at, chat, commit, deliveries, done, gone, new_session, new_turn, said},
};
use crate::{
    model::{
        agent::{HistoryLine, LineState, Speaker},
        event::{Author, InboundEvent, SenderKind},
        ids::{DeliveryId, SessionId, TurnId},
        run::Usage,
        stored_delivery::{DeliveryRecord, DeliveryState},
        voice::{Heard, Voice},
    },
    ports::store::{
        Store,
        accept::Stored,
        record::Remark,
        transition::{
            AttemptEnd, AttemptStart, BoundedRemark, Commit, DeliveryChange, LineChange, RunEnd, RunHolder, RunStart,
            TranscriptLine, Transition, Withdrawal,
        },
    },
};

pub(super) async fn version(store: &dyn Store, turn: &Turn) -> i64 {
    store.turn(turn.id).await.expect("turns are read").expect("the turn is there").version
}

/// A change with a stale version conflicts and changes nothing.
pub async fn a_change_needs_the_expected_version(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let mut late = turn.clone();
    let begin = turn.on(Event::Begin, 1);
    done(&*store, begin).await;
    let tick = late.on(Event::Tick { ran: None }, 30);
    assert_eq!(commit(&*store, tick).await, Commit::Conflict);
    let record = store.turn(turn.id).await.expect("turns are read").expect("the turn is there");
    assert_eq!(record.obligation, turn.obligation);
    assert_eq!(record.version, 2);
}

/// B8: of 64 simultaneous claims of a turn, one is stored.
pub async fn of_64_that_race_for_a_turn_one_wins(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    turn.begin(&*store).await;
    let tasks = (0..64).map(|number| {
        let (store, mut turn) = (Arc::clone(&store), turn.clone());
        tokio::spawn(async move {
            let text = format!("answer {number}");
            let mut transition = turn.on(Event::Outcome(Outcome::Reply(Reply::text(&*text))), 2);
            transition.deliveries.push(crate::conformance::new_delivery(turn.delivery(1, &text)));
            commit(&*store, transition).await
        })
    });
    let commits: Vec<Commit> = join_all(tasks).await.into_iter().map(|task| task.expect("no task fails")).collect();

    assert_eq!(commits.iter().filter(|commit| **commit == Commit::Done).count(), 1);
    assert_eq!(store.deliveries(turn.id).await.expect("deliveries are read").len(), 1);
    assert_eq!(version(&*store, &turn).await, 3);
}

/// B8.
pub async fn of_64_that_race_for_many_turns_one_wins_each(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turns = Vec::new();
    for number in 0..20 {
        turns.push(Turn::accept(&*store, said(&chat(&format!("chat {}", number % 5)), &number.to_string())).await);
    }
    let tasks = (0..64_usize).map(|racer| {
        let (store, mut turns) = (Arc::clone(&store), turns.clone());
        tokio::spawn(async move {
            let mut won = 0;
            // Each racer takes the turns in another order, and begins and answers those that it wins.
            let count = turns.len();
            for step in 0..count {
                let turn = &mut turns[(step * 7 + racer) % count];
                let begin = turn.on(Event::Begin, 1);
                if commit(&*store, begin).await == Commit::Done {
                    let mut answer = turn.on(Event::Outcome(Outcome::Reply(Reply::text("yes"))), 2);
                    answer.deliveries.push(crate::conformance::new_delivery(turn.delivery(1, "yes")));
                    done(&*store, answer).await;
                    won += 1;
                }
            }
            won
        })
    });
    let won: Vec<usize> = join_all(tasks).await.into_iter().map(|task| task.expect("no task fails")).collect();

    assert_eq!(won.iter().sum::<usize>(), turns.len());
    for turn in &turns {
        assert_eq!(version(&*store, turn).await, 3);
        assert_eq!(store.deliveries(turn.id).await.expect("deliveries are read").len(), 1);
    }
}

/// B2: merged turns change together.
pub async fn a_transition_on_several_turns_is_all_or_nothing(subject: &mut impl Subject) {
    let store = subject.store();
    let mut first = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let mut second = Turn::accept(&*store, said(&chat("a"), "2")).await;
    let (mut stale, mut fresh) = (second.clone(), first.clone());
    second.begin(&*store).await;

    let mut both = fresh.on(Event::Begin, 2);
    both.turns.extend(stale.on(Event::Begin, 2).turns);
    assert_eq!(commit(&*store, both).await, Commit::Conflict);
    assert_eq!((version(&*store, &first).await, version(&*store, &second).await), (1, 2));

    let mut both = first.on(Event::Begin, 2);
    both.turns.extend(second.on(Event::Tick { ran: None }, 2).turns);
    done(&*store, both).await;
    assert_eq!((version(&*store, &first).await, version(&*store, &second).await), (2, 3));
}

/// Adds changes of most kinds to `transition`, for a turn that has one pending delivery.
fn everything(mut transition: Transition, turn: &Turn) -> Transition {
    let more = deliveries([turn.delivery(7, "more")]);
    transition.deliveries = more.deliveries;
    transition.withdrawn = vec![Withdrawal { turn: turn.id, claim: 1, reason: "late".to_owned() }];
    transition.runs_started = vec![RunStart { number: 2, ..turn.run(2) }];
    transition.transcript = vec![line(turn, Speaker::Agent, "words", 2)];
    let session = SessionId::new(at(2));
    transition.sessions = vec![new_session(session, turn.conversation, 2)];
    transition.remarks = vec![remark(turn, "anything")];
    transition
}

async fn assert_no_trace(store: &dyn Store, turn: &Turn) {
    let dossier = store.dossier(turn.id).await.expect("dossiers are read").expect("the turn is there");
    assert_eq!(dossier.turn.version, 1);
    assert_eq!(dossier.turn.runs, 0);
    assert!(dossier.remarks.is_empty());
    assert_eq!(dossier.deliveries.len(), 1, "{:?}", dossier.deliveries);
    assert_eq!(dossier.deliveries[0].state.as_str(), "pending");
    assert!(store.transcript(turn.session, 10).await.expect("transcripts are read").is_empty());
    let next = Turn::accept(store, said(&turn.address, "next")).await;
    assert_eq!(next.session, turn.session);
}

/// A transition that loses the race for a version changes nothing.
pub async fn a_transition_that_conflicts_leaves_no_trace(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    done(&*store, deliveries([turn.delivery(1, "waits")])).await;
    let known = turn.clone();
    turn.version = 9;
    let begin = turn.on(Event::Begin, 1);
    assert_eq!(commit(&*store, everything(begin, &turn)).await, Commit::Conflict);
    assert_no_trace(&*store, &known).await;
}

/// E4: a transition that fails changes nothing, and does not affect concurrent ones.
pub async fn a_transition_that_fails_leaves_no_trace(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    done(&*store, deliveries([turn.delivery(1, "waits")])).await;
    let known = turn.clone();
    let mut bad = turn.on(Event::Begin, 1);
    bad = everything(bad, &turn);
    bad.attempts_ended = vec![AttemptEnd {
        delivery: DeliveryId::new(at(1)),
        number: 1,
        at: at(2),
        result: "delivered".to_owned(),
        detail: None,
    }];
    let others = (0..32).map(|number| {
        let store = Arc::clone(&store);
        async move { accept_one(&*store, new_turn(said(&chat("others"), &format!("other {number}")))).await }
    });
    let (failed, others) = futures_util::future::join(store.commit(bad), join_all(others)).await;

    failed.expect_err("there is no such delivery");
    assert!(others.iter().all(|stored| matches!(stored, Stored::Turn { .. })));
    assert_no_trace(&*store, &known).await;
}

/// I3.
pub async fn runs_are_recorded(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let started = Transition { runs_started: vec![turn.run(1)], ..Transition::default() };
    done(&*store, started).await;
    let usage = Usage { input_tokens: 12, output_tokens: u64::from(u32::MAX) + 1 };
    let end = |number, usage| RunEnd {
        usage,
        member: (number == 1).then(|| "second".into()),
        ..RunEnd::new(turn.id, number, at(4), "failed".to_owned(), Some("500".to_owned()))
    };
    let handed_out = |number, holder: &str| {
        let holders = vec![RunHolder { turn: turn.id, number, holder: holder.to_owned() }];
        Transition { holders, ..Transition::default() }
    };
    done(&*store, handed_out(1, "a worker")).await;
    let ended = Transition {
        runs_ended: vec![end(1, Some(usage)), end(2, None)],
        runs_started: vec![turn.run(2), turn.run(3)],
        ..Transition::default()
    };
    done(&*store, ended).await;
    for (number, holder) in [(2, "a worker"), (3, "a worker"), (2, "another one"), (3, "")] {
        done(&*store, handed_out(number, holder)).await;
    }

    let dossier = store.dossier(turn.id).await.expect("dossiers are read").expect("the turn is there");
    let holders: Vec<_> = dossier.runs.iter().map(|run| run.holder.as_deref()).collect();
    assert_eq!(holders, [None, Some("another one"), None], "it goes with the end of a run, and when it is taken back");
    assert_eq!(dossier.turn.runs, 3);
    let runs: Vec<_> = dossier.runs.iter().map(|run| (run.number, run.end.as_deref(), run.usage)).collect();
    assert_eq!(runs, [(1, Some("failed"), Some(usage)), (2, Some("failed"), None), (3, None, None)]);
    assert_eq!(dossier.runs[0].detail.as_deref(), Some("500"));
    assert_eq!((dossier.runs[0].member.as_deref(), dossier.runs[1].member.as_deref()), (Some("second"), None));
    assert_eq!((dossier.runs[0].started_at, dossier.runs[0].ended_at), (at(1), Some(at(4))));
}

/// Another node may have taken it for crashed. What it used counts, and its first end of its own stays.
pub async fn a_run_ends_as_the_node_says_that_ran_it(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    done(&*store, Transition { runs_started: vec![turn.run(1)], ..Transition::default() }).await;
    let ends = async |end: &str, seconds| {
        let usage = Some(Usage { input_tokens: 12, output_tokens: seconds });
        let end = RunEnd { usage, ..RunEnd::new(turn.id, 1, at(seconds), end.to_owned(), None) };
        done(&*store, Transition { runs_ended: vec![end], ..Transition::default() }).await;
        let runs = store.runs(turn.id).await.expect("runs are read");
        (runs[0].end.clone().unwrap_or_default(), runs[0].ended_at, runs[0].usage.map(|usage| usage.output_tokens))
    };

    assert_eq!(ends("crashed", 2).await, ("crashed".to_owned(), Some(at(2)), Some(2)));
    for (end, seconds) in [("failed", 3), ("crashed", 4), ("reply", 5)] {
        assert_eq!(ends(end, seconds).await, ("failed".to_owned(), Some(at(3)), Some(3)));
    }
}

fn line(turn: &Turn, speaker: Speaker, text: &str, seconds: u64) -> TranscriptLine {
    let line = HistoryLine {
        spoken: false,
        speaker,
        author: None,
        forwarded: None,
        text: text.to_owned(),
        at: at(seconds),
        state: LineState::Seen,
    };
    TranscriptLine {
        session: turn.session,
        turn: turn.id,
        seq: turn.seq,
        claim: u32::from(speaker != Speaker::Person),
        line,
    }
}

fn remark(turn: &Turn, detail: &str) -> Remark {
    Remark { turn: turn.id, at: at(2), kind: "suppressed".to_owned(), detail: detail.to_owned() }
}

async fn write_transcript(store: &dyn Store, lines: Vec<TranscriptLine>) {
    done(store, Transition { transcript: lines, ..Transition::default() }).await;
}

async fn texts(store: &dyn Store, session: SessionId, limit: u32) -> Vec<String> {
    let lines = store.transcript(session, limit).await.expect("transcripts are read");
    lines.iter().map(|line| line.text.clone()).collect()
}

/// Deliveries of a claim, one per part, in these states.
fn parts(turn: &Turn, claim: u32, states: &[DeliveryState]) -> Vec<DeliveryRecord> {
    let count = u32::try_from(states.len()).expect("they are few");
    let part = |(part, state): (u32, &DeliveryState)| DeliveryRecord {
        part,
        parts: count,
        state: *state,
        ..turn.delivery(claim, &format!("part {part}"))
    };
    (1..).zip(states).map(part).collect()
}

/// What becomes of a line follows from the deliveries of its claim, in the database and in what is kept in memory.
pub async fn a_line_counts_as_its_deliveries_say(subject: &mut impl Subject) {
    use DeliveryState::{Dead, Delivered, Pending, Refused, Sending, Withdrawn};
    let not_delivered = |reason: &str| LineState::NotDelivered(reason.to_owned());
    let cases: [(&[DeliveryState], &str, LineState); 8] = [
        (&[Delivered], "whole", LineState::Seen),
        (&[Delivered, Delivered], "whole", LineState::Seen),
        (&[Delivered, Refused, Withdrawn], "part 1", LineState::Partly),
        (&[Delivered, Pending], "part 1", LineState::Partly),
        (&[Sending, Pending], "whole", LineState::OnItsWay),
        (&[Refused, Withdrawn], "whole", not_delivered("refused")),
        (&[Dead], "whole", not_delivered("refused")),
        (&[Withdrawn], "whole", not_delivered("withdrawn")),
    ];
    let mut sessions = Vec::new();
    for (number, (states, ..)) in cases.iter().enumerate() {
        let store = subject.store();
        let turn = Turn::accept(&*store, said(&chat(&number.to_string()), &number.to_string())).await;
        let on_its_way = HistoryLine { state: LineState::OnItsWay, ..line(&turn, Speaker::Agent, "whole", 2).line };
        let ours = TranscriptLine { line: on_its_way, ..line(&turn, Speaker::Agent, "", 2) };
        let gateways = TranscriptLine { claim: 2, ..line(&turn, Speaker::Gateway, "Sorry.", 3) };
        let transcript = vec![line(&turn, Speaker::Person, "question", 1), ours, gateways];
        let pending = vec![Pending; states.len()];
        let mut records = parts(&turn, 1, &pending);
        let of_gateway = parts(&turn, 2, &[Refused]);
        let claimed = deliveries(records.iter().cloned().chain(of_gateway));
        done(&*store, Transition { transcript, ..claimed }).await;
        store.transcript(turn.session, 10).await.expect("transcripts are read");
        let mut ended =
            Transition { lines: vec![LineChange::Other { session: turn.session }], ..Transition::default() };
        for (record, state) in records.iter_mut().zip(*states) {
            record.state = *state;
            ended.delivery_changes.push(DeliveryChange::of(record));
            if matches!(state, Refused | Dead) {
                let (delivery, result) = (record.id, "refused".to_owned());
                ended.attempts_started.push(AttemptStart { delivery, number: 1, node: gone(), at: at(3) });
                ended.attempts_ended.push(AttemptEnd { delivery, number: 1, at: at(4), result, detail: None });
            }
        }
        if let [Delivered] = states[..] {
            ended.lines = vec![LineChange::Seen { session: turn.session, turn: turn.id, claim: 1 }];
        }
        done(&*store, ended).await;
        sessions.push(turn.session);
    }
    for is_reopened in [false, true] {
        for ((_, text, state), session) in cases.iter().zip(&sessions) {
            let lines = subject.store().transcript(*session, 10).await.expect("transcripts are read");
            let [_, line] = &lines[..] else { panic!("what the gateway said was not seen: {lines:?}") };
            assert_eq!((&*line.text, &line.state), (*text, state), "{is_reopened}");
        }
        subject.reopen().await;
    }
}

/// A deferral is a line until the answer was seen, and an answer that nobody saw is none once a later one was seen.
pub async fn an_answer_takes_the_place_of_what_was_promised(subject: &mut impl Subject) {
    use DeliveryState::{Delivered, Pending, Refused};
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let says = |claim, text: &str| TranscriptLine { claim, ..line(&turn, Speaker::Agent, text, 2) };
    let mut promise = parts(&turn, 1, &[Delivered]);
    promise[0].signal = SignalKind::Deferral;
    let transcript = vec![line(&turn, Speaker::Person, "question", 1), says(1, "wait")];
    done(&*store, Transition { transcript, ..deliveries(promise) }).await;
    let refused = deliveries(parts(&turn, 2, &[Refused]));
    done(&*store, Transition { transcript: vec![says(2, "no")], ..refused }).await;
    let pending = parts(&turn, 3, &[Pending]).remove(0);
    done(&*store, Transition { transcript: vec![says(3, "answer")], ..deliveries([pending.clone()]) }).await;
    assert_eq!(texts(&*store, turn.session, 10).await, ["question", "wait", "no", "answer"]);

    let seen = DeliveryChange { state: Delivered, ..DeliveryChange::of(&pending) };
    let lines = vec![LineChange::Seen { session: turn.session, turn: turn.id, claim: 3 }];
    done(&*store, Transition { delivery_changes: vec![seen], lines, ..Transition::default() }).await;

    assert_eq!(texts(&*store, turn.session, 10).await, ["question", "answer"]);
    assert!(store.turn(turn.id).await.expect("turns are read").expect("the turn is there").has_history);
    drop(store);
    subject.reopen().await;
    assert_eq!(texts(&*subject.store(), turn.session, 10).await, ["question", "answer"]);
}

/// A line keeps its sender, which tells an agent in a group chat who wrote it, and the author of what was forwarded.
pub async fn a_line_keeps_who_said_it(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let mut asked = line(&turn, Speaker::Person, "question", 1);
    let author = |id: &str, name: &str| Author {
        id: Some(id.to_owned()),
        name: Some(name.to_owned()),
        username: Some("ann".to_owned()),
        kind: SenderKind::OtherAgent,
        ..Author::unknown()
    };
    asked.line.author = Some(author("7", "Ann: \"A\" \u{1}"));
    asked.line.forwarded = Some(author("8", "Bob"));
    let answered = line(&turn, Speaker::Agent, "answer", 2);
    let expected = [&asked, &answered].map(|line| Arc::new(line.line.clone()));
    write_transcript(&*store, vec![asked, answered]).await;
    assert_eq!(store.transcript(turn.session, 10).await.expect("transcripts are read"), expected);
    drop(store);

    // They are also there when it is read from disk.
    subject.reopen().await;
    let read = subject.store().transcript(turn.session, 10).await.expect("transcripts are read");
    assert_eq!(read, expected);
}

/// A line says whether the message was spoken, also when it is read again.
pub async fn a_line_says_that_it_was_spoken(subject: &mut impl Subject) {
    let store = subject.store();
    let mut expected = Vec::new();
    let mut sessions = Vec::new();
    for heard in [Heard::Words, Heard::NotTried] {
        let key = format!("{heard:?}");
        let voice = Some(Voice { heard, ..Voice::lasting(None) });
        let turn = Turn::accept(&*store, InboundEvent { voice, ..said(&chat(&key), &key) }).await;
        let mut asked = line(&turn, Speaker::Person, &format!("text of {key}"), 1);
        asked.line.spoken = heard == Heard::Words;
        expected.push(vec![Arc::new(asked.line.clone()), Arc::new(line(&turn, Speaker::Agent, "yes", 2).line)]);
        sessions.push(turn.session);
        write_transcript(&*store, vec![asked, line(&turn, Speaker::Agent, "yes", 2)]).await;
    }
    drop(store);
    subject.reopen().await;

    for (session, expected) in sessions.into_iter().zip(expected) {
        let read = subject.store().transcript(session, 10).await.expect("transcripts are read");
        assert_eq!(read, expected);
    }
}

/// A person's line has the text of their message, also when it is read from disk.
pub async fn a_persons_line_has_the_text_of_their_message(subject: &mut impl Subject) {
    let mut expected = Vec::new();
    let mut sessions = Vec::new();
    for key in ["1", "2", "3"] {
        let store = subject.store();
        let turn = Turn::accept(&*store, said(&chat(key), key)).await;
        let text = format!("text of {key}");
        let lines = vec![line(&turn, Speaker::Person, &text, 1), line(&turn, Speaker::Agent, &text, 2)];
        expected.push(lines.iter().map(|line| Arc::new(line.line.clone())).collect::<Vec<_>>());
        sessions.push(turn.session);
        write_transcript(&*store, lines).await;
    }
    subject.reopen().await;

    for (session, expected) in sessions.into_iter().zip(expected) {
        let read = subject.store().transcript(session, 10).await.expect("transcripts are read");
        assert_eq!(read, expected);
    }
}

/// A limited transcript has the latest lines, oldest first.
pub async fn a_transcript_ends_with_the_latest_lines(subject: &mut impl Subject) {
    let store = subject.store();
    let mut session = None;
    for number in 0..3 {
        let turn = Turn::accept(&*store, said(&chat("a"), &number.to_string())).await;
        write_transcript(
            &*store,
            vec![
                line(&turn, Speaker::Agent, &format!("answer {number}"), number),
                line(&turn, Speaker::Person, &format!("question {number}"), number),
            ],
        )
        .await;
        session = Some(turn.session);
    }
    let other = Turn::accept(&*store, said(&chat("b"), "b")).await;
    write_transcript(&*store, vec![line(&other, Speaker::Person, "elsewhere", 1)]).await;

    let session = session.expect("there were turns");
    assert_eq!(texts(&*store, session, 3).await, ["answer 1", "question 2", "answer 2"]);
    assert_eq!(texts(&*store, session, 100).await.len(), 6);
    assert!(texts(&*store, session, 0).await.is_empty());
    let stored = accept_one(&*store, new_turn(said(&chat("a"), "next"))).await;
    assert!(matches!(stored, Stored::Turn { has_history: true, .. }), "{stored:?}");
}

/// After `/new`, new turns are in the new session; earlier ones stay in the earlier session.
pub async fn a_new_session_is_the_current_one(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    write_transcript(&*store, vec![line(&turn, Speaker::Person, "before", 1)]).await;
    let session = SessionId::new(at(1));
    let sessions = vec![new_session(session, turn.conversation, 1)];
    done(&*store, Transition { sessions, ..Transition::default() }).await;

    let stored = accept_one(&*store, new_turn(said(&chat("a"), "2"))).await;
    let Stored::Turn { conversation, session: current, has_history, .. } = stored else { panic!("{stored:?}") };
    assert_eq!((conversation, current, has_history), (turn.conversation, session, false));
    let before = store.turn(turn.id).await.expect("turns are read").expect("the turn is there");
    assert_eq!(before.session, turn.session);
}

/// A turn is ended whatever is stored of it, and the next one of its conversation is first in the line.
pub async fn a_turn_can_be_set_aside(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let next = Turn::accept(&*store, said(&chat("a"), "2")).await;
    done(&*store, deliveries([turn.delivery(1, "half an answer")])).await;
    done(&*store, Transition { runs_started: vec![turn.run(1)], ..Transition::default() }).await;
    let aside = || Obligation::set_aside("damaged".to_owned(), at(5));
    for _ in 0..2 {
        store.set_aside(turn.id, aside(), "no such field", at(5)).await.expect("it is written");
    }

    let waiting = store.waiting(10).await.expect("turns are read");
    assert_eq!(waiting.iter().map(|line| line.turn).collect::<Vec<_>>(), [next.id]);
    assert_eq!(store.open_turns(turn.conversation).await.expect("turns are read"), [next.id]);
    let dossier = store.dossier(turn.id).await.expect("dossiers are read").expect("the turn is there");
    assert_eq!((&dossier.turn.obligation, dossier.ended_at), (&aside(), Some(at(5))));
    assert_eq!(dossier.deliveries[0].state.as_str(), "dead");
    assert_eq!(dossier.runs[0].end.as_deref(), Some("crashed"));
    let [remark] = &dossier.remarks[..] else { panic!("it is set aside once: {:?}", dossier.remarks) };
    assert_eq!(remark.kind, "set_aside");
    assert!(remark.detail.starts_with("no such field: {"), "the old obligation is kept: {}", remark.detail);
    let mut known = turn.clone();
    let begin = known.on(Event::Begin, 6);
    assert_eq!(commit(&*store, begin).await, Commit::Conflict, "who read it before cannot change it");
    let again = accept_one(&*store, new_turn(said(&chat("a"), "1"))).await;
    assert!(matches!(again, Stored::Duplicate { turn: Some(known), .. } if known == turn.id), "{again:?}");
}

/// Remarks are read in the order in which they were stored.
pub async fn remarks_keep_their_order(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    for pair in [["one", "two"], ["three", "four"]] {
        let remarks = pair.iter().map(|text| remark(&turn, text)).collect();
        done(&*store, Transition { remarks, ..Transition::default() }).await;
    }
    let dossier = store.dossier(turn.id).await.expect("dossiers are read").expect("the turn is there");
    let texts: Vec<&str> = dossier.remarks.iter().map(|entry| &*entry.detail).collect();
    assert_eq!(texts, ["one", "two", "three", "four"]);
    assert_eq!(dossier.remarks[0], remark(&turn, "one"));
}

/// Those of another kind do not count, and those of a turn that is not there are left out.
pub async fn a_turn_has_as_many_bounded_remarks_as_it_may(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let other_kind = Remark { kind: "other".to_owned(), ..remark(&turn, "another kind") };
    done(&*store, Transition { remarks: vec![other_kind], ..Transition::default() }).await;
    let nobodys = Remark { turn: TurnId::new(at(1)), ..remark(&turn, "nobody's") };
    let remarks = [nobodys].into_iter().chain(["one", "one", "two", "three"].map(|text| remark(&turn, text)));
    for remark in remarks {
        let bounded_remarks = vec![BoundedRemark { remark, most: 2 }];
        done(&*store, Transition { bounded_remarks, ..Transition::default() }).await;
    }

    let dossier = store.dossier(turn.id).await.expect("dossiers are read").expect("the turn is there");
    let texts: Vec<&str> = dossier.remarks.iter().map(|entry| &*entry.detail).collect();
    assert_eq!(texts, ["another kind", "one", "two"]);
}
