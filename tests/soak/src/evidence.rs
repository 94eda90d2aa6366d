//! Collects what the judge needs: what the gateway has stored, and what people see.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use futures_util::{StreamExt as _, stream};
use rejoinder_tests::Gateway;
use serde_json::Value;

use crate::{
    channel::{Channel, Platform, Seen},
    crowd::Said,
};

/// A chat on a platform.
pub(crate) type ChatKey = (Platform, String);

/// Everything that the judge looks at.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// What people wrote and platforms accepted, in this order.
    pub(crate) said: Vec<Said>,
    /// The gateway's turns, oldest first.
    pub(crate) turns: Vec<Turn>,
    /// What people see of the gateway in each chat.
    pub(crate) chats: BTreeMap<ChatKey, Vec<Seen>>,
}

/// A turn, as the gateway reports it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    pub(crate) id: String,
    /// The platform's name.
    pub(crate) platform: String,
    pub(crate) chat: String,
    /// The person's message.
    pub(crate) text: String,
    pub(crate) state: String,
    pub(crate) status: String,
    /// In milliseconds since 1970.
    pub(crate) accepted_at: i64,
    /// Without copies for callbacks and without drafts.
    pub(crate) deliveries: Vec<Sent>,
}

/// A delivery of a signal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    /// `reply`, `reaction` or `deferral`.
    pub(crate) signal: String,
    pub(crate) text: String,
    /// Whether anything was sent.
    pub(crate) was_tried: bool,
    /// In milliseconds since 1970; `None` if it was not delivered.
    pub(crate) delivered_at: Option<i64>,
}

/// The number of the gateway's turns, and of those that are still owed.
pub(crate) async fn counts(gateway: &Gateway) -> (usize, usize) {
    let mut owed = 0;
    let items = list(gateway).await;
    for turn in &items {
        owed += usize::from(turn["owed"] == true && is_open(turn["state"].as_str().unwrap_or_default()));
    }
    (items.len(), owed)
}

/// Whether a turn in this state has not ended.
pub(crate) fn is_open(state: &str) -> bool {
    matches!(state, "open" | "claimed" | "deferred")
}

/// Collects the evidence about `said`. Leaves out the turns in `known`, and adds the others to it.
pub(crate) async fn collect(
    gateway: &Gateway,
    channels: &[Arc<dyn Channel>],
    said: Vec<Said>,
    known: &mut HashSet<String>,
) -> Evidence {
    let listed = list(gateway).await;
    let ids = listed.iter().filter_map(|turn| Some(turn["turn_id"].as_str()?.to_owned()));
    let mut ids: Vec<_> = ids.filter(|id| known.insert(id.clone())).collect();
    ids.reverse();
    let details = stream::iter(ids).map(async |id| turn(&gateway.admin(&format!("turns/{id}")).await));
    let turns = details.buffered(4).collect().await;
    let mut chats = BTreeMap::new();
    for said in &said {
        let key = (said.platform, said.chat.clone());
        if !chats.contains_key(&key)
            && let Some(channel) = channels.iter().find(|channel| channel.platform() == said.platform)
        {
            let seen = channel.seen(&said.chat).await;
            chats.insert(key, seen);
        }
    }
    Evidence { said, turns, chats }
}

/// All turns, newest first.
async fn list(gateway: &Gateway) -> Vec<Value> {
    let (mut items, mut before) = (Vec::new(), String::new());
    loop {
        let mut page = gateway.admin(&format!("turns?limit=200{before}")).await;
        items.append(page["items"].as_array_mut().expect("a page has items"));
        match page["next"].as_str() {
            Some(next) => before = format!("&before={next}"),
            None => return items,
        }
    }
}

fn turn(detail: &Value) -> Turn {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let channel = text(&detail["channel"]);
    let deliveries = detail["deliveries"].as_array().into_iter().flatten();
    Turn {
        id: text(&detail["turn_id"]),
        platform: channel.split('.').next().unwrap_or_default().to_owned(),
        chat: text(&detail["chat"]),
        text: text(&detail["event"]["text"]),
        state: text(&detail["state"]),
        status: text(&detail["status"]),
        accepted_at: millis(&detail["accepted_at"]).unwrap_or_default(),
        deliveries: deliveries
            .filter(|it| it["signal"] != "draft" && it["is_copy"] != true)
            .map(|it| Sent {
                signal: text(&it["signal"]),
                text: text(&it["text"]),
                was_tried: it["state"] == "delivered" || it["attempts"].as_array().is_some_and(|all| !all.is_empty()),
                delivered_at: millis(&it["delivered_at"]).filter(|_| it["state"] == "delivered"),
            })
            .collect(),
    }
}

/// An RFC 3339 time as milliseconds since 1970.
pub(crate) fn millis(time: &Value) -> Option<i64> {
    Some(time.as_str()?.parse::<jiff::Timestamp>().ok()?.as_millisecond())
}
