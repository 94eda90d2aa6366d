//! A person whose client encrypts.

use std::{
    io::{BufRead, BufReader, Write},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use rejoinder_python::Program;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{Account, PATIENCE, python, view, view::Message};

/// A person whose client encrypts, in a process that ends when this is dropped.
#[derive(Debug)]
pub struct Human {
    user: String,
    // Locked while a command is written.
    program: Mutex<Program>,
    numbers: AtomicU64,
    answers: watch::Receiver<Vec<Value>>,
}

impl Human {
    pub(crate) async fn start(homeserver: &str, account: Account) -> Self {
        let program = Program::start(python(), env!("CARGO_MANIFEST_DIR"), "server.human", "REJOINDER_HUMAN_FORKS");
        let output = program.stream().try_clone().expect("the stream is duplicated");
        let (sender, answers) = watch::channel(Vec::new());
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Ok(answer) = serde_json::from_str::<Value>(&line) {
                    sender.send_modify(|answers| answers.push(answer));
                }
            }
        });
        let user = account.user.clone();
        let human = Self { user, program: Mutex::new(program), numbers: AtomicU64::new(0), answers };
        let given = json!({ "homeserver": homeserver, "user": account.user, "password": account.password });
        human.does("login", given).await;
        human
    }

    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Creates an encrypted direct chat and invites `other`; returns the room's id.
    ///
    /// # Panics
    /// If the room is not created.
    pub async fn direct(&self, other: &str) -> String {
        let created = self.does("create", json!({ "invite": [other] })).await;
        created["room"].as_str().expect("a new room has an id").to_owned()
    }

    /// Waits until their client knows that `user` has joined the room.
    pub async fn until_joined(&self, room: &str, user: &str) {
        self.does("until_joined", json!({ "room": room, "user": user })).await;
    }

    /// Sends a message; returns the event's id.
    pub async fn says(&self, room: &str, text: &str) -> String {
        self.sends(room, "m.room.message", &json!({ "msgtype": "m.text", "body": text })).await
    }

    /// Sends a message that mentions a user.
    pub async fn mentions(&self, room: &str, user: &str, text: &str) -> String {
        let mentions = json!({ "user_ids": [user] });
        let content = json!({ "msgtype": "m.text", "body": text, "m.mentions": mentions });
        self.sends(room, "m.room.message", &content).await
    }

    /// Replies to an event.
    pub async fn replies(&self, room: &str, to: &str, text: &str) -> String {
        let relation = json!({ "m.in_reply_to": { "event_id": to } });
        let content = json!({ "msgtype": "m.text", "body": text, "m.relates_to": relation });
        self.sends(room, "m.room.message", &content).await
    }

    /// Edits a message.
    pub async fn edits(&self, room: &str, event: &str, text: &str) -> String {
        let new = json!({ "msgtype": "m.text", "body": text });
        let relation = json!({ "rel_type": "m.replace", "event_id": event });
        let body = format!("* {text}");
        let content = json!({ "msgtype": "m.text", "body": body, "m.new_content": new, "m.relates_to": relation });
        self.sends(room, "m.room.message", &content).await
    }

    /// Redacts an event.
    pub async fn redacts(&self, room: &str, event: &str) {
        self.does("redact", json!({ "room": room, "event_id": event })).await;
    }

    /// Encrypts an event as given, with fields that only the homeserver may set; returns its id. A message must have been
    /// sent before.
    ///
    /// # Panics
    /// If it is not accepted.
    pub async fn forges(&self, room: &str, event: &Value) -> String {
        let sent = self.does("forge", json!({ "room": room, "event": event })).await;
        sent["event_id"].as_str().expect("what was sent has an id").to_owned()
    }

    pub async fn invites(&self, room: &str, user: &str) {
        self.does("invite", json!({ "room": room, "user": user })).await;
    }

    /// Joins a room that they were invited to.
    pub async fn joins(&self, room: &str) {
        self.does("join", json!({ "room": room })).await;
    }

    /// Reacts to an event with an emoji.
    pub async fn reacts(&self, room: &str, event: &str, emoji: &str) -> String {
        let relation = json!({ "rel_type": "m.annotation", "event_id": event, "key": emoji });
        self.sends(room, "m.reaction", &json!({ "m.relates_to": relation })).await
    }

    /// Sends an encrypted file.
    ///
    /// # Panics
    /// If it is not accepted.
    pub async fn attaches(&self, room: &str, name: &str, text: &str) -> String {
        let sent = self.does("attach", json!({ "room": room, "name": name, "text": text })).await;
        sent["event_id"].as_str().expect("what was sent has an id").to_owned()
    }

    /// The content of the encrypted file of a message.
    ///
    /// # Panics
    /// If it cannot be decrypted.
    pub async fn opens(&self, message: &Message) -> String {
        let opened = self.does("open", json!({ "content": message.content })).await;
        opened["text"].as_str().expect("a file has a text").to_owned()
    }

    /// Verifies the only device of a user; returns the emoji that both sides must show.
    ///
    /// # Panics
    /// If the verification fails.
    pub async fn verifies(&self, user: &str) -> Vec<String> {
        let verified = self.does("verify", json!({ "user": user })).await;
        assert_eq!(verified["verified"], true, "{verified}");
        serde_json::from_value(verified["shown"].clone()).expect("a list")
    }

    /// Asks another device of their own account to verify this one.
    ///
    /// # Panics
    /// If the request fails.
    pub async fn starts_to_verify(&self, device: &str) {
        self.does("start_to_verify", json!({ "device": device })).await;
    }

    /// Makes their next message use a new key.
    pub async fn forgets_the_room_key(&self, room: &str) {
        self.does("forgets_the_room_key", json!({ "room": room })).await;
    }

    /// The id of the session that encrypts their messages in a room.
    ///
    /// # Panics
    /// If they have not sent a message there yet.
    pub async fn room_key(&self, room: &str) -> String {
        let key = self.does("room_key", json!({ "room": room })).await;
        key["session"].as_str().expect("a message was sent in the room").to_owned()
    }

    /// Waits until `user` has sent this many messages to a room, and returns them in their current version.
    pub async fn until_hears(&self, room: &str, user: &str, number: usize) -> Vec<Message> {
        self.until_sees(room, |messages| {
            let theirs: Vec<Message> = messages.iter().filter(|message| message.sender == user).cloned().collect();
            (theirs.len() >= number).then_some(theirs)
        })
        .await
    }

    /// Waits until `find` returns `Some` for the messages they see.
    pub async fn until_sees<T>(&self, room: &str, mut find: impl FnMut(&[Message]) -> Option<T>) -> T {
        let mut after = 0;
        loop {
            let answer = self.does("messages", json!({ "room": room, "after": after })).await;
            let seen = answer["seen"].as_array().cloned().unwrap_or_default();
            if let Some(found) = find(&view::messages(&seen)) {
                return found;
            }
            after = seen.len();
        }
    }

    /// The texts of the messages of `user` in a room, including everything sent before this call.
    pub async fn hears(&self, room: &str, user: &str) -> Vec<String> {
        // Their client processes events in order: once it sees this one, it has seen all earlier ones.
        let mark = self.sends(room, "org.example.mark", &json!({})).await;
        self.does("until_seen", json!({ "room": room, "event_id": mark })).await;
        let messages = self.until_sees(room, |messages| Some(messages.to_vec())).await;
        messages.into_iter().filter(|message| message.sender == user).map(|message| message.text).collect()
    }

    async fn sends(&self, room: &str, kind: &str, content: &Value) -> String {
        let sent = self.does("send", json!({ "room": room, "kind": kind, "content": content })).await;
        sent["event_id"].as_str().expect("what was sent has an id").to_owned()
    }

    async fn does(&self, what: &str, mut command: Value) -> Value {
        let number = self.numbers.fetch_add(1, Ordering::SeqCst);
        (command["number"], command["do"]) = (json!(number), json!(what));
        self.write(&command);
        let mut answers = self.answers.clone();
        let find = |answers: &Vec<Value>| answers.iter().any(|answer| answer["number"] == number);
        let answered = tokio::time::timeout(PATIENCE, answers.wait_for(find)).await;
        let answers = answered.unwrap_or_else(|_| panic!("waited in vain: {what}")).expect("the process runs");
        let answer = answers.iter().find(|answer| answer["number"] == number).expect("the answer was received");
        assert!(answer["failed"].is_null(), "{what}: {}", answer["failed"]);
        answer["done"].clone()
    }

    fn write(&self, command: &Value) {
        let program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        program.stream().write_all(format!("{command}\n").as_bytes()).expect("the process runs");
    }
}
