//! What is worth saying about who may write to a channel.

use rejoinder_config::{Config, People};
use rejoinder_core::{ChannelId, DirectPolicy};

/// Remarks on the channels of a platform that let nobody or everybody in. `how` says how to let someone in.
pub(super) fn remarks_on_people(config: &Config, platform: &str, how: impl Fn(&str) -> String) -> Vec<String> {
    let channels = config.channels.iter().filter(|(channel, _)| channel.platform() == platform);
    let people = channels.filter_map(|(id, channel)| Some((id, channel.common.people.as_ref()?)));
    let remark = |(id, people): (ChannelId, &People)| {
        let key = format!("channels.{id}");
        let names_everyone = people.allow_from.iter().any(|entry| entry == "*");
        let names_nobody = people.allow_from.is_empty() && !config.people.has_on(id.as_str());
        match people.dm_policy {
            DirectPolicy::Allowlist if names_nobody => Some(format!("{key} lets nobody in yet: {}.", how(&key))),
            DirectPolicy::Open => {
                Some(format!("{key}.dm_policy is \"open\": everyone who finds the bot can talk to your agent."))
            }
            DirectPolicy::Pairing | DirectPolicy::Allowlist if names_everyone => {
                Some(format!("{key}.allow_from has \"*\": everyone who finds the bot can talk to your agent."))
            }
            DirectPolicy::Pairing | DirectPolicy::Allowlist | DirectPolicy::Disabled => None,
        }
    };
    people.filter_map(remark).collect()
}
