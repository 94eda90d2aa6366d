//! The shared promise scenarios on Discord: a message that may have arrived is sent again with the same nonce, and Discord
//! shows it once.

use std::cell::RefCell;

use rejoinder_discord_server::{Channel, DiscordServer, Fault, GatewayAction, Message, Person};
use rejoinder_tests::{
    Gateway, GatewayBuilder,
    promise::{Calls, Failure, FileMessage, Platform, SentMessage, SharesFiles},
};
use tempfile::NamedTempFile;

/// Where people write, and whether Discord forgets the session of a gateway that has crashed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Place {
    #[default]
    DirectChat,
    DirectChatForgotten,
    Server,
    ServerForgotten,
}

/// A Discord double, and the file that the gateway reads its token from.
pub(crate) struct Discord {
    server: DiscordServer,
    token: NamedTempFile,
    next: RefCell<String>,
    place: Place,
}

impl Discord {
    fn is_in_a_server(&self) -> bool {
        matches!(self.place, Place::Server | Place::ServerForgotten)
    }
}

impl Platform for Discord {
    type Person = (Person, Channel);
    type Place = Place;

    const PARAGRAPH: usize = 1200;
    const SHOWS_ONCE: bool = true;

    async fn at(place: Place) -> Self {
        let server = DiscordServer::start().await;
        let token = NamedTempFile::new().expect("a file for the token");
        std::fs::write(token.path(), server.token()).expect("the token is written");
        Self { server, token, next: RefCell::default(), place }
    }

    fn gateway(&self, keys: &str) -> GatewayBuilder {
        let section = crate::discord(&self.server, keys);
        let (inline, file) = (format!("\"{}\"", self.server.token()), self.token.path().display());
        Gateway::builder().config(&section.replace(&inline, &format!("{{ file = \"{file}\" }}")))
    }

    async fn person(&self) -> Self::Person {
        let person = self.server.person("Ada").await;
        let chat = if self.is_in_a_server() {
            self.server.guild("Friends").await.channel("general").await
        } else {
            person.direct().await
        };
        (person, chat)
    }

    async fn says(&self, (person, chat): &Self::Person, text: &str) {
        if self.is_in_a_server() {
            person.mentions(chat, text).await;
        } else {
            person.says(chat, text).await;
        }
    }

    async fn picks(&self, (person, chat): &Self::Person, question: &SentMessage, choice: &str) {
        let shown = self.server.visible(chat).await.into_iter().find(|message| message.id == question.id);
        person.clicks(&shown.expect("the question is shown"), choice).await;
    }

    async fn after_crash(&self) {
        if matches!(self.place, Place::DirectChatForgotten | Place::ServerForgotten) {
            self.server.gateway(GatewayAction::Forget).await;
        }
    }

    async fn messages_of(&self, (_, chat): &Self::Person) -> Vec<SentMessage> {
        let ours = self.server.visible(chat).await.into_iter().filter(|message| message.ours && !message.loading);
        ours.map(|message| SentMessage { id: message.id, text: message.content }).collect()
    }

    async fn until<T>(
        &self,
        person: &Self::Person,
        about: &str,
        mut find: impl FnMut(&[SentMessage]) -> Option<T>,
    ) -> T {
        self.server.until(about, async || find(&self.messages_of(person).await)).await
    }

    async fn fail_calls(&self, calls: Calls, failure: Failure, times: Option<u32>) {
        let (calls, text) = match calls {
            Calls::All => (Fault::on_everything(), ""),
            Calls::Sending(text) => (Fault::on("POST", "/channels/*/messages"), text),
        };
        let fault = match failure {
            Failure::BadGateway | Failure::Page => calls.failed(502),
            Failure::DoneAndBadGateway => calls.failed_after_executing(502),
            Failure::Reset => calls.reset(),
            Failure::Lost => calls.executed_then_dropped(),
            Failure::Silence => calls.executed_then_silent(),
            Failure::Refused => calls.refused(400, 200_000, "Message was blocked by automatic moderation"),
            Failure::Slow => calls.answered_late(Failure::SLOW_DELAY),
        };
        let fault = fault.saying(text);
        self.server
            .fault(match times {
                Some(times) => fault.times(times),
                None => fault.always(),
            })
            .await;
    }

    async fn clear_faults(&self) {
        self.server.clear_faults().await;
    }

    async fn disconnect(&self) {
        self.server.fault(Fault::on_everything().reset().always()).await;
        self.server.gateway(GatewayAction::Refuses(true)).await;
        self.server.gateway(GatewayAction::Abort).await;
    }

    async fn reconnect(&self) {
        self.server.clear_faults().await;
        self.server.gateway(GatewayAction::Refuses(false)).await;
        self.server.until_connected().await;
    }

    async fn revoke_token(&self) {
        self.next.replace(self.server.reset_token().await);
    }

    async fn restore_token(&self) {
        std::fs::write(self.token.path(), &*self.next.borrow()).expect("the token is written");
    }
}

impl SharesFiles for Discord {
    const DELIVERIES: usize = 1;

    async fn shows(&self, (person, chat): &Self::Person, picture: &[u8], caption: &str) {
        person.sends_files(chat, caption, &[("a.png", picture)]).await;
    }

    async fn file_messages_of(&self, (_, chat): &Self::Person) -> Vec<FileMessage> {
        let ours = self.server.visible(chat).await.into_iter().filter(|message| message.ours && !message.loading);
        let sizes = |message: &Message| message.attachments.iter().map(|file| file.size).collect();
        ours.map(|message| FileMessage { sizes: sizes(&message), text: message.content }).collect()
    }
}

rejoinder_tests::promise_tests!(Discord, places: [Place::DirectChat]);
