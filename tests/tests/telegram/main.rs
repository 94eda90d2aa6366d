//! End to end on Telegram: the real binary against a Bot API server that fails on demand.

mod access;
mod acp;
mod albums;
mod alerts;
mod answers;
mod approvals;
mod backlog;
mod commands;
mod crashes;
mod crowd;
mod deferrals;
mod digests;
mod documented;
mod doors;
mod events;
mod failures;
mod files;
mod groups;
mod initiative;
mod kinds;
mod limits;
mod linked;
mod mcp;
mod operator;
mod outages;
mod promise;
mod real_acp;
mod rights;
mod schedules;
mod streaming;
mod voice;
mod words;

use rejoinder_telegram_double::TelegramDouble;
use rejoinder_tests::{Gateway, GatewayBuilder, ScriptedAgent};

/// The section of the channel `telegram.test`, which admits everybody unless `keys` says otherwise.
fn telegram(double: &TelegramDouble, keys: &str) -> String {
    let unless_set =
        |key: &str, value: &str| if keys.contains(key) { String::new() } else { format!("{key} = {value}") };
    let policy = unless_set("dm_policy", "\"open\"");
    let patience = unless_set("poll_timeout", "\"5s\"");
    format!(
        "[channels.telegram.test]\ntoken = \"{}\"\napi_url = \"{}\"\npace = \"server\"\n{patience}\n{policy}\n{keys}\n",
        double.token(),
        double.url()
    )
}

/// A gateway between `double` and `agent`, to be started.
fn between(double: &TelegramDouble, agent: &ScriptedAgent) -> GatewayBuilder {
    Gateway::builder().config(&telegram(double, "")).config(&agent.section())
}

/// The content of the last message in the agent's `call`.
fn last_message(call: &rejoinder_tests::Call) -> String {
    let messages = call.body["messages"].as_array().expect("messages");
    messages.last().expect("a message")["content"]
        .as_str()
        .map_or_else(|| messages.last().expect("a message")["content"].to_string(), ToOwned::to_owned)
}

/// The id of the gateway's only turn.
fn only_turn(gateway: &Gateway) -> String {
    let list: serde_json::Value =
        serde_json::from_str(&gateway.output_of(&["turns", "list", "--json"])).expect("the list is JSON");
    let items = list["items"].as_array().expect("the list has items");
    assert_eq!(items.len(), 1, "{items:#?}");
    items[0]["turn_id"].as_str().expect("a turn has an id").to_owned()
}
