//! People link their channels with a code, and are one person.

use rejoinder_core::{
    Accepted, Access, Capabilities, ChannelId, Clock, ConversationRef, DirectPolicy, Identity, InboundEvent, Lifetimes,
    NewInvitation, PersonRole, Resend, SeedPerson, Sender, SenderKind,
    conformance::scripted::{Fault, Script, capabilities},
    store::{AuditFilter, Cutoffs},
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, comes_in, main_channel, mention, operator, said, secs},
    life::Crash,
};

const MINUTE: u64 = 60;

pub(crate) fn other_channel() -> ChannelId {
    ChannelId::new("test", "other")
}

pub(crate) fn identity(channel: ChannelId, id: &str) -> Identity {
    Identity { channel, id: id.to_owned() }
}

fn ada() -> SeedPerson {
    let identities = vec![identity(main_channel(), "ada")];
    SeedPerson { name: "Ada".to_owned(), role: PersonRole::Member, identities, home: None, language: None }
}

fn grace() -> SeedPerson {
    let identities = vec![identity(main_channel(), "grace")];
    SeedPerson { name: "Grace".to_owned(), role: PersonRole::Owner, identities, home: None, language: None }
}

/// A gateway with two channels, where Ada and Grace are known on the main one, on a platform that shows nothing twice.
pub(crate) async fn guarded() -> TestGateway {
    setup(Access::default()).start().await
}

pub(crate) fn setup(other: Access) -> GatewaySetup {
    let idempotent = || Capabilities { resend: Resend::Idempotent, ..capabilities() };
    let mut setup = GatewaySetup::new().always(Script::replies("hello"));
    setup.capabilities = idempotent();
    setup.channels.push((other_channel(), idempotent()));
    setup.access = [(main_channel(), Access::default()), (other_channel(), other)].into();
    setup.people = vec![ada(), grace()];
    setup
}

/// A direct chat on the other channel.
pub(crate) fn there(name: &str) -> ConversationRef {
    ConversationRef::new(other_channel(), name)
}

/// The person of this chat writes in it.
pub(crate) fn says(address: &ConversationRef, text: &str) -> InboundEvent {
    let id = address.chat.to_string();
    let sender = Sender { name: Some(id.to_uppercase()), id, username: None, kind: SenderKind::Person };
    InboundEvent { sender, ..said(address, text) }
}

pub(crate) fn last(gateway: &TestGateway, address: &ConversationRef) -> String {
    gateway.visible(address).pop().expect("something was said")
}

/// The code that somebody is given in their chat.
pub(crate) async fn code_for(gateway: &TestGateway, address: &ConversationRef) -> String {
    comes_in(gateway, says(address, "/link")).await;
    let told = last(gateway, address);
    let code = told.strip_prefix("Write /link ").and_then(|rest| rest.strip_suffix('.')).expect("a code");
    assert!(code.is_ascii(), "the code is told: {code}");
    code.to_owned()
}

/// The person who made a code in `address` says that they used it.
pub(crate) async fn confirms(gateway: &TestGateway, address: &ConversationRef) {
    comes_in(gateway, says(address, "It is me")).await;
}

/// Everybody who is known, with their identities.
async fn known(gateway: &TestGateway) -> Vec<(String, Vec<String>)> {
    let people = gateway.engine().people().all().await.expect("readable");
    let mut known: Vec<_> = people
        .into_iter()
        .map(|person| (person.name, person.identities.iter().map(|one| one.identity.to_string()).collect()))
        .collect();
    known.sort_unstable();
    known
}

fn of(name: &str, identities: &[&str]) -> (String, Vec<String>) {
    (name.to_owned(), identities.iter().map(|one| (*one).to_owned()).collect())
}

/// A18, N2. A stranger who has a known person's code is that person, over restarts, until they take it back. The code opens
/// nothing twice.
#[tokio::test]
async fn a_code_makes_two_channels_one_person() {
    let mut gateway = guarded().await;
    let code = code_for(&gateway, &chat("ada")).await;
    gateway.restart().await;

    comes_in(&gateway, says(&there("lovelace"), &format!("/link {}", code.to_lowercase()))).await;
    gateway.restart().await;
    assert_eq!(last(&gateway, &chat("ada")), "LOVELACE (test.other/lovelace) has your code.");
    assert_eq!(known(&gateway).await[0], of("Ada", &["test.main/ada"]));
    confirms(&gateway, &chat("ada")).await;
    gateway.restart().await;
    comes_in(&gateway, says(&there("lovelace"), "and now?")).await;
    comes_in(&gateway, says(&there("eve"), &format!("/link {code}"))).await;

    assert_eq!(gateway.visible(&there("lovelace")), ["Asked.", "You are Ada.", "hello"]);
    assert_eq!(last(&gateway, &chat("ada")), "There you are Ada.");
    assert!(last(&gateway, &there("eve")).starts_with("Ask for"), "the code is used up");
    let grace = of("Grace", &["test.main/grace"]);
    assert_eq!(known(&gateway).await, [of("Ada", &["test.main/ada", "test.other/lovelace"]), grace.clone()]);
    let history = format!("{:?}", gateway.agent("main").runs().pop().expect("a run").turn.past.history);
    assert!(!history.contains("/link"), "{history}");

    comes_in(&gateway, says(&there("lovelace"), "/unlink")).await;
    assert_eq!(last(&gateway, &there("lovelace")), "No more Ada.");
    assert_eq!(known(&gateway).await, [of("Ada", &["test.main/ada"]), grace]);
    comes_in(&gateway, says(&chat("ada"), "/unlink")).await;
    assert_eq!(last(&gateway, &chat("ada")), "Nothing to undo.");
    let audit = gateway.store.audit(&AuditFilter { before: None, limit: 10 }).await.expect("readable");
    let done: Vec<_> = audit.iter().map(|it| (&*it.entry.by, &*it.entry.action, &*it.entry.target)).collect();
    let target = "test.other/lovelace";
    assert_eq!(
        done,
        [("Ada (test.other/lovelace)", "unlink", target), ("LOVELACE (test.other/lovelace)", "link", target)]
    );
    assert_eq!(audit[1].entry.reason.as_deref(), Some("confirmed by Ada (test.main/ada)"));
    gateway.at_rest().await;
}

/// N2. Also with a list that is not empty, and not with a policy that lets nobody in.
#[tokio::test]
async fn a_code_opens_a_channel_with_a_list_and_no_closed_one() {
    for (direct, told) in [(DirectPolicy::Allowlist, vec!["Asked.", "You are Ada."]), (DirectPolicy::Disabled, vec![])]
    {
        let gateway = setup(Access { direct, allow: ["7"].into_iter().collect(), ..Access::default() }).start().await;
        let code = code_for(&gateway, &chat("ada")).await;

        comes_in(&gateway, says(&there("lovelace"), &format!("/link {code}"))).await;
        confirms(&gateway, &chat("ada")).await;

        assert_eq!(gateway.visible(&there("lovelace")), told);
        gateway.at_rest().await;
    }
}

/// N2. Also if they say nothing.
#[tokio::test]
async fn nobody_is_linked_before_the_person_says_so() {
    let gateway = guarded().await;
    let code = code_for(&gateway, &chat("ada")).await;
    comes_in(&gateway, says(&there("eve"), &format!("/link {code}"))).await;
    comes_in(&gateway, says(&chat("ada"), "It is not me")).await;
    assert_eq!(last(&gateway, &chat("ada")), "Nobody is linked.");

    let code = code_for(&gateway, &chat("ada")).await;
    comes_in(&gateway, says(&there("eve"), &format!("/link {code}"))).await;
    gateway.advance(secs(10 * MINUTE)).await;
    confirms(&gateway, &chat("ada")).await;

    assert_eq!(known(&gateway).await, [of("Ada", &["test.main/ada"]), of("Grace", &["test.main/grace"])]);
    assert_eq!(gateway.visible(&there("eve")), ["Asked.", "Asked."]);
    let audit = gateway.store.audit(&AuditFilter { before: None, limit: 10 }).await.expect("readable");
    let done: Vec<_> = audit.iter().map(|it| (&*it.entry.by, &*it.entry.action, &*it.entry.target)).collect();
    assert_eq!(done, [("Ada (test.main/ada)", "decline", "test.other/eve")]);
    gateway.at_rest().await;
}

/// N2. Nothing that is stored shows a code that links somebody.
#[tokio::test]
async fn a_code_is_in_no_row_of_what_was_said() {
    let gateway = guarded().await;

    let code = code_for(&gateway, &chat("ada")).await;

    assert!(!gateway.database.places_with("Write /link").await.is_empty(), "the answer is stored");
    assert_eq!(gateway.database.places_with(&code).await, [""; 0]);
    gateway.at_rest().await;
}

/// Who reads it there has no use of it.
#[tokio::test]
async fn a_code_that_was_written_in_a_wrong_place_is_used_up() {
    let gateway = guarded().await;
    let code = code_for(&gateway, &chat("ada")).await;
    let sender = says(&chat("ada"), "").sender;

    let in_group = InboundEvent { sender, ..mention(&chat("room"), &format!("/link {code}")) };
    comes_in(&gateway, in_group).await;
    comes_in(&gateway, says(&there("eve"), &format!("/link {code}"))).await;

    assert_eq!(gateway.visible(&chat("room")), ["Not in public."]);
    assert!(last(&gateway, &there("eve")).starts_with("Ask for"));
    gateway.at_rest().await;
}

/// A code is valid for ten minutes, and only the latest of each identity.
#[tokio::test]
async fn a_code_ends() {
    let gateway = guarded().await;
    let first = code_for(&gateway, &chat("ada")).await;
    let second = code_for(&gateway, &chat("ada")).await;
    assert_ne!(first, second);
    comes_in(&gateway, says(&chat("grace"), &format!("/link {first}"))).await;
    assert_eq!(last(&gateway, &chat("grace")), "No such link.");
    // It lets nobody in.
    comes_in(&gateway, says(&chat("grace"), &format!("/approve {second}"))).await;
    assert_eq!(last(&gateway, &chat("grace")), "Which code?");

    gateway.advance(secs(10 * MINUTE)).await;
    comes_in(&gateway, says(&there("lovelace"), &format!("/link {second}"))).await;

    assert!(last(&gateway, &there("lovelace")).starts_with("Ask for"));
    assert_eq!(known(&gateway).await.len(), 2);
    gateway.at_rest().await;
}

/// N2. Nobody loses or changes by a code what an operator has decided. Somebody who was let in as a person of their own becomes
/// the other one.
#[tokio::test]
async fn a_code_takes_nothing_that_an_operator_gave() {
    let gateway = guarded().await;
    for who in ["grace", "ada"] {
        let of_ada = code_for(&gateway, &chat("ada")).await;
        comes_in(&gateway, says(&chat(who), &format!("/link {of_ada}"))).await;
    }
    assert_eq!(last(&gateway, &chat("grace")), "Ask an operator.", "an owner stays an owner");
    assert_eq!(last(&gateway, &chat("ada")), "Ada already.");
    let of_grace = code_for(&gateway, &chat("grace")).await;
    comes_in(&gateway, says(&chat("ada"), &format!("/link {of_grace}"))).await;
    assert_eq!(last(&gateway, &chat("ada")), "Ask an operator.", "the configuration says who she is");

    comes_in(&gateway, says(&there("lovelace"), "hello")).await;
    let request = gateway.engine().people().waiting().pop().expect("a request");
    comes_in(&gateway, says(&chat("grace"), &format!("/approve {}", request.code))).await;
    assert_eq!(known(&gateway).await.len(), 3);
    let of_ada = code_for(&gateway, &chat("ada")).await;
    comes_in(&gateway, says(&there("lovelace"), &format!("/link {of_ada}"))).await;
    confirms(&gateway, &chat("ada")).await;

    let linked = of("Ada", &["test.main/ada", "test.other/lovelace"]);
    assert_eq!(known(&gateway).await, [linked, of("Grace", &["test.main/grace"])]);
    gateway.at_rest().await;
}

/// In a group everybody would read the code, and where people cannot be told apart a code would be everybody's.
#[tokio::test]
async fn a_code_is_for_direct_chats_of_people_who_can_be_told_apart() {
    let mut setup = GatewaySetup::new().always(Script::replies("hello"));
    setup.people = vec![ada()];
    let gateway = setup.start().await;
    gateway.receives(says(&chat("ada"), "/link")).await;
    assert_eq!(gateway.visible(&chat("ada")), ["You could be anyone."]);
    gateway.at_rest().await;

    let gateway = guarded().await;
    let sender = says(&chat("ada"), "").sender;
    gateway.receives(InboundEvent { sender, ..mention(&chat("room"), "/link") }).await;
    assert_eq!(gateway.visible(&chat("room")), ["Not in public."]);
    gateway.at_rest().await;
}

/// `kill -9` at every write while somebody is given a code, and while they use it: one code is valid, and one answer is shown.
#[tokio::test]
async fn a_crash_links_once() {
    for write in 1..=6 {
        let mut gateway = guarded().await;
        let crash = async |gateway: &mut TestGateway, event: InboundEvent| {
            gateway.life.crash_at(write, Crash::After);
            let (intake, again) = (gateway.engine().intake(&event.conversation.channel), event.clone());
            tokio::spawn(async move { intake.accept(event).await });
            gateway.settle().await;
            gateway.restart().await;
            comes_in(gateway, again).await;
            gateway.advance(secs(MINUTE)).await;
        };
        crash(&mut gateway, says(&chat("ada"), "/link")).await;
        let told = gateway.visible(&chat("ada"));
        let [told] = &told[..] else { panic!("after write {write}: {told:?}") };
        let code = told.trim_start_matches("Write /link ").trim_end_matches('.').to_owned();

        crash(&mut gateway, says(&there("lovelace"), &format!("/link {code}"))).await;

        crash(&mut gateway, says(&chat("ada"), "It is me")).await;

        assert_eq!(gateway.visible(&there("lovelace")), ["Asked.", "You are Ada."], "after write {write}");
        assert_eq!(known(&gateway).await[0].1.len(), 2, "after write {write}");
        gateway.at_rest().await;
    }
}

/// N2. A platform's error may repeat the message. Nothing that is stored of it has a part of the code.
#[tokio::test]
async fn an_error_that_repeats_a_code_is_not_kept() {
    let gateway = guarded().await;
    gateway.platform.queue_fault(Fault::Echo);

    let Accepted::Turn(turn) = comes_in(&gateway, says(&chat("ada"), "/link")).await else { panic!("it is a turn") };

    let told = last(&gateway, &chat("ada"));
    let code = told.trim_start_matches("Write /link ").trim_end_matches('.');
    let dossier = gateway.dossier(turn).await;
    let stored = format!("{:?} {:?} {}", dossier.deliveries, dossier.attempts, gateway.explained(turn).await);
    assert!(stored.contains("they repeat a code"), "{stored}");
    assert!(code.len() == 9 && !code.split('-').any(|part| stored.contains(part)), "{code} in {stored}");
    gateway.at_rest().await;
}

/// N2. A stranger who guesses is as locked out as anybody.
#[tokio::test]
async fn a_stranger_who_guesses_links_nothing_for_an_hour() {
    let gateway = guarded().await;
    let code = code_for(&gateway, &chat("ada")).await;
    for last in "ABCDEFGHJK".chars() {
        comes_in(&gateway, says(&there("eve"), &format!("/link AAAA222{last}"))).await;
    }

    comes_in(&gateway, says(&there("eve"), &format!("/link {code}"))).await;

    assert_eq!(last(&gateway, &chat("ada")), format!("Write /link {code}."));
    gateway.at_rest().await;
}

/// O2. 10,000 strangers who guess run no agent, and leave as little as any strangers.
#[tokio::test]
async fn a_crowd_that_guesses_costs_next_to_nothing() {
    const STRANGERS: u64 = 10_000;
    let gateway = guarded().await;
    let nothing = Cutoffs::at(gateway.clock.now(), &Lifetimes::default());
    let before = gateway.store.stats(&nothing).await.expect("readable").bytes;
    let crowd: Vec<_> = (0..STRANGERS).map(|it| says(&chat(&it.to_string()), &format!("/link AAAA{it:04}"))).collect();
    for events in crowd.chunks(100) {
        gateway.intake().accept_all(events.to_vec(), None).await.expect("accepted");
    }
    gateway.settle().await;

    let after = gateway.store.stats(&nothing).await.expect("readable");
    assert!((after.bytes - before) / STRANGERS < 300);
    assert_eq!(after.rows["turns"], 3 + 60, "the codes to be let in with, and that there are no more");
    assert!(gateway.agent("main").runs().is_empty());
    gateway.at_rest().await;
}

/// Who has linked two identities of one page is invited as the one that the operator names.
#[tokio::test]
async fn an_invitation_is_for_the_identity_that_is_named() {
    let mut setup = setup(Access::default());
    setup.people[0].identities.push(identity(main_channel(), "ada-2"));
    let gateway = setup.start().await;

    for (number, id) in [(1, "ada"), (2, "ada-2")] {
        let person = identity(main_channel(), id);
        let expires_at = gateway.clock.now() + secs(MINUTE);
        let invitation = NewInvitation { channel: main_channel(), code: [number; 32], expires_at };
        let invited = gateway.engine().operations().invite(&person, invitation, operator("asked")).await;
        assert_eq!(invited.expect("they are known"), person);
    }
    gateway.at_rest().await;
}
