//! The server as a process.

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rejoinder_python::Program;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    control::{Control, id},
    fault::Fault,
    gateway::{GatewayAction, Sessions},
    person::Person,
    place::{Channel, Guild},
    view::{Call, Interaction, Message},
};

/// How long a test waits for what must happen: far longer than it takes.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// A Discord server for one test, with one bot. Dropping it ends it.
#[derive(Debug)]
pub struct DiscordServer {
    control: Control,
    url: String,
    gateway_url: String,
    token: String,
    application_id: String,
    bot_id: String,
    _program: Program,
}

#[derive(Deserialize)]
struct Started {
    url: String,
}

#[derive(Deserialize)]
struct Information {
    gateway_url: String,
    token: String,
    application_id: String,
    bot_id: String,
}

#[derive(Deserialize)]
struct VisibleChannel {
    messages: Vec<Message>,
    typing: u64,
}

#[derive(Deserialize)]
struct Revision {
    revision: i64,
}

impl DiscordServer {
    /// Starts a server on a free port.
    ///
    /// # Panics
    /// If Python or its packages are missing: run the tests with `cargo xtask test`.
    pub async fn start() -> Self {
        let starting = tokio::task::spawn_blocking(start_program);
        let (program, line) = starting.await.expect("the server starts");
        let started: Started = serde_json::from_str(&line).unwrap_or_else(|_| {
            panic!("the Discord server did not start (it printed `{line}`): run `cargo xtask test`")
        });
        let control = Control::new(&started.url);
        let Information { gateway_url, token, application_id, bot_id } = control.get("info", &[]).await;
        let url = started.url;
        Self { control, url, gateway_url, token, application_id, bot_id, _program: program }
    }

    /// The base URL in place of `https://discord.com`: the REST API is at `/api/v10` below it.
    #[must_use]
    pub fn api_url(&self) -> &str {
        &self.url
    }

    /// The Gateway's URL, as in `/gateway/bot`.
    #[must_use]
    pub fn gateway_url(&self) -> &str {
        &self.gateway_url
    }

    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    #[must_use]
    pub fn application_id(&self) -> &str {
        &self.application_id
    }

    /// The bot's user id.
    #[must_use]
    pub fn bot_id(&self) -> &str {
        &self.bot_id
    }

    /// The text that mentions the bot.
    #[must_use]
    pub fn bot_mention(&self) -> String {
        format!("<@{}>", self.bot_id)
    }

    /// Creates a person.
    pub async fn person(&self, name: &str) -> Person {
        self.create_person(name, false).await
    }

    /// Creates another bot.
    pub async fn another_bot(&self, name: &str) -> Person {
        self.create_person(name, true).await
    }

    /// Creates many people, each with a direct chat with the bot.
    pub async fn crowd(&self, people: usize) -> Vec<(Person, Channel)> {
        let answers: Vec<Value> = self.control.post("crowd", &json!({ "people": people })).await;
        answers
            .iter()
            .map(|answer| {
                let channel = Channel { control: self.control.clone(), id: id(answer, "channel_id") };
                (self.person_handle(id(answer, "user_id"), String::new()), channel)
            })
            .collect()
    }

    /// Everybody sends `content` to their channel, `messages` times. A `{}` in it is replaced by the message's number. Far
    /// faster than single calls.
    pub async fn all_say(&self, crowd: &[(Person, Channel)], messages: usize, content: &str) {
        self.control.act("flood", &json!({ "from": speakers(crowd), "messages": messages, "content": content })).await;
    }

    /// Everybody sends `content` to their channel, and again as soon as the bot has answered there, for `warm_up` and then
    /// for `time`. Returns the waits of questions that were both asked and answered within `time`.
    pub async fn converse(
        &self,
        crowd: &[(Person, Channel)],
        content: &str,
        warm_up: Duration,
        time: Duration,
    ) -> Vec<Duration> {
        let given = json!({
            "from": speakers(crowd),
            "content": content,
            "warm_up": warm_up.as_secs_f64(),
            "seconds": time.as_secs_f64(),
        });
        let waits: Vec<f64> = self.control.post("converse", &given).await;
        waits.into_iter().map(|wait| Duration::from_secs_f64(wait / 1000.0)).collect()
    }

    /// Creates a guild that the bot is in.
    pub async fn guild(&self, name: &str) -> Guild {
        let answer: Value = self.control.post("guild", &json!({ "name": name })).await;
        Guild { control: self.control.clone(), id: id(&answer, "guild_id"), bot_role: id(&answer, "bot_role_id") }
    }

    /// The channel with this id.
    #[must_use]
    pub fn channel(&self, id: &str) -> Channel {
        Channel { control: self.control.clone(), id: id.to_owned() }
    }

    /// Makes REST calls fail. Returns the fault's number for [`remove_fault`](Self::remove_fault).
    ///
    /// # Panics
    /// If the server returns no number.
    pub async fn fault(&self, fault: Fault) -> u64 {
        let answer: Value = self.control.post("fault", &fault.into_value()).await;
        answer["fault"].as_u64().expect("a fault has a number")
    }

    /// Removes one fault.
    pub async fn remove_fault(&self, fault: u64) {
        self.control.act("lift", &json!({ "fault": fault })).await;
    }

    /// Removes all faults.
    pub async fn clear_faults(&self) {
        self.control.act("lift", &json!({})).await;
    }

    /// Limits `method` on `route` (as in [`Fault::on`]) to `limit` calls per `per`, for each channel or guild; more get a
    /// 429.
    pub async fn limits(&self, method: &str, route: &str, limit: u32, per: Duration) {
        let given = json!({ "method": method, "route": route, "limit": limit, "per": per.as_secs_f64() });
        self.control.act("rate_limit", &given).await;
    }

    /// Performs an action of the Gateway.
    pub async fn gateway(&self, action: GatewayAction) {
        self.control.act("gateway", &action.into_value()).await;
    }

    /// Sends an arbitrary event to all connected clients, such as a malformed one or one of an unknown kind.
    pub async fn event(&self, name: &str, data: &Value) {
        self.control.act("event", &json!({ "name": name, "data": data })).await;
    }

    /// Changes settings, which `server/settings.py` lists.
    ///
    /// # Panics
    /// If there is no such setting.
    pub async fn set(&self, settings: Value) {
        self.control.act("settings", &settings).await;
    }

    /// Advances the clock for everything that has a lifetime: interactions, their tokens, nonces.
    pub async fn advance(&self, time: Duration) {
        self.control.act("clock", &json!({ "advance": time.as_secs_f64() })).await;
    }

    /// Resets the bot's token: all sessions end, and the old token becomes invalid. Returns the new one.
    pub async fn reset_token(&self) -> String {
        let answer: Value = self.control.post("token", &json!({})).await;
        id(&answer, "token")
    }

    /// All messages in a channel, oldest first, including ephemeral ones.
    pub async fn visible(&self, channel: &Channel) -> Vec<Message> {
        messages(&self.control, channel, None).await
    }

    /// The texts of the bot's messages in a channel, oldest first.
    pub async fn bot_texts(&self, channel: &Channel) -> Vec<String> {
        let visible = self.visible(channel).await;
        visible.into_iter().filter(|message| message.ours && !message.loading).map(|message| message.content).collect()
    }

    /// How often the bot has sent a typing notice to a channel.
    pub async fn typing(&self, channel: &Channel) -> u64 {
        let seen: VisibleChannel = self.control.get("visible", &[("channel_id", channel.id())]).await;
        seen.typing
    }

    /// Adds a link preview to a message: an update that is not an edit.
    pub async fn unfurls(&self, message: &Message) {
        let given = json!({ "channel_id": message.channel_id, "message_id": message.id });
        self.control.act("unfurl", &given).await;
    }

    /// The REST calls so far.
    pub async fn calls(&self) -> Vec<Call> {
        self.control.get("calls", &[]).await
    }

    /// The calls of `method` whose path ends with `path_end`.
    pub async fn calls_to(&self, method: &str, path_end: &str) -> Vec<Call> {
        let mut calls = self.calls().await;
        calls.retain(|call| call.method == method && call.path.ends_with(path_end));
        calls
    }

    pub async fn forget_calls(&self) {
        self.control.act("forget_calls", &json!({})).await;
    }

    /// What clients have done at the Gateway.
    pub async fn sessions(&self) -> Sessions {
        self.control.get("sessions", &[]).await
    }

    /// The current state of an interaction.
    pub async fn interaction(&self, interaction: &Interaction) -> Interaction {
        self.control.get("interaction", &[("interaction_id", &interaction.id)]).await
    }

    /// The names of the registered commands of a guild, or of the global ones.
    pub async fn commands(&self, guild: Option<&Guild>) -> Vec<String> {
        match guild {
            Some(guild) => self.control.get("commands", &[("guild_id", guild.id())]).await,
            None => self.control.get("commands", &[]).await,
        }
    }

    /// The requests in the last ten minutes that count towards a ban: 401, 403, 429.
    ///
    /// # Panics
    /// If the server does not return it.
    pub async fn invalid_requests(&self) -> u64 {
        let answer: Value = self.control.get("info", &[]).await;
        answer["invalid_requests"].as_u64().expect("the server counts them")
    }

    /// Evaluates `what` again after every change until it returns `Some`.
    ///
    /// # Panics
    /// If it does not within [`PATIENCE`].
    pub async fn until<T>(&self, about: &str, mut what: impl AsyncFnMut() -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            let Revision { revision } = self.control.get("wait", &[]).await;
            if let Some(found) = what().await {
                return found;
            }
            let left = PATIENCE.saturating_sub(started.elapsed());
            assert!(!left.is_zero(), "waited {PATIENCE:?} in vain: {about}");
            let query = [("after", &*revision.to_string()), ("seconds", &*left.as_secs_f64().to_string())];
            let _: Revision = self.control.get("wait", &query).await;
        }
    }

    /// Waits until at least one session has a connection.
    pub async fn until_connected(&self) -> Sessions {
        self.until("a client is connected", async || Some(self.sessions().await).filter(|now| now.connected > 0)).await
    }

    /// Waits until the bot has sent this many messages to a channel, and returns their texts.
    pub async fn until_bot_texts(&self, channel: &Channel, number: usize) -> Vec<String> {
        let about = format!("{number} messages of the bot");
        self.until(&about, async || Some(self.bot_texts(channel).await).filter(|texts| texts.len() >= number)).await
    }

    async fn create_person(&self, name: &str, bot: bool) -> Person {
        let answer: Value = self.control.post("person", &json!({ "name": name, "bot": bot })).await;
        self.person_handle(id(&answer, "user_id"), id(&answer, "username"))
    }

    fn person_handle(&self, id: String, username: String) -> Person {
        Person { control: self.control.clone(), id, username, bot_mention: self.bot_mention() }
    }
}

/// Starts the server's process; returns the line that it prints when it listens.
fn start_program() -> (Program, String) {
    let program = Program::start(python(), env!("CARGO_MANIFEST_DIR"), "server", "REJOINDER_DISCORD_FORKS");
    let mut line = String::new();
    BufReader::new(program.stream()).read_line(&mut line).expect("the server's output is read");
    (program, line)
}

/// People and their channels, in the format of the control API.
fn speakers(crowd: &[(Person, Channel)]) -> Vec<Value> {
    crowd.iter().map(|(person, channel)| json!({ "user_id": person.id(), "channel_id": channel.id() })).collect()
}

/// The Python with the packages of `requirements.txt`: `$REJOINDER_PYTHON`, or the one that `cargo xtask test` installs.
///
/// # Panics
/// If there is neither.
#[must_use]
pub fn python() -> PathBuf {
    let installed = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/counterparts/python/bin/python");
    let python = env::var_os("REJOINDER_PYTHON").map_or_else(installed, PathBuf::from);
    assert!(python.is_file(), "{} is missing: run `cargo xtask test`", python.display());
    python
}

pub(crate) async fn messages(control: &Control, channel: &Channel, viewer: Option<&str>) -> Vec<Message> {
    let mut query = vec![("channel_id", channel.id())];
    query.extend(viewer.map(|viewer| ("viewer", viewer)));
    let seen: VisibleChannel = control.get("visible", &query).await;
    seen.messages
}
