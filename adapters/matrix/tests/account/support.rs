//! A gateway with one account.

use std::{ops::Deref, path::PathBuf, sync::Arc, time::Duration};

use rejoinder_config::People;
use rejoinder_core::{
    Access, ChannelId, DirectPolicy, GroupPolicy, Policy, Store, TurnId,
    store::{Beside, CursorMove},
};
use rejoinder_matrix::{AutoJoin, Matrix, MatrixSection};
use rejoinder_matrix_server::{Account, Fault, Homeserver, Person};
pub(crate) use rejoinder_testkit::CANNOT_READ as UNREADABLE;
use rejoinder_testkit::{LeadingClock, Setup, obedient, until};
use serde_json::json;
use url::Url;

pub(crate) struct Gateway {
    kit: rejoinder_testkit::Gateway<Matrix>,
    pub(crate) clock: Arc<LeadingClock>,
    options: MatrixSection,
    keys: PathBuf,
}

impl Deref for Gateway {
    type Target = rejoinder_testkit::Gateway<Matrix>;

    fn deref(&self) -> &Self::Target {
        &self.kit
    }
}

/// A list of one person who may write and invite.
pub(crate) fn only(person: &Person) -> People {
    let allow_from = [person.user()].into_iter().collect();
    People { dm_policy: DirectPolicy::Allowlist, allow_from, ..People::default() }
}

/// The channel's options: everybody may write and invite, and syncs are short.
pub(crate) fn options(homeserver: &str, account: &Account) -> MatrixSection {
    MatrixSection {
        homeserver: Url::parse(homeserver).expect("an address"),
        user: account.user.clone(),
        password: Some(account.password.as_str().into()),
        auto_join: AutoJoin::Always,
        people: People { dm_policy: DirectPolicy::Open, ..People::default() },
        sync_timeout: Duration::from_secs(2),
        ..MatrixSection::default()
    }
}

pub(crate) fn http() -> reqwest::Client {
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    http.connect_timeout(Duration::from_secs(5)).build().expect("a client")
}

/// The token of a new device of an account.
pub(crate) async fn token_of_another_device(homeserver: &Homeserver, account: &Account) -> String {
    let identifier = json!({ "type": "m.id.user", "user": account.user });
    let body = json!({ "type": "m.login.password", "identifier": identifier, "password": account.password });
    let sent = http().post(format!("{}/_matrix/client/v3/login", homeserver.url())).body(body.to_string()).send().await;
    field(sent.expect("a response"), "access_token").await
}

/// Uploads a file as another account. Returns its `mxc:` URI.
pub(crate) async fn uploaded(homeserver: &Homeserver, media_type: &str, bytes: &[u8]) -> String {
    let (_, token) = homeserver.account_with_token("somebody").await;
    let url = format!("{}/_matrix/media/v3/upload", homeserver.url());
    let request = http().post(url).bearer_auth(token).header("content-type", media_type).body(bytes.to_vec());
    field(request.send().await.expect("a response"), "content_uri").await
}

async fn field(response: reqwest::Response, name: &str) -> String {
    let body = response.bytes().await.expect("a body");
    let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    body[name].as_str().unwrap_or_else(|| panic!("no {name}: {body}")).to_owned()
}

/// Sends more messages than one sync response contains.
pub(crate) async fn send_many(person: &Person, room: &str) -> Vec<String> {
    let texts: Vec<String> = (0..60).map(|number| format!("number {number}")).collect();
    for text in &texts {
        person.says(room, &format!("say {text}")).await;
    }
    texts
}

/// Waits until `user` has sent `number` messages in a room, and returns them. The timeout begins anew every 5 messages.
pub(crate) async fn until_hears_many(person: &Person, room: &str, user: &str, number: usize) -> Vec<String> {
    let mut heard = Vec::new();
    while heard.len() < number {
        heard = person.until_hears(room, user, number.min(heard.len() + 5)).await;
    }
    heard
}

/// A response of a homeserver in trouble.
pub(crate) fn server_error() -> Fault {
    Fault::Answer { status: 502, body: json!("nobody is here") }
}

impl Gateway {
    /// Starts with a new account on the homeserver that tests share, and returns once it has synced.
    pub(crate) async fn new() -> (Self, &'static Homeserver) {
        let homeserver = Homeserver::shared().await;
        let account = homeserver.account("agent").await;
        (Self::synced(options(homeserver.url(), &account)).await, homeserver)
    }

    /// Starts, and returns once it has synced.
    pub(crate) async fn synced(options: MatrixSection) -> Self {
        let gateway = Self::with(options).await;
        gateway.until_synced().await;
        gateway
    }

    pub(crate) async fn with(options: MatrixSection) -> Self {
        let access = Access {
            groups: [].into(),
            direct: options.people.dm_policy,
            allow: options.people.allow_from.iter().collect(),
            group: GroupPolicy::All,
            group_allow: options.people.group_allow_from.iter().collect(),
            quote_strangers: options.people.quote_strangers,
            agents: options.people.allow_bots.iter().collect(),
        };
        let setup = Setup::new()
            .agent(|clock, gate| obedient(clock, gate).reading(&["text/", "audio/"]))
            // On a slow machine a deferral could come first.
            .policy(Policy { soft_deadline: None, ..Policy::default() })
            // Longer than a homeserver remembers transaction ids.
            .settings(move |settings| {
                settings.delivery_lifetime = Duration::from_hours(72);
                settings.access.insert(ChannelId::new("matrix", "main"), access.clone());
            });
        Self::on(options, setup).await
    }

    async fn on(options: MatrixSection, setup: Setup) -> Self {
        let keys = setup.folder().join("matrix-main");
        let (channel, clock) = (ChannelId::new("matrix", "main"), Arc::new(LeadingClock::default()));
        let matrix = Matrix::new(channel, options.clone(), keys.clone(), Arc::clone(&clock) as _, http());
        let setup = setup.clock(Arc::clone(&clock) as _);
        Self { kit: rejoinder_testkit::Gateway::start(setup, Arc::new(matrix)).await, clock, options, keys }
    }

    pub(crate) fn options(&self) -> &MatrixSection {
        &self.options
    }

    /// Our device id.
    pub(crate) fn device(&self) -> String {
        let session = std::fs::read(self.keys().join("session.json")).expect("a session");
        let session: serde_json::Value = serde_json::from_slice(&session).expect("JSON");
        session["device"].as_str().expect("a device").to_owned()
    }

    /// Our user id.
    pub(crate) fn user(&self) -> &str {
        &self.options.user
    }

    /// The folder of the session and the keys.
    pub(crate) fn keys(&self) -> PathBuf {
        self.keys.clone()
    }

    /// Stops the gateway, whatever is still owed.
    pub(crate) async fn shut_down(self) -> StoppedGateway {
        StoppedGateway { setup: self.kit.shut_down().await, options: self.options }
    }

    pub(crate) async fn until_synced(&self) {
        self.until_live().await;
    }

    /// Returns once a room is stored up to an event.
    pub(crate) async fn until_stored(&self, room: &str, event: &str) {
        let channel = ChannelId::new("matrix", "main");
        until("an event is stored", async || {
            let cursor = self.store.cursor(&channel, room).await.expect("a store that can be read");
            cursor.is_some_and(|cursor| cursor.ends_with(&format!(" {event}")))
        })
        .await;
    }

    /// Returns once so many attempts to send a turn's answer have ended.
    pub(crate) async fn until_tried(&self, turn: TurnId, attempts: usize) {
        until("the attempts have ended", async || self.attempt_count(turn).await >= attempts).await;
    }

    /// Returns once so many events wait for their keys.
    pub(crate) async fn until_waiting(&self, events: usize) {
        let channel = ChannelId::new("matrix", "main");
        until("events wait for their keys", async || {
            let list = self.store.cursor(&channel, "locked").await.expect("a store that can be read");
            let list: Vec<serde_json::Value> = serde_json::from_str(&list.unwrap_or_default()).unwrap_or_default();
            list.len() == events
        })
        .await;
    }

    /// Stops the gateway, and checks that nothing is owed and nothing waits to be sent.
    pub(crate) async fn stop(self) {
        self.kit.stop().await;
    }
}

/// A gateway that is not running.
pub(crate) struct StoppedGateway {
    setup: Setup,
    pub(crate) options: MatrixSection,
}

impl StoppedGateway {
    /// Starts again with the same data.
    pub(crate) async fn restart(self) -> Gateway {
        Gateway::on(self.options, self.setup).await
    }

    /// Changes a stored cursor of the channel.
    pub(crate) async fn move_cursor(&self, name: &str, change: impl FnOnce(Option<String>) -> String) {
        let store: Arc<dyn Store> = Arc::new(self.setup.store().await);
        let (channel, name) = (ChannelId::new("matrix", "main"), name.to_owned());
        let position = change(store.cursor(&channel, &name).await.expect("a store that can be read"));
        let moved = CursorMove { channel, name, position, fence: None };
        store.accept(Vec::new(), Some(Beside::Cursor(moved))).await.expect("a store that can be written");
        store.close().await;
    }

    /// The gateway's data folder.
    pub(crate) fn path(&self) -> PathBuf {
        self.setup.folder()
    }
}
