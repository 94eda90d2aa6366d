//! `[channels.<platform>.<name>]`: where people are.
//!
//! To add a platform: a file with its section here, a map in [`Channels`], a line in [`Channels::read`]
//! and its name in [`PLATFORMS`].

mod webchat;
mod webhook;

use std::collections::BTreeMap;

use serde::Serialize;

pub use self::{
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
pub const PLATFORMS: [&str; 2] = ["webchat", "webhook"];

/// Every configured channel, by platform and name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Channels {
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
