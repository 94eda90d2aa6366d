//! Sessions: going back to one, sharing one, choosing for one, and taking things back in one.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::tz::TimeZone;
use rejoinder_core::{
    Access, AgentName, AgentTurn, Capabilities, Clock, Condition, DirectPolicy, Handler, Identity, InboundEvent,
    NewInGroups, PersonRole, PolicyChange, Resend, Rule, SeedPerson, Sender, SessionReset, SessionSettings, Speaker,
    conformance::scripted::{Gate, Script, capabilities},
    store::{Cutoffs, TurnStatus},
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, comes_in, main_channel, mention, operator, secs},
    life::{Crash, Life},
    linking::{code_for, identity, last, other_channel, says, there},
    texts::FAILED,
};

/// The agent repeats what it is asked, and what people said before, without commands.
pub(crate) fn repeats(turn: &AgentTurn) -> Script {
    let before = turn.past.history.iter().filter(|line| line.speaker == Speaker::Person && !line.text.starts_with('/'));
    let before: Vec<_> = before.map(|line| line.text.as_str()).collect();
    let model = turn.place.model.as_ref().map(|model| format!("{model}: ")).unwrap_or_default();
    Script::replies(&format!("{model}{} [{}]", turn.message.text, before.join(" ")))
}

fn setup() -> GatewaySetup {
    let idempotent = || Capabilities { resend: Resend::Idempotent, ..capabilities() };
    let mut setup = GatewaySetup::new().agent("main", repeats);
    setup.capabilities = idempotent();
    setup.channels.push((other_channel(), idempotent()));
    setup
}

fn person(name: &str, role: PersonRole, identities: Vec<Identity>) -> SeedPerson {
    SeedPerson { name: name.to_owned(), role, identities, home: None, language: None }
}

/// Ada is known on both channels, Bob and the guest Eve on one.
fn known() -> GatewaySetup {
    let main = |id: &str| identity(main_channel(), id);
    let mut setup = setup();
    setup.access = [(main_channel(), Access::default()), (other_channel(), Access::default())].into();
    setup.people = vec![
        person("Ada", PersonRole::Member, vec![main("ada"), identity(other_channel(), "lovelace")]),
        person("Bob", PersonRole::Member, vec![main("bob")]),
        person("Eve", PersonRole::Guest, vec![main("eve")]),
    ];
    setup
}

/// What somebody is told when they write something now.
pub(crate) async fn told(gateway: &TestGateway, event: InboundEvent) -> String {
    let address = event.conversation.clone();
    comes_in(gateway, InboundEvent { received_at: gateway.clock.now(), ..event }).await;
    last(gateway, &address)
}

async fn ada(gateway: &TestGateway, text: &str) -> String {
    told(gateway, says(&chat("ada"), text)).await
}

async fn lovelace(gateway: &TestGateway, text: &str) -> String {
    told(gateway, says(&there("lovelace"), text)).await
}

/// Somebody writes in the group.
fn in_room(who: &str, text: &str) -> InboundEvent {
    let sender = Sender { id: who.to_owned(), ..says(&chat(who), "").sender };
    InboundEvent { sender, ..mention(&chat("room"), text) }
}

#[tokio::test]
async fn a_new_session_leaves_the_old_one_to_go_back_to() {
    let gateway = setup().start().await;
    assert_eq!(ada(&gateway, "one").await, "one []");
    assert_eq!(ada(&gateway, "two").await, "two [one]");
    assert_eq!(ada(&gateway, "/new").await, "A new start.\nBack: 1 “one”.");
    assert_eq!(ada(&gateway, "three").await, "three []");
    assert_eq!(ada(&gateway, "/session use 1").await, "Again “one”.");
    assert_eq!(ada(&gateway, "four").await, "four [one two]");
    assert_eq!(ada(&gateway, "/session use 2").await, "Again “three”.");
    assert_eq!(ada(&gateway, "five").await, "five [three]");
    gateway.at_rest().await;
}

/// A title is in quotes, which it cannot end. A session with a title ends as one without a name does.
#[tokio::test]
async fn a_title_of_an_agent_does_not_look_like_a_name() {
    let titles = |turn: &AgentTurn| {
        Script::replies("Yes.").titling(&format!("About\n*{}*\u{202e}” now", turn.message.text)).titling(" ")
    };
    let mut setup = setup().agent("main", titles);
    setup.sessions.reset = SessionReset::Idle(secs(3600));
    let gateway = setup.start().await;
    ada(&gateway, "one").await;
    ada(&gateway, &"x".repeat(200)).await;
    ada(&gateway, "two").await;
    assert_eq!(ada(&gateway, "/session").await, "Sessions:\n\n1 “About two' now” 0 s main now");
    gateway.advance(secs(3601)).await;
    ada(&gateway, "three").await;
    assert_eq!(ada(&gateway, "/session rename Trip").await, "It is Trip.");
    ada(&gateway, "four").await;

    assert_eq!(
        ada(&gateway, "/session").await,
        "Sessions:\n\n2 Trip “About four' now” 0 s main now\n\n1 “About two' now” 1 h main"
    );
    gateway.at_rest().await;
}

#[tokio::test]
async fn sessions_have_names_numbers_and_agents() {
    let gateway = setup().start().await;
    assert_eq!(ada(&gateway, "/session").await, "Sessions:\n\n1 empty 0 s main now");
    ada(&gateway, "one **day**").await;
    assert_eq!(ada(&gateway, "/session rename  The\u{202e} trip").await, "It is The trip.");
    assert_eq!(ada(&gateway, "/session new the TRIP").await, "The name is taken.");
    assert_eq!(ada(&gateway, "/new Work").await, "A new start.\nBack: 1 The trip.");
    gateway.advance(secs(3600)).await;
    ada(&gateway, "/session new").await;
    ada(&gateway, "two *of* them").await;

    assert_eq!(
        ada(&gateway, "/session list").await,
        "Sessions:\n\n3 “two of them” 0 s main now\n\n2 Work 1 h main\n\n1 The trip 1 h main"
    );
    assert_eq!(ada(&gateway, "/session use the trip").await, "Again The trip.");
    for wrong in ["/session use 9", "/session use nothing", "/session delete nothing"] {
        assert_eq!(ada(&gateway, wrong).await, "No such session.", "{wrong}");
    }
    for wrong in ["/session rename 12", "/new 12"] {
        assert_eq!(ada(&gateway, wrong).await, "No name.", "{wrong}");
    }
    for wrong in ["/session use", "/session anything", "/session list all"] {
        assert_eq!(ada(&gateway, wrong).await, "list, new, use, rename, delete", "{wrong}");
    }
    // More words than a name has are for the agent.
    assert!(ada(&gateway, "/new a b c d e f g h i").await.starts_with("/new a b"));
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_deleted_session_takes_its_lines_along() {
    let gateway = setup().start().await;
    ada(&gateway, "one").await;
    let session = gateway.agent("main").runs()[0].turn.place.session;
    ada(&gateway, "/new").await;
    ada(&gateway, "two").await;

    assert_eq!(ada(&gateway, "/session delete 1").await, "Gone: 1 “one”.");
    assert!(gateway.store.transcript(session, 10).await.expect("readable").is_empty());
    assert_eq!(ada(&gateway, "/session use 2").await, "No such session.");
    assert_eq!(ada(&gateway, "three").await, "three [two]");
    assert_eq!(ada(&gateway, "/session delete 1").await, "Gone: 1 “two”.\nA new start.");
    assert_eq!(ada(&gateway, "four").await, "four []");
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_session_with_an_answer_to_come_is_not_deleted() {
    let gate = Gate::default();
    let waiting = gate.clone();
    let gateway = setup().agent("main", move |_| Script::replies("late").waiting(&waiting)).start().await;
    comes_in(&gateway, says(&chat("ada"), "one")).await;
    ada(&gateway, "/new").await;

    assert_eq!(ada(&gateway, "/session delete 1").await, "empty is open.");
    gate.open();
    gateway.settle().await;
    assert_eq!(ada(&gateway, "/session delete 1").await, "Gone: 1 “one”.");
    gateway.at_rest().await;
}

/// Each thread of somebody's chat is a conversation of its own.
#[tokio::test]
async fn what_is_deleted_in_a_thread_was_said_there() {
    let gateway = known().agent("main", repeats).start().await;
    let in_thread = |thread: &str, text: &str| {
        let said = says(&chat("ada"), text);
        InboundEvent { conversation: said.conversation.clone().in_thread(thread), ..said }
    };
    told(&gateway, in_thread("a", "kept")).await;
    told(&gateway, in_thread("a", "/new")).await;
    told(&gateway, in_thread("b", "gone")).await;

    told(&gateway, in_thread("b", "/session delete all")).await;

    let sessions = told(&gateway, in_thread("a", "/session")).await;
    assert!(sessions.contains("kept") && !sessions.contains("gone"), "{sessions}");
    gateway.at_rest().await;
}

/// Also what is worked on and what waits: no answer comes after it. What another conversation continues in stays.
#[tokio::test]
async fn everything_that_was_said_can_be_deleted_at_once() {
    let never = Gate::default();
    let waiting = never.clone();
    let agent = move |turn: &AgentTurn| match &*turn.message.text {
        "late" => Script::replies("too late").waiting(&waiting),
        _ => repeats(turn),
    };
    let gateway = known().agent("main", agent).start().await;
    ada(&gateway, "shared").await;
    lovelace(&gateway, "/session use 1").await;
    ada(&gateway, "/new all").await;
    ada(&gateway, "one").await;
    ada(&gateway, "/new").await;
    for text in ["late", "later"] {
        comes_in(&gateway, says(&chat("ada"), text)).await;
    }

    assert_eq!(ada(&gateway, "/session delete all").await, "All gone.\n“shared” is used elsewhere.");

    assert_eq!(gateway.visible(&chat("ada")).iter().filter(|text| text.contains("late")).count(), 0);
    assert_eq!(ada(&gateway, "/session").await, "Sessions:\n\n2 empty 0 s main now\n\n1 “shared” 0 s main");
    assert_eq!(ada(&gateway, "two").await, "two []");
    assert_eq!(lovelace(&gateway, "three").await, "three [shared]");
    assert_eq!(told(&gateway, in_room("eve", "/session delete all")).await, "Not for guests.");
    gateway.at_rest().await;
}

/// A18. What was said on one channel is gone on with on another, when both use the same session.
#[tokio::test]
async fn a_person_uses_a_session_on_all_their_channels_and_nobody_else_does() {
    let gateway = known().start().await;
    ada(&gateway, "one").await;
    assert_eq!(lovelace(&gateway, "two").await, "two []");
    assert_eq!(lovelace(&gateway, "/session use 1").await, "Again “one”.");
    assert_eq!(lovelace(&gateway, "three").await, "three [one]");
    assert_eq!(ada(&gateway, "four").await, "four [one three]");
    assert_eq!(lovelace(&gateway, "/session delete 1").await, "“one” is used elsewhere.");

    assert_eq!(told(&gateway, says(&chat("bob"), "/session use 1")).await, "Again empty.");
    assert_eq!(told(&gateway, says(&chat("bob"), "five")).await, "five []");
    assert_eq!(told(&gateway, says(&chat("bob"), "/session use 2")).await, "No such session.");
    gateway.at_rest().await;
}

/// Nobody reads what was said to one person into a group.
#[tokio::test]
async fn a_group_uses_its_own_sessions() {
    let gateway = known().start().await;
    ada(&gateway, "/new secret").await;
    ada(&gateway, "one").await;
    assert_eq!(told(&gateway, in_room("ada", "two")).await, "two []");
    assert_eq!(told(&gateway, in_room("ada", "/session use secret")).await, "No such session.");
    assert_eq!(told(&gateway, in_room("bob", "/new")).await, "A new start.\nBack: 1 “two”.");
    for refused in ["/new", "/session new", "/session use 1", "/session delete 1", "/session rename ours"] {
        assert_eq!(told(&gateway, in_room("eve", refused)).await, "Not for guests.", "{refused}");
    }
    assert_eq!(told(&gateway, in_room("ada", "/session use 1")).await, "Again “two”.");
    assert_eq!(told(&gateway, in_room("bob", "three")).await, "three [two]");
    // The group's are not used in a direct chat.
    assert_eq!(ada(&gateway, "/session use “two”").await, "No such session.");
    assert_eq!(ada(&gateway, "/session").await.matches("two").count(), 0);
    gateway.at_rest().await;
}

/// Who may begin a new session where it is everybody's.
#[tokio::test]
async fn the_operator_says_who_begins_sessions_in_groups() {
    for (new_in_groups, refused) in
        [(NewInGroups::Owners, "ada"), (NewInGroups::Members, "eve"), (NewInGroups::Everyone, "nobody")]
    {
        let mut setup = known();
        setup.sessions.new_in_groups = new_in_groups;
        let gateway = setup.start().await;

        for who in ["ada", "eve"] {
            let is_refused = told(&gateway, in_room(who, "/new")).await == "Not for guests.";
            let is_expected = who == refused || new_in_groups == NewInGroups::Owners;
            assert_eq!(is_refused, is_expected, "{new_in_groups:?}: {who}");
        }
        gateway.at_rest().await;
    }
}

/// D18. Nor what is answered together with the question of somebody else.
#[tokio::test]
async fn a_guest_of_a_group_stops_only_their_own_turns() {
    let mut setup = GatewaySetup::new().always(Script::replies("done").taking(secs(60)));
    (setup.access, setup.people) = ([(main_channel(), Access::default())].into(), known().people);
    let gateway = setup.start().await;
    let adas = gateway.receives(in_room("ada", "an analysis, please")).await;
    assert_eq!(told(&gateway, in_room("eve", "/stop")).await, "Only your own.");
    let eves = gateway.receives(in_room("eve", "and for me?")).await;

    assert_eq!(told(&gateway, in_room("eve", "/stop")).await, "Stopped by Eve.");
    assert_eq!(gateway.status(eves).await, TurnStatus::Cancelled);
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.status(adas).await, TurnStatus::Answered);
    gateway.at_rest().await;
}

/// Somebody who writes in a group only because everyone there may, may do no more than a guest.
#[tokio::test]
async fn a_stranger_in_a_group_changes_nothing_for_the_others() {
    let mut setup = known();
    let access = Access { group_allow: ["*"].iter().collect(), allow: ["carol"].iter().collect(), ..Access::default() };
    setup.access.insert(main_channel(), access);
    let gateway = setup.start().await;
    told(&gateway, in_room("ada", "one")).await;
    told(&gateway, in_room("ada", "/new")).await;

    for refused in ["/session use 1", "/session delete 1", "/session rename ours", "/new", "/queue interrupt"] {
        for who in ["mallory", "eve"] {
            assert_eq!(told(&gateway, in_room(who, refused)).await, "Not for guests.", "{who}: {refused}");
        }
    }
    assert_eq!(told(&gateway, in_room("mallory", "two")).await, "two []");
    assert_eq!(told(&gateway, in_room("carol", "/session use 1")).await, "Again “one”.", "the operator lets her in");
    gateway.at_rest().await;
}

/// A18. Somebody who takes a channel out again leaves the sessions with the person.
#[tokio::test]
async fn a_channel_that_is_no_longer_linked_starts_afresh() {
    let mut setup = known();
    setup.people = vec![person("Ada", PersonRole::Member, vec![identity(main_channel(), "ada")])];
    let open = Access { direct: DirectPolicy::Open, ..Access::default() };
    setup.access = [(main_channel(), Access::default()), (other_channel(), open)].into();
    let gateway = setup.start().await;
    ada(&gateway, "/new trip").await;
    ada(&gateway, "one").await;
    let code = code_for(&gateway, &chat("ada")).await;
    assert_eq!(lovelace(&gateway, &format!("/link {code}")).await, "Asked.");
    ada(&gateway, "It is me").await;
    assert_eq!(lovelace(&gateway, "/session use trip").await, "Again trip.");
    assert_eq!(lovelace(&gateway, "two").await, "two [one]");

    lovelace(&gateway, "/unlink").await;
    assert_eq!(lovelace(&gateway, "three").await, "three []");
    assert_eq!(lovelace(&gateway, "/session use trip").await, "No such session.");
    assert_eq!(ada(&gateway, "four").await, "four [one two]");
    assert_eq!(ada(&gateway, "/session use trip").await, "Again trip.");
    gateway.at_rest().await;
}

fn resetting(reset: SessionReset) -> GatewaySetup {
    let setup = known();
    GatewaySetup { sessions: SessionSettings { reset, ..SessionSettings::default() }, ..setup }
}

#[tokio::test]
async fn an_idle_conversation_begins_a_new_session() {
    let gateway = resetting(SessionReset::Idle(Duration::from_hours(8))).start().await;
    ada(&gateway, "one").await;
    lovelace(&gateway, "/session use 1").await;
    gateway.advance(Duration::from_hours(7)).await;
    assert_eq!(ada(&gateway, "two").await, "two [one]");
    gateway.advance(Duration::from_hours(7)).await;
    // A command is no use.
    ada(&gateway, "/session").await;
    gateway.advance(Duration::from_hours(2)).await;
    assert_eq!(ada(&gateway, "three").await, "three []");
    // The other conversation that used it goes along.
    assert_eq!(lovelace(&gateway, "four").await, "four [three]");
    assert_eq!(ada(&gateway, "/session use 1").await, "Again “one”.");
    assert_eq!(ada(&gateway, "five").await, "five [one two]");

    ada(&gateway, "/session rename kept").await;
    gateway.advance(Duration::from_hours(100)).await;
    assert_eq!(ada(&gateway, "six").await, "six [one two five]");
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_day_begins_with_a_new_session() {
    let four = jiff::civil::time(4, 0, 0, 0);
    let gateway = resetting(SessionReset::Daily(four, TimeZone::UTC)).start().await;
    let now =
        jiff::Timestamp::from_millisecond(gateway.clock.now().as_millis()).expect("a time").to_zoned(TimeZone::UTC);
    let until_five = (29 - u64::try_from(now.hour()).expect("an hour")) * 3600;
    ada(&gateway, "one").await;
    gateway.advance(secs(600)).await;
    assert_eq!(ada(&gateway, "two").await, "two [one]");
    gateway.advance(secs(until_five)).await;
    assert_eq!(ada(&gateway, "three").await, "three []");
    gateway.advance(secs(3600)).await;
    assert_eq!(ada(&gateway, "four").await, "four [three]");
    gateway.at_rest().await;
}

/// Two agents, one of which has two models. A rule sends what begins with `/code` to the other one.
fn choosing() -> GatewaySetup {
    let [main, other]: [AgentName; 2] = ["main".into(), "other".into()];
    let models = BTreeMap::from([(main.clone(), vec!["small".into(), Arc::from("large")])]);
    let sessions = SessionSettings { agents: vec![main, other.clone()], models, ..SessionSettings::default() };
    let code = Rule {
        name: "code".into(),
        conditions: vec![Condition::Command(vec!["/code".to_owned()])],
        agent: Some(other),
        language: None,
        queue: None,
        policy: PolicyChange::default(),
    };
    let setup = setup().agent("other", |turn| Script::replies(&format!("other: {}", turn.message.text)));
    GatewaySetup { sessions, rules: vec![code], ..setup }
}

#[tokio::test]
async fn an_agent_and_a_model_are_chosen_for_a_session() {
    let mut gateway = choosing().start().await;
    let menu = gateway.intake().commands();
    let offered =
        |name: &str| menu.iter().find(|it| it.name == name).and_then(|it| it.argument.clone()).map(|it| it.choices);
    assert_eq!(offered("agent"), Some(vec!["main".to_owned(), "other".to_owned()]));
    assert_eq!(offered("model"), Some(vec!["small".to_owned(), "large".to_owned()]));
    assert_eq!(ada(&gateway, "/agent").await, "main of `main`, `other`.");
    assert_eq!(ada(&gateway, "/model").await, "small of `small`, `large`.");
    assert_eq!(ada(&gateway, "/model LARGE").await, "Model large.");
    assert_eq!(ada(&gateway, "one").await, "large: one []");
    assert_eq!(ada(&gateway, "/model huge").await, "Only `small`, `large`.");
    assert_eq!(ada(&gateway, "/model small").await, "Model small.");
    assert_eq!(ada(&gateway, "two").await, "two [one]");
    assert_eq!(ada(&gateway, "/agent nobody").await, "Only `main`, `other`.");
    assert_eq!(ada(&gateway, "/agent other").await, "Now other.");
    assert_eq!(ada(&gateway, "/model").await, "Only one model.");
    gateway.restart().await;
    assert_eq!(ada(&gateway, "three").await, "other: three");
    let explained = gateway.engine().explain_route(says(&chat("ada"), "x")).await.expect("readable");
    assert_eq!(explained.handler.map(|(handler, _)| handler), Some(Handler::Agent("other".into())));
    assert_eq!(explained.chosen.agent.as_deref(), Some("other"));
    assert_eq!(ada(&gateway, "/session").await, "Sessions:\n\n1 “one” 0 s other now");

    assert_eq!(ada(&gateway, "/new").await, "A new start.\nBack: 1 “one”.");
    assert_eq!(ada(&gateway, "four").await, "four []");
    assert_eq!(ada(&gateway, "/code five").await, "other: /code five");
    // What is chosen comes before the rule.
    ada(&gateway, "/session use 1").await;
    ada(&gateway, "/agent main").await;
    assert_eq!(ada(&gateway, "six").await.split(' ').next(), Some("six"));
    gateway.at_rest().await;
}

/// What is chosen in one chat costs the others nothing.
#[tokio::test]
async fn a_message_waits_for_no_read_where_nothing_is_chosen() {
    let gateway = choosing().start().await;
    ada(&gateway, "/agent other").await;
    told(&gateway, says(&chat("bob"), "one")).await;

    gateway.life.hold_reads(true);
    let (intake, event) = (gateway.intake(), says(&chat("bob"), "two"));
    let accepting = tokio::spawn(async move { intake.accept(event).await });
    gateway.settle().await;
    assert!(accepting.is_finished(), "it is accepted without a read");
    gateway.life.hold_reads(false);
    gateway.settle().await;
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_agent_that_may_not_be_chosen_any_more_is_left_with_a_remark() {
    let gateway = choosing().start().await;
    ada(&gateway, "/agent other").await;
    assert_eq!(ada(&gateway, "one").await, "other: one");
    let mut settings = gateway.settings();
    settings.sessions = SessionSettings::default();
    gateway.reads(settings).await;

    assert_eq!(ada(&gateway, "two").await, "two [one]");
    let turn = gateway.turns().await[0].turn_id;
    let remarks = gateway.dossier(turn).await.remarks;
    assert!(remarks.iter().any(|it| it.kind == "choice_gone" && it.detail.contains("`other`")), "{remarks:?}");
    assert_eq!(ada(&gateway, "/agent").await, "Only main.");
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_question_is_tried_again_without_the_first_try() {
    let gateway = setup().start().await;
    assert_eq!(ada(&gateway, "/retry").await, "Nothing to try again.");
    ada(&gateway, "one").await;
    ada(&gateway, "two").await;
    assert_eq!(ada(&gateway, "/retry").await, "two [one]");
    assert_eq!(ada(&gateway, "/retry").await, "two [one]");
    assert_eq!(ada(&gateway, "three").await, "three [one two]");
    assert_eq!(gateway.visible(&chat("ada")).len(), 6, "what was sent stays");
    gateway.at_rest().await;
}

/// The last question can be asked in other words, and the agent is not shown the first ones. An earlier one is left as it is.
#[tokio::test]
async fn a_question_is_asked_in_other_words() {
    let gateway = setup().start().await;
    ada(&gateway, "one").await;
    ada(&gateway, "two").await;
    let last = || async { gateway.turns().await[0].turn_id };
    let two = last().await;
    let instead = |text| InboundEvent { instead_of: Some(two), ..says(&chat("ada"), text) };
    assert_eq!(told(&gateway, instead("zwei")).await, "zwei [one]");
    assert_eq!(told(&gateway, instead("due")).await, "due [one zwei]");
    let due = last().await;
    assert_eq!(ada(&gateway, "/retry").await, "due [one zwei]");
    ada(&gateway, "/status").await;

    let views = gateway.intake().views(&chat("ada"), None, 9).await.expect("readable");

    let places: Vec<_> = views.iter().map(|view| view.instead_of).collect();
    assert_eq!(places, [None, None, Some(two), None, Some(due), None]);
    gateway.at_rest().await;
}

/// B3. What was stopped or went wrong can be tried again; what runs is not asked twice.
#[tokio::test]
async fn what_runs_is_not_tried_again_and_what_was_stopped_is() {
    let gate = Gate::default();
    let waiting = gate.clone();
    let gateway = setup()
        .agent("main", move |turn| match turn.message.text.as_str() {
            "wait" => Script::replies("done").waiting(&waiting),
            "fail" => Script::fails("no"),
            _ => repeats(turn),
        })
        .start()
        .await;
    ada(&gateway, "one").await;
    comes_in(&gateway, says(&chat("ada"), "wait")).await;
    assert_eq!(ada(&gateway, "/retry").await, "Still on: wait");
    ada(&gateway, "/stop").await;
    gate.open();
    gateway.advance(secs(3)).await;
    assert_eq!(ada(&gateway, "/retry").await, "done");
    assert_eq!(ada(&gateway, "fail").await, FAILED);
    assert_eq!(ada(&gateway, "/retry").await, FAILED);
    let turn = gateway.turns().await[0].turn_id;
    assert_eq!(gateway.dossier(turn).await.turn.event.said.as_deref(), Some("/retry"));
    gateway.at_rest().await;
}

/// In a group everybody tries again what they asked themselves.
#[tokio::test]
async fn in_a_group_the_own_question_is_tried_again() {
    let gateway = known().start().await;
    told(&gateway, in_room("ada", "one")).await;
    told(&gateway, in_room("bob", "two")).await;

    assert_eq!(told(&gateway, in_room("ada", "/retry")).await, "one [two]");
    assert_eq!(told(&gateway, in_room("eve", "/retry")).await, "Nothing to try again.");
    assert_eq!(told(&gateway, in_room("bob", "/undo")).await, "Forgotten: two");
    assert_eq!(told(&gateway, in_room("eve", "three")).await, "three [one]");
    gateway.at_rest().await;
}

#[tokio::test]
async fn each_undo_goes_one_question_back() {
    let gateway = setup().start().await;
    for text in ["one", "two", "three"] {
        ada(&gateway, text).await;
    }
    assert_eq!(ada(&gateway, "/undo").await, "Forgotten: three");
    assert_eq!(ada(&gateway, "/undo").await, "Forgotten: two");
    assert_eq!(ada(&gateway, "four").await, "four [one]");
    assert_eq!(ada(&gateway, "/undo").await, "Forgotten: four");
    assert_eq!(ada(&gateway, "/undo").await, "Forgotten: one");
    assert_eq!(ada(&gateway, "/undo").await, "Nothing to forget.");
    assert_eq!(ada(&gateway, "five").await, "five []");
    gateway.at_rest().await;
}

/// More writes than there are.
const NEVER: u64 = 1_000_000;

/// D1. `kill -9` before and after each write while Ada sends `text` after `seed`: she sees one answer of the kind `expected`
/// to it, and `then` gets the same answer whatever happened.
async fn survives(setup: impl Fn() -> GatewaySetup, seed: &[&str], text: &str, expected: &str, then: (&str, &str)) {
    for crash in [Crash::Before, Crash::After] {
        for write in 1..100 {
            let mut gateway = setup().start().await;
            for text in seed {
                ada(&gateway, text).await;
            }
            gateway.advance(Duration::from_hours(1)).await;
            let before = gateway.visible(&chat("ada")).len();
            let event = InboundEvent { received_at: gateway.clock.now(), ..says(&chat("ada"), text) };
            let life: Arc<Life> = Arc::clone(&gateway.life);
            life.crash_at(write, crash);
            let (intake, again) = (gateway.intake(), event.clone());
            tokio::spawn(async move { intake.accept(event).await });
            gateway.settle().await;
            gateway.advance(secs(60)).await;
            if life.is_over() {
                gateway.restart().await;
                comes_in(&gateway, again).await;
                gateway.advance(secs(600)).await;
            }

            gateway.life.crash_at(NEVER, crash);
            let what = format!("{text}, {crash:?} write {write}");
            assert_eq!(gateway.visible(&chat("ada"))[before..], [expected], "{what}");
            assert_eq!(ada(&gateway, then.0).await, then.1, "{what}");
            gateway.check_rest().await;
            if !life.is_over() {
                assert!(write > 2, "{text} takes more than {write} writes");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_crash_during_a_new_session_begins_one() {
    survives(setup, &["one"], "/new trip", "A new start.\nBack: 1 “one”.", ("/session use 2", "Again trip.")).await;
}

#[tokio::test]
async fn a_crash_while_somebody_goes_back_changes_the_session_once() {
    survives(setup, &["one", "/new", "two"], "/session use 1", "Again “one”.", ("three", "three [one]")).await;
}

#[tokio::test]
async fn a_crash_during_a_deletion_deletes_one_session() {
    let seed = ["one", "/new", "two", "/new", "three"];
    survives(setup, &seed, "/session delete 1", "Gone: 1 “one”.", ("/session use 1", "Again “two”.")).await;
}

#[tokio::test]
async fn a_crash_during_another_try_gives_one_answer() {
    survives(setup, &["one", "two"], "/retry", "two [one]", ("three", "three [one two]")).await;
}

#[tokio::test]
async fn a_crash_while_something_is_taken_back_takes_back_one_question() {
    survives(setup, &["one", "two"], "/undo", "Forgotten: two", ("three", "three [one]")).await;
}

#[tokio::test]
async fn a_crash_during_a_reset_begins_one_session() {
    let setup = || resetting(SessionReset::Idle(Duration::from_mins(30)));
    survives(setup, &["one"], "two", "two []", ("three", "three [two]")).await;
}

#[tokio::test]
async fn a_crash_during_a_choice_chooses_it() {
    survives(choosing, &["one"], "/agent other", "Now other.", ("two", "other: two")).await;
}

/// M: what is stored of somebody goes, with the names that they gave.
#[tokio::test]
async fn what_somebody_called_their_sessions_is_forgotten_with_them() {
    let mut setup = known();
    setup.people = vec![person("Ada", PersonRole::Member, vec![identity(main_channel(), "ada")])];
    let gateway = setup.start().await;
    ada(&gateway, "/new my secret").await;
    ada(&gateway, "one").await;

    gateway
        .engine()
        .erasure()
        .forget(&identity(main_channel(), "ada"), secs(60), operator("her wish"))
        .await
        .expect("done");
    let rows = gateway.store.stats(&Cutoffs::at(gateway.clock.now(), &gateway.settings().lifetimes)).await;
    assert_eq!(rows.expect("readable").rows["sessions"], 0);
    gateway.at_rest().await;
}

/// Nobody could go on in a session of somebody who is no longer known.
#[tokio::test]
async fn a_message_of_somebody_who_is_let_out_meanwhile_leaves_the_session_to_its_conversation() {
    let mut setup = known();
    setup.access.insert(main_channel(), Access { direct: DirectPolicy::Open, ..Access::default() });
    // What somebody has used is read before each of their turns.
    setup.limits.tokens_per_day = Some(1_000_000);
    let gateway = setup.start().await;
    let bob = async |text: &str| told(&gateway, says(&chat("bob"), text)).await;
    assert_eq!(bob("one").await, "one []");

    gateway.life.hold_reads(true);
    let (intake, event) = (gateway.intake(), says(&chat("bob"), "two"));
    let accepting = tokio::spawn(async move { intake.accept(event).await });
    gateway.settle().await;
    let revoked = async {
        let operations = gateway.engine().operations();
        operations.revoke(&identity(main_channel(), "bob"), operator("he left")).await.expect("he was known");
    };
    let released = async {
        gateway.settle().await;
        gateway.life.hold_reads(false);
    };
    tokio::join!(revoked, released);
    accepting.await.expect("no panic").expect("it is accepted");
    gateway.settle().await;

    assert_eq!(bob("three").await, "three [one two]");
    gateway.at_rest().await;
}
