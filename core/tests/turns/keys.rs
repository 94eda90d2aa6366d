//! A conversation with a secret key, as on web chat, becomes one of a person who is known.

use rejoinder_core::{
    Accepted, Access, AgentName, Capabilities, ChannelId, Condition, ConversationRef, Identity, InboundEvent, Language,
    PersonLimits, PersonRole, PolicyChange, Resend, Rule, SeedPerson, Sender, SenderKind,
    conformance::scripted::{Script, capabilities},
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, comes_in, main_channel, operator, said, secs},
    life::Crash,
    linking::{code_for, identity, last, says},
    sessions::{repeats, told},
};

/// The address of the conversation, which its channel has made of a secret key: also the id of the key holder.
pub(crate) const HELD: &str = "5f2a";

pub(crate) fn page() -> ChannelId {
    ChannelId::new("test", "page")
}

fn theirs() -> Identity {
    identity(page(), HELD)
}

pub(crate) fn address() -> ConversationRef {
    ConversationRef::new(page(), HELD)
}

/// Somebody with the key of a conversation writes in it.
pub(crate) fn with_key(held: &str, text: &str) -> InboundEvent {
    let sender =
        Sender { id: held.to_owned(), name: Some("visitor".to_owned()), username: None, kind: SenderKind::KeyHolder };
    InboundEvent { sender, ..said(&ConversationRef::new(page(), held), text) }
}

fn writes(text: &str) -> InboundEvent {
    with_key(HELD, text)
}

/// Ada and the owner Grace are known on the main channel. On the page nobody can be told apart.
pub(crate) fn setup() -> GatewaySetup {
    let person = |name: &str, role| SeedPerson {
        name: name.to_owned(),
        role,
        identities: vec![identity(main_channel(), &name.to_lowercase())],
        home: None,
        language: None,
    };
    let idempotent = || Capabilities { resend: Resend::Idempotent, ..capabilities() };
    let mut setup = GatewaySetup::new().agent("main", repeats);
    setup.capabilities = idempotent();
    setup.channels.push((page(), idempotent()));
    setup.access = [(main_channel(), Access::default())].into();
    setup.people = vec![person("Ada", PersonRole::Member), person("Grace", PersonRole::Owner)];
    setup
}

async fn link(gateway: &TestGateway, name: &str) -> String {
    let code = code_for(gateway, &chat(name)).await;
    let told = told(gateway, writes(&format!("/link {code}"))).await;
    if told != "Asked." {
        return told;
    }
    comes_in(gateway, says(&chat(name), "It is me")).await;
    last(gateway, &address())
}

async fn ada(gateway: &TestGateway, text: &str) -> String {
    told(gateway, says(&chat("ada"), text)).await
}

async fn on_page(gateway: &TestGateway, text: &str) -> String {
    told(gateway, writes(text)).await
}

async fn identities_of_ada(gateway: &TestGateway) -> Vec<Identity> {
    let people = gateway.store.people().await.expect("readable");
    let ada = people.into_iter().find(|person| person.name == "Ada").expect("she is known");
    ada.identities.into_iter().map(|known| known.identity).collect()
}

/// A18. What was said on the page is answered from on the other channel, when both use the same session; over restarts, and until
/// it is taken back.
#[tokio::test]
async fn a_linked_conversation_uses_its_persons_sessions() {
    let mut gateway = setup().start().await;
    assert_eq!(on_page(&gateway, "one").await, "one []");
    assert_eq!(link(&gateway, "ada").await, "You are Ada.");
    gateway.restart().await;
    assert_eq!(on_page(&gateway, "/whoami").await, "You are Ada, test.page/5f2a.");
    assert_eq!(on_page(&gateway, "two").await, "two [one]");

    ada(&gateway, "three").await;
    assert_eq!(ada(&gateway, "/session use 1").await, "Again “one”.");
    assert_eq!(ada(&gateway, "four").await, "four [one two]");
    assert_eq!(on_page(&gateway, "/session use 2").await, "Again “three”.");
    gateway.restart().await;
    assert_eq!(on_page(&gateway, "five").await, "five [three]");

    assert_eq!(on_page(&gateway, "/unlink").await, "No more Ada.");
    assert_eq!(on_page(&gateway, "six").await, "six []");
    assert_eq!(on_page(&gateway, "/session use “one”").await, "No such session.");
    assert_eq!(on_page(&gateway, "/whoami").await, "You are test.page/5f2a.");
    assert_eq!(ada(&gateway, "seven").await, "seven [one two four]");
    gateway.at_rest().await;
}

/// N2. A key holder has no powers of an owner, and gets no code that would give them elsewhere.
#[tokio::test]
async fn a_key_makes_nobody_an_owner() {
    let owners = Rule {
        name: "owners".into(),
        conditions: vec![Condition::Role(vec![PersonRole::Owner])],
        agent: Some(AgentName::from("boss")),
        language: None,
        policy: PolicyChange::default(),
        queue: None,
    };
    let mut setup = setup().agent("boss", |_| Script::replies("at your service"));
    setup.rules = vec![owners];
    let gateway = setup.start().await;
    assert_eq!(link(&gateway, "grace").await, "You are Grace.");

    assert_eq!(on_page(&gateway, "/whoami").await, "You are Grace, test.page/5f2a.");
    assert_eq!(on_page(&gateway, "hello").await, "hello []");
    assert_eq!(told(&gateway, says(&chat("grace"), "hello")).await, "at your service");
    comes_in(&gateway, says(&chat("eve"), "let me in")).await;
    let request = gateway.engine().people().waiting().pop().expect("a request");
    assert!(last(&gateway, &chat("grace")).starts_with("EVE"), "she is told where she can be told apart");
    assert_eq!(on_page(&gateway, &format!("/approve {}", request.code)).await, "You are no owner.");
    assert_eq!(on_page(&gateway, "/link").await, "Grace already.");
    assert_eq!(on_page(&gateway, "/home here").await, "You could be anyone.");
    gateway.at_rest().await;
}

/// Whether an operator revokes it, or erases what was said.
#[tokio::test]
async fn a_linked_conversation_is_taken_back() {
    let gateway = setup().start().await;
    for is_forgotten in [false, true] {
        link(&gateway, "ada").await;
        assert_eq!(on_page(&gateway, "/language de").await, "Deutsch.");
        if is_forgotten {
            let forgotten = gateway.engine().erasure().forget(&theirs(), secs(60), operator("her wish")).await;
            let forgotten = forgotten.expect("it is done");
            assert!(forgotten.is_done && forgotten.turns > 0, "{forgotten:?}");
        } else {
            gateway.engine().operations().revoke(&theirs(), operator("a lost phone")).await.expect("it is done");
        }
        assert_eq!(on_page(&gateway, "/whoami").await, "You are test.page/5f2a.");
        assert_eq!(identities_of_ada(&gateway).await, [identity(main_channel(), "ada")]);
        let languages = gateway.store.languages().await.expect("readable");
        assert_eq!(languages, [(identity(main_channel(), "ada"), Language::of("de").expect("a language"))]);
    }
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_linked_conversation_is_counted_with_its_person() {
    let mut setup = setup();
    setup.limits = PersonLimits { turns_per_minute: Some(2), ..PersonLimits::default() };
    let gateway = setup.start().await;
    link(&gateway, "ada").await;
    ada(&gateway, "one").await;

    assert!(matches!(comes_in(&gateway, writes("two")).await, Accepted::Turn(_)));
    assert!(matches!(comes_in(&gateway, writes("three")).await, Accepted::Limited { .. }));
    assert!(matches!(comes_in(&gateway, with_key("7b", "four")).await, Accepted::Turn(_)));
    gateway.at_rest().await;
}

/// O2. A guesser in a conversation is locked out there for an hour, and nobody else on the page is.
#[tokio::test]
async fn who_guesses_on_the_page_locks_out_only_themselves() {
    let gateway = setup().start().await;
    let mut answers = Vec::new();
    for number in 0..11 {
        let event = with_key("7b", &format!("/link AAAAAA{number:02}"));
        answers.push(told(&gateway, event).await);
    }

    assert_eq!(answers[9..], ["No such link.", "Later."]);
    assert_eq!(link(&gateway, "ada").await, "You are Ada.");
    gateway.advance(secs(3600)).await;
    let again = with_key("7b", "/link AAAAAAAA");
    assert_eq!(told(&gateway, again).await, "No such link.");
    gateway.at_rest().await;
}

/// `kill -9` at every write while the code is used: one answer is shown, and the conversation is Ada's.
#[tokio::test]
async fn a_crash_links_a_conversation_once() {
    for write in 1..=4 {
        let mut gateway = setup().start().await;
        let code = code_for(&gateway, &chat("ada")).await;
        let event = writes(&format!("/link {code}"));
        gateway.life.crash_at(write, Crash::After);
        let (intake, again) = (gateway.engine().intake(&page()), event.clone());
        tokio::spawn(async move { intake.accept(event).await });
        gateway.settle().await;
        gateway.restart().await;
        comes_in(&gateway, again).await;
        gateway.advance(secs(60)).await;

        comes_in(&gateway, says(&chat("ada"), "It is me")).await;

        assert_eq!(gateway.visible(&address()), ["Asked.", "You are Ada."], "after write {write}");
        assert_eq!(
            identities_of_ada(&gateway).await,
            [identity(main_channel(), "ada"), theirs()],
            "after write {write}"
        );
        gateway.at_rest().await;
    }
}
