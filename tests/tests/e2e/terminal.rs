//! `rejoinder ask` and `rejoinder chat`.

use std::{
    io::Write,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use rejoinder_tests::{Gate, Gateway, GatewayBuilder, Script, ScriptedAgent, Terminal, eventually};
use reqwest::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::hook;

const WEB_CHAT: &str = "[channels.webchat.main]\n";

fn with(agent: &ScriptedAgent) -> GatewayBuilder {
    Gateway::builder().config(&agent.section()).config(WEB_CHAT)
}

fn outcome(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the output is text");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Runs `ask` in the background.
fn start(gateway: &Gateway, arguments: &[&str]) -> Child {
    let mut command = gateway.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts")
}

/// Runs `ask` with this on its standard input.
fn ask_with_input(gateway: &Gateway, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = gateway.command(arguments);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // A command that takes no more input has ended.
    let _ = child.stdin.take().expect("it has an input").write_all(input);
    child.wait_with_output().expect("it ends")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_question_comes_as_an_argument_or_through_standard_input() {
    let agent = ScriptedAgent::echoing().await;
    let gateway = with(&agent).start().await;

    let argument = gateway.run(&["ask", "hello *there*"]);
    let input = ask_with_input(&gateway, &["ask"], b"from a pipe\n");
    let dash = ask_with_input(&gateway, &["ask", "-"], b"one\ntwo\n");

    assert_eq!(outcome(&argument), (Some(0), "echo hello *there*\n".into(), String::new()));
    assert_eq!(outcome(&input), (Some(0), "echo from a pipe\n".into(), String::new()));
    assert!(agent.calls()[2].body.to_string().contains(r"one\ntwo"), "{dash:?}");
    let json = gateway.output_of(&["ask", "--json", "as JSON"]);
    let turn: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!((&turn["status"], &turn["shown"]["text"]), (&json!("answered"), &json!("echo as JSON")));
}

/// A file needs no words, and one that the gateway does not take costs a sentence.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn files_are_sent_with_a_question() {
    let agent = ScriptedAgent::echoing().await;
    let gateway = with(&agent).config("[files]\nmax = \"1 KiB\"\n").start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("it is written");
        path.to_str().expect("a path").to_owned()
    };
    let (notes, large) = (file("Größe.txt", "nine apples"), file("large.txt", &"x".repeat(2000)));

    let json = gateway.output_of(&["ask", "--json", "How many?", "--file", &notes]);
    let refused = outcome(&gateway.run(&["ask", "How many?", "--file", &large]));
    let missing = outcome(&gateway.run(&["ask", "How many?", "--file", "/nowhere.txt"]));

    let turn: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!((&turn["text"], &turn["files"][0]["name"]), (&json!("How many?"), &json!("Größe.txt")));
    assert!(agent.calls()[0].body.to_string().contains("nine apples"));
    assert_eq!(
        refused,
        (Some(1), String::new(), "error: the files of a message must have at most 1024 bytes together\n".into())
    );
    assert_eq!(missing.0, Some(2));
}

/// What is written to a file is the answer as it is; only a terminal is kept from what would control it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_that_goes_to_no_terminal_is_not_changed() {
    const ANSWER: &str = "one\r\nso\u{ad}so \u{200f}א \u{feff}\u{1f3f4}\u{e0067}\u{e0062}\u{e007f}";
    let agent = ScriptedAgent::replying(ANSWER).await;
    let gateway = with(&agent).start().await;

    assert_eq!(gateway.output_of(&["ask", "hello"]), format!("{ANSWER}\n"));
}

/// Nobody need read what stands beside the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_closed_standard_error_does_not_keep_an_answer_back() {
    let agent = ScriptedAgent::start(|_, _| Script::asks("Which?", &["this", "that"])).await;
    let gateway = with(&agent).start().await;

    let mut asking = start(&gateway, &["ask", "hello"]);
    drop(asking.stderr.take());
    let (code, answer, _) = outcome(&asking.wait_with_output().expect("it ends"));

    assert_eq!((code, answer.as_str()), (Some(0), "Which?\n"));
}

/// Each question is asked in a conversation of its own, unless it continues the one that is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn only_a_question_that_continues_is_asked_in_the_kept_conversation() {
    let agent = ScriptedAgent::start(|call, _| {
        let messages = call.body["messages"].as_array().expect("messages");
        Script::replies(&messages.iter().filter(|message| message["role"] == "user").count().to_string())
    })
    .await;
    let gateway = with(&agent).start().await;

    let alone = ["one", "two"].map(|text| gateway.output_of(&["ask", text]));
    let continued = ["one", "two"].map(|text| gateway.output_of(&["ask", "--continue", text]));

    assert_eq!((alone, continued), (["1\n", "1\n"].map(Into::into), ["1\n", "2\n"].map(Into::into)));
    let kept = gateway.data().join("terminal-main-conversation");
    let mode = std::os::unix::fs::PermissionsExt::mode(&kept.metadata().expect("it is kept").permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_exit_code_of_a_question_is_its_outcome() {
    let never = Gate::default();
    let agent = ScriptedAgent::start(move |call, _| match call.said().as_str() {
        "react" => Script::reacts("👍"),
        "fail" => Script::fails("broken"),
        "choose" => Script::asks("Which?", &["this", "that"]),
        _ => Script::replies("never").waiting(&never),
    })
    .await;
    let gateway = with(&agent).allow_open_turns().start().await;
    let ask = |arguments: &[&str]| outcome(&gateway.run(&[&["ask"], arguments].concat()));

    assert_eq!(ask(&["react"]), (Some(0), "👍\n".into(), String::new()));
    let (code, answer, notes) = ask(&["choose"]);
    assert_eq!((code, answer.as_str(), notes.as_str()), (Some(0), "Which?\n", "[choice] 1. this\n[choice] 2. that\n"));
    let (code, answer, why) = ask(&["fail"]);
    assert_eq!((code, answer.as_str()), (Some(1), ""));
    assert!(why.starts_with("error: gateway, as main gave no answer: "), "{why}");
    let (code, answer, _) = ask(&["/status"]);
    assert_eq!((code, answer.is_empty()), (Some(0), false), "the gateway does what a command asks for");
    let (code, answer, why) = ask(&["--wait", "1", "wait"]);
    assert_eq!((code, answer.as_str()), (Some(3), ""));
    assert!(why.contains("no answer yet") && why.contains("rejoinder turns show 01"), "{why}");
    let (code, turn, _) = ask(&["--wait", "0", "--json", "wait"]);
    let turn: Value = serde_json::from_str(&turn).expect("it is JSON");
    assert_eq!((code, &turn["status"], &turn["text"]), (Some(3), &json!("accepted"), &json!("wait")));

    assert_eq!(ask(&[" "]).0, Some(2));
    assert_eq!(ask(&["-"]).2, "error: the question is empty\n", "nothing is on standard input");
    assert_eq!(outcome(&ask_with_input(&gateway, &["ask"], "x".repeat(65_537).as_bytes())).0, Some(2));
    assert_eq!(outcome(&ask_with_input(&gateway, &["ask"], b"\xff")).0, Some(2));
    let (code, _, why) = outcome(&gateway.run(&["chat"]));
    assert!(code == Some(2) && why.contains("rejoinder ask"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_question_that_the_operator_cancels_fails() {
    let (agent, _never) = ScriptedAgent::holding("never").await;
    let gateway = with(&agent).start().await;

    let asking = start(&gateway, &["ask", "hello"]);
    agent.until_called(1).await;
    let turn = gateway.open_turns()[0]["turn_id"].as_str().expect("an id").to_owned();
    let cancel = gateway.admin_request(Method::POST, &format!("turns/{turn}/cancel"), None);
    cancel.json(&json!({ "reason": "test" })).send().await.expect("it answers");
    let asked = outcome(&asking.wait_with_output().expect("it ends"));

    let given_up =
        "error: gateway: There will be no answer to this: it was given up. Please ask again if you still need it.\n";
    assert_eq!(asked, (Some(1), String::new(), given_up.into()));
}

/// H3: a deferral is told, and waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deferred_answer_is_waited_for() {
    let agent = ScriptedAgent::start(|call, _| match call.last_message() {
        text if text.contains("The time that you named has come") => Script::replies("Here it is."),
        _ => Script::defers(Some("Soon."), Duration::from_secs(2)),
    })
    .await;
    let gateway = with(&agent).allow_open_turns().start().await;

    let (code, answer, told) = outcome(&gateway.run(&["ask", "hello"]));
    let late = outcome(&gateway.run(&["ask", "--wait", "1", "hello"]));

    assert_eq!((code, answer.as_str()), (Some(0), "Here it is.\n"));
    assert!(told.starts_with("main, for now (the answer is due at ") && told.ends_with("): Soon.\n"), "{told}");
    assert!(late.0 == Some(3) && late.2.contains("the answer is deferred"), "{late:?}");
}

/// I1: one question, one answer, although the gateway is killed while it is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_question_survives_a_kill_of_the_gateway() {
    let release = Gate::default();
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, _| Script::replies("at last").waiting(&release)).await
    };
    let mut gateway = with(&agent).start().await;

    let asking = start(&gateway, &["ask", "hello"]);
    agent.until_called(1).await;
    gateway.kill();
    gateway.restart().await;
    release.open();
    let (code, answer, told) = outcome(&asking.wait_with_output().expect("it ends"));

    assert_eq!((code, answer.as_str()), (Some(0), "at last\n"), "{told}");
    assert!(told.contains("lost. Trying again.") && told.contains("The gateway is back."), "{told}");
    assert_eq!(gateway.turns("settled").len(), 1);
}

/// E1: a question that was not acknowledged is asked again, under the same id, and is one turn.
#[rstest]
#[case::received_before_the_commit("received:1")]
#[case::committed_before_the_caller_is_told("accepted:1")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_question_is_one_turn_however_often_it_is_sent(#[case] point: &str) {
    let agent = ScriptedAgent::start(|_, number| Script::replies(&format!("answer {number}"))).await;
    let mut gateway = with(&agent).prepare();
    gateway.spawn_crashing_at(point);
    gateway.until_ready().await;

    let asking = start(&gateway, &["ask", "hello"]);
    gateway.until_crashed().await;
    gateway.restart().await;
    let (code, answer, told) = outcome(&asking.wait_with_output().expect("it ends"));

    assert_eq!((code, answer.as_str()), (Some(0), "answer 0\n"), "{told}");
    assert_eq!((gateway.turns("settled").len(), agent.calls().len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_interrupted_question_is_stopped() {
    let (agent, _never) = ScriptedAgent::holding("never").await;
    let gateway = with(&agent).start().await;

    let asking = start(&gateway, &["ask", "hello"]);
    agent.until_called(1).await;
    let interrupted = Command::new("kill").args(["-INT", &asking.id().to_string()]).status();
    assert!(interrupted.is_ok_and(|status| status.success()));
    let asked = outcome(&asking.wait_with_output().expect("it ends"));

    assert_eq!(asked, (Some(130), String::new(), "error: interrupted\n".into()));
    eventually("nothing runs", async || gateway.open_turns().is_empty().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_web_chat_is_found_with_its_token() {
    let agent = ScriptedAgent::echoing().await;
    let desk = "[channels.webchat.desk]\naccess = \"token\"\ntoken = { generate = true }\n";
    let mut gateway = with(&agent).config(desk).start().await;

    assert_eq!(gateway.output_of(&["ask", "--chat", "desk", "hello"]), "echo hello\n");
    let unknown = outcome(&gateway.run(&["ask", "--chat", "other", "hello"]));
    assert!(unknown.0 == Some(1) && unknown.2.contains("`channels.webchat.other` does not exist"), "{unknown:?}");
    gateway.kill();
    let stopped = outcome(&gateway.run(&["ask", "hello"]));
    assert!(stopped.0 == Some(1) && stopped.2.contains("no gateway runs"), "{stopped:?}");
    gateway.reconfigure(|config| config.replace(WEB_CHAT, &hook("")).replace(desk, ""));
    let none = outcome(&gateway.run(&["ask", "hello"]));
    assert!(none.0 == Some(1) && none.2.contains("add [channels.webchat.main]"), "{none:?}");
}

/// What the agent streams grows in place, and becomes the answer. It does not control the terminal. (This screen shows no U+FFFD,
/// which stands for the control character.)
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_grows_in_the_terminal() {
    let release = Gate::default();
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, _| Script::replies("One two.\u{1b}[2J").streaming("One ").waiting(&release)).await
    };
    let gateway = with(&agent).start().await;
    let mut terminal = Terminal::start(&mut gateway.command(&["chat"]));
    terminal.shows("main answers").await;

    terminal.types("hello\r");
    terminal.shows("› hello\nmain\n  One\n  …\n\n›").await;
    terminal.types("half a thou");
    terminal.shows("…\n\n› half a thou").await;
    release.open();

    terminal.shows("› hello\nmain\n  One two.[2J\n\n› half a thou").await;
    // Ctrl-C clears the line, and then leaves.
    terminal.types("\u{3}");
    terminal.until("an empty line", |screen| screen.ends_with('›')).await;
    terminal.types("\u{3}");
    assert!(terminal.ends().await.success());
}

/// A deferral is replaced where it stands, or answered below what was said since; the next `chat` shows it all.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deferral_is_replaced_in_the_terminal() {
    let agent = ScriptedAgent::start(|call, _| match call.last_message() {
        text if text.contains("The time that you named has come") => Script::replies("Here it is."),
        text if text.contains("later") => Script::defers(Some("Soon."), Duration::from_secs(2)),
        _ => Script::replies("Meanwhile."),
    })
    .await;
    let gateway = with(&agent).start().await;
    let folder = gateway.data();
    let mut terminal = Terminal::start(gateway.command(&["chat"]).current_dir(&folder));
    terminal.shows("main answers").await;

    terminal.types("later\r");
    terminal.shows("› later\nmain, for now (the answer is due at").await;
    let screen = terminal.shows("› later\nmain\n  Here it is.\n\n›").await;
    assert!(!screen.contains("Soon."), "{screen}");

    terminal.types("later, too\r");
    terminal.shows("  Soon.\n\n›").await;
    terminal.types("hello\r");
    terminal.shows("› hello\nmain\n  Meanwhile.").await;
    terminal.shows("main, to “later, too”\n  Here it is.\n\n›").await;
    terminal.types("/export\r");
    terminal.shows("(conversation.md is saved as").await;
    let exported = std::fs::read_to_string(folder.join("conversation.md")).expect("it is saved");
    assert!(exported.contains("Meanwhile."), "{exported}");
    // Ctrl-D leaves.
    terminal.types("\u{4}");
    assert!(terminal.ends().await.success());

    let again = Terminal::start(&mut gateway.command(&["chat"]));
    let screen = again.shows("› hello\nmain\n  Meanwhile.\n\n› /export\ngateway\n").await;
    assert!(screen.contains("› later, too\nmain\n  Here it is.\n\n› hello"), "{screen}");
    let new = Terminal::start(&mut gateway.command(&["chat", "--new"]));
    let screen = new.until("a prompt", |screen| screen.ends_with('›')).await;
    assert!(!screen.contains("Meanwhile."), "{screen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_choice_is_picked_in_the_terminal_and_what_runs_is_stopped() {
    let never = Gate::default();
    let agent = ScriptedAgent::start(move |call, _| match call.said().as_str() {
        "choose" => Script::asks("Which?", &["this", "that"]),
        "that" => Script::replies("That it is."),
        "fail" => Script::fails("broken"),
        _ => Script::replies("never").waiting(&never),
    })
    .await;
    let gateway = with(&agent).start().await;
    let mut terminal = Terminal::start(&mut gateway.command(&["chat"]));
    terminal.shows("main answers").await;

    terminal.types("choose\r");
    terminal.shows("main\n  Which?\n  1. this\n  2. that\n\n›").await;
    terminal.types("2\r");
    terminal.shows("› 2\nmain\n  That it is.\n\n›").await;
    terminal.types("fail\r");
    terminal.shows("› fail\ngateway, as main gave no answer\n").await;
    terminal.types("hang\r");
    terminal.shows("› hang\n(main is writing…)\n\n›").await;
    terminal.types("not lost");
    terminal.shows("› not lost").await;
    terminal.types("\u{3}");

    terminal
        .until("it is stopped, and the line is not lost", |screen| screen.ends_with("› hang\n(Stopped.)\n\n› not lost"))
        .await;
    let settled = gateway.turns("settled");
    assert_eq!(settled.iter().filter(|turn| turn["status"] == "cancelled").count(), 1, "{settled:#?}");
}

/// I1: what is written while the gateway is away is sent once it is back, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_chat_goes_on_after_a_kill_of_the_gateway() {
    let agent = ScriptedAgent::echoing().await;
    let mut gateway = with(&agent).start().await;
    let mut terminal = Terminal::start(&mut gateway.command(&["chat"]));
    terminal.shows("main answers").await;
    terminal.types("one\r");
    terminal.shows("  echo one\n\n›").await;

    gateway.kill();
    terminal.shows("(The connection to the gateway is lost.").await;
    // A paste of two lines is one message.
    terminal.types("\u{1b}[200~two\rthree\u{1b}[201~\r");
    terminal.shows("two\nthree").await;
    gateway.restart().await;

    terminal.shows("(Connected again.)").await;
    terminal.until("the answer", |screen| screen.contains("echo two\n  three\n\n›")).await;
    assert_eq!(gateway.turns("settled").len(), 2);
}
