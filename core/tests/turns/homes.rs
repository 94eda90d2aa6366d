//! People choose where they are reached.

use rejoinder_core::{Access, ConversationRef};

use crate::{
    gateway::{GatewaySetup, TestGateway, ambient, chat, main_channel, secs},
    life::Crash,
    linking::{code_for, comes_in, guarded, last, other_channel, says, setup, there},
};

/// Grace, an owner, is known on both channels, and has written on the main one last.
async fn linked(setup: GatewaySetup) -> TestGateway {
    let gateway = setup.start().await;
    link(&gateway).await;
    gateway
}

async fn link(gateway: &TestGateway) {
    let code = code_for(gateway, &chat("grace")).await;
    comes_in(gateway, says(&there("hopper"), &format!("/link {code}"))).await;
    comes_in(gateway, says(&chat("grace"), "hello")).await;
}

async fn tells(gateway: &TestGateway, place: &ConversationRef, text: &str) -> String {
    comes_in(gateway, says(place, text)).await;
    last(gateway, place)
}

/// Whether Grace is told on the main channel that a stranger asks, and whether on the other one.
async fn is_told(gateway: &TestGateway, stranger: &str) -> (bool, bool) {
    comes_in(gateway, says(&there(stranger), "let me in")).await;
    let is_told = |place| gateway.visible(&place).iter().any(|text| text.contains(&format!("/{stranger})")));
    (is_told(chat("grace")), is_told(there("hopper")))
}

/// A18. Over a restart, and wherever she writes since.
#[tokio::test]
async fn somebody_is_reached_where_they_chose() {
    let mut gateway = linked(setup(Access::default())).await;
    assert_eq!(tells(&gateway, &chat("grace"), "/home").await, "Where you wrote last.");
    assert_eq!(is_told(&gateway, "dan").await, (true, false));

    assert_eq!(tells(&gateway, &there("hopper"), "/home here").await, "Here.");
    comes_in(&gateway, says(&chat("grace"), "hello")).await;
    gateway.restart().await;
    assert_eq!(tells(&gateway, &chat("grace"), "/home").await, "Home is test.other.");
    assert_eq!(is_told(&gateway, "eve").await, (false, true));

    assert_eq!(tells(&gateway, &chat("grace"), "/home off").await, "Nowhere.");
    assert_eq!(tells(&gateway, &there("hopper"), "/home").await, "Where you wrote last.");
    comes_in(&gateway, says(&chat("grace"), "hello")).await;
    assert_eq!(is_told(&gateway, "fay").await, (true, false));
    gateway.at_rest().await;
}

/// There is one home: that which was chosen last.
#[tokio::test]
async fn a_new_home_takes_the_place_of_the_old_one() {
    let gateway = linked(setup(Access::default())).await;
    for place in [there("hopper"), chat("grace"), there("hopper"), chat("grace")] {
        assert_eq!(tells(&gateway, &place, "/home HERE").await, "Here.");
        let home = format!("Home is {}.", place.channel);
        assert_eq!(tells(&gateway, &chat("grace"), "/home").await, home);
        assert_eq!(tells(&gateway, &there("hopper"), "/home").await, home);
    }
    gateway.at_rest().await;
}

/// What she chooses goes before it, until she takes that back.
#[tokio::test]
async fn the_configuration_names_a_home() {
    let mut setup = setup(Access::default());
    let grace = &mut setup.people[1];
    grace.identities.push(rejoinder_core::Identity { channel: other_channel(), id: "hopper".to_owned() });
    grace.home = Some(other_channel());
    let gateway = setup.start().await;
    comes_in(&gateway, says(&chat("grace"), "hello")).await;
    assert_eq!(is_told(&gateway, "dan").await, (true, false), "she has not written there yet");
    comes_in(&gateway, says(&there("hopper"), "hello")).await;
    comes_in(&gateway, says(&chat("grace"), "hello")).await;
    assert_eq!(is_told(&gateway, "eve").await, (false, true));

    assert_eq!(tells(&gateway, &chat("grace"), "/home here").await, "Here.");
    assert_eq!(is_told(&gateway, "fay").await, (true, false));
    assert_eq!(tells(&gateway, &chat("grace"), "/home off").await, "Nowhere.");
    assert_eq!(tells(&gateway, &chat("grace"), "/home").await, "Home is test.other.");
    gateway.at_rest().await;
}

/// Who cannot be reached is told why.
#[tokio::test]
async fn a_home_is_a_direct_chat_of_somebody_who_is_known() {
    let gateway = setup(Access::open()).start().await;

    assert_eq!(tells(&gateway, &there("eve"), "/home here").await, "Who are you?");
    let group = ambient(&chat("room"), "/home here");
    let sender = says(&chat("grace"), "").sender;
    comes_in(&gateway, rejoinder_core::InboundEvent { sender, directed: rejoinder_core::Directed::Mention, ..group })
        .await;
    assert_eq!(last(&gateway, &chat("room")), "Not in a group.");
    gateway.at_rest().await;
}

/// Whoever is nobody any more has no home.
#[tokio::test]
async fn a_home_goes_with_its_identity() {
    let gateway = guarded().await;
    link(&gateway).await;
    tells(&gateway, &there("hopper"), "/home here").await;
    tells(&gateway, &there("hopper"), "/unlink").await;

    assert_eq!(tells(&gateway, &chat("grace"), "/home").await, "Where you wrote last.");
    assert_eq!(is_told(&gateway, "eve").await, (true, false));
    gateway.at_rest().await;
}

/// `kill -9` at every write while somebody chooses: the answer is shown once, and says what is stored.
#[tokio::test]
async fn a_crash_chooses_one_home() {
    for write in 1..=6 {
        let mut gateway = linked(setup(Access::default())).await;
        let before = gateway.visible(&chat("grace")).len();
        gateway.life.crash_at(write, Crash::After);
        let (intake, event) = (gateway.engine().intake(&main_channel()), says(&chat("grace"), "/home here"));
        let again = event.clone();
        tokio::spawn(async move { intake.accept(event).await });
        gateway.settle().await;
        gateway.restart().await;
        comes_in(&gateway, again).await;
        gateway.advance(secs(60)).await;

        assert_eq!(gateway.visible(&chat("grace"))[before..], ["Here."], "after write {write}");
        assert_eq!(tells(&gateway, &there("hopper"), "/home").await, "Home is test.main.", "after write {write}");
        gateway.at_rest().await;
    }
}
