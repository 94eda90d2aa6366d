//! What the operator does while people write on Telegram: the page in a browser, messages, pauses.

use rejoinder_telegram_double::{Fault, Outage, TelegramDouble};
use rejoinder_tests::{Browser, Gate, Gateway, Pager, Script, ScriptedAgent, eventually};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{between, telegram};

async fn posted(gateway: &Gateway, path: &str, body: Value, key: &str) -> Value {
    let request = gateway.admin_request(Method::POST, path, None).header("Idempotency-Key", key).json(&body);
    let response = request.send().await.expect("it answers");
    let status = response.status();
    let answer = response.json().await.expect("JSON");
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    answer
}

/// An agent that answers the first question at once, and the others when `release` opens.
async fn held_after_the_first(release: &Gate) -> ScriptedAgent {
    let release = release.clone();
    ScriptedAgent::start(move |_, number| match number {
        0 => Script::replies("Hello."),
        _ => Script::replies("Hello.").waiting(&release),
    })
    .await
}

/// J2. Nothing is wrong, and each way is tried, also those that are for when others fail; who cannot be reached is named.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_ways_of_alerts_are_tested_by_themselves() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let grace = double.person("Grace");
    let nobody = grace.chat() + 1000;
    let alerts = format!(
        "[alerts]\nto = [\"telegram.test/{}\", \"telegram.test/{nobody}\"]\notherwise = [\"/no/such/program\"]\n",
        grace.chat(),
    );
    let gateway = between(&double, &agent).config(&alerts).start().await;
    grace.says("hello");
    grace.hears("Hello.").await;

    let tested = gateway.run(&["alerts", "test"]);

    grace.finds("the test", |message| message.ours && message.text.contains("This is a test of the alerts.")).await;
    let told = String::from_utf8(tested.stdout).expect("the output is text");
    let [first, second, third] = told.lines().collect::<Vec<_>>()[..] else { panic!("{told}") };
    assert_eq!(first, format!("telegram.test/{}: sent", grace.chat()));
    assert!(second.starts_with(&format!("telegram.test/{nobody}: ")) && !second.ends_with("sent"), "{told}");
    assert!(third.starts_with("/no/such/program: ") && !third.ends_with("sent"), "{told}");
    assert_eq!(tested.status.code(), Some(1), "somebody cannot be reached");
    double.all_confirmed().await;
}

/// J2. Telegram is down under 200 turns: the page says so, and one of them cannot be answered even afterwards. Everybody sees one
/// answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_page_says_what_could_not_be_answered_and_mends_it() {
    let (double, release) = (TelegramDouble::start().await, Gate::default());
    let agent = held_after_the_first(&release).await;
    let channel = telegram(&double, "streaming = \"off\"");
    let config = "[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"10m\"\n";
    let gateway = Gateway::builder().config(&channel).config(&agent.section()).config(config).start().await;
    let ada = double.person("Ada");
    ada.says("hello");
    ada.hears("Hello.").await;
    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;

    let mut browser = Browser::start("operator-outage", &gateway.url());
    browser.reaches("all is answered").await;
    let crowd: Vec<_> = (0..199).map(|n| double.person(&format!("Person {n}"))).collect();
    for person in crowd.iter().chain([&ada]) {
        person.says("are you there?");
    }
    let owed = async || gateway.admin("overview").await["backlog"]["open"].as_u64();
    eventually("all are accepted", async || (owed().await == Some(200)).then_some(())).await;
    ada.blocks();
    double.start_outage(Outage::Refuse);
    release.open();
    browser.resume().await;
    browser.reaches("down").await;
    double.end_outage();
    for person in &crowd {
        person.hears("Hello.").await;
    }
    browser.resume().await;
    browser.reaches("could not be answered").await;
    ada.unblocks();
    browser.resume().await;
    browser.reaches("answered").await;
    eventually("it is said", async || (double.bot_texts(ada.chat()).len() == 2).then_some(())).await;
    browser.resume().await;
    browser.succeeds().await;

    assert_eq!(double.bot_texts(ada.chat()), ["Hello.", "Hello."]);
    assert!(crowd.iter().all(|person| double.bot_texts(person.chat()) == ["Hello."]));
}

/// N1: a stranger writes and is answered after the operator has let them in on the page.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stranger_is_let_in_on_the_page() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let channel = telegram(&double, "dm_policy = \"pairing\"");
    let gateway = Gateway::builder().config(&channel).config(&agent.section()).start().await;
    let eve = double.stranger("Eve");

    let mut browser = Browser::start("operator-people", &gateway.url());
    browser.reaches("nobody asks").await;
    eve.says("let me in");
    let requests = async || gateway.admin("pairings").await["items"].as_array().expect("a list").clone();
    let request = eventually("she asks", async || requests().await.pop()).await;
    let code = request["code"].as_str().expect("a code");
    eve.finds("the code", |message| message.ours && message.text.contains(code)).await;
    browser.resume().await;
    browser.reaches("let in").await;
    eve.says("am I in?");
    eve.hears("Hello.").await;
    browser.resume().await;
    browser.succeeds().await;

    assert_eq!(agent.calls().len(), 1, "only what she wrote afterwards is answered");
}

/// J4. A request that is repeated sends nothing again, also over `kill -9`.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_operator_sends_a_message() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let mut gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");
    ada.says("hello");
    ada.hears("Hello.").await;
    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;

    let message =
        json!({ "to": format!("telegram.test/{}", ada.chat()), "text": "We are **back**.", "reason": "an outage" });
    let sent = posted(&gateway, "messages", message.clone(), "k1").await;
    ada.hears("We are back.").await;
    assert_eq!(posted(&gateway, "messages", message.clone(), "k1").await, sent);
    // Killed before it has stored the receipt, it would send the message again, with a label.
    let turn = sent["id"].as_str().expect("the turn").to_owned();
    eventually("the receipt is stored", async || gateway.explain(&turn).contains("acknowledged").then_some(())).await;
    gateway.kill();
    gateway.restart().await;
    assert_eq!(posted(&gateway, "messages", message, "k1").await, sent);
    double.all_confirmed().await;

    assert_eq!(double.bot_texts(ada.chat()), ["Hello.", "We are back."]);
    eventually("it is explained", async || gateway.explain(&turn).contains("after the operator `").then_some(())).await;
}

const WORDS: &str = "Ask Grace, please.";

/// A10. The promise becomes the operator's words; only a turn that is given up silently leaves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_an_operator_gives_up_is_said_in_place_of_the_promise() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::start(|_, _| Script::hangs()).await);
    let gateway = between(&double, &agent).config("[guard]\nsoft_deadline = \"1s\"\n").start().await;
    let people = ["Ada", "Bob", "Eve"].map(|name| double.person(name));
    let mut promised = Vec::new();
    for person in &people {
        person.says("hello");
        promised.push(person.hears("Still working on this.").await.id);
    }
    let open = gateway.open_turns();
    let turn = |name: &str| {
        let turn = open.iter().find(|turn| turn["sender_name"] == name).expect("it is open");
        turn["turn_id"].as_str().expect("an id").to_owned()
    };

    for options in [[turn("Ada"), "--reason".into(), "a test".into()], [turn("Bob"), "--say".into(), WORDS.into()]] {
        let [id, option, words] = &options;
        assert!(gateway.output_of(&["turns", "cancel", id, option, words]).contains("the person is told"));
    }
    assert_eq!(gateway.output_of(&["turns", "cancel", &turn("Eve"), "--silently"]), "It is given up.\n");

    let said = people[0]
        .hears("There will be no answer to this: it was given up. Please ask again if you still need it.")
        .await;
    assert_eq!(said.id, promised[0]);
    assert_eq!(people[1].hears(WORDS).await.id, promised[1]);
    double.until("nothing is left", |view| view.bot_texts(people[2].chat()).is_empty().then_some(())).await;
    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;
}

/// 20 people write meanwhile. The first answer meets a limit, and is sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_asked_while_a_channel_was_paused_is_answered_when_it_is_resumed() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let channel = telegram(&double, "streaming = \"off\"");
    let config = "[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"5m\"\n";
    let gateway = Gateway::builder().config(&channel).config(&agent.section()).config(config).start().await;
    posted(&gateway, "channels/telegram.test/pause", json!({ "reason": "it misbehaves" }), "k1").await;
    double.fault(Fault::too_many(1).on("sendMessage"));
    let people: Vec<_> = (0..20).map(|n| double.person(&format!("Person {n}"))).collect();
    for person in &people {
        person.says("hello");
    }
    let waiting = async || gateway.admin("deliveries?state=pending").await["items"].as_array().expect("a list").len();
    eventually("all wait", async || (waiting().await == people.len()).then_some(())).await;
    let overview = gateway.admin("overview").await;
    assert_eq!(overview["problems"][0]["kind"], "paused", "{overview}");
    assert!(people.iter().all(|person| double.bot_texts(person.chat()).is_empty()));

    posted(&gateway, "channels/telegram.test/resume", json!({}), "k2").await;
    for person in &people {
        person.hears("Hello.").await;
    }
    assert!(people.iter().all(|person| double.bot_texts(person.chat()) == ["Hello."]));
}

/// Telegram is down under 200 turns: one alert, by the other way, as it is the operator's own channel that is down; and one
/// all-clear, where the operator wants it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_outage_is_one_alert_and_one_all_clear() {
    let (double, release) = (TelegramDouble::start().await, Gate::default());
    let agent = held_after_the_first(&release).await;
    let grace = double.person("Grace");
    let pager = Pager::new();
    let alerts = format!(
        "[alerts]\nto = [\"telegram.test/{}\"]\notherwise = [\"{}\"]\nafter = \"2s\"\n",
        grace.chat(),
        pager.path().display()
    );
    let config = "[guard]\nsoft_deadline = \"5s\"\nhard_deadline = \"10m\"\n";
    let channel = telegram(&double, "streaming = \"off\"");
    let gateway =
        Gateway::builder().config(&channel).config(&agent.section()).config(config).config(&alerts).start().await;
    grace.says("hello");
    grace.hears("Hello.").await;
    let tested = gateway.output_of(&["alerts", "test"]);
    assert_eq!(tested.lines().filter(|line| line.ends_with(": sent")).count(), 2, "{tested}");
    let told = || pager.alerts();

    let crowd: Vec<_> = (0..200).map(|n| double.person(&format!("Person {n}"))).collect();
    for person in &crowd {
        person.says("are you there?");
    }
    let owed = async || gateway.admin("overview").await["backlog"]["open"].as_u64();
    eventually("all are accepted", async || (owed().await == Some(200)).then_some(())).await;
    double.start_outage(Outage::Refuse);
    release.open();
    let late = async || gateway.admin("overview").await["backlog"]["overdue"].as_u64();
    eventually("they are late", async || (late().await == Some(200)).then_some(())).await;
    eventually("somebody is told", async || (told().len() == 2).then_some(())).await;
    double.end_outage();
    let all_clear = |texts: Vec<String>| texts.into_iter().find(|text| text.contains("works again"));
    let text = eventually("all is clear", async || all_clear(double.bot_texts(grace.chat()))).await;
    double.all_confirmed().await;

    assert!(text.starts_with("All clear.") && text.contains("telegram.test works again, after"), "{text}");
    let (first, alert) = (&told()[0], &told()[1]);
    assert_eq!((&first["type"], &alert["type"]), (&json!("test"), &json!("alert")));
    assert_eq!(alert["data"]["begun"].as_array().map(Vec::len), Some(1), "{alert}");
    assert_eq!((&alert["data"]["begun"][0]["kind"], told().len()), (&json!("channel"), 2), "{:?}", told());
    assert_eq!(double.bot_texts(grace.chat()).len(), 3, "the answer, the test, the all-clear");
}

/// Commands and the API try waiting deliveries: for tokens that may change something, and the audit names them.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_waits_is_tried_when_the_operator_says_so() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let channel = telegram(&double, "streaming = \"off\"");
    let gateway = Gateway::builder().config(&channel).config(&agent.section()).start().await;
    let ada = double.person("Ada");
    double.fault(Fault::page_before(502).on("sendMessage").forever());
    ada.says("hello");
    // After the fifth attempt the pause is ten seconds.
    let tried = async |times: u64| {
        eventually("it waits", async || {
            let waiting = gateway.admin("deliveries?state=parked").await["items"][0].clone();
            (waiting["tries"].as_u64() >= Some(times)).then_some(waiting)
        })
        .await
    };
    let waiting = tried(5).await;
    let made: Value =
        serde_json::from_str(&gateway.output_of(&["tokens", "create", "--role", "viewer", "--json"])).expect("JSON");
    let delivery = format!("deliveries/{}/try", waiting["delivery_id"].as_str().expect("an id"));
    let status = async |path: &str, token: Option<&str>| {
        let request = gateway.admin_request(Method::POST, path, token).json(&json!({ "reason": "it is back" }));
        request.send().await.expect("it answers").status()
    };

    assert_eq!(status(&delivery, made["token"].as_str()).await, StatusCode::FORBIDDEN);
    assert_eq!(status("channels/telegram.other/try", None).await, StatusCode::NOT_FOUND);
    let turn = waiting["turn_id"].as_str().expect("an id");
    assert_eq!(gateway.output_of(&["turns", "retry", turn]).trim(), "It is sent now.");
    tried(6).await;
    assert_eq!(gateway.output_of(&["channels", "try", "telegram.test"]).trim(), "What waits is tried now.");
    tried(7).await;
    double.clear_faults();
    assert_eq!(status(&delivery, None).await, StatusCode::ACCEPTED);
    ada.hears("Hello.").await;
    gateway.until_settled().await;

    assert_eq!(status(&delivery, None).await, StatusCode::CONFLICT);
    let audit = gateway.admin("audit").await["items"].to_string();
    assert!(audit.contains("\"try\"") && audit.contains("it is back"), "{audit}");
    assert!(gateway.output_of(&["channels", "list"]).contains("telegram.test"));
}
