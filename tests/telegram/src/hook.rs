//! Pushes updates to the webhook: in order within a chat, several chats concurrently, with retries until they are accepted
//! (<https://core.telegram.org/bots/api#setwebhook>).

use std::{sync::Arc, time::Duration};

use reqwest::{
    Client, Response,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use tokio::{task::JoinSet, time::sleep};

use crate::{clock::unix_seconds, shared::Shared, world::update::Update};

const SECRET: &str = "x-telegram-bot-api-secret-token";

/// How long a response may take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The longest accepted `Retry-After`.
const LONGEST_RETRY_AFTER: Duration = Duration::from_hours(1);

/// An update and its destination.
struct Push {
    hook: u64,
    url: String,
    secret: Option<String>,
    update: Update,
}

/// The result of a push.
struct Pushed {
    hook: u64,
    update: Update,
    failure: Option<Failure>,
}

struct Failure {
    why: String,
    retry_after: Option<Duration>,
}

/// Runs as long as the server.
pub(crate) async fn push_all(shared: Arc<Shared>, http: Client) {
    let mut under_way = JoinSet::new();
    loop {
        while let Some(push) = next(&shared, under_way.len()) {
            shared.lock().calls.pushed(&push.update.body);
            under_way.spawn(send(http.clone(), push));
        }
        tokio::select! {
            () = shared.signals.hook.notified() => (),
            Some(pushed) = under_way.join_next() => {
                if let Ok(pushed) = pushed {
                    settle(&shared, pushed);
                }
            }
        }
    }
}

fn next(shared: &Shared, under_way: usize) -> Option<Push> {
    let mut world = shared.lock();
    let hook = world.updates.hook.as_mut().filter(|hook| under_way < hook.max_connections)?;
    let update = hook.take()?;
    Some(Push { hook: hook.number, url: hook.url.clone(), secret: hook.secret.clone(), update })
}

async fn send(http: Client, push: Push) -> Pushed {
    let Push { hook, url, secret, update } = push;
    let mut request = http.post(url).timeout(TIMEOUT).header(CONTENT_TYPE, "application/json");
    if let Some(secret) = secret {
        request = request.header(SECRET, secret);
    }
    let failure = match request.body(update.body.to_string()).send().await {
        Ok(response) if response.status().is_success() => {
            // Reads the body, so that the connection can be reused.
            let _ = response.bytes().await;
            None
        }
        Ok(response) => Some(refused(&response)),
        Err(error) if error.is_connect() => Some(Failure { why: "Connection refused".to_owned(), retry_after: None }),
        Err(error) if error.is_timeout() => Some(Failure { why: "Read timeout expired".to_owned(), retry_after: None }),
        Err(_) => Some(Failure { why: "Connection closed".to_owned(), retry_after: None }),
    };
    Pushed { hook, update, failure }
}

fn refused(response: &Response) -> Failure {
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    Failure {
        why: format!("Wrong response from the webhook: {}", response.status()),
        retry_after: seconds.map(Duration::from_secs).map(|asked: Duration| asked.min(LONGEST_RETRY_AFTER)),
    }
}

fn settle(shared: &Arc<Shared>, pushed: Pushed) {
    let Pushed { hook: number, update, failure } = pushed;
    let mut world = shared.lock();
    let pauses = world.pauses;
    if let Some(hook) = world.updates.hook_numbered(number) {
        match failure {
            None => hook.delivered(&update),
            Some(Failure { why, retry_after }) => {
                let failures = hook.failed(update.chat, unix_seconds(), why);
                let pause = retry_after.unwrap_or_else(|| pauses.after(failures));
                tokio::spawn(retry(Arc::clone(shared), number, update.chat, pause));
            }
        }
    }
    world.signals.changed.notify_waiters();
}

async fn retry(shared: Arc<Shared>, number: u64, chat: i64, pause: Duration) {
    sleep(pause).await;
    if let Some(hook) = shared.lock().updates.hook_numbered(number) {
        hook.retry(chat);
    }
    shared.signals.hook.notify_one();
}
