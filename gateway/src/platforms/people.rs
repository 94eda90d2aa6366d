//! What is worth saying about who may write to a channel.

use rejoinder_config::Config;

/// Remarks on the channels of a platform that let nobody or everybody in. `how` says how to let someone in.
pub(super) fn remarks_on_people(config: &Config, platform: &str, how: impl Fn(&str) -> String) -> Vec<String> {
    let channels = config.channels.iter().filter(|(channel, _)| channel.platform() == platform);
    let people = channels.filter_map(|(id, channel)| Some((id, channel.common.people.as_ref()?)));
    let remark = |(id, people): (rejoinder_core::ChannelId, &rejoinder_config::People)| {
        let key = format!("channels.{id}");
        match people.dm_policy {
            rejoinder_core::DirectPolicy::Allowlist
                if people.allow_from.is_empty() && !config.people.has_on(id.as_str()) =>
            {
                Some(format!("{key} lets nobody in yet: {}.", how(&key)))
            }
            rejoinder_core::DirectPolicy::Open => {
                Some(format!("{key}.dm_policy is \"open\": everyone who finds the bot can talk to your agent."))
            }
            rejoinder_core::DirectPolicy::Pairing | rejoinder_core::DirectPolicy::Allowlist
                if people.allow_from.iter().any(|entry| entry == "*") =>
            {
                Some(format!("{key}.allow_from has \"*\": everyone who finds the bot can talk to your agent."))
            }
            rejoinder_core::DirectPolicy::Pairing
            | rejoinder_core::DirectPolicy::Allowlist
            | rejoinder_core::DirectPolicy::Disabled => None,
        }
    };
    people.filter_map(remark).collect()
}
