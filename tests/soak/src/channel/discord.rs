//! A bot on the Discord server of the tests. Every fourth chat is a channel of a guild, where people mention the bot.
//!
//! It never forgets a session: what people write for the first time meanwhile, in a chat that the bot does not know, no bot
//! could read.

use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rand::rngs::StdRng;
use rejoinder_discord_server::{Channel as Place, DiscordServer, Fault, GatewayAction, Guild, Person, Scope};

use super::{Channel, NAME, Platform, Seen, one_of};
use crate::words;

#[derive(Clone)]
struct Chat {
    person: Person,
    place: Place,
    is_direct: bool,
}

pub(super) struct Discord {
    server: DiscordServer,
    guild: Guild,
    chats: Mutex<HashMap<String, Chat>>,
    count: AtomicUsize,
}

impl Discord {
    pub(super) async fn start() -> Self {
        let server = DiscordServer::start().await;
        let guild = server.guild("Friends").await;
        Self { server, guild, chats: Mutex::default(), count: AtomicUsize::new(0) }
    }

    fn chat(&self, id: &str) -> Chat {
        self.chats.lock().unwrap_or_else(PoisonError::into_inner)[id].clone()
    }
}

#[async_trait]
impl Channel for Discord {
    fn platform(&self) -> Platform {
        Platform::Discord
    }

    fn section(&self) -> String {
        format!(
            "[channels.discord.{NAME}]\ntoken = \"{}\"\napi_url = \"{}\"\ngateway_url = \"{}\"\ndm_policy = \"open\"\n",
            self.server.token(),
            self.server.api_url(),
            self.server.gateway_url()
        )
    }

    async fn open(&self) -> String {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let person = self.server.person(&format!("Bea {number}")).await;
        let is_direct = number % 4 != 3;
        let place = if is_direct { person.direct().await } else { self.guild.channel(&format!("room-{number}")).await };
        let id = place.id().to_owned();
        let chat = Chat { person, place, is_direct };
        self.chats.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), chat);
        id
    }

    fn takes_commands(&self, chat: &str) -> bool {
        self.chat(chat).is_direct
    }

    async fn say(&self, chat: &str, _key: &str, text: &str) -> Option<String> {
        let chat = self.chat(chat);
        if chat.is_direct {
            chat.person.says(&chat.place, text).await;
        } else {
            chat.person.mentions(&chat.place, text).await;
        }
        None
    }

    async fn fail(&self, random: &mut StdRng) -> &'static str {
        let times = one_of(random, &[1, 2, 3]);
        let kind = one_of(random, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let calls = match one_of(random, &[0, 1, 2]) {
            0 => Fault::on("PATCH", "/channels/*/messages/*"),
            _ => Fault::on("POST", "/channels/*/messages"),
        };
        let pause = Duration::from_millis(one_of(random, &[500, 2000]));
        let (fault, what) = match kind {
            0 => (calls.rate_limited(pause, Scope::User).times(times), "429"),
            1 => (Fault::on_everything().rate_limited(pause, Scope::Global).times(1), "429 for the whole account"),
            2 => (calls.failed(500).always(), "5xx, not executed"),
            3 => (calls.failed_after_executing(502).times(times), "5xx, executed"),
            4 => (calls.executed_then_dropped().times(times), "lost response"),
            5 => (calls.reset().times(times), "reset connection"),
            6 => (calls.executed_then_silent().times(times), "hang"),
            7 => (calls.answered_late(Duration::from_secs(2)).always(), "slow response"),
            // Only answers: where every way of answering is refused, the promise is a dead letter.
            8 => (
                calls.refused(400, 200_000, "Message was blocked by automatic moderation").saying(words::END),
                "refused answer",
            ),
            9 => {
                self.server.gateway(one_of(random, &[GatewayAction::Abort, GatewayAction::Reconnect])).await;
                return "events cut off";
            }
            _ => {
                self.server.fault(Fault::on_everything().reset().always()).await;
                self.server.gateway(GatewayAction::Refuses(true)).await;
                self.server.gateway(GatewayAction::Abort).await;
                return "outage";
            }
        };
        self.server.fault(fault).await;
        what
    }

    async fn heal(&self) {
        self.server.clear_faults().await;
        self.server.gateway(GatewayAction::Refuses(false)).await;
        self.server.forget_calls().await;
    }

    fn unacknowledged(&self) -> usize {
        0
    }

    fn is_send(&self, line: &str) -> bool {
        line.contains("/messages") && !line.starts_with("GET")
    }

    async fn seen(&self, chat: &str) -> Vec<Seen> {
        let messages = self.server.visible(&self.chat(chat).place).await;
        let seen = messages.into_iter().filter_map(|message| {
            if message.ours {
                return Some(Seen::Text(message.content));
            }
            message.reactions.iter().any(|reaction| reaction.ours).then_some(Seen::Reaction { to: message.content })
        });
        seen.collect()
    }
}
