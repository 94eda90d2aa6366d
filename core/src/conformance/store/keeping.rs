//! The sessions that agents keep, and what they are owed to be told of them.

use super::{
    subject::Subject,
    turn::{Turn, at, chat, done, new_session, said},
};
use crate::{
    model::{
        agent::AgentName,
        agent_session::{AgentNotice, AgentSession, AgentSessionChange, SessionNoticeChange},
        ids::SessionId,
        session::SessionChange,
    },
    ports::store::{Store, housekeeping::Removal, transition::Transition},
};

fn agent() -> AgentName {
    "main".into()
}

async fn change(store: &dyn Store, change: AgentSessionChange) {
    done(store, Transition { agent_sessions: vec![change], ..Transition::default() }).await;
}

async fn keep(store: &dyn Store, session: SessionId, own_session: &str) {
    let (agent, own_session, removals, until) = (agent(), Some(own_session.to_owned()), 0, at(60));
    change(store, AgentSessionChange::Kept { agent, session, own_session, removals, until }).await;
}

async fn kept(store: &dyn Store, session: SessionId) -> Option<Option<String>> {
    let kept = store.agent_session(&agent(), session).await.expect("sessions are read");
    kept.map(|AgentSession { own_session, .. }| own_session)
}

async fn owed(store: &dyn Store) -> Vec<AgentNotice> {
    store.agent_notices(at(0), 10).await.expect("notices are read")
}

/// What is owed now, and the agent's own id of the session.
async fn changes(store: &dyn Store) -> Vec<(SessionNoticeChange, Option<String>)> {
    owed(store).await.into_iter().map(|owed| (owed.notice.change, owed.notice.own_session)).collect()
}

async fn changes_sessions(store: &dyn Store, sessions: Vec<SessionChange>) {
    done(store, Transition { sessions, ..Transition::default() }).await;
}

/// An agent's own id of a session is read back, each agent's for itself.
pub async fn what_an_agent_calls_a_session_is_kept(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    assert_eq!(kept(&*store, turn.session).await, None);
    let (agent, session, until) = (agent(), turn.session, at(60));
    change(&*store, AgentSessionChange::Kept { agent, session, own_session: None, removals: 0, until }).await;
    assert_eq!(kept(&*store, session).await, Some(None));
    keep(&*store, session, "first").await;
    keep(&*store, session, "second").await;
    subject.reopen().await;

    let store = subject.store();
    assert_eq!(kept(&*store, session).await, Some(Some("second".to_owned())));
    assert_eq!(store.agent_session(&"other".into(), session).await.expect("sessions are read"), None);
    assert_eq!(store.next_agent_notice(at(0)).await.expect("notices are read"), None);
}

/// After a turn was removed that an agent cannot forget, no id is left of a run that began before, and that of a later run stays.
pub async fn what_an_agent_calls_a_session_goes_with_a_turn_that_it_cannot_forget(subject: &mut impl Subject) {
    let store = subject.store();
    let session = Turn::accept(&*store, said(&chat("a"), "1")).await.session;
    let name = async |own_session: &str, removals| {
        let (agent, own_session, until) = (agent(), Some(own_session.to_owned()), at(60));
        change(&*store, AgentSessionChange::Kept { agent, session, own_session, removals, until }).await;
        kept(&*store, session).await.expect("it is kept")
    };
    let unname = async |removals| {
        change(&*store, AgentSessionChange::Unnamed { agent: agent(), session, removals }).await;
        kept(&*store, session).await.expect("it is kept")
    };
    name("first", 0).await;
    assert_eq!(name("second", 0).await, Some("second".to_owned()), "named after the agent was told of the first");

    assert_eq!(unname(0).await, None);
    assert_eq!(name("second", 0).await, None, "a run from before the removal names it");
    let third = Some("third".to_owned());
    assert_eq!(name("third", 1).await, third);
    assert_eq!(unname(0).await, third, "the same removal, or another one of that time");
    assert_eq!(name("third", 1).await, third, "and later runs go on to store theirs");
}

/// What happens to a session is owed to the agents that keep it, and to no others.
pub async fn what_happens_to_a_session_is_owed_to_its_agents(subject: &mut impl Subject) {
    let store = subject.store();
    let mut noticed = store.noticed();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let again = Turn::accept(&*store, said(&chat("a"), "2")).await;
    let (session, conversation) = (turn.session, turn.conversation);
    changes_sessions(&*store, vec![SessionChange::LeaveOut { session, turns: vec![turn.id] }]).await;
    assert!(owed(&*store).await.is_empty() && !noticed.has_changed().expect("it is open"), "no agent keeps it");
    keep(&*store, session, "own").await;

    let own = Some("own".to_owned());
    let removed = (SessionNoticeChange::TurnRemoved(again.id), own.clone());
    changes_sessions(&*store, vec![SessionChange::LeaveOut { session, turns: vec![turn.id, again.id] }]).await;
    assert_eq!(changes(&*store).await, std::slice::from_ref(&removed), "the first was left out before");
    assert!(noticed.has_changed().expect("it is open"));
    noticed.borrow_and_update();

    let next = SessionId::new(at(3));
    changes_sessions(&*store, vec![new_session(next, conversation, 3)]).await;
    let left = (SessionNoticeChange::Left, own.clone());
    assert_eq!(changes(&*store).await, [left, removed.clone()]);
    changes_sessions(&*store, vec![SessionChange::Use { conversation, session, at: at(4) }]).await;
    assert_eq!(changes(&*store).await, [removed]);

    let deleted =
        vec![SessionChange::Use { conversation, session: next, at: at(5) }, SessionChange::Delete { session }];
    changes_sessions(&*store, deleted).await;
    subject.reopen().await;
    assert_eq!(changes(&*subject.store()).await, [(SessionNoticeChange::Deleted, own)]);
}

/// A session is left when the last conversation leaves it.
pub async fn a_session_in_which_another_conversation_continues_is_not_left(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let there = Turn::accept(&*store, said(&chat("b"), "2")).await;
    keep(&*store, turn.session, "own").await;
    let go_on = SessionChange::Use { conversation: there.conversation, session: turn.session, at: at(2) };
    changes_sessions(&*store, vec![go_on]).await;

    changes_sessions(&*store, vec![new_session(SessionId::new(at(3)), turn.conversation, 3)]).await;
    assert!(owed(&*store).await.is_empty());
    changes_sessions(&*store, vec![new_session(SessionId::new(at(4)), there.conversation, 4)]).await;
    assert_eq!(owed(&*store).await.len(), 1);
}

/// A session whose turns are removed is gone, too, and so is what the agent calls it once it was told.
pub async fn a_notice_is_owed_until_it_is_settled(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let delivery = turn.answer(&*store, "yes").await;
    turn.settle(&*store, delivery).await;
    keep(&*store, turn.session, "own").await;
    store.remove(Removal::Turns(vec![turn.id])).await.expect("they are removed");
    let notice = owed(&*store).await.pop().expect("there is one");
    assert_eq!((notice.notice.change, notice.attempts), (SessionNoticeChange::Deleted, 0));

    change(&*store, AgentSessionChange::PutOff(AgentNotice { attempts: 3, ..notice.clone() }, at(9))).await;
    assert!(owed(&*store).await.is_empty());
    assert_eq!(store.next_agent_notice(at(0)).await.expect("notices are read"), Some(at(9)));
    let later = store.agent_notices(at(9), 10).await.expect("notices are read");
    assert_eq!(later, [AgentNotice { attempts: 3, ..notice.clone() }]);
    // A run that still goes on has named another one: the agent was told of the first.
    keep(&*store, turn.session, "other").await;
    change(&*store, AgentSessionChange::Settled(notice.clone())).await;
    let left = store.agent_notices(at(60), 10).await.expect("notices are read").pop().expect("there is one");
    assert_eq!(left.notice.own_session.as_deref(), Some("other"));

    change(&*store, AgentSessionChange::Settled(left)).await;
    assert_eq!(store.next_agent_notice(at(0)).await.expect("notices are read"), None);
    assert_eq!(kept(&*store, turn.session).await, None);
}

/// A session that the store does not have is that of one run: its agent is told that it is gone once the run has ended.
pub async fn a_session_of_one_run_is_gone_when_the_run_has_ended(subject: &mut impl Subject) {
    let store = subject.store();
    let session = SessionId::new(at(1));
    keep(&*store, session, "own").await;

    assert!(owed(&*store).await.is_empty());
    assert_eq!(store.next_agent_notice(at(0)).await.expect("notices are read"), Some(at(60)));
    let due = store.agent_notices(at(60), 10).await.expect("notices are read").pop().expect("there is one");
    assert_eq!((due.notice.session, due.notice.change), (session, SessionNoticeChange::Deleted));
}

/// The session of one turn is kept while the turn is open: it may run again.
pub async fn a_session_of_one_turn_is_kept_while_the_turn_is_open(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    keep(&*store, turn.id.as_uuid().into(), "own").await;
    assert_eq!(store.agent_notices(at(60), 10).await.expect("notices are read"), []);
    assert!(store.next_agent_notice(at(60)).await.expect("notices are read").is_some(), "it is looked at again");

    let delivery = turn.answer(&*store, "yes").await;
    turn.settle(&*store, delivery).await;

    let due = store.agent_notices(at(60), 10).await.expect("notices are read").pop().expect("there is one");
    assert_eq!((due.notice.session, due.notice.change), (turn.id.as_uuid().into(), SessionNoticeChange::Deleted));
}

/// An agent of which much is owed leaves room for the others.
pub async fn notices_are_read_for_each_agent(subject: &mut impl Subject) {
    let store = subject.store();
    let kept = [(1, "main"), (2, "main"), (3, "main"), (4, "other")]
        .map(|(until, name)| (at(until), AgentName::from(name), SessionId::new(at(until))));
    for (until, agent, session) in kept.clone() {
        change(&*store, AgentSessionChange::Kept { agent, session, own_session: None, removals: 0, until }).await;
    }

    let due = store.agent_notices(at(60), 2).await.expect("notices are read");

    let due: Vec<_> = due.into_iter().map(|owed| owed.notice.session).collect();
    assert_eq!(due, [kept[0].2, kept[1].2, kept[3].2]);
    assert_eq!(store.next_agent_notice(at(3)).await.expect("notices are read"), Some(at(4)));
}
