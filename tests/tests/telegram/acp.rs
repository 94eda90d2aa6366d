//! An agent with the Agent Client Protocol, as a process of its own, that asks for permission in the middle of its run.

use std::path::Path;

use rejoinder_telegram_double::{Person, TelegramDouble, VisibleMessage};
use rejoinder_tests::{Gateway, GatewayBuilder, eventually};

use crate::telegram;

const APPROVE: usize = 0;
const DECLINE: usize = 1;
const ALWAYS: usize = 2;

const WAITS: &str = "This waits for approval: execute: Pay the rent";

/// Grace decides for Ada.
struct Chat {
    double: TelegramDouble,
    gateway: Gateway,
    grace: Person,
    ada: Person,
}

impl Chat {
    async fn start() -> Self {
        Self::with(Gateway::builder(), "", "").await
    }

    /// With these keys of the channel, and more sections.
    async fn with(builder: GatewayBuilder, keys: &str, more: &str) -> Self {
        let double = TelegramDouble::start().await;
        let (grace, ada) = (double.person("Grace"), double.person("Ada"));
        let python = std::env::var("REJOINDER_PYTHON").unwrap_or_else(|_| "python3".into());
        let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/acp_agent.py");
        let agent = format!("[agents.main]\nkind = \"acp\"\ncommand = [\"{python}\", \"{}\"]\n", agent.display());
        let owner = format!("[people.Grace]\nrole = \"owner\"\nidentities = [\"telegram.test/{}\"]\n", grace.id());
        let gateway = builder.config(&telegram(&double, keys)).config(&agent).config(&owner).config(more).start().await;
        grace.says("hello");
        grace.hears("Hello in run 1.").await;
        Self { double, gateway, grace, ada }
    }

    /// The latest question of Grace about this.
    async fn question(&self, what: &str) -> VisibleMessage {
        self.grace.finds("the question", |it| it.ours && it.text.contains(what) && !it.buttons.is_empty()).await
    }

    /// Ada asks for the rent, and knows that it waits.
    async fn asks(&self) -> VisibleMessage {
        self.ada.says("pay the rent");
        self.ada.hears(WAITS).await;
        self.question("Pay the rent").await
    }

    async fn settles(&self) {
        eventually("nothing is owed", async || self.gateway.open_turns().is_empty().then_some(())).await;
    }

    /// Waits until the agent was told so often that a prompt is cancelled.
    async fn is_told_to_stop(&self, times: usize) {
        let stops = self.gateway.data().join("agents/main/stops");
        let told = || std::fs::read_to_string(&stops).unwrap_or_default().lines().count();
        eventually("the agent is told", async || (told() == times).then_some(())).await;
    }

    fn seen(&self) -> Vec<String> {
        self.double.bot_texts(self.ada.chat())
    }
}

/// G3. The button is pressed twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_press_lets_the_same_run_go_on() {
    let chat = Chat::start().await;
    let question = chat.asks().await;
    let options = "If approved: “Once”\nIf declined: “No”\nCan be chosen as well: “Always” (allow_always)";
    assert!(question.text.contains(options), "{}", question.text);

    chat.grace.presses(question.id, APPROVE);
    chat.grace.presses(question.id, APPROVE);
    chat.ada.hears("The rent is paid in run 1.").await;

    chat.settles().await;
    assert_eq!(chat.seen(), ["The rent is paid in run 1."]);

    let question = chat.asks().await;
    chat.grace.presses(question.id, DECLINE);
    chat.ada.hears("The rent is not paid in run 1.").await;

    chat.settles().await;
    assert_eq!(chat.seen(), ["The rent is paid in run 1.", "The rent is not paid in run 1."]);
}

/// G3. With a button, over a `kill -9` while it waits, and as an operator. A number that is none decides nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_approver_chooses_an_option_of_the_agents_own() {
    let mut chat = Chat::start().await;
    let question = chat.asks().await;
    chat.grace.presses(question.id, ALWAYS);
    chat.ada.hears("The rent is paid every month in run 1.").await;
    chat.grace.hears("Approved: execute: Pay the rent (for ever: Always)").await;
    chat.settles().await;

    let question = chat.asks().await;
    chat.gateway.kill();
    chat.gateway.restart().await;
    chat.grace.presses(question.id, ALWAYS);
    chat.ada.hears("The rent is paid every month in run 2.").await;
    chat.settles().await;

    chat.asks().await;
    let waiting = chat.gateway.admin("approvals").await;
    let id = waiting["items"][0]["id"].as_str().expect("one waits").to_owned();
    let shown = chat.gateway.output_of(&["approvals", "show", &id]);
    assert!(shown.contains("1. approve: for ever: Always"), "{shown}");
    let forged = chat.gateway.run(&["approvals", "approve", &id, "--option", "2"]);
    let said = String::from_utf8_lossy(&forged.stderr).into_owned();
    assert!(!forged.status.success() && said.contains("it has no option 2: it has 1"), "{said}");
    let _ = chat.gateway.output_of(&["approvals", "approve", &id, "--option", "1"]);

    chat.settles().await;
    let all = chat.gateway.admin("approvals?state=all").await;
    let chosen: Vec<_> = all["items"].as_array().expect("a list").iter().map(|it| it["chosen"].clone()).collect();
    assert_eq!(chosen, ["for ever: Always"; 3], "{all}");
    assert_eq!(chat.seen()[2], "The rent is paid every month in run 1.");
}

/// Each decision is for its own request.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_asks_for_one_thing_after_the_other() {
    let chat = Chat::start().await;
    chat.ada.says("pay the rent and the bakery");

    let rent = chat.question("Pay the rent").await;
    chat.grace.presses(rent.id, APPROVE);
    let bakery = chat.question("Pay the bakery").await;
    chat.grace.presses(bakery.id, DECLINE);
    chat.ada.hears("The rent is paid in run 1. The bakery is not paid in run 1.").await;

    chat.settles().await;
    assert_eq!(chat.seen().len(), 1);
}

/// D1, G3. `kill -9` while it waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_while_it_waits_loses_no_decision() {
    let mut chat = Chat::start().await;
    let question = chat.asks().await;

    chat.gateway.kill();
    chat.gateway.restart().await;
    chat.grace.presses(question.id, APPROVE);
    chat.ada.hears("The rent is paid in run 2.").await;

    chat.settles().await;
    assert_eq!(chat.seen(), ["The rent is paid in run 2."]);
    let asked = chat.gateway.admin("approvals?state=all").await;
    assert_eq!(asked["items"].as_array().map(Vec::len), Some(1), "it was asked for once: {asked}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_nobody_decides_in_time_is_a_no() {
    let builder = Gateway::builder().time_passes_faster(20);
    let chat = Chat::with(builder, "", "[approvals]\nexpires = \"60s\"\n").await;
    let question = chat.asks().await;

    chat.ada.hears("The rent is not paid in run 1.").await;
    chat.grace.presses(question.id, APPROVE);

    chat.settles().await;
    assert_eq!(chat.seen(), ["The rent is not paid in run 1."]);
}

/// A rule of the operator decides without a person.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_rule_lets_it_go_on_at_once() {
    let rule = "[[approvals.auto]]\nkind = \"acp.execute\"\ndecision = \"approve\"\n";
    let chat = Chat::with(Gateway::builder(), "", rule).await;

    chat.ada.says("pay the rent");
    chat.ada.hears("The rent is paid in run 1.").await;

    chat.settles().await;
    assert_eq!(chat.seen(), ["The rent is paid in run 1."]);
}

/// A session of the agent takes one prompt at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn another_message_is_answered_while_it_waits() {
    let chat = Chat::start().await;
    let question = chat.asks().await;

    chat.ada.says("hello");
    chat.ada.hears("Hello in run 1.").await;
    chat.grace.presses(question.id, APPROVE);
    chat.ada.hears("The rent is paid in run 2.").await;

    chat.settles().await;
    let mut seen = chat.seen();
    seen.sort();
    assert_eq!(seen, ["Hello in run 1.", "The rent is paid in run 2."]);
}

/// B3. While it works, and while it waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn it_is_stopped() {
    let chat = Chat::with(Gateway::builder(), "streaming = \"edit\"", "").await;
    chat.ada.says("count");
    chat.ada.finds("a draft", |it| it.ours && it.text.contains("One, two")).await;
    chat.ada.says("/stop");
    chat.is_told_to_stop(1).await;
    chat.settles().await;
    assert!(!chat.seen().iter().any(|text| text.contains("three")), "{:?}", chat.seen());

    chat.asks().await;
    chat.ada.says("/stop");
    chat.is_told_to_stop(2).await;
    chat.settles().await;
    chat.ada.says("hello");
    chat.ada.hears("Hello in run 1.").await;

    chat.settles().await;
    assert!(!chat.seen().iter().any(|text| text.contains("paid")), "{:?}", chat.seen());
}

/// It gets what comes meanwhile as another prompt of the same run.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_newer_message_steers_it() {
    let chat = Chat::with(Gateway::builder(), "streaming = \"edit\"\nqueue = \"steer\"", "").await;
    chat.ada.says("count");
    chat.ada.finds("a draft", |it| it.ours && it.text.contains("One, two")).await;
    chat.ada.says("hello");
    eventually("it waits", async || (chat.gateway.open_turns().len() == 2).then_some(())).await;

    std::fs::write(chat.gateway.data().join("agents/main/counted"), "").expect("its folder is there");
    chat.ada.hears("One, two three in run 1.\n\nHello in run 1.").await;

    chat.settles().await;
    assert_eq!(chat.seen().len(), 1);
}

const SECOND: usize = 1;
const REFUSES: usize = 2;

/// Ada books a trip, and is asked for the class.
async fn books(chat: &Chat) -> VisibleMessage {
    chat.ada.says("book a trip");
    chat.ada.finds("the question", |it| it.ours && it.text.contains("class (1 of 2)") && !it.buttons.is_empty()).await
}

async fn sees(chat: &Chat, text: &str) {
    chat.ada.finds(text, |it| it.ours && it.text.contains(text)).await;
}

/// G3. She picks, and writes; what she writes first is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_person_is_asked_in_the_middle_of_a_run() {
    let chat = Chat::start().await;
    let question = books(&chat).await;
    assert!(question.text.starts_with("A few questions about the trip."), "{}", question.text);

    chat.ada.presses(question.id, SECOND);
    sees(&chat, "Seats (2 of 2)").await;
    chat.ada.says("some");
    sees(&chat, "That is no whole number.").await;
    chat.ada.says("2");
    chat.ada.hears("accept {\"class\": \"2\", \"seats\": 2} in run 1.").await;

    chat.settles().await;
    let asked = |what: &str| chat.seen().iter().filter(|text| text.contains(what)).count();
    assert_eq!((asked("class (1 of 2)"), asked("Seats (2 of 2)")), (1, 2), "{:?}", chat.seen());
}

/// The class by its place among the choices, as on a chat without buttons.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_choice_is_picked_in_words() {
    let chat = Chat::start().await;
    books(&chat).await;

    chat.ada.says("the first");
    sees(&chat, "Seats (2 of 2)").await;
    chat.ada.says("decline");
    chat.ada.hears("decline null in run 1.").await;

    chat.settles().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_person_refuses_a_form() {
    let chat = Chat::start().await;
    let question = books(&chat).await;

    chat.ada.presses(question.id, REFUSES);
    chat.ada.hears("decline null in run 1.").await;

    chat.settles().await;
}

/// D1, G3. `kill -9` while it waits: the run after it is not asked what was answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_before_a_pick_loses_no_answer() {
    let mut chat = Chat::start().await;
    let question = books(&chat).await;

    chat.gateway.kill();
    chat.gateway.restart().await;
    chat.ada.presses(question.id, SECOND);
    sees(&chat, "Seats (2 of 2)").await;
    chat.ada.says("3");
    chat.ada.hears("accept {\"class\": \"2\", \"seats\": 3} in run 2.").await;

    chat.settles().await;
    let asked = |what: &str| chat.seen().iter().filter(|text| text.contains(what)).count();
    assert_eq!((asked("class (1 of 2)"), asked("Seats (2 of 2)")), (1, 1), "{:?}", chat.seen());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_form_that_nobody_answers_in_time_is_cancelled() {
    let builder = Gateway::builder().time_passes_faster(20);
    let chat = Chat::with(builder, "", "[approvals]\nexpires = \"60s\"\n").await;
    books(&chat).await;

    chat.ada.hears("cancel null in run 1.").await;

    chat.settles().await;
}

/// B3.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_that_waits_for_the_person_is_stopped() {
    let chat = Chat::start().await;
    books(&chat).await;

    chat.ada.says("/stop");
    chat.is_told_to_stop(1).await;

    chat.settles().await;
    assert!(!chat.seen().iter().any(|text| text.contains("in run")), "{:?}", chat.seen());
}

/// The gateway shows it and does not open it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_link_is_shown_whole() {
    let chat = Chat::start().await;
    chat.ada.says("log in");
    let url = "https://login.example/_a_?b=1&c=2";
    let question = chat.ada.finds("the link", |it| it.ours && !it.buttons.is_empty()).await;
    assert_eq!(question.text, format!("Please log in.\n\n{url}"));

    chat.ada.presses(question.id, 0);
    chat.ada.hears("accept null in run 1.").await;

    chat.settles().await;
}
