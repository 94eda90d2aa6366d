//! Checks of approvals.

use rejoinder_guard::{ApprovalOption, ApprovalRequest, Choices};

use super::{
    subject::Subject,
    turn::{START, Turn, accept_one, at, chat, commit, done, new_turn, said},
};
use crate::{
    model::{
        agent::AgentName,
        approval::{Approval, ApprovalChange, ApprovalFilter, ApprovalState},
        conversation::ChannelId,
        event::{EventKind, InboundEvent},
        ids::{ApprovalId, PersonId, TurnId},
        question::QuestionFilter,
    },
    ports::store::{Store, transition::Transition},
};

fn approval(turn: TurnId, action: &str, seconds: u64) -> Approval {
    let details = Some("in full".to_owned());
    Approval {
        id: ApprovalId::new(at(seconds)),
        turn,
        channel: ChannelId::new("test", "main"),
        agent: "main".into(),
        person: "Ann".to_owned(),
        request: ApprovalRequest { details, kind: Some("bank.pay".to_owned()), ..ApprovalRequest::action(action) },
        asked_at: at(seconds),
        expires_at: Some(at(seconds + 60)),
        state: ApprovalState::Waiting,
        decided_at: None,
        decided_by: None,
        note: None,
        chosen: None,
        has_whole: false,
        given_to: None,
        told: Vec::new(),
    }
}

fn asking(asked: &Approval) -> ApprovalChange {
    ApprovalChange::Asked { approval: Box::new(asked.clone()), whole: None }
}

/// A turn's agent asks with more than is decided on.
pub(super) fn asking_with_more(turn: TurnId) -> (Approval, ApprovalRequest, ApprovalChange) {
    let asked = Approval { has_whole: true, ..approval(turn, "pay", 1) };
    let whole = ApprovalRequest { details: Some("x".repeat(10_000)), ..asked.request.clone() };
    let change = ApprovalChange::Asked { approval: Box::new(asked.clone()), whole: Some(whole.clone()) };
    (asked, whole, change)
}

fn changing(change: ApprovalChange) -> Transition {
    Transition { approvals: vec![change], ..Transition::default() }
}

async fn read(store: &dyn Store, filter: ApprovalFilter) -> Vec<Approval> {
    store.approvals(filter, 10).await.expect("approvals are read")
}

/// It is read back with its turn as it was asked for, also after a restart.
pub async fn a_question_to_a_person_is_in_no_list_of_approvals(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let options = vec!["Red".to_owned(), "Blue".to_owned()];
    let request = ApprovalRequest::question("Which colour?", Choices { options, free_text: true, expires: None });
    let [pays, asks] = [approval(turn.id, "pay", 1), Approval { request, ..approval(turn.id, "", 2) }];
    for asked in [&pays, &asks] {
        done(&*store, changing(ApprovalChange::Asked { approval: Box::new(asked.clone()), whole: None })).await;
    }
    subject.reopen().await;

    let store = subject.store();
    assert_eq!(read(&*store, ApprovalFilter::Is(asks.id)).await, []);
    assert_eq!(read(&*store, ApprovalFilter::Of(turn.id)).await, [pays.clone(), asks]);
    for list in [ApprovalFilter::Is(pays.id), ApprovalFilter::Waiting, ApprovalFilter::Latest] {
        assert_eq!(read(&*store, list).await, std::slice::from_ref(&pays));
    }
    assert_eq!(read(&*store, ApprovalFilter::WaitingAfter(pays.id)).await, []);
}

/// The question to the person closes with the request for it, before the turn asks another one. What waits for an approver closes none.
pub async fn a_question_to_a_person_is_closed_with_its_request(subject: &mut impl Subject) {
    let store = subject.store();
    let question = ApprovalRequest::question("Well?", Choices { options: Vec::new(), free_text: true, expires: None });
    for (key, request, is_closed) in [("1", None, false), ("2", Some(question), true)] {
        let turn = Turn::accept(&*store, said(&chat(key), key)).await;
        let open = async || {
            let open =
                store.questions(QuestionFilter::OpenIn(turn.conversation), 10).await.expect("questions are read");
            open.into_iter().map(|record| record.question.text).collect::<Vec<_>>()
        };
        let asked = approval(turn.id, "pay", 1);
        let asked = Approval { request: request.unwrap_or_else(|| asked.request.clone()), ..asked };
        let asks = |change| Transition { questions: vec![turn.question()], ..changing(change) };
        let close = ApprovalChange::Closed { turn: turn.id, state: ApprovalState::Dropped, at: at(4) };
        done(&*store, asks(asking(&asked))).await;

        done(&*store, changing(close.clone())).await;
        assert_eq!(open().await.is_empty(), is_closed, "{asked:?}");
        done(&*store, changing(asking(&Approval { id: ApprovalId::new(at(5)), ..asked }))).await;
        done(&*store, asks(close)).await;
        assert_eq!(open().await, ["Well?"]);
    }
}

/// It is read back as it was asked for, also after a restart, and the second decision is refused.
pub async fn an_approval_is_decided_once(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let (mut first, second) = (approval(turn.id, "pay", 1), approval(turn.id, "pay again", 2));
    let option = |name: &str, allows| ApprovalOption { name: name.to_owned(), allows };
    first.request.options = vec![option("Always", true), option("Never", false)];
    done(&*store, changing(asking(&first))).await;
    done(&*store, changing(asking(&second))).await;
    subject.reopen().await;
    let store = subject.store();
    assert_eq!(read(&*store, ApprovalFilter::Waiting).await, [first.clone(), second.clone()]);
    assert_eq!(read(&*store, ApprovalFilter::WaitingAfter(first.id)).await.first(), Some(&second));
    assert!(read(&*store, ApprovalFilter::WaitingAfter(second.id)).await.is_empty());
    assert_eq!(read(&*store, ApprovalFilter::Is(second.id)).await.first(), Some(&second));
    let asked_for = async |person: &str, limit| {
        store.approvals_for(&turn.address.channel, person, limit).await.expect("approvals are counted")
    };
    let sender = said(&turn.address, "").sender.id;
    assert_eq!((asked_for(&sender, 10).await, asked_for(&sender, 1).await, asked_for("bob", 10).await), (2, 1, 0));

    let (id, state, by, note) = (first.id, ApprovalState::Approved, "Grace".to_owned(), Some("but hurry".to_owned()));
    let chosen = Some("Always".to_owned());
    let decide =
        ApprovalChange::Decided { id, state, at: at(3), by: by.clone(), note: note.clone(), chosen: chosen.clone() };
    done(&*store, changing(decide.clone())).await;
    assert!(store.commit(changing(decide)).await.is_err(), "it was decided");
    let close = |state| changing(ApprovalChange::Closed { turn: turn.id, state, at: at(4) });
    done(&*store, close(ApprovalState::Expired)).await;
    commit(&*store, close(ApprovalState::Dropped)).await;

    let decided_at = Some(at(3));
    let decided = Approval { state, decided_at, decided_by: Some(by), note, chosen, ..first };
    let expired = Approval { state: ApprovalState::Expired, decided_at: Some(at(4)), ..second };
    assert_eq!(read(&*store, ApprovalFilter::Of(turn.id)).await, [decided.clone(), expired.clone()]);
    assert_eq!(read(&*store, ApprovalFilter::Latest).await, [expired, decided]);
    assert!(read(&*store, ApprovalFilter::Waiting).await.is_empty());
    assert_eq!(store.approvals_for(&turn.address.channel, &sender, 10).await.expect("approvals are counted"), 0);
}

/// The whole of a request is read by itself. That it goes with its turn, the checks of removing rows see.
pub async fn the_whole_of_a_request_is_kept_beside_it(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let (asked, whole, change) = asking_with_more(turn.id);
    let short = approval(turn.id, "pay again", 2);
    for change in [change, asking(&short)] {
        done(&*store, changing(change)).await;
    }
    subject.reopen().await;
    let store = subject.store();

    let wholes = [asked.id, short.id].map(|id| store.whole_request(id));
    assert_eq!(read(&*store, ApprovalFilter::Latest).await, [short, asked]);
    let [first, second] = wholes;
    assert_eq!([first.await.expect("it is read"), second.await.expect("it is read")], [Some(whole), None]);
}

/// An approval is given to one run, of the agent that asked for it.
pub async fn an_approval_is_given_to_one_run(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let (yes, no) = (approval(turn.id, "pay", 1), approval(turn.id, "pay more", 2));
    for (asked, state) in [(&yes, ApprovalState::Approved), (&no, ApprovalState::Declined)] {
        done(&*store, changing(asking(asked))).await;
        let (id, by) = (asked.id, "Grace".to_owned());
        done(&*store, changing(ApprovalChange::Decided { id, state, at: at(3), by, note: None, chosen: None })).await;
    }

    for (agent, run) in [("other", 2), ("main", 3), ("main", 4)] {
        let agent = AgentName::from(agent);
        done(&*store, changing(ApprovalChange::Given { turn: turn.id, agent, run })).await;
    }

    subject.reopen().await;
    let store = subject.store();
    let given =
        async || read(&*store, ApprovalFilter::Of(turn.id)).await.into_iter().map(|it| it.given_to).collect::<Vec<_>>();
    assert_eq!(given().await, [Some(3), None]);
    let back = |run| changing(ApprovalChange::GivenBack { turn: turn.id, run });
    commit(&*store, back(3)).await;
    assert_eq!(given().await, [Some(3), None], "it is not the latest");

    let last = approval(turn.id, "pay at once", 4);
    let last = Approval { state: ApprovalState::Approved, given_to: Some(3), ..last };
    done(&*store, changing(asking(&last))).await;
    commit(&*store, back(4)).await;
    assert_eq!(given().await, [Some(3), None, Some(3)], "another run has it");
    done(&*store, back(3)).await;
    assert_eq!(given().await, [Some(3), None, None]);
}

/// Those who are told of it are known by the turns that tell them.
pub async fn an_approval_knows_who_was_told(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let asked = approval(turn.id, "pay", 1);
    done(&*store, changing(asking(&asked))).await;
    let person = PersonId::new(START);
    for _ in 0..2 {
        let event = said(&chat("grace"), "a notice");
        let kind = EventKind::ApprovalAsked { approval: asked.id, person };
        accept_one(&*store, new_turn(InboundEvent { kind, ..event })).await;
    }

    assert_eq!(read(&*store, ApprovalFilter::Waiting).await, [Approval { told: vec![person], ..asked }]);
}
