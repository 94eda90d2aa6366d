//! The gateway's own commands.

use std::sync::Arc;

use proptest::{prelude::*, sample, strategy::ValueTree, test_runner::TestRunner};
use rejoinder_core::{
    Action, AgentTurn, Capabilities, Cause, Clock, CommandAnswer, ConversationId, Directed, EventId, Expectation,
    Handler, Identity, InboundEvent, Obligation, OwnCommand, PersonRole, Policy, Receipts, Rung, SeedPerson, Sender,
    SenderKind, SessionId, StoredFile, Support, TurnId, Usage,
    conformance::scripted::{Fault, Script, capabilities},
    store::{NewEvent, NewTurn, SessionUse, TurnStatus},
};
use uuid::Uuid;

use crate::{
    gateway::{GatewaySetup, SOFT_DEADLINE, TestGateway, ambient, chat, mention, policy, said, secs},
    texts::FAILED,
};

/// D18, B3.
#[tokio::test]
async fn stop_settles_what_runs_and_what_waits_at_once_and_is_acknowledged() {
    let gateway = TestGateway::with(Script::hangs()).await;
    let running = gateway.receives(said(&chat("ada"), "one")).await;
    let waiting = gateway.receives(said(&chat("ada"), "two")).await;
    let elsewhere = gateway.receives(said(&chat("bob"), "three")).await;

    gateway.receives(said(&chat("ada"), "/stop")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Stopped."]);
    assert_eq!(gateway.status(running).await, TurnStatus::Cancelled);
    assert_eq!(gateway.status(waiting).await, TurnStatus::Cancelled);
    assert_eq!(gateway.status(elsewhere).await, TurnStatus::Accepted);
    assert_eq!(gateway.dossier(running).await.runs[0].end.as_deref(), Some("stopped"));
    gateway.receives(said(&chat("bob"), "/stop")).await;
    gateway.at_rest().await;
}

/// D12. A command is a turn with a run, a delivery and an attempt, like any other.
#[tokio::test]
async fn stop_with_nothing_to_stop_says_so() {
    let gateway = TestGateway::with(Script::replies("hi")).await;

    let turn = gateway.receives(said(&chat("ada"), "/stop")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["There is nothing to stop."]);
    let dossier = gateway.dossier(turn).await;
    assert_eq!((dossier.runs.len(), dossier.deliveries.len(), dossier.attempts.len()), (1, 1, 1));
    gateway.at_rest().await;
}

/// B3.
#[tokio::test]
async fn after_a_stop_the_next_turn_runs() {
    let gateway = GatewaySetup::new()
        .agent("main", |turn: &AgentTurn| match turn.message.text.as_str() {
            "stuck" => Script::hangs(),
            _ => Script::replies("fine"),
        })
        .start()
        .await;
    gateway.receives(said(&chat("ada"), "stuck")).await;
    gateway.receives(said(&chat("ada"), "/stop")).await;

    gateway.receives(said(&chat("ada"), "and now?")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Stopped.", "fine"]);
    gateway.at_rest().await;
}

/// A stop interrupted by a crash is executed before the turns that it cancels are recovered.
#[tokio::test]
async fn a_stop_that_was_interrupted_stops_what_was_running() {
    let mut gateway = TestGateway::with(Script::hangs()).await;
    gateway.receives(said(&chat("ada"), "one")).await;
    // The stop is accepted; the crash precedes the write of its effects.
    gateway.life.crash_at(2, crate::life::Crash::Before);
    let event = said(&chat("ada"), "/stop");
    gateway.accepts(event).await;
    gateway.settle().await;

    gateway.restart().await;

    assert_eq!(gateway.visible(&chat("ada")), ["Stopped."]);
    assert_eq!(gateway.agent("main").runs().len(), 1, "it did not run again");
    gateway.at_rest().await;
}

#[tokio::test]
async fn new_makes_the_agent_forget() {
    let gateway = TestGateway::with(Script::replies("yes")).await;
    gateway.receives(said(&chat("ada"), "remember this")).await;
    gateway.receives(said(&chat("ada"), "/new")).await;

    gateway.receives(said(&chat("ada"), "do you remember?")).await;
    gateway.advance(secs(1)).await;

    let runs = gateway.agent("main").runs();
    assert_ne!(runs[0].turn.place.session, runs[1].turn.place.session);
    assert!(runs[1].turn.past.history.is_empty());
    assert_eq!(gateway.visible(&chat("ada")), ["yes", "A new start.\nBack: 1 “remember this”.", "yes"]);
    gateway.at_rest().await;
}

/// A11, B3. The answers are the operator's templates with their placeholders filled in; no agent is run.
#[tokio::test]
async fn start_help_and_status_are_answered_in_the_operators_words() {
    let gateway = TestGateway::with(Script::hangs()).await;
    for text in ["/start", "/start from-a-link", "/help", "/status"] {
        gateway.receives(said(&chat("ada"), text)).await;
    }
    assert!(gateway.agent("main").runs().is_empty());
    gateway.receives(said(&chat("ada"), "work")).await;
    gateway.receives(said(&chat("ada"), "/status")).await;
    gateway.receives(said(&chat("bob"), "/status")).await;
    gateway.receives(said(&chat("ada"), "/stop")).await;

    let expected = ["Hello! I am main.", "Hello! I am main.", "Say what you like.", "Nothing is going on."];
    assert_eq!(gateway.visible(&chat("ada"))[..4], expected);
    assert_eq!(gateway.visible(&chat("ada"))[4..], ["Running for 0 s: work", "Stopped."]);
    assert_eq!(gateway.visible(&chat("bob")), ["Nothing is going on."], "other conversations do not count");
    gateway.at_rest().await;
}

/// D3. What runs, what is promised and what waits, each for how long.
#[tokio::test]
async fn the_status_names_what_is_open() {
    let gateway = TestGateway::with(Script::hangs()).await;
    let now = |text: &str| InboundEvent { received_at: gateway.clock.now(), ..said(&chat("ada"), text) };
    gateway.receives(now("the first\none")).await;
    for number in 2..=7 {
        gateway.advance(secs(1)).await;
        gateway.receives(now(&format!("number {number}"))).await;
    }
    gateway.receives(said(&chat("ada"), "/status")).await;
    let told = "Running for 6 s: the first one\nWaiting for 5 s: number 2\nWaiting for 4 s: number 3\n\
                Waiting for 3 s: number 4\nWaiting for 2 s: number 5\n2 more.";
    assert_eq!(gateway.visible(&chat("ada")), [told]);

    gateway.advance(SOFT_DEADLINE).await;
    gateway.receives(said(&chat("ada"), "/status")).await;

    let seconds = SOFT_DEADLINE.as_secs() + 6;
    let promised = format!("Promised for {seconds} s, within 9 min: the first one");
    assert!(gateway.visible(&chat("ada")).iter().any(|text| text.starts_with(&promised)), "{promised}");
    gateway.receives(said(&chat("ada"), "/stop")).await;
    gateway.at_rest().await;
}

/// `/history` and `/export` repeat lines for their sender, and not for the agent.
#[tokio::test]
async fn what_was_said_is_shown_and_exported() {
    let gateway = TestGateway::with(Script::replies("yes, *really*")).await;
    for command in ["/history", "/export"] {
        gateway.receives(said(&chat("ada"), command)).await;
    }
    assert_eq!(gateway.visible(&chat("ada")), ["Nothing was said.", "Nothing was said."]);
    let asked = InboundEvent {
        sender: Sender { name: Some("A*d*a".to_owned()), ..said(&chat("ada"), "").sender },
        ..said(&chat("ada"), "is it?")
    };
    gateway.receives(asked).await;
    gateway.receives(said(&chat("ada"), &"long ".repeat(100))).await;

    let exported = gateway.receives(said(&chat("ada"), "/export")).await;
    gateway.receives(said(&chat("ada"), "/history")).await;
    gateway.receives(said(&chat("ada"), "and now?")).await;

    let shown = gateway.visible(&chat("ada"));
    let history = &shown[shown.len() - 2];
    let lines: Vec<_> = history.split("\n\n").collect();
    assert_eq!(lines.len(), 4, "{history}");
    assert_eq!((lines[0], lines[1]), ("**ada**: is it?", "**main**: yes, *really*"));
    assert!(lines[2].ends_with('…') && lines[2].chars().count() == "**ada**: ".len() + 301, "{}", lines[2]);
    let (words, text) = exported_by(&gateway, exported).await;
    assert_eq!(words, ["This was said."]);
    let text = text.expect("a file");
    assert!(text.starts_with("**ada**: is it?\n\n**main**: yes, *really*\n\n**ada**: long"), "{text}");
    let last = gateway.agent("main").runs().pop().expect("a run");
    assert_eq!(last.turn.past.history.len(), 4, "{:?}", last.turn.past.history);
    gateway.at_rest().await;
}

/// The texts that a turn was answered with, and what the file holds, if there is one.
pub(crate) async fn exported_by(gateway: &TestGateway, turn: TurnId) -> (Vec<String>, Option<String>) {
    exported_as(gateway, turn, ("conversation.md", "text/markdown")).await
}

/// The same, of a file with this name and type.
async fn exported_as(gateway: &TestGateway, turn: TurnId, kind: (&str, &str)) -> (Vec<String>, Option<String>) {
    let (mut words, mut held) = (Vec::new(), None);
    for delivery in gateway.dossier(turn).await.deliveries {
        let Action::Send { content, .. } = delivery.action else { panic!("a message") };
        if !content.text.is_empty() {
            words.push(content.text);
        }
        for file in content.attachments {
            assert_eq!((&*file.name, &*file.media_type), kind);
            let StoredFile { digest, .. } = StoredFile::in_url(&file.url).expect("a stored file");
            let bytes = gateway.store.file(digest).await.expect("readable").expect("its bytes");
            held = Some(String::from_utf8(bytes).expect("text"));
        }
    }
    (words, held)
}

/// The same lines, for programs.
#[tokio::test]
async fn what_was_said_is_exported_as_json() {
    let gateway = TestGateway::with(Script::replies("yes, *really*")).await;
    gateway.receives(said(&chat("ada"), "is \"it\"?")).await;

    let exported = gateway.receives(said(&chat("ada"), "/export JSON")).await;

    let (words, file) = exported_as(&gateway, exported, ("conversation.json", "application/json")).await;
    assert_eq!(words, ["This was said."]);
    let file: serde_json::Value = serde_json::from_str(&file.expect("a file")).expect("JSON");
    let said = |line: &serde_json::Value| ["speaker", "name", "text"].map(|key| line[key].as_str().map(str::to_owned));
    let lines: Vec<_> = file["lines"].as_array().expect("lines").iter().map(said).collect();
    let expected = [["person", "ada", "is \"it\"?"], ["agent", "main", "yes, *really*"]];
    assert_eq!(lines, expected.map(|line| line.map(|text| Some(text.to_owned()))));
    assert_eq!(file["cut"], false);
    assert_eq!(file["lines"][0]["spoken"], false);
    assert!(file["lines"][0]["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{file}");
    assert_eq!(gateway.agent("main").runs().len(), 1);
    gateway.at_rest().await;
}

/// A file holds the last MiB, and says that there was more.
#[tokio::test]
async fn a_long_conversation_is_exported_from_its_end() {
    let gateway = TestGateway::with(Script::replies("yes")).await;
    for letter in ["a", "b"] {
        gateway.receives(said(&chat("ada"), &letter.repeat(600_000))).await;
    }

    let exported = gateway.receives(said(&chat("ada"), "/export")).await;

    let (words, text) = exported_by(&gateway, exported).await;
    assert_eq!(words, ["This was said."]);
    let text = text.expect("a file");
    assert!(text.len() <= 1 << 20, "{} bytes", text.len());
    assert!(text.starts_with("(There was more.)\n\n**main**: yes\n\n**ada**: bbb"), "{}", &text[..60]);
    gateway.at_rest().await;
}

/// Where a file with its bytes in its URL cannot be shown, there is none.
#[tokio::test]
async fn nothing_is_exported_where_files_cannot_be_sent() {
    let as_links = Capabilities { attachments: Support::Degraded, ..capabilities() };
    let rows_without = Capabilities { receipts: Receipts::Row, attachments: Support::No, ..capabilities() };
    for able in [as_links, rows_without] {
        let gateway = GatewaySetup::new().always(Script::replies("yes")).capable(|it| *it = able).start().await;
        gateway.receives(said(&chat("ada"), "hello")).await;

        let exported = gateway.receives(said(&chat("ada"), "/export")).await;

        assert_eq!(exported_by(&gateway, exported).await, (vec!["No files here.".to_owned()], None));
        gateway.at_rest().await;
    }
}

/// A client that reads the row of the answer finds the file in it.
#[tokio::test]
async fn the_row_of_an_export_holds_the_file() {
    let read_as_rows = Capabilities { receipts: Receipts::Row, attachments: Support::Degraded, ..capabilities() };
    let gateway = GatewaySetup::new().always(Script::replies("yes")).capable(|it| *it = read_as_rows).start().await;
    gateway.receives(said(&chat("ada"), "hello")).await;

    let exported = gateway.receives(said(&chat("ada"), "/export")).await;

    let (words, file) = exported_by(&gateway, exported).await;
    assert_eq!(
        (words, file.as_deref()),
        (vec!["This was said.".to_owned()], Some("**ada**: hello\n\n**main**: yes\n"))
    );
    gateway.at_rest().await;
}

/// A cut text is one line, and no block of code of its swallows what follows.
#[tokio::test]
async fn the_history_is_one_line_for_each_message() {
    let gateway = TestGateway::with(Script::replies("so:\n```rust\nfn main() {}\n```")).await;
    gateway.receives(said(&chat("ada"), "# how\n\n* is *it*?")).await;

    gateway.receives(said(&chat("ada"), "/history")).await;

    let shown = "**ada**: # how * is *it*?\n\n**main**: so: '''rust fn main() {} '''";
    assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some(shown));
    gateway.at_rest().await;
}

/// The id of a chat on web chat is the secret by which its page reads it: nobody is told it, nor is the agent.
#[tokio::test]
async fn the_id_of_a_chat_is_told_to_nobody() {
    const SECRET: &str = "secret-key";
    let gateway = TestGateway::with(Script::replies("yes")).await;
    let unnamed = |text: &str| {
        let sender = Sender { id: "visitor".to_owned(), kind: SenderKind::Unnamed, ..said(&chat(SECRET), "").sender };
        InboundEvent { sender, ..said(&chat(SECRET), text) }
    };
    gateway.receives(unnamed("hello")).await;
    for command in ["/whoami", "/status", "/history"] {
        gateway.receives(unnamed(command)).await;
    }
    let exported = gateway.receives(unnamed("/export")).await;

    gateway.receives(unnamed("and now?")).await;

    let shown = gateway.visible(&chat(SECRET));
    assert_eq!(shown[1], "You could be anyone.");
    let (_, file) = exported_by(&gateway, exported).await;
    let history = gateway.agent("main").runs().pop().expect("a run").turn.past.history;
    let told: Vec<&str> = history.iter().map(|line| &*line.text).collect();
    assert_eq!(told, ["hello", "yes"]);
    assert!(!shown.iter().chain(&file).any(|text| text.contains(SECRET)), "{shown:?} {file:?}");
    assert!(!told.iter().any(|text| text.contains(SECRET)), "{told:?}");
    gateway.at_rest().await;
}

/// The operator's own commands: words are the gateway's answer, a prompt is put before the agent in place of the text.
#[tokio::test]
async fn operators_add_commands_of_their_own() {
    let mut setup = GatewaySetup::new().always(Script::replies("sunny"));
    let own = |description: &str, answer| OwnCommand { description: description.to_owned(), answer };
    let words = CommandAnswer::Words("{text}? Ask {agent}, {sender}.".to_owned());
    let with_place = CommandAnswer::Prompt("The weather in {text}, please.".to_owned());
    let without = CommandAnswer::Prompt("Tell a joke.".to_owned());
    setup.commands = [("hours", words), ("weather", with_place), ("joke", without)]
        .map(|(name, answer)| (name.to_owned(), own("What it does", answer)))
        .into();
    let gateway = setup.start().await;

    gateway.receives(said(&chat("ada"), "/hours  on {agent} day")).await;
    assert!(gateway.agent("main").runs().is_empty());
    for text in ["/weather  Rome {text}\n", "/weather", "/joke", "/joke about cats", "tell me /joke", "/jokes"] {
        gateway.receives(said(&chat("ada"), text)).await;
    }
    gateway.receives(said(&chat("ada"), "/help")).await;

    let given: Vec<_> = gateway.agent("main").runs().into_iter().map(|run| run.turn.message.text).collect();
    let expected = [
        "The weather in Rome {text}, please.",
        "The weather in , please.",
        "Tell a joke.",
        "Tell a joke.\n\nabout cats",
        "tell me /joke",
        "/jokes",
    ];
    assert_eq!(given, expected);
    let shown = gateway.visible(&chat("ada"));
    assert_eq!(shown[0], "on {agent} day? Ask main, ada.");
    let help = "Say what you like.\n/hours: What it does\n/joke: What it does\n/weather: What it does";
    assert_eq!(shown.last().map(String::as_str), Some(help));
    let listed: Vec<_> = gateway.intake().commands().into_iter().map(|it| (it.name, it.argument.is_some())).collect();
    assert!(listed.contains(&("weather".into(), true)) && listed.contains(&("help".into(), false)), "{listed:?}");
    gateway.at_rest().await;
}

/// A group hears a command of the operator's only if it is directed at the agent.
#[tokio::test]
async fn talk_in_a_group_is_no_command_of_the_operators() {
    let mut setup = GatewaySetup::new().always(Script::replies("hello"));
    let own = |answer| OwnCommand { description: "What it does".to_owned(), answer };
    setup.commands = [
        ("hours", CommandAnswer::Words("From nine to five.".to_owned())),
        ("joke", CommandAnswer::Prompt("Tell a joke.".to_owned())),
    ]
    .map(|(name, answer)| (name.to_owned(), own(answer)))
    .into();
    let gateway = setup.start().await;

    for text in ["/hours", "/joke"] {
        gateway.receives(ambient(&chat("room"), text)).await;
        gateway.receives(mention(&chat("room"), text)).await;
    }

    let given: Vec<_> = gateway.agent("main").runs().into_iter().map(|run| run.turn.message.text).collect();
    assert_eq!(given, ["/hours", "/joke", "Tell a joke."]);
    assert!(gateway.visible(&chat("room")).contains(&"From nine to five.".to_owned()));
    gateway.at_rest().await;
}

#[tokio::test]
async fn who_asks_is_told_who_they_are() {
    let mut setup = GatewaySetup::new().always(Script::replies("hello"));
    let identity = |id: &str| Identity { channel: crate::gateway::main_channel(), id: id.to_owned() };
    let person = |name: &str, role, id| SeedPerson {
        name: name.to_owned(),
        role,
        identities: vec![identity(id)],
        home: None,
        language: None,
    };
    setup.people = vec![person("Grace {agent}", PersonRole::Owner, "grace"), person("Bob", PersonRole::Member, "bob")];
    let gateway = setup.start().await;
    for id in ["grace", "bob", "eve"] {
        let sender = Sender { id: id.to_owned(), ..said(&chat(id), "").sender };
        gateway.receives(InboundEvent { sender, ..said(&chat(id), "/whoami") }).await;
    }

    assert_eq!(gateway.visible(&chat("grace")), ["You are the owner Grace {agent}, test.main/grace."]);
    assert_eq!(gateway.visible(&chat("bob")), ["You are Bob, test.main/bob."]);
    assert_eq!(gateway.visible(&chat("eve")), ["You are test.main/eve."]);
    gateway.at_rest().await;
}

/// A group message is a command only if it is directed at us.
#[tokio::test]
async fn in_a_group_a_command_is_for_whom_it_is_directed_at() {
    let gateway = TestGateway::with(Script::is_silent("ambient")).await;

    gateway.receives(ambient(&chat("room"), "/help")).await;
    assert!(gateway.visible(&chat("room")).is_empty());
    gateway.receives(mention(&chat("room"), "/help")).await;

    assert_eq!(gateway.visible(&chat("room")), ["Say what you like."]);
    gateway.at_rest().await;
}

/// D18. A stop cancels ambient turns as well.
#[tokio::test]
async fn stop_ends_ambient_runs_too() {
    let gateway = TestGateway::with(Script::hangs()).await;
    let running = gateway.receives(ambient(&chat("room"), "nice weather")).await;
    let waiting = gateway.receives(ambient(&chat("room"), "is it not?")).await;

    gateway.receives(mention(&chat("room"), "/stop")).await;

    assert_eq!(gateway.visible(&chat("room")), ["Stopped by ada."]);
    assert_eq!(gateway.status(running).await, TurnStatus::Cancelled);
    assert_eq!(gateway.status(waiting).await, TurnStatus::Cancelled);
    assert_eq!(gateway.dossier(running).await.runs[0].end.as_deref(), Some("stopped"));
    gateway.at_rest().await;
}

/// A command whose answer the platform refuses is not handed to an agent as a message.
#[tokio::test]
async fn a_command_is_never_handed_to_an_agent() {
    let ladder =
        policy().ladder.with(Cause::Refused, vec![Rung::Handoff("boss".to_owned()), Rung::Say("failed".to_owned())]);
    let gateway = GatewaySetup::new()
        .policy(Policy { ladder, ..policy() })
        .always(Script::replies("yes"))
        .agent("boss", |_| Script::replies("I was told to help"))
        .start()
        .await;
    gateway.platform.queue_fault(Fault::Refuse);

    gateway.receives(said(&chat("ada"), "/help")).await;

    assert_eq!(gateway.visible(&chat("ada")), [FAILED]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn the_agent_is_not_told_of_commands() {
    let gateway = TestGateway::with(Script::replies("yes")).await;
    for command in ["/help", "/status", "/stop", "/language de"] {
        gateway.receives(said(&chat("ada"), command)).await;
    }

    gateway.receives(said(&chat("ada"), "hello")).await;

    assert!(gateway.agent("main").runs()[0].turn.past.history.is_empty());
    gateway.at_rest().await;
}

/// A cancelled run gets a moment to end, and its usage until then is recorded.
#[tokio::test]
async fn a_stopped_run_gets_a_moment_to_end() {
    let usage = Usage { input_tokens: 3, output_tokens: 4 };
    let script = Script::hangs().taking(secs(1)).consuming(usage).ignoring_cancel();
    let gateway = TestGateway::with(script).await;
    let turn = gateway.receives(said(&chat("ada"), "work")).await;

    gateway.receives(said(&chat("ada"), "/stop")).await;
    gateway.advance(secs(1)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Stopped."], "the answer does not wait for the run");
    assert_eq!(gateway.dossier(turn).await.runs[0].end, None, "the run continues for a moment");
    gateway.advance(secs(1)).await;
    let run = gateway.dossier(turn).await.runs.remove(0);
    assert_eq!((run.end.as_deref(), run.usage), (Some("stopped"), Some(usage)));
    gateway.at_rest().await;
}

/// The handler's kind, not its name, distinguishes the gateway's own turns from an agent's.
#[tokio::test]
async fn an_agent_may_be_called_gateway() {
    let mut gateway = TestGateway::with(Script::replies("done")).await;
    gateway.rename_agent("main", "gateway");
    gateway.restart().await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.receives(said(&chat("ada"), "/help")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done", "Say what you like."]);
    gateway.at_rest().await;
}

/// The machine's clock was set back between two starts, so that a later turn has a smaller id.
#[tokio::test]
async fn a_stop_reaches_turns_of_a_start_whose_clock_was_ahead() {
    let mut gateway = TestGateway::with(Script::hangs()).await;
    gateway.stop(secs(0)).await;
    let event = said(&chat("ada"), "one");
    let ahead = TurnId::from(Uuid::max());
    let now = gateway.clock.now();
    let turn = NewTurn {
        rule: None,
        id: ahead,
        handler: Handler::Agent("main".into()),
        obligation: Obligation::open(Expectation::Answer, &policy(), None, now),
        run: None,
        conversation: ConversationId::new(now),
        about: None,
        session: SessionUse::current(SessionId::new(now)),
        model: None,
        remark: None,
        repeats: None,
        day: None,
    };
    let new = NewEvent {
        id: EventId::new(now),
        event: Arc::new(event),
        turn: Some(turn),
        only_if_known: false,
        files: Vec::new(),
    };
    gateway.store.accept(vec![new], None).await.expect("it is accepted");
    gateway.begin_life().await;
    assert_eq!(gateway.agent("main").runs().len(), 1);

    gateway.receives(said(&chat("ada"), "/stop")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Stopped."]);
    assert_eq!(gateway.status(ahead).await, TurnStatus::Cancelled);
    gateway.at_rest().await;
}

/// Spoken commands of a hook have no slash. Elsewhere the same words are for the agent.
#[tokio::test]
async fn commands_are_spoken_where_a_program_asks() {
    let gateway = TestGateway::with(Script::hangs()).await;
    let asked = |text: &str| InboundEvent { directed: Directed::Asked, ..said(&chat("ada"), text) };
    let running = gateway.receives(asked("How is the weather?")).await;
    gateway.receives(said(&chat("bob"), "Stop.")).await;

    gateway.receives(asked("Stop.")).await;
    gateway.receives(asked("What is the status?")).await;

    assert_eq!(gateway.status(running).await, TurnStatus::Cancelled);
    assert_eq!(gateway.visible(&chat("ada")), ["Stopped.", "Nothing is going on."]);
    assert_eq!(gateway.agent("main").runs().len(), 2);
    gateway.receives(said(&chat("bob"), "/stop")).await;
    gateway.at_rest().await;
}

/// Whatever somebody writes after a slash: it is answered once, and the gateway goes on.
#[tokio::test]
async fn whatever_is_written_after_a_slash_is_answered_once() {
    let gateway = TestGateway::with(Script::replies("hello")).await;
    let names = gateway.intake().commands().into_iter().map(|command| command.name.into_owned()).collect::<Vec<_>>();
    let name = prop_oneof![
        sample::select(names),
        sample::select(vec!["approve", "decline", "reset", "cancel"]).prop_map(Into::into),
        "\\PC{0,12}",
    ];
    let text = (name, "[ \t\n]{0,2}", "\\PC{0,40}").prop_map(|(name, space, rest)| format!("/{name}{space}{rest}"));
    let mut runner = TestRunner::deterministic();

    for number in 0..400 {
        let text = text.new_tree(&mut runner).expect("a text").current();
        let address = chat(&format!("chat-{number}"));
        gateway.receives(said(&address, &text)).await;
        assert_eq!(gateway.visible(&address).len(), 1, "{text:?}");
    }
    gateway.at_rest().await;
}
