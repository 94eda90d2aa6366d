//! Checks of lists, counts and dossiers for the operator.

use rejoinder_guard::{Event, Outcome, SignalKind};

use super::{
    reading::{ambient, list, turns},
    subject::Subject,
    turn::{START, Turn, at, chat, deliveries, done, gone, main, said},
};
use crate::{
    model::{
        agent::{AgentName, HistoryLine, LineState, Speaker},
        agent_session::AgentSessionChange,
        conversation::{ChannelId, ConversationRef},
        delivery::Class,
        event::InboundEvent,
        ids::{DeliveryId, PersonId, SessionId, TurnId},
        session::SessionChange,
        stored_delivery::{DeliveryRecord, DeliveryState},
        view::TurnStatus,
    },
    ports::store::{
        list::{AgentSessionFilter, DeadLetterFilter, TurnFilter, TurnListState},
        record::{Backlog, BlockedScope, DeadTurn, Remark, Stuck},
        transition::{AttemptStart, TranscriptLine, Transition},
    },
};

/// Pages of a list neither repeat nor skip a turn.
pub async fn a_list_is_newest_first_and_goes_on_at_its_cursor(subject: &mut impl Subject) {
    let store = subject.store();
    let all: [Turn; 7] = turns(&*store, "a").await;
    let mut expected: Vec<TurnId> = all.iter().map(|turn| turn.id).collect();
    expected.reverse();
    let (mut found, mut before) = (Vec::new(), None);
    for state in [None, Some(TurnListState::Open)] {
        loop {
            let page = list(&*store, TurnFilter { state, before, limit: 3, ..TurnFilter::default() }).await;
            assert!(page.len() <= 3);
            let Some(last) = page.last() else { break };
            before = Some(*last);
            found.extend(page);
        }
        assert_eq!(found, expected);
        (found, before) = (Vec::new(), None);
    }
}

/// What waits for an agent is counted, and the sessions that it remembers.
pub async fn what_waits_for_an_agent_is_counted(subject: &mut impl Subject) {
    let store = subject.store();
    let [mut settled, _, _] = turns(&*store, "a").await;
    let delivery = settled.answer(&*store, "yes").await;
    settled.settle(&*store, delivery).await;
    let (agent, session): (AgentName, _) = ("main".into(), settled.session);
    let (own_session, until) = (Some("s1".to_owned()), at(60));
    let kept = AgentSessionChange::Kept { agent: agent.clone(), session, own_session, removals: 0, until };
    done(&*store, Transition { agent_sessions: vec![kept], ..Transition::default() }).await;

    let figures = store.agent_figures(at(0), 10).await.expect("readable");

    let [figures] = &*figures else { panic!("one agent: {figures:?}") };
    assert_eq!((&figures.agent, figures.waiting, figures.sessions), (&agent, 2, 1));
}

/// The sessions that an agent remembers are listed in pages, newest first, as far as the caller may see their conversations.
pub async fn the_sessions_of_an_agent_are_listed(subject: &mut impl Subject) {
    let store = subject.store();
    let (agent, until) = (AgentName::from("main"), at(60));
    let mut sessions = Vec::new();
    for (key, own_session) in [("a", Some("s1")), ("b", None), ("c", None)] {
        let turn = Turn::accept(&*store, said(&chat(key), key)).await;
        let (session, own_session) = (turn.session, own_session.map(str::to_owned));
        let kept = AgentSessionChange::Kept { agent: agent.clone(), session, own_session, removals: 0, until };
        let title = SessionChange::Title { session, title: format!("about {key}") };
        let along = Transition { agent_sessions: vec![kept], sessions: vec![title], ..Transition::default() };
        done(&*store, along).await;
        sessions.push(session);
    }
    let named = SessionChange::Rename { session: sessions[0], name: "home".to_owned() };
    done(&*store, Transition { sessions: vec![named], ..Transition::default() }).await;
    subject.reopen().await;
    let store = subject.store();

    let filter = AgentSessionFilter { agent: agent.clone(), channels: None, before: None, limit: 2 };
    let list = async |filter| store.agent_sessions(&filter).await.expect("sessions are read");
    let page = list(filter.clone()).await;
    assert_eq!(page.iter().map(|it| it.session).collect::<Vec<_>>(), [sessions[2], sessions[1]]);
    let [first] = &list(AgentSessionFilter { before: Some(sessions[1]), ..filter.clone() }).await[..] else {
        panic!("one is left")
    };
    assert_eq!((first.session, &first.conversation, first.has_own_id), (sessions[0], &chat("a"), true));
    assert_eq!((first.name.as_deref(), first.title.as_deref(), &first.person), (Some("home"), Some("about a"), &None));
    let others = [
        AgentSessionFilter { agent: "other".into(), ..filter.clone() },
        AgentSessionFilter { channels: Some(vec![ChannelId::new("test", "other")]), ..filter },
    ];
    for filter in others {
        assert!(list(filter).await.is_empty());
    }
}

/// Its title may be of what was said elsewhere.
pub async fn a_session_that_is_used_elsewhere_is_listed_without_limits_only(subject: &mut impl Subject) {
    let store = subject.store();
    let elsewhere = ConversationRef::new(ChannelId::new("test", "other"), "b");
    let here = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let there = Turn::accept(&*store, said(&elsewhere, "2")).await;
    let (agent, session, until) = (AgentName::from("main"), SessionId::new(at(3)), at(60));
    let new = SessionChange::New {
        id: session,
        conversation: here.conversation,
        name: None,
        person: Some(PersonId::new(at(3))),
        at: at(3),
    };
    let kept = AgentSessionChange::Kept { agent: agent.clone(), session, own_session: None, removals: 0, until };
    done(&*store, Transition { sessions: vec![new], ..Transition::default() }).await;
    done(&*store, Transition { agent_sessions: vec![kept], ..Transition::default() }).await;
    let listed = async || {
        let of = |channels| AgentSessionFilter { agent: agent.clone(), channels, before: None, limit: 9 };
        let (here, there) = (chat("a").channel, elsewhere.channel.clone());
        let mut numbers = Vec::new();
        for channels in [Some(vec![here.clone()]), Some(vec![there.clone()]), Some(vec![here, there]), None] {
            numbers.push(store.agent_sessions(&of(channels)).await.expect("sessions are read").len());
        }
        numbers
    };

    assert_eq!(listed().await, [1, 0, 1, 1]);
    let goes_on = SessionChange::Use { conversation: there.conversation, session, at: at(4) };
    done(&*store, Transition { sessions: vec![goes_on], ..Transition::default() }).await;
    assert_eq!(listed().await, [0, 0, 1, 1]);
    let secret = Turn::accept(&*store, said(&elsewhere, "3")).await;
    assert_eq!(secret.session, session);
    let line = HistoryLine {
        spoken: false,
        speaker: Speaker::Person,
        author: None,
        forwarded: None,
        text: String::new(),
        at: at(5),
        state: LineState::Seen,
    };
    let transcript = vec![TranscriptLine { session, turn: secret.id, seq: secret.seq, claim: 0, line }];
    let left = SessionChange::Use { conversation: there.conversation, session: there.session, at: at(6) };
    done(&*store, Transition { transcript, sessions: vec![left], ..Transition::default() }).await;
    assert_eq!(listed().await, [0, 0, 1, 1]);
}

/// I2: a list is filtered by state, channel, conversation and time.
pub async fn a_list_can_be_narrowed(subject: &mut impl Subject) {
    let store = subject.store();
    let [mut settled, open] = turns(&*store, "a").await;
    let delivery = settled.answer(&*store, "yes").await;
    settled.settle(&*store, delivery).await;
    let event = InboundEvent { received_at: at(100), ..said(&chat("b"), "late") };
    let mut dead = Turn::accept(&*store, event).await;
    dead.answer(&*store, "no").await;
    let refused = dead.on(Event::Refused { claim: 1, reason: "blocked".to_owned() }, 110);
    done(&*store, refused).await;
    let ambient = ambient(&*store, &chat("a"), "ambient").await;
    let elsewhere = ConversationRef::new(ChannelId::new("test", "other"), "a");
    let elsewhere = Turn::accept(&*store, said(&elsewhere, "1")).await;
    assert_eq!(dead.obligation.state().as_str(), "undeliverable");

    let every = || TurnFilter { limit: 10, now: Some(at(15)), ..TurnFilter::default() };
    let state = |state| TurnFilter { state: Some(state), ..every() };
    let list = async |filter| list(&*store, filter).await;
    assert_eq!(list(every()).await.len(), 5);
    assert_eq!(list(state(TurnListState::Open)).await, [elsewhere.id, open.id]);
    assert_eq!(list(state(TurnListState::Settled)).await, [settled.id]);
    assert_eq!(list(state(TurnListState::Undeliverable)).await, [dead.id]);
    assert!(list(state(TurnListState::Overdue)).await.is_empty());
    let overdue = TurnFilter { now: Some(at(26)), ..state(TurnListState::Overdue) };
    assert_eq!(list(overdue.clone()).await, [elsewhere.id, open.id]);
    assert_eq!(list(TurnFilter { conversation: Some(open.conversation), ..overdue }).await, [open.id]);
    let channels = Some(vec![ChannelId::new("test", "other")]);
    assert_eq!(list(TurnFilter { channels, ..every() }).await, [elsewhere.id]);
    let conversation = Some(open.conversation);
    assert_eq!(list(TurnFilter { conversation, ..every() }).await, [ambient, open.id, settled.id]);
    assert_eq!(list(TurnFilter { since: Some(at(100)), ..every() }).await, [dead.id]);
    assert_eq!(list(TurnFilter { since: Some(at(101)), ..every() }).await, []);
    assert_eq!(list(TurnFilter { until: Some(at(100)), ..every() }).await.len(), 4);

    let summaries = store.list_turns(&every()).await.expect("lists are read");
    let summary = summaries.iter().find(|summary| summary.turn_id == settled.id).expect("it is listed");
    assert_eq!((summary.conversation_id, &summary.conversation), (settled.conversation, &settled.address));
    assert_eq!((summary.accepted_at, &summary.handler, summary.owed), (START, &main(), true));
    assert_eq!((&*summary.state, summary.status), ("settled", TurnStatus::Answered));
    assert_eq!((summary.signal, &summary.fallback), (Some(SignalKind::Reply), &None));
    assert_eq!((summary.wake_at, summary.ended_at), (None, Some(at(3))));
    let summary = summaries.iter().find(|summary| summary.turn_id == ambient).expect("it is listed");
    assert_eq!((summary.owed, &*summary.state, summary.ended_at), (false, "open", None));
}

/// The figures for metrics and health. The deadlines of these turns have passed on the store's clock.
pub async fn the_backlog_is_counted(subject: &mut impl Subject) {
    let store = subject.store();
    assert_eq!(store.backlog().await.expect("the backlog is read"), Backlog::default());
    let [mut settled, mut dead, _open, mut deferred] = turns(&*store, "a").await;
    ambient(&*store, &chat("a"), "ambient").await;
    let delivery = settled.answer(&*store, "yes").await;
    settled.settle(&*store, delivery).await;
    dead.answer(&*store, "no").await;
    deferred.begin(&*store).await;
    for event in
        [Event::Outcome(Outcome::Defer { note: None, due: at(9) }), Event::Delivered { claim: 1, messages: Vec::new() }]
    {
        let transition = deferred.on(event, 2);
        done(&*store, transition).await;
    }
    let refused = dead.on(Event::Refused { claim: 1, reason: "blocked".to_owned() }, 4);
    done(&*store, refused).await;
    let backlog = store.backlog().await.expect("the backlog is read");
    let expected = Backlog {
        open: 2,
        overdue: 2,
        waiting: 2,
        pending_deliveries: 1,
        undeliverable: 1,
        deferred: 1,
        oldest_open: Some(START),
        ..Backlog::default()
    };
    assert_eq!(backlog, expected);
}

/// What [`OperatorStore::stuck`](crate::store::OperatorStore::stuck) finds: late turns by what they wait for, messages that get nowhere
/// without those of late turns, and dead letters.
pub async fn what_is_stuck_is_listed_with_what_it_waits_for(subject: &mut impl Subject) {
    let store = subject.store();
    let [mut dead, mut claimed, _open] = turns(&*store, "a").await;
    dead.answer(&*store, "no").await;
    let refused = dead.on(Event::Refused { claim: 1, reason: "blocked".to_owned() }, 4);
    done(&*store, refused).await;
    claimed.answer(&*store, "yes").await;
    let parked = |turn: &Turn, seconds| DeliveryRecord {
        id: DeliveryId::new(at(seconds)),
        parked: true,
        attempts: 3,
        error: Some("502 Bad Gateway".to_owned()),
        ..turn.delivery(1, "yes")
    };
    let quiet = DeliveryRecord { attempts: 0, ..parked(&dead, 12) };
    let in_time = InboundEvent { received_at: at(4_000_000_000), ..said(&chat("b"), "in time") };
    let in_time = Turn::accept(&*store, in_time).await;
    let deferral = DeliveryRecord { class: Class::Interim, ..parked(&in_time, 14) };
    let answer = parked(&in_time, 13);
    done(&*store, deliveries([parked(&dead, 10), parked(&claimed, 11), quiet, answer, deferral])).await;

    let Stuck { overdue, parked, dead: given_up } = store.stuck(10).await.expect("it is read");
    let overdue: Vec<_> = overdue.into_iter().map(|turn| (turn.seq, turn.is_claimed)).collect();
    assert_eq!(overdue, [(3, false), (2, true)]);
    let parked: Vec<_> = parked.iter().map(|it| (it.owed, it.error.as_deref())).collect();
    let error = Some("502 Bad Gateway");
    assert_eq!(parked, [(false, error), (true, error), (false, error)], "a deferral, an answer, and one too late");
    let [DeadTurn { seq: 1, owed: true, since, .. }] = given_up[..] else { panic!("{given_up:?}") };
    assert_eq!(since, at(4));
}

/// A copy that is dead is found; a dead delivery of the turn itself shows in the turn's state.
pub async fn dead_copies_are_listed_and_counted(subject: &mut impl Subject) {
    let store = subject.store();
    let [turn] = turns(&*store, "a").await;
    let dead = |seconds, is_copy| DeliveryRecord {
        id: DeliveryId::new(at(seconds)),
        state: DeliveryState::Dead,
        is_copy,
        ..turn.delivery(1, "yes")
    };
    let (old, new, own) = (dead(10, true), dead(20, true), dead(30, false));
    let waiting = DeliveryRecord { state: DeliveryState::Pending, ..dead(40, true) };
    done(&*store, deliveries([old.clone(), new.clone(), own.clone(), waiting])).await;
    let found = async |filter: DeadLetterFilter| {
        let found = store.dead_letters(&filter).await.expect("deliveries are read");
        found.into_iter().map(|delivery| delivery.id).collect::<Vec<_>>()
    };
    let all = DeadLetterFilter { limit: 10, ..DeadLetterFilter::default() };

    let of = |channel| Some(vec![channel]);
    let (first, second) = (new.id.as_uuid(), old.id.as_uuid());
    assert_eq!(found(all.clone()).await, [first, second]);
    assert_eq!(found(DeadLetterFilter { limit: 1, ..all.clone() }).await, [first]);
    assert_eq!(found(DeadLetterFilter { before: Some(first), ..all.clone() }).await, [second]);
    assert_eq!(found(DeadLetterFilter { channels: of(chat("a").channel), ..all.clone() }).await, [first, second]);
    assert!(found(DeadLetterFilter { channels: of(ChannelId::new("other", "main")), ..all }).await.is_empty());
    assert_eq!(store.backlog().await.expect("the backlog is read").dead_copies, 2);
    let one = async |id| store.delivery(id).await.expect("deliveries are read");
    assert_eq!(one(own.id).await.map(|delivery| (delivery.id, delivery.state)), Some((own.id, DeliveryState::Dead)));
    assert_eq!(one(DeliveryId::new(START)).await, None);
}

/// I3: a dossier has all that `explain` needs.
pub async fn a_dossier_holds_everything(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let delivery = turn.answer(&*store, "yes").await;
    let along = Transition {
        runs_started: vec![turn.run(1)],
        attempts_started: vec![AttemptStart { delivery, number: 1, node: gone(), at: at(3) }],
        remarks: vec![Remark {
            turn: turn.id,
            at: at(3),
            kind: "recovered".to_owned(),
            detail: "the gateway started again".to_owned(),
        }],
        ..Transition::default()
    };
    done(&*store, along).await;
    let dossier = store.dossier(turn.id).await.expect("dossiers are read").expect("the turn is there");
    assert_eq!((dossier.turn.id, dossier.turn.version, dossier.accepted_at), (turn.id, turn.version, START));
    assert_eq!(dossier.ended_at, None);
    assert_eq!((dossier.runs.len(), dossier.deliveries.len(), dossier.attempts.len()), (1, 1, 1));
    assert_eq!(dossier.remarks[0].kind, "recovered");

    turn.settle(&*store, delivery).await;
    let late = turn.on(Event::Tick { ran: None }, 90);
    done(&*store, late).await;
    let dossier = store.dossier(turn.id).await.expect("dossiers are read").expect("the turn is there");
    assert_eq!(dossier.ended_at, Some(at(3)));
    assert!(store.dossier(TurnId::new(START)).await.expect("dossiers are read").is_none());
}

/// H4, H5.
pub async fn blocked_scopes_end(subject: &mut impl Subject) {
    let store = subject.store();
    let scope = |chat: Option<&str>, seconds| BlockedScope {
        channel: ChannelId::new("test", "main"),
        chat: chat.map(str::to_owned),
        until: at(seconds),
    };
    for scope in [scope(Some("a"), 10), scope(None, 20), scope(Some("a"), 30), scope(Some("a"), 5)] {
        store.block(scope).await.expect("the scope is recorded");
    }
    let blocked = async |seconds| {
        let mut found = store.blocked(at(seconds)).await.expect("scopes are read");
        found.sort_by_key(|scope| scope.until);
        found
    };
    assert_eq!(blocked(0).await, [scope(None, 20), scope(Some("a"), 30)]);
    assert_eq!(blocked(20).await, [scope(Some("a"), 30)]);
    assert!(blocked(30).await.is_empty());
}
