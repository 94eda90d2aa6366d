//! Checks of what operators do, and of the log.

use futures_util::future::join;
use rejoinder_guard::{Event, Reply};
use uuid::Uuid;

use super::{
    subject::Subject,
    turn::{Turn, at, chat, commit, done, new_turn, said},
};
use crate::{
    model::{
        conversation::{ChannelId, ChatKind},
        event::{InboundEvent, Sender, SenderKind},
        finding::PersonFilter,
        log::{AuditEntry, LogEvent, LogFilter, NewLogEntry, Subject as LogSubject},
        stored_delivery::{DeliveryRecord, DeliveryState},
        target::{Addressees, NotReached},
        tokens::{LinkRecord, Role, SignInChange, SignInRecord, TokenChange, TokenRecord},
    },
    ports::store::{
        Store,
        accept::{Beside, Stored, TransitionOf},
        list::{
            AuditFilter, ConversationFilter, ConversationSummary, DeadLetterFilter, DeliveryFilter, DeliveryListState,
            Origin, TurnFilter,
        },
        record::Pause,
        transition::{Commit, DeliveryChange, IdempotentAnswer, Noun, Operation, Transition},
    },
};

pub(super) fn operation(action: &str, answer: Option<IdempotentAnswer>) -> Operation {
    let entry = AuditEntry {
        by: "grace".to_owned(),
        action: action.to_owned(),
        target: "t1".to_owned(),
        reason: Some("a test".to_owned()),
        not_reached: vec![NotReached { who: Addressees::People(2), why: "they have not written yet".to_owned() }],
    };
    Operation { at: at(1), entry, subject: LogSubject::channel(&ChannelId::new("test", "main")), answer }
}

async fn operated(store: &dyn Store, operation: Operation) {
    done(store, Transition { operation: Some(operation), ..Transition::default() }).await;
}

/// The audit is newest first, the log oldest first.
pub async fn what_operators_do_is_in_the_audit_and_in_the_log(subject: &mut impl Subject) {
    let store = subject.store();
    for action in ["retry", "discard"] {
        operated(&*store, operation(action, None)).await;
    }

    let audit = async |before, limit| {
        let audit = store.audit(&AuditFilter { before, limit }).await.expect("the audit is read");
        audit.into_iter().map(|record| (record.id, record.entry.action)).collect::<Vec<_>>()
    };
    let all = audit(None, 10).await;
    assert_eq!(all.iter().map(|(_, action)| action.as_str()).collect::<Vec<_>>(), ["discard", "retry"]);
    assert_eq!(audit(None, 1).await, all[..1]);
    assert_eq!(audit(Some(all[0].0), 10).await, all[1..]);
    let log = store.log(&LogFilter { limit: 10, ..LogFilter::default() }).await.expect("the log is read");
    assert_eq!(
        log.iter().map(|entry| entry.topic.as_str()).collect::<Vec<_>>(),
        ["operator.retry", "operator.discard"]
    );
    assert_eq!((log[0].data["by"].as_str(), log[0].data["reason"].as_str()), (Some("grace"), Some("a test")));
}

/// Keys of different operators do not collide.
pub async fn an_answer_is_kept_for_a_repeated_request(subject: &mut impl Subject) {
    let store = subject.store();
    let answer = IdempotentAnswer {
        by: "grace".to_owned(),
        key: "k".to_owned(),
        request: vec![1, 2],
        status: 202,
        body: "{}".to_owned(),
    };
    operated(&*store, operation("retry", Some(answer.clone()))).await;

    let kept = async |by: &str, key: &str| store.answer(by, key).await.expect("answers are read");
    assert_eq!(kept("grace", "k").await, Some(answer.clone()));
    assert_eq!((kept("ada", "k").await, kept("grace", "l").await), (None, None));
    // Of two requests at once, the second is rejected as a whole.
    let twice = Transition { operation: Some(operation("retry", Some(answer))), ..Transition::default() };
    assert!(store.commit(twice).await.is_err());
    assert_eq!(store.audit(&AuditFilter { before: None, limit: 10 }).await.expect("the audit is read").len(), 1);
}

/// All is stored, or nothing is.
pub async fn an_operation_is_stored_with_the_events_that_it_began(subject: &mut impl Subject) {
    let store = subject.store();
    let answer = |body: &str| IdempotentAnswer {
        by: "grace".to_owned(),
        key: "k".to_owned(),
        request: vec![1],
        status: 202,
        body: body.to_owned(),
    };
    let begin = async |key: &str| {
        let follows = TransitionOf::new(move |stored: &[Stored]| {
            let begun = stored.iter().filter(|one| matches!(one, Stored::Turn { .. })).count();
            let operation = operation("message", Some(answer(&begun.to_string())));
            Transition { operation: Some(operation), ..Transition::default() }
        });
        store.accept(vec![new_turn(said(&chat("a"), key))], Some(Beside::Operation(follows))).await
    };
    let state = async || {
        let audit = store.audit(&AuditFilter { before: None, limit: 10 }).await.expect("the audit is read");
        let kept = store.answer("grace", "k").await.expect("answers are read");
        let turns = store.list_turns(&TurnFilter { limit: 10, ..TurnFilter::default() }).await.expect("turns are read");
        (audit.len(), turns.len(), kept.map(|answer| answer.body))
    };

    begin("1").await.expect("it is accepted");
    assert_eq!(state().await, (1, 1, Some("1".to_owned())));
    // A request is answered once: the second is rejected as a whole.
    assert!(begin("2").await.is_err());
    assert_eq!(state().await, (1, 1, Some("1".to_owned())));
}

pub(super) fn token(number: u8, seconds: u64) -> TokenRecord {
    TokenRecord {
        id: Uuid::from_u128(number.into()),
        name: format!("token {number}"),
        hash: [number; 32],
        role: Role::Operator,
        channels: Some(vec![ChannelId::new("test", "main")]),
        created_at: at(seconds),
        created_by: "admin".to_owned(),
        expires_at: Some(at(100)),
        revoked_at: None,
    }
}

/// Of two operators who pause a channel or resume it, one does.
pub async fn a_channel_is_paused_once(subject: &mut impl Subject) {
    let store = subject.store();
    let channel = ChannelId::new("test", "main");
    let paused = |by: Option<&str>| {
        let pause = by.map(|by| Pause { since: at(5), by: by.to_owned(), reason: None });
        Transition { pause: Some((channel.clone(), pause)), ..Transition::default() }
    };
    assert_eq!(commit(&*store, paused(None)).await, Commit::Conflict);
    done(&*store, paused(Some("grace"))).await;
    assert_eq!(commit(&*store, paused(Some("ada"))).await, Commit::Conflict);
    assert_eq!(store.paused().await.expect("pauses are read")[0].1.by, "grace");
    done(&*store, paused(None)).await;
    assert_eq!(commit(&*store, paused(None)).await, Commit::Conflict);
}

/// Also over a restart.
pub async fn tokens_are_kept_with_when_they_were_revoked(subject: &mut impl Subject) {
    let store = subject.store();
    let (first, second) = (token(1, 1), TokenRecord { channels: None, expires_at: None, ..token(2, 2) });
    let change = async |change| done(&*store, Transition { token: Some(change), ..Transition::default() }).await;
    change(TokenChange::Create(first.clone())).await;
    change(TokenChange::Create(second.clone())).await;
    assert_eq!(store.tokens().await.expect("tokens are read"), [first.clone(), second.clone()]);

    change(TokenChange::Revoke { id: first.id, at: at(3) }).await;
    drop(store);

    subject.reopen().await;
    let revoked = TokenRecord { revoked_at: Some(at(3)), ..first };
    assert_eq!(subject.store().tokens().await.expect("tokens are read"), [revoked, second]);
}

/// Also over a restart.
pub async fn links_to_the_page_are_kept_until_they_end(subject: &mut impl Subject) {
    let store = subject.store();
    let link = |number: u8, session| LinkRecord {
        code: [number; 32],
        token: Some(Uuid::from_u128(7)),
        session,
        expires_at: at(number.into()),
    };
    let (first, second) = (link(1, None), LinkRecord { token: None, ..link(2, Some(Uuid::from_u128(8))) });
    let change = async |store: &dyn Store, change| {
        done(store, Transition { sign_ins: vec![change], ..Transition::default() }).await;
    };
    change(&*store, SignInChange::MakeLink(first.clone())).await;
    change(&*store, SignInChange::MakeLink(second.clone())).await;
    drop(store);

    subject.reopen().await;
    let store = subject.store();
    assert_eq!(store.links().await.expect("links are read"), [first.clone(), second.clone()]);
    change(&*store, SignInChange::EndLink(first.code)).await;
    change(&*store, SignInChange::EndLink(first.code)).await;
    assert_eq!(store.links().await.expect("links are read"), [second]);
}

/// At once, and on two stores. Each change counts, so that copies of the rows are read again.
pub async fn of_two_that_open_a_link_to_the_page_one_does(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let (code, expires_at) = ([1; 32], at(100));
    let link = SignInChange::MakeLink(LinkRecord { code, token: None, session: None, expires_at });
    let version = async || one.version(Noun::Tokens).await.expect("versions are read");
    let before = version().await;
    done(&*one, Transition { sign_ins: vec![link], ..Transition::default() }).await;
    assert_ne!(version().await, before);

    let open = |number: u8| {
        let session = SignInRecord {
            id: Uuid::from_u128(number.into()),
            hash: [number; 32],
            token: None,
            browser: "Firefox".to_owned(),
            opened_at: at(2),
            expires_at,
        };
        let sign_ins = vec![SignInChange::Open(session), SignInChange::UseLink(code)];
        Transition { sign_ins, ..Transition::default() }
    };
    let (first, second) = join(commit(&*one, open(1)), commit(&*other, open(2))).await;

    assert!([first, second].contains(&Commit::Done) && [first, second].contains(&Commit::Conflict));
    assert_eq!(one.sign_ins().await.expect("sessions are read").len(), 1);
    assert_eq!(one.links().await.expect("links are read"), []);
    other.close().await;
}

/// Also over a restart. A session ends alone, or with its token.
pub async fn sessions_of_the_page_are_kept_until_they_end(subject: &mut impl Subject) {
    let store = subject.store();
    let token = TokenRecord {
        id: Uuid::from_u128(1),
        name: "grafana".to_owned(),
        hash: [1; 32],
        role: Role::Viewer,
        channels: None,
        created_at: at(1),
        created_by: "admin".to_owned(),
        expires_at: None,
        revoked_at: None,
    };
    let create = Transition { token: Some(TokenChange::Create(token.clone())), ..Transition::default() };
    done(&*store, create).await;
    let session = |number: u8, token| SignInRecord {
        id: Uuid::from_u128(number.into()),
        hash: [number; 32],
        token,
        browser: "Firefox".to_owned(),
        opened_at: at(number.into()),
        expires_at: at(100),
    };
    let all = [session(1, None), session(2, Some(token.id)), session(3, None)];
    let opened = all.iter().cloned().map(SignInChange::Open).collect();
    done(&*store, Transition { sign_ins: opened, ..Transition::default() }).await;
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    assert_eq!(store.sign_ins().await.expect("sessions are read"), all);

    let revoke = TokenChange::Revoke { id: token.id, at: at(4) };
    done(&*store, Transition { token: Some(revoke), ..Transition::default() }).await;
    let ended = vec![SignInChange::End(all[0].id), SignInChange::End(all[0].id)];
    done(&*store, Transition { sign_ins: ended, ..Transition::default() }).await;

    assert_eq!(store.sign_ins().await.expect("sessions are read"), [all[2].clone()]);
}

/// The answer is what a retry sends, whatever was refused after it.
pub async fn a_turn_that_is_undeliverable_is_a_dead_letter(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let delivery = turn.answer(&*store, "yes").await;
    let refused = turn.on(Event::Refused { claim: 1, reason: "blocked".to_owned() }, 4);
    done(&*store, refused).await;
    let all = DeadLetterFilter { limit: 10, ..DeadLetterFilter::default() };

    let [letter] = &store.dead_letters(&all).await.expect("dead letters are read")[..] else { panic!("there is one") };
    assert_eq!((letter.id, letter.turn, letter.is_copy), (delivery.as_uuid(), turn.id, false));
    assert_eq!((&*letter.question, letter.sender.as_ref().map(|sender| &*sender.id)), ("text of 1", Some("ann")));
    assert!(letter.reason.contains("blocked") && letter.ended_at == Some(at(4)), "{letter:?}");

    let redirected = turn.on(Event::Redirected { reply: Reply::text("yes") }, 5);
    done(&*store, redirected).await;
    assert!(store.dead_letters(&all).await.expect("dead letters are read").is_empty());
    assert_eq!(store.backlog().await.expect("the backlog is read").undeliverable, 0);
}

/// It is sent only after it was resumed.
pub async fn what_is_held_is_not_upcoming(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let delivery = turn.answer(&*store, "yes").await;
    let record = store.delivery(delivery).await.expect("deliveries are read").expect("it is there");
    let changed = |state| Transition {
        delivery_changes: vec![DeliveryChange { state, ..DeliveryChange::of(&record) }],
        ..Transition::default()
    };
    let next = async || store.next_deliveries(turn.conversation).await.expect("deliveries are read").list.len();

    done(&*store, changed(DeliveryState::Held)).await;
    assert_eq!(next().await, 0);
    let held: Vec<DeliveryRecord> = store.deliveries(turn.id).await.expect("deliveries are read");
    assert_eq!(held[0].state, DeliveryState::Held);
    done(&*store, changed(DeliveryState::Pending)).await;
    assert_eq!(next().await, 1);
}

/// The position is that before the first entry of the time.
pub async fn the_log_of_a_time_is_found(subject: &mut impl Subject) {
    let store = subject.store();
    assert_eq!(store.log_before(at(0)).await.expect("the log is read"), 0);
    for seconds in [1, 2, 2, 5] {
        let entry = NewLogEntry { at: at(seconds), subject: LogSubject::default(), event: LogEvent::ChannelUp };
        done(&*store, Transition { log: vec![entry], ..Transition::default() }).await;
    }

    let after = async |seconds| {
        let after = store.log_before(at(seconds)).await.expect("the log is read");
        store.log(&LogFilter { after, limit: 10, ..LogFilter::default() }).await.expect("the log is read").len()
    };
    assert_eq!([after(0).await, after(2).await, after(3).await, after(5).await, after(6).await], [4, 3, 1, 1, 0]);
}

/// Newest first, by state, conversation and turn.
pub async fn deliveries_are_listed(subject: &mut impl Subject) {
    let store = subject.store();
    let (mut first, mut second) =
        (Turn::accept(&*store, said(&chat("a"), "1")).await, Turn::accept(&*store, said(&chat("b"), "2")).await);
    let (one, two) = (first.answer(&*store, "yes").await, second.answer(&*store, "no").await);
    let record = store.delivery(one).await.expect("deliveries are read").expect("it is there");
    let parked = DeliveryChange { parked: true, attempts: 3, ..DeliveryChange::of(&record) };
    let record = store.delivery(two).await.expect("deliveries are read").expect("it is there");
    // It waits for the end of quiet hours.
    let quiet = DeliveryChange { parked: true, ..DeliveryChange::of(&record) };
    done(&*store, Transition { delivery_changes: vec![parked, quiet], ..Transition::default() }).await;

    let all = DeliveryFilter { limit: 10, ..DeliveryFilter::default() };
    let found = async |filter: DeliveryFilter| {
        let found = store.list_deliveries(&filter).await.expect("deliveries are read");
        found.into_iter().map(|listed| listed.delivery.id).collect::<Vec<_>>()
    };
    let by_state = |state| DeliveryFilter { state: Some(state), ..all.clone() };
    assert_eq!(found(all.clone()).await, [two, one]);
    assert_eq!(found(DeliveryFilter { limit: 1, ..all.clone() }).await, [two]);
    assert_eq!(found(DeliveryFilter { before: Some(two), ..all.clone() }).await, [one]);
    assert_eq!(found(by_state(DeliveryListState::Pending)).await, [two]);
    assert_eq!(found(by_state(DeliveryListState::Parked)).await, [one]);
    assert_eq!(found(by_state(DeliveryListState::In(DeliveryState::Pending))).await, [two, one]);
    assert!(found(by_state(DeliveryListState::In(DeliveryState::Dead))).await.is_empty());
    assert_eq!(found(DeliveryFilter { turn: Some(second.id), ..all.clone() }).await, [two]);
    assert_eq!(found(DeliveryFilter { conversation: Some(first.conversation), ..all.clone() }).await, [one]);
    assert_eq!(found(DeliveryFilter { origin: Some(Origin::Turn), ..all.clone() }).await, [two, one]);
    assert!(found(DeliveryFilter { origin: Some(Origin::Operator), ..all.clone() }).await.is_empty());
    let elsewhere = Some(vec![ChannelId::new("other", "main")]);
    assert!(found(DeliveryFilter { channels: elsewhere, ..all }).await.is_empty());
}

/// Of people whom only their platform names: what operators, schedules and the gateway send to their direct chats.
pub async fn what_others_sent_is_found_by_the_name_that_a_platform_gave(subject: &mut impl Subject) {
    let store = subject.store();
    let bob = said(&chat("b"), "3");
    let (id, name, username) = ("42".to_owned(), Some("Ädá".to_owned()), Some("ada_l".to_owned()));
    let ada = Sender { id, name, username, ..bob.sender.clone() };
    let grace = Sender { id: "grace".to_owned(), kind: SenderKind::Operator, ..bob.sender.clone() };
    let in_a_group = InboundEvent { chat: ChatKind::Group, sender: ada.clone(), ..said(&chat("group"), "1") };
    for event in [InboundEvent { sender: ada, ..said(&chat("a"), "2") }, bob, in_a_group] {
        Turn::accept(&*store, event).await;
    }
    let mut sent = Vec::new();
    for address in ["a", "b", "group"] {
        let event = InboundEvent { sender: grace.clone(), ..said(&chat(address), &format!("to {address}")) };
        let mut turn = Turn::accept(&*store, event).await;
        let delivery = turn.answer(&*store, "The report is ready.").await;
        sent.push((turn.id, delivery));
    }
    let to_ada = sent[0];

    for name in ["ädá", "ADA_L", "42"] {
        let person = Some(PersonFilter::new(name, &[], &[]));
        let filter = TurnFilter { person: person.clone(), limit: 10, ..TurnFilter::default() };
        let turns = store.list_turns(&filter).await.expect("turns are read");
        let received = turns.iter().filter(|turn| turn.text.starts_with("text of to"));
        assert_eq!(received.map(|turn| turn.turn_id).collect::<Vec<_>>(), [to_ada.0], "{name}");
        let filter = DeliveryFilter { person, limit: 10, ..DeliveryFilter::default() };
        let listed = store.list_deliveries(&filter).await.expect("deliveries are read");
        assert_eq!(listed.iter().map(|it| it.delivery.id).collect::<Vec<_>>(), [to_ada.1], "{name}");
    }
}

/// Those with the latest turn first.
pub async fn conversations_are_listed_with_their_sessions(subject: &mut impl Subject) {
    let store = subject.store();
    let first = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let second = Turn::accept(&*store, said(&chat("b"), "2")).await;
    Turn::accept(&*store, said(&chat("a"), "3")).await;

    let all = ConversationFilter { limit: 10, ..ConversationFilter::default() };
    let found = async |filter: ConversationFilter| store.conversations(&filter).await.expect("conversations are read");
    let ids = |list: Vec<ConversationSummary>| list.into_iter().map(|one| one.id).collect::<Vec<_>>();
    let listed = found(all.clone()).await;
    let latest = &listed[0];
    assert_eq!((latest.id, &latest.conversation, latest.turns, latest.open), (first.conversation, &chat("a"), 2, 2));
    assert_eq!((&*latest.text, latest.sender.as_ref().map(|sender| &*sender.id)), ("text of 3", Some("ann")));
    assert_eq!(ids(listed), [first.conversation, second.conversation]);
    assert_eq!(ids(found(ConversationFilter { limit: 1, ..all.clone() }).await), [first.conversation]);
    let after = ConversationFilter { before: Some(first.conversation), ..all.clone() };
    assert_eq!(ids(found(after).await), [second.conversation]);
    let with_text = ConversationFilter { text: Some("b".to_owned()), ..all.clone() };
    assert_eq!(ids(found(with_text).await), [second.conversation]);
    assert_eq!(
        ids(found(ConversationFilter { id: Some(second.conversation), ..all.clone() }).await),
        [second.conversation]
    );
    let elsewhere = Some(vec![ChannelId::new("other", "main")]);
    assert!(found(ConversationFilter { channels: elsewhere, ..all }).await.is_empty());

    let [session] = &store.sessions(first.conversation, 10).await.expect("sessions are read")[..] else {
        panic!("there is one")
    };
    assert_eq!((session.id, session.is_current), (first.session, true));
}

/// Also over a restart.
pub async fn a_channel_is_paused_until_it_is_resumed(subject: &mut impl Subject) {
    let store = subject.store();
    let channel = ChannelId::new("test", "main");
    let pause = Pause { since: at(1), by: "grace".to_owned(), reason: Some("a test".to_owned()) };
    let paused = |pause| Transition { pause: Some((channel.clone(), pause)), ..Transition::default() };
    done(&*store, paused(Some(pause.clone()))).await;
    drop(store);

    subject.reopen().await;
    let store = subject.store();
    assert_eq!(store.paused().await.expect("pauses are read"), [(channel.clone(), pause)]);
    done(&*store, paused(None)).await;
    assert!(store.paused().await.expect("pauses are read").is_empty());
}
