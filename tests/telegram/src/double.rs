//! The server as seen by a test.

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
    fault::Fault,
    hook,
    limits::Limits,
    listener::{ConnectionHandle, PausableListener},
    people::{Group, Person},
    server,
    shared::{Outage, Shared},
    view::{View, VisibleMessage},
    world::{
        Signals, World,
        chat::{ChatKind, Membership},
        update::Pauses,
        user::Bot,
    },
};

/// The bot's id, with which the default token begins.
const BOT_ID: i64 = 4_200_000_001;
/// The default token.
pub const TOKEN: &str = "4200000001:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc";
/// The bot's name unless another is asked for.
const USERNAME: &str = "rejoinder_double_bot";

/// A Bot API server. Dropping it stops it and closes all connections.
#[derive(Debug)]
pub struct TelegramDouble {
    shared: Arc<Shared>,
    address: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

impl TelegramDouble {
    /// Starts a server on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// If there is none.
    pub async fn start() -> Self {
        Self::start_at(0).await
    }

    /// Starts a server on this port of 127.0.0.1.
    ///
    /// # Panics
    /// If the port is in use.
    pub async fn start_at(port: u16) -> Self {
        Self::open(port, TOKEN).await.expect("the port is free")
    }

    /// Starts a server on this port for this token.
    ///
    /// # Errors
    /// If the port is in use, or the token does not begin with a bot's id and a colon.
    pub async fn open(port: u16, token: &str) -> io::Result<Self> {
        let id = token.split_once(':').and_then(|(id, _)| id.parse().ok());
        let id = id.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a token is <id>:<secret>"))?;
        let username = if id == BOT_ID { USERNAME.to_owned() } else { format!("double_{id}_bot") };
        let bot = Bot { id, username, name: "Rejoinder".to_owned() };
        let signals = Arc::<Signals>::default();
        let world = World::new(bot, Arc::clone(&signals));
        let shared = Arc::new(Shared::new(world, signals, token.to_owned()));

        let listener =
            PausableListener::new(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), shared.listener_state()).await?;
        let address = listener.address();
        let routes = server::routes(Arc::clone(&shared)).into_make_service_with_connect_info::<ConnectionHandle>();
        let http = reqwest::Client::builder().no_proxy().build().map_err(io::Error::other)?;
        let tasks = [
            tokio::spawn(async move {
                // Serving ends only when its task is aborted.
                let _ = axum::serve(listener, routes).await;
            }),
            tokio::spawn(hook::push_all(Arc::clone(&shared), http)),
        ];
        Ok(Self { shared, address, tasks })
    }

    /// The base URL for `api_url`: `http://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The valid token, unless it was [reset](Self::reset_token).
    #[must_use]
    pub fn token(&self) -> &str {
        &self.shared.token
    }

    /// Resets the bot's token, as BotFather does: the old one becomes invalid. Returns the new one.
    #[must_use]
    pub fn reset_token(&self) -> String {
        let token = self.shared.reset_token();
        self.shared.disconnect();
        token
    }

    /// The bot that the token belongs to.
    #[must_use]
    pub fn bot(&self) -> Bot {
        self.shared.lock().bot.clone()
    }

    /// A new person with an open private chat, so that the bot may write first.
    #[must_use]
    pub fn person(&self, name: &str) -> Person {
        self.new_person(name, None, false, Membership::Member)
    }

    /// As [`TelegramDouble::person`], with a username.
    #[must_use]
    pub fn person_called(&self, name: &str, username: &str) -> Person {
        self.new_person(name, Some(username), false, Membership::Member)
    }

    /// A new person whose private chat opens with their first message.
    #[must_use]
    pub fn stranger(&self, name: &str) -> Person {
        self.new_person(name, None, false, Membership::NotStarted)
    }

    /// Another bot.
    #[must_use]
    pub fn other_bot(&self, name: &str, username: &str) -> Person {
        self.new_person(name, Some(username), true, Membership::NotStarted)
    }

    fn new_person(&self, name: &str, username: Option<&str>, is_bot: bool, membership: Membership) -> Person {
        let id = self.shared.lock().add_person(name, username, is_bot, membership);
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

    /// Upgrades a group to a supergroup: calls with the old id are rejected with an error that contains the new one.
    #[must_use]
    pub fn migrate(&self, group: &Group) -> Group {
        let id = self.shared.lock().migrate(group.id());
        Group::new(Arc::clone(&self.shared), id)
    }

    /// Pushes an update of any kind, with `payload` as the value of `kind`. Returns whether the bot gets it.
    #[expect(clippy::must_use_candidate, reason = "callers often want only the update")]
    pub fn update(&self, kind: &str, payload: &Value) -> bool {
        self.shared.lock().push_update(kind, 0, payload)
    }

    /// Pushes an update with this JSON as it is, even without a number.
    pub fn raw_update(&self, body: &Value) {
        self.shared.lock().push_raw_update(&body.to_string());
    }

    /// Sets privacy mode: in groups, the bot gets only messages directed at it. On by default.
    pub fn privacy(&self, on: bool) {
        self.shared.lock().privacy = on;
    }

    /// Allows topics in private chats. Off by default.
    pub fn private_topics(&self, on: bool) {
        self.shared.lock().private_topics = on;
    }

    /// Sets the rate limits that cause a 429. None by default.
    pub fn limits(&self, limits: Limits) {
        self.shared.lock().limits = limits;
    }

    /// Rate limits the whole bot for this long.
    pub fn close_bot(&self, time: Duration) {
        self.shared.lock().spent.close(time, Instant::now());
    }

    /// Rate limits one chat for this long.
    pub fn close_chat(&self, chat: i64, time: Duration) {
        if let Some(chat) = self.shared.lock().chats.get_mut(&chat) {
            chat.spent.close(time, Instant::now());
        }
    }

    /// Sets the backoff for a webhook that fails: the first and the longest pause.
    pub fn webhook_pauses(&self, first: Duration, longest: Duration) {
        self.shared.lock().pauses = Pauses { first, longest };
    }

    /// Expires all callback queries, so that they can no longer be answered.
    pub fn expire_callbacks(&self) {
        self.shared.lock().callbacks.values_mut().for_each(|callback| callback.expired = true);
    }

    /// Makes further calls fail.
    pub fn fault(&self, fault: Fault) {
        self.shared.lock().faults.add(fault);
    }

    /// Removes all faults and disconnects stalled calls.
    pub fn clear_faults(&self) {
        self.shared.clear_faults();
    }

    /// Makes the whole server fail until [`TelegramDouble::end_outage`].
    pub fn start_outage(&self, outage: Outage) {
        self.shared.start_outage(outage);
    }

    /// Ends an outage.
    pub fn end_outage(&self) {
        self.shared.end_outage();
    }

    /// Closes all connections, as a restart of the server does.
    pub fn disconnect(&self) {
        self.shared.disconnect();
    }

    /// Sets whether calls are kept for [`TelegramDouble::calls`]. On by default.
    pub fn keep_calls(&self, keep: bool) {
        self.shared.lock().calls.keep(keep);
    }

    /// Sets how many messages of each chat are kept, at least one. All by default; for benchmarks that send millions.
    pub fn keep_messages(&self, kept: usize) {
        self.shared.lock().kept_messages = kept;
    }

    pub fn forget_calls(&self) {
        self.shared.lock().calls.forget();
    }

    /// Writes every further call to a file, as JSON lines for `judges/validate.py`.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn log_to(&self, file: &Path) -> io::Result<()> {
        self.shared.lock().calls.log_to(file)
    }

    /// Evaluates `inspect` under a single lock.
    pub fn inspect<T>(&self, inspect: impl FnOnce(View<'_>) -> T) -> T {
        inspect(View::of(&self.shared.lock()))
    }

    /// The calls of a method, oldest first.
    #[must_use]
    pub fn calls(&self, method: &str) -> Vec<Call> {
        self.inspect(|view| view.calls(method))
    }

    /// A chat's messages, oldest first.
    #[must_use]
    pub fn visible(&self, chat: i64) -> Vec<VisibleMessage> {
        self.inspect(|view| view.visible(chat))
    }

    /// The texts of the bot's messages in a chat, oldest first.
    #[must_use]
    pub fn bot_texts(&self, chat: i64) -> Vec<String> {
        self.inspect(|view| view.bot_texts(chat))
    }

    /// Waits until `check` returns `Some`. It is evaluated again after each change, not by a timer.
    ///
    /// # Panics
    /// If it does not within [`PATIENCE`](crate::PATIENCE), naming `about`.
    pub async fn until<T>(&self, about: &str, check: impl FnMut(View<'_>) -> Option<T>) -> T {
        self.shared.until(about, check).await
    }

    /// Waits until a method was called this many times.
    ///
    /// # Panics
    /// If it does not within [`PATIENCE`](crate::PATIENCE).
    pub async fn until_called(&self, method: &str, times: usize) -> Vec<Call> {
        let about = format!("{times} calls of {method}");
        self.until(&about, |view| Some(view.calls(method)).filter(|calls| calls.len() >= times)).await
    }

    /// Waits until the bot has confirmed every update, or its webhook has accepted them.
    ///
    /// # Panics
    /// If it does not within [`PATIENCE`](crate::PATIENCE).
    pub async fn all_confirmed(&self) {
        self.until("all updates are confirmed", |view| (view.pending_updates() == 0).then_some(())).await;
    }
}

impl Drop for TelegramDouble {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.shared.start_outage(Outage::Refuse);
    }
}
