//! What the readers of all gateways share.

use std::path::PathBuf;

use jiff::Timestamp;

use super::{
    draft::{Block, Draft},
    notes::Notes,
};
use crate::console::secret::SecretLocation;

/// What the files of another gateway are read with.
pub(super) struct Surroundings {
    pub(super) home: PathBuf,
    /// For secrets.
    pub(super) data_dir: PathBuf,
    pub(super) now: Timestamp,
}

/// What was read.
pub(super) struct Imported {
    pub(super) draft: Draft,
    pub(super) notes: Notes,
}

/// The parts of a list with commas.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// A truth value as text. Source: NousResearch/hermes-agent, `gateway/config.py` (`_coerce_bool`).
pub(super) fn flag(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// `[sessions]`, from the words that both gateways have: "daily", "idle", "both", "none".
pub(super) fn sessions(mode: &str, hour: Option<u64>, idle_minutes: Option<u64>) -> Option<Block> {
    let mut block = Block::new(&["sessions"]);
    match mode {
        "daily" | "both" => {
            block.set("reset", "daily");
            block.set("reset_at", format!("{:02}:00", hour.filter(|hour| *hour < 24).unwrap_or(4)));
        }
        "idle" => {
            block.set("reset", "idle");
            block.set("idle", format!("{}m", idle_minutes.unwrap_or(60)));
        }
        _ => return None,
    }
    Some(block)
}

/// `[queue]`, from OpenClaw's words (openclaw/openclaw, `src/config/types.queue.ts`).
pub(super) fn queue(mode: &str) -> Option<Block> {
    let mode = match mode {
        "steer" | "steer-backlog" | "steer+backlog" => "steer",
        "followup" | "queue" => "followup",
        "collect" => "collect",
        "interrupt" => "interrupt",
        _ => return None,
    };
    let mut block = Block::new(&["queue"]);
    block.set("mode", mode);
    block.set("group_mode", mode);
    Some(block)
}

/// The keys of a Matrix account. Those that are not written there are left open, and the section is switched off.
pub(super) fn matrix_account(
    block: &mut Block,
    (homeserver, user): (Option<String>, Option<String>),
    (password, token): (Option<SecretLocation>, Option<SecretLocation>),
) {
    let mut set = |key, value: Option<String>, example, missing| {
        if let Some(value) = value {
            return block.set(key, value);
        }
        block.leave_open(key, example);
        block.turn_off(missing);
    };
    set("homeserver", homeserver, "\"https://matrix.example.org\"", "the homeserver is not written there");
    set("user", user, "\"@agent:example.org\"", "the account's user id is not written there");
    match (password, token) {
        (Some(password), _) => block.set_secret("password", password),
        (None, Some(token)) => {
            block.remark("The access token must be of a device that nothing else uses; with a password the gateway makes its own.");
            block.set_secret("access_token", token);
        }
        (None, None) => {
            block.leave_open("password", "{ env = \"MATRIX_PASSWORD\" }");
            block.turn_off("neither a password nor an access token is written there");
        }
    }
}
