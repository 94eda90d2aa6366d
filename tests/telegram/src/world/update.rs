//! Updates that wait for the bot's next poll or for its webhook.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};

/// A serialised update.
#[derive(Debug, Clone)]
pub(crate) struct Update {
    pub(crate) id: i64,
    /// Updates are ordered within a chat; 0 if it belongs to none.
    pub(crate) chat: i64,
    pub(crate) body: Arc<str>,
}

/// Kinds that a bot gets only on request (`allowed_updates` of <https://core.telegram.org/bots/api#getupdates>).
const ON_REQUEST: [&str; 3] = ["chat_member", "message_reaction", "message_reaction_count"];

#[derive(Debug)]
pub(crate) struct Updates {
    next_id: i64,
    allowed: Option<HashSet<String>>,
    queue: VecDeque<Update>,
    /// Counts polls: a newer one ends an older one.
    pub(crate) polls: u64,
    pub(crate) hook: Option<Hook>,
}

/// A webhook and its queue.
#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) url: String,
    pub(crate) secret: Option<String>,
    pub(crate) max_connections: usize,
    /// The number of this webhook: results for older webhooks are dropped.
    pub(crate) number: u64,
    pub(crate) last_error: Option<(i64, String)>,
    /// Waiting updates by chat, oldest first.
    lanes: HashMap<i64, Lane>,
    /// Chats whose oldest update may be sent.
    ready: VecDeque<i64>,
    pending: usize,
}

#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<Update>,
    /// Whether the oldest update is in flight or waits for a retry.
    busy: bool,
    failures: u32,
}

impl Updates {
    pub(crate) fn new(first_id: i64) -> Self {
        Self { next_id: first_id, allowed: None, queue: VecDeque::new(), polls: 0, hook: None }
    }

    /// Queues an update if the bot wants its kind.
    pub(crate) fn push(&mut self, kind: &str, chat: i64, payload: &Value) -> bool {
        let wanted = match &self.allowed {
            Some(allowed) => allowed.contains(kind),
            None => !ON_REQUEST.contains(&kind),
        };
        if wanted {
            self.queue_body(chat, |id| format!("{{\"update_id\":{id},{}:{payload}}}", Value::from(kind)));
        }
        wanted
    }

    /// Queues an update with this body, whatever it is.
    pub(crate) fn push_raw(&mut self, body: &str) {
        self.queue_body(0, |_| body.to_owned());
    }

    fn queue_body(&mut self, chat: i64, body: impl FnOnce(i64) -> String) {
        let id = self.next_id;
        self.next_id += 1;
        let update = Update { id, chat, body: body(id).into() };
        match &mut self.hook {
            Some(hook) => hook.push(update),
            None => self.queue.push_back(update),
        }
    }

    /// Sets the wanted kinds; an empty list means the default.
    pub(crate) fn allow(&mut self, kinds: Vec<String>) {
        self.allowed = (!kinds.is_empty()).then(|| kinds.into_iter().collect());
    }

    pub(crate) fn allowed(&self) -> Option<Vec<&str>> {
        let mut kinds: Vec<_> = self.allowed.as_ref()?.iter().map(String::as_str).collect();
        kinds.sort_unstable();
        Some(kinds)
    }

    /// Drops the updates that an offset confirms.
    pub(crate) fn confirm(&mut self, offset: i64) {
        if offset < 0 {
            let kept = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX).min(self.queue.len());
            self.queue.drain(..self.queue.len() - kept);
        } else {
            while self.queue.front().is_some_and(|update| update.id < offset) {
                self.queue.pop_front();
            }
        }
    }

    /// The oldest updates, which stay queued.
    pub(crate) fn oldest(&self, limit: usize) -> Vec<Arc<str>> {
        self.queue.iter().take(limit).map(|update| Arc::clone(&update.body)).collect()
    }

    pub(crate) fn pending(&self) -> usize {
        self.queue.len() + self.hook.as_ref().map_or(0, |hook| hook.pending)
    }

    pub(crate) fn forget_all(&mut self) {
        self.queue.clear();
        if let Some(hook) = &mut self.hook {
            hook.lanes.clear();
            hook.ready.clear();
            hook.pending = 0;
        }
    }

    /// Sets the webhook, and moves waiting updates to it.
    pub(crate) fn set_hook(&mut self, mut hook: Hook) {
        self.delete_hook();
        self.queue.drain(..).for_each(|update| hook.push(update));
        self.hook = Some(hook);
    }

    /// Deletes the webhook, and moves its waiting updates to the poll queue.
    pub(crate) fn delete_hook(&mut self) {
        let Some(hook) = self.hook.take() else { return };
        let mut waiting: Vec<_> = hook.lanes.into_values().flat_map(|lane| lane.waiting).collect();
        waiting.sort_by_key(|update| update.id);
        self.queue.extend(waiting);
    }

    /// The webhook with this number, if it is still set.
    pub(crate) fn hook_numbered(&mut self, number: u64) -> Option<&mut Hook> {
        self.hook.as_mut().filter(|hook| hook.number == number)
    }
}

impl Hook {
    pub(crate) fn new(url: String, secret: Option<String>, max_connections: usize, number: u64) -> Self {
        Self {
            url,
            secret,
            max_connections,
            number,
            last_error: None,
            lanes: HashMap::new(),
            ready: VecDeque::new(),
            pending: 0,
        }
    }

    fn push(&mut self, update: Update) {
        let lane = self.lanes.entry(update.chat).or_default();
        if !lane.busy && lane.waiting.is_empty() {
            self.ready.push_back(update.chat);
        }
        lane.waiting.push_back(update);
        self.pending += 1;
    }

    /// The next update to send from a chat without an update in flight.
    pub(crate) fn take(&mut self) -> Option<Update> {
        let chat = self.ready.pop_front()?;
        let lane = self.lanes.get_mut(&chat)?;
        lane.busy = true;
        lane.waiting.front().cloned()
    }

    /// Removes a delivered update and lets the chat's next one follow.
    pub(crate) fn delivered(&mut self, update: &Update) {
        let Some(lane) = self.lanes.get_mut(&update.chat) else { return };
        if lane.waiting.front().is_some_and(|front| front.id == update.id) {
            lane.waiting.pop_front();
            self.pending -= 1;
        }
        (lane.busy, lane.failures) = (false, 0);
        if lane.waiting.is_empty() {
            self.lanes.remove(&update.chat);
        } else {
            self.ready.push_back(update.chat);
        }
    }

    /// Records a failure; returns how many there were in a row.
    pub(crate) fn failed(&mut self, chat: i64, now: i64, why: String) -> u32 {
        self.last_error = Some((now, why));
        self.lanes.get_mut(&chat).map_or(1, |lane| {
            lane.failures += 1;
            lane.failures
        })
    }

    /// Makes the chat's oldest update ready again after its backoff.
    pub(crate) fn retry(&mut self, chat: i64) {
        if let Some(lane) = self.lanes.get_mut(&chat).filter(|lane| !lane.waiting.is_empty()) {
            lane.busy = false;
            self.ready.push_back(chat);
        }
    }
}

/// The result of `getWebhookInfo`.
pub(crate) fn info(updates: &Updates) -> Value {
    let mut info = json!({
        "url": updates.hook.as_ref().map_or("", |hook| &hook.url),
        "has_custom_certificate": false,
        "pending_update_count": updates.pending(),
    });
    let Some(hook) = &updates.hook else { return info };
    info["ip_address"] = "127.0.0.1".into();
    info["max_connections"] = hook.max_connections.into();
    if let Some((date, message)) = &hook.last_error {
        info["last_error_date"] = (*date).into();
        info["last_error_message"] = message.clone().into();
    }
    if let Some(allowed) = updates.allowed() {
        info["allowed_updates"] = json!(allowed);
    }
    info
}

/// The backoff for a webhook that fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pauses {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { first: Duration::from_millis(50), longest: Duration::from_secs(2) }
    }
}

impl Pauses {
    /// Doubles with each failure in a row.
    pub(crate) fn after(self, failures: u32) -> Duration {
        self.first.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(count: i64) -> Updates {
        let mut updates = Updates::new(10);
        for number in 0..count {
            updates.push("message", number % 2, &json!({}));
        }
        updates
    }

    #[test]
    fn a_negative_offset_keeps_the_last_ones() {
        let mut updates = filled(5);
        updates.confirm(-2);
        assert_eq!(updates.oldest(9).len(), 2);
        assert!(updates.oldest(1)[0].starts_with("{\"update_id\":13,"));
    }

    #[test]
    fn a_webhook_gets_one_of_each_chat_at_a_time() {
        let mut updates = filled(4);
        updates.set_hook(Hook::new("http://x".to_owned(), None, 9, 1));
        let hook = updates.hook_numbered(1).unwrap();
        let (first, second) = (hook.take().unwrap(), hook.take().unwrap());
        assert_eq!((first.id, second.id), (10, 11));
        assert!(hook.take().is_none());
        hook.delivered(&first);
        assert_eq!(hook.take().unwrap().id, 12);
        assert_eq!(hook.failed(1, 0, "no".to_owned()), 1);
        hook.retry(1);
        assert_eq!(hook.take().unwrap().id, 11);
    }

    #[test]
    fn what_a_webhook_did_not_take_is_polled_in_order() {
        let mut updates = filled(4);
        updates.set_hook(Hook::new("http://x".to_owned(), None, 9, 1));
        let hook = updates.hook_numbered(1).unwrap();
        let second = (hook.take().unwrap(), hook.take().unwrap()).1;
        hook.delivered(&second);
        updates.delete_hook();
        let ids: Vec<_> = updates.queue.iter().map(|update| update.id).collect();
        assert_eq!(ids, [10, 12, 13]);
    }
}
