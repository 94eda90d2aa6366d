//! What a person sees of an answer.

use rejoinder_discord_server::{Channel, DiscordServer, Fault, Message, Person};
use rejoinder_tests::{Gate, Gateway, ModelServer, Script, ScriptedAgent};
use rstest::rstest;

use crate::{FAILED, SILENT, acknowledged, between, between_with, discord, finds, hears};

#[derive(Clone, Copy, Debug)]
enum Place {
    DirectChat,
    Server,
}

impl Place {
    async fn channel(self, server: &DiscordServer, person: &Person) -> Channel {
        match self {
            Self::DirectChat => person.direct().await,
            Self::Server => server.guild("Friends").await.channel("general").await,
        }
    }

    /// Sends a message that is meant for the bot.
    async fn asks(self, channel: &Channel, person: &Person, words: &str) -> rejoinder_discord_server::Message {
        match self {
            Self::DirectChat => person.says(channel, words).await,
            Self::Server => person.mentions(channel, words).await,
        }
    }
}

async fn with_model(more: &str) -> (DiscordServer, ModelServer, Gateway) {
    let (server, model) = tokio::join!(DiscordServer::start(), ModelServer::start());
    let gateway = Gateway::builder().config(&discord(&server, "")).config(&model.section()).config(more).start().await;
    (server, model, gateway)
}

/// B10, E8, I3, J1: one message, and its delivery stores the id that the platform acknowledged.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_person_is_answered_once(#[values(Place::DirectChat, Place::Server)] place: Place) {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello, Ada.").await);
    let ada = server.person("Ada").await;
    let channel = place.channel(&server, &ada).await;
    let gateway = between(&server, &agent).start().await;

    let asked = place.asks(&channel, &ada, "hello").await;
    let answer = hears(&server, &channel, "Hello, Ada.").await;
    gateway.until_settled().await;

    assert_eq!(server.bot_texts(&channel).await, ["Hello, Ada."]);
    assert!(agent.calls()[0].said().ends_with("hello"), "{:?}", agent.calls()[0].last_message());
    let replied = matches!(place, Place::Server).then_some(asked.id);
    assert_eq!(answer.reply_to, replied);
    let explained = gateway.explain(&gateway.only_turn());
    assert!(explained.contains(&answer.id) && explained.contains("reply"), "{explained}");
}

/// A1, A2, A3, A7, A13, A20, B6, B7, C1, C4, C5: whatever the agent does, there is one signal, without internal error text.
#[rstest]
#[case::empty("zebra-empty", SILENT)]
#[case::marker("zebra-marker", SILENT)]
#[case::chosen("zebra-silent", SILENT)]
#[case::error("zebra-boom", FAILED)]
#[case::cut("zebra-cut", FAILED)]
#[case::again("zebra-once", "after the retry")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn whatever_the_agent_does_there_is_one_signal(
    #[case] asked: &str,
    #[case] words: &str,
    #[values(Place::DirectChat, Place::Server)] place: Place,
) {
    let (server, _model, gateway) = with_model("").await;
    let ada = server.person("Ada").await;
    let channel = place.channel(&server, &ada).await;

    place.asks(&channel, &ada, asked).await;
    hears(&server, &channel, words).await;
    gateway.until_settled().await;

    assert_eq!(server.bot_texts(&channel).await, [words]);
}

/// A11, B14: the operator chooses the templates and the response to silence.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn silence_becomes_what_the_operator_says() {
    let ladder = "[guard.ladder.discord.direct]\nsilent = [{ react = \"👌\" }]\n\
                  [guard.templates.discord]\nfailed = \"Ask the operator.\"\n";
    let (server, _model, gateway) = with_model(ladder).await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    let asked = ada.dm("zebra-silent").await;
    finds(&server, &chat, "the reaction", |message| message.id == asked.id && reacted(message, "👌")).await;
    ada.dm("zebra-boom").await;
    hears(&server, &chat, "Ask the operator.").await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&chat).await, ["Ask the operator."]);
}

/// A2, A8: servers have a ladder of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_empty_answer_to_a_mention_is_a_reaction_where_the_operator_wants_one() {
    let (server, _model, gateway) = with_model("[guard.ladder.discord.group]\nsilent = [{ react = \"👀\" }]\n").await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;

    let asked = ada.mentions(&general, "zebra-empty").await;
    finds(&server, &general, "the reaction", |message| message.id == asked.id && reacted(message, "👀")).await;
    ada.dm("zebra-empty").await;
    hears(&server, &ada.direct().await, SILENT).await;

    gateway.until_settled().await;
    assert!(server.bot_texts(&general).await.is_empty());
}

fn reacted(message: &rejoinder_discord_server::Message, emoji: &str) -> bool {
    message.reactions.iter().any(|reaction| reaction.ours && reaction.emoji == emoji)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reaction_is_the_answer() {
    let server = DiscordServer::start().await;
    let agent = ScriptedAgent::start(|_, _| Script::reacts("✅")).await;
    let gateway = between(&server, &agent).start().await;
    let ada = server.person("Ada").await;

    let asked = ada.dm("done?").await;
    finds(&server, &ada.direct().await, "✅", |message| message.id == asked.id && reacted(message, "✅")).await;

    gateway.until_settled().await;
    assert!(server.bot_texts(&ada.direct().await).await.is_empty());
}

/// K6, K7: a long answer is split into parts that fit, without breaking code blocks or words.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_long_answer_comes_in_parts_that_fit() {
    let code = (0..200).map(|n| format!("let 🦀_{n} = {n};")).collect::<Vec<_>>().join("\n");
    let words = format!("Here it is:\n\n```rust\n{code}\n```\n\nThat was **all**.");
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying(&words).await);
    let gateway = between(&server, &agent).start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    ada.dm("code, please").await;
    finds(&server, &chat, "the end", |message| message.ours && message.content.ends_with("That was **all**.")).await;
    gateway.until_settled().await;

    let parts = server.bot_texts(&chat).await;
    assert!(parts.len() > 1, "{parts:#?}");
    assert!(parts.iter().all(|part| part.encode_utf16().count() <= 2000), "{parts:#?}");
    assert!(parts.iter().all(|part| part.matches("```").count() % 2 == 0), "a code fence is not closed: {parts:#?}");
    let read = parts.join("\n");
    for n in 0..200 {
        assert_eq!(read.matches(&format!("let 🦀_{n} = {n};")).count(), 1, "line {n}");
    }
}

/// The choices of a question are buttons. A click is acknowledged, and is a turn of its own.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_question_has_buttons(#[values(Place::DirectChat, Place::Server)] place: Place) {
    let server = DiscordServer::start().await;
    let agent = ScriptedAgent::start(|_, number| Script::replies(if number == 0 { "" } else { "More it is." })).await;
    let ask = "silent = [{ clarify = \"what_next\" }]\n";
    let ladder = format!("[guard.ladder.discord.direct]\n{ask}[guard.ladder.discord.group]\n{ask}");
    let gateway = between(&server, &agent).config(&ladder).start().await;
    let ada = server.person("Ada").await;
    let channel = place.channel(&server, &ada).await;

    place.asks(&channel, &ada, "hm").await;
    let question = finds(&server, &channel, "the buttons", |message| !message.buttons.is_empty()).await;
    let press = ada.clicks(&question, "Tell me more").await;
    hears(&server, &channel, "More it is.").await;

    gateway.until_settled().await;
    let press = acknowledged(&server, &press).await;
    assert!(!press.failed, "{press:?}");
    assert!(agent.calls()[1].said().ends_with("Tell me more"), "{:?}", agent.calls()[1].last_message());
}

/// The first choice by the person who was asked answers a question and closes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_question_is_answered_once() {
    let server = DiscordServer::start().await;
    let agent = ScriptedAgent::start(|_, number| Script::replies(if number == 0 { "" } else { "More it is." })).await;
    let ladder = "[guard.ladder.discord.group]\nsilent = [{ clarify = \"what_next\" }]\n";
    let gateway = between(&server, &agent).config(ladder).start().await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
    let channel = Place::Server.channel(&server, &ada).await;

    Place::Server.asks(&channel, &ada, "hm").await;
    let question = finds(&server, &channel, "the buttons", |message| !message.buttons.is_empty()).await;
    // The buttons stay until all have pressed.
    server.fault(Fault::on("POST", "/interactions/*/*/callback").failed(503).always()).await;
    let others = bob.clicks(&question, "Never mind").await;
    let presses = [others, ada.clicks(&question, "Tell me more").await, ada.clicks(&question, "Try again").await];
    server.clear_faults().await;
    hears(&server, &channel, "More it is.").await;
    let is_closed = |message: &Message| message.id == question.id && message.buttons.is_empty();
    let closed = finds(&server, &channel, "the closed question", is_closed).await;

    assert!(closed.content.ends_with("\n\n✓ Tell me more"), "{closed:?}");
    gateway.until_settled().await;
    for press in presses {
        let press = acknowledged(&server, &press).await;
        assert!(!press.failed, "{press:?}");
    }
    assert_eq!(agent.calls().len(), 2);
}

/// B11, L4: several people at once, each in a chat of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn answers_go_where_the_question_came_from() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::echoing().await);
    let gateway = between(&server, &agent).start().await;
    let crowd = server.crowd(8).await;

    for (n, (person, chat)) in crowd.iter().enumerate() {
        person.says(chat, &format!("question {n}")).await;
    }

    for (n, (_, chat)) in crowd.iter().enumerate() {
        hears(&server, chat, &format!("echo question {n}")).await;
    }
    gateway.until_settled().await;
    for (_, chat) in &crowd {
        assert_eq!(server.bot_texts(chat).await.len(), 1);
    }
}

/// B1, L4: messages that arrive while the agent works wait for their turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_said_meanwhile_is_answered_in_order() {
    let server = DiscordServer::start().await;
    let (agent, release) = ScriptedAgent::holding("first").await;
    let gateway = between(&server, &agent).start().await;
    let ada = server.person("Ada").await;

    ada.dm("one").await;
    agent.until_called(1).await;
    ada.dm("two").await;
    ada.dm("three").await;
    release.release_one();
    hears(&server, &ada.direct().await, "echo three").await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&ada.direct().await).await, ["first", "echo two", "echo three"]);
}

/// An edit of a waiting message changes what the agent is asked. A link preview that Discord adds is not an edit.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_edit_amends_what_waits() {
    let server = DiscordServer::start().await;
    let (agent, release) = ScriptedAgent::holding("first").await;
    let gateway = between(&server, &agent).start().await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);

    ada.dm("one").await;
    agent.until_called(1).await;
    let waiting = ada.dm("tow").await;
    server.unfurls(&waiting).await;
    ada.edits(&waiting, "two").await;
    // Events arrive in order: once Bob is answered, the edit was received.
    bob.dm("are you there?").await;
    hears(&server, &bob.direct().await, "echo are you there?").await;
    release.release_one();
    hears(&server, &ada.direct().await, "echo two").await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&ada.direct().await).await, ["first", "echo two"]);
}

/// An edit of a message that is already answered changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_edit_of_what_is_answered_is_not_answered_again() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::echoing().await);
    let gateway = between(&server, &agent).start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    let asked = ada.dm("one").await;
    hears(&server, &chat, "echo one").await;
    gateway.until_settled().await;
    ada.edits(&asked, "uno").await;
    ada.dm("two").await;
    hears(&server, &chat, "echo two").await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&chat).await, ["echo one", "echo two"]);
}

/// G1: the bot types while the turn runs, and stops when it ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn typing_ends_with_the_turn() {
    let server = DiscordServer::start().await;
    let (held, never) = (Gate::default(), Gate::default());
    let agent = {
        let (held, never) = (held.clone(), never.clone());
        ScriptedAgent::start(move |call, _| {
            let release = if call.last_message().contains("Bob") { &never } else { &held };
            Script::replies("done").waiting(release)
        })
        .await
    };
    let gateway = between_with(&server, &agent, "streaming = \"off\"")
        .time_passes_faster(10)
        .config("[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\n")
        .start()
        .await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
    let (hers, his) = (ada.direct().await, bob.direct().await);

    ada.dm("hello").await;
    server.until("three typing notices", async || (server.typing(&hers).await >= 3).then_some(())).await;
    held.release_one();
    hears(&server, &hers, "done").await;
    gateway.until_settled().await;
    let typed = server.typing(&hers).await;
    bob.dm("I am Bob").await;
    server.until("typing notices for Bob", async || (server.typing(&his).await >= 3).then_some(())).await;

    assert_eq!(server.typing(&hers).await, typed, "it still types after the answer");
    never.release_one();
    hears(&server, &his, "done").await;
    gateway.until_settled().await;
}

/// A message that waits is marked until the agent begins with it.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_waits_is_marked(#[values(Place::DirectChat, Place::Server)] place: Place) {
    let (server, (agent, release)) = (DiscordServer::start().await, ScriptedAgent::holding("first").await);
    let gateway = between(&server, &agent).start().await;
    let ada = server.person("Ada").await;
    let channel = place.channel(&server, &ada).await;

    place.asks(&channel, &ada, "one").await;
    server.until("the first is run", async || (agent.calls().len() == 1).then_some(())).await;
    let waits = place.asks(&channel, &ada, "two").await;
    let marks = |message: &Message| message.reactions.iter().any(|it| it.ours && it.emoji == "👀");
    finds(&server, &channel, "the mark", |message| message.id == waits.id && marks(message)).await;
    release.open();
    finds(&server, &channel, "no mark", |message| message.id == waits.id && !marks(message)).await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&channel).await.len(), 2);
}

/// An answer never pings anybody, and Discord opens none of its links for a preview.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_calls_nobody() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let words = format!("@everyone, @here and <@{}>: see https://example.org", ada.id());
    let agent = ScriptedAgent::replying(&words).await;
    let gateway = between_with(&server, &agent, "").start().await;
    let general = server.guild("Friends").await.channel("general").await;

    ada.mentions(&general, "call them all").await;
    let answer = finds(&server, &general, "the answer", |message| message.ours && message.content == words).await;

    gateway.until_settled().await;
    assert!(!answer.pings_everyone && answer.pings.is_empty() && answer.embeds_suppressed, "{answer:?}");
}

/// The question may be deleted before its answer is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_prompt_that_was_deleted_is_answered_all_the_same() {
    let server = DiscordServer::start().await;
    let (agent, release) = ScriptedAgent::holding("Here.").await;
    let gateway = between_with(&server, &agent, "streaming = \"off\"").start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;

    let asked = ada.mentions(&general, "are you there?").await;
    agent.until_called(1).await;
    ada.deletes(&asked).await;
    release.release_one();
    hears(&server, &general, "Here.").await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&general).await, ["Here."]);
}
