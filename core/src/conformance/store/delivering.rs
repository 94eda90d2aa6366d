//! Checks of deliveries: their order, their attempts, and what they wait for.

use std::sync::Arc;

use super::{
    subject::Subject,
    turn::{START, Turn, at, chat, commit, deliveries, done, gone, me, said},
};
use crate::{
    model::{
        conversation::{ChannelId, ConversationRef},
        delivery::{Action, Content},
        ids::{ConversationId, DeliveryId},
        stored_delivery::{DeliveryRecord, DeliveryState, Label},
    },
    ports::store::{
        Store,
        transition::{AttemptEnd, AttemptStart, Commit, DeliveryChange, Transition, Withdrawal},
    },
};

async fn record(store: &dyn Store, turn: &Turn, claim: u32) -> DeliveryRecord {
    let mut records = store.deliveries(turn.id).await.expect("deliveries are read");
    records.retain(|record| record.claim == claim);
    assert_eq!(records.len(), 1);
    records.remove(0)
}

async fn change(store: &dyn Store, change: DeliveryChange) {
    done(store, Transition { delivery_changes: vec![change], ..Transition::default() }).await;
}

async fn start(store: &dyn Store, delivery: DeliveryId, number: u32) {
    let attempts_started = vec![AttemptStart { delivery, number, node: gone(), at: at(3) }];
    done(store, Transition { attempts_started, ..Transition::default() }).await;
}

async fn end(store: &dyn Store, delivery: DeliveryId, number: u32, result: &str) {
    let (result, detail) = (result.to_owned(), Some("503".to_owned()));
    let attempts_ended = vec![AttemptEnd { delivery, number, at: at(4), result, detail }];
    done(store, Transition { attempts_ended, ..Transition::default() }).await;
}

/// B11: a conversation's deliveries are sent in the order in which they were claimed.
pub async fn deliveries_go_out_in_the_order_they_were_claimed(subject: &mut impl Subject) {
    let store = subject.store();
    let first = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let second = Turn::accept(&*store, said(&chat("a"), "2")).await;
    let elsewhere = Turn::accept(&*store, said(&chat("b"), "3")).await;
    // The order does not depend on ids: the first delivery has the greatest.
    let late = DeliveryRecord { id: DeliveryId::new(at(900)), ..second.delivery(1, "first") };
    done(&*store, deliveries([late, second.delivery(2, "second")])).await;
    done(&*store, deliveries([elsewhere.delivery(1, "elsewhere"), first.delivery(1, "third")])).await;

    for expected in ["first", "second", "third"] {
        let mut next = store.next_deliveries(first.conversation).await.expect("deliveries are read");
        assert_eq!(next.is_last, expected == "third");
        let next = next.list.remove(0);
        let Action::Send { content, .. } = &next.action else { panic!("it is sent") };
        assert_eq!(content.text, expected);
        change(&*store, DeliveryChange { state: DeliveryState::Delivered, ..DeliveryChange::of(&next) }).await;
    }
    assert_eq!(store.next_deliveries(first.conversation).await.expect("deliveries are read").list, []);
    assert_eq!(store.next_deliveries(elsewhere.conversation).await.expect("deliveries are read").list.len(), 1);
    let nowhere = ConversationId::new(START);
    assert_eq!(store.next_deliveries(nowhere).await.expect("deliveries are read").list, []);
}

/// What waits is due at once, and what is being sent stays as it is.
pub async fn what_waits_can_be_made_due(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let waiting = DeliveryRecord { next_attempt_at: at(100), ..turn.delivery(1, "1") };
    let id = waiting.id;
    done(&*store, deliveries([waiting])).await;
    let make_due = async |seconds| {
        done(&*store, Transition { due_now: Some((id, at(seconds))), ..Transition::default() }).await;
        let delivery = record(&*store, &turn, 1).await;
        (delivery.state, delivery.next_attempt_at)
    };

    assert_eq!(make_due(5).await, (DeliveryState::Pending, at(5)));
    assert_eq!(make_due(6).await, (DeliveryState::Pending, at(5)));
    let stored = record(&*store, &turn, 1).await;
    change(&*store, DeliveryChange { state: DeliveryState::Sending, ..DeliveryChange::of(&stored) }).await;
    assert_eq!(make_due(4).await, (DeliveryState::Sending, at(5)));
}

/// What is sent at once is stored with its first attempt, unless something of its conversation goes before it.
pub async fn what_is_sent_at_once_needs_an_empty_lane(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a").in_thread("t"), "1")).await;
    let elsewhere = Turn::accept(&*store, said(&chat("a"), "2")).await;
    let at_once = |claim, address: &ConversationRef| {
        let sending = DeliveryRecord { state: DeliveryState::Sending, attempts: 1, ..turn.delivery(claim, "now") };
        let attempts_started = vec![AttemptStart { delivery: sending.id, number: 1, node: gone(), at: at(2) }];
        let empty_lane = Some((turn.conversation, address.clone()));
        Transition { empty_lane, attempts_started, ..deliveries([sending]) }
    };
    done(&*store, deliveries([elsewhere.delivery(1, "elsewhere")])).await;

    for address in [&elsewhere.address, &chat("b").in_thread("t")] {
        assert_eq!(commit(&*store, at_once(1, address)).await, Commit::Conflict, "{address:?}");
    }
    done(&*store, at_once(1, &turn.address)).await;
    let first = record(&*store, &turn, 1).await;
    assert_eq!((first.state, first.attempts), (DeliveryState::Sending, 1));
    let left = store.attempts_left(Some(me())).await.expect("deliveries are read");
    assert_eq!(left.iter().map(|it| it.id).collect::<Vec<_>>(), [first.id]);
    for state in [DeliveryState::Sending, DeliveryState::Pending] {
        change(&*store, DeliveryChange { state, parked: true, ..DeliveryChange::of(&first) }).await;
        assert_eq!(commit(&*store, at_once(2, &turn.address)).await, Commit::Conflict, "{state:?}");
    }
    assert_eq!(store.deliveries(turn.id).await.expect("deliveries are read").len(), 1);
    change(&*store, DeliveryChange { state: DeliveryState::Delivered, ..DeliveryChange::of(&first) }).await;

    done(&*store, at_once(2, &turn.address)).await;
}

/// A withdrawal affects only the pending deliveries of its claim, also those with a failed attempt.
pub async fn what_is_on_its_way_is_not_withdrawn(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let other = Turn::accept(&*store, said(&chat("a"), "2")).await;
    let part = |part| DeliveryRecord { part, parts: 4, ..turn.delivery(1, "part") };
    let (delivered, sending, tried, unsent) = (part(1), part(2), part(3), part(4));
    let ids = [delivered.id, sending.id, tried.id];
    let all = [delivered, sending, tried, unsent, turn.delivery(2, "b"), other.delivery(1, "c")];
    done(&*store, deliveries(all)).await;
    let records = store.deliveries(turn.id).await.expect("deliveries are read");
    for (record, state) in records.iter().zip([DeliveryState::Delivered, DeliveryState::Sending]) {
        change(&*store, DeliveryChange { state, ..DeliveryChange::of(record) }).await;
    }
    for id in ids {
        start(&*store, id, 1).await;
    }
    end(&*store, ids[2], 1, "not_sent").await;

    let withdrawn = vec![Withdrawal { turn: turn.id, claim: 1, reason: "the answer came".to_owned() }];
    done(&*store, Transition { withdrawn, ..Transition::default() }).await;
    let records = store.deliveries(turn.id).await.expect("deliveries are read");
    let states: Vec<&str> = records.iter().map(|record| record.state.as_str()).collect();
    assert_eq!(states, ["delivered", "sending", "withdrawn", "withdrawn", "pending"]);
    assert_eq!(records[3].error.as_deref(), Some("the answer came"));
    assert_eq!(record(&*store, &other, 1).await.state, DeliveryState::Pending);
}

/// E8.
pub async fn a_delivery_is_read_back_as_it_was_changed(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a").in_thread("t"), "1")).await;
    let content = Content { text: "a\u{1}b".to_owned(), choices: vec!["x".to_owned()], ..Content::default() };
    let action = Action::Edit { message: "5".to_owned(), content, reply_to: None };
    let inserted = DeliveryRecord {
        action,
        signal: crate::SignalKind::Deferral,
        via: crate::Via::Fallback {
            cause: crate::Cause::Timeout,
            rung: crate::Rung::Handoff("orchestrator".to_owned()),
        },
        is_copy: true,
        ..turn.delivery(1, "")
    };
    done(&*store, deliveries([inserted.clone()])).await;
    assert_eq!(record(&*store, &turn, 1).await, inserted);

    let expected = DeliveryRecord {
        state: DeliveryState::Dead,
        attempts: 7,
        next_attempt_at: at(99),
        label: Some(Label::Replaces),
        parked: true,
        copies: 2,
        resend_from: Some(at(98)),
        message_ids: vec!["10".to_owned(), "11".to_owned()],
        error: Some("gone".to_owned()),
        retried_at: Some(at(40)),
        delivered_at: Some(at(50)),
        ..inserted
    };
    change(&*store, DeliveryChange::of(&expected)).await;
    assert_eq!(record(&*store, &turn, 1).await, expected);
}

/// The names of the chats with something to send and the seconds at which it is due, from [`OutboxStore::upcoming`].
async fn upcoming(store: &dyn Store, turns: &[Turn], limit: u32) -> Vec<(String, u64)> {
    let channel = chat("a").channel;
    let found = store.upcoming(&channel, limit).await.expect("deliveries are read");
    let name = |id| turns.iter().find(|turn| turn.conversation == id).expect("it is known").address.chat.to_string();
    found.into_iter().map(|(id, due)| (name(id), due.since(START).as_secs())).collect()
}

fn named(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(name, seconds)| ((*name).to_owned(), *seconds)).collect()
}

/// H4: a delivery that is not due delays later ones of its conversation, and no other conversation.
pub async fn the_first_of_a_conversation_is_upcoming(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turns = Vec::new();
    for name in ["a", "b", "c", "d"] {
        turns.push(Turn::accept(&*store, said(&chat(name), name)).await);
    }
    let elsewhere = ConversationRef::new(ChannelId::new("other", "main"), "e");
    let elsewhere = Turn::accept(&*store, said(&elsewhere, "e")).await;
    let due = |turn: &Turn, seconds| DeliveryRecord { next_attempt_at: at(seconds), ..turn.delivery(1, "x") };
    let sending = DeliveryRecord { state: DeliveryState::Sending, ..due(&turns[2], 1) };
    done(
        &*store,
        deliveries([
            due(&turns[0], 20),
            due(&turns[1], 50),
            due(&turns[1], 5),
            sending,
            due(&turns[2], 6),
            due(&turns[3], 10),
            due(&turns[3], 10),
            due(&elsewhere, 1),
        ]),
    )
    .await;
    assert_eq!(upcoming(&*store, &turns, 10).await, named(&[("d", 10), ("a", 20), ("b", 50)]));
    assert_eq!(upcoming(&*store, &turns, 1).await, named(&[("d", 10)]));

    let stuck = store.next_deliveries(turns[2].conversation).await.expect("deliveries are read").list.remove(0);
    assert_eq!(stuck.state, DeliveryState::Sending);
    change(&*store, DeliveryChange { state: DeliveryState::Refused, ..DeliveryChange::of(&stuck) }).await;
    assert_eq!(upcoming(&*store, &turns, 1).await, named(&[("c", 6)]));
}

/// What was never tried is no probe, nor what may have been shown and must wait.
pub async fn what_fewer_attempts_may_have_shown_is_probed_first(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let tried = |seconds| DeliveryRecord { attempts: 1, next_attempt_at: at(seconds), ..turn.delivery(1, "x") };
    let all = [DeliveryRecord { attempts: 0, ..tried(1) }, tried(2), tried(30), tried(20)];
    let ids: Vec<_> = all.iter().map(|one| one.id).collect();
    done(&*store, deliveries(all.clone())).await;
    for (record, copies) in all.iter().zip([0, 1, 1, 1]).skip(1) {
        change(&*store, DeliveryChange { copies, resend_from: Some(at(10)), ..DeliveryChange::of(record) }).await;
    }
    let probe = async |seconds| {
        let probe = store.next_probe(&chat("a").channel, at(seconds)).await.expect("deliveries are read");
        probe.map(|(conversation, delivery)| {
            assert_eq!(conversation, turn.conversation);
            ids.iter().position(|id| *id == delivery).expect("it is one of them")
        })
    };
    assert_eq!(probe(9).await, None);
    assert_eq!(probe(10).await, Some(1));

    change(&*store, DeliveryChange { copies: 2, resend_from: Some(at(10)), ..DeliveryChange::of(&all[1]) }).await;
    assert_eq!(probe(10).await, Some(3));
    change(&*store, DeliveryChange { state: DeliveryState::Delivered, ..DeliveryChange::of(&all[3]) }).await;
    assert_eq!(probe(10).await, Some(2));
    let elsewhere = ChannelId::new("other", "main");
    assert_eq!(store.next_probe(&elsewhere, at(10)).await.expect("deliveries are read"), None);
}

/// A parked delivery is tried at its own times. Later claims do not wait for it, but the later parts of its own do.
pub async fn what_is_parked_holds_up_no_other_claim(subject: &mut impl Subject) {
    let store = subject.store();
    let (one, two) =
        (Turn::accept(&*store, said(&chat("a"), "1")).await, Turn::accept(&*store, said(&chat("a"), "2")).await);
    let part = |number: u32, seconds| DeliveryRecord {
        part: number,
        parts: 3,
        next_attempt_at: at(seconds),
        ..one.delivery(1, &format!("one {number}"))
    };
    let later = |claim: u32, seconds| DeliveryRecord {
        next_attempt_at: at(seconds),
        ..two.delivery(claim, &format!("two {claim}"))
    };
    let parked = DeliveryRecord { parked: true, attempts: 3, ..later(1, 50) };
    done(&*store, deliveries([part(1, 1), part(2, 60), part(3, 1), parked, later(2, 40), later(3, 1)])).await;
    let turns = [one];
    let next = async || {
        let next = store.next_deliveries(turns[0].conversation).await.expect("deliveries are read").list;
        let text = |next: &DeliveryRecord| match &next.action {
            Action::Send { content, .. } => content.text.clone(),
            other => panic!("it is sent: {other:?}"),
        };
        next.iter().map(text).collect::<Vec<_>>()
    };
    let of = async |part: usize| store.deliveries(turns[0].id).await.expect("deliveries are read").remove(part - 1);
    assert_eq!(next().await, ["one 1"]);
    assert!(!store.is_overtaken(of(2).await.id).await.expect("deliveries are read"));

    change(&*store, DeliveryChange { state: DeliveryState::Delivered, ..DeliveryChange::of(&of(1).await) }).await;
    change(&*store, DeliveryChange { parked: true, attempts: 3, ..DeliveryChange::of(&of(2).await) }).await;

    assert_eq!(next().await, ["one 2", "two 1", "two 2"]);
    assert_eq!(upcoming(&*store, &turns, 10).await, named(&[("a", 40)]));
    let last = store.deliveries(two.id).await.expect("deliveries are read").remove(2);
    change(&*store, DeliveryChange { state: DeliveryState::Delivered, ..DeliveryChange::of(&last) }).await;
    assert!(store.is_overtaken(of(2).await.id).await.expect("deliveries are read"));
    assert!(!store.is_overtaken(last.id).await.expect("deliveries are read"));
    assert_eq!(store.backlog().await.expect("the backlog is read").parked_deliveries, 2);
}

/// Attempts that a limit ended are no failures.
pub async fn a_failing_delivery_knows_since_when(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let delivery = turn.delivery(1, "a");
    let id = delivery.id;
    done(&*store, deliveries([delivery])).await;
    let since = async || store.failing_since(id).await.expect("attempts are read");
    let begin = async |number, seconds| {
        let attempts_started = vec![AttemptStart { delivery: id, number, node: gone(), at: at(seconds) }];
        done(&*store, Transition { attempts_started, ..Transition::default() }).await;
    };
    begin(1, 10).await;
    assert_eq!(since().await, None);
    end(&*store, id, 1, "limited").await;
    assert_eq!(since().await, None);
    begin(2, 20).await;
    end(&*store, id, 2, "unknown").await;
    begin(3, 30).await;
    end(&*store, id, 3, "not_sent").await;
    assert_eq!(since().await, Some(at(20)));
}

/// D1: an attempt without a result is left by a crash.
pub async fn an_attempt_without_a_result_is_found(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let sending = |claim, text| DeliveryRecord { state: DeliveryState::Sending, ..turn.delivery(claim, text) };
    let (first, second) = (sending(1, "a"), sending(2, "b"));
    let (done_with, cut_off) = (first.id, second.id);
    done(&*store, deliveries([first, second])).await;
    start(&*store, done_with, 1).await;
    end(&*store, done_with, 1, "not_sent").await;
    start(&*store, cut_off, 1).await;
    end(&*store, cut_off, 1, "not_sent").await;
    start(&*store, cut_off, 2).await;

    let interrupted = store.attempts_left(Some(me())).await.expect("deliveries are read");
    assert_eq!(interrupted.iter().map(|record| record.id).collect::<Vec<_>>(), [cut_off]);
    let by_its_node = store.attempts_left(Some(gone())).await.expect("deliveries are read");
    assert!(by_its_node.is_empty(), "it may be in flight there");
    let of_all = store.attempts_left(None).await.expect("deliveries are read");
    assert_eq!(of_all.iter().map(|record| record.id).collect::<Vec<_>>(), [cut_off]);
    let last = async |delivery| store.last_attempt(delivery).await.expect("attempts are read");
    assert_eq!((last(done_with).await, last(cut_off).await), (Some(1), Some(2)));
    assert_eq!(last(DeliveryId::new(START)).await, None);
    let again = Transition {
        attempts_started: vec![AttemptStart { delivery: cut_off, number: 2, node: gone(), at: at(5) }],
        ..Transition::default()
    };
    store.commit(again).await.expect_err("an attempt's number is used once");
    end(&*store, cut_off, 2, "delivered").await;
    assert!(store.attempts_left(Some(me())).await.expect("deliveries are read").is_empty());

    let dossier = store.dossier(turn.id).await.expect("dossiers are read").expect("the turn is there");
    let results: Vec<_> =
        dossier.attempts.iter().map(|attempt| (attempt.delivery, attempt.number, attempt.result.as_deref())).collect();
    let expected = [(done_with, 1, Some("not_sent")), (cut_off, 1, Some("not_sent")), (cut_off, 2, Some("delivered"))];
    assert_eq!(results, expected);
}

/// Of two nodes that end an attempt, the first one does.
pub async fn an_attempt_ends_once(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let delivery = turn.delivery(1, "a");
    let id = delivery.id;
    let is_attempting = async |number| store.is_attempting(id, number).await.expect("attempts are read");
    done(&*store, deliveries([delivery.clone()])).await;
    assert!(!is_attempting(1).await);
    start(&*store, id, 1).await;
    assert!(is_attempting(1).await && !is_attempting(2).await);

    end(&*store, id, 1, "unknown").await;
    assert!(!is_attempting(1).await);
    let late = Transition {
        attempts_ended: vec![AttemptEnd {
            delivery: id,
            number: 1,
            at: at(5),
            result: "delivered".to_owned(),
            detail: None,
        }],
        delivery_changes: vec![DeliveryChange { state: DeliveryState::Delivered, ..DeliveryChange::of(&delivery) }],
        ..Transition::default()
    };
    store.commit(late).await.expect_err("it has ended");

    let dossier = store.dossier(turn.id).await.expect("dossiers are read").expect("the turn is there");
    assert_eq!(dossier.attempts[0].result.as_deref(), Some("unknown"));
    assert_eq!(dossier.deliveries[0].state, DeliveryState::Pending);
}

/// An outage of a day has thousands: of those in a row with the same result, the first and the last are kept.
pub async fn of_many_attempts_that_fail_alike_the_first_and_the_last_are_kept(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let delivery = DeliveryRecord { state: DeliveryState::Sending, ..turn.delivery(1, "a") };
    let id = delivery.id;
    done(&*store, deliveries([delivery])).await;
    for number in 1..=60 {
        let result = match number {
            41 => "unknown",
            60 => "delivered",
            _ => "not_sent",
        };
        start(&*store, id, number).await;
        end(&*store, id, number, result).await;
    }
    start(&*store, id, 61).await;

    let dossier = store.dossier(turn.id).await.expect("dossiers are read").expect("the turn is there");
    let kept: Vec<u32> = dossier.attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(kept[..20], (1..=20).collect::<Vec<_>>());
    assert_eq!(kept[20..], [40, 41, 42, 59, 60, 61]);
    assert_eq!(store.last_attempt(id).await.expect("attempts are read"), Some(61));
    let interrupted = store.attempts_left(Some(me())).await.expect("deliveries are read");
    assert_eq!(interrupted.iter().map(|record| record.id).collect::<Vec<_>>(), [id]);
}

/// The parts of a long answer are read in their numeric order.
pub async fn parts_come_in_order(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let part = |part| DeliveryRecord { part, parts: 12, ..turn.delivery(1, "part") };
    done(&*store, deliveries((1..=12).map(part))).await;
    let records = store.deliveries(turn.id).await.expect("deliveries are read");
    assert_eq!(records.iter().map(|record| record.part).collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());
}

/// I3: the first time at which a hook's result is fetched is recorded, for the latest signal only.
pub async fn fetching_is_remarked_once(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let delivered = |claim| DeliveryRecord { state: DeliveryState::Delivered, ..turn.delivery(claim, "a") };
    let copy = DeliveryRecord { is_copy: true, ..delivered(2) };
    done(&*store, deliveries([delivered(1), delivered(2), copy, turn.delivery(3, "b")])).await;
    store.mark_fetched(turn.id, at(10));
    assert_eq!(fetched(&store, &turn).await, at(10));
    store.mark_fetched(turn.id, at(20));
    for _ in 0..3 {
        store.probe().await.expect("the store writes");
    }
    let records = store.deliveries(turn.id).await.expect("deliveries are read");
    let marks: Vec<_> =
        records.iter().map(|record| (record.claim, record.is_copy, record.fetched_at.is_some())).collect();
    assert_eq!(marks, [(1, false, false), (2, false, true), (2, true, false), (3, false, false)]);
    assert_eq!(records[1].fetched_at, Some(at(10)));
}

/// Waits until the fetch is recorded.
async fn fetched(store: &Arc<dyn Store>, turn: &Turn) -> crate::Timestamp {
    for _ in 0..10_000 {
        let records = store.deliveries(turn.id).await.expect("deliveries are read");
        if let Some(at) = records.iter().find_map(|record| record.fetched_at) {
            return at;
        }
        store.probe().await.expect("the store writes");
    }
    panic!("the fetch was never recorded");
}
