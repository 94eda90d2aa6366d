//! The server, as a test holds it.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::task::JoinHandle;

use crate::{
    calls::Call,
    door::{Door, Line},
    fault::Fault,
    hook,
    limits::Limits,
    people::{Group, Person},
    server,
    shared::{Outage, Shared},
    view::{View, VisibleMessage},
    world::{
        Signals, World,
        chat::{ChatKind, Standing},
        update::Pauses,
        user::Bot,
    },
};

/// The bot's id, which begins every token of the double.
const BOT_ID: i64 = 4_200_000_001;
/// The token that is taken unless another is asked for.
pub const TOKEN: &str = "4200000001:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc";
/// The bot's name unless another is asked for.
const USERNAME: &str = "rejoinder_double_bot";

/// A Bot API server. It stops, and all its connections end, when it is dropped.
#[derive(Debug)]
pub struct TelegramDouble {
    shared: Arc<Shared>,
    address: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

impl TelegramDouble {
    /// Starts one on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// When there is none.
    pub async fn start() -> Self {
        Self::start_at(0).await
    }

    /// Starts one on this port of 127.0.0.1.
    ///
    /// # Panics
    /// When it is taken.
    pub async fn start_at(port: u16) -> Self {
        Self::open(port, TOKEN).await.expect("the port is free")
    }

    /// Starts one on this port that takes this token.
    ///
    /// # Errors
    /// When the port is taken, or the token does not begin with a bot's id and a colon.
    pub async fn open(port: u16, token: &str) -> io::Result<Self> {
        let id = token.split_once(':').and_then(|(id, _)| id.parse().ok());
        let id = id.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a token is <id>:<secret>"))?;
        let username = if id == BOT_ID { USERNAME.to_owned() } else { format!("double_{id}_bot") };
        let bot = Bot { id, username, name: "Rejoinder".to_owned() };
        let signals = Arc::<Signals>::default();
        let world = World::new(bot, Arc::clone(&signals));
        let shared = Arc::new(Shared::new(world, signals, token.to_owned()));

        let door = Door::new(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), shared.entry()).await?;
        let address = door.address();
        let routes = server::routes(Arc::clone(&shared)).into_make_service_with_connect_info::<Line>();
        let http = reqwest::Client::builder().no_proxy().build().map_err(io::Error::other)?;
        let tasks = [
            tokio::spawn(async move {
                // It ends with its task only.
                let _ = axum::serve(door, routes).await;
            }),
            tokio::spawn(hook::push_all(Arc::clone(&shared), http)),
        ];
        Ok(Self { shared, address, tasks })
    }

    /// Where it is, for `api_url`: `http://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The token that it takes, unless it was [reset](Self::reset_token).
    #[must_use]
    pub fn token(&self) -> &str {
        &self.shared.token
    }

    /// Resets the bot's token, as BotFather does: what was is worth nothing from now on. Gives the new one.
    #[must_use]
    pub fn reset_token(&self) -> String {
        let token = self.shared.reset_token();
        self.shared.disconnect();
        token
    }

    /// The bot whose token that is.
    #[must_use]
    pub fn bot(&self) -> Bot {
        self.shared.lock().bot.clone()
    }

    /// Somebody with a private chat that is open: the bot may write first.
    #[must_use]
    pub fn person(&self, name: &str) -> Person {
        self.new_person(name, None, false, Standing::Member)
    }

    /// As [`TelegramDouble::person`], with a username.
    #[must_use]
    pub fn person_called(&self, name: &str, username: &str) -> Person {
        self.new_person(name, Some(username), false, Standing::Member)
    }

    /// Somebody who has not opened a private chat, and does so with the first message in it.
    #[must_use]
    pub fn stranger(&self, name: &str) -> Person {
        self.new_person(name, None, false, Standing::NotStarted)
    }

    /// Another bot.
    #[must_use]
    pub fn other_bot(&self, name: &str, username: &str) -> Person {
        self.new_person(name, Some(username), true, Standing::NotStarted)
    }

    fn new_person(&self, name: &str, username: Option<&str>, is_bot: bool, standing: Standing) -> Person {
        let id = self.shared.lock().add_person(name, username, is_bot, standing);
        Person::new(Arc::clone(&self.shared), id)
    }

    /// A basic group that the bot is in.
    #[must_use]
    pub fn group(&self, title: &str) -> Group {
        self.new_group(ChatKind::Group, title)
    }

    /// A supergroup that the bot is in.
    #[must_use]
    pub fn supergroup(&self, title: &str) -> Group {
        self.new_group(ChatKind::Supergroup, title)
    }

    /// A supergroup with topics that the bot is in.
    #[must_use]
    pub fn forum(&self, title: &str) -> Group {
        self.new_group(ChatKind::Forum, title)
    }

    /// A channel that the bot is an administrator of.
    #[must_use]
    pub fn channel(&self, title: &str) -> Group {
        self.new_group(ChatKind::Channel, title)
    }

    fn new_group(&self, kind: ChatKind, title: &str) -> Group {
        let id = self.shared.lock().add_group(kind, title, None);
        Group::new(Arc::clone(&self.shared), id)
    }

    /// A group becomes a supergroup: its old id is refused from now on, with the new one.
    #[must_use]
    pub fn migrate(&self, group: &Group) -> Group {
        let id = self.shared.lock().migrates(group.id());
        Group::new(Arc::clone(&self.shared), id)
    }

    /// An update of any kind; `payload` is what stands under `kind`. Gives whether the bot gets it.
    #[expect(clippy::must_use_candidate, reason = "it is done for the update")]
    pub fn update(&self, kind: &str, payload: &Value) -> bool {
        self.shared.lock().push_update(kind, 0, payload)
    }

    /// Whether the bot hears in groups only what is meant for it; it does at first.
    pub fn privacy(&self, on: bool) {
        self.shared.lock().privacy = on;
    }

    /// Whether private chats may have topics; they may not at first.
    pub fn private_topics(&self, on: bool) {
        self.shared.lock().private_topics = on;
    }

    /// What is refused with 429; nothing at first.
    pub fn limits(&self, limits: Limits) {
        self.shared.lock().limits = limits;
    }

    /// The bot as a whole may send nothing for so long.
    pub fn close_bot(&self, time: Duration) {
        self.shared.lock().spent.close(time, Instant::now());
    }

    /// To this chat nothing may be sent for so long.
    pub fn close_chat(&self, chat: i64, time: Duration) {
        if let Some(chat) = self.shared.lock().chats.get_mut(&chat) {
            chat.spent.close(time, Instant::now());
        }
    }

    /// How long a webhook that failed is left alone: at first, and at most.
    pub fn webhook_pauses(&self, first: Duration, longest: Duration) {
        self.shared.lock().pauses = Pauses { first, longest };
    }

    /// Buttons that were pressed cannot be answered any more.
    pub fn expire_callbacks(&self) {
        self.shared.lock().callbacks.values_mut().for_each(|callback| callback.expired = true);
    }

    /// Something goes wrong with the next calls.
    pub fn fault(&self, fault: Fault) {
        self.shared.lock().faults.add(fault);
    }

    /// No fault waits any more, and what is stalled is disconnected.
    pub fn heal(&self) {
        self.shared.heal();
    }

    /// The whole server fails until [`TelegramDouble::lift`].
    pub fn outage(&self, outage: Outage) {
        self.shared.fail(outage);
    }

    /// The server works again.
    pub fn lift(&self) {
        self.shared.lift();
    }

    /// Every connection ends, as when a server is restarted.
    pub fn disconnect(&self) {
        self.shared.disconnect();
    }

    /// Whether calls are kept for [`TelegramDouble::calls`]; they are at first.
    pub fn keep_calls(&self, keep: bool) {
        self.shared.lock().calls.keep(keep);
    }

    /// How many messages of each chat are kept, at least one; all at first. For benches that send millions.
    pub fn keep_messages(&self, kept: usize) {
        self.shared.lock().kept_messages = kept;
    }

    /// Forgets the calls so far.
    pub fn forget_calls(&self) {
        self.shared.lock().calls.forget();
    }

    /// Writes every call from now on to a file, as JSON lines for `judges/validate.py`.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn log_to(&self, file: &Path) -> io::Result<()> {
        self.shared.lock().calls.log_to(file)
    }

    /// Looks at everything at once.
    pub fn look<T>(&self, look: impl FnOnce(View<'_>) -> T) -> T {
        look(View::of(&self.shared.lock()))
    }

    /// Calls of a method, oldest first.
    #[must_use]
    pub fn calls(&self, method: &str) -> Vec<Call> {
        self.look(|view| view.calls(method))
    }

    /// A chat's messages, oldest first.
    #[must_use]
    pub fn visible(&self, chat: i64) -> Vec<VisibleMessage> {
        self.look(|view| view.visible(chat))
    }

    /// The texts of the bot's messages in a chat, oldest first.
    #[must_use]
    pub fn said(&self, chat: i64) -> Vec<String> {
        self.look(|view| view.said(chat))
    }

    /// Waits until a look gives something. It is looked again when something happens, not by the clock.
    ///
    /// # Panics
    /// When it does not within [`PATIENCE`](crate::PATIENCE); `about` says what was waited for.
    pub async fn until<T>(&self, about: &str, look: impl FnMut(View<'_>) -> Option<T>) -> T {
        self.shared.until(about, look).await
    }

    /// Waits until a method was called so often and each such call has come to something.
    ///
    /// # Panics
    /// When it does not within [`PATIENCE`](crate::PATIENCE).
    pub async fn called(&self, method: &str, times: usize) -> Vec<Call> {
        let about = format!("{times} calls of {method}");
        self.until(&about, |view| Some(view.calls(method)).filter(|calls| calls.len() >= times)).await
    }

    /// Waits until the bot confirmed every update, or its webhook took them.
    ///
    /// # Panics
    /// When it does not within [`PATIENCE`](crate::PATIENCE).
    pub async fn all_confirmed(&self) {
        self.until("all updates are confirmed", |view| (view.pending_updates() == 0).then_some(())).await;
    }
}

impl Drop for TelegramDouble {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.shared.fail(Outage::Refuse);
    }
}
