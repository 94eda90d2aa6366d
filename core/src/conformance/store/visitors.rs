//! Checks of what people sign in to a chat page with, and of the list of their conversations.

use futures_util::future::join;
use rejoinder_guard::Timestamp;
use uuid::Uuid;

use super::{
    subject::Subject,
    turn::{Turn, at, chat, commit, done, said},
};
use crate::{
    model::{
        conversation::{ChannelId, ConversationRef},
        event::InboundEvent,
        people::{Identity, PeopleChange},
        push::PushSubscription,
        visitors::{Invitation, Passkey, ThreadSummary, Visit, VisitorChange},
    },
    ports::store::{
        Store,
        transition::{Commit, Transition},
    },
};

fn page() -> ChannelId {
    ChannelId::new("webchat", "main")
}

fn account(id: &str) -> Identity {
    Identity { channel: page(), id: id.to_owned() }
}

fn invitation(number: u8, account: &str) -> Invitation {
    Invitation { code: [number; 32], channel: page(), account: account.to_owned(), expires_at: at(100) }
}

fn passkey(number: u8, account: &str) -> Passkey {
    Passkey {
        id: vec![number; 16],
        channel: page(),
        account: account.to_owned(),
        party: "chat.example.org".to_owned(),
        algorithm: -7,
        key: vec![number; 91],
        counter: 3,
        browser: "Firefox".to_owned(),
        added_at: at(number.into()),
        used_at: None,
    }
}

fn visit(number: u8, account: &str) -> Visit {
    Visit {
        id: Uuid::from_u128(number.into()),
        hash: [number; 32],
        channel: page(),
        account: account.to_owned(),
        challenge: [100 + number; 32],
        browser: "Firefox".to_owned(),
        opened_at: at(number.into()),
        expires_at: at(1000),
    }
}

/// A conversation of somebody on the page.
fn of_page(of: &str) -> ConversationRef {
    ConversationRef::new(page(), of).in_thread("thread")
}

/// Something is said in a conversation, and a browser is told of what is shown there.
async fn subscribe(store: &dyn Store, address: &ConversationRef) {
    let key = format!("{}/{:?}", address.chat, address.thread);
    Turn::accept(store, said(address, &key)).await;
    let endpoint = format!("https://push.example/{}", address.chat);
    let subscription = PushSubscription { endpoint, key: vec![4; 65], auth: vec![1; 16] };
    store.add_subscription(address, subscription, at(10)).await.expect("it is stored");
}

fn changes<const N: usize>(changes: [VisitorChange; N]) -> Transition {
    Transition { visitors: changes.into(), ..Transition::default() }
}

/// Ada's first passkey, with which a visit is opened.
fn registered() -> [VisitorChange; 3] {
    [
        VisitorChange::Invite(invitation(1, "ada")),
        VisitorChange::Register { passkey: passkey(2, "ada"), invitation: [1; 32] },
        VisitorChange::Open(visit(3, "ada")),
    ]
}

/// What is decided on an invitation is decided before: so it is stored first.
async fn register(store: &dyn Store) {
    let [invite, register, open] = registered();
    done(store, changes([invite])).await;
    done(store, changes([register, open])).await;
}

/// Also over a restart.
pub async fn a_passkey_is_registered_with_an_invitation(subject: &mut impl Subject) {
    let store = subject.store();
    register(&*store).await;
    done(&*store, changes([VisitorChange::Invite(invitation(5, "ada"))])).await;
    done(&*store, changes([VisitorChange::Invite(invitation(4, "bob"))])).await;
    drop(store);

    subject.reopen().await;
    let store = subject.store();
    assert_eq!(store.passkey(&[2; 16]).await.expect("passkeys are read"), Some(passkey(2, "ada")));
    assert_eq!(store.passkeys(&account("ada")).await.expect("passkeys are read"), [passkey(2, "ada")]);
    assert_eq!(store.passkeys(&account("bob")).await.expect("passkeys are read"), []);
    assert_eq!(store.visit(&[3; 32]).await.expect("visits are read"), Some(visit(3, "ada")));
    assert_eq!(store.visits(&account("ada")).await.expect("visits are read"), [visit(3, "ada")]);
    let open = async |number: u8| store.invitation(&[number; 32]).await.expect("invitations are read");
    assert_eq!((open(1).await, open(4).await), (None, Some(invitation(4, "bob"))));

    done(&*store, changes([VisitorChange::Invite(invitation(6, "ada"))])).await;
    assert_eq!((open(5).await, open(6).await), (None, Some(invitation(6, "ada"))), "the last one counts");
}

/// Neither by another person, nor late, nor for a passkey that is there.
pub async fn an_invitation_is_for_one_passkey_of_its_person(subject: &mut impl Subject) {
    let store = subject.store();
    register(&*store).await;
    done(&*store, changes([VisitorChange::Invite(invitation(1, "ada"))])).await;
    let late = Passkey { added_at: at(100), ..passkey(4, "ada") };

    for (passkey, code) in [(passkey(4, "ada"), 9), (passkey(4, "bob"), 1), (late, 1), (passkey(2, "ada"), 1)] {
        let register = changes([VisitorChange::Register { passkey, invitation: [code; 32] }]);
        assert_eq!(commit(&*store, register).await, Commit::Conflict);
    }
    assert_eq!(store.passkeys(&account("ada")).await.expect("passkeys are read").len(), 1);
    assert_eq!(store.invitation(&[1; 32]).await.expect("invitations are read"), Some(invitation(1, "ada")));
}

/// At once, and on two stores.
pub async fn of_two_with_the_same_challenge_one_signs_in(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    register(&*one).await;
    let open = |number: u8| {
        let sign = VisitorChange::Sign { passkey: vec![2; 16], from: 3, to: 3, at: at(number.into()) };
        changes([sign, VisitorChange::Open(Visit { challenge: [7; 32], ..visit(number, "ada") })])
    };

    let (first, second) = join(commit(&*one, open(10)), commit(&*other, open(11))).await;

    assert!([first, second].contains(&Commit::Done) && [first, second].contains(&Commit::Conflict));
    assert_eq!(one.visits(&account("ada")).await.expect("visits are read").len(), 2);
    other.close().await;
}

/// So a copy of a passkey is noticed.
pub async fn a_counter_of_signatures_goes_on_from_where_it_is(subject: &mut impl Subject) {
    let store = subject.store();
    register(&*store).await;
    let sign = |from, to| changes([VisitorChange::Sign { passkey: vec![2; 16], from, to, at: at(9) }]);

    done(&*store, sign(3, 8)).await;
    assert_eq!(commit(&*store, sign(3, 9)).await, Commit::Conflict);

    let signed = Passkey { counter: 8, used_at: Some(at(9)), ..passkey(2, "ada") };
    assert_eq!(store.passkey(&[2; 16]).await.expect("passkeys are read"), Some(signed));
}

/// The challenge of a visit that is over is not used again.
pub async fn a_visit_lasts_until_it_is_ended(subject: &mut impl Subject) {
    let store = subject.store();
    register(&*store).await;
    let others = [VisitorChange::Open(visit(4, "ada")), VisitorChange::Open(visit(5, "bob"))];
    done(&*store, changes(others)).await;
    let ends = async |of: &str| -> Vec<Timestamp> {
        let visits = store.visits(&account(of)).await.expect("visits are read");
        visits.into_iter().map(|visit| visit.expires_at).collect()
    };

    let end = |number: u8, seconds| VisitorChange::End { id: visit(number, "").id, at: at(seconds) };
    done(&*store, changes([end(3, 20), end(3, 21)])).await;
    assert_eq!(ends("ada").await, [at(20), at(1000)]);
    assert_eq!(commit(&*store, changes([VisitorChange::Open(visit(3, "ada"))])).await, Commit::Conflict);

    done(&*store, changes([VisitorChange::Invite(invitation(1, "ada"))])).await;
    for of in ["ada", "bob"] {
        subscribe(&*store, &of_page(of)).await;
    }
    done(&*store, changes([VisitorChange::EndAll { of: account("ada"), at: at(30) }])).await;
    let is_told = async |of| store.is_subscribed(&of_page(of)).await.expect("it is read");
    assert_eq!((is_told("ada").await, is_told("bob").await), (false, true));
    assert_eq!((ends("ada").await, ends("bob").await), (vec![at(20), at(30)], vec![at(1000)]));
    assert_eq!(store.invitation(&[1; 32]).await.expect("invitations are read"), None);

    done(&*store, changes([VisitorChange::RemovePasskeys(account("ada"))])).await;
    assert_eq!(store.passkeys(&account("ada")).await.expect("passkeys are read"), []);

    let much_later = Visit { opened_at: at(100_000), expires_at: at(200_000), ..visit(9, "bob") };
    done(&*store, changes([VisitorChange::Open(much_later)])).await;
    assert_eq!((ends("ada").await, ends("bob").await), (vec![], vec![at(200_000)]));
}

/// Neither with a passkey nor with an invitation. And no browser of theirs is told of anything: of a conversation with a secret id, others
/// may be.
pub async fn who_is_forgotten_signs_in_no_more(subject: &mut impl Subject) {
    let store = subject.store();
    register(&*store).await;
    done(&*store, changes([VisitorChange::Invite(invitation(1, "ada"))])).await;
    let with_secret_id = ConversationRef::new(page(), "ada");
    for address in [of_page("ada"), of_page("bob"), with_secret_id.clone()] {
        subscribe(&*store, &address).await;
    }

    let people = vec![PeopleChange::IdentityRemoved(account("ada"))];
    done(&*store, Transition { people, ..Transition::default() }).await;

    assert_eq!(store.passkeys(&account("ada")).await.expect("passkeys are read"), []);
    assert_eq!(store.visits(&account("ada")).await.expect("visits are read"), []);
    assert_eq!(store.invitation(&[1; 32]).await.expect("invitations are read"), None);
    let mut told = Vec::new();
    for address in [of_page("ada"), of_page("bob"), with_secret_id] {
        told.push(store.is_subscribed(&address).await.expect("it is read"));
    }
    assert_eq!(told, [false, true, true]);
}

/// At once, and on two stores: whichever comes first, nothing is left with which to sign in.
pub async fn who_is_forgotten_while_they_register_signs_in_no_more(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let [invite, register, _] = registered();
    for number in 0..20 {
        done(&*one, changes([invite.clone()])).await;
        let open = VisitorChange::Open(Visit { challenge: [number; 32], ..visit(3, "ada") });
        let people = vec![PeopleChange::IdentityRemoved(account("ada"))];
        let forget = Transition { people, ..Transition::default() };

        // It may be refused either way.
        let (_, forgotten) = join(one.commit(changes([register.clone(), open])), commit(&*other, forget)).await;

        assert_eq!(forgotten, Commit::Done);
        assert_eq!(one.passkeys(&account("ada")).await.expect("passkeys are read"), []);
        assert_eq!(one.visits(&account("ada")).await.expect("visits are read"), []);
    }
    other.close().await;
}

/// Without the chat itself, and without those of others.
pub async fn the_threads_of_a_chat_are_listed(subject: &mut impl Subject) {
    let store = subject.store();
    let in_thread = |thread: &str| chat("ada").in_thread(thread);
    let says = async |thread: &str, key: &str, text: &str| {
        let event = InboundEvent { text: text.to_owned(), ..said(&in_thread(thread), key) };
        Turn::accept(&*store, event).await;
    };
    Turn::accept(&*store, said(&chat("ada"), "1")).await;
    Turn::accept(&*store, said(&chat("bob").in_thread("a"), "2")).await;
    says("a", "3", "/new").await;
    says("b", "4", "/help").await;
    says("a", "5", "what is the weather?").await;
    says("c", "6", &"a".repeat(1000)).await;
    says("a", "7", "and tomorrow?").await;

    let channel = chat("ada").channel;
    let threads = store.threads(&channel, "ada", 2).await.expect("threads are read");
    let all = store.threads(&channel, "ada", 10).await.expect("threads are read");

    let told = |it: &ThreadSummary| (it.thread.clone(), it.first.clone(), it.last.clone());
    let some = |text: &str| Some(text.to_owned());
    let first = ("a".to_owned(), some("what is the weather?"), some("and tomorrow?"));
    let second = ("c".to_owned(), some(&"a".repeat(300)), some(&"a".repeat(300)));
    assert_eq!(threads.iter().map(told).collect::<Vec<_>>(), [first.clone(), second.clone()]);
    assert_eq!(all.iter().map(told).collect::<Vec<_>>(), [first, second, ("b".to_owned(), None, some("/help"))]);
}
