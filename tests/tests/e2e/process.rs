//! The process keeps answering when its output is blocked, file descriptors run out, or requests are hostile. It tells the
//! service manager how it is.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use rejoinder_tests::{Gate, Gateway, GatewayBuilder, Hook, PATIENCE, Reply, Script, ScriptedAgent, eventually};
use reqwest::StatusCode;
use tokio::{net::UnixDatagram, sync::mpsc};

use crate::{TOKEN, hook};

/// How soon a working gateway answers a health check.
const SOON: Duration = Duration::from_secs(5);

/// How many turns are sent at once.
const CROWD: usize = 64;

/// The file descriptor limit of a constrained gateway: enough for half as many connections.
const FEW_FILES: u32 = 256;

/// An address of this machine, in 127.0.0.0/8.
fn machine(number: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 0, number).into()
}

fn failing() -> impl Future<Output = ScriptedAgent> {
    ScriptedAgent::start(|_, _| Script::refuses(404))
}

fn builder(agent: &ScriptedAgent) -> GatewayBuilder {
    Gateway::builder().config(&hook("")).config(&agent.section())
}

/// Sends many turns at once; each gets its fallback.
async fn ask_many(hook: &Hook) {
    for reply in join_all((0..CROWD).map(|_| hook.ask("hello"))).await {
        assert_eq!((reply.status, reply.state()), (StatusCode::OK, "answered"), "{reply:?}");
    }
}

async fn answers_health(gateway: &Gateway) {
    let asked = gateway.http().get(format!("{}/healthz", gateway.url())).timeout(SOON).send().await;
    assert_eq!(asked.expect("health is answered soon").status(), StatusCode::OK);
}

/// How many log lines were dropped, according to the metrics.
async fn dropped_lines(gateway: &Gateway) -> u64 {
    let asked = gateway.http().get(format!("{}/metrics", gateway.url())).send().await.expect("/metrics responds");
    let text = asked.text().await.expect("the metrics are text");
    let dropped = text.lines().find_map(|line| line.strip_prefix("rejoinder_log_lines_dropped_total "));
    dropped.map_or(0, |lines| lines.parse().expect("a number"))
}

/// As `rejoinder 2>&1 | less` with a pager that stops reading, while hundreds of failing turns are logged: first the pipe
/// fills up, then the queue of log lines.
async fn with_a_log_that_overflows(agent: &ScriptedAgent) -> Gateway {
    let gateway = builder(agent).unread_output().start().await;
    let hook = gateway.hook("test", TOKEN);
    let begun = Instant::now();
    while dropped_lines(&gateway).await == 0 {
        // Thousands of turns.
        assert!(begun.elapsed() < 4 * PATIENCE, "no line was dropped");
        ask_many(&hook).await;
        answers_health(&gateway).await;
    }
    gateway
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_log_that_nobody_reads_holds_up_nothing_and_not_the_end() {
    let agent = failing().await;
    let mut gateway = with_a_log_that_overflows(&agent).await;

    let asked_to_end = Instant::now();
    let ended = gateway.stop().await;

    assert!(ended.success(), "{ended}");
    assert!(asked_to_end.elapsed() < Duration::from_secs(10), "the stop took {:?}", asked_to_end.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_log_that_is_read_again_says_what_is_missing() {
    let agent = failing().await;
    let mut gateway = with_a_log_that_overflows(&agent).await;
    let dropped = dropped_lines(&gateway).await;

    gateway.read_output();
    let line = eventually("the log says how many lines were lost", async || {
        gateway.log().lines().find(|line| line.contains("log lines were lost")).map(ToOwned::to_owned)
    })
    .await;
    gateway.hook("test", TOKEN).ask("hello again").await;
    assert!(gateway.stop().await.success());

    let lines = line.split_once("lines=").expect("a number of lines").1;
    let lines: u64 = lines.split_whitespace().next().and_then(|lines| lines.parse().ok()).expect("a number");
    assert!(lines >= dropped, "{dropped} were dropped: {line}");
    let log = gateway.log();
    assert!(log.trim_end().ends_with("stopped"), "the last line is missing:\n{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_output_that_is_stuck_from_the_start_keeps_nobody_from_being_answered() {
    let agent = ScriptedAgent::replying("here").await;
    let mut gateway = builder(&agent).stuck_output().start().await;

    let reply = gateway.hook("test", TOKEN).ask("are you there?").await;

    assert_eq!(reply.text(), "here");
    assert!(gateway.stop().await.success());
}

/// More connections than file descriptors, from several addresses, with and without the beginning of a request head.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn idle_connections_keep_nobody_out() {
    let agent = ScriptedAgent::echoing().await;
    let gateway = builder(&agent).open_files(FEW_FILES).start().await;

    let mut idle = Vec::new();
    for (from, count, start) in
        [(1, 150, ""), (1, 120, "GET /heal"), (3, 40, ""), (4, 40, "POST /hooks/test HTTP/1.1\r\n")]
    {
        idle.push(gateway.connections(machine(from), count, start).await);
    }
    let replies = join_all((0..20).map(async |number: u32| {
        answers_health(&gateway).await;
        let hook = gateway.hook_from(machine(2), "test", TOKEN);
        tokio::time::timeout(SOON, hook.ask(&number.to_string())).await.expect("an answer").text().to_owned()
    }))
    .await;

    assert_eq!(replies, (0..20).map(|number| format!("echo {number}")).collect::<Vec<_>>());
}

/// Waiting callers use up the requests that their address may have open: the next one is rejected at once with
/// `Retry-After`, while health checks and other addresses are served. Idle connections do not count towards that limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn callers_who_wait_leave_room_for_health_and_for_others() {
    let held = Arc::new(Mutex::new(Vec::new()));
    let agent = {
        let held = held.clone();
        ScriptedAgent::start(move |_, _| {
            let release = Gate::default();
            held.lock().unwrap().push(release.clone());
            Script::replies("at last").waiting(&release)
        })
        .await
    };
    let holds = async |calls| {
        eventually("the agent holds the calls", async || (held.lock().unwrap().len() == calls).then_some(())).await;
    };
    let agents = agent.section_with("max_concurrent = 64");
    let gateway = Gateway::builder().config(&hook("")).config(&agents).open_files(FEW_FILES).start().await;

    let waiting: FuturesUnordered<_> = (0..60)
        .map(|_| {
            let hook = gateway.hook("test", TOKEN);
            tokio::spawn(async move { hook.ask("hello").await })
        })
        .collect();
    let (refused, waiting) = waiting.into_future().await;
    let refused = refused.expect("somebody called").unwrap();
    holds(56).await;
    let _idle = gateway.connections(machine(1), 100, "GET /heal").await;
    answers_health(&gateway).await;
    let ready = gateway.http().get(format!("{}/readyz", gateway.url())).timeout(SOON).send().await.unwrap();
    let other = gateway.hook_from(machine(2), "test", TOKEN).send("and I?").await;
    holds(57).await;
    held.lock().unwrap().iter().for_each(Gate::release_one);
    let replies: Vec<_> = waiting.map(Result::unwrap).collect().await;

    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{refused:?}");
    assert!(refused.headers.contains_key("retry-after"), "{refused:?}");
    assert_eq!((ready.status(), other.status), (StatusCode::OK, StatusCode::ACCEPTED));
    let answered = replies.iter().filter(|reply| reply.status == StatusCode::OK && reply.text() == "at last");
    assert_eq!((answered.count(), replies.len()), (56, 59));
    assert_eq!(gateway.hook("test", TOKEN).until_settled(&other.turn()).await.text(), "at last");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_hostile_form_holds_up_nobody() {
    let agent = ScriptedAgent::replying("here").await;
    let gateway = builder(&agent).start().await;
    let hook = gateway.hook("test", TOKEN);
    let form = "=\u{fffd}&".repeat(((1 << 20) - 20) / 5) + "message=%EF%BF%BD";
    let send = || hook.call().header("Content-Type", "application/x-www-form-urlencoded").body(form.clone());

    let begun = Instant::now();
    let (replies, ()) = tokio::join!(join_all((0..8).map(|_| Reply::of(send()))), answers_health(&gateway));

    assert!(begun.elapsed() < Duration::from_secs(10), "the forms took {:?}", begun.elapsed());
    for reply in replies {
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{reply:?}");
        assert!(reply.body["detail"].as_str().is_some_and(|detail| detail.contains("64")), "{reply:?}");
    }
}

/// As systemd runs a service with `Type=notify` and `WatchdogSec=`.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_service_manager_hears_that_it_is_ready_lives_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let (sender, mut told) = mpsc::unbounded_channel();
    // Always read: the gateway waits when the socket is full.
    let reading = tokio::spawn(async move {
        let mut buffer = [0; 4096];
        while let Ok(size) = socket.recv(&mut buffer).await {
            for line in String::from_utf8_lossy(&buffer[..size]).lines() {
                let _ = sender.send(line.to_owned());
            }
        }
    });
    let mut heard = async |line: &str| {
        let hearing = async { while told.recv().await.expect("the socket is read") != line {} };
        let heard = tokio::time::timeout(PATIENCE, hearing).await;
        assert!(heard.is_ok(), "the service manager was not told {line}");
    };
    let gateway = Gateway::builder().config(&hook("")).env("WATCHDOG_USEC", "100000");

    let mut gateway = gateway.env("NOTIFY_SOCKET", &path.to_string_lossy()).start().await;

    heard("READY=1").await;
    heard(&format!("STATUS=serving {}", gateway.url())).await;
    heard("WATCHDOG=1").await;
    heard("WATCHDOG=1").await;
    assert!(gateway.stop().await.success());
    heard("STOPPING=1").await;
    reading.abort();
}

/// SIGHUP reads the configuration again: the log's level, words and ladders change at once, other keys wait for the next start,
/// and a wrong file changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signal_reads_the_configuration_again() {
    let agent = ScriptedAgent::start(|call, _| match call.said().as_str() {
        "fail" => Script::fails("out of order"),
        _ => Script::replies("done"),
    })
    .await;
    let level = "[log]\nlevel = \"info\"\n[guard.templates.webhook]\nfailed = \"It broke.\"\n";
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).config(level).start().await;
    assert_eq!(gateway.hook("test", TOKEN).ask("fail").await.text(), "It broke.");
    let logs = async |words: &str| eventually(words, async || gateway.log().contains(words).then_some(())).await;

    gateway.reconfigure(|text| {
        text.replace("level = \"info\"", "level = \"debug\"").replace("\"2s\"", "\"3s\"").replace("broke", "bent")
    });
    gateway.hang_up();
    logs("these settings change at the next start: restart the gateway").await;
    assert!(gateway.log().contains("\"changed\":\"server.drain\""), "{}", gateway.log());
    assert_eq!(gateway.hook("test", TOKEN).ask("fail").await.text(), "It bent.");
    assert_eq!(gateway.hook("test", TOKEN).ask("hello").await.text(), "done");
    logs("\"level\":\"DEBUG\",\"message\":\"a turn is settled\"").await;

    gateway.reconfigure(|text| text.replace("level = \"debug\"", "level = \"loud\""));
    gateway.hang_up();
    logs("a reload was refused, and the gateway keeps the old configuration").await;
    assert_eq!(gateway.hook("test", TOKEN).ask("hello").await.text(), "done");
}

/// An operator has the configuration read again: the agent's prompt changes, and what waits for the next start is named.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_prompt_changes_without_a_restart() {
    let agent =
        ScriptedAgent::start(|call, _| Script::replies(call.body["messages"][0]["content"].as_str().unwrap_or("-")))
            .await;
    let section = agent.section_with("system_prompt = \"Be brief.\"");
    let gateway = Gateway::builder().config(&hook("")).config(&section).start().await;
    let briefly = gateway.hook("test", TOKEN).ask("hello").await.text().to_owned();
    assert!(briefly.contains("Be brief."), "{briefly}");

    gateway.reconfigure(|text| text.replace("Be brief.", "Be kind.").replace("\"2s\"", "\"3s\""));
    let output = gateway.output_of(&["config", "reload", "--reason", "kinder"]);

    assert_eq!(output.trim(), "Changed: agents.main.system_prompt.\nWaits for a restart: server.drain.");
    let kindly = gateway.hook("test", TOKEN).ask("hello again").await.text().to_owned();
    assert!(kindly.contains("Be kind."), "{kindly}");
    let audit = gateway.admin("audit").await;
    assert_eq!((&audit["items"][0]["action"], &audit["items"][0]["reason"]), (&"reload".into(), &"kinder".into()));
}

/// A prompt in a file is read again with the configuration. A file that cannot be read changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_prompt_in_a_file_changes_without_a_restart() {
    let agent =
        ScriptedAgent::start(|call, _| Script::replies(call.body["messages"][0]["content"].as_str().unwrap_or("-")))
            .await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("soul.md");
    std::fs::write(&file, "Be brief.\n").expect("a file");
    let section = agent.section_with(&format!("system_prompt = {{ files = [\"{}\"] }}", file.display()));
    let gateway = Gateway::builder().config(&hook("")).config(&section).start().await;
    let told = async || gateway.hook("test", TOKEN).ask("hello").await.text().to_owned();
    assert!(told().await.starts_with("Be brief.\n\n"));

    std::fs::write(&file, "Be kind.\n").expect("a file");
    let output = gateway.output_of(&["config", "reload"]);
    assert_eq!(output.trim(), "Changed: agents.main.system_prompt.");
    assert!(told().await.starts_with("Be kind.\n\n"));

    std::fs::remove_file(&file).expect("it is there");
    gateway.hang_up();
    let why = "a reload was refused, and the gateway keeps the old configuration";
    eventually(why, async || gateway.log().contains(why).then_some(())).await;
    let named = format!("`agents.main.system_prompt.files[0]` names the file {}", file.display());
    assert!(gateway.log().contains(&named), "{}", gateway.log());
    assert!(told().await.starts_with("Be kind.\n\n"));
}

/// What runs masks the secrets of the start, so agents and alerts wait together with a secret; and no longer once it is as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_prompt_that_changes_together_with_a_secret_waits_for_a_restart() {
    let agent =
        ScriptedAgent::start(|call, _| Script::replies(call.body["messages"][0]["content"].as_str().unwrap_or("-")))
            .await;
    let section = agent.section_with("system_prompt = \"Be brief.\"");
    let gateway = Gateway::builder().config(&hook("")).config(&section).start().await;

    gateway.reconfigure(|text| text.replace("Be brief.", "Be kind.").replace(TOKEN, "another-token-of-these-tests"));
    let waits = gateway.output_of(&["config", "reload"]);
    let briefly = gateway.hook("test", TOKEN).ask("hello").await.text().to_owned();
    gateway.reconfigure(|text| text.replace("another-token-of-these-tests", TOKEN));
    let changed = gateway.output_of(&["config", "reload"]);
    let kindly = gateway.hook("test", TOKEN).ask("hello again").await.text().to_owned();

    let named = "Waits for a restart: agents.main.system_prompt, channels.webhook.test.token.";
    assert_eq!(waits.trim(), format!("Nothing has changed that holds at once.\n{named}"));
    assert!(briefly.contains("Be brief."), "{briefly}");
    assert_eq!(changed.trim(), "Changed: agents.main.system_prompt.");
    assert!(kindly.contains("Be kind."), "{kindly}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_alert_target_is_added_without_a_restart() {
    let gateway = Gateway::builder().config(&hook("")).start().await;
    let nobody = gateway.run(&["alerts", "test"]);
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("nobody is told"), "{nobody:?}");

    gateway.reconfigure(|text| format!("{text}\n[alerts]\nto = [\"http://127.0.0.1:1/alerts\"]\n"));
    assert_eq!(gateway.output_of(&["config", "reload"]).trim(), "Changed: alerts.to.");

    let tested = gateway.run(&["alerts", "test"]);
    assert!(String::from_utf8_lossy(&tested.stdout).contains("127.0.0.1"), "{tested:?}");

    // The path is printed nowhere.
    gateway.reconfigure(|text| text.replace("/alerts\"", "/other\""));
    assert_eq!(gateway.output_of(&["config", "reload"]).trim(), "Changed: alerts.to.");
}

/// It takes connections, and says nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_test_of_the_alerts_ends_although_a_url_never_answers() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let alerts = format!("[alerts]\nto = [\"http://{}/alerts\"]\n", silent.local_addr().expect("an address"));
    let gateway = Gateway::builder().config(&hook("")).config(&alerts).start().await;

    let tested = gateway.run(&["alerts", "test"]);

    let told = String::from_utf8_lossy(&tested.stdout);
    assert!(told.contains("it did not answer within 10s"), "{tested:?}");
    assert_eq!(tested.status.code(), Some(1));
}

/// An operator has taken rights away, and reads a configuration again that says nothing new of that person.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reload_names_whom_it_lets_in_and_lets_nobody_in_whose_entry_is_the_same() {
    let telegram = "[channels.telegram.main]\ntoken = \"1234:token\"\napi_url = \"http://127.0.0.1:1\"\n";
    let boss = "[people.boss]\nrole = \"owner\"\nidentities = [\"telegram.main/7\"]\n";
    let mut gateway = Gateway::builder().config(&hook("")).config(telegram).config(boss).prepare();
    // Telegram cannot be reached, so it is never ready.
    gateway.spawn(&[]);
    eventually("it answers", async || gateway.run(&["people", "list"]).status.success().then_some(())).await;
    let revoked = gateway.output_of(&["pairing", "revoke", "telegram.main/7"]);
    assert!(revoked.contains("[people.boss]"), "{revoked}");

    assert_eq!(gateway.output_of(&["config", "reload"]).trim(), "Nothing has changed that holds at once.");
    assert_eq!(gateway.output_of(&["people", "list"]).trim(), "Nobody is known.");

    gateway.reconfigure(|text| text.replace("main/7\"]", "main/7\", \"telegram.main/8\"]"));
    gateway.hang_up();
    let read = eventually("it is read again", async || {
        let audit = gateway.admin("audit").await["items"][0].clone();
        (audit["by"] == "SIGHUP").then_some(audit)
    })
    .await;
    let target = read["target"].as_str().expect("a target");
    assert!(target.contains("let in telegram.main/7 (boss, owner)"), "{target}");

    gateway.reconfigure(|text| text.replace(&text[text.find("[people.boss]").expect("it is there")..], ""));
    let said = gateway.output_of(&["config", "reload"]);
    let known = "No longer configured, and known until `rejoinder pairing revoke`: telegram.main/7 (boss, owner), ";
    assert!(said.contains(known), "{said}");
}

/// The times of problems are in the operator's zone, as it was read last.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn another_time_zone_of_the_alerts_holds_at_once_for_what_is_wrong() {
    let zone = "[alerts]\ntime_zone = \"UTC\"\n";
    let gateway = Gateway::builder().config(&hook("")).config(zone).start().await;
    let pause = gateway.admin_request(reqwest::Method::POST, "channels/webhook.test/pause", None);
    let paused = pause.json(&serde_json::json!({})).send().await.expect("it answers");
    assert!(paused.status().is_success(), "{paused:?}");
    let wrong = async || gateway.admin("overview").await["problems"].to_string();
    assert!(wrong().await.contains(" UTC ("), "{}", wrong().await);

    gateway.reconfigure(|text| text.replace("\"UTC\"", "\"Asia/Tokyo\""));

    assert_eq!(gateway.output_of(&["config", "reload"]).trim(), "Changed: alerts.time_zone.");
    assert!(wrong().await.contains(" JST ("), "{}", wrong().await);
}
