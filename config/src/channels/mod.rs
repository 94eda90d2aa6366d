//! `[channels.<platform>.<name>]`: where people are.
//!
//! To add a platform: a file with its section here, a map in [`Channels`], a line in [`Channels::read`]
//! and its name in [`PLATFORMS`]. Where strangers can write there, it has the keys of `access.rs`.

mod access;
mod discord;
mod matrix;
mod telegram;
mod webchat;
mod webhook;

use std::collections::BTreeMap;

use serde::Serialize;

pub use self::{
    access::{AllowList, DmPolicy, GroupPolicy, People},
    discord::{Discord, DiscordPace, DiscordStreaming},
    matrix::{AutoJoin, Matrix, MatrixPace, MatrixStreaming, ReadReceipts},
    telegram::{Pace, REACTIONS, Streaming, Telegram, TelegramWebhook, UpdateMode},
    webchat::{Access, WebChat},
    webhook::Webhook,
};
use crate::{
    key::Key,
    node::Node,
    read::{Reader, list, nearest},
    sections::entries,
};

/// The platforms of this build, as configuration names them.
pub const PLATFORMS: [&str; 5] = ["discord", "matrix", "telegram", "webchat", "webhook"];

/// Every configured channel, by platform and name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Channels {
    /// Discord applications.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub discord: BTreeMap<String, Discord>,
    /// Accounts on Matrix homeservers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub matrix: BTreeMap<String, Matrix>,
    /// Telegram bots.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub telegram: BTreeMap<String, Telegram>,
    /// Chat pages.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub webchat: BTreeMap<String, WebChat>,
    /// Hooks.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub webhook: BTreeMap<String, Webhook>,
}

impl Channels {
    pub(crate) fn read(node: &Node, key: &Key, reader: &mut Reader<'_>) -> Self {
        let mut channels = Self::default();
        entries(node, key, reader, |platform, node, key, reader| match platform {
            "discord" => {
                channels.discord = channels_of(node, key, reader, &[]);
                one_channel_each(&channels.discord, Discord::bot, &TOKEN, node, key, reader);
            }
            "matrix" => {
                channels.matrix = channels_of(node, key, reader, &[]);
                one_channel_each(&channels.matrix, Matrix::account, &USER, node, key, reader);
            }
            "telegram" => {
                channels.telegram = channels_of(node, key, reader, &[]);
                one_channel_each(&channels.telegram, Telegram::bot, &TOKEN, node, key, reader);
            }
            "webchat" => channels.webchat = channels_of(node, key, reader, &webchat::RESERVED_NAMES),
            "webhook" => channels.webhook = channels_of(node, key, reader, &[]),
            unknown => {
                let hint = nearest(unknown, PLATFORMS.into_iter())
                    .map_or_else(String::new, |nearest| format!(" (did you mean `{nearest}`?)"));
                let what = format!(
                    "names a platform that this build does not have: it has {}{hint}",
                    list(PLATFORMS.into_iter(), "and")
                );
                reader.problem(key.clone(), &node.place, what);
            }
        });
        channels
    }
}

fn channels_of<T>(node: &Node, key: &Key, reader: &mut Reader<'_>, reserved: &[&str]) -> BTreeMap<String, T>
where
    T: crate::check::Section + serde::de::DeserializeOwned,
{
    let mut channels = BTreeMap::new();
    entries(node, key, reader, |name, node, key, reader| {
        if reserved.contains(&name) {
            let what = "has a name that is taken: choose another";
            reader.problem(key.clone(), &node.place, what);
        } else if let Some(channel) = reader.read(node, key) {
            channels.insert(name.to_owned(), channel);
        }
    });
    channels
}

/// What tells who a channel speaks as.
struct Proof {
    key: &'static str,
    /// What is said of it besides, when another channel has it.
    what: &'static str,
}

const TOKEN: Proof = Proof { key: "token", what: "a bot can be one channel only" };

const USER: Proof = Proof { key: "user", what: "an account can be one channel only" };

/// Notes each channel that speaks as another one does: two who ask for a bot's updates take them from each other, or
/// both answer them.
fn one_channel_each<T>(
    channels: &BTreeMap<String, T>,
    id: fn(&T) -> &str,
    proof: &Proof,
    node: &Node,
    key: &Key,
    reader: &mut Reader<'_>,
) {
    let mut seen = BTreeMap::new();
    for (name, channel) in channels {
        let Some(first) = seen.insert(id(channel), name) else { continue };
        let Proof { key: proof, what } = proof;
        let (at, table) = (key.names(&[name, proof]), node.get(name).unwrap_or(node));
        let what = format!("is the {proof} of {} too: {what}", key.name(first));
        reader.problem(at, table.get(proof).map_or(&table.place, |value| &value.place), what);
    }
}
