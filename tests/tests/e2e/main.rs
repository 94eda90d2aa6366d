//! End to end: the real binary, real HTTP, a real model server.

mod a2a;
mod agents;
mod api;
mod bad_input;
mod bombs;
mod callbacks;
mod chat;
mod chat_commands;
mod commands;
mod conversations;
mod crashes;
mod disk;
mod doctor;
mod documents;
mod doors;
mod example;
mod hooks;
mod keeping;
mod kinds;
mod logs;
mod mcp;
mod mcp_servers;
mod metrics;
mod nodes;
mod operate;
mod pages;
mod postgres;
mod process;
mod pull;
mod queues;
mod retention;
mod routing;
mod search;
mod siri;
mod terminal;
mod time;
mod traces;
mod two_nodes;
mod unasked;
mod upgrades;
mod voice;
mod waiting;

/// The token of the hooks in these tests.
const TOKEN: &str = "token-of-these-tests";

/// The section of a hook `test`, with additional keys.
fn hook(keys: &str) -> String {
    format!("[channels.webhook.test]\ntoken = \"{TOKEN}\"\n{keys}\n")
}
