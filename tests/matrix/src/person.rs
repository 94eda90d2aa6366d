//! A person who uses the client API without encryption.

use std::{
    collections::{HashMap, HashSet},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use serde_json::{Value, json};

use crate::{PATIENCE, client, view, view::Message};

/// A person whose client does not encrypt.
#[derive(Debug)]
pub struct Person {
    client: reqwest::Client,
    base: String,
    user: String,
    token: String,
    sent: AtomicU64,
}

impl Person {
    pub(crate) fn new(homeserver: &str, user: String, token: String) -> Self {
        let base = format!("{homeserver}/_matrix/client/v3");
        Self { client: client(), base, user, token, sent: AtomicU64::new(0) }
    }

    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Creates a direct chat and invites `other`; returns the room's id.
    pub async fn direct(&self, other: &str) -> String {
        let given = json!({ "preset": "trusted_private_chat", "is_direct": true, "invite": [other] });
        self.create(&given).await
    }

    /// Creates a room and invites `others`; returns the room's id.
    pub async fn room(&self, name: &str, others: &[&str]) -> String {
        self.create(&json!({ "preset": "private_chat", "name": name, "invite": others })).await
    }

    /// Creates a room from the body of `createRoom`; returns its id.
    ///
    /// # Panics
    /// If the room is not created.
    pub async fn create(&self, given: &Value) -> String {
        let created = self.call("POST", "/createRoom", Some(given)).await;
        created["room_id"].as_str().expect("a new room has an id").to_owned()
    }

    pub async fn invite(&self, room: &str, user: &str) {
        self.call("POST", &format!("/rooms/{room}/invite"), Some(&json!({ "user_id": user }))).await;
    }

    pub async fn join(&self, room: &str) {
        self.call("POST", &format!("/rooms/{room}/join"), Some(&json!({}))).await;
    }

    pub async fn kick(&self, room: &str, user: &str) {
        self.call("POST", &format!("/rooms/{room}/kick"), Some(&json!({ "user_id": user }))).await;
    }

    pub async fn bans(&self, room: &str, user: &str) {
        self.call("POST", &format!("/rooms/{room}/ban"), Some(&json!({ "user_id": user }))).await;
    }

    pub async fn leaves(&self, room: &str) {
        self.call("POST", &format!("/rooms/{room}/leave"), Some(&json!({}))).await;
    }

    /// Sets a state event of a room, with an empty state key.
    pub async fn sets(&self, room: &str, kind: &str, content: &Value) {
        self.call("PUT", &format!("/rooms/{room}/state/{kind}"), Some(content)).await;
    }

    /// Sets the power level that messages in a room require. Members have 0, its creator has 100.
    pub async fn lets_speak_from(&self, room: &str, power: u32) {
        let path = format!("/rooms/{room}/state/m.room.power_levels");
        let mut levels = self.call("GET", &path, None).await;
        levels["events_default"] = json!(power);
        self.call("PUT", &path, Some(&levels)).await;
    }

    /// Upgrades a room; returns the id of its replacement.
    ///
    /// # Panics
    /// If the upgrade fails.
    pub async fn upgrade(&self, room: &str, version: &str) -> String {
        let given = json!({ "new_version": version });
        let upgraded = self.call("POST", &format!("/rooms/{room}/upgrade"), Some(&given)).await;
        upgraded["replacement_room"].as_str().expect("the upgrade returns a room").to_owned()
    }

    /// The user ids of a room's members.
    ///
    /// # Panics
    /// If this person is not in the room.
    pub async fn members(&self, room: &str) -> Vec<String> {
        let members = self.call("GET", &format!("/rooms/{room}/joined_members"), None).await;
        let joined = members["joined"].as_object().expect("a room has members");
        joined.keys().cloned().collect()
    }

    /// Sends a message; returns the event's id.
    pub async fn says(&self, room: &str, text: &str) -> String {
        self.sends(room, &json!({ "msgtype": "m.text", "body": text })).await
    }

    /// Sends a message that mentions a user.
    pub async fn mentions(&self, room: &str, user: &str, text: &str) -> String {
        let mentions = json!({ "user_ids": [user] });
        self.sends(room, &json!({ "msgtype": "m.text", "body": text, "m.mentions": mentions })).await
    }

    /// Replies to an event.
    pub async fn replies(&self, room: &str, to: &str, text: &str) -> String {
        let relation = json!({ "m.in_reply_to": { "event_id": to } });
        self.sends(room, &json!({ "msgtype": "m.text", "body": text, "m.relates_to": relation })).await
    }

    /// Sends a message that mentions a user to a thread.
    pub async fn says_in_thread(&self, room: &str, thread: &str, user: &str, text: &str) -> String {
        let relation = json!({ "rel_type": "m.thread", "event_id": thread });
        let mentions = json!({ "user_ids": [user] });
        let content = json!({ "msgtype": "m.text", "body": text, "m.relates_to": relation, "m.mentions": mentions });
        self.sends(room, &content).await
    }

    /// Edits a message.
    pub async fn edits(&self, room: &str, event: &str, text: &str) -> String {
        let new = json!({ "msgtype": "m.text", "body": text });
        let relation = json!({ "rel_type": "m.replace", "event_id": event });
        let body = format!("* {text}");
        self.sends(room, &json!({ "msgtype": "m.text", "body": body, "m.new_content": new, "m.relates_to": relation }))
            .await
    }

    /// Sends a message with this content.
    pub async fn sends(&self, room: &str, content: &Value) -> String {
        self.send(room, "m.room.message", content).await
    }

    /// Sends an event of any type.
    pub async fn sends_event(&self, room: &str, kind: &str, content: &Value) -> String {
        self.send(room, kind, content).await
    }

    /// Reacts to an event with an emoji.
    pub async fn reacts(&self, room: &str, event: &str, emoji: &str) -> String {
        let relation = json!({ "rel_type": "m.annotation", "event_id": event, "key": emoji });
        self.send(room, "m.reaction", &json!({ "m.relates_to": relation })).await
    }

    /// Redacts an event.
    pub async fn redacts(&self, room: &str, event: &str) {
        let number = self.sent.fetch_add(1, Ordering::SeqCst);
        self.call("PUT", &format!("/rooms/{room}/redact/{event}/{number}"), Some(&json!({}))).await;
    }

    /// Sends a file; returns the event's id.
    pub async fn attaches(&self, room: &str, name: &str, media_type: &str, bytes: &[u8]) -> String {
        let url = self.uploads(name, media_type, bytes).await;
        let info = json!({ "mimetype": media_type, "size": bytes.len() });
        self.sends(room, &json!({ "msgtype": "m.file", "body": name, "url": url, "info": info })).await
    }

    /// Sends a voice message of so many milliseconds.
    pub async fn speaks(&self, room: &str, bytes: &[u8], millis: u64) -> String {
        let url = self.uploads("voice.ogg", "audio/ogg", bytes).await;
        let info = json!({ "mimetype": "audio/ogg", "size": bytes.len(), "duration": millis });
        let content = json!({
            "msgtype": "m.audio", "body": "Voice message", "filename": "voice.ogg", "url": url, "info": info,
            "org.matrix.msc3245.voice": {},
        });
        self.sends(room, &content).await
    }

    /// Sends a picture with a caption.
    pub async fn shows(&self, room: &str, name: &str, bytes: &[u8], words: &str) -> String {
        let url = self.uploads(name, "image/png", bytes).await;
        let info = json!({ "mimetype": "image/png", "size": bytes.len() });
        let content = json!({ "msgtype": "m.image", "body": words, "filename": name, "url": url, "info": info });
        self.sends(room, &content).await
    }

    /// Uploads a file; returns its `mxc` URI.
    async fn uploads(&self, name: &str, media_type: &str, bytes: &[u8]) -> Value {
        let url = self.base.replace("/client/v3", "/media/v3/upload");
        let sent = self
            .client
            .post(format!("{url}?filename={name}"))
            .bearer_auth(&self.token)
            .header("content-type", media_type)
            .body(bytes.to_vec())
            .send()
            .await
            .expect("the homeserver responds");
        let uploaded: Value = sent.json().await.expect("the response is JSON");
        uploaded["content_uri"].clone()
    }

    /// The content of an `mxc` URI.
    ///
    /// # Panics
    /// If it cannot be downloaded.
    pub async fn opens(&self, mxc: &str) -> Vec<u8> {
        let path = mxc.trim_start_matches("mxc://");
        let url = format!("{}/media/download/{path}", self.base.replace("/client/v3", "/client/v1"));
        let sent = self.client.get(url).bearer_auth(&self.token).send().await.expect("the homeserver responds");
        assert!(sent.status().is_success(), "no such file: {}", sent.status());
        sent.bytes().await.expect("the file is downloaded").to_vec()
    }

    /// All messages in a room in their current version.
    pub async fn sees(&self, room: &str) -> Vec<Message> {
        let events = self.events(room).await;
        // Shown if the test fails.
        for event in &events {
            let content: String = event["content"].to_string().chars().take(300).collect();
            println!("{} {} {} {content}", event["origin_server_ts"], event["event_id"], event["type"]);
        }
        println!();
        view::messages(&events)
    }

    /// The texts of the messages of `user` in a room.
    pub async fn hears(&self, room: &str, user: &str) -> Vec<String> {
        texts_of(user, self.sees(room).await)
    }

    /// As [`hears`](Self::hears), and prints nothing: for benchmarks, which look often.
    pub async fn texts_of(&self, room: &str, user: &str) -> Vec<String> {
        texts_of(user, view::messages(&self.events(room).await))
    }

    /// Waits until `user` has sent this many messages to a room, and returns their texts. Each of them may take
    /// [`PATIENCE`]: a hundred answers need more than that on a busy machine.
    pub async fn until_hears(&self, room: &str, user: &str, number: usize) -> Vec<String> {
        let mut heard = self.hears(room, user).await;
        while heard.len() < number {
            let so_far = heard.len();
            let about = format!("{number} messages of {user}, {so_far} so far");
            heard =
                self.until(&about, async || Some(self.hears(room, user).await).filter(|now| now.len() > so_far)).await;
        }
        heard
    }

    /// Waits until `user` has joined a room.
    pub async fn until_joined(&self, room: &str, user: &str) {
        let path = format!("/rooms/{room}/joined_members");
        let is_in = async || {
            let members = self.call("GET", &path, None).await;
            members["joined"].get(user).map(|_| ())
        };
        self.until("somebody joins", is_in).await;
    }

    /// The event of the last read receipt of `user` in a room.
    pub async fn read_by(&self, room: &str, user: &str) -> Option<String> {
        let synced = self.sync(None, 0).await;
        let events = synced["rooms"]["join"][room]["ephemeral"]["events"].as_array().cloned().unwrap_or_default();
        let receipts = events.iter().find(|event| event["type"] == "m.receipt")?;
        let read = |(event, receipt): (&String, &Value)| receipt["m.read"].get(user).map(|_| event.clone());
        receipts["content"].as_object()?.iter().find_map(read)
    }

    /// Sends `text` to every room, and again as soon as `other` has answered there, for `length` after `warm_up`. Returns
    /// how long each answer took.
    ///
    /// # Panics
    /// If there is no answer.
    pub async fn converse(
        &self,
        rooms: &[String],
        other: &str,
        text: &str,
        warm_up: Duration,
        length: Duration,
    ) -> Vec<Duration> {
        // Starts from the current position, so that earlier answers are not counted.
        let news = async |since: Value| self.sync(since.as_str(), 1000).await;
        let now = self.sync(None, 0).await["next_batch"].clone();
        let begun = Instant::now();
        let (warm, end) = (begun + warm_up, begun + warm_up + length);
        let mut asked: HashMap<&str, Instant> = HashMap::new();
        let mut asking = FuturesUnordered::new();
        for room in rooms {
            asked.insert(room, Instant::now());
            asking.push(self.says(room, text));
        }
        let mut waits = Vec::new();
        let mut syncing = Box::pin(news(now));
        while Instant::now() < end {
            let synced = tokio::select! {
                synced = &mut syncing => synced,
                Some(_) = asking.next() => continue,
            };
            syncing = Box::pin(news(synced["next_batch"].clone()));
            let now = Instant::now();
            for room in rooms {
                let events = synced["rooms"]["join"][room]["timeline"]["events"].as_array();
                let is_answer = |event: &Value| event["type"] == "m.room.message" && event["sender"] == other;
                if !events.is_some_and(|events| events.iter().any(is_answer)) {
                    continue;
                }
                let Some(before) = asked.insert(room, now) else { continue };
                if now >= warm {
                    waits.push(now - before);
                }
                asking.push(self.says(room, text));
            }
        }
        while asking.next().await.is_some() {}
        assert!(!waits.is_empty(), "nobody answered");
        waits
    }

    /// Uses up the one-time keys of a device; returns how many there were.
    ///
    /// # Panics
    /// If the homeserver rejects the claim.
    pub async fn uses_up_keys(&self, user: &str, device: &str) -> usize {
        let mut claimed_before = HashSet::new();
        loop {
            let given = json!({ "one_time_keys": { user: { device: "signed_curve25519" } } });
            let claimed = self.call("POST", "/keys/claim", Some(&given)).await;
            let keys = claimed["one_time_keys"][user][device].as_object().cloned().unwrap_or_default();
            // The fallback key is returned repeatedly once the one-time keys are used up.
            let is_last = keys.values().all(|key| key["fallback"] == true);
            if is_last || keys.keys().all(|key| !claimed_before.insert(key.clone())) {
                return claimed_before.len();
            }
        }
    }

    /// The ids of a user's devices.
    pub async fn devices_of(&self, user: &str) -> Vec<String> {
        let found = self.call("POST", "/keys/query", Some(&json!({ "device_keys": { user: [] } }))).await;
        let devices = found["device_keys"][user].as_object().cloned().unwrap_or_default();
        devices.keys().cloned().collect()
    }

    /// Whether a device is signed by its account, according to the public keys.
    pub async fn sees_signed(&self, user: &str, device: &str) -> bool {
        let found = self.call("POST", "/keys/query", Some(&json!({ "device_keys": { user: [] } }))).await;
        let signatures = &found["device_keys"][user][device]["signatures"][user];
        let keys = found["self_signing_keys"][user]["keys"].as_object().cloned().unwrap_or_default();
        keys.keys().any(|key| signatures[key].is_string())
    }

    /// The user ids of those who are typing in a room.
    pub async fn typing(&self, room: &str) -> Vec<String> {
        let synced = self.sync(None, 0).await;
        let events = synced["rooms"]["join"][room]["ephemeral"]["events"].as_array().cloned().unwrap_or_default();
        let typing =
            events.iter().find(|event| event["type"] == "m.typing").map(|event| event["content"]["user_ids"].clone());
        typing.and_then(|users| serde_json::from_value(users).ok()).unwrap_or_default()
    }

    /// Evaluates `what` again after each sync until it returns `Some`.
    ///
    /// # Panics
    /// If it does not within [`PATIENCE`].
    pub async fn until<T>(&self, about: &str, mut what: impl AsyncFnMut() -> Option<T>) -> T {
        let started = Instant::now();
        let mut since = None;
        loop {
            if let Some(found) = what().await {
                return found;
            }
            assert!(started.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {about}");
            let timeout = if since.is_none() { 0 } else { 500 };
            let synced = self.sync(since.as_deref(), timeout).await;
            since = synced["next_batch"].as_str().map(str::to_owned);
        }
    }

    async fn sync(&self, since: Option<&str>, timeout_ms: u64) -> Value {
        let since = since.map(|since| format!("&since={since}")).unwrap_or_default();
        self.call("GET", &format!("/sync?timeout={timeout_ms}{since}"), None).await
    }

    async fn events(&self, room: &str) -> Vec<Value> {
        let mut events = Vec::new();
        let mut from = String::new();
        loop {
            let page = self.call("GET", &format!("/rooms/{room}/messages?dir=f&limit=500{from}"), None).await;
            let chunk = page["chunk"].as_array().cloned().unwrap_or_default();
            let (is_last, end) = (chunk.is_empty(), page["end"].as_str().map(str::to_owned));
            events.extend(chunk);
            match end {
                Some(end) if !is_last => from = format!("&from={end}"),
                _ => return events,
            }
        }
    }

    async fn send(&self, room: &str, kind: &str, content: &Value) -> String {
        let number = self.sent.fetch_add(1, Ordering::SeqCst);
        let sent = self.call("PUT", &format!("/rooms/{room}/send/{kind}/{number}"), Some(content)).await;
        sent["event_id"].as_str().expect("what was sent has an id").to_owned()
    }

    async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        call(&self.client, method, &format!("{}{path}", self.base), Some(&self.token), body).await
    }
}

fn texts_of(user: &str, messages: Vec<Message>) -> Vec<String> {
    messages.into_iter().filter(|message| message.sender == user).map(|message| message.text).collect()
}

/// Calls the homeserver, and retries after rate limits.
pub(crate) async fn call(
    client: &reqwest::Client,
    method: &str,
    url: &str,
    token: Option<&str>,
    body: Option<&Value>,
) -> Value {
    loop {
        let method = method.parse().expect("a method");
        let mut request = client.request(method, url);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.unwrap_or_else(|error| panic!("the homeserver does not respond: {error}"));
        let status = response.status();
        let answer: Value = response.json().await.unwrap_or_default();
        if status.as_u16() == 429 {
            let wait = answer["retry_after_ms"].as_u64().unwrap_or(500);
            tokio::time::sleep(Duration::from_millis(wait)).await;
            continue;
        }
        assert!(status.is_success(), "{url}: {status}: {answer}");
        return answer;
    }
}
