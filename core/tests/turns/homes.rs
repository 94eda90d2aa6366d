//! People choose where they are reached.

use rejoinder_core::{
    Access, Capabilities, ChannelId, ConversationRef, InboundEvent, NewPerson, Resend,
    conformance::scripted::{Fault, Script, capabilities},
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, comes_in, main_channel, mention, operator, secs},
    life::{at_every_write, comes_in_dying},
    linking::{code_for, confirms, guarded, identity, last, other_channel, says, setup, there},
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
    confirms(gateway, &chat("grace")).await;
    comes_in(gateway, says(&chat("grace"), "hello")).await;
}

async fn tells(gateway: &TestGateway, address: &ConversationRef, text: &str) -> String {
    comes_in(gateway, says(address, text)).await;
    last(gateway, address)
}

/// Whether Grace is told on the main channel that a stranger asks, and whether on the other one.
async fn is_told(gateway: &TestGateway, stranger: &str) -> (bool, bool) {
    comes_in(gateway, says(&there(stranger), "let me in")).await;
    let is_told = |address| gateway.visible(&address).iter().any(|text| text.contains(&format!("/{stranger})")));
    (is_told(chat("grace")), is_told(there("hopper")))
}

fn third_channel() -> ChannelId {
    ChannelId::new("test", "third")
}

/// A direct chat on the third channel.
fn yonder(name: &str) -> ConversationRef {
    ConversationRef::new(third_channel(), name)
}

/// Grace is known on three channels by the configuration, and has written on each of them: on the main one first, and on the
/// third one last.
async fn on_three_channels(home: Option<ChannelId>) -> TestGateway {
    let mut setup = setup(Access::default());
    setup.channels.push((third_channel(), Capabilities { resend: Resend::Idempotent, ..capabilities() }));
    setup.access.insert(third_channel(), Access::default());
    let grace = &mut setup.people[1];
    grace.identities.extend([identity(other_channel(), "hopper"), identity(third_channel(), "amazing")]);
    grace.home = home;
    let gateway = setup.start().await;
    for address in [chat("grace"), there("hopper"), yonder("amazing")] {
        comes_in(&gateway, says(&address, "hello")).await;
    }
    gateway
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
    for address in [there("hopper"), chat("grace"), there("hopper"), chat("grace")] {
        assert_eq!(tells(&gateway, &address, "/home HERE").await, "Here.");
        let home = format!("Home is {}.", address.channel);
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
    grace.identities.push(identity(other_channel(), "hopper"));
    grace.home = Some(other_channel());
    let gateway = setup.start().await;
    comes_in(&gateway, says(&chat("grace"), "hello")).await;
    assert_eq!(is_told(&gateway, "dan").await, (true, false), "she has not written there yet");
    assert_eq!(tells(&gateway, &chat("grace"), "/home").await, "Not yet on test.other.");
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
    let sender = says(&chat("grace"), "").sender;
    comes_in(&gateway, InboundEvent { sender, ..mention(&chat("room"), "/home here") }).await;
    assert_eq!(last(&gateway, &chat("room")), "Not in a group.");
    gateway.at_rest().await;
}

/// A18. An answer that one channel refuses goes home, and from home to where she wrote last of the others.
#[tokio::test]
async fn a_refused_answer_goes_home() {
    let gateway = on_three_channels(None).await;
    let refuse = |channel| {
        gateway.platform.choose_faults(move |it| (it.conversation().channel == channel).then_some(Fault::Refuse));
    };
    comes_in(&gateway, says(&there("hopper"), "/home here")).await;
    comes_in(&gateway, says(&yonder("amazing"), "hello")).await;
    let before = gateway.visible(&yonder("amazing"));

    refuse(main_channel());
    comes_in(&gateway, says(&chat("grace"), "what is new?")).await;
    assert_eq!(last(&gateway, &there("hopper")), "From test.main: what is new?\n\nhello");
    assert_eq!(gateway.visible(&yonder("amazing")), before);

    refuse(other_channel());
    comes_in(&gateway, says(&yonder("amazing"), "hello")).await;
    comes_in(&gateway, says(&there("hopper"), "and else?")).await;
    assert_eq!(last(&gateway, &yonder("amazing")), "From test.other: and else?\n\nhello");
    gateway.at_rest().await;
}

/// Then she is reached where she wrote last, and not in the home that the configuration names.
#[tokio::test]
async fn nobody_is_reached_in_a_home_that_others_have_joined() {
    let gateway = on_three_channels(Some(third_channel())).await;
    comes_in(&gateway, says(&there("hopper"), "/home here")).await;
    comes_in(&gateway, says(&chat("grace"), "hello")).await;

    gateway.platform.join(&there("hopper"));

    assert_eq!(is_told(&gateway, "eve").await, (true, false));
    assert!(!last(&gateway, &yonder("amazing")).contains("eve"));
    assert_eq!(tells(&gateway, &chat("grace"), "/home").await, "Not yet on test.other.");
    gateway.at_rest().await;
}

/// Approvers are asked there as well.
#[tokio::test]
async fn an_approver_is_asked_at_home() {
    let careful = |turn: &rejoinder_core::AgentTurn| match (&*turn.message.text, turn.past.approvals.is_empty()) {
        ("pay", true) => Script::asks_approval("pay the rent", None),
        (text, _) => Script::replies(text),
    };
    let gateway = linked(setup(Access::default()).agent("main", careful)).await;
    comes_in(&gateway, says(&there("hopper"), "/home here")).await;
    comes_in(&gateway, says(&chat("grace"), "hello")).await;

    comes_in(&gateway, says(&chat("ada"), "pay")).await;

    assert_eq!(last(&gateway, &chat("grace")), "hello");
    assert!(last(&gateway, &there("hopper")).contains("pay the rent"));
    assert_eq!(tells(&gateway, &there("hopper"), "Do it").await, "Yes to pay the rent.");
    gateway.at_rest().await;
}

/// If two people with a home each become one, the home of the code's maker stays; a single home is kept.
#[rstest::rstest]
#[case::both_had_one(true, "Home is test.main.")]
#[case::one_had_one(false, "Home is test.other.")]
#[tokio::test]
async fn people_who_become_one_have_one_home(#[case] both: bool, #[case] home: &str) {
    let gateway = guarded().await;
    comes_in(&gateway, says(&there("lovelace"), "hello")).await;
    let request = gateway.engine().people().waiting().pop().expect("a request");
    gateway
        .engine()
        .operations()
        .approve(&request.code, NewPerson::default(), operator("a friend"))
        .await
        .expect("she is let in");
    gateway.settle().await;
    if both {
        comes_in(&gateway, says(&chat("ada"), "/home here")).await;
    }
    comes_in(&gateway, says(&there("lovelace"), "/home here")).await;

    let code = code_for(&gateway, &chat("ada")).await;
    assert_eq!(tells(&gateway, &there("lovelace"), &format!("/link {code}")).await, "Asked.");
    confirms(&gateway, &chat("ada")).await;

    comes_in(&gateway, says(&there("lovelace"), "hello")).await;
    assert_eq!(tells(&gateway, &chat("ada"), "/home").await, home);
    assert_eq!(tells(&gateway, &there("lovelace"), "/home").await, home);
    gateway.at_rest().await;
}

/// Also of the database, over a restart: somebody who is let in again has none.
#[tokio::test]
async fn a_forgotten_person_has_no_home() {
    let mut gateway = linked(setup(Access::default())).await;
    comes_in(&gateway, says(&there("hopper"), "/home here")).await;
    let hopper = identity(other_channel(), "hopper");
    gateway.engine().erasure().forget(&hopper, secs(60), operator("her wish")).await.expect("it is done");
    link(&gateway).await;
    comes_in(&gateway, says(&there("hopper"), "hello")).await;
    gateway.restart().await;

    assert_eq!(tells(&gateway, &chat("grace"), "/home").await, "Where you wrote last.");
    gateway.at_rest().await;
}

/// A person who is no longer known has no home.
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

/// `kill -9` at every write: the answer is shown once, and says what is stored.
#[tokio::test]
async fn a_home_is_chosen_once_whenever_the_gateway_is_killed() {
    at_every_write(3, async |crash, write| {
        let mut gateway = linked(setup(Access::default())).await;
        let event = says(&chat("grace"), "/home here");
        let has_crashed = comes_in_dying(&mut gateway, (crash, write), event).await;
        gateway.advance(secs(60)).await;

        assert_eq!(gateway.visible(&chat("grace"))[4..], ["Here."], "{crash:?} write {write}");
        assert_eq!(tells(&gateway, &there("hopper"), "/home").await, "Home is test.main.");
        gateway.at_rest().await;
        has_crashed
    })
    .await;
}
