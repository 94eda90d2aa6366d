//! Agents ask before they act: those who may decide are asked, and the turn waits.

use rejoinder_core::{
    Accepted, Actor, AgentTurn, ApprovalRequest, ApprovalRule, ApprovalSettings, ApprovalState, ChannelId, Clock,
    Condition, EventKind, Farewell, Identity, InboundEvent, OperationError, Outcome, PersonRole, Policy, QueueMode,
    Quote, Resend, SeedPerson, Sender, TurnId,
    conformance::scripted::{Script, ScriptEnd, capabilities},
    explain::explain,
    store::{Approval, ApprovalFilter, AuditFilter, Handler},
};
use rstest::rstest;

use crate::{
    gateway::{
        GatewaySetup, HARD_DEADLINE, TestGateway, chat, comes_in, main_channel, mention, operator, policy, said, secs,
    },
    life::Crash,
};

const WEEK: u64 = 7 * 24 * 3600;

fn identity(id: &str) -> Identity {
    Identity { channel: main_channel(), id: id.to_owned() }
}

pub(crate) fn person(name: &str, role: PersonRole) -> SeedPerson {
    SeedPerson {
        name: name.to_owned(),
        role,
        identities: vec![identity(&name.to_lowercase())],
        home: None,
        language: None,
    }
}

/// An agent that asks before it pays, and says what was decided.
fn careful(turn: &AgentTurn) -> Script {
    match (&*turn.message.text, turn.past.approvals.last()) {
        ("pay", None) => Script::asks_approval("pay the rent", Some("bank.pay")),
        ("pay", Some(last)) => Script::replies(&format!("{} {:?} {:?}", last.state.as_str(), last.by, last.note)),
        (text, _) => Script::replies(text),
    }
}

/// Ada, Bob and the owner Grace on one channel.
fn setup() -> GatewaySetup {
    let mut setup = GatewaySetup::new().capable(|it| it.resend = Resend::Idempotent).agent("main", careful);
    setup.people = vec![person("Grace", PersonRole::Owner), person("Bob", PersonRole::Member)];
    setup
}

fn says(who: &str, text: &str) -> InboundEvent {
    let event = said(&chat(who), text);
    InboundEvent { sender: Sender { id: who.to_owned(), ..event.sender.clone() }, ..event }
}

/// A gateway in which each of these has written before.
async fn known(setup: GatewaySetup, who: &[&str]) -> TestGateway {
    let gateway = setup.start().await;
    for who in who {
        gateway.receives(says(who, "hello")).await;
    }
    gateway
}

async fn approvals(gateway: &TestGateway) -> Vec<Approval> {
    gateway.store.approvals(ApprovalFilter::Latest, 10).await.expect("readable")
}

/// The turns that told somebody of an approval, oldest first.
async fn told(gateway: &TestGateway) -> Vec<TurnId> {
    let turns = gateway.turns().await.into_iter().rev();
    turns.filter(|turn| turn.handler == Handler::Gateway("asks".into())).map(|turn| turn.turn_id).collect()
}

fn pressed(who: &str, question: TurnId, choice: &str) -> InboundEvent {
    InboundEvent { kind: EventKind::Choice { turn: question }, ..says(who, choice) }
}

async fn audit(gateway: &TestGateway) -> Vec<(String, String)> {
    let audit = gateway.store.audit(&AuditFilter { before: None, limit: 10 }).await.expect("readable");
    audit.into_iter().map(|it| (it.entry.by, it.entry.action)).collect()
}

fn by(who: &str, action: &str) -> (String, String) {
    (who.to_owned(), action.to_owned())
}

const WISH: &str = "main wants pay the rent for ada (test.main): pay";
const WAITS: &str = "Waits for a yes: pay the rent";

/// G3. Meanwhile the conversation goes on, and no deadline ends the wait.
#[tokio::test]
async fn a_turn_waits_until_an_approver_says_yes() {
    let gateway = known(setup(), &["grace"]).await;
    let turn = gateway.receives(says("ada", "pay")).await;
    assert_eq!(gateway.visible(&chat("ada")), [WAITS]);
    assert_eq!(gateway.visible(&chat("grace")), ["hello", WISH]);
    gateway.advance(HARD_DEADLINE * 3).await;
    gateway.receives(says("ada", "meanwhile")).await;
    gateway.receives(says("ada", "/status")).await;
    let explained = gateway.explained(turn).await;

    gateway.receives(says("grace", "Do it")).await;

    assert_eq!(gateway.visible(&chat("grace"))[2..], ["Yes to pay the rent."]);
    let seen = gateway.visible(&chat("ada"));
    assert_eq!(seen, ["approved Some(\"Grace\") None", "meanwhile", "Approval for 30 min: pay"]);
    assert_eq!(audit(&gateway).await, [by("Grace (test.main/grace)", "approve_action")]);
    for part in ["waits for an approval", "Asks for approval: pay the rent, until ", "rejoinder approvals list"] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    let explained = explain(&gateway.dossier(turn).await, rejoinder_core::conformance::clock::START).to_string();
    assert!(explained.contains("Approved by Grace (test.main/grace)."), "{explained}");
    let topics = gateway.topics(turn).await;
    assert!(
        ["approval.asked", "approval.decided"].iter().all(|topic| topics.iter().any(|it| it == topic)),
        "{topics:?}"
    );
    let history = format!("{:?}", gateway.agent("main").runs().last().expect("a run").turn.past.history);
    assert!(!history.contains("Waits for a yes"), "it is the gateway that says so: {history}");
    gateway.at_rest().await;
}

/// What agents and servers write of a request is shown as it is: it formats, links and hides nothing. It is said what asks.
#[rstest]
#[case::mcp(
    "Call files_write (3f)",
    "a\n```\n[b](https://evil.example)\u{202e}",
    "mcp.files.write_file",
    "`Call files_write (3f)`",
    "A tool of files:\n\n````\na\n```\n[b](https://evil.example)\\u{202e}\n````"
)]
#[case::acp("run a | b", "{}", "acp.execute", "`run a | b`", "A permission.\n\n```\n{}\n```")]
#[case::own("pay", "**now**", "bank.pay", "pay", "It says:\n\n```\n**now**\n```")]
#[case::turned("pay \u{202e}now", "{}", "acp.execute", "`pay \\u{202e}now`", "A permission.\n\n```\n{}\n```")]
#[tokio::test]
async fn an_approver_reads_a_request_as_it_is(
    #[case] action: &'static str,
    #[case] details: &'static str,
    #[case] kind: &'static str,
    #[case] shown: &str,
    #[case] rest: &str,
) {
    let gateway =
        known(setup().agent("main", move |turn| asks(turn, action, details.to_owned(), kind)), &["grace"]).await;

    gateway.receives(says("ada", "pay")).await;

    let told = format!("main wants {shown} for ada (test.main): pay\n\n{rest}");
    assert_eq!(gateway.visible(&chat("grace"))[1..], [told]);
    assert_eq!(gateway.visible(&chat("ada")), [format!("Waits for a yes: {shown}")]);
    gateway.advance(secs(WEEK + 10)).await;
    let expired = format!("Nobody answered: {shown}");
    assert_eq!(gateway.visible(&chat("grace")).last(), Some(&expired));
    gateway.at_rest().await;
}

/// What is missing in the message is kept for approvers, unless it is too long.
#[rstest]
#[case::kept(5_000, "3100 are missing.\n\nAll of {id}.", true)]
#[case::too_long(70_000, "68100 are missing.\n\nSome may be missing.", false)]
#[tokio::test]
async fn an_approver_reads_that_a_request_is_not_shown_whole(
    #[case] length: usize,
    #[case] note: &str,
    #[case] is_kept: bool,
) {
    let details = "x".repeat(length);
    let asking = {
        let details = details.clone();
        move |turn: &AgentTurn| asks(turn, "pay", details.clone(), "bank.pay")
    };
    let gateway = known(setup().agent("main", asking), &["grace"]).await;

    gateway.receives(says("ada", "pay")).await;

    let told = gateway.visible(&chat("grace"));
    let id = approvals(&gateway).await[0].id;
    assert!(told[1].ends_with(&format!("\n```\n\n{}", note.replace("{id}", &id.to_string()))), "{told:?}");
    let operations = gateway.engine().operations();
    let (approval, whole) = operations.approval(id, |_| true).await.expect("it is read").expect("it is there");
    assert_eq!(whole.and_then(|whole| whole.details), is_kept.then_some(details));
    assert!(approval.request.details.is_some_and(|details| details.chars().count() <= 2_000));
    assert!(operations.approval(id, |_| false).await.expect("it is read").is_none());
    gateway.receives(says("grace", "Do not")).await;
    gateway.at_rest().await;
}

/// Asks for approval with details, and says nothing of the decision.
fn asks(turn: &AgentTurn, action: &str, details: String, kind: &str) -> Script {
    if &*turn.message.text != "pay" || !turn.past.approvals.is_empty() {
        return Script::replies("hello");
    }
    let request =
        ApprovalRequest { details: Some(details), kind: Some(kind.to_owned()), ..ApprovalRequest::action(action) };
    Script { end: ScriptEnd::Outcome(Outcome::Approval(request)), ..Script::replies("") }
}

#[tokio::test]
async fn an_approver_says_no_by_a_button() {
    let gateway = known(setup(), &["grace"]).await;
    gateway.receives(says("ada", "pay")).await;
    let [question] = told(&gateway).await[..] else { panic!("she is told once") };

    comes_in(&gateway, pressed("grace", question, "Do not")).await;
    let again = comes_in(&gateway, pressed("grace", question, "Do it")).await;

    assert!(matches!(&again, Accepted::Picked { choice } if choice == "Do not"), "{again:?}");
    assert_eq!(gateway.visible(&chat("ada")), ["declined Some(\"Grace\") None"]);
    assert_eq!(gateway.visible(&chat("grace"))[2..], ["No to pay the rent."]);
    assert_eq!(audit(&gateway).await, [by("Grace (test.main/grace)", "decline_action")]);
    gateway.at_rest().await;
}

/// N2. A press by others decides nothing, whatever they know: the question stays open for the asked person.
#[tokio::test]
async fn nobody_else_decides() {
    let gateway = known(setup(), &["grace", "bob"]).await;
    gateway.receives(says("ada", "pay")).await;
    let [question] = told(&gateway).await[..] else { panic!("one is told") };

    comes_in(&gateway, pressed("bob", question, "Do it")).await;
    comes_in(&gateway, pressed("ada", question, "Do it")).await;

    assert_eq!(gateway.visible(&chat("bob")), ["hello", "Not yours."]);
    assert_eq!(gateway.visible(&chat("ada")), [WAITS, "Not yours."]);
    assert_eq!(approvals(&gateway).await[0].state, ApprovalState::Waiting);
    gateway.receives(says("grace", "Do it")).await;
    assert_eq!(gateway.visible(&chat("ada"))[0], "approved Some(\"Grace\") None");
    gateway.at_rest().await;
}

/// N2. Another approver's question is not theirs either.
#[tokio::test]
async fn of_two_approvers_the_first_decides() {
    let mut setup = setup();
    setup.approvals.people = vec![identity("bob")];
    let gateway = known(setup, &["grace", "bob"]).await;
    gateway.receives(says("ada", "pay")).await;
    let questions = told(&gateway).await;
    let is_bobs = async |turn| gateway.dossier(turn).await.turn.event.conversation == chat("bob");
    let [one, other] = questions[..] else { panic!("both are told") };
    let (bobs, graces) = if is_bobs(one).await { (one, other) } else { (other, one) };

    comes_in(&gateway, pressed("bob", graces, "Do it")).await;
    assert_eq!(gateway.visible(&chat("bob")).last().map(String::as_str), Some("Not yours."));
    let both = [pressed("bob", bobs, "Do not"), pressed("grace", graces, "Do it")];
    for event in both {
        let intake = gateway.intake();
        tokio::spawn(async move { intake.accept(event).await });
    }
    gateway.settle().await;

    let states: Vec<_> = approvals(&gateway).await.into_iter().map(|it| it.state).collect();
    let [(_, action)] = &audit(&gateway).await[..] else { panic!("it is decided once") };
    let (bob, grace) = (gateway.visible(&chat("bob")), gateway.visible(&chat("grace")));
    let ends = (bob[3].as_str(), grace[2].as_str());
    if states == [ApprovalState::Approved] {
        assert_eq!(
            (action.as_str(), ends),
            ("approve_action", ("Grace said yes to pay the rent.", "Yes to pay the rent."))
        );
    } else {
        assert_eq!(
            (action.as_str(), ends),
            ("decline_action", ("No to pay the rent.", "Bob said no to pay the rent."))
        );
    }
    assert_eq!(gateway.agent("main").runs().len(), 4, "two greetings, and the turn twice");
    gateway.at_rest().await;
}

/// N2. A name alone makes nobody an approver, and who is none any more decides nothing.
#[tokio::test]
async fn an_approver_who_is_none_any_more_decides_nothing() {
    let mut setup = setup();
    setup.approvals = ApprovalSettings { people: vec![identity("bob")], ..ApprovalSettings::default() };
    let gateway = known(setup, &["bob", "grace"]).await;
    gateway.receives(says("ada", "pay")).await;
    let [question] = told(&gateway).await[..] else { panic!("only Bob is told") };
    let mut settings = gateway.settings();
    settings.approvals = ApprovalSettings { owners: true, ..ApprovalSettings::default() };
    gateway.reads(settings).await;
    gateway.settle().await;
    assert_eq!(gateway.visible(&chat("grace")), ["hello", WISH], "she is told now");

    comes_in(&gateway, pressed("bob", question, "Do it")).await;

    assert_eq!(gateway.visible(&chat("bob"))[2..], ["Not yours."]);
    gateway.receives(says("grace", "Do not")).await;
    assert_eq!(gateway.visible(&chat("ada")), ["declined Some(\"Grace\") None"]);
    gateway.at_rest().await;
}

/// Over a restart at the time at which it expires, too.
#[tokio::test]
async fn what_nobody_decides_counts_as_a_no() {
    for restarts in [false, true] {
        let mut gateway = known(setup(), &["grace"]).await;
        gateway.receives(says("ada", "pay")).await;
        gateway.advance(secs(WEEK - 1)).await;
        assert_eq!(gateway.visible(&chat("ada")), [WAITS]);
        if restarts {
            gateway.life.kill();
            gateway.clock.advance(secs(10));
            gateway.restart().await;
        }

        gateway.advance(secs(10)).await;

        assert_eq!(gateway.visible(&chat("ada")), ["expired None None"]);
        assert_eq!(gateway.visible(&chat("grace"))[2..], ["Nobody answered: pay the rent"]);
        assert_eq!(audit(&gateway).await, [by("gateway", "expire_action")]);
        gateway.receives(says("grace", "Do it")).await;
        assert_eq!(audit(&gateway).await.len(), 1);
        assert_eq!(approvals(&gateway).await[0].state, ApprovalState::Expired);
        gateway.at_rest().await;
    }
}

/// B3. A cancelled turn closes its approval, and the asked people are told.
#[tokio::test]
async fn a_turn_that_is_cancelled_waits_for_nothing() {
    let gateway = known(setup(), &["grace"]).await;
    gateway.receives(says("ada", "pay")).await;
    gateway.receives(says("ada", "/stop")).await;
    let second = gateway.receives(says("ada", "pay")).await;
    gateway
        .engine()
        .operations()
        .cancel(second, Farewell::Template, operator("a mistake"))
        .await
        .expect("it is cancelled");
    gateway.advance(secs(5)).await;

    for question in told(&gateway).await {
        comes_in(&gateway, pressed("grace", question, "Do it")).await;
    }

    let mut visible = gateway.visible(&chat("grace")).split_off(1);
    visible.sort();
    let over = "No need: pay the rent.";
    assert_eq!(visible, [over, over, WISH, WISH]);
    let states: Vec<_> = approvals(&gateway).await.into_iter().map(|it| it.state).collect();
    assert_eq!(states, [ApprovalState::Dropped; 2]);
    assert_eq!(gateway.agent("main").runs().len(), 3);
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_operator_decides_with_a_note() {
    let gateway = setup().start().await;
    gateway.receives(says("ada", "pay")).await;
    let [approval] = &approvals(&gateway).await[..] else { panic!("one waits") };
    let limited = Actor { channels: Some(vec![ChannelId::new("test", "other")]), ..operator("no") };
    let unseen = gateway.engine().operations().decide(approval.id, true, limited).await;
    assert!(matches!(unseen, Err(OperationError::Unknown(_))), "{unseen:?}");

    gateway.engine().operations().decide(approval.id, true, operator("but hurry")).await.expect("it is done");
    let again = gateway.engine().operations().decide(approval.id, false, operator("no")).await;
    gateway.settle().await;

    assert!(matches!(&again, Err(OperationError::Unfit(why)) if why.contains("approved, by grace")), "{again:?}");
    assert_eq!(gateway.visible(&chat("ada")), ["approved Some(\"grace\") Some(\"but hurry\")"]);
    assert_eq!(audit(&gateway).await, [by("grace", "approve_action")]);
    assert!(told(&gateway).await.is_empty(), "no owner can be reached");
    gateway.at_rest().await;
}

/// One person's wishes do not fill the approvers' chats, and each of them is told of, however many there are.
#[tokio::test]
async fn what_waits_for_one_person_is_bounded_and_all_of_it_is_told() {
    let mut setup = setup();
    setup.people[1].identities.push(identity("robert"));
    let gateway = setup.start().await;
    for who in ["ann", "bob", "cid", "dan", "eve", "fay"] {
        for number in 0..20 {
            let who = if who == "bob" && number % 2 == 0 { "robert" } else { who };
            gateway.accepts(says(who, "pay")).await;
        }
    }
    gateway.settle().await;
    gateway.receives(says("bob", "pay")).await;
    let refused = "declined Some(\"gateway\") Some(\"20 approvals wait for this person already\")";
    assert_eq!(gateway.visible(&chat("bob")).last().map(String::as_str), Some(refused));
    gateway.receives(says("grace", "hello")).await;

    let mut wishes = gateway.platform.posts(&chat("grace"));
    wishes.retain(|post| post.text.starts_with("main wants pay the rent for "));
    assert_eq!(wishes.len(), 120);
    let first = wishes.iter().find(|post| post.text.contains("for ann")).expect("she is told of hers");
    let quoted = Quote { message_id: Some(first.id.clone()), ..Quote::of_ours(&first.text) };
    gateway.receives(InboundEvent { quoted: Some(quoted), ..says("grace", "1") }).await;
    let approved = gateway.visible(&chat("ann")).into_iter().filter(|text| text.starts_with("approved")).count();
    assert_eq!(approved, 1);
    gateway.receives(says("ann", "pay")).await;
    assert_eq!(gateway.visible(&chat("ann")).last().map(String::as_str), Some(WAITS), "there is room again");

    gateway.advance(secs(WEEK + 10)).await;
    gateway.at_rest().await;
}

/// A number that answers something else decides nothing, nor do words that two questions have.
#[tokio::test]
async fn nothing_is_approved_by_accident() {
    let gateway = known(setup(), &["grace"]).await;
    gateway.receives(says("ada", "pay")).await;

    for text in ["1", "the first one", "1."] {
        gateway.receives(says("grace", text)).await;
        assert_eq!(gateway.visible(&chat("grace")).pop().as_deref(), Some(text), "the agent is told");
    }
    gateway.receives(says("bob", "pay")).await;
    gateway.receives(says("grace", "Do it")).await;
    assert!(approvals(&gateway).await.iter().all(|it| it.state == ApprovalState::Waiting), "which of the two?");

    let posts = gateway.platform.posts(&chat("grace"));
    let post = posts.iter().find(|post| post.text.starts_with(WISH)).expect("she was asked");
    let quoted = Quote { message_id: Some(post.id.clone()), ..Quote::of_ours(&post.text) };
    gateway.receives(InboundEvent { quoted: Some(quoted), ..says("grace", "1") }).await;

    let states: Vec<_> = approvals(&gateway).await.into_iter().map(|it| it.state).collect();
    assert_eq!(states, [ApprovalState::Waiting, ApprovalState::Approved], "the one that she replied to");
    assert_eq!(gateway.visible(&chat("ada")), ["approved Some(\"Grace\") None"]);
    let last = approvals(&gateway).await[0].id;
    gateway.engine().operations().decide(last, false, operator("no")).await.expect("it is decided");
    gateway.settle().await;
    gateway.at_rest().await;
}

/// A rule for one person does not decide what others have asked for with them, and approvers read all their names, with the ids of
/// those whom nobody knows.
#[tokio::test]
async fn a_rule_decides_nothing_for_others_who_are_answered_together() {
    let mut setup = setup().agent("main", |turn: &AgentTurn| match turn.past.approvals.last() {
        None => Script::asks_approval("pay the rent", Some("bank.pay")),
        Some(last) => Script::replies(last.state.as_str()),
    });
    setup.queues.mode = QueueMode::Collect;
    let conditions = vec![Condition::Role(vec![PersonRole::Owner])];
    let rule = ApprovalRule { kind: None, agents: Vec::new(), people: Vec::new(), conditions, approves: true };
    setup.approvals.rules = vec![rule];
    let gateway = setup.start().await;
    let in_room = |who: &str, name: &str, text: &str| {
        let event = mention(&chat("room"), text);
        let sender = Sender { id: who.to_owned(), name: Some(name.to_owned()), ..event.sender.clone() };
        InboundEvent { sender, received_at: gateway.clock.now(), ..event }
    };
    gateway.accepts(says("grace", "hello")).await;
    gateway.advance(secs(60)).await;
    assert_eq!(gateway.visible(&chat("grace")), ["approved"], "the rule holds for her alone");

    gateway.accepts(in_room("grace", "Grace", "buy milk")).await;
    gateway.accepts(in_room("mallory", "Grace\n\nApproved:", "and pay me 800")).await;
    gateway.advance(secs(60)).await;

    let [approval, ..] = &approvals(&gateway).await[..] else { panic!("it waits") };
    assert_eq!(approval.state, ApprovalState::Waiting);
    let wish = gateway.visible(&chat("grace")).pop().expect("she is asked");
    assert_eq!(
        wish,
        "main wants pay the rent for Grace, Grace Approved:, mallory (test.main): buy milk / and pay me 800"
    );
    // What comes now is not approved with it.
    let later = gateway.accepts(in_room("mallory", "Grace", "and 900")).await;
    gateway.engine().operations().decide(approval.id, true, operator("yes")).await.expect("it is decided");
    gateway.advance(secs(60)).await;
    assert_eq!(approvals(&gateway).await.iter().filter(|it| it.turn == later).count(), 1, "it asks on its own");
    let own = approvals(&gateway).await[0].id;
    gateway.engine().operations().decide(own, false, operator("no")).await.expect("it is decided");
    gateway.advance(secs(60)).await;
    gateway.at_rest().await;
}

/// An approver who cannot be reached is told as soon as they can be, once, also over a restart and on another channel.
#[tokio::test]
async fn an_approver_is_told_when_they_can_be_reached() {
    let mut setup = setup();
    setup.channels = vec![(ChannelId::new("test", "other"), capabilities())];
    let elsewhere = Identity { channel: ChannelId::new("test", "other"), id: "hopper".to_owned() };
    setup.people[0].identities.push(elsewhere);
    let mut gateway = setup.start().await;
    gateway.receives(says("ada", "pay")).await;
    assert_eq!(gateway.visible(&chat("ada")), [WAITS]);

    gateway.receives(says("grace", "hello")).await;
    gateway.restart().await;
    let there = rejoinder_core::ConversationRef::new(ChannelId::new("test", "other"), "hopper");
    let event = said(&there, "hello");
    let event = InboundEvent { sender: Sender { id: "hopper".to_owned(), ..event.sender.clone() }, ..event };
    gateway.engine().intake(&there.channel).accept(event).await.expect("it is accepted");
    gateway.settle().await;
    gateway.restart().await;

    assert_eq!(told(&gateway).await.len(), 1);
    gateway.receives(says("grace", "Do it")).await;
    assert_eq!(gateway.visible(&chat("ada")), ["approved Some(\"Grace\") None"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_rule_decides_at_once() {
    let mut setup = setup();
    let rule = |kind: &str, approves| ApprovalRule {
        kind: Some(kind.to_owned()),
        agents: Vec::new(),
        people: Vec::new(),
        conditions: Vec::new(),
        approves,
    };
    setup.approvals.rules = vec![rule("mail.*", true), rule("bank.*", false)];
    let gateway = known(setup, &["grace"]).await;

    let turn = gateway.receives(says("ada", "pay")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["declined Some(\"rule 2 of the configuration\") None"]);
    assert_eq!(gateway.platform.posts(&chat("ada")).len(), 1);
    assert!(told(&gateway).await.is_empty());
    assert_eq!(audit(&gateway).await, [by("rule 2 of the configuration", "decline_action")]);
    let explained = gateway.explained(turn).await;
    assert!(explained.contains("Declined by rule 2 of the configuration."), "{explained}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_agent_that_asks_without_end_is_stopped() {
    let mut setup = setup().policy(Policy { max_approvals: 3, ..policy() });
    let rule =
        ApprovalRule { kind: None, agents: Vec::new(), people: Vec::new(), conditions: Vec::new(), approves: true };
    setup.approvals.rules = vec![rule];
    setup.agents.clear();
    let gateway = setup.always(Script::asks_approval("again", None)).start().await;

    gateway.receives(says("ada", "go")).await;

    assert_eq!(gateway.visible(&chat("ada")), [crate::texts::FAILED]);
    assert_eq!(gateway.agent("main").runs().len(), 4);
    gateway.at_rest().await;
}

/// The agent is offered it only where somebody, or a rule, could decide.
#[tokio::test]
async fn an_agent_knows_whether_anybody_could_approve() {
    for (owners, may) in [(true, true), (false, false)] {
        let mut setup = setup();
        setup.approvals.owners = owners;
        let gateway = known(setup, &["ada"]).await;
        assert_eq!(gateway.agent("main").runs()[0].turn.rights.may_ask_approval, may);
        gateway.at_rest().await;
    }
}

/// With the person goes what an agent wanted to do for them, also where others were told of it.
#[tokio::test]
async fn a_forgotten_persons_approvals_are_gone() {
    let gateway = known(setup(), &["grace"]).await;
    gateway.receives(says("ada", "pay")).await;
    gateway.receives(says("grace", "Do it")).await;
    assert_eq!((approvals(&gateway).await.len(), told(&gateway).await.len()), (1, 1));

    let (engine, forgotten) = (gateway.engine().clone(), identity("ada"));
    let forgetting =
        tokio::spawn(async move { engine.erasure().forget(&forgotten, secs(1), operator("she asked")).await });
    gateway.settle().await;
    gateway.advance(secs(1)).await;
    forgetting.await.expect("it ends").expect("it is done");

    assert_eq!((approvals(&gateway).await.len(), told(&gateway).await.len()), (0, 0));
    let audit = gateway.store.audit(&AuditFilter { before: None, limit: 10 }).await.expect("readable");
    let begun = audit.iter().find(|record| record.entry.action == "begin_forget").expect("it is in the audit");
    assert_eq!((&*begun.entry.target, begun.entry.reason.as_deref()), ("test.main/ada", Some("she asked")));
    gateway.at_rest().await;
}

/// `kill -9` at every write while an agent asks and while an approver is told, and while they decide.
#[tokio::test]
async fn a_crash_asks_tells_and_decides_once() {
    for write in 1..=14 {
        let mut gateway = known(setup(), &["grace"]).await;
        let crash = async |gateway: &mut TestGateway, event: InboundEvent| {
            gateway.life.crash_at(write, Crash::After);
            let (intake, again) = (gateway.intake(), event.clone());
            tokio::spawn(async move { intake.accept(event).await });
            gateway.settle().await;
            gateway.restart().await;
            comes_in(gateway, again).await;
            gateway.advance(secs(60)).await;
        };
        crash(&mut gateway, says("ada", "pay")).await;
        assert_eq!(gateway.visible(&chat("ada")), [WAITS], "after write {write}");
        assert_eq!(gateway.visible(&chat("grace")), ["hello", WISH], "after write {write}");
        assert_eq!(approvals(&gateway).await.len(), 1, "after write {write}");

        crash(&mut gateway, says("grace", "Do it")).await;

        assert_eq!(gateway.visible(&chat("ada")), ["approved Some(\"Grace\") None"], "after write {write}");
        assert_eq!(gateway.visible(&chat("grace"))[2..], ["Yes to pay the rent."], "after write {write}");
        assert_eq!(audit(&gateway).await, [by("Grace (test.main/grace)", "approve_action")], "after write {write}");
        gateway.at_rest().await;
    }
}

/// The same while it expires, and while an operator decides.
#[tokio::test]
async fn a_crash_expires_and_decides_once() {
    for expires in [true, false] {
        for write in 1..=10 {
            let mut gateway = known(setup(), &["grace"]).await;
            gateway.receives(says("ada", "pay")).await;
            let id = approvals(&gateway).await[0].id;
            let decide = async |gateway: &TestGateway| {
                let engine = gateway.engine().clone();
                tokio::spawn(async move { engine.operations().decide(id, false, operator("no")).await });
                gateway.settle().await;
            };
            if expires {
                gateway.advance(secs(WEEK - 1)).await;
            }
            gateway.life.crash_at(write, Crash::After);
            if expires {
                gateway.advance(secs(2)).await;
            } else {
                decide(&gateway).await;
            }
            let has_died = gateway.life.is_over();
            gateway.restart().await;
            if !expires {
                decide(&gateway).await;
            }
            gateway.advance(secs(60)).await;

            let (seen, who) = if expires {
                ("expired None None", by("gateway", "expire_action"))
            } else {
                ("declined Some(\"grace\") Some(\"no\")", by("grace", "decline_action"))
            };
            assert_eq!(gateway.visible(&chat("ada")), [seen], "after write {write}");
            assert_eq!(audit(&gateway).await, [who], "after write {write}");
            assert_eq!(gateway.visible(&chat("grace")).len(), if expires { 3 } else { 2 }, "after write {write}");
            gateway.at_rest().await;
            if !has_died {
                assert!(write > 1, "it takes no write");
                break;
            }
        }
    }
}
