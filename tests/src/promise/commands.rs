//! Every command that a person can send, with what may follow it.

use super::{Platform, SentMessage, pairing::code_in, texts, wait_for_text};
use crate::{Gateway, GatewayBuilder, Script, ScriptedAgent};

/// What can be chosen, what operators add, and owners who are not told of each request.
const OWN: &str = "[routing]\ndefault_agent = \"main\"\nchoosable = [\"main\", \"other\"]\n\
    [pairing]\nnotify_owners = false\n\
    [commands.hours]\ndescription = \"When we are there\"\nwords = \"We are there {text}.\"\n\
    [commands.joke]\ndescription = \"A joke\"\nprompt = \"Tell a joke about {text}.\"\n";

/// Whom a channel tells apart, as far as commands answer differently there.
#[derive(Clone, Copy, Debug)]
pub enum TellsApart {
    /// People.
    People,
    /// Key holders of a conversation.
    Keys,
    /// Nobody.
    Nobody,
}

/// What is said, and what the answer contains. Each goes on from those before it. It begins with an empty session.
const SAID: [(&str, &str); 53] = [
    ("/history", "Nothing was said yet."),
    ("/retry", "There is no question of yours"),
    ("/undo", "There is nothing left to take back."),
    ("/start", "Hello! Write to me"),
    ("/start from-a-link", "Hello! Write to me"),
    ("/help", "/hours - When we are there"),
    ("hello", "hello by test-model"),
    ("/retry", "hello by test-model"),
    ("/history", "hello by test-model"),
    ("/undo", "Forgotten, with its answer: “hello”"),
    ("/status", "Everything is answered."),
    ("/budget", "Nothing is limited, and nothing was used today."),
    ("/stop", "There is nothing to cancel."),
    ("/cancel", "There is nothing to cancel."),
    ("/session", "Your sessions here"),
    ("/session new Garden", "We start afresh."),
    ("/sessions LIST", "Garden"),
    ("/session rename Wild Cellar", "This session is called Wild Cellar now."),
    ("/session use 1", "We go on with"),
    ("/session use 99", "I know no such session."),
    ("/session delete wild cellar", "is deleted: Wild Cellar."),
    ("/session fly", "begin one; the name may be left out"),
    ("/new Kitchen", "We start afresh."),
    ("/new Kitchen", "Another session is called so already."),
    ("/new", "We start afresh."),
    ("/reset", "We start afresh."),
    ("/agent", "You can choose: "),
    ("/agent nobody", "That agent cannot be chosen."),
    ("/agent OTHER", "In this session other answers from now on."),
    ("hello", "hello by other-model"),
    ("/agent main", "In this session main answers from now on."),
    ("/model", "main answers with the model test-model."),
    ("/model nothing", "That model cannot be chosen."),
    ("/model big-model", "main answers with the model big-model from now on."),
    ("hello", "hello by big-model"),
    ("/queue", "while I work: followup."),
    ("/queue nonsense", "it stays followup."),
    ("/queue Collect", "while I work: collect."),
    ("/queue", "while I work: collect."),
    ("/queue auto", "while I work: followup."),
    ("/voice always", "I cannot speak here."),
    ("/language", "write /language and one of de, en, es or auto."),
    ("/language nonsense", "I do not have that language."),
    ("/language de", "So etwas sage ich dir ab jetzt auf Deutsch."),
    ("/status", "Alles ist beantwortet."),
    ("/language auto", "in der Sprache deiner App"),
    ("/status", "Everything is answered."),
    ("/hours tomorrow", "We are there tomorrow."),
    ("/Hours", "We are there ."),
    ("/joke cats and dogs", "Tell a joke about cats and dogs. by big-model"),
    ("/stop it now", "stop it now by big-model"),
    ("/fly home", "fly home by big-model"),
    ("/export", "Everything since the last /new is in this file."),
];

/// What is said by somebody who can be told apart, and what the answer contains: to a person, and to whoever has a key. Nobody else is told
/// apart.
const TOLD_OF_PEOPLE: [(&str, &str, &str); 8] = [
    ("/whoami", "You are Ada, an owner.", "Here you are webchat."),
    ("/home", "I reach you where you wrote last.", NAMELESS),
    ("/home here", "From now on I reach you in this chat.", NAMELESS),
    ("/home", "I reach you on ", NAMELESS),
    ("/home off", "You have chosen no chat now.", NAMELESS),
    ("/link", "On another channel, in a direct chat with me, write /link", "Write /link where I do"),
    ("/link AAAA-AAAA", "Nobody has this code.", "Nobody has this code."),
    ("/unlink", "There is nothing to take back", "There is nothing to take back"),
];
const NAMELESS: &str = "People cannot be told apart here.";

/// The names of the commands that a person is known to have sent: those of the table.
#[must_use]
pub fn is_shown(name: &str) -> bool {
    let said = SAID.iter().map(|(said, _)| said).chain(TOLD_OF_PEOPLE.iter().map(|(said, ..)| said));
    said.filter_map(|said| said.split_whitespace().next()).any(|first| first == format!("/{name}"))
}

/// The sections of two agents, of which one has two models, and of commands of the operator's. They say after the person, and
/// which model they are.
pub async fn with_own_commands(builder: GatewayBuilder) -> (GatewayBuilder, ScriptedAgent) {
    let agent = ScriptedAgent::start(|call, _| {
        let model = call.body["model"].as_str().expect("a model");
        Script::replies(&format!("{} by {model}", call.said()))
    })
    .await;
    let other = agent.section().replace("[agents.main]", "[agents.other]").replace("test-model", "other-model");
    let main = agent.section_with("models = [\"big-model\"]");
    (builder.config(&main).config(&other).config(OWN), agent)
}

/// Sends everything of the table in its order, and checks each answer: `ask` sends a text and returns what answers it.
pub async fn each_is_answered(apart: TellsApart, mut ask: impl AsyncFnMut(&str) -> String) {
    let mut wrong = Vec::new();
    let of_people = TOLD_OF_PEOPLE.into_iter().map(|(said, person, key)| match apart {
        TellsApart::People => (said, person),
        TellsApart::Keys => (said, key),
        TellsApart::Nobody => (said, NAMELESS),
    });
    for (said, expected) in SAID.into_iter().chain(of_people) {
        let answer = ask(said).await;
        if !answer.contains(expected) {
            wrong.push(format!("{said}: {answer:?} does not contain {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// An owner sends every command, with what may follow it, and each is answered. `says` sends a text to the gateway in one of the
/// ways that there are.
pub async fn every_command_is_answered<P: Platform>(keys: &str, says: impl AsyncFn(&P, &P::Person, &str)) {
    let platform = P::new().await;
    let keys = format!("{keys}\ndm_policy = \"pairing\"\nstreaming = \"off\"");
    let (builder, _agent) = with_own_commands(platform.gateway(&keys)).await;
    let gateway = builder.start().await;
    let [ada, eve, mallory] = [platform.person().await, platform.person().await, platform.person().await];
    platform.says(&ada, "hello").await;
    let code = code_in(&wait_for_text(&platform, &ada, "code").await.text);
    let approved = gateway.output_of(&["pairing", "approve", &code, "--name", "Ada", "--role", "owner"]);
    assert!(approved.contains("Ada"), "{approved}");
    wait_for_text(&platform, &ada, "You have been let in.").await;
    let ask = async |said: &str| answer(&platform, &gateway, &ada, said, &says).await;

    ask("/new").await;
    each_is_answered(TellsApart::People, &ask).await;

    let code = code_in(&ask("/link").await);
    let own = ask(&format!("/link {}", code.to_lowercase().replace('-', " "))).await;
    assert!(own.contains("Here you are Ada to me already."), "{own}");
    for (stranger, command, told) in [(&eve, "approve", "is let in now."), (&mallory, "decline", "is not let in")] {
        platform.says(stranger, "let me in").await;
        let code = code_in(&wait_for_text(&platform, stranger, "code").await.text);
        let unknown = ask(&format!("/{command} AAAA-AAAA")).await;
        assert!(unknown.contains("No request has this code."), "{unknown}");
        let decided = ask(&format!("/{command} {code}")).await;
        assert!(decided.contains(told), "{decided}");
    }
    wait_for_text(&platform, &eve, "You have been let in.").await;
    gateway.until_settled().await;
}

/// What a person sees after they said something: all that is new.
async fn answer<P: Platform>(
    platform: &P,
    gateway: &Gateway,
    person: &P::Person,
    said: &str,
    says: &impl AsyncFn(&P, &P::Person, &str),
) -> String {
    gateway.until_settled().await;
    let before = platform.messages_of(person).await.len();
    says(platform, person, said).await;
    let new = |messages: &[SentMessage]| Some(texts(messages.get(before..)?).join("\n")).filter(|new| !new.is_empty());
    platform.until(person, &format!("an answer to `{said}`"), new).await
}
