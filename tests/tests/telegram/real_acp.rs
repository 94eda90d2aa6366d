//! A real agent with the Agent Client Protocol, which `.ci/acp` installs and connects to a scripted model (`.ci/acp-model.py`). Asked for
//! a file, it runs a command, for which it needs permission.

use std::{env, path::Path};

use rejoinder_telegram_double::{Person, TelegramDouble};
use rejoinder_tests::{Gateway, eventually};
use tempfile::TempDir;

use crate::telegram;

const APPROVE: usize = 0;
const DECLINE: usize = 1;

/// What the model answers to anything else.
const ANSWER: &str = "The zebra is made of quartz.";

/// What it answers slowly about a horse.
const HORSE: &str = "A horse has four legs, a mane and a tail, and it can sleep while it stands.";

/// Grace decides for Ada.
struct Chat {
    double: TelegramDouble,
    gateway: Gateway,
    grace: Person,
    ada: Person,
    /// Where the agent works.
    folder: TempDir,
}

impl Chat {
    /// With these keys of the channel.
    async fn start(keys: &str) -> Self {
        let double = TelegramDouble::start().await;
        let (grace, ada) = (double.person("Grace"), double.person("Ada"));
        let folder = tempfile::tempdir().expect("a folder");
        let owner = format!("[people.Grace]\nrole = \"owner\"\nidentities = [\"telegram.test/{}\"]\n", grace.id());
        let agent = section(folder.path());
        let builder = Gateway::builder().config(&telegram(&double, keys)).config(&agent).config(&owner);
        let gateway = builder.start().await;
        grace.says("zebra-quartz please");
        grace.hears(ANSWER).await;
        Self { double, gateway, grace, ada, folder }
    }

    /// Waits until Grace is asked whether the agent may run this command, and presses a button.
    async fn decides(&self, command: &str, button: usize) {
        let question = self.grace.finds("the question", |it| it.text.contains(command) && !it.buttons.is_empty()).await;
        self.grace.presses(question.id, button);
    }

    fn has(&self, file: &str) -> bool {
        self.folder.path().join(file).exists()
    }

    /// What Ada sees in the end.
    async fn seen(&self) -> Vec<String> {
        eventually("nothing is owed", async || self.gateway.open_turns().is_empty().then_some(())).await;
        self.double.bot_texts(self.ada.chat())
    }
}

/// The agent's section: its command line is separated by spaces, as the names of the variables that it gets are.
fn section(folder: &Path) -> String {
    let words = |name: &str| -> Vec<String> {
        let value = env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run .ci/acp"));
        value.split_whitespace().map(str::to_owned).collect()
    };
    let (command, inherit) = (words("REJOINDER_ACP_AGENT"), words("REJOINDER_ACP_INHERIT"));
    let mode = env::var("REJOINDER_ACP_MODE").map(|mode| format!("mode = \"{mode}\"\n")).unwrap_or_default();
    let cwd = folder.display();
    format!("[agents.main]\nkind = \"acp\"\ncommand = {command:?}\ninherit = {inherit:?}\ncwd = \"{cwd}\"\n{mode}")
}

/// G3. In one session: the second turn goes on where the first one ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "needs a real agent: run .ci/acp"]
async fn a_real_agent_does_what_is_approved_and_nothing_else() {
    let chat = Chat::start("").await;

    chat.ada.says("write the first file");
    chat.decides("touch first", APPROVE).await;
    chat.ada.hears("The first file is there.").await;
    chat.ada.says("write the second file");
    chat.decides("touch second", DECLINE).await;
    chat.ada.hears("The second file is not there.").await;

    assert_eq!(chat.seen().await, ["The first file is there.", "The second file is not there."]);
    assert!(chat.has("first") && !chat.has("second"));
}

/// It gets what comes while it answers as another prompt of the same run.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "needs a real agent: run .ci/acp"]
async fn a_newer_message_steers_a_real_agent() {
    let chat = Chat::start("queue = \"steer\"").await;
    chat.ada.says("tell me about a horse");
    eventually("it runs", async || chat.gateway.log().matches("an ACP agent has begun a session").nth(1).map(|_| ()))
        .await;

    chat.ada.says("zebra-quartz please");
    let both = format!("{HORSE}\n\n{ANSWER}");
    chat.ada.hears(&both).await;

    assert_eq!(chat.seen().await, [both]);
}

/// What comes after it has asked for an approval does not steer it, and is answered when it has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "needs a real agent: run .ci/acp"]
async fn a_message_while_an_approved_command_runs_is_answered_after_it() {
    let chat = Chat::start("queue = \"steer\"").await;
    chat.ada.says("write the third file");
    chat.decides("touch third", APPROVE).await;
    eventually("the command runs", async || chat.has("begun").then_some(())).await;

    chat.ada.says("zebra-quartz please");
    eventually("it waits", async || (chat.gateway.open_turns().len() == 2).then_some(())).await;
    std::fs::write(chat.folder.path().join("go"), "").expect("the folder is there");
    chat.ada.hears(ANSWER).await;

    assert_eq!(chat.seen().await, ["The third file is there.", ANSWER]);
    assert!(chat.has("third"));
}

/// Its session is left to the other message: the prompt is cancelled, and a new one is told the decision.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "needs a real agent: run .ci/acp"]
async fn a_real_agent_answers_another_message_while_it_waits() {
    let chat = Chat::start("").await;
    chat.ada.says("write the fourth file");
    chat.grace.finds("the question", |it| it.text.contains("touch fourth") && !it.buttons.is_empty()).await;

    chat.ada.says("zebra-quartz please");
    chat.ada.hears(ANSWER).await;
    assert!(!chat.has("fourth"));
    chat.decides("touch fourth", APPROVE).await;
    chat.ada.hears("The fourth file is there.").await;

    let mut seen = chat.seen().await;
    seen.sort();
    assert_eq!(seen, ["The fourth file is there.", ANSWER]);
    assert!(chat.has("fourth"));
}
