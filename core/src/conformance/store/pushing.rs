//! Push subscriptions: browsers that are told of answers.

use rejoinder_guard::Timestamp;

use super::{
    subject::Subject,
    turn::{Turn, at, chat, said},
};
use crate::{
    model::{conversation::ConversationRef, push::PushSubscription},
    ports::store::{Store, housekeeping::Removal, pushes::SUBSCRIPTIONS_KEPT},
};

fn subscription(name: &str) -> PushSubscription {
    PushSubscription { endpoint: format!("https://push.example/{name}"), key: vec![4; 65], auth: vec![1; 16] }
}

async fn add(store: &dyn Store, of: &ConversationRef, name: &str, at: Timestamp) {
    store.add_subscription(of, subscription(name), at).await.expect("it is stored");
}

/// The last parts of the endpoints, in order.
async fn take(store: &dyn Store, of: &ConversationRef, shown_at: Timestamp) -> Vec<String> {
    let taken = store.take_subscriptions(of, shown_at).await.expect("they are taken");
    let name = |taken: PushSubscription| taken.endpoint.rsplit('/').next().map(str::to_owned);
    let mut names: Vec<String> = taken.into_iter().filter_map(name).collect();
    names.sort();
    names
}

/// Of what was shown after it subscribed, and until it is removed.
pub async fn a_browser_is_told_once(subject: &mut impl Subject) {
    let store = subject.store();
    let (a, b, thread) = (chat("a"), chat("b"), chat("a").in_thread("t"));
    for (chat, key) in [(&a, "1"), (&b, "2"), (&thread, "3")] {
        Turn::accept(&*store, said(chat, key)).await;
        add(&*store, chat, "one", at(10)).await;
    }
    let renewed = PushSubscription { key: vec![5; 65], auth: vec![2; 16], ..subscription("one") };
    store.add_subscription(&a, renewed.clone(), at(12)).await.expect("it is stored");
    add(&*store, &a, "two", at(20)).await;

    assert_eq!(take(&*store, &a, at(12)).await, [""; 0]);
    assert_eq!(store.take_subscriptions(&a, at(13)).await.expect("they are taken"), [renewed]);
    assert_eq!(take(&*store, &a, at(30)).await, ["one", "two"]);
    assert_eq!(take(&*store, &a, at(30)).await, [""; 0]);

    store.remove_subscription(&a.channel, "https://push.example/one").await.expect("it is removed");
    assert_eq!(take(&*store, &a, at(40)).await, ["two"]);
    assert!(!store.is_subscribed(&b).await.expect("it is read"));
    assert!(!store.is_subscribed(&thread).await.expect("it is read"));
    add(&*store, &thread, "three", at(40)).await;
    store.remove_subscriptions(&a).await.expect("they are removed");
    assert!(!store.is_subscribed(&a).await.expect("it is read"));
    assert_eq!(take(&*store, &thread, at(50)).await, ["three"]);
}

/// So many that nobody can make the gateway post without end.
pub async fn a_conversation_has_the_latest_subscriptions(subject: &mut impl Subject) {
    let (store, chat) = (subject.store(), chat("a"));
    Turn::accept(&*store, said(&chat, "1")).await;

    for number in 0..=SUBSCRIPTIONS_KEPT {
        add(&*store, &chat, &number.to_string(), at(u64::from(number))).await;
    }

    let kept: Vec<String> = (1..=SUBSCRIPTIONS_KEPT).map(|number| number.to_string()).collect();
    assert_eq!(take(&*store, &chat, at(100)).await, kept);
}

/// Nothing is kept for an address where nobody has said anything.
pub async fn a_subscription_needs_its_conversation_and_goes_with_it(subject: &mut impl Subject) {
    let (store, chat) = (subject.store(), chat("a"));
    add(&*store, &chat, "early", at(1)).await;
    assert!(!store.is_subscribed(&chat).await.expect("it is read"));
    let mut turn = Turn::accept(&*store, said(&chat, "1")).await;
    let delivery = turn.answer(&*store, "x").await;
    turn.settle(&*store, delivery).await;
    add(&*store, &chat, "one", at(2)).await;
    assert!(store.is_subscribed(&chat).await.expect("it is read"));

    store.remove(Removal::Turns(vec![turn.id])).await.expect("rows are removed");

    assert!(!store.is_subscribed(&chat).await.expect("it is read"));
}
