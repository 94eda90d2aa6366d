//! The language of what the gateway itself says.

use rejoinder_core::{
    Access, AgentTurn, Cause, Clock, ConversationRef, Identity, InboundEvent, Language, Lifetimes, NewPerson,
    PersonRole, Policy, Rung, SeedPerson, Sender,
    conformance::scripted::{Fault, Script},
};

use crate::{
    gateway::{
        GatewaySetup, HARD_DEADLINE, SOFT_DEADLINE, TestGateway, chat, comes_in, main_channel, mention, operator,
        policy, said, secs,
    },
    linking::{self, code_for, guarded, there},
    texts::{LATE, SILENT},
};

/// Ada writes; her platform tells this language.
fn says(language: &str, text: &str) -> InboundEvent {
    InboundEvent { language: Language::of(language), ..said(&chat("ada"), text) }
}

/// Bob writes; his platform tells no language.
fn bob_says(text: &str) -> InboundEvent {
    let event = said(&chat("bob"), text);
    InboundEvent { sender: Sender { id: "bob".to_owned(), ..event.sender.clone() }, ..event }
}

fn ada() -> Identity {
    Identity { channel: main_channel(), id: "ada".to_owned() }
}

async fn silent() -> TestGateway {
    TestGateway::with(Script::is_silent("nothing to add")).await
}

fn last(gateway: &TestGateway, of: &str) -> String {
    gateway.visible(&chat(of)).pop().unwrap_or_default()
}

#[tokio::test]
async fn a_fallback_is_in_the_persons_language() {
    let gateway = silent().await;
    for language in ["de", "DE-AT", "fr", "", "nonsense"] {
        gateway.receives(says(language, "hello")).await;
    }

    assert_eq!(gateway.visible(&chat("ada")), ["Nichts.", "Nichts.", SILENT, SILENT, SILENT]);
    let told: Vec<_> = gateway.agent("main").runs().iter().map(|run| run.turn.person.language).collect();
    assert_eq!(
        told,
        ["de", "de", "fr", "", ""].map(Language::of),
        "the agent is told a language without texts as well"
    );
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_deferral_and_what_follows_are_in_the_persons_language_also_after_a_restart() {
    let mut gateway = TestGateway::with(Script::hangs()).await;
    gateway.receives(says("de", "hello")).await;
    gateway.advance(SOFT_DEADLINE).await;
    assert_eq!(gateway.visible(&chat("ada")), ["Ich bin dran."]);

    gateway.restart().await;
    gateway.receives(says("de", "/status")).await;
    assert_eq!(last(&gateway, "ada"), "Versprochen seit 20 s: hello");
    gateway.advance(HARD_DEADLINE).await;

    let shown = gateway.visible(&chat("ada"));
    assert!(shown.contains(&"Zu spät.".to_owned()) && !shown.contains(&LATE.to_owned()), "{shown:?}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_label_is_in_the_persons_language() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.queue_fault(Fault::LoseResponse);

    gateway.receives(says("de", "hello")).await;
    gateway.advance(secs(10)).await;

    let labels: Vec<_> = gateway.platform.posts(&chat("ada")).into_iter().filter_map(|post| post.label).collect();
    assert_eq!(labels, ["Vielleicht kennst du das schon."]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_question_is_asked_in_the_persons_language() {
    let ladder = policy().ladder.with(Cause::Silent, vec![Rung::Clarify("what_next".to_owned())]);
    let script = Script::is_silent("unclear");
    let gateway = GatewaySetup::new().policy(Policy { ladder, ..policy() }).always(script).start().await;

    gateway.receives(says("de", "hello")).await;
    gateway.receives(bob_says("hello")).await;

    assert!(last(&gateway, "ada").starts_with("Was davon?"), "{}", last(&gateway, "ada"));
    assert!(last(&gateway, "bob").starts_with("Which of these?"), "{}", last(&gateway, "bob"));
    gateway.at_rest().await;
}

/// What somebody chose comes before what the platform tells, and is theirs alone.
#[tokio::test]
async fn somebody_can_choose_a_language() {
    let mut gateway = silent().await;
    let heard = async |gateway: &TestGateway, event| {
        gateway.receives(event).await;
        last(gateway, "ada")
    };

    assert_eq!(heard(&gateway, says("", "/language")).await, "English, or one of de.");
    assert_eq!(heard(&gateway, says("", "/language fr")).await, "Only de.");
    assert_eq!(heard(&gateway, says("", "/language de-AT")).await, "Deutsch.");
    assert_eq!(heard(&gateway, says("fr", "hello")).await, "Nichts.");
    gateway.restart().await;
    assert_eq!(heard(&gateway, says("", "/help")).await, "Sag, was du willst.");
    gateway.receives(bob_says("hello")).await;
    assert_eq!(last(&gateway, "bob"), SILENT);

    gateway.receives(says("", "/language auto")).await;
    assert_eq!(heard(&gateway, says("", "hello")).await, SILENT);
    assert_eq!(heard(&gateway, says("de", "hello")).await, "Nichts.");
    gateway.at_rest().await;
}

#[tokio::test]
async fn who_is_forgotten_has_chosen_no_language() {
    let gateway = silent().await;
    gateway.receives(says("", "/language de")).await;

    let forgotten = gateway.engine().erasure().forget(&ada(), secs(60), operator("her wish")).await;

    assert!(forgotten.expect("it is done").is_done);
    assert_eq!(gateway.store.languages().await.expect("readable"), []);
    gateway.receives(says("", "hello")).await;
    assert_eq!(last(&gateway, "ada"), SILENT);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_stranger_is_told_in_their_language_and_so_is_who_was_let_in() {
    let mut setup = GatewaySetup::new().agent("main", |_: &AgentTurn| Script::replies("hello"));
    setup.access.insert(main_channel(), Access::default());
    let mut gateway = setup.start().await;
    gateway.intake().accept(says("de", "hello")).await.expect("it is accepted");
    gateway.settle().await;
    let code = gateway.engine().people().waiting()[0].shown_code();
    assert_eq!(gateway.visible(&chat("ada")), [format!("Frag nach {code}.")]);

    gateway.restart().await;
    let approved = gateway.engine().operations().approve(&code, NewPerson::default(), operator("a friend")).await;
    approved.expect("she is let in");
    gateway.settle().await;

    assert_eq!(last(&gateway, "ada"), "Komm herein, sagt main.");
    gateway.at_rest().await;
}

#[tokio::test]
async fn menus_describe_commands_in_every_language() {
    let gateway = silent().await;
    let german = Language::of("de").expect("it is a language");

    let commands = gateway.intake().commands();

    let help = commands.iter().find(|command| command.name == "help").expect("it is listed");
    assert_eq!((&*help.description, &*help.descriptions[&german]), ("What I can do", "Was ich kann"));
    let takes_text: Vec<_> = commands.iter().filter(|it| it.argument.is_some()).map(|it| &*it.name).collect();
    assert_eq!(
        takes_text,
        ["start", "new", "session", "agent", "model", "queue", "voice", "export", "link", "home", "language"]
    );
    let argument = |name: &str| {
        let command = commands.iter().find(|command| command.name == name).expect("it is listed");
        command.argument.as_ref().expect("it takes something")
    };
    let queue = argument("queue");
    assert_eq!((&*queue.description, &*queue.descriptions[&german]), ("What you choose", "Was du wählst"));
    assert_eq!(queue.choices, ["followup", "collect", "steer", "interrupt", "auto"]);
    assert_eq!(argument("language").choices, ["de", "auto"]);
    assert_eq!(argument("home").choices, ["here", "off"]);
    assert!(argument("session").choices.is_empty());
    gateway.at_rest().await;
}

/// A18. Whichever of their channels they use, also one that they link later, and until they take it back on any.
#[tokio::test]
async fn a_choice_holds_on_all_channels_of_a_person() {
    let mut gateway = guarded().await;
    let hears = async |gateway: &TestGateway, address: &ConversationRef| {
        comes_in(gateway, linking::says(address, "/help")).await;
        linking::last(gateway, address) == "Sag, was du willst."
    };
    comes_in(&gateway, linking::says(&chat("ada"), "/language de")).await;
    let code = code_for(&gateway, &chat("ada")).await;
    comes_in(&gateway, linking::says(&there("lovelace"), &format!("/link {code}"))).await;
    linking::confirms(&gateway, &chat("ada")).await;
    gateway.restart().await;
    assert!(hears(&gateway, &there("lovelace")).await);

    comes_in(&gateway, linking::says(&there("lovelace"), "/language auto")).await;
    assert!(!hears(&gateway, &chat("ada")).await && !hears(&gateway, &there("lovelace")).await);
    comes_in(&gateway, linking::says(&there("lovelace"), "/language de")).await;
    comes_in(&gateway, linking::says(&there("lovelace"), "/unlink")).await;
    gateway.restart().await;
    assert!(hears(&gateway, &chat("ada")).await, "it stays with her");
    assert!(!hears(&gateway, &chat("grace")).await);
    gateway.at_rest().await;
}

/// The platform tells it with what she writes, not always, and not for good.
#[tokio::test]
async fn an_owner_is_asked_in_the_language_that_their_platform_told_last() {
    let mut gateway = guarded().await;
    let grace = async |gateway: &TestGateway, language: &str, text: &str| {
        let event = InboundEvent { language: Language::of(language), ..linking::says(&chat("grace"), text) };
        comes_in(gateway, event).await;
        gateway.advance(secs(1)).await;
    };
    let hears_of = async |gateway: &TestGateway, stranger: &str| {
        comes_in(gateway, linking::says(&there(stranger), "let me in")).await;
        let told = linking::last(gateway, &chat("grace"));
        let request = gateway.engine().people().waiting().pop().expect("a request");
        gateway.engine().operations().decline(&request.code, operator("who?")).await.expect("it is declined");
        told
    };
    grace(&gateway, "", "hello").await;
    grace(&gateway, "de", "hello").await;
    grace(&gateway, "", "again").await;
    gateway.restart().await;
    assert_eq!(hears_of(&gateway, "dan").await, "DAN fragt.");

    grace(&gateway, "es", "hola").await;
    assert!(hears_of(&gateway, "eve").await.starts_with("EVE (test.other/eve) asks"));
    grace(&gateway, "es", "/language de").await;
    gateway.advance(secs(3600)).await;
    assert_eq!(hears_of(&gateway, "fay").await, "FAY fragt.", "what she chose comes first");
    gateway.at_rest().await;
}

/// On all channels of hers, where the platform tells nothing.
#[tokio::test]
async fn the_configuration_says_somebodys_language() {
    let mut setup = linking::setup(Access::default());
    setup.people[1].language = Language::of("de");
    let gateway = setup.start().await;
    let code = code_for(&gateway, &chat("grace")).await;
    comes_in(&gateway, linking::says(&there("hopper"), &format!("/link {code}"))).await;
    linking::confirms(&gateway, &chat("grace")).await;
    let help = async |language: &str| {
        let event = InboundEvent { language: Language::of(language), ..linking::says(&there("hopper"), "/help") };
        comes_in(&gateway, event).await;
        linking::last(&gateway, &there("hopper"))
    };

    assert_eq!(help("").await, "Sag, was du willst.");
    assert_ne!(help("es").await, "Sag, was du willst.", "it tells another one");
    comes_in(&gateway, linking::says(&there("eve"), "let me in")).await;
    assert!(linking::last(&gateway, &there("hopper")).starts_with("EVE (test.other/eve) asks"));
    comes_in(&gateway, linking::says(&chat("grace"), "hello")).await;
    comes_in(&gateway, linking::says(&there("dan"), "let me in")).await;
    assert_eq!(linking::last(&gateway, &chat("grace")), "DAN fragt.");
    gateway.at_rest().await;
}

/// Where the platform that refuses the answer tells no language, and the other one does.
#[tokio::test]
async fn an_answer_that_goes_elsewhere_is_announced_in_the_language_of_the_chat() {
    let gateway = guarded().await;
    let code = code_for(&gateway, &chat("ada")).await;
    comes_in(&gateway, linking::says(&there("lovelace"), &format!("/link {code}"))).await;
    linking::confirms(&gateway, &chat("ada")).await;
    let hello = InboundEvent { language: Language::of("de"), ..linking::says(&there("lovelace"), "hallo") };
    comes_in(&gateway, hello).await;
    let is_main = |address: &ConversationRef| address.channel == main_channel();
    gateway.platform.choose_faults(move |delivery| is_main(delivery.conversation()).then_some(Fault::Refuse));

    comes_in(&gateway, linking::says(&chat("ada"), "what is new?")).await;

    assert_eq!(linking::last(&gateway, &there("lovelace")), "Von test.main: what is new?\n\nhello");
    gateway.at_rest().await;
}

/// Also of people of open groups, whom nobody forgets. Who is known keeps it.
#[tokio::test]
async fn a_choice_goes_with_the_last_turn_of_whoever_made_it() {
    const DAY: u64 = 24 * 3600;
    let mut setup = GatewaySetup::new().always(Script::replies("hello"));
    setup.lifetimes = Lifetimes { turns: Some(secs(10 * DAY)), ..Lifetimes::default() };
    let identities = vec![Identity { channel: main_channel(), id: "grace".to_owned() }];
    let grace =
        SeedPerson { name: "Grace".to_owned(), role: PersonRole::Member, identities, home: None, language: None };
    setup.people = vec![grace];
    let gateway = setup.start().await;
    let in_room = |who: &str, text: &str| InboundEvent {
        sender: Sender { id: who.to_owned(), ..said(&chat("room"), "").sender },
        ..mention(&chat("room"), text)
    };
    let chosen = async || {
        let languages = gateway.store.languages().await.expect("readable");
        languages.into_iter().map(|(who, _)| who.id).collect::<Vec<_>>()
    };
    for who in ["ada", "bob", "grace"] {
        gateway.receives(in_room(who, "/language de")).await;
    }
    gateway.advance(secs(5 * DAY)).await;
    gateway.receives(InboundEvent { received_at: gateway.clock.now(), ..in_room("bob", "hello") }).await;

    gateway.advance(secs(6 * DAY)).await;
    assert_eq!(chosen().await, ["bob", "grace"]);
    gateway.advance(secs(6 * DAY)).await;
    assert_eq!(chosen().await, ["grace"]);
    gateway.at_rest().await;
}
