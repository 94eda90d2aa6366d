//! One person on Telegram and on another channel.

use rejoinder_discord_server::{Channel, DiscordServer};
use rejoinder_telegram_double::{Person, TelegramDouble};
use rejoinder_tests::{Chat, Gate, Gateway, GatewayBuilder, Script, ScriptedAgent, eventually};

use crate::telegram;

/// The secret id of a conversation on web chat.
const CONVERSATION: &str = "a-conversation-of-tests";

/// Ada is known on Telegram, where nobody else may write.
fn knowing(ada: &Person, double: &TelegramDouble) -> GatewayBuilder {
    let person = format!("[people.Ada]\nidentities = [\"telegram.test/{}\"]\n", ada.id());
    Gateway::builder().config(&telegram(double, "dm_policy = \"pairing\"")).config(&person)
}

/// The code that she gets on Telegram, for another channel.
async fn code_of(ada: &Person) -> String {
    ada.says("/link");
    let told = ada.finds("a code", |message| message.ours && message.text.contains("write /link ")).await.text;
    told.split_once("write /link ").expect("a code").1[..9].to_owned()
}

/// She says that it was her who wrote her code elsewhere.
async fn confirms(ada: &Person) {
    ada.finds("the question", |message| message.ours && message.text.contains("Your code was written there.")).await;
    ada.says("Link");
    ada.hears("There, too, you are Ada to me from now on. /unlink there takes that back.").await;
}

/// A18. The agent is shown on Telegram what was said on web chat. The key of the conversation is nowhere where people are named.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_said_on_web_chat_is_answered_from_on_telegram() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::start(|call, _| {
        let is_told = call.body["messages"].to_string().contains("the key is under the red pot");
        Script::replies(if is_told { "Under the red pot." } else { "I do not know." })
    })
    .await;
    let ada = double.person("Ada");
    let mut gateway = knowing(&ada, &double).config("[channels.webchat.main]").config(&agent.section()).start().await;
    let mut chat = Chat::open(&gateway.url(), CONVERSATION).await;
    let mut number = 0;
    let mut says = async |chat: &mut Chat, text: &str| {
        number += 1;
        let turn = chat.says(&format!("message-{number}"), text).await;
        chat.hears(&turn).await
    };
    ada.says("where is the key?");
    ada.hears("I do not know.").await;
    assert_eq!(says(&mut chat, "the key is under the red pot").await, "Under the red pot.");

    let code = code_of(&ada).await;
    assert!(says(&mut chat, &format!("/link {code}")).await.starts_with("I have asked, in the chat where this code"));
    confirms(&ada).await;
    gateway.kill();
    gateway.restart().await;
    let mut chat = Chat::open(&gateway.url(), CONVERSATION).await;
    assert!(says(&mut chat, "/whoami").await.starts_with("You are Ada. Here you are webchat.main/"));
    assert_eq!(says(&mut chat, "is it still there?").await, "Under the red pot.");
    ada.says("/session use 2");
    ada.finds("the session", |message| message.ours && message.text.contains("the key is under the red pot")).await;
    ada.says("and now, where is the key?");
    ada.hears("Under the red pot.").await;

    let (people, audit) = (gateway.output_of(&["people", "list"]), gateway.admin("audit").await.to_string());
    assert!(people.contains("webchat.main/") && !people.contains(CONVERSATION), "{people}");
    assert!(audit.contains("webchat.main/") && !audit.contains(CONVERSATION), "{audit}");
    let log = gateway.admin("logs").await.to_string();
    assert!(!log.contains(CONVERSATION) && !gateway.log().contains(CONVERSATION), "{log}");
    assert_eq!(
        says(&mut chat, "/unlink").await,
        "Here I do not know you any more. On your other channels you are still Ada."
    );
    assert_eq!(says(&mut chat, "where is the key?").await, "I do not know.");
}

/// The section of the channel `discord.test`.
fn discord(server: &DiscordServer) -> String {
    let (token, url) = (server.token(), server.api_url());
    format!("[channels.discord.test]\ntoken = \"{token}\"\napi_url = \"{url}\"\npace = \"server\"\n")
}

/// Ada, known on Telegram, has linked Discord, and written there. The agent answers "hello" at once, and all else when the gate is
/// open.
struct Linked {
    double: TelegramDouble,
    server: DiscordServer,
    gateway: Gateway,
    _agent: ScriptedAgent,
    gate: Gate,
    ada: Person,
    on_discord: Channel,
}

impl Linked {
    async fn start() -> Self {
        let (double, server, gate) = (TelegramDouble::start().await, DiscordServer::start().await, Gate::default());
        let held = gate.clone();
        let agent = ScriptedAgent::start(move |call, _| match call.said().as_str() {
            "hello" => Script::replies("Hello."),
            _ => Script::replies("It is sunny.").waiting(&held),
        })
        .await;
        let ada = double.person("Ada");
        let gateway = knowing(&ada, &double).config(&discord(&server)).config(&agent.section()).start().await;
        let lovelace = server.person("Lovelace").await;
        let on_discord = lovelace.direct().await;
        let code = code_of(&ada).await;
        lovelace.says(&on_discord, &format!("/link {code}")).await;
        confirms(&ada).await;
        server.until_bot_texts(&on_discord, 2).await;
        lovelace.says(&on_discord, "hello").await;
        server.until_bot_texts(&on_discord, 3).await;
        gateway.until_settled().await;
        Self { double, server, gateway, _agent: agent, gate, ada, on_discord }
    }

    /// She asks on Telegram, and blocks the agent there before it answers.
    async fn asks_and_blocks(&self) {
        self.ada.says("how is the weather?");
        eventually("her question is worked on", async || (!self.gateway.open_turns().is_empty()).then_some(())).await;
        self.ada.blocks();
        self.gate.open();
    }

    /// Waits until she is answered on Discord, and nothing is owed.
    async fn is_answered(&self) {
        let line = "This answers your message on telegram.test, where I could not deliver it: “how is the weather?”";
        self.server.until_bot_texts(&self.on_discord, 4).await;
        self.gateway.until_settled().await;
        let texts = self.server.bot_texts(&self.on_discord).await;
        assert_eq!(texts[2..], ["Hello.".to_owned(), format!("{line}\n\nIt is sunny.")]);
        assert!(!self.double.bot_texts(self.ada.chat()).iter().any(|text| text.contains("sunny")));
        assert_eq!(self.gateway.undeliverable(), 0);
    }
}

/// A18.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_that_telegram_refuses_comes_on_discord() {
    let linked = Linked::start().await;

    linked.asks_and_blocks().await;

    linked.is_answered().await;
}

/// A18. The process ends when the answer is a dead letter, and is about to be sent elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_before_an_answer_goes_elsewhere_loses_nothing() {
    let mut linked = Linked::start().await;
    linked.gateway.stop().await;
    linked.gateway.spawn_crashing_at("before_elsewhere:1");
    linked.gateway.until_ready().await;

    linked.asks_and_blocks().await;
    linked.gateway.until_crashed().await;
    let texts = linked.server.bot_texts(&linked.on_discord).await;
    assert_eq!(texts.len(), 3, "{texts:?}");
    linked.gateway.restart().await;

    linked.is_answered().await;
}
