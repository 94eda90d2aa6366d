//! Two nodes on one PostgreSQL database. Without a server the tests say so, and pass.

use std::time::{Duration, Instant, UNIX_EPOCH};

use rejoinder_store::TestDatabase;
use rejoinder_telegram_double::TelegramDouble;
use rejoinder_tests::{Collector, Gate, Gateway, Hook, Reply, Script, ScriptedAgent, eventually};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

use crate::{
    TOKEN,
    operate::cookie_of,
    postgres::{Relay, on, server},
    pull::{fetch_within, post},
};

/// Within what time a node does what an operator has said at another one.
const SOON: Duration = Duration::from_secs(1);

/// Within what time a node goes on with the channels of one that stops.
const MOVE: Duration = Duration::from_secs(2);

/// Within what time a node goes on with the channels of one that was killed.
const TAKEOVER: Duration = Duration::from_secs(25);

/// For how long a node is frozen: longer than its leases last.
const FROZEN: Duration = Duration::from_secs(20);

const SIGNING_SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz";

/// Two nodes with the same configuration. The first one has taken all leases.
struct Nodes {
    first: Gateway,
    second: Gateway,
    _database: TestDatabase,
}

impl Nodes {
    /// Starts both with a hook `test` and these sections, and waits until they know of each other. `None` if there is no server.
    async fn start(sections: &[&str]) -> Option<Self> {
        let database = server::get()?.database().await;
        let url = database.url();
        Some(Self::start_on(database, &url, sections).await)
    }

    /// The same on a database that is reached at `url`.
    async fn start_on(database: TestDatabase, url: &str, sections: &[&str]) -> Self {
        let config = sections.join("\n");
        let first = on(url).config(&config).start().await;
        let second = on(url).config(&config).start().await;
        // The first one learns of the second by the answer to its next heartbeat.
        let started = Instant::now();
        eventually("the first node knows of the second", async || {
            let list = second.admin("nodes").await;
            let first = items(&list).iter().find(|node| node["this"] == false)?;
            (Duration::from_millis(first["seen_ms"].as_u64()?) < started.elapsed()).then_some(())
        })
        .await;
        Self { first, second, _database: database }
    }
}

/// Waits until `holds`, and checks that no look that began `within` or more after `since` found it otherwise. How long looks take does not
/// count.
async fn holds_within(within: Duration, since: Instant, about: &str, mut holds: impl AsyncFnMut() -> bool) {
    let mut found_otherwise = Duration::ZERO;
    eventually(about, async || {
        let began = since.elapsed();
        if holds().await {
            return Some(());
        }
        found_otherwise = began;
        None
    })
    .await;
    assert!(found_otherwise < within, "not so after {found_otherwise:?}: {about}");
}

fn items(list: &Value) -> &[Value] {
    list["items"].as_array().expect("a list")
}

/// An agent that echoes what it is told; what begins with "wait", when the gate lets it through.
async fn patient(release: &Gate) -> ScriptedAgent {
    let release = release.clone();
    ScriptedAgent::start(move |call, _| {
        // What was said and not answered comes before it.
        let said = call.said();
        let said = said.lines().next_back().unwrap_or_default();
        let echo = Script::replies(&format!("echo {said}"));
        if said.starts_with("wait") { echo.waiting(&release) } else { echo }
    })
    .await
}

/// The section of a channel `telegram.test`, and deadlines that do not pass in a test.
fn telegram(double: &TelegramDouble) -> String {
    format!(
        "[channels.telegram.test]\ntoken = \"{}\"\napi_url = \"{}\"\npace = \"server\"\npoll_timeout = \"5s\"\n\
         dm_policy = \"open\"\nstreaming = \"off\"\n[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"10m\"\n",
        double.token(),
        double.url()
    )
}

/// A call of the hook `signed`: what it answers has a URL that needs no token.
fn signed(gateway: &Gateway, id: &str, message: &'static str) -> RequestBuilder {
    let seconds = UNIX_EPOCH.elapsed().expect("it is past 1970").as_secs();
    let webhook = Webhook::new(SIGNING_SECRET).expect("it is a secret");
    let time = i64::try_from(seconds).expect("it is a time");
    let signature = webhook.sign(id, time, message.as_bytes()).expect("it is signed");
    let call = gateway.hook("signed", "").bare().header("webhook-id", id).header("webhook-timestamp", seconds);
    call.header("webhook-signature", signature).body(message)
}

/// Has an operator do something at a node.
async fn act(node: &Gateway, path: &str) {
    let done = node.admin_request(Method::POST, path, None).json(&json!({})).send().await.expect("it answers");
    assert_eq!(done.status(), StatusCode::ACCEPTED, "{path}");
}

/// How many items a list of the admin API has.
async fn count(node: &Gateway, list: &str) -> usize {
    items(&node.admin(list).await).len()
}

/// The id of the turn that was accepted last.
async fn latest_turn(node: &Gateway) -> String {
    let list = node.admin("turns").await;
    items(&list)[0]["turn_id"].as_str().expect("a turn has an id").to_owned()
}

/// Whether a node has the channel `telegram.test`.
async fn has_telegram(node: &Gateway) -> bool {
    let list = node.admin("nodes").await;
    let this = items(&list).iter().find(|node| node["this"] == true);
    this.is_some_and(|node| node["leases"].as_array().is_some_and(|leases| leases.contains(&json!("telegram.test"))))
}

/// The same hook, result and idempotency key at both; and one turn at a time in a conversation.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn callers_find_one_gateway_at_both_nodes() {
    let release = Gate::default();
    let agent = patient(&release).await;
    let section = format!("[channels.webhook.signed]\nsigning_secret = \"{SIGNING_SECRET}\"\n");
    let Some(nodes) = Nodes::start(&[&agent.section(), &section]).await else { return };
    let (first, second) = (&nodes.first, &nodes.second);
    let [hook, other_hook] = [first, second].map(|node| node.hook("test", TOKEN));

    let lists = [first, second].map(|node| node.output_of(&["nodes", "list", "--json"]));
    let lists = lists.map(|list| serde_json::from_str::<Value>(&list).expect("it is JSON"));
    let of = |list: &Value, key: &str| items(list).iter().map(|node| node[key].clone()).collect::<Vec<_>>();
    assert_eq!(of(&lists[0], "node"), of(&lists[1], "node"));
    assert_eq!(of(&lists[0], "this"), [true, false]);
    assert_eq!(of(&lists[1], "this"), [false, true]);
    let leases = of(&lists[0], "leases");
    let held = leases.iter().flat_map(|leases| leases.as_array().expect("a list"));
    let mut held: Vec<_> = held.map(|lease| lease.as_str().expect("a name")).collect();
    held.sort_unstable();
    assert_eq!(held, ["housekeeper", "webhook.signed", "webhook.test"]);

    // A request that waits at one node for what another one runs is answered when that is.
    let accepted = Reply::of(signed(first, "msg_1", "wait for it").header("Prefer", "wait=0")).await;
    agent.until_called(1).await;
    let url = accepted.body["result_url"].as_str().expect("an address").replacen(&first.url(), &second.url(), 1);
    assert!(url.starts_with(&second.url()), "{url}");
    let fetched = Reply::of(second.http().get(&url).header("Prefer", "wait=20"));
    let (fetched, ()) = tokio::join!(fetched, async {
        second.readiness().await;
        release.release_one();
    });
    assert_eq!((fetched.state(), fetched.text()), ("answered", "echo wait for it"));

    let call = |hook: &Hook| Reply::of(hook.message("wait once").header("Idempotency-Key", "once"));
    let (one, other, ()) = tokio::join!(call(&hook), call(&other_hook), async {
        agent.until_called(2).await;
        release.release_one();
    });
    assert_eq!((one.text(), &one.body), ("echo wait once", &other.body));
    assert_eq!(agent.calls().len(), 2);

    let say = async |hook: &Hook, message: &str| {
        Reply::of(hook.message_in("kitchen", message).header("Prefer", "wait=0")).await.turn()
    };
    let soup = say(&hook, "wait for the soup").await;
    agent.until_called(3).await;
    let question = say(&other_hook, "what is on?").await;
    // Other conversations go on at both nodes meanwhile.
    for hook in [&hook, &other_hook] {
        assert_eq!(hook.ask("hello").await.text(), "echo hello");
    }
    assert!(agent.calls().iter().all(|call| call.said() != "what is on?"), "two turns of a conversation run at once");
    release.release_one();
    assert_eq!(other_hook.until_settled(&soup).await.text(), "echo wait for the soup");
    assert_eq!(hook.until_settled(&question).await.text(), "echo what is on?");
    let told = agent.calls().pop().expect("it was called").body["messages"].to_string();
    assert!(told.contains("echo wait for the soup"), "{told}");
}

/// The second one has no collector, and does not do what happens once. The first one goes on after a restart where it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_node_without_a_collector_leaves_the_traces_to_another_one() {
    let Some(server) = server::get() else { return };
    let (database, collector, agent) =
        (server.database().await, Collector::start().await, ScriptedAgent::echoing().await);
    let sections = [agent.section(), collector.section()].concat();
    let mut first = on(&database.url()).config(&sections).start().await;
    first.hook("test", TOKEN).ask("hello").await;
    let has = async |turns| eventually("traces", async || (collector.named("turn").len() == turns).then_some(())).await;
    has(1).await;

    let second = on(&database.url()).config(&agent.section()).start().await;
    let _ = second.output_of(&["nodes", "drain", "--this"]);
    collector.set_down(true);
    first.hook("test", TOKEN).ask("and again").await;
    first.stop().await;
    collector.set_down(false);
    first.restart().await;

    has(2).await;
}

/// An agent whose turns workers fetch.
fn fleet() -> String {
    format!("[agents.fleet]\nkind = \"pull\"\ntoken = \"{TOKEN}\"\n[routing]\ndefault_agent = \"fleet\"\n")
}

/// Answers a turn at a node where a worker has fetched it.
async fn answers(node: &Gateway, turn: &Value) {
    assert_eq!(post(node, turn, "", json!({ "reply": "here" })).await, StatusCode::NO_CONTENT);
}

/// A worker that asks a node again and again.
async fn works(node: &Gateway) {
    loop {
        if let Some(turn) = fetch_within(node, 1).await {
            answers(node, &turn).await;
        }
    }
}

/// Workers ask the second one alone: it runs what the first one accepts. What they send to the first one they are to send again, until the
/// turn is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_turn_runs_at_the_node_that_workers_ask() {
    let Some(nodes) = Nodes::start(&[&fleet()]).await else { return };
    let (first, second) = (&nodes.first, &nodes.second);
    let hook = first.hook("test", TOKEN);
    assert_eq!(fetch_within(second, 0).await, None);

    // Within about two seconds the first node hears that the second one has a worker, and leaves to it the turn that it has begun.
    let mut number = 0;
    let turn = eventually("a turn runs at the second node alone", async || {
        number += 1;
        Reply::of(hook.message_in(&number.to_string(), "hello").header("Prefer", "wait=0")).await;
        let turn = fetch_within(second, 1).await?;
        if turn["attempt"] == 1 {
            return Some(turn);
        }
        answers(second, &turn).await;
        None
    })
    .await;

    assert_eq!(post(first, &turn, "/renew", json!({})).await, StatusCode::SERVICE_UNAVAILABLE);
    answers(second, &turn).await;
    let id = turn["turn_id"].as_str().expect("it has an id");
    assert_eq!(hook.until_settled(id).await.text(), "here");
    assert_eq!(post(first, &turn, "/renew", json!({})).await, StatusCode::CONFLICT, "it is over");
    tokio::select! {
        () = first.until_settled() => {}
        () = works(second) => {}
    }
}

/// It began when no node had a worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_turn_that_waits_for_a_worker_goes_to_the_node_that_one_asks() {
    let Some(nodes) = Nodes::start(&[&fleet()]).await else { return };
    let (first, second) = (&nodes.first, &nodes.second);
    let hook = first.hook("test", TOKEN);
    let accepted = Reply::of(hook.message_in("desk", "hello").header("Prefer", "wait=0")).await;
    eventually("it waits at the first node", async || {
        first.admin("agents").await.to_string().contains("1 turn waits").then_some(())
    })
    .await;

    let fetched = async || fetch_within(second, 5).await;
    let turn = eventually("a worker fetches it at the second node", fetched).await;

    assert_eq!((&turn["turn_id"], &turn["attempt"]), (&json!(accepted.turn()), &json!(2)));
    answers(second, &turn).await;
    assert_eq!(hook.until_settled(&accepted.turn()).await.text(), "here");
    let explained = first.explain(&accepted.turn());
    assert!(explained.contains("no worker asked for it at this node, and another node has one"), "{explained}");
}

/// A caller waits at a node that runs as many turns as it may. The limit of an agent holds over both nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_turn_runs_where_a_permit_is_free() {
    let [release, next] = [Gate::default(), Gate::default()];
    let (agent, single) = (patient(&release).await, patient(&next).await);
    let token = format!("{TOKEN}-single");
    let sections = [
        agent.section(),
        single.section_with("max_concurrent = 1").replace("[agents.main]", "[agents.single]"),
        format!("[channels.webhook.single]\ntoken = \"{token}\"\nagent = \"single\"\n"),
        "[routing]\ndefault_agent = \"main\"\nmax_concurrent_turns = 1\n".to_owned(),
    ];
    let Some(nodes) = Nodes::start(&sections.each_ref().map(String::as_str)).await else { return };
    let hook = nodes.first.hook("test", TOKEN);

    let running = hook.send("wait here").await.turn();
    agent.until_called(1).await;
    let answered = hook.ask("hello").await;
    let meanwhile = hook.result(&running, 0).await;
    release.release_one();

    assert_eq!((answered.state(), answered.text()), ("answered", "echo hello"));
    assert_eq!(meanwhile.state(), "accepted", "it runs all the time");
    assert_eq!(hook.until_settled(&running).await.text(), "echo wait here");

    let hooks = [&nodes.first, &nodes.second].map(|node| node.hook("single", &token));
    let mut turns = Vec::new();
    for message in ["wait first", "wait second"] {
        for hook in &hooks {
            turns.push(hook.send(message).await.turn());
        }
    }
    for calls in 1..=turns.len() {
        single.until_called(calls).await;
        assert_eq!(single.calls().len(), calls, "the agent runs two turns at once");
        next.release_one();
    }
    for turn in &turns {
        assert_eq!(hooks[0].until_settled(turn).await.state(), "answered");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_operators_do_at_one_node_holds_at_the_other() {
    let agent = patient(&Gate::default()).await;
    let Some(nodes) = Nodes::start(&[&agent.section()]).await else { return };
    let (first, second) = (&nodes.first, &nodes.second);

    let token = first.output_of(&["tokens", "create", "--role", "viewer", "--name", "ada"]);
    let opened = async |node: &Gateway| {
        let request = node.admin_request(Method::GET, "turns", Some(token.trim()));
        request.send().await.expect("it answers").status()
    };
    assert_eq!((opened(first).await, opened(second).await), (StatusCode::OK, StatusCode::OK));
    let _ = second.output_of(&["tokens", "revoke", "ada"]);
    let revoked = Instant::now();
    let refused = async || opened(first).await == StatusCode::UNAUTHORIZED;
    holds_within(SOON, revoked, "the token opens nothing at the first node", refused).await;

    let link = first.output_of(&["dashboard"]);
    let (_, code) = link.trim().split_once("#code=").expect("a link with a code");
    let open = async |node: &Gateway| {
        let request = node.http().post(format!("{}/admin/api/session", node.url()));
        request.json(&json!({ "code": code })).send().await.expect("it answers")
    };
    let session = open(second).await;
    assert_eq!((session.status(), open(first).await.status()), (StatusCode::OK, StatusCode::UNAUTHORIZED));
    let read = first.http().get(format!("{}/admin/api/session", first.url())).header("cookie", cookie_of(&session));
    assert_eq!(read.send().await.expect("it answers").status(), StatusCode::OK);

    let kitchen = first.hook("test", TOKEN).message_in("kitchen", "wait for ever");
    let answered = async { (Reply::of(kitchen).await, Instant::now()) };
    let ((cancelled, answered_at), cancelled_at) = tokio::join!(answered, async {
        agent.until_called(1).await;
        let turn = latest_turn(second).await;
        let _ = second.output_of(&["turns", "cancel", &turn, "--say", "Ask Grace, please."]);
        Instant::now()
    });
    assert_eq!((cancelled.state(), cancelled.text()), ("cancelled", "Ask Grace, please."));
    let waited = answered_at.saturating_duration_since(cancelled_at);
    assert!(waited < SOON, "{waited:?}");
    assert_eq!(Reply::of(second.hook("test", TOKEN).message_in("kitchen", "next")).await.text(), "echo next");

    let change = |text: &str| format!("{text}\n[limits]\nturns_per_minute = 200\n");
    second.reconfigure(change);
    second.hang_up();
    let is_behind = async || first.readiness().await.1.contains("behind_since");
    eventually("the first node is behind", async || is_behind().await.then_some(())).await;
    eventually("it is a problem", async || {
        let overview = second.admin("overview").await;
        overview["problems"].to_string().contains("has an earlier configuration").then_some(())
    })
    .await;
    first.reconfigure(change);
    first.hang_up();
    eventually("the first node is behind no more", async || (!is_behind().await).then_some(())).await;
}

/// It was off while the other one was given a later configuration, without somebody who was revoked there. Then an operator goes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_node_that_comes_back_with_a_configuration_that_was_replaced_lets_nobody_in() {
    let double = TelegramDouble::start().await;
    let boss = "[people.boss]\nrole = \"owner\"\nidentities = [\"telegram.test/7\"]\n";
    let Some(mut nodes) = Nodes::start(&[&telegram(&double), boss]).await else { return };
    let (first, second) = (&nodes.first, &mut nodes.second);
    assert!(second.stop().await.success());
    first.reconfigure(|text| text.replace(boss, ""));
    let _ = first.output_of(&["config", "reload"]);
    let _ = first.output_of(&["pairing", "revoke", "telegram.test/7"]);

    second.restart().await;

    assert_eq!(second.output_of(&["people", "list"]).trim(), "Nobody is known.");
    let (_, said) = second.readiness().await;
    assert!(said.contains("behind_since"), "{said}");

    let said = second.output_of(&["config", "reload"]);
    assert!(said.contains("telegram.test/7 (boss, owner)"), "{said}");
    let (_, said) = second.readiness().await;
    assert!(!said.contains("behind_since"), "{said}");
    let is_behind = async || first.readiness().await.1.contains("behind_since").then_some(());
    eventually("the first node is behind", is_behind).await;
}

/// The other node may have made them. A link is not used up by a sign-in that cannot be stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_token_or_link_is_wrong_while_the_database_is_away() {
    let Some(server) = server::get() else { return };
    let database = server.database().await;
    let Some(mut relay) = Relay::start(&database.url()) else { return };
    let api = format!("[channels.api.main]\ntoken = \"{TOKEN}\"\n");
    let nodes = Nodes::start_on(database, relay.url(), &[&api]).await;
    let (first, second) = (&nodes.first, &nodes.second);
    let models = async |token: &str| {
        let request = first.http().get(format!("{}/v1/models", first.url())).bearer_auth(token);
        request.send().await.expect("it answers").status()
    };
    let turns = async |token: &str| {
        first.admin_request(Method::GET, "turns", Some(token)).send().await.expect("it answers").status()
    };
    let open = async |code: &str| {
        let request = first.http().post(format!("{}/admin/api/session", first.url()));
        request.json(&json!({ "code": code })).send().await.expect("it answers").status()
    };

    let token = second.output_of(&["tokens", "create", "--role", "chat", "--name", "ada"]);
    assert_eq!(models(token.trim()).await, StatusCode::OK);
    let link = first.output_of(&["dashboard"]);
    let (_, code) = link.trim().split_once("#code=").expect("a link with a code");

    relay.cut();
    first.until_not_ready("\"writes\":false").await;
    let answered = [models("of-nobody").await, turns("of-nobody").await, open("of-nobody").await, open(code).await];
    assert_eq!(answered, [StatusCode::SERVICE_UNAVAILABLE; 4]);

    relay.restore();
    for node in [first, second] {
        eventually("it is ready", async || node.readiness().await.0.then_some(())).await;
    }
    assert_eq!(open(code).await, StatusCode::OK);
    let is_wrong = async || (models("of-nobody").await == StatusCode::UNAUTHORIZED).then_some(());
    eventually("a token of nobody is wrong", is_wrong).await;
}

/// The channel is at the first node, and operators are at the second.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_operators_say_of_a_channel_is_done_at_the_node_that_has_it() {
    let (double, release) = (TelegramDouble::start().await, Gate::default());
    let agent = patient(&release).await;
    let Some(nodes) = Nodes::start(&[&agent.section(), &telegram(&double)]).await else { return };
    let (first, second) = (&nodes.first, &nodes.second);
    let [ada, bob, eve] = ["Ada", "Bob", "Eve"].map(|name| double.person(name));

    act(second, "channels/telegram.test/pause").await;
    let paused = Instant::now();
    holds_within(SOON, paused, "the first node does not send", async || {
        let channels = first.admin("channels").await;
        let telegram = items(&channels).iter().find(|channel| channel["channel"] == "telegram.test");
        telegram.is_some_and(|channel| channel["paused"].is_object())
    })
    .await;
    ada.says("hello");
    let waits = async || (count(second, "deliveries?state=pending").await == 1).then_some(());
    eventually("her answer waits", waits).await;
    assert!(double.bot_texts(ada.chat()).is_empty());
    act(second, "channels/telegram.test/resume").await;
    ada.hears("echo hello").await;

    bob.says("wait for me");
    agent.until_called(2).await;
    let turn = latest_turn(second).await;
    let _ = second.output_of(&["turns", "hold", &turn]);
    release.release_one();
    eventually("his answer is held", async || (count(second, "deliveries?state=held").await == 1).then_some(())).await;
    assert!(double.bot_texts(bob.chat()).is_empty());
    let _ = second.output_of(&["turns", "resume", &turn]);
    bob.hears("echo wait for me").await;

    eve.says("wait until I am gone");
    agent.until_called(3).await;
    eve.blocks();
    release.release_one();
    eventually("it is a dead letter", async || (count(second, "dead-letters").await == 1).then_some(())).await;
    eve.unblocks();
    let _ = second.output_of(&["turns", "retry", &latest_turn(second).await]);
    eve.hears("echo wait until I am gone").await;

    let list = second.admin("nodes").await;
    let other = items(&list).iter().find(|node| node["this"] == false).expect("it lives");
    let _ = second.output_of(&["nodes", "drain", other["node"].as_str().expect("an id")]);
    eventually("the second node has the channel", async || has_telegram(second).await.then_some(())).await;
    let (is_ready, said) = first.readiness().await;
    assert!(!is_ready && said.contains("draining"), "{said}");
    ada.says("are you there?");
    ada.hears("echo are you there?").await;
    assert_eq!(first.hook("test", TOKEN).ask("and you?").await.text(), "echo and you?");
    let _ = first.output_of(&["nodes", "resume", "--this"]);
    eventually("the first node is ready", async || first.readiness().await.0.then_some(())).await;

    double.all_confirmed().await;
    assert_eq!(double.bot_texts(ada.chat()), ["echo hello", "echo are you there?"]);
    assert_eq!(double.bot_texts(bob.chat()), ["echo wait for me"]);
    assert_eq!(double.bot_texts(eve.chat()), ["echo wait until I am gone"]);
}

/// D1. What runs when the node stops, or is killed, is answered once, and so is what is said meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_channel_goes_on_at_the_other_node_when_its_node_stops_or_is_killed() {
    let (double, release) = (TelegramDouble::start().await, Gate::default());
    let agent = patient(&release).await;
    let Some(mut nodes) = Nodes::start(&[&agent.section(), &telegram(&double)]).await else { return };
    let [ada, bob] = ["Ada", "Bob"].map(|name| double.person(name));

    ada.says("wait for the first");
    agent.until_called(1).await;
    nodes.first.terminate();
    let stopped = Instant::now();
    release.release_one();
    bob.says("are you there?");
    let has_moved = async || has_telegram(&nodes.second).await;
    holds_within(MOVE, stopped, "the second node has the channel", has_moved).await;
    bob.hears("echo are you there?").await;
    ada.hears("echo wait for the first").await;
    assert!(nodes.first.until_ended().await.success());
    assert!(has_telegram(&nodes.second).await);
    nodes.first.restart().await;

    ada.says("wait for the second");
    agent.until_called(3).await;
    nodes.second.kill();
    let killed = Instant::now();
    release.open();
    bob.says("and you?");
    bob.hears("echo and you?").await;
    ada.hears("echo wait for the second").await;
    assert!(killed.elapsed() < TAKEOVER, "{:?}", killed.elapsed());

    nodes.first.until_settled().await;
    double.all_confirmed().await;
    assert_eq!(double.bot_texts(ada.chat()), ["echo wait for the first", "echo wait for the second"]);
    assert_eq!(double.bot_texts(bob.chat()), ["echo are you there?", "echo and you?"]);
}

/// It has an answer that is not sent, and a message that is not accepted, when it goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_node_that_was_frozen_sends_nothing_that_the_other_has_sent() {
    let (double, release) = (TelegramDouble::start().await, Gate::default());
    let agent = patient(&release).await;
    let Some(mut nodes) = Nodes::start(&[&agent.section(), &telegram(&double)]).await else { return };
    let people = ["Ada", "Bob", "Eve"].map(|name| double.person(name));
    let [ada, bob, eve] = &people;

    ada.says("wait for me");
    agent.until_called(1).await;
    nodes.first.freeze();
    let frozen = Instant::now();
    release.open();
    bob.says("are you there?");
    bob.hears("echo are you there?").await;
    ada.hears("echo wait for me").await;
    assert!(frozen.elapsed() < TAKEOVER, "{:?}", frozen.elapsed());
    eventually("it was frozen for long", async || (frozen.elapsed() >= FROZEN).then_some(())).await;
    nodes.first.thaw();
    let knows = async || nodes.first.log().contains("this node has a lease no more").then_some(());
    eventually("the first node knows that it has no channel", knows).await;
    nodes.first.until_ready().await;
    // It works again, and the other one has the channel.
    assert_eq!(nodes.first.hook("test", TOKEN).ask("hello").await.text(), "echo hello");
    assert!(has_telegram(&nodes.second).await && !has_telegram(&nodes.first).await);
    eve.says("and you?");
    eve.hears("echo and you?").await;

    nodes.first.until_settled().await;
    double.all_confirmed().await;
    let said = people.each_ref().map(|person| double.bot_texts(person.chat()));
    assert_eq!(said, [["echo wait for me"], ["echo are you there?"], ["echo and you?"]]);
    assert_eq!(double.calls("sendMessage").len(), people.len());
}
