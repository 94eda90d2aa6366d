//! End to end on Matrix: the real binary against a real Synapse, with independent clients.

mod access;
mod agents;
mod answers;
mod backlog;
mod commands;
mod crashes;
mod crowd;
mod deferrals;
mod encrypted;
mod failures;
mod files;
mod limits;
mod nodes;
mod outages;
mod promise;
mod rooms;
mod setup;
mod streaming;

use rejoinder_matrix_server::{Account, Homeserver, Human, Message, Person, Proxy};
use rejoinder_tests::{Gateway, GatewayBuilder, ScriptedAgent};

const SILENT: &str = "I have nothing to add to that.";
const FAILED: &str = "Sorry, I could not finish that. Please try again.";
const LATE: &str = "Sorry, that took too long. Please try again.";
const DEFERRAL: &str = "Still working on this.";
const UNREADABLE: &str = "Sorry, I could not read that message. Please send it again.";

const QUIET: &str = "streaming = \"off\"";

/// The path of sends that are not encrypted.
const SEND: &str = "/send/m.room.message/";

/// The section of the channel `matrix.test` at `url`, which admits everybody unless `keys` says otherwise.
fn matrix(url: &str, account: &Account, keys: &str) -> String {
    let unless_set =
        |key: &str, value: &str| if keys.contains(key) { String::new() } else { format!("{key} = {value}") };
    let Account { user, password } = account;
    let (policy, pace) = (unless_set("dm_policy", "\"open\""), unless_set("pace", "\"server\""));
    format!(
        "[channels.matrix.test]\nhomeserver = \"{url}\"\nuser = \"{user}\"\npassword = \"{password}\"\n{policy}\n{pace}\n{keys}\n"
    )
}

/// A gateway between a new account on the shared homeserver and `agent`, to be started, and the account's user id.
async fn between(agent: &ScriptedAgent, keys: &str) -> (GatewayBuilder, String) {
    let homeserver = Homeserver::shared().await;
    between_on(homeserver.url(), homeserver.account("agent").await, agent, keys)
}

/// As [`between`], through a proxy.
async fn through_proxy(agent: &ScriptedAgent, keys: &str) -> (GatewayBuilder, String, Proxy) {
    let homeserver = Homeserver::shared().await;
    let (proxy, account) = (homeserver.proxy().await, homeserver.account("agent").await);
    let (builder, user) = between_on(proxy.url(), account, agent, keys);
    (builder, user, proxy)
}

fn between_on(url: &str, account: Account, agent: &ScriptedAgent, keys: &str) -> (GatewayBuilder, String) {
    let builder = Gateway::builder().config(&matrix(url, &account, keys)).config(&agent.section());
    (builder, account.user)
}

/// As [`between`], without a soft deadline.
async fn patient(agent: &ScriptedAgent, keys: &str) -> (GatewayBuilder, String) {
    let (builder, user) = between(agent, keys).await;
    (builder.config("[guard]\nsoft_deadline = \"off\"\n"), user)
}

/// Starts a gateway with the account `user`, and a person with a chat that it has joined.
async fn with_chat(builder: GatewayBuilder, place: Place, user: &str) -> (Gateway, Chat) {
    let gateway = builder.start().await;
    let chat = Chat::new(Homeserver::shared().await, place, user).await;
    chat.until_joined(user).await;
    (gateway, chat)
}

/// Starts a gateway with the account `user`, and a person who invites it to a direct chat; the last value is the room.
async fn with_ada(builder: GatewayBuilder, user: &str) -> (Gateway, Person, String) {
    let gateway = builder.start().await;
    let ada = Homeserver::shared().await.person("ada").await;
    let room = ada.direct(user).await;
    (gateway, ada, room)
}

/// A person, and the room in which they talk with the account.
enum Chat {
    /// A direct chat.
    Direct(Person, String),
    /// A room with another person; the last value is the account.
    Group(Person, String, String),
    /// An encrypted direct chat.
    Encrypted(Human, String),
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Direct,
    Group,
    Encrypted,
}

impl Chat {
    /// A new person who has invited `agent`.
    async fn new(homeserver: &Homeserver, place: Place, agent: &str) -> Self {
        match place {
            Place::Direct => {
                let ada = homeserver.person("ada").await;
                let room = ada.direct(agent).await;
                Self::Direct(ada, room)
            }
            Place::Group => {
                let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
                let room = ada.room("Friends", &[agent, bob.user()]).await;
                bob.join(&room).await;
                Self::Group(ada, room, agent.to_owned())
            }
            Place::Encrypted => {
                let ada = homeserver.human("ada").await;
                let room = ada.direct(agent).await;
                Self::Encrypted(ada, room)
            }
        }
    }

    /// Waits until `agent` is in the room.
    async fn until_joined(&self, agent: &str) {
        match self {
            Self::Direct(ada, room) | Self::Group(ada, room, _) => ada.until_joined(room, agent).await,
            Self::Encrypted(ada, room) => ada.until_joined(room, agent).await,
        }
    }

    /// Sends a message that is meant for the account.
    async fn says(&self, words: &str) {
        match self {
            Self::Direct(ada, room) => ada.says(room, words).await,
            Self::Group(ada, room, agent) => ada.mentions(room, agent, words).await,
            Self::Encrypted(ada, room) => ada.says(room, words).await,
        };
    }

    /// The messages of `agent` so far.
    async fn hears(&self, agent: &str) -> Vec<String> {
        match self {
            Self::Direct(ada, room) | Self::Group(ada, room, _) => ada.hears(room, agent).await,
            Self::Encrypted(ada, room) => ada.hears(room, agent).await,
        }
    }

    /// Waits until `agent` has sent this many messages.
    async fn until_hears(&self, agent: &str, number: usize) -> Vec<String> {
        match self {
            Self::Direct(ada, room) | Self::Group(ada, room, _) => ada.until_hears(room, agent, number).await,
            Self::Encrypted(ada, room) => {
                ada.until_hears(room, agent, number).await.into_iter().map(|message| message.text).collect()
            }
        }
    }

    /// Waits until `find` returns `Some` for the messages of `agent`.
    async fn until_finds<T>(&self, agent: &str, about: &str, mut find: impl FnMut(&[Message]) -> Option<T>) -> T {
        let theirs = |messages: &[Message]| -> Vec<Message> {
            messages.iter().filter(|message| message.sender == agent).cloned().collect()
        };
        match self {
            Self::Direct(ada, room) | Self::Group(ada, room, _) => {
                ada.until(about, async || find(&theirs(&ada.sees(room).await))).await
            }
            Self::Encrypted(ada, room) => ada.until_sees(room, |messages| find(&theirs(messages))).await,
        }
    }

    /// Waits until this is the text of the last message of `agent`.
    async fn until_last(&self, agent: &str, words: &str) {
        match self {
            Self::Direct(ada, room) | Self::Group(ada, room, _) => {
                let is_said = async || (ada.hears(room, agent).await.last()? == words).then_some(());
                ada.until(&format!("the last message is `{words}`"), is_said).await;
            }
            Self::Encrypted(ada, room) => {
                ada.until_sees(room, |messages| {
                    let last = messages.iter().rev().find(|message| message.sender == agent)?;
                    (last.text == words).then_some(())
                })
                .await;
            }
        }
    }
}

/// Waits until the gateway with the account `agent` has accepted everything sent before: a question that is asked now is
/// answered.
async fn until_accepted(homeserver: &Homeserver, agent: &str) {
    let zoe = homeserver.person("zoe").await;
    let room = zoe.direct(agent).await;
    zoe.says(&room, "are you there?").await;
    zoe.until_hears(&room, agent, 1).await;
}
